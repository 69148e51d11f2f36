"""Bars and lines of characters."""

from __future__ import annotations

from math import nan

import pytest

from gpu_tracker.core.blocks import draw_bar, draw_line


@pytest.mark.parametrize(
    ("share", "unicode", "ascii"),
    [
        (0.0, "░░░░░░░░", "[......]"),
        (0.01, "▏░░░░░░░", "[......]"),
        (0.5, "████░░░░", "[###...]"),
        (0.55, "████▍░░░", "[###...]"),
        (1.0, "████████", "[######]"),
        (-1.0, "░░░░░░░░", "[......]"),
        (7.0, "████████", "[######]"),
    ],
)
def test_a_bar_is_as_long_as_its_share(share: float, unicode: str, ascii: str) -> None:  # noqa: A002 - of characters
    """It never leaves its cells."""
    assert draw_bar(share, 8, has_unicode=True) == unicode
    assert draw_bar(share, 8, has_unicode=False) == ascii


def test_a_line_has_a_character_for_each_value() -> None:
    """What is not known is a gap, which zero is not."""
    assert draw_line([0, 1, 4, 8, 9, nan, -1], 8, has_unicode=True) == "▁▂▅██ ▁"
    assert draw_line([0, 1, 4, 8, nan], 8, has_unicode=False) == "_.=# "
    assert draw_line([0, 0], 0, has_unicode=True) == "▁▁"
