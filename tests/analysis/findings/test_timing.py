"""Rules about time: each fires, stays silent just below its threshold, and knows its guard."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.core.model import RegionTotals
from made_runs import GB, Device, find, made_run, repeat, why_not


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


def test_calls_of_less_than_three_intervals_are_too_short() -> None:
    """Their peaks may be missed."""
    totals, calls = repeat(("epoch",), [2.9] * 10)

    finding = find(made_run(regions=[totals], calls=calls), "too-coarse")

    assert finding is not None
    assert (
        finding.sentence == "A call of epoch takes 2.9 s, an interval 1 s: peaks of such calls may be missed."
    )


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
