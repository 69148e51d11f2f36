"""How likely two groups of repeats differ by chance alone: the Mann-Whitney rank test, exact for few runs. Pure.

It uses only the order of the runs, so it needs no normal distribution and one outlier does not decide: run times have
long tails, and memory peaks take only a few values.
"""

from __future__ import annotations

import math
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Counting all assignments of ranks is exact; beyond this many steps, their sums are close to a normal distribution.
_MOST_STEPS = 250_000


def chance_of(first: Sequence[float], second: Sequence[float]) -> float:
    """The p value: how likely runs of one kind fall into two groups at least this far apart."""
    # One group's rank sum determines the other's; the smaller group is quicker to count.
    smaller, larger = sorted((first, second), key=len)
    doubled = _double_ranks([*smaller, *larger])
    runs, mine = len(smaller), sum(doubled[: len(smaller)])
    if (runs * len(doubled)) ** 2 <= _MOST_STEPS:
        return _count_chance(tuple(sorted(doubled)), runs, mine)
    return _approximate_chance(doubled, runs, mine)


def median(values: Sequence[float]) -> float:
    """The middle one, or the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def least_chance(first_runs: int, second_runs: int) -> float:
    """The smallest possible p value: all of one group above all of the other."""
    return min(1.0, 2 / math.comb(first_runs + second_runs, first_runs))


def runs_needed(chance: float) -> int:
    """How many runs each of two groups needs to reach that p value."""
    runs = 1
    while least_chance(runs, runs) > chance:
        runs += 1
    return runs


def _double_ranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of each value: equal values share their mean rank, which may be a half."""
    ranks: dict[float, list[int]] = {}
    for rank, value in enumerate(sorted(values), start=1):
        ranks.setdefault(value, []).append(rank)
    return [ranks[value][0] + ranks[value][-1] for value in values]


def _count_chance(doubled: tuple[int, ...], runs: int, mine: int) -> float:
    """The share of all choices of that many ranks whose sum is at least as far from the middle."""
    middle = runs * (len(doubled) + 1)
    far = abs(mine - middle)
    ways = _count_ways(doubled, runs)
    as_far = sum(count for total, count in ways.items() if abs(total - middle) >= far)
    return as_far / math.comb(len(doubled), runs)


@lru_cache(maxsize=1024)
def _count_ways(doubled: tuple[int, ...], runs: int) -> dict[int, int]:
    """Sum → number of ways to choose that many ranks with this sum."""
    ways: list[dict[int, int]] = [{0: 1}, *({} for _ in range(runs))]
    for rank in doubled:
        for chosen in range(runs, 0, -1):
            here = ways[chosen]
            for total, count in ways[chosen - 1].items():
                here[total + rank] = here.get(total + rank, 0) + count
    return ways[runs]


def _approximate_chance(doubled: Sequence[int], runs: int, mine: int) -> float:
    total = len(doubled)
    others = total - runs
    # From the actual ranks, so that ties are accounted for.
    mean = total + 1
    variance = sum((rank - mean) ** 2 for rank in doubled) / (total - 1) * runs * others / total
    if variance == 0:
        return 1.0
    step = math.gcd(
        *(rank - doubled[0] for rank in doubled)
    )  # between possible sums: the continuity correction
    distance = max(0.0, abs(mine - runs * mean) - step / 2)
    return math.erfc(distance / math.sqrt(2 * variance))
