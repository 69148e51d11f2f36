"""The permutation test, against counting by hand and against noise."""

from __future__ import annotations

import itertools
import random
import statistics

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.analysis.permutation_test import can_show, chances_of, least_chance, median, runs_needed

FEW = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=4)


def count_by_hand(first: list[float], second: list[float]) -> float:
    """Divide the values in every way, and count how often the means are as far apart."""
    values = [*first, *second]

    def distance(chosen: tuple[int, ...]) -> float:
        others = [value for index, value in enumerate(values) if index not in chosen]
        return abs(statistics.mean(values[index] for index in chosen) - statistics.mean(others))

    ways = list(itertools.combinations(range(len(values)), len(first)))
    return sum(distance(way) >= distance(ways[0]) - 1e-9 for way in ways) / len(ways)


@given(FEW, FEW)
def test_a_single_figure_is_counted_exactly(first: list[float], second: list[float]) -> None:
    """With equal values or without."""
    assert chances_of([[*first, *second]], len(first)) == [pytest.approx(count_by_hand(first, second))]


def test_a_figure_among_others_is_never_more_certain_than_alone() -> None:
    """And keeps its place among them."""
    dice = random.Random(1)
    rows = [[dice.gauss(10, 1) for _ in range(10)] for _ in range(20)]
    rows[7] = [10.0, 10.1, 10.2, 10.3, 10.4, 20.0, 20.1, 20.2, 20.3, 20.4]
    together = chances_of(rows, 5)

    assert together[7] == min(together) == pytest.approx(2 / 252)
    assert all(chance >= chances_of([row], 5)[0] for chance, row in zip(together, rows, strict=True))


def test_equal_unknown_and_enormous_values_show_no_difference() -> None:
    """They cost the others nothing."""
    row: list[float | None] = [1.0, 1.1, 1.2, 1.3, 2.0, 2.1, 2.2, 2.3]
    rows: list[list[float | None]] = [
        [5.0] * 8,
        [None] * 8,
        [1.7e308, -1.7e308] * 4,
        [None, 3.0, *[None] * 5, 4.0],
        row,
    ]

    # Two known values are in different groups in four of seven divisions.
    assert chances_of(rows, 4) == pytest.approx([1.0, 1.0, 1.0, 4 / 7, chances_of([row], 4)[0]])
    assert chances_of([], 4) == []


@pytest.mark.parametrize("rows", [1, 1000])
def test_many_runs_are_sampled_the_same_way_each_time(rows: int) -> None:
    """Whatever the order of the repeats, and fewer times where there are many figures."""
    dice = random.Random(2)
    first, second = [dice.gauss(10, 1) for _ in range(12)], [dice.gauss(12, 1) for _ in range(12)]
    chances = chances_of([[*first, *second]] * rows, 12)

    assert chances == chances_of([[*sorted(first), *sorted(second)]] * rows, 12)
    assert 0 < chances[0] < 0.01


@pytest.mark.repeats(few=200, soak=2000)
@pytest.mark.parametrize("rows", [1, 30])
def test_noise_alone_shows_a_difference_in_at_most_one_of_twenty_comparisons(rows: int, repeats: int) -> None:
    """However many figures; the run times have long tails, and some figures have two values only."""
    dice = random.Random(rows)

    def draw(row: int) -> list[float]:
        return [dice.choice((1.0, 2.0)) if row % 3 == 2 else dice.paretovariate(2) for _ in range(10)]

    false = sum(min(chances_of([draw(row) for row in range(rows)], 5)) <= 0.05 for _ in range(repeats))

    assert false / repeats <= 0.07  # 0.05 and two standard deviations of 200 trials less


def test_how_many_runs_are_needed() -> None:
    """All of four above all of four happens by chance in two of seventy ways."""
    assert least_chance(4, 4) == pytest.approx(2 / 70)
    assert least_chance(1, 1) == 1.0
    assert runs_needed(0.05) == 4
    assert runs_needed(0.01) == 5
    assert runs_needed(1.0) == 3


def test_two_runs_never_show_anything() -> None:
    """However many the others are."""
    assert not can_show(2, 1000, 0.05)
    assert can_show(3, 6, 0.05)


def test_the_median_is_in_the_middle() -> None:
    """Of an even number, between two."""
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert median([4.0, 1.0, 2.0, 3.0]) == 2.5
    assert median([1e308, 1.5e308]) == 1.25e308
