"""Rules about RAM: each fires, stays silent just below its threshold, and knows its guard."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from gpu_tracker.core.calls import MOST_SAMPLED, NO_PRIORITY
from gpu_tracker.core.model import (
    Event,
    Parts,
    PeakMoment,
    PeakProcess,
    ProcessTotals,
    Spread,
    Stalls,
    TreeCounters,
)
from gpu_tracker.core.units import format_size
from made_runs import GB, find, judge, lose, made_run, repeat, why_not

MB = 10**6

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


def test_memory_that_ran_out_is_not_told_twice() -> None:
    """The finding about the kill has the same figures."""
    run = made_run(exit_code=-9, events=[Event(99.0, "oom", "Out of memory.")], ram=63 * GB)

    assert why_not(run, "ram-tight") == "memory ran out, which killed-why tells"


# ---- 17. ram-oversized.


@pytest.mark.parametrize(("peak", "severity"), [(22.4, "warning"), (44.7, "note"), (44.8, None)])
def test_memory_that_nobody_used_is_too_generous(peak: float, severity: str | None) -> None:
    """Less than 70 %; up to 35 % is a warning. The advice has the words of the scheduler."""
    finding = find(made_run(ram=peak * GB, step=4), "ram-oversized")

    assert (finding and finding.severity) == severity
    assert finding is None or finding.advice.startswith("--mem=26G" if peak == 22.4 else "--mem=50G")


def test_a_container_gets_a_size() -> None:
    """It has no scheduler's option."""
    finding = find(made_run(ram=10 * GB, step=4, given={"ram_source": "cgroup"}), "ram-oversized")

    assert finding is not None
    assert finding.advice == "12 GiB is enough for a run like this, with a margin of 20 %."


def test_the_advice_is_that_of_the_request() -> None:
    """There is one source of it."""
    run = made_run(ram=22.4 * GB, step=4)
    finding, sizing = find(run, "ram-oversized"), judge(run).sizing

    assert finding is not None
    assert sizing is not None
    assert sizing.memory_bytes is not None
    assert dict(finding.evidence)["enough_bytes"] == sizing.memory_bytes.advised
    assert f"--mem={format_size(sizing.memory_bytes.advised, 'KMGT')}" in finding.advice


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
    """Less than a gigabyte could be saved."""
    assert find(made_run(ram=0.4 * GB, step=4, given={"ram_bytes": GB}), "ram-oversized") is None


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
    ("parse", "look_up", "words"),
    [
        (0, 10 * MB, " It stays after request/look_up, whose last call left 10 MB more than it found."),
        (9 * MB, 0, " It stays after request/parse, whose last call left 9 MB more than it found."),
        (0, 50 * MB, " Which region of this loop keeps it is not known: `gput.experiment` tells."),
        (None, None, " Which region of this loop keeps it is not known: `gput.experiment` tells."),
    ],
)
def test_of_the_regions_of_a_loop_the_one_that_keeps_it_is_named(
    parse: int | None, look_up: int | None, words: str
) -> None:
    """The peaks of all of them grow, whichever it is."""
    made = {
        path: repeat(path, [10.0] * 16, [int(GB * (1 + number / 100)) for number in range(16)])
        for path in (("request", "parse"), ("request", "look_up"))
    }
    left = {("request", "parse"): parse, ("request", "look_up"): look_up}
    regions = [
        totals._replace(entry_ram_bytes=GB, exit_ram_bytes=None if kept is None else GB + kept)
        for (totals, _), kept in zip(made.values(), left.values(), strict=True)
    ]

    finding = find(
        made_run(n=160, regions=regions, calls=[call for _, calls in made.values() for call in calls]),
        "ram-grows",
    )

    assert finding is not None
    assert finding.sentence.startswith("RAM grew by 10 MB per call of request/look_up, in 11 of 11.")
    assert finding.sentence.endswith(words)


@pytest.mark.parametrize(
    "made", [growing(step=0.003), growing(every=2), growing(n=16, step=0.004), growing(step=0)]
)
def test_a_region_that_hardly_grows_is_fine(made: Any) -> None:
    """By its slope, by how often it rises, and by the whole growth."""
    region, calls = made

    assert find(made_run(n=160, regions=[region], calls=calls), "ram-grows") is None


@pytest.mark.parametrize("n", [140, 330, 500, 1_000])
def test_a_sample_of_many_calls_shows_growth(n: int) -> None:
    """Only some are kept of so many, in unequal distances."""
    region, calls = growing(n, 10 / n)
    kept = Random(n).sample(calls, MOST_SAMPLED)
    largest = [call._replace(priority=NO_PRIORITY) for call in calls[-16:] if call not in kept]

    finding = find(made_run(n=10 * n, regions=[region], calls=[*largest, *kept]), "ram-grows")

    assert finding is not None
    evidence = dict(finding.evidence)
    assert evidence["bytes_per_step"] == pytest.approx(GB * 10 / n)
    assert evidence["step_seconds"] == pytest.approx(10)
    assert "in 95 of 95 sampled calls." in finding.sentence


def test_calls_whose_memory_is_known_by_chance_are_not_judged() -> None:
    """A reading counts for a short call only if it is the highest so far, so what is known always grows."""
    region, calls = growing(200)
    known = [
        call if number % 2 else call._replace(peak_ram_bytes=None) for number, call in enumerate(calls[:128])
    ]

    assert why_not(made_run(regions=[region], calls=known), "ram-grows") == (
        "RAM is not known for most calls of a region, and the run was shorter than 10 min 00 s"
    )


def test_growth_that_ended_long_before_the_end_is_no_leak() -> None:
    """Data were loaded, shard by shard, and kept."""
    region, calls = growing()

    assert find(made_run(n=160, regions=[region], calls=calls), "ram-grows") is not None
    assert find(made_run(n=600, regions=[region], calls=calls), "ram-grows") is None


def test_few_calls_or_missing_ones_say_nothing() -> None:
    """Then the lows of the whole run count, if it is long enough."""
    few, calls = growing(7)
    partly = repeat(("epoch",), [1.0] * 9)

    reason = "no region repeats, and the run was shorter than 10 min 00 s"
    assert why_not(made_run(regions=[few], calls=calls), "ram-grows") == reason
    assert why_not(made_run(regions=[partly[0]], calls=partly[1][:8]), "ram-grows") == reason.replace(
        "no region repeats", "RAM is not known for most calls of a region"
    )
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
        "The peak of 3 GB lasted 1 s; usually it was at most 2 GB. Peak 3 GB at 1:41: main 2 GB, worker 1 GB; in epoch/eval."
    )
    assert (finding.start_seconds, finding.end_seconds) == (101.0, 101.0)


def test_a_peak_within_an_interval_lasted_at_most_as_long() -> None:
    """Where only the largest value of an interval is known to be high."""
    made = made_run(n=200, ram=spiking(3))
    samples = [
        sample._replace(ram_bytes=Parts(*(held._replace(low=0) for held in sample.ram_bytes)))
        for sample in made.samples
    ]
    finding = find(made._replace(samples=samples), "peak-is-a-spike")

    assert finding is not None
    assert finding.sentence.startswith("The peak of 3 GB lasted at most 1 s;")


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


def test_memory_that_each_interval_needs_for_a_moment_is_usual() -> None:
    """It was not at most their mean."""
    made = made_run(n=200, ram=spiking(3))
    samples = [
        sample._replace(
            ram_bytes=Parts(*(held._replace(high=max(held.high or 0, 2.5 * GB)) for held in sample.ram_bytes))
        )
        for sample in made.samples
    ]

    assert find(made._replace(samples=samples), "peak-is-a-spike") is None


def test_a_spike_needs_intervals() -> None:
    """A few cannot show what is usual."""
    assert "are needed" in str(why_not(made_run(n=20, ram=spiking(9)), "peak-is-a-spike"))


# ---- 35. thrashing.


def fetching(waited: float | None, faults: int | None) -> Any:
    """A hundred seconds, of which so many went to waiting for memory."""
    return made_run(counters=TreeCounters(0, 0, faults), stalls=Stalls(0.0, waited))


@pytest.mark.parametrize(
    ("waited", "severity"), [(20.0, "warning"), (59.0, "warning"), (60.0, "serious"), (19.0, None)]
)
def test_a_job_that_waits_for_its_own_pages_thrashes(waited: float, severity: str | None) -> None:
    """From a fifth of the time on; from 60 % on it is serious."""
    finding = find(fetching(waited, 10_000), "thrashing")

    assert (finding and finding.severity) == severity
    assert finding is None or "the job had to fetch 100 pages a second from storage" in finding.sentence


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (fetching(80.0, 9_900), "the job itself hardly waited for its memory"),
        (fetching(None, 10_000), "waiting for memory is not measured"),
        (fetching(80.0, None), "waiting for memory is not measured"),
        (made_run(n=20), "19 intervals after the start; 30 are needed"),
    ],
)
def test_memory_for_which_others_wait_is_not_that_of_the_job(run: Any, reason: str) -> None:
    """Waiting is that of the whole machine."""
    assert why_not(run, "thrashing") == reason


def paging(faults: int, waited: float, used: int = 64 * GB) -> Any:
    """A hundred seconds under a limit of 64 GB, of which so many went to waiting for storage."""
    return made_run(
        counters=TreeCounters(0, 0, faults),
        stalls=Stalls(0.0, 0.0, waited),
        limit_used=used,
        given={"ram_source": "cgroup", "ram_bytes": 64 * GB},
    )


PAGES_IN_LIMIT = 64 * GB // 4096


def test_pages_that_are_fetched_again_and_again_show_a_lack_of_memory() -> None:
    """Also where storage is so fast that little of it counts as waiting for memory."""
    finding = find(paging(3 * PAGES_IN_LIMIT, 37.0), "thrashing")

    assert finding is not None
    assert (finding.severity, finding.confidence) == ("warning", "possible")
    assert finding.sentence == (
        "The job fetched 192 GB from storage page by page under a memory limit of 64 GB, "
        "and something waited for that for 37 % of the time."
    )


@pytest.mark.parametrize(
    "run",
    [
        paging(2 * PAGES_IN_LIMIT, 37.0),  # it may have used each of them once
        paging(3 * PAGES_IN_LIMIT, 19.0),
        paging(3 * PAGES_IN_LIMIT, 37.0, used=57 * GB),
        fetching(0.0, 3 * PAGES_IN_LIMIT),
    ],
)
def test_pages_that_are_fetched_once_or_quickly_show_none(run: Any) -> None:
    """Nor does a limit that was not reached, or none."""
    assert find(run, "thrashing") is None


# ---- What was not measured.


def test_a_peak_that_nobody_saw_is_no_spike() -> None:
    """The kernel knows it, but not how long it was held: for the rest of the run, perhaps."""
    run = made_run(ram=GB, peak=60 * GB)

    assert find(run, "peak-is-a-spike") is not None
    assert why_not(lose(run, 5.0), "peak-is-a-spike") == "it may have lasted while nothing was measured"
    assert find(lose(run, 300.0), "peak-is-a-spike") is None


def test_a_need_of_which_only_the_least_is_known_is_not_enough() -> None:
    """However little was not measured: nobody knows what was held then."""
    run = made_run(ram=GB, step=10)

    assert find(run, "ram-oversized") is not None
    assert why_not(lose(run, 5.0), "ram-oversized") == "how much it needs is not known"
