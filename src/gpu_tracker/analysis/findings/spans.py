"""A figure over the intervals in which it is known. Intervals differ in length, so everything is weighted by time. Pure."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate, combinations, compress
from math import isfinite
from operator import lt, mul, sub
from statistics import median

from ...core.values import Generic, NamedTuple, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...core.columns import Column


class Spans(NamedTuple, Generic[Value]):
    """Intervals in the order of time, and what the figure was in each."""

    start: Sequence[float] = ()
    end: Sequence[float] = ()
    values: Sequence[Value] = ()


def find_known(start: Column, end: Column, values: Column) -> Spans[float]:
    """The intervals in which a figure is known, and which took some time."""
    if all(map(isfinite, values)) and all(map(lt, start, end)):
        return Spans(start, end, values)
    rows = [row for row in zip(start, end, values, strict=True) if isfinite(row[2]) and row[1] > row[0]]
    return _from_rows(rows)


def join(one: Spans[float], other: Spans[float]) -> Spans[tuple[float, float]]:
    """Two figures of the same intervals, where both are known."""
    if one.end == other.end:
        return Spans(one.start, one.end, list(zip(one.values, other.values, strict=True)))
    known = dict(zip(other.end, other.values, strict=True))
    rows = [(first, last, (value, known[last])) for first, last, value in _rows(one) if last in known]
    return _from_rows(rows)


def skip_until(spans: Spans[float], seconds: float) -> Spans[float]:
    """The intervals that began then or later."""
    first = bisect_left(spans.start, seconds)
    return Spans(spans.start[first:], spans.end[first:], spans.values[first:])


def count_seconds(spans: Spans[Value], holds: Callable[[Value], bool] | None = None) -> float:
    """For how long something held, or is known."""
    lengths: Iterator[float] = map(sub, spans.end, spans.start)
    return sum(lengths if holds is None else compress(lengths, map(holds, spans.values)))


def find_share(spans: Spans[Value], holds: Callable[[Value], bool]) -> float:
    """For what share of the known time something held."""
    return count_seconds(spans, holds) / count_seconds(spans)


def find_mean(spans: Spans[float]) -> float:
    """Over the known time."""
    weighed: Iterator[float] = map(mul, spans.values, map(sub, spans.end, spans.start))
    return sum(weighed) / count_seconds(spans)


def find_quantile(spans: Spans[float], share: float) -> float:
    """The figure was at most this for that share of the known time."""
    order = sorted(range(len(spans.values)), key=spans.values.__getitem__)
    passed = list(accumulate(spans.end[row] - spans.start[row] for row in order))
    return spans.values[order[min(bisect_left(passed, share * passed[-1]), len(order) - 1)]]


def find_longest(spans: Spans[Value], holds: Callable[[Value], bool]) -> tuple[float, float] | None:
    """The longest stretch without gaps in which something held."""
    stretches: list[tuple[float, float]] = []
    before = None
    for first, last, value in _rows(spans):
        if holds(value):
            begin = stretches.pop()[0] if before == first else first
            stretches.append((begin, last))
            before = last
        else:
            before = None
    return max(stretches, key=lambda stretch: stretch[1] - stretch[0], default=None)


def find_slope(values: Sequence[float], places: Sequence[float] | None = None) -> float:
    """Growth from one place to the next, which a few wild values do not change (Theil and Sen)."""
    rows = zip(range(len(values)) if places is None else places, values, strict=True)
    return median(
        (after - before) / (last - first) for (first, before), (last, after) in combinations(rows, 2)
    )


def _rows(spans: Spans[Value]) -> Iterator[tuple[float, float, Value]]:
    return zip(spans.start, spans.end, spans.values, strict=True)


def _from_rows(rows: Sequence[tuple[float, float, Value]]) -> Spans[Value]:
    return Spans(*zip(*rows, strict=True)) if rows else Spans()
