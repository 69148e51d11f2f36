"""Bins of equal time keep what matters of the intervals in them."""

from __future__ import annotations

from itertools import pairwise
from math import isnan, nan

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.analysis.series import bin_column, cut_time, make_bins

VALUES = st.floats(-1e6, 1e6) | st.just(nan)
# Lengths of an interval and of the gap before it, a mean, and how far the largest and smallest value are from it.
LENGTHS = st.just(0.0) | st.floats(1e-3, 1e3)
INTERVALS = st.lists(st.tuples(LENGTHS, LENGTHS, VALUES, st.floats(0, 1e6)), min_size=1, max_size=30)


def known(values: list[float]) -> list[float]:
    """Those that are not nan."""
    return [value for value in values if not isnan(value)]


@given(INTERVALS, st.integers(1, 40))
def test_bins_conserve_least_most_and_mean(
    intervals: list[tuple[float, float, float, float]], n_bins: int
) -> None:
    """Over all bins as over all intervals, with the moment of the maximum."""
    start, end, now = [], [], 0.0
    for gap, length, _, _ in intervals:
        start.append(now + gap)
        now += gap + length
        end.append(max(now, start[-1]))
    mean = [value for _, _, value, _ in intervals]
    low, high = [value - by for _, _, value, by in intervals], [value + by for _, _, value, by in intervals]

    binned = bin_column(make_bins(cut_time(0.0, now, n_bins), start, end), end, mean, low, high)

    assert len(binned.mean) == n_bins
    assert min(known([*binned.low]), default=None) == min(known(low), default=None)
    assert max(known([*binned.high]), default=None) == max(known(high), default=None)
    lengths = [(after - before, value) for before, after, value in zip(start, end, mean, strict=True)]
    seconds = sum(length for length, value in lengths if not isnan(value))
    assert sum(binned.known_seconds) == pytest.approx(seconds, abs=1e-6)
    weighted = zip(binned.mean, binned.known_seconds, strict=True)
    assert sum(value * length for value, length in weighted if length) == pytest.approx(
        sum(value * length for length, value in lengths if not isnan(value)), rel=1e-9, abs=1.0
    )
    for value, at in zip(binned.high, binned.high_seconds, strict=True):
        assert isnan(value) or value in [one for one, then in zip(high, end, strict=True) if then == at]


@given(INTERVALS, st.integers(1, 40))
def test_a_mean_lies_between_the_least_and_the_most(
    intervals: list[tuple[float, float, float, float]], n_bins: int
) -> None:
    """Also after rounding."""
    end = [float(number) for number in range(1, len(intervals) + 1)]
    mean = [value for _, _, value, _ in intervals]

    binned = bin_column(make_bins(cut_time(0.0, end[-1], n_bins), [0.0, *end[:-1]], end), end, mean)

    for low, value, high in zip(binned.low, binned.mean, binned.high, strict=True):
        assert isnan(value) or low <= value <= high


def test_bins_are_of_equal_time_not_of_equal_count() -> None:
    """Many short intervals weigh as much as one of the same length."""
    end = [0.25, 0.5, 0.75, 1.0, 2.0]
    bins = make_bins(cut_time(0.0, 2.0, 2), [0.0, *end[:-1]], end)

    assert [*bin_column(bins, end, [1.0, 2.0, 3.0, 4.0, 9.0]).mean] == [2.5, 9.0]


def test_an_interval_counts_in_every_bin_that_it_shares_time_with() -> None:
    """And weighs what it shares."""
    bins = make_bins(cut_time(0.0, 4.0, 4), [0.0, 2.5], [2.5, 4.0])
    binned = bin_column(bins, [2.5, 4.0], [1.0, 3.0])

    assert [*binned.mean] == [1.0, 1.0, 2.0, 3.0]
    assert [*binned.high] == [1.0, 1.0, 3.0, 3.0]
    assert [*binned.high_seconds] == [2.5, 2.5, 4.0, 4.0]


def test_a_gap_stays_a_gap() -> None:
    """Whether nothing was measured or the value was unknown: neither is 0."""
    bins = make_bins(cut_time(0.0, 4.0, 4), [0.0, 2.0, 3.0], [1.0, 3.0, 4.0])
    binned = bin_column(bins, [1.0, 3.0, 4.0], [5.0, nan, 7.0])

    assert [isnan(value) for value in binned.mean] == [False, True, True, False]
    assert [isnan(value) for value in binned.high] == [False, True, True, False]
    assert [*binned.known_seconds] == [1.0, 0.0, 0.0, 1.0]


def test_an_instant_counts_once() -> None:
    """At an edge in the bin before it, at the start in the first."""
    moments = [0.0, 1.0, 2.0]
    bins = make_bins(cut_time(0.0, 2.0, 2), moments, moments)
    binned = bin_column(bins, moments, [1.0, 2.0, 3.0])

    assert [one.rows for one in bins] == [slice(0, 2), slice(2, 3)]
    assert [*binned.mean] == [1.5, 3.0]


def test_a_part_of_the_time_has_only_what_is_in_it() -> None:
    """An interval that ends where the part begins is not in it."""
    end = [1.0, 2.0, 3.0]
    bins = make_bins(cut_time(1.0, 2.0, 1), [0.0, 1.0, 2.0], end)

    assert [*bin_column(bins, end, [9.0, 1.0, 9.0]).high] == [1.0]


def test_edges_are_equally_far_apart_and_end_where_they_should() -> None:
    """Whatever rounding does."""
    edges = cut_time(0.1, 0.7, 7)

    assert (edges[0], edges[-1], len(edges)) == (0.1, 0.7, 8)
    assert all(last - first == pytest.approx(0.6 / 7) for first, last in pairwise(edges))


def test_nothing_in_no_bins() -> None:
    """Nothing is not an error."""
    assert bin_column(make_bins([], [], []), [], []).mean.tolist() == []
    assert [isnan(value) for value in bin_column(make_bins([0.0, 1.0], [], []), [], []).mean] == [True]
