"""Columns over time in bins of equal length: for charts, sparklines and findings. Pure.

What is not known stays unknown: a bin in which nothing was measured has nan, never 0.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import compress, pairwise
from math import isnan, nan
from operator import mul

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.columns import Column


class Bin(NamedTuple):
    """Which intervals are in a bin, and for how many seconds each; an instant for none."""

    rows: slice
    weights: Column


class Binned(NamedTuple):
    """One figure, with one value per bin."""

    low: Column
    mean: Column
    """Weighted by time."""
    high: Column
    high_seconds: Column
    """The end of the interval with this value, the first of equal ones. It may be in a later bin."""
    known_seconds: Column
    """For how long the figure is known."""


def cut_time(first_seconds: float, last_seconds: float, n_bins: int) -> list[float]:
    """The edges of bins of equal length."""
    length = last_seconds - first_seconds
    return [*(first_seconds + length * number / n_bins for number in range(n_bins)), last_seconds]


def make_bins(edges: Sequence[float], start: Sequence[float], end: Sequence[float]) -> tuple[Bin, ...]:
    """The same for all figures that are known from `start` to `end`: intervals in order that do not overlap.

    An interval is in every bin that it shares time with. An instant at an edge is in the bin before it.
    """
    stops = [max(bisect_left(start, last), bisect_right(end, last)) for last in edges[1:]]
    begins = [bisect_right(end, first) for first in edges[:-1]]
    if begins:
        begins[0] = min(begins[0], bisect_left(start, edges[0]))  # there is no bin before the first edge
    return tuple(
        Bin(slice(begin, stop), _weigh(start[begin:stop], end[begin:stop], first, last))
        for begin, stop, (first, last) in zip(begins, stops, pairwise(edges), strict=True)
    )


def _weigh(start: Sequence[float], end: Sequence[float], first: float, last: float) -> Column:
    """How much of each interval lies between two moments: all of it, but for the outermost."""
    return array(
        "d", (min(after, last) - max(before, first) for before, after in zip(start, end, strict=True))
    )


def bin_column(
    bins: Sequence[Bin],
    end: Sequence[float],
    mean: Sequence[float],
    low: Sequence[float] | None = None,
    high: Sequence[float] | None = None,
) -> Binned:
    """A figure of intervals in bins; without `low` and `high` it had the same value all the time."""
    columns = (mean, low or mean, high or mean, end)
    figures = [_summarize(one.weights, *(column[one.rows] for column in columns)) for one in bins]
    return Binned(*(array("d", values) for values in zip(*figures, strict=True))) if figures else _NOTHING


_NOTHING = Binned(*(array("d") for _ in Binned._fields))


def _summarize(
    weights: Sequence[float],
    mean: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    end: Sequence[float],
) -> tuple[float, ...]:
    """Smallest, mean and largest of the known values, when that was, and for how long they are known."""
    if any(map(isnan, mean)):
        is_known = [not isnan(value) for value in mean]
        weights, mean, low, high, end = (
            list(compress(column, is_known)) for column in (weights, mean, low, high, end)
        )
    if not mean:
        return nan, nan, nan, nan, 0.0
    seconds, least, most = sum(weights), min(low), max(high)
    average = sum(map(mul, mean, weights)) / seconds if seconds else sum(mean) / len(mean)
    # Rounding must not put the mean outside.
    return least, min(max(average, least), most), most, end[high.index(most)], seconds
