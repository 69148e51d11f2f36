"""Figures over intervals of different lengths."""

from __future__ import annotations

from array import array
from math import inf, nan

from hypothesis import given, strategies as st

from gpu_tracker.analysis.findings.spans import (
    Spans,
    count_seconds,
    find_known,
    find_longest,
    find_mean,
    find_quantile,
    find_share,
    find_slope,
    join,
    skip_until,
)

LOAD = Spans((0.0, 1.0, 2.0, 6.0), (1.0, 2.0, 6.0, 8.0), (10.0, 20.0, 30.0, 20.0))


def is_high(value: float) -> bool:
    """Above ten."""
    return value > 10


def test_what_is_not_known_or_took_no_time_is_left_out() -> None:
    """Nan, infinity and instants."""
    columns = [array("d", column) for column in ([0, 1, 2, 3, 4], [1, 2, 3, 3, 5], [5, nan, inf, 5, 6])]

    assert find_known(*columns) == Spans((0.0, 4.0), (1.0, 5.0), (5.0, 6.0))
    assert not find_known(array("d"), array("d"), array("d")).values


def test_time_is_the_weight() -> None:
    """A value that lasts four times as long counts four times."""
    assert count_seconds(LOAD) == 8
    assert count_seconds(LOAD, is_high) == 7
    assert find_share(LOAD, is_high) == 7 / 8
    assert find_mean(LOAD) == (10 + 20 + 120 + 40) / 8
    assert [find_quantile(LOAD, share) for share in (0, 0.125, 0.13, 0.5, 0.51, 1)] == [
        10,
        10,
        20,
        20,
        30,
        30,
    ]


def test_the_longest_stretch_has_no_gap() -> None:
    """Neither one where it did not hold, nor one where nothing is known."""
    gapped = Spans((0.0, 1.0, 5.0, 6.0), (1.0, 2.0, 6.0, 8.0), (20.0, 20.0, 20.0, 20.0))

    assert find_longest(LOAD, is_high) == (1.0, 8.0)
    assert find_longest(LOAD, lambda value: value == 20) == (6.0, 8.0)
    assert find_longest(gapped, is_high) == (5.0, 8.0)
    assert find_longest(LOAD, lambda value: value > 99) is None


def test_two_figures_are_joined_where_both_are_known() -> None:
    """By the interval."""
    other = Spans((1.0, 6.0), (2.0, 8.0), (7.0, 8.0))

    assert join(LOAD, other) == Spans((1.0, 6.0), (2.0, 8.0), ((20.0, 7.0), (20.0, 8.0)))
    assert skip_until(LOAD, 1.5) == Spans((2.0, 6.0), (6.0, 8.0), (30.0, 20.0))


def test_a_wild_value_does_not_change_the_slope() -> None:
    """Of five of which four lie on a line."""
    assert find_slope([1, 2, 99, 4, 5]) == 1


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=30), st.floats(0, 1))
def test_a_quantile_is_one_of_the_values(values: list[float], share: float) -> None:
    """And at least that share of the time is not above it."""
    spans = Spans(tuple(map(float, range(len(values)))), tuple(map(float, range(1, len(values) + 1))), values)

    quantile = find_quantile(spans, share)

    assert quantile in values
    assert find_share(spans, lambda value: value <= quantile) >= share - 1e-9
