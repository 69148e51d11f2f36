"""How likely noise alone makes two groups of repeats differ this much, over all figures of a comparison. Pure.

If nothing changed, any run could have been in either group. So every other way to divide the runs is tried, and the p
value of a figure is the share of them in which *any* figure differs as much as this one does (Westfall and Young's
step-down maximum). It needs no distribution, takes account of figures that vary together, and however many figures
there are, one of them is called different by chance in at most a share p of comparisons.
"""

from __future__ import annotations

import math
from itertools import accumulate, combinations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LEAST_REPEATS = 3
# All divisions are tried while they are few; of many, a sample that depends on nothing but their number.
_MOST_DIVISIONS = 2000
_LEAST_DIVISIONS = 400
_MOST_STEPS = 5_000_000
_ROUNDING = 1e-9


def least_chance(first: int, second: int) -> float:
    """The smallest possible p value of groups of so many runs: all of one above all of the other."""
    return min(1.0, 2 / math.comb(first + second, first))


def can_show(first: int, second: int, chance: float) -> bool:
    """Whether groups of so many runs can reach this p value. Two runs are no sample of noise, whatever the others are."""
    return min(first, second) >= LEAST_REPEATS and least_chance(first, second) <= chance


def chances_of(rows: Sequence[Sequence[float | None]], first: int) -> list[float]:
    """The p value of each row. A row has a value for every run, those of the first group first; None is not known."""
    scaled = [_scale(row, first) for row in rows]
    differences = [abs(sum(row[:first])) for row in scaled]
    order = sorted(range(len(rows)), key=lambda index: differences[index])
    runs = list(zip(*(scaled[index] for index in order), strict=True))
    runs = [*sorted(runs[:first]), *sorted(runs[first:])]  # the order of repeats does not matter
    observed = [differences[index] - _ROUNDING for index in order]
    counts, divisions = [0] * len(order), 0
    for chosen in _divide(len(runs), first, len(rows)):
        sums = map(sum, zip(*(runs[run] for run in chosen), strict=True))
        largest = accumulate(map(abs, sums), max)
        counts = [count + (most >= mine) for count, most, mine in zip(counts, largest, observed, strict=True)]
        divisions += 1
    # A figure that differs less is never more certain than one that differs more.
    chances = accumulate((count / divisions for count in reversed(counts)), max)
    found = dict(zip(reversed(order), chances, strict=True))
    return [found[index] for index in range(len(rows))]


def median(values: Sequence[float]) -> float:
    """The middle one, or the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    # Halved before they are added: the largest floats have no sum.
    return ordered[half] if len(ordered) % 2 else ordered[half - 1] / 2 + ordered[half] / 2


def runs_needed(chance: float) -> int:
    """How many runs each of two groups needs to reach that p value."""
    runs = LEAST_REPEATS
    while not can_show(runs, runs, chance):
        runs += 1
    return runs


def _scale(row: Sequence[float | None], first: int) -> list[float]:
    """Such that the sum over one group is the correlation of value and group. What is not known says nothing."""
    known = [value for value in row if value is not None]
    # Divided before they are summed: the largest floats have no sum.
    mean = math.fsum(value / len(known) for value in known)
    away = [0.0 if value is None else value - mean for value in row]
    spread = math.hypot(*away) * math.sqrt(first * (len(row) - first) / len(row))
    return [value / spread if 0 < spread < math.inf else 0.0 for value in away]


def _divide(runs: int, first: int, rows: int) -> Iterator[tuple[int, ...]]:
    """Ways to choose the runs of the first group; the actual one comes first."""
    affordable = max(_LEAST_DIVISIONS, min(_MOST_DIVISIONS, _MOST_STEPS // max(1, rows * first)))
    if math.comb(runs, first) <= affordable:
        yield from combinations(range(runs), first)
        return
    from random import Random

    dice = Random(runs)  # noqa: S311
    yield tuple(range(first))
    for _ in range(affordable - 1):
        yield tuple(dice.sample(range(runs), first))
