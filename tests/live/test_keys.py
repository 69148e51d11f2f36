"""Keys of full-screen views."""

from __future__ import annotations

import pytest

from gpu_tracker.core.text import paint
from gpu_tracker.live.keys import (
    DOWN,
    END,
    ESCAPE,
    HOME,
    LEFT,
    PAGE_DOWN,
    PAGE_UP,
    RIGHT,
    UP,
    draw_help,
    draw_keys,
    split_keys,
)


def test_keys_are_told_apart() -> None:
    """Those that terminals send as several characters, in both of their modes; unknown ones do nothing."""
    assert split_keys("q\x1b[D\x1bOC\x1b[5~\x1b[6~ \x1b[H\x1b[4~é\x1b[15~") == [
        *("q", LEFT, RIGHT, PAGE_UP, PAGE_DOWN, " ", HOME, END, "é", ""),
    ]
    assert split_keys("\x1b[A\x1bOB") == [UP, DOWN]
    assert split_keys("\x1b") == [ESCAPE]


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (30, "q quit  s sort by GPU  h help"),
        (29, "q quit  s sort by GPU  h help"),
        (28, "q quit  s sort by GPU"),
    ],
)
def test_no_word_of_the_last_line_is_cut(columns: int, shown: str) -> None:
    """A key for whose meaning there is no room is left out."""
    line = draw_keys([("q", "quit"), ("s", "sort by GPU"), ("h", "help")], columns)

    assert paint(line, columns, has_colour=False) == shown


def test_the_help_lists_every_key_in_a_column() -> None:
    """Meanings begin below each other."""
    lines = [paint(line, 80, has_colour=False) for line in draw_help((("q", "quit"), ("up down", "scroll")))]

    assert lines == [
        *("", "  Keys", "", "  q        quit", "  up down  scroll", "", "  Any key closes this."),
    ]
