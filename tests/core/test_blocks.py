"""Bars and lines of characters."""

from __future__ import annotations

from math import inf, nan
from sys import float_info

import pytest

from gpu_tracker.core.blocks import draw_area, draw_bar, draw_line, draw_trend


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


def test_an_area_has_several_rows() -> None:
    """The highest first. A little is more than nothing, and what is not known is nothing."""
    assert draw_area([0, 0.001, 4, 6, 8, 9, nan], 8, 2, has_unicode=True) == ["   ▄██ ", " ▁████ "]
    assert draw_area([0, 2, 8], 8, 2, has_unicode=False) == ["  #", " :#"]
    assert draw_area([1, 2], 0, 1, has_unicode=True) == ["  "]


def test_a_number_without_a_place_on_the_axis_is_a_gap() -> None:
    """A logged number may be infinite; in an area it is the highest, or nothing."""
    assert draw_line([1, inf, -inf, nan, 8], 8, has_unicode=True) == "▂   █"
    assert draw_area([inf, -inf, nan, 8], 8, 1, has_unicode=True) == ["█  █"]


def test_no_size_of_numbers_is_too_large_to_draw() -> None:
    """Eight times the value need not be a number, nor the value in units of the axis."""
    most = float_info.max
    assert draw_line([0, most / 2, most, -most], most, has_unicode=True) == "▁▅█▁"
    assert draw_line([most], 5e-324, has_unicode=True) == "█"
    assert draw_area([0, most / 2, most], most, 1, has_unicode=True) == [" ▄█"]
    assert draw_area([most], 5e-324, 1, has_unicode=True) == ["█"]


def test_a_trend_is_drawn_between_its_ends() -> None:
    """The distance of the largest numbers is none; what is not finite is a gap; of equal ones there is no trend."""
    most = float_info.max
    assert draw_trend([1, 2, 3], 1, 3, has_unicode=True) == "▁▅█"
    assert draw_trend([-most, 0, most, inf, -inf, nan], -most, most, has_unicode=True) == "▁▅█   "
    assert draw_trend([most, most], most, most, has_unicode=True) == "▁▁"
