"""Figures that may be unknown."""

from __future__ import annotations

from gpu_tracker.core.model import add_known, find_peak, larger


def test_sums_of_what_is_known() -> None:
    """Zero only if everything is known."""
    assert [add_known(figures) for figures in ([], [None], [0, None], [0, 0], [1, None], [1, 2])] == [
        None,
        None,
        None,
        0,
        1,
        3,
    ]
    assert find_peak(None, 0, [0, 0]) == 0
    assert find_peak(0, None, [0, None]) is None
    assert find_peak(2, None, [None]) == 2


def test_the_larger_of_what_is_known() -> None:
    """One that is unknown does not count."""
    assert [larger(None, None), larger(1, None), larger(None, 2), larger(3, 2)] == [None, 1, 2, 3]
