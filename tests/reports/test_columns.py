"""Plain tables."""

from __future__ import annotations

from gpu_tracker.reports.columns import align


def test_words_stand_left_and_numbers_right() -> None:
    """Without blanks at the end of a line."""
    assert align([("a", "10", "x"), ("long", "9", "")], frozenset({0, 2})) == ["a     10  x", "long   9"]
