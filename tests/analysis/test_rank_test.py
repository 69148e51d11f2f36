"""The rank test, against counting by hand and against itself."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tracker.analysis import rank_test as ranks
from gpu_tracker.analysis.rank_test import chance_of, least_chance, median, runs_needed

FEW = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=4)


def count_by_hand(first: list[float], second: list[float]) -> float:
    """Assign the values to two such groups in every way, and count how often they are as far apart."""
    values = [*first, *second]

    def rank(value: float) -> float:
        return sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2

    middle = len(first) * (len(values) + 1) / 2
    sums = [sum(map(rank, chosen)) for chosen in itertools.combinations(values, len(first))]
    far = abs(sum(map(rank, first)) - middle)
    return sum(abs(total - middle) >= far for total in sums) / len(sums)


@given(FEW, FEW)
def test_few_runs_are_counted_exactly(first: list[float], second: list[float]) -> None:
    """With ties or without."""
    assert chance_of(first, second) == pytest.approx(count_by_hand(first, second))


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=30), st.lists(st.floats(0, 1e6), min_size=1, max_size=30)
)
def test_a_p_value_does_not_depend_on_the_order_of_groups(first: list[float], second: list[float]) -> None:
    """It is between zero and one, and never below what so few runs can show."""
    chance = chance_of(first, second)

    assert 0 <= chance <= 1
    assert chance == pytest.approx(chance_of(second, first))


@settings(max_examples=50)
@given(st.lists(st.integers(0, 30).map(float), min_size=8, max_size=8), st.integers(0, 10))
def test_the_approximation_is_close_to_the_count(values: list[float], shift: int) -> None:
    """Where both are possible."""
    first, second = values[:8], [value + shift for value in values[::-1]]
    doubled = ranks._double_ranks([*first, *second])
    curve = ranks._approximate_chance(doubled, 8, sum(doubled[:8]))

    assert curve == pytest.approx(chance_of(first, second), abs=0.05)


@pytest.mark.parametrize(
    ("first", "second", "exact"),
    [
        ([500.0] * 19 + [600.0] * 3, [600.0], 4 / 23),
        ([float(value) for value in range(60)], [100.0], 2 / 61),
        ([1.0] * 5, [1.0] * 11 + [2.0] * 4, 1 - 7280 / 15504),
    ],
)
def test_groups_of_unequal_size_are_counted_too(
    first: list[float], second: list[float], exact: float
) -> None:
    """Where a normal distribution would be far off."""
    assert chance_of(first, second) == chance_of(second, first) == pytest.approx(exact)


def test_many_runs_of_few_values_are_not_overrated() -> None:
    """The approximation corrects for the step between possible sums."""
    first, second = [1.0] * 12 + [2.0] * 4, [1.0] * 6 + [2.0] * 10
    doubled = ranks._double_ranks([*first, *second])
    counted = ranks._count_chance(tuple(sorted(doubled)), 16, sum(doubled[:16]))

    assert chance_of(first, second) == pytest.approx(counted, abs=0.01)


def test_equal_values_show_no_difference() -> None:
    """Few or many."""
    assert chance_of([1.0] * 3, [1.0] * 3) == chance_of([1.0] * 20, [1.0] * 20) == 1.0


def test_many_runs_can_overlap_and_still_differ() -> None:
    """One outlier does not hide what forty-nine others show."""
    first = [float(value) for value in range(50)]
    second = [value + 40 for value in first]

    assert chance_of(first, second) < 1e-6


def test_how_many_runs_are_needed() -> None:
    """All of four above all of four happens by chance in two of seventy ways."""
    assert least_chance(4, 4) == pytest.approx(2 / 70)
    assert least_chance(1, 1) == 1.0
    assert runs_needed(0.05) == 4
    assert runs_needed(0.01) == 5


def test_the_median_is_in_the_middle() -> None:
    """Of an even number, between two."""
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert median([4.0, 1.0, 2.0, 3.0]) == 2.5
