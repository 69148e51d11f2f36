"""How a job of many ranks ended, by its recordings, and which rank ended it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from builders import MB
from gpu_tracker.analysis.findings.finding import CERTAIN, POSSIBLE, SERIOUS, WHY_IT_DIED, Finding
from gpu_tracker.analysis.job import combine
from gpu_tracker.analysis.job_end import describe_outcome, name_state
from gpu_tracker.core.model import (
    NO_PROCESS,
    OOM_GROUP,
    SIGNAL,
    Allocation,
    Event,
    Identity,
    ProcessTotals,
    RecordingData,
)
from gpu_tracker.core.moments import parse_moment
from gpu_tracker.recording.sampled import read_held
from recorded import join, rank

TERM = Event(5.0, SIGNAL, "15")
OOM = Event(6.0, "oom", "Out of memory: the kernel killed a process.")


def ended(
    number: int, code: int | None, *events: Event, reason: str = "exited", **fields: Any
) -> RecordingData:
    """A rank that ended so."""
    whole = rank(pid=100 + number, events=events, **fields)
    assert whole.end is not None
    identity = Identity(rank=number, job="7", scheduler="slurm")
    return whole._replace(
        end=whole.end._replace(exit_code=code, reason=reason),
        header=whole.header._replace(identity=identity),
    )


def cut_off(number: int, *, is_running: bool = False) -> RecordingData:
    """A rank whose recording has no end."""
    return ended(number, 0)._replace(end=None, is_running=is_running)


def whole_job(*events: Event, has_end: bool = True, is_running: bool = False, **fields: Any) -> RecordingData:
    """All of the job on one machine, of which nobody tells how it ended."""
    whole = ended(0, None, *events, reason="ended", **fields)
    header = whole.header._replace(pid=NO_PROCESS, identity=Identity(job="7", scheduler="slurm"))
    return whole._replace(header=header, end=whole.end if has_end else None, is_running=is_running)


def within_it(number: int, code: int = 0, **fields: Any) -> tuple[RecordingData, ProcessTotals]:
    """A rank, and its process as whoever follows the whole job has seen it."""
    part = ended(number, code, **fields)
    return part, ProcessTotals(part.header.pid, 1, "python", 0.0, 10.0, 1.0, 10**6)


@pytest.mark.parametrize(
    ("parts", "state"),
    [
        ([ended(0, 0), ended(1, 0)], "completed"),
        ([ended(0, 0), cut_off(1, is_running=True)], "running"),
        ([ended(0, 1), ended(1, -15, TERM)], "failed"),
        ([ended(0, 143, TERM), ended(1, 0, TERM)], "told to end"),
        ([ended(0, -9), ended(1, 0)], "killed or failed"),
        ([ended(0, 0), cut_off(1)], "killed or failed"),
        ([ended(0, -9, OOM), ended(1, -15, TERM)], "out of memory"),
        ([ended(0, None, reason="stopped"), ended(1, 0)], "ended"),
        ([ended(0, None, reason="raised"), ended(1, 0)], "failed"),
        ([ended(0, 0, Event(1.0, SIGNAL, "10"))], "completed"),  # SIGUSR1 ends nothing by itself
        ([ended(0, 0, Event(1.0, SIGNAL, "9" * 5000))], "completed"),  # not a number of ours
    ],
)
def test_how_it_ended(parts: list[RecordingData], state: str) -> None:
    """What is surest counts: a rank that failed by itself before others that were told to end because of it."""
    assert join(*parts).job.state == state


@pytest.mark.parametrize(
    ("parts", "state"),
    [
        ([whole_job()], "ended"),
        ([whole_job(has_end=False)], "ended"),
        ([whole_job(has_end=False, is_running=True)], "running"),
        ([whole_job(OOM)], "out of memory"),
        ([whole_job(has_end=False), ended(0, 0), ended(1, 0)], "completed"),
        ([whole_job(has_end=False, is_running=True), ended(0, 0)], "completed"),
        ([whole_job(), ended(0, 0), ended(1, 3)], "failed"),
        ([whole_job(), ended(0, 0), cut_off(1)], "killed or failed"),
    ],
)
def test_who_follows_a_whole_job_does_not_tell_how_it_ended(parts: list[RecordingData], state: str) -> None:
    """Its step is ended with the job, and is often the last to run: the ranks tell, if they are recorded."""
    assert join(*parts).job.state == state


def test_ranks_within_a_followed_job_tell_how_it_ended() -> None:
    """Although they are part of another recording, and ended well."""
    (good, seen), (bad, also_seen) = within_it(0), within_it(1, 3)
    around = whole_job(has_end=False, processes=(seen, also_seen))
    well, badly = join(around, good), join(around, good, bad)

    assert (well.job.state, badly.job.state) == ("completed", "failed")
    assert [one.part_of for one in badly.ranks] == ["", "0", "0"]
    assert badly.notes[0] == "rank 1 on node1 failed first, with exit code 3."
    assert not any("first" in note for note in join(around, bad).notes)
    assert [one.ending for one in well.ranks] == ["ended", "exited"]
    assert "Without what came after the last sample: 0." in well.notes
    assert not any("killed" in note for note in well.notes)


def test_a_job_that_was_told_to_end_when_its_time_was_up() -> None:
    """Even if its ranks then ended well."""
    part = ended(0, 0, TERM)
    began = parse_moment(part.header.started_at) or 0.0
    limited = Allocation(4, 4.0, "Slurm", 2**34, 2**33, "Slurm", ends_at_seconds=began + 9)
    part = part._replace(header=part.header._replace(allocation=limited))

    assert join(part).job.state == "time limit reached"


def test_the_rank_that_failed_first_is_named() -> None:
    """The others were told to end because of it."""
    notes = join(
        ended(0, -15, TERM, seconds=9.0),
        ended(1, 3, seconds=4.0),
        ended(2, 1, seconds=6.0),
        ended(3, 0, TERM),
    ).notes

    assert notes[0] == "rank 1 on node1 failed first, with exit code 3; 1 more failed by themselves later."
    assert notes[1] == "SIGTERM (15) reached 2 of 4 recordings."
    assert join(ended(0, None, reason="raised"), ended(1, 0)).notes[0] == (
        "rank 0 on node1 failed first, with an exception."
    )
    assert join(ended(0, 3)).job.state == "failed"
    assert not any("first" in note for note in join(ended(0, 3)).notes)


def test_where_memory_ran_out() -> None:
    """The limit is that of the host, and so is what its ranks held together."""
    notes = join(
        ended(0, 0, host="a"), ended(1, -9, OOM, host="b", ram=300), ended(2, 0, host="b", ram=200)
    ).notes

    assert notes[0].startswith(
        "Memory ran out on b: the kernel killed processes of rank 1 on b at the limit of "
    )
    assert notes[0].endswith("; its 2 recordings held up to 500 MB together.")


@pytest.mark.parametrize(("steps", "told"), [(("0", "0"), "400 MB"), (("0", "1"), "500 MB")])
def test_ranks_of_one_step_held_no_more_than_its_limit(steps: tuple[str, str], told: str) -> None:
    """What they share is in the sum of each. Each step has a limit of its own."""
    limit = Allocation(4, 4.0, "machine", 16_000 * MB, 400 * MB, "cgroup")
    ranks = [
        made._replace(
            header=made.header._replace(allocation=limit, identity=made.header.identity._replace(step=step))
        )
        for made, step in zip((ended(0, -9, OOM, ram=300), ended(1, 0, ram=200)), steps, strict=True)
    ]

    assert join(*ranks).notes[0].endswith(f"; its 2 recordings held up to {told} together.")


@pytest.mark.parametrize(
    ("state", "is_told"), [("CANCELLED", True), ("TIMEOUT", True), ("FAILED", False), (None, False)]
)
def test_who_ended_a_job_is_not_guessed_where_slurm_tells(state: str | None, is_told: bool) -> None:
    """Findings that know why stay."""
    guess = Finding(WHY_IT_DIED, SERIOUS, POSSIBLE, "Killed by SIGTERM; who sent it is not known.")
    known = guess._replace(confidence=CERTAIN)
    found = [
        combine(
            [("0", ended(0, -15, TERM))],
            partial(read_held, plans={}),
            state=state,
            judge=lambda _, one=one: (one,),  # type: ignore[misc]
        ).findings
        for one in (guess, known)
    ]

    assert list(map(len, found)) == [0 if is_told else 1, 1]
    many = join(*(ended(number, -9, OOM) for number in range(5))).notes
    assert "rank 0 on node1, rank 1 on node1, rank 2 on node1 and others" in many[0]


def test_who_only_shares_the_limit_is_no_victim() -> None:
    """The kernel counts for all of a group: those that ended well are named only if nobody ended badly."""
    killed = join(ended(0, 0, OOM), ended(1, 137, OOM), whole_job(OOM), ended(2, 0, OOM, host="b")).notes
    survived = join(ended(0, 0, OOM), ended(1, 0, OOM)).notes

    assert "processes of rank 2 on b at" in killed[0]
    assert "processes of rank 1 on node1 at" in killed[1]
    assert "processes of rank 0 on node1, rank 1 on node1 at" in survived[0]


def in_group(
    number: int, code: int | None, group: str, *, seconds: float = 10.0, **fields: Any
) -> RecordingData:
    """A rank whose limit was reached, and the group of its own in which the kernel has counted that."""
    return ended(number, code, OOM, Event(6.0, OOM_GROUP, group), seconds=seconds, **fields)


def name_victims(*parts: RecordingData) -> tuple[str, bool]:
    """Of whom the kernel has killed processes, by the note, and whether that is certain."""
    note = join(*parts).notes[0]
    assert note.startswith("Memory ran out on node1: the kernel killed processes of ")
    return note.partition("processes of ")[2].partition(" at the limit")[0], "not known" not in note


@pytest.mark.parametrize(
    ("parts", "victims"),
    [
        # The counters tell, whatever came first and whoever ended well.
        ([in_group(0, -9, ""), in_group(1, 1, "/task_1", seconds=12.0)], ("rank 1 on node1", True)),
        ([in_group(0, -9, ""), in_group(1, 0, "/task_1")], ("rank 1 on node1", True)),
        ([in_group(0, -9, "/task_0"), in_group(1, -9, "/task_1")], ("rank 0 on node1, rank 1 on node1", True)),
        # They count for all in a container: whoever ended first was killed, the others by the launcher.
        ([in_group(0, -9, "/all", seconds=12.0), in_group(1, -9, "/all")], ("rank 1 on node1", True)),
        ([in_group(0, -9, "/all"), in_group(1, -9, "/all")], ("rank 0 on node1, rank 1 on node1", False)),
        ([ended(0, -9, OOM, seconds=12.0), ended(1, 1, OOM)], ("rank 1 on node1", True)),
        # The kernel does not ask anybody to end.
        ([ended(0, -15, OOM), ended(1, -9, OOM)], ("rank 1 on node1", True)),
        ([ended(0, 1, OOM, TERM), ended(1, 137, OOM, seconds=12.0)], ("rank 1 on node1", True)),
        ([ended(0, -15, OOM), ended(1, -15, OOM)], ("rank 0 on node1, rank 1 on node1", False)),
        # One that was killed with its tracker can tell nothing.
        ([ended(0, -9, OOM, seconds=12.0), cut_off(1)], ("rank 1 on node1", True)),
        ([ended(0, -9, OOM), cut_off(1)], ("rank 0 on node1, rank 1 on node1", False)),
        ([in_group(0, -9, ""), cut_off(1)], ("rank 1 on node1", True)),
        ([ended(0, 0, OOM), cut_off(1)], ("rank 0 on node1", True)),
        # Nobody that is recorded: all that is known is whose limit it was.
        ([in_group(0, -9, ""), in_group(1, 0, "")], ("rank 0 on node1, rank 1 on node1", False)),
    ],
)  # fmt: skip
def test_who_was_killed_for_memory_is_not_who_was_killed_for_that(
    parts: list[RecordingData], victims: tuple[str, bool]
) -> None:
    """The kernel's counters tell, else who ended first; where neither does, that is said."""
    assert name_victims(*parts) == victims


def test_the_schedulers_own_words() -> None:
    """Those that are not known stay as they are."""
    assert name_state("TIMEOUT") == "time limit reached"
    assert name_state("SPECIAL_EXIT") == "special exit"


def test_a_job_that_slurm_has_ended_was_no_success() -> None:
    """One that goes on, or of which it knows nothing, may be."""
    assert describe_outcome("CANCELLED") == "by Slurm: cancelled"
    assert [describe_outcome(word) for word in ("COMPLETED", "RUNNING", None)] == ["", "", ""]


@pytest.mark.parametrize(
    ("word", "parts", "state"),
    [
        ("NODE_FAIL", [ended(0, 0)], "node lost"),
        ("COMPLETED", [ended(0, 0), ended(1, 0)], "completed"),
        ("COMPLETED", [ended(0, 0), ended(1, -9, OOM)], "completed, but part of it ran out of memory"),
        ("COMPLETED", [ended(0, 0), ended(1, 3)], "completed, but part of it failed"),
        ("COMPLETED", [ended(0, 0), cut_off(1)], "completed, but part of it was killed or failed"),
        ("FAILED", [ended(0, 0), ended(1, -9, OOM)], "failed"),
        ("COMPLETED", [whole_job(has_end=False)], "completed"),
        ("TIMEOUT", [whole_job(has_end=False)], "time limit reached"),
    ],
)
def test_an_end_by_the_scheduler(word: str, parts: list[RecordingData], state: str) -> None:
    """It knows best, but not what a batch script that went on has passed over."""
    from gpu_tracker.analysis.job import combine
    from gpu_tracker.recording.sampled import read_held

    named = [(f"{number}", one) for number, one in enumerate(parts)]

    assert combine(named, read_held, state=word).job.state == state


def on_host(part: RecordingData, host: str) -> RecordingData:
    """The same on another machine."""
    return part._replace(header=part.header._replace(host=host))


def test_a_lost_machine_is_named() -> None:
    """Nobody there could write an end, while others could."""
    parts = [on_host(ended(0, 0), "n1"), on_host(cut_off(1), "n2"), on_host(cut_off(2), "n2")]
    (lost, *_) = join(*parts).notes

    assert lost == (
        "n2 was lost, or everything on it was killed at once: its 2 recordings ended without a word, "
        "at the latest 10 s after the start."
    )


def test_many_lost_machines_are_five_and_a_number() -> None:
    """A switch may take them all."""
    lost = [on_host(cut_off(number), f"n{number}") for number in range(8)]
    notes = join(*lost, on_host(ended(9, 0), "n9")).notes

    assert [note for note in notes if "was lost" in note or "in the same way" in note][5] == (
        "3 more hosts ended in the same way."
    )


@pytest.mark.parametrize(
    "others",
    [
        [on_host(ended(2, -9), "n2")],
        [on_host(cut_off(2, is_running=True), "n2")],
        [on_host(whole_job(), "n2")],
    ],
    ids=["one has an end", "one is running", "who follows the whole job has an end"],
)
def test_a_machine_that_is_there_is_not_lost(others: list[RecordingData]) -> None:
    """If any recording on it says more; nor if it is the same everywhere."""
    notes = join(on_host(ended(0, 0), "n1"), on_host(cut_off(1), "n2"), *others).notes
    everywhere = join(on_host(cut_off(1), "n1"), on_host(cut_off(2), "n2")).notes
    followed = join(on_host(ended(0, 0), "n1"), on_host(whole_job(has_end=False), "n2")).notes

    assert not any("was lost" in note for note in (*notes, *everywhere, *followed))
