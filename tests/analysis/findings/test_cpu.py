"""Rules about cores: each fires, stays silent just below its threshold, and knows its guard."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.core.model import Identity
from made_runs import GB, Device, find, made_run, why_not

# ---- 21. one-core.


def mostly(share: int, value: float, otherwise: float) -> list[float]:
    """The value in that many of the last ninety-five of a hundred intervals."""
    return [value if number < 5 + share else otherwise for number in range(100)]


@pytest.mark.parametrize(("source", "severity"), [("Slurm", "warning"), ("machine", "note")])
def test_one_busy_core_of_many_is_told(source: str, severity: str) -> None:
    """A warning if somebody else could have had the others."""
    finding = find(made_run(cores=mostly(77, 0.86, 3), given={"cores_source": source}), "one-core")

    assert finding is not None
    assert finding.severity == severity
    assert finding.sentence == "One of 16 cores was busy for 81 % of the time, the others were not."


@pytest.mark.parametrize("cores", [mostly(75, 0.9, 3), 0.84, 1.02])
def test_more_or_less_than_one_core_is_not_one(cores: Any) -> None:
    """By the time, and by the number."""
    assert find(made_run(cores=cores), "one-core") is None


def test_one_core_is_enough_for_a_busy_gpu() -> None:
    """And for a job that may use one only."""
    assert "GPU is busy" in str(why_not(made_run(Device(busy=80), cores=1), "one-core"))
    assert find(made_run(Device(busy=79), cores=1), "one-core") is not None
    assert "one core only" in str(why_not(made_run(cores=1, given={"cores": 1.5}), "one-core"))
    assert "are needed" in str(why_not(made_run(cores=1, n=20), "one-core"))


@pytest.mark.parametrize(("waiting", "is_found"), [(11.0, True), (11.2, False)])
def test_a_job_whose_threads_wait_for_cores_would_use_more(waiting: float, is_found: bool) -> None:
    """Others leave it one core, which is not its choice."""
    run = made_run(cores=1, waiting=waiting)

    assert (find(run, "one-core") is not None) == is_found
    assert is_found or "waited for a core" in str(why_not(run, "one-core"))


# ---- 22. cores-oversized.


@pytest.mark.parametrize(
    ("source", "advice"),
    [("Slurm", "--cpus-per-task=11 would do"), ("cgroup", "11 cores would do")],
)
def test_cores_that_nobody_used_are_too_many(source: str, advice: str) -> None:
    """With the number that is enough for 95 % of the time."""
    finding = find(made_run(cores=10.3, step=4, given={"cores_source": source}), "cores-oversized")

    assert finding is not None
    assert finding.sentence == (
        "10.3 of 16 cores were busy on average (64 %), and for 95 % of the time at most 11."
    )
    assert finding.advice.startswith(advice)


@pytest.mark.parametrize("cores", [10.41, mostly(80, 2, 16)])
def test_cores_that_were_used_are_not_too_many(cores: Any) -> None:
    """On average, or for some of the time."""
    assert find(made_run(cores=cores, step=4), "cores-oversized") is None


@pytest.mark.parametrize(
    ("devices", "fields", "reason"),
    [
        ([], {"given": {"cores_source": "machine"}}, "nobody reserved cores for this job"),
        ([], {"step": 2.9}, "the run was shorter than 5 min 00 s"),
        ([], {"exit_code": 1}, "a run that failed does not show what is needed"),
        ([Device()], {}, "jobs on GPUs get their cores with them"),
        ([], {"n": 20, "step": 60}, "19 intervals after the start; 30 are needed"),
    ],
)
def test_cores_that_nobody_reserved_are_no_waste(
    devices: list[Device], fields: dict[str, Any], reason: str
) -> None:
    """Nor those that come with a GPU."""
    assert why_not(made_run(*devices, **{"cores": 2, "step": 4, **fields}), "cores-oversized") == reason


def test_cores_of_work_that_was_done_elsewhere_are_no_waste() -> None:
    """Only the least that it needs is known."""
    run = made_run(cores=2, step=4)
    launcher = run._replace(header=run.header._replace(command=("srun", "train")))

    assert find(run, "cores-oversized") is not None
    assert why_not(launcher, "cores-oversized") == "how many it needs is not known"


# ---- 23. oversubscribed.


def crowd(**fields: Any) -> Any:
    """Many threads on sixteen cores, all busy."""
    return made_run(**{"threads": 65, "cores": 12.9, "machine": 14, "waiting": 1.51 * 12.9 * 100, **fields})


def test_threads_that_wait_more_than_they_compute_are_too_many() -> None:
    """With the setting that mends it."""
    finding = find(crowd(), "oversubscribed")

    assert finding is not None
    assert finding.sentence == "65 threads shared 16 cores and spent 1.5 times as long waiting as computing."
    assert finding.advice.startswith("Set OMP_NUM_THREADS (and the like) to 16")
    assert (finding.severity, finding.confidence) == ("warning", "likely")


def test_one_core_is_one() -> None:
    """Not "1 cores"."""
    finding = find(
        crowd(threads=8, cores=0.99, machine=1, waiting=200.0, given={"cores": 1.0}), "oversubscribed"
    )

    assert finding is not None
    assert finding.sentence.startswith("8 threads shared 1 core and spent ")


def test_without_measured_waiting_it_is_a_guess() -> None:
    """Old kernels do not tell it."""
    finding = find(crowd(waiting=None), "oversubscribed")

    assert finding is not None
    assert (finding.severity, finding.confidence) == ("note", "possible")


@pytest.mark.parametrize(
    "fields", [{"threads": 64}, {"cores": 12.7}, {"waiting": 1.49 * 12.9 * 100}, {"given": {"cores": 0.0}}]
)
def test_fewer_threads_idle_cores_or_little_waiting_are_fine(fields: dict[str, Any]) -> None:
    """Just below each threshold."""
    assert find(crowd(**fields), "oversubscribed") is None


def test_others_on_the_machine_explain_waiting_too() -> None:
    """Then nothing is said of threads."""
    assert why_not(crowd(machine=20), "oversubscribed") == "others use the machine, too"
    assert "are needed" in str(why_not(crowd(n=20), "oversubscribed"))


# ---- 24. crowded-machine.


def busy_machine(**fields: Any) -> Any:
    """A full machine of 64 cores on which the job gets ten of its sixteen."""
    return made_run(**{"machine": 61, "cores": 10, "waiting": 200.0, **fields})


def test_a_machine_that_others_fill_is_crowded() -> None:
    """Times cannot be compared then."""
    finding = find(busy_machine(), "crowded-machine")

    assert finding is not None
    assert finding.sentence == (
        "Other programs used 51.0 of the 64 cores; every core was busy 100 % of the time."
    )


@pytest.mark.parametrize("fields", [{"machine": 60.7}, {"cores": 11.3}, {"machine": [61] * 51 + [20] * 49}])
def test_a_machine_with_free_cores_or_a_job_that_has_its_own_is_not_crowded(fields: dict[str, Any]) -> None:
    """Just below each threshold."""
    assert find(busy_machine(**fields), "crowded-machine") is None


def test_a_job_that_hardly_waits_does_not_suffer() -> None:
    """A job that sleeps, say; where waiting is not measured it is a guess."""
    unsure = find(busy_machine(waiting=None), "crowded-machine")

    assert why_not(busy_machine(waiting=100.0), "crowded-machine") == "the job hardly waited for a core"
    asleep = busy_machine(waiting=4.9, cores=0.01)
    assert why_not(asleep, "crowded-machine") == "the job hardly waited for a core"
    assert find(busy_machine(waiting=5.1, cores=0.01), "crowded-machine") is not None
    assert "are needed" in str(why_not(busy_machine(n=20), "crowded-machine"))
    assert unsure is not None
    assert unsure.confidence == "possible"


def test_other_ranks_are_no_strangers() -> None:
    """Those of one job fill a machine together, as they should; a rank alone can have no others."""
    run = busy_machine()

    def be_one_of(ranks: int) -> Any:
        return run._replace(header=run.header._replace(identity=Identity(rank=0, ranks=ranks)))

    assert why_not(be_one_of(8), "crowded-machine") == "other ranks of its job may have kept the cores busy"
    assert find(be_one_of(1), "crowded-machine") is not None


def test_without_samples_others_are_not_known() -> None:
    """The machine's counter may be missing."""
    run = crowd()
    unread = run._replace(
        samples=tuple(sample._replace(system_cpu_seconds=float("nan")) for sample in run.samples)
    )

    assert find(unread, "oversubscribed") is not None
    assert why_not(unread, "crowded-machine") == "there are no samples of it"


# ---- 31. cpu-percent.


def test_more_than_a_hundred_percent_is_explained() -> None:
    """As cores, and of how many."""
    finding = find(made_run(cores=6.42), "cpu-percent")

    assert finding is not None
    assert finding.sentence == "642 % of CPU, as top shows it, is 6.4 of the 16 cores it may use (40 %)."


def test_a_hundred_percent_needs_no_words() -> None:
    """Nor does a run that is too short for a rate."""
    assert find(made_run(cores=1, ram=GB), "cpu-percent") is None
    assert why_not(made_run(step=1e-6), "cpu-percent") == "the run was too short for a rate"
