"""Rules about time: each fires, stays silent just below its threshold, and knows its guard."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.core.model import RegionTotals, Stalls, TreeCounters
from made_runs import GB, Device, find, judge, made_run, repeat, why_not


def region(name: str, seconds: float, first: float = 0.0, outer: tuple[str, ...] = ()) -> RegionTotals:
    """One call of a region."""
    return RegionTotals(
        100, (*outer, name), calls=1, wall_seconds=seconds, first_seconds=first, last_seconds=first + seconds
    )


# ---- 4. waiting-for-data.


@pytest.mark.parametrize(("wait", "severity"), [(5.1, "note"), (15.1, "warning"), (34, "serious"), (5, None)])
def test_waiting_for_data_has_three_degrees(wait: float, severity: str | None) -> None:
    """Of the time in steps and in waiting."""
    regions = [region("data_wait", wait), region("step", 100 - wait)]

    finding = find(made_run(regions=regions, cores=12), "waiting-for-data")

    assert (finding and finding.severity) == severity
    assert finding is None or "more workers" in finding.advice


def test_more_workers_do_not_help_busy_cores() -> None:
    """Then the work itself must be less."""
    regions = [region("data_wait", 40), region("step", 60)]

    finding = find(made_run(regions=regions, cores=13), "waiting-for-data")

    assert finding is not None
    assert finding.advice.startswith("All cores are busy")


@pytest.mark.parametrize(
    "regions",
    [
        [region("data_wait", 10), region("step", 90)],
        [region("data_wait", 10, outer=("step",)), region("step", 100)],
        [region("data_wait", 10)],
    ],
)
def test_waiting_beside_inside_or_without_steps_is_the_same_share(regions: list[RegionTotals]) -> None:
    """A tenth of the time in each case."""
    finding = find(made_run(regions=regions), "waiting-for-data")

    assert finding is not None
    assert finding.sentence == "10 % of the time went to waiting for the next batch."


@pytest.mark.parametrize(
    ("wait", "step", "sentence"),
    [
        (20, 20, "50 % of the time in the loop (20 % of the run) went to waiting for the next batch."),
        (4, 4, None),
    ],
)
def test_a_loop_that_is_a_part_of_the_run_says_so(wait: float, step: float, sentence: str | None) -> None:
    """And is no more serious than what it cost the run."""
    finding = find(made_run(regions=[region("data_wait", wait), region("step", step)]), "waiting-for-data")

    assert (finding and finding.sentence) == sentence
    assert finding is None or finding.severity == "warning"


def test_what_is_fetched_ahead_holds_nobody_up() -> None:
    """It is waited for in another thread, while steps take all the time."""
    regions = [
        region("data_wait", 90, outer=("epoch",)),
        region("step", 8, outer=("epoch",)),
        region("step", 98),
    ]

    assert find(made_run(regions=regions), "waiting-for-data") is None


def test_trials_that_follow_each_other_are_one_at_a_time() -> None:
    """Each process waited for half of its time, and all together for half of the run; beside each other, it is the same."""
    waits = [region("data_wait", 10)._replace(pid=pid) for pid in range(5)]
    steps = [region("step", 10)._replace(pid=pid) for pid in range(5)]
    after = [
        one._replace(first_seconds=20.0 * number, last_seconds=20.0 * number + 20)
        for number, one in enumerate(waits)
    ]
    beside = [one._replace(first_seconds=0.0, last_seconds=100.0, wall_seconds=50.0) for one in waits]

    for made in (after, beside):
        finding = find(made_run(regions=[*made, *steps]), "waiting-for-data")
        assert finding is not None
        assert finding.severity == "serious"


def test_a_wait_that_has_not_ended_is_not_judged() -> None:
    """Whoever waited may have failed, and the tracker has not been told."""
    waits = region("data_wait", 1 + 80)._replace(open_calls=1, open_wall_seconds=80)

    assert find(made_run(regions=[waits, region("step", 99)]), "waiting-for-data") is None


def test_nothing_marked_is_not_judged() -> None:
    """Nor is waiting that took no time."""
    empty = [region("data_wait", 0.0)._replace(calls=0)]

    assert why_not(made_run(), "waiting-for-data") == "no region data_wait is marked"
    assert why_not(made_run(regions=empty), "waiting-for-data") == "no region data_wait is marked"


# ---- 26. slow-start.


def test_a_long_time_before_the_first_use_of_a_gpu_is_a_slow_start() -> None:
    """By its memory, or its work where that is known to be the job's."""
    late: Any = lambda number: GB if number >= 62 else 0  # noqa: E731
    own: Any = lambda number: 5 if number >= 61 else 0  # noqa: E731

    by_memory = find(made_run(Device(job=late), n=600), "slow-start")
    by_work = find(made_run(Device(job=late, own=own), n=600), "slow-start")

    assert by_memory is not None
    assert by_memory.sentence == "62 s passed before a GPU was used."
    assert by_memory.severity == "note"
    assert by_work is not None
    assert by_work.sentence == "61 s passed before a GPU was used."


def test_a_start_that_nobody_saw_is_not_slow() -> None:
    """A device was not read from the first second to the second minute, and then the job was there."""
    run = made_run(Device(job=lambda number: GB if number >= 120 else 0), n=600)
    unread = [
        sample._replace(gpus=tuple(gpu._replace(job_bytes=None) for gpu in sample.gpus))
        for sample in run.samples[1:120]
    ]
    unseen = run._replace(samples=(*run.samples[:1], *unread, *run.samples[120:]))

    assert find(run, "slow-start") is not None
    assert find(unseen, "slow-start") is None


def test_twenty_minutes_are_a_warning() -> None:
    """Before the first step, here."""
    finding = find(made_run(n=1300, regions=[region("step", 90, 1201)]), "slow-start")

    assert finding is not None
    assert (finding.severity, finding.sentence) == (
        "warning",
        "20 min 01 s passed before the first step began.",
    )


@pytest.mark.parametrize(("n", "first"), [(600, 60), (1000, 100)])
def test_a_minute_or_a_tenth_is_a_normal_start(n: int, first: float) -> None:
    """Whichever is longer."""
    assert find(made_run(n=n, regions=[region("step", 90, first)]), "slow-start") is None


def test_a_start_of_nothing_is_not_judged() -> None:
    """No step is marked, and no GPU was used."""
    reason = "no step is marked, and no GPU was seen at work"

    assert why_not(made_run(), "slow-start") == reason
    assert why_not(made_run(Device(job=0)), "slow-start") == reason


# ---- 27. step-outliers.


def test_a_single_slow_call_is_found() -> None:
    """Where it was, and how long calls usually are."""
    totals, calls = repeat(("epoch", "step"), [0.3] * 20 + [5.0] + [0.3] * 80)
    _, once = repeat(("once",), [50.0])

    finding = find(made_run(regions=[totals, region("once", 50)], calls=[*calls, *once]), "step-outliers")

    assert finding is not None
    assert finding.sentence == "One call of epoch/step took 5 s (mean 0.347 s) at 6 s."
    assert finding.start_seconds == pytest.approx(6.0)
    assert finding.end_seconds == pytest.approx(11.0)


@pytest.mark.parametrize(
    ("lengths", "n"),
    [
        ([0.3] * 100 + [1.4], 40),
        ([5.0] + [0.3] * 100, 40),
        ([0.3] * 100 + [5.0], 600),
        ([0.3] * 28 + [5.0], 40),
    ],
)
def test_small_first_cheap_and_rare_outliers_are_fine(lengths: list[float], n: int) -> None:
    """Less than five times the mean; the first call; less than 1 % of the run; less than thirty calls."""
    totals, calls = repeat(("step",), lengths)

    assert find(made_run(regions=[totals], calls=calls, n=n), "step-outliers") is None


def test_calls_that_are_not_kept_are_not_judged() -> None:
    """Nor regions that were not called often."""
    totals, _ = repeat(("step",), [0.3] * 99 + [9.0])

    assert find(made_run(regions=[totals]), "step-outliers") is None
    assert why_not(made_run(), "step-outliers") == "no region was called 30 times"


# ---- 28. time-limit.

NOON = 1769860800.0  # 2026-01-31T12:00:00+00:00, when made runs begin


def limited(share: float, **fields: Any) -> Any:
    """A run of 1000 s that ends after that share of its job's time; the job began with it."""
    limit = 1000 / share
    given = {"time_limit_seconds": limit, "ends_at_seconds": NOON + limit}
    return made_run(**{"step": 10, "given": given, **fields})


@pytest.mark.parametrize(
    ("share", "severity", "advice"),
    [
        (0.59, "note", "If nothing follows in this job, --time=0:30:00"),
        (0.1, "warning", "If nothing follows in this job, --time=0:30:00"),
        (0.91, "warning", "The next run may be cut off"),
    ],
)
def test_the_time_that_was_needed_is_compared_with_the_limit(
    share: float, severity: str, advice: str
) -> None:
    """Too much, far too much, hardly enough."""
    finding = find(limited(share), "time-limit")

    assert finding is not None
    assert (finding.severity, finding.advice[: len(advice)]) == (severity, advice)


def test_a_limit_without_its_end_counts_from_the_start_of_the_run() -> None:
    """Some schedulers tell only how long a job may take."""
    finding = find(limited(0.94, given={"time_limit_seconds": 1000 / 0.94}), "time-limit")

    assert finding is not None
    assert "used (94 %)" in finding.sentence


@pytest.mark.parametrize("share", [0.601, 0.89])
def test_a_limit_with_some_reserve_is_fine(share: float) -> None:
    """Between the thresholds."""
    assert find(limited(share), "time-limit") is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"given": {}}, "no time limit is known"),
        ({"exit_code": 1}, "a run that failed does not show what is needed"),
        ({"step": 8.9}, "the run was shorter than 15 min 00 s"),
        ({"header": {"started_at": "yesterday"}}, "no time limit is known"),
    ],
)
def test_a_failed_or_short_run_says_nothing_about_time(fields: dict[str, Any], reason: str) -> None:
    """Nor does one whose start is not known."""
    assert why_not(limited(0.1, **fields), "time-limit") == reason


# ---- 32. too-coarse.


@pytest.mark.parametrize("name", ["step", "data_wait"])
def test_parts_of_a_loop_that_nobody_marked_need_no_advice(name: str) -> None:
    """They have no exact_peak."""
    totals, calls = repeat(("epoch", name), [0.1] * 900)

    assert find(made_run(regions=[totals], calls=calls), "too-coarse") is None


def test_calls_of_less_than_three_intervals_are_too_short() -> None:
    """Their peaks may be missed."""
    totals, calls = repeat(("epoch",), [2.9] * 10)

    finding = find(made_run(regions=[totals], calls=calls), "too-coarse")

    assert finding is not None
    assert (
        finding.sentence == "A call of epoch takes 2.9 s, an interval 1 s: peaks of such calls may be missed."
    )


@pytest.mark.parametrize(
    ("length", "sleep", "advice"),
    [
        (2.9, 1.0, "Sample more often (--st 0.9), or "),
        (0.2, 0.1, "Sample more often (--st 0.06), or "),
        (0.31, 0.1, "Keep every reading (--full-resolution), or "),
        (0.02, 0.1, "They are too short to be sampled: "),
    ],
)
def test_advice_is_to_sample_more_often_than_the_run_did(length: float, sleep: float, advice: str) -> None:
    """Unless that would not help."""
    totals, calls = repeat(("epoch",), [length] * int(90 / length))

    finding = find(made_run(regions=[totals], calls=calls, header={"sleep_seconds": sleep}), "too-coarse")

    assert finding is not None
    assert finding.advice == f"{advice}mark the region with exact_peak=True."


@pytest.mark.parametrize(
    ("lengths", "basis"),
    [([3.0] * 10, "sampled"), ([2.9] * 10, "exact"), ([2.9] * 3, "sampled"), ([0.9], "sampled")],
)
def test_long_exact_or_rare_calls_are_fine(lengths: list[float], basis: str) -> None:
    """Just beyond the thresholds."""
    totals, calls = repeat(("epoch",), lengths)

    run = made_run(regions=[totals._replace(peak_ram_basis=basis)], calls=calls)

    assert find(run, "too-coarse") is None


def test_without_regions_nothing_is_too_coarse() -> None:
    """Nor without samples."""
    assert why_not(made_run(), "too-coarse") == "no region is marked"
    assert why_not(made_run()._replace(samples=()), "too-coarse") == "there are no samples"


# ---- 34. storage-stalls.


def reading(cores: float = 0.7, waited: float = 50, size: float = 0.1 * GB, **waits: float) -> Any:
    """A hundred seconds of two processes, of which so many went to waiting for storage."""
    return made_run(
        *([Device(busy=waits.pop("busy"))] if "busy" in waits else []),
        cores=cores,
        counters=TreeCounters(int(size), 0, 0),
        stalls=Stalls(0.0, waits.get("memory", 0.0), waited, 0.0, waits.get("full", waited), 0.0),
    )


def test_a_job_that_waits_for_storage_is_stalled() -> None:
    """With what it read; surer if nothing else could run in that time."""
    finding = find(reading(), "storage-stalls")

    assert finding is not None
    assert finding.sentence == (
        "Something waited for storage for 50 % of the time, while 0.7 cores worked; the job read 100 MB and wrote 0 B."
    )
    assert (finding.severity, finding.confidence) == ("warning", "likely")
    unsure = find(reading(full=49), "storage-stalls")
    assert unsure is not None
    assert unsure.confidence == "possible"


@pytest.mark.parametrize("run", [reading(waited=49), reading(cores=0.81)])
def test_a_job_that_waits_less_or_computes_more_is_not_stalled(run: Any) -> None:
    """Less than half of the time; 40 % of the cores that two processes can use."""
    assert find(run, "storage-stalls") is None
    assert why_not(run, "storage-stalls") is None


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (reading(size=0.099 * GB), "the job itself hardly read or wrote"),
        (reading(busy=81), "a GPU is busy all the same"),
        (reading(memory=20), "it waited for memory, too, which thrashing explains"),
        (made_run(cores=0.7), "waiting for storage is not measured"),
        (made_run(n=20), "19 intervals after the start; 30 are needed"),
    ],
)
def test_storage_may_be_innocent(run: Any, reason: str) -> None:
    """Waiting is that of the whole machine."""
    assert why_not(run, "storage-stalls") == reason


def test_cores_are_not_the_only_thing_to_say_about_a_stalled_job() -> None:
    """Fewer of them would do, but do not help."""
    run = made_run(
        n=400,
        cores=0.2,
        counters=TreeCounters(60 * GB, 0, 0),
        stalls=Stalls(0.0, 0.0, 380.0, 0.0, 360.0, 0.0),
    )

    rules = [finding.rule for finding in judge(run).findings]
    assert {"storage-stalls", "cores-oversized"} <= set(rules)
    assert rules.index("storage-stalls") < rules.index("cores-oversized")
