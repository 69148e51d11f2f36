"""What will become of a job if it goes on like this."""

from __future__ import annotations

import pytest

from builders import MB
from gpu_tracker.analysis.forecast import (
    Forecast,
    Point,
    describe_future,
    find_rate,
    foresee_done,
    foresee_full,
)
from gpu_tracker.core.columns import SampleColumns
from gpu_tracker.recording.figures import explain, list_figures, transpose
from recorded import interval

HOUR = 3600.0


def hold(*sizes: int, seconds: float = 1.0) -> SampleColumns:
    """A job that held so many MB in each interval."""
    samples = [interval(seconds * number, size) for number, size in enumerate(sizes)]
    return explain(transpose(map(list_figures, samples)))


def test_memory_that_grows_will_be_full() -> None:
    """A megabyte a second, and 940 are left."""
    left = foresee_full(hold(*range(1, 61)), 1000 * MB)

    assert left == pytest.approx(940, rel=0.05)


@pytest.mark.parametrize(
    "columns",
    [
        hold(*range(1, 21)),
        hold(*[50] * 60),
        hold(*range(61, 1, -1)),
        hold(*[10, 60] * 30),
        hold(*range(1, 7), seconds=10.0),
        hold(10, 20)._replace(start_seconds=hold(10).start_seconds[:0], end_seconds=hold(10).end_seconds[:0]),
    ],
    ids=["short", "steady", "falling", "swinging", "few", "nothing"],
)
def test_of_other_memory_nothing_is_foreseen(columns: SampleColumns) -> None:
    """Also of too short a time, and of too few intervals."""
    assert foresee_full(columns, 1000 * MB) is None


def test_a_limit_that_is_reached_or_far_away_is_not_foreseen() -> None:
    """There is nothing to be told before it happens."""
    growing = hold(*range(1, 61))

    assert foresee_full(growing, 50 * MB) is None
    assert foresee_full(growing, 1e9 * MB) is None


def test_the_rate_of_steps_is_that_of_the_last_ones() -> None:
    """At first a job compiles."""
    slow = [Point(float(at), at / 100) for at in range(0, 1000, 10)]
    fast = [Point(1000.0 + at, 10 + 2.0 * at) for at in range(100)]

    assert find_rate([*slow, *fast]) == pytest.approx(2.0)
    assert foresee_done([*slow, *fast], 408.0) == pytest.approx(100.0)
    assert foresee_done([*slow, *fast], 10.0) == 0.0


@pytest.mark.parametrize(
    "points",
    [
        [],
        [Point(1.0, 5.0)],
        [Point(1.0, 5.0), Point(1.0, 6.0)],
        [Point(1.0, 5.0), Point(2.0, 5.0)],
        [Point(1.0, 5.0), Point(2.0, 1.0)],
    ],
)
def test_what_does_not_advance_is_never_done(points: list[Point]) -> None:
    """Nor is a single step a rate."""
    assert find_rate(points) is None
    assert foresee_done(points, 10.0) is None


def test_without_a_number_of_steps_there_is_no_end() -> None:
    """A rate alone does not tell."""
    assert foresee_done([Point(0.0, 0.0), Point(1.0, 1.0)], None) is None


@pytest.mark.parametrize(
    ("full", "done", "limit", "expected"),
    [
        (None, None, None, ()),
        (3 * HOUR, None, None, (Forecast("memory limit in 3 h 00 min at this growth", is_bad=True),)),
        (
            3 * HOUR,
            2 * HOUR,
            None,
            (
                Forecast("memory limit in 3 h 00 min at this growth"),
                Forecast("done in 2 h 00 min at this step rate"),
            ),
        ),
        (None, None, 90.0, (Forecast("time limit in 90 s"),)),
        (
            None,
            5 * HOUR,
            3 * HOUR,
            (
                Forecast("done in 5 h 00 min at this step rate"),
                Forecast("time limit in 3 h 00 min, 2 h 00 min before it is done", is_bad=True),
            ),
        ),
        (None, None, -60.0, (Forecast("time limit passed 60 s ago", is_bad=True),)),
    ],
)
def test_the_future_in_sentences(
    full: float | None, done: float | None, limit: float | None, expected: tuple[Forecast, ...]
) -> None:
    """Memory that lasts until the end is not bad, nor is time."""
    assert describe_future(full, done, limit) == expected
