"""Why a run died: what is certain, what is likely, and what nobody can know."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.core.model import Event, PeakMoment, PeakProcess
from gpu_tracker.core.units import humanize_limit
from made_runs import GB, find, judge, made_run, why_not

NOON = 1769860800.0  # 2026-01-31T12:00:00+00:00, when made runs begin
OOM = Event(99.0, "oom", "Out of memory.")
MOMENT = PeakMoment(
    "ram",
    99.0,
    60 * GB,
    5,
    (PeakProcess(100, "python", 20 * GB), *(PeakProcess(number, "worker", 10 * GB) for number in range(4))),
    (("eval",),),
)


def died(**fields: Any) -> Any:
    """The finding about a run that was killed by SIGKILL, unless said otherwise."""
    finding = find(made_run(**{"exit_code": -9, "ram": 10 * GB, **fields}), "killed-why")
    assert finding is not None
    return finding


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (-24, "The limit of CPU time (`ulimit -t`) was reached, and the job got SIGXCPU."),
        (-25, "The limit of the size of a file (`ulimit -f`) was reached, and the job got SIGXFSZ."),
        (
            152,
            "The limit of CPU time (`ulimit -t`) was reached, and the job ended with exit code 152: "
            "either a process it ran was killed by SIGXCPU, or the program returned 152.",
        ),
    ],
)
def test_a_signal_for_one_reason_tells_the_reason(code: int, sentence: str) -> None:
    """The kernel sends it to who exceeds a limit."""
    finding = died(exit_code=code)

    assert (finding.severity, finding.confidence) == ("serious", "likely")
    assert finding.sentence == sentence


# ---- Certain.


def test_a_kill_that_the_kernel_counted_is_certain() -> None:
    """With who was alive at the peak."""
    finding = died(events=[OOM], ram=60 * GB, limit_used=63 * GB, moments=[MOMENT])

    assert (finding.severity, finding.confidence) == ("serious", "certain")
    assert finding.sentence == (
        "The kernel killed it for its memory: 63 GB of 64 GB. At the peak: 4 × worker 10 GB, main 20 GB; in eval."
    )


def test_the_advice_after_a_kill_is_that_of_the_request() -> None:
    """There is one source of it, and it is above the limit that was not enough."""
    run = made_run(exit_code=-9, events=[OOM], ram=60 * GB, limit_used=63 * GB)
    finding, sizing = find(run, "killed-why"), judge(run).sizing

    assert finding is not None
    assert sizing is not None
    assert sizing.memory_bytes is not None
    assert sizing.memory_bytes.advised > 1.2 * 64 * GB
    assert finding.advice == (
        f"Ask for at least {humanize_limit(sizing.memory_bytes.advised)} of memory, "
        "or use less: fewer workers, smaller batches."
    )


def test_advice_without_a_figure_is_advice_all_the_same() -> None:
    """A process was killed before anything was read."""
    assert died(events=[OOM], ram=0, given={"ram_bytes": 0}).advice.startswith("Ask for more memory, ")


def test_a_peak_between_two_samples_is_told_apart_from_the_largest_sample() -> None:
    """Who held it is known of samples only."""
    finding = died(events=[OOM], ram=63 * GB, moments=[MOMENT])

    assert "63 GB of 64 GB. At the largest reading: 4 × worker" in finding.sentence


def test_a_job_may_survive_a_killed_process() -> None:
    """It is told all the same."""
    finding = died(exit_code=0, events=[OOM], ram=60 * GB)

    assert finding.sentence.startswith("The kernel killed a process of the job for its memory: ")
    assert finding.confidence == "certain"


def test_a_killed_process_need_not_be_of_the_job() -> None:
    """Others may be under the same limit."""
    finding = died(exit_code=1, events=[OOM], ram=GB)

    assert "which need not be of this job: it held 1 GB itself." in finding.sentence
    assert (finding.severity, finding.confidence) == ("warning", "possible")


def test_a_child_that_was_killed_is_not_the_main_process() -> None:
    """That got its own signal, or ended by itself."""
    child = MOMENT._replace(processes=(PeakProcess(777, "worker", 50 * GB),))
    for exit_code in (1, -9, 137):
        finding = died(exit_code=exit_code, events=[OOM], ram=60 * GB, moments=[child])
        assert finding.sentence.startswith("The kernel killed a process of the job for its memory: ")
    alone = MOMENT._replace(processes=())
    finding = died(exit_code=-9, events=[OOM], ram=60 * GB, moments=[alone])
    assert finding.sentence.startswith("The kernel killed it for its memory: ")


def test_a_time_limit_that_was_over_before_is_not_the_jobs() -> None:
    """The variables are of another job."""
    given = {"time_limit_seconds": 3600.0, "ends_at_seconds": NOON - 900}
    assert died(exit_code=-15, given=given).confidence == "possible"


@pytest.mark.parametrize("name", ["MemoryError", "_ArrayMemoryError", "TooLarge, derived from MemoryError"])
def test_a_memory_error_is_certain(name: str) -> None:
    """The exception says so itself, with the limit that refused it."""
    error = Event(99.0, "exception", name)
    limited = {"address_space_bytes": 2**30}

    free = died(exit_code=None, reason="raised", events=[error])
    bound = died(exit_code=None, reason="raised", events=[error], given=limited, moments=[MOMENT])

    assert free.confidence == bound.confidence == "certain"
    assert free.sentence == f"An allocation of memory was refused ({name}). Peak 10 GB of 64 GB (16 %)."
    assert "its address space is limited to 1 GiB" in bound.sentence
    assert "ulimit" in bound.advice


def test_a_refused_allocation_is_in_no_peak() -> None:
    """So a low peak does not say what to ask for; one near the limit does."""
    error = Event(99.0, "exception", "MemoryError")
    low, high = (died(exit_code=None, reason="raised", events=[error], ram=ram * GB) for ram in (1, 40))

    assert low.advice.startswith(
        "How much was asked for is not known here, only that it was more than there was"
    )
    assert high.advice.startswith("Ask for at least 45 GiB of memory, or use less")


@pytest.mark.parametrize("name", ["OutOfMemoryError", "Full, derived from OutOfMemoryError"])
def test_a_gpu_that_ran_out_of_memory_says_so(name: str) -> None:
    """PyTorch's exception, or one made of it."""
    error = Event(99.0, "exception", name)

    finding = died(exit_code=None, reason="raised", events=[error])

    assert finding.sentence == f"The memory of a GPU ran out ({name})."
    assert finding.confidence == "certain"


# ---- Likely.


@pytest.mark.parametrize("code", [-9, 137])
def test_sigkill_at_the_limit_is_likely_memory(code: int) -> None:
    """Also in a shell, which passes the signal on as 137."""
    finding = died(exit_code=code, ram=60.8 * GB)

    assert finding.confidence == "likely"
    assert finding.sentence == (
        f"Probably killed for its memory: {'SIGKILL' if code < 0 else 'exit code 137'} at 95 % of its memory "
        "(60.8 GB of 64 GB)."
    )
    assert finding.advice.startswith("Ask for at least 70 GiB of memory, or use less: ")


def test_a_full_machine_kills_too() -> None:
    """Whatever the job itself used."""
    finding = died(given={"machine_ram_bytes": 104 * GB})

    assert finding.sentence == (
        "Probably killed for its memory: SIGKILL at 96 % of the machine's memory (100 GB of 104 GB)."
    )


def test_an_address_space_that_is_nearly_used_up_is_likely_the_reason() -> None:
    """If the program failed."""
    limit = {"address_space_bytes": 2 * GB}

    finding = died(exit_code=1, virtual=int(1.9 * GB), given=limit, ram=GB)

    assert finding.confidence == "likely"
    assert finding.sentence == (
        "Probably an allocation was refused: a process had mapped 1.9 GB of the 2 GB it may map (`ulimit -v`)."
    )
    below = made_run(exit_code=1, virtual=int(1.89 * GB), given=limit, ram=GB)
    assert find(below, "killed-why") is None
    assert find(made_run(virtual=int(1.9 * GB), given=limit), "killed-why") is None
    resident = died(exit_code=1, virtual=GB, given=limit, ram=int(1.95 * GB))
    assert "had mapped 1.95 GB of the 2 GB" in resident.sentence


@pytest.mark.parametrize(
    ("code", "end"),
    [
        (-15, "got SIGTERM"),
        (-9, "got SIGKILL"),
        (
            143,
            "ended with exit code 143: either a process it ran was killed by SIGTERM, or the program returned 143",
        ),
    ],
)
def test_a_signal_at_the_time_limit_is_likely_the_schedulers(code: int, end: str) -> None:
    """Within five seconds of the end that it had told; a number alone is no proof of a signal."""
    given = {"time_limit_seconds": 3600.0, "ends_at_seconds": NOON + 105}

    finding = died(exit_code=code, given=given)

    assert finding.confidence == "likely"
    assert finding.sentence == f"The time limit of 1 h 00 min 00 s was reached, and the job {end}."
    assert finding.advice.endswith("how much it needs is not known.")


def test_a_limit_that_the_job_entered_itself_is_the_one_that_counts() -> None:
    """Not the one that it had from its start, under which it was far from full; a number that is none is no limit."""
    entered = Event(99.0, "oom_limit", str(60 * 10**6))
    damaged = Event(99.0, "oom_limit", "much")
    finding = died(events=[OOM, entered], ram=65 * 10**6)

    assert (finding.severity, finding.confidence) == ("serious", "certain")
    assert "for its memory: 65 MB of 60 MB." in finding.sentence
    assert died(events=[OOM, damaged], ram=65 * 10**6).confidence == "possible"


def test_a_time_limit_without_its_end_counts_from_the_start_of_the_run() -> None:
    """The run of 100 s reached 104 s, but not 106 s."""
    assert died(given={"time_limit_seconds": 104.0}).sentence.startswith(
        "The time limit of 104 s was reached"
    )
    assert died(given={"time_limit_seconds": 106.0}).confidence == "possible"


def test_a_run_that_was_not_measured_all_the_time_may_have_held_more() -> None:
    """Neither is memory that ran out left to others, nor is the peak all that it held."""
    lost: dict[str, Any] = {"reason": "sampler lost", "ram": GB}
    oom = find(made_run(exit_code=-9, events=[Event(9.0, "oom", "?")], **lost), "killed-why")

    assert oom is not None
    assert (oom.confidence, oom.severity) == ("certain", "serious")
    assert "peak at least 1 GB of" in died(**lost).sentence


def test_a_time_limit_of_unknown_length_is_one_too() -> None:
    """But not one that is far away, or without a signal."""
    near, far = {"ends_at_seconds": NOON + 100}, {"ends_at_seconds": NOON + 106}

    assert died(given=near).sentence == "The time limit was reached, and the job got SIGKILL."
    assert died(given=far).confidence == "possible"
    assert find(made_run(exit_code=1, given=near), "killed-why") is None


# ---- Unknown.


@pytest.mark.parametrize(("code", "name"), [(137, "SIGKILL"), (143, "SIGTERM")])
def test_a_number_alone_proves_nothing(code: int, name: str) -> None:
    """A shell, or the program itself."""
    finding = died(exit_code=code)

    assert (finding.severity, finding.confidence) == ("warning", "possible")
    assert finding.sentence == (
        f"Exit code {code}: either a process it ran was killed by {name}, or the program returned {code}. "
        "Nothing shows that memory ran out: peak 10 GB of 64 GB (16 %)."
    )


def test_a_signal_from_anybody_is_not_explained() -> None:
    """Memory just below the threshold included."""
    finding = died(ram=60.7 * GB)

    assert finding.confidence == "possible"
    assert finding.sentence.startswith("Killed by SIGKILL; who sent it is not known.")
    assert died(exit_code=-15, ram=0).sentence.endswith("ran out: peak not measured.")
    assert died(given={"ram_bytes": 0}).confidence == "possible"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"exit_code": 0}, "it ended as it should"),
        ({"exit_code": 1}, "nothing is known that would explain it better than its own output"),
        ({"exit_code": -11}, "nothing is known that would explain it better than its own output"),
        (
            {"exit_code": None, "reason": "raised"},
            "nothing is known that would explain it better than its own output",
        ),
    ],
)
def test_an_end_that_explains_itself_is_left_alone(fields: dict[str, Any], reason: str) -> None:
    """The program has said why, or nothing went wrong."""
    assert why_not(made_run(**fields), "killed-why") == reason


def test_a_recording_without_an_end_is_not_explained() -> None:
    """gpu-tracker itself was killed, and has seen nothing."""
    run = made_run()._replace(end=None)

    assert dict(judge(run).unjudged)["killed-why"].startswith("nothing is known")
