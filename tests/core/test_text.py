"""Widths on a screen."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.core.text import (
    BOLD,
    GREEN,
    PLAIN,
    RED,
    YELLOW,
    Span,
    align,
    choose_style,
    clip,
    count_cells,
    join_command,
    neutralize,
    pad,
    paint,
    shorten_middle,
    to_ascii,
    wrap,
)


def test_wide_characters_take_two_cells_and_combining_marks_none() -> None:
    """As terminals draw them."""
    assert [count_cells(text) for text in ("abc", "日本", "e\u0301", "…")] == [3, 4, 1, 1]


def test_a_text_is_cut_where_it_no_longer_fits() -> None:
    """A wide character is never cut in half."""
    assert clip("日本語", 5) == "日本…"
    assert clip("日本語", 4) == "日…"
    assert clip("日本語", 6) == "日本語"
    assert clip("e\u0301" * 3, 3) == "e\u0301" * 3
    assert clip("e\u0301" * 4, 3) == "e\u0301" * 2 + "…"
    assert clip("abc", 3) == "abc"
    assert clip("abc", 0) == ""
    assert clip("abc", 1) == "…"
    assert clip("abc", 2, "...") == ".."


def test_a_name_is_cut_in_the_middle() -> None:
    """So that names that begin alike stay different."""
    assert shorten_middle("abcdefgh", 8) == "abcdefgh"
    assert shorten_middle("abcdefghi", 8) == "abc…fghi"
    assert shorten_middle("日本語日本語", 7) == "日本…語"
    assert shorten_middle("a\nb", 3) == "a?b"


@given(st.text(), st.integers(0, 40))
def test_no_text_becomes_too_wide(text: str, cells: int) -> None:
    """Whatever it contains."""
    assert count_cells(clip(neutralize(text), cells)) <= cells
    assert count_cells(shorten_middle(text, cells)) <= cells
    assert count_cells(paint([Span(text), Span(text, RED)], cells, has_colour=False)) <= cells


@given(st.text())
def test_control_characters_are_replaced(text: str) -> None:
    """Line separators and bidirectional overrides too, by question marks."""
    assert neutralize(text).isprintable()


def test_styles_are_closed_where_they_end() -> None:
    """And left out where there are no colours."""
    spans = [Span("a", BOLD), Span("b"), Span("cd", RED)]

    assert paint(spans, 10, has_colour=True) == "\x1b[1ma\x1b[0mb\x1b[31mcd\x1b[0m"
    assert paint(spans, 3, has_colour=True) == "\x1b[1ma\x1b[0mb\x1b[31m…\x1b[0m"
    assert paint(spans, 2, has_colour=False) == "ab"


def test_numbers_are_padded_on_the_left() -> None:
    """Words on the right."""
    assert (pad("7", 3, is_number=True), pad("日", 3)) == ("  7", "日 ")


def test_words_are_left_aligned_and_numbers_right_aligned() -> None:
    """Without trailing spaces."""
    assert align([("a", "10", "x"), ("long", "9", "")], frozenset({0, 2})) == ["a     10  x", "long   9"]


def test_lines_are_broken_between_words() -> None:
    """A number stays with its unit; only a word that is longer than a line is broken."""
    assert wrap("  peak 30 GB of 32 GiB", 14, 4) == ["  peak 30 GB", "    of 32 GiB"]
    assert wrap("  peak 30 GB, 7 × main", 11, 4) == ["  peak", "    30 GB,", "    7 ×", "    main"]
    assert wrap("a verylongword b", 5, 2) == ["a", "  ver", "  ylo", "  ngw", "  ord", "  b"]
    assert wrap("a 日本語 b", 5, 2) == ["a", "  日", "  本", "  語", "  b"]
    assert wrap("日本 語", 5, 0) == ["日本", "語"]
    assert wrap("as it is", None) == ["as it is"]
    assert wrap("as it is", 8) == ["as it is"]
    assert wrap("two  gaps here", 10) == ["two  gaps", "here"]


@given(st.text(st.sampled_from("ab 1%s"), max_size=60), st.integers(1, 30), st.integers(0, 4))
def test_wrapping_keeps_every_letter_and_fits(text: str, columns: int, hanging: int) -> None:
    """In their order."""
    lines = wrap(text, columns, hanging)

    assert "".join("".join(lines).split()) == "".join(text.split())
    assert max(map(len, lines)) <= columns


@given(st.lists(st.text("ab1%s", max_size=9), max_size=20), st.integers(16, 30), st.integers(0, 4))
def test_wrapping_keeps_words_that_fit(words: list[str], columns: int, hanging: int) -> None:
    """Whole, and in their order."""
    text = " ".join(words)

    assert " ".join(wrap(text, columns, hanging)).split() == text.split()


def test_ascii_keeps_the_meaning_of_signs() -> None:
    """Other letters become question marks."""
    assert to_ascii("≥ 7 × a… 3 → 4 · 5 °C ä") == ">=7 x a~ 3 -> 4 - 5 C ?"


def test_a_load_has_a_colour() -> None:
    """None for nothing."""
    assert [choose_style(load) for load in (None, 0, 1, 30, 80)] == [PLAIN, PLAIN, GREEN, YELLOW, RED]


def test_without_an_installation_every_letter_has_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """The widths of letters are in a file, which may be gone by the time that a report is printed."""
    monkeypatch.setitem(sys.modules, "unicodedata", None)

    assert count_cells("≥ 漢") == 3


def test_a_command_is_one_line_to_read() -> None:
    """However many lines the program in it has."""
    assert join_command(["python", "-c", "\nimport time\n\twork()\n"]) == "python -c import time work()"
