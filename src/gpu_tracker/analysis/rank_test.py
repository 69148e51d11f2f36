"""How likely it is that two groups of repeats differ by chance alone: a rank test. Pure.

It asks only which run was larger, so it needs no bell curve and one stray run does not decide: run times have long tails,
and peaks of memory take a few values only. (Mann and Whitney's test, exact for few runs.)
"""

from __future__ import annotations

import math
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Counting all ways to deal the ranks is exact, and takes about so many steps; beyond, their sums follow a bell curve.
_MOST_STEPS = 250_000


def chance_of(first: Sequence[float], second: Sequence[float]) -> float:
    """The probability that runs of one kind would be dealt into two such groups at least as far apart."""
    # The sum of the ranks of one group tells that of the other: the smaller one is less to count.
    smaller, larger = sorted((first, second), key=len)
    doubled = _double_ranks([*smaller, *larger])
    runs, mine = len(smaller), sum(doubled[: len(smaller)])
    if (runs * len(doubled)) ** 2 <= _MOST_STEPS:
        return _count_chance(tuple(sorted(doubled)), runs, mine)
    return _curve_chance(doubled, runs, mine)


def median(values: Sequence[float]) -> float:
    """The middle one, or the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def least_chance(first_runs: int, second_runs: int) -> float:
    """What so many runs can show at best: all of one group above all of the other."""
    return min(1.0, 2 / math.comb(first_runs + second_runs, first_runs))


def runs_needed(chance: float) -> int:
    """How many runs each of two groups needs to show anything with less than that chance."""
    runs = 1
    while least_chance(runs, runs) > chance:
        runs += 1
    return runs


def _double_ranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of each value; equal ones share the mean of their places, and twice that is a whole number."""
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(values), start=1):
        places.setdefault(value, []).append(place)
    return [places[value][0] + places[value][-1] for value in values]


def _count_chance(doubled: tuple[int, ...], runs: int, mine: int) -> float:
    """Of all ways to choose so many of the ranks, the share whose sum is as far from the middle."""
    middle = runs * (len(doubled) + 1)
    far = abs(mine - middle)
    ways = _count_ways(doubled, runs)
    as_far = sum(count for total, count in ways.items() if abs(total - middle) >= far)
    return as_far / math.comb(len(doubled), runs)


@lru_cache(maxsize=1024)
def _count_ways(doubled: tuple[int, ...], runs: int) -> dict[int, int]:
    """In how many ways so many of the ranks have each sum."""
    ways: list[dict[int, int]] = [{0: 1}, *({} for _ in range(runs))]
    for rank in doubled:
        for chosen in range(runs, 0, -1):
            here = ways[chosen]
            for total, count in ways[chosen - 1].items():
                here[total + rank] = here.get(total + rank, 0) + count
    return ways[runs]


def _curve_chance(doubled: Sequence[int], runs: int, mine: int) -> float:
    everybody = len(doubled)
    others = everybody - runs
    # Of the doubled ranks as they are, so that ties are accounted for.
    mean = everybody + 1
    variance = sum((rank - mean) ** 2 for rank in doubled) / (everybody - 1) * runs * others / everybody
    if variance == 0:
        return 1.0
    step = math.gcd(*(rank - doubled[0] for rank in doubled))  # from one possible sum to the next
    distance = max(0.0, abs(mine - runs * mean) - step / 2)
    return math.erfc(distance / math.sqrt(2 * variance))
