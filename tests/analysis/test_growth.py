"""Sizes that keep growing."""

from __future__ import annotations

import pytest

from gpu_tracker.analysis.growth import Growth, find_growth

STEADY = [100.0 + 10 * step for step in range(12)]


def test_the_growth_after_the_first_quarter() -> None:
    """That fills caches."""
    assert find_growth([5.0, 50.0, 90.0, *STEADY[3:]], 1, 0.75, 5) == Growth(10.0, 210.0, 8, 8)


@pytest.mark.parametrize(
    "sizes",
    [
        [100.0] * 12,
        STEADY[::-1],
        [100.0 + step / 100 for step in range(12)],
        [100.0, 200.0] * 6,
        [*STEADY, 210.0, 210.0, 210.0],
    ],
)
def test_what_stands_still_falls_or_swings_does_not_grow(sizes: list[float]) -> None:
    """Nor what grows by next to nothing, or has stopped."""
    assert find_growth(sizes, 1, 0.75, 5) is None


def test_nothing_grows_without_a_slope() -> None:
    """Even if any growth would do."""
    assert find_growth([0.0] * 12, 0, 0, 0) is None
