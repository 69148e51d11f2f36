"""Rules about RAM: each fires, stays silent just below its threshold, and knows its guard."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.analysis.findings.memory import round_up
from gpu_tracker.core.model import PeakMoment, PeakProcess, ProcessTotals, Spread
from made_runs import GB, find, made_run, repeat, why_not

# ---- 16. ram-tight.


@pytest.mark.parametrize(("peak", "severity"), [(57.7, "warning"), (60.9, "serious"), (57.6, None)])
def test_ram_near_its_limit_is_tight(peak: float, severity: str | None) -> None:
    """More than 90 %; more than 95 % is serious."""
    finding = find(made_run(ram=peak * GB), "ram-tight")

    assert (finding and finding.severity) == severity
    assert finding is None or finding.sentence.endswith("% of 64 GB (Slurm limit).")


def test_ram_that_was_not_measured_is_not_tight() -> None:
    """And the machine's memory is no limit that somebody set."""
    whole = made_run(ram=250 * GB, given={"ram_bytes": 256 * GB, "ram_source": "machine"})

    assert why_not(made_run(ram=0), "ram-tight") == "RAM was not measured"
    finding = find(whole, "ram-tight")
    assert finding is not None
    assert finding.sentence == "RAM peaked at 98 % of 256 GB."


# ---- 17. ram-oversized.


@pytest.mark.parametrize(("peak", "severity"), [(22.4, "warning"), (44.7, "note"), (44.8, None)])
def test_memory_that_nobody_used_is_too_generous(peak: float, severity: str | None) -> None:
    """Less than 70 %; up to 35 % is a warning. The advice has the words of the scheduler."""
    finding = find(made_run(ram=peak * GB, step=4), "ram-oversized")

    assert (finding and finding.severity) == severity
    assert finding is None or finding.advice.startswith("--mem=27G" if peak == 22.4 else "--mem=55G")


def test_a_container_gets_a_size() -> None:
    """It has no scheduler's option."""
    finding = find(made_run(ram=10 * GB, step=4, given={"ram_source": "cgroup"}), "ram-oversized")

    assert finding is not None
    assert finding.advice.startswith("12 GB is enough")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"step": 2.9}, "the run was shorter than 5 min 00 s"),
        ({"exit_code": 1}, "a run that failed does not show what is needed"),
        ({"given": {"ram_source": "machine"}}, "the job has the whole machine"),
        ({"given": {"ram_bytes": 240 * GB}}, "the job has the whole machine"),
        ({"ram": 0}, "RAM was not measured"),
    ],
)
def test_memory_that_nobody_else_could_have_is_no_waste(fields: dict[str, Any], reason: str) -> None:
    """Nor does a short or failed run show what is needed."""
    assert why_not(made_run(**{"ram": GB, "step": 4, **fields}), "ram-oversized") == reason


def test_a_small_limit_is_not_worth_a_word() -> None:
    """Less than a gigabyte cannot be saved in whole gigabytes."""
    assert find(made_run(ram=0.4 * GB, step=4, given={"ram_bytes": GB}), "ram-oversized") is None


def test_sizes_are_those_that_people_write() -> None:
    """Never less than asked."""
    sizes = [round_up(size * GB) // GB for size in (0.2, 1, 1.1, 31, 101, 1001)]

    assert sizes == [1, 1, 2, 35, 110, 1100]


# ---- 18. ram-grows.


def growing(n: int = 16, step: float = 0.01, every: int = 1) -> Any:
    """A region whose memory rises by that share of a GB, at every n-th call."""
    return repeat(("epoch",), [10.0] * n, [int(GB * (1 + step * (number // every))) for number in range(n)])


def test_a_region_that_needs_more_each_time_grows() -> None:
    """With the time until the limit is reached at this rate."""
    region, calls = growing()

    finding = find(made_run(n=160, regions=[region], calls=calls), "ram-grows")

    assert finding is not None
    assert finding.sentence == (
        "RAM grew by 10 MB per call of epoch, in 11 of 11. At this rate the limit is reached in 17 h 27 min 30 s."
    )
    assert (finding.severity, finding.confidence) == ("warning", "likely")


@pytest.mark.parametrize(
    "made", [growing(step=0.003), growing(every=2), growing(n=16, step=0.004), growing(step=0)]
)
def test_a_region_that_hardly_grows_is_fine(made: Any) -> None:
    """By its slope, by how often it rises, and by the whole growth."""
    region, calls = made

    assert find(made_run(n=160, regions=[region], calls=calls), "ram-grows") is None


def test_few_calls_or_missing_ones_say_nothing() -> None:
    """Then the lows of the whole run count, if it is long enough."""
    few, calls = growing(7)
    partly = repeat(("epoch",), [1.0] * 9)

    reason = "no region repeats, and the run was shorter than 10 min 00 s"
    assert why_not(made_run(regions=[few], calls=calls), "ram-grows") == reason
    assert why_not(made_run(regions=[partly[0]], calls=partly[1][:8]), "ram-grows") == reason
    assert "are needed" in str(why_not(made_run(n=20), "ram-grows"))


def test_lows_that_rise_all_the_time_are_a_hint() -> None:
    """Without repeats nobody knows whether the program only collects what it needs."""
    finding = find(made_run(n=1000, ram=lambda number: GB * (1 + number / 500)), "ram-grows")

    assert finding is not None
    assert (finding.severity, finding.confidence) == ("note", "possible")
    assert "per 23.8 s" in finding.sentence
    assert find(made_run(n=1000, ram=GB), "ram-grows") is None


def test_growth_beyond_the_limit_has_no_forecast() -> None:
    """It is there already."""
    region, calls = growing()
    run = made_run(n=160, regions=[region], calls=calls, given={"ram_bytes": GB})

    finding = find(run, "ram-grows")

    assert finding is not None
    assert "At this rate" not in finding.sentence


def test_memory_that_is_known_for_a_few_windows_only_is_not_judged() -> None:
    """Most of the time may be missing."""
    run = made_run(n=1000)
    unknown = Spread(float("nan"), float("nan"), float("nan"))
    samples = tuple(
        sample._replace(ram_bytes=sample.ram_bytes._replace(combined=unknown))
        if 60 <= number < 970
        else sample
        for number, sample in enumerate(run.samples)
    )

    assert why_not(run._replace(samples=samples), "ram-grows") == "RAM is not known for long enough"


# ---- 19. workers-grow.

WORKER = ProcessTotals(101, 100, "pt_data_worker", 10.0, 990.0, 5.0, GB)
MAIN = ProcessTotals(100, 1, "python", 0.0, 1000.0, 5.0, GB)


def copying(percent_per_minute: float) -> Any:
    """Workers that grow by that much of their median."""
    return lambda number: 10 * GB * (1 + percent_per_minute / 100 * (number - 525) / 60)


def test_workers_that_grow_while_their_parent_does_not_copy() -> None:
    """Reference counts in a shared data set do that."""
    finding = find(made_run(n=1000, workers_ram=copying(1.05), processes=(MAIN, WORKER)), "workers-grow")

    assert finding is not None
    assert finding.sentence == "Worker processes grew by 105 MB a minute (1.1 %), the main process did not."


@pytest.mark.parametrize(
    "fields",
    [
        {"workers_ram": copying(0.95)},
        {"workers_ram": copying(1.05), "ram": lambda number: GB * (1 + number / 1000)},
    ],
)
def test_workers_that_hardly_grow_or_grow_with_their_parent_are_fine(fields: dict[str, Any]) -> None:
    """Below one percent a minute."""
    assert find(made_run(n=1000, processes=(MAIN, WORKER), **fields), "workers-grow") is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"n": 600, "workers_ram": GB}, "the run was shorter than 10 min 00 s"),
        ({"n": 1000}, "there were no descendants"),
        ({"n": 1000, "workers_ram": GB}, "no descendant lived for most of the run"),
        ({"n": 20}, "19 intervals after the start; 30 are needed"),
    ],
)
def test_workers_that_come_and_go_are_not_judged(fields: dict[str, Any], reason: str) -> None:
    """They are new each time."""
    short = WORKER._replace(last_seconds=600.0)

    assert why_not(made_run(processes=(MAIN, short), **fields), "workers-grow") == reason


# ---- 20. peak-is-a-spike.


def spiking(peak: float, intervals: int = 1) -> Any:
    """Two GB, and for some of two hundred intervals more."""
    return lambda number: peak * GB if 100 <= number < 100 + intervals else 2 * GB


MOMENT = PeakMoment(
    "ram",
    101.0,
    int(3 * GB),
    2,
    (PeakProcess(100, "python", 2 * GB), PeakProcess(101, "worker", GB)),
    (("epoch", "eval"),),
)


def test_a_short_high_peak_is_a_spike() -> None:
    """With who held it, and where."""
    finding = find(made_run(n=200, ram=spiking(3), moments=[MOMENT]), "peak-is-a-spike")

    assert finding is not None
    assert finding.sentence == (
        "The peak of 3 GB lasted 1 s; usually it was at most 2 GB. 3 GB at 1:41: main 2 GB, worker 1 GB; in epoch/eval."
    )
    assert (finding.start_seconds, finding.end_seconds) == (101.0, 101.0)


def test_a_peak_that_nobody_sampled_is_shorter_than_an_interval() -> None:
    """The kernel's high-water mark has it; a moment of a lower peak does not explain it."""
    moment = MOMENT._replace(size_bytes=2 * GB)

    finding = find(made_run(n=200, ram=2 * GB, peak=3 * GB, moments=[moment]), "peak-is-a-spike")

    assert finding is not None
    assert finding.sentence == "The peak of 3 GB was shorter than an interval; usually it was at most 2 GB."
    assert find(made_run(n=200, ram=2 * GB, peak=3 * GB), "peak-is-a-spike") == finding


@pytest.mark.parametrize(
    "ram",
    [spiking(2.99), spiking(3, 2), lambda number: (1.29 if number == 100 else 0.8) * GB],
)
def test_a_lower_longer_or_smaller_peak_is_no_spike(ram: Any) -> None:
    """Just beyond the thresholds: half as much again, 1 % of the time, 500 MB."""
    assert find(made_run(n=200, ram=ram), "peak-is-a-spike") is None


def test_a_spike_needs_intervals() -> None:
    """A few cannot show what is usual."""
    assert "are needed" in str(why_not(made_run(n=20, ram=spiking(9)), "peak-is-a-spike"))
