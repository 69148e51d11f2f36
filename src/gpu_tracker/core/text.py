"""Text for a terminal: how many cells it takes, where to cut it, what must not reach the screen. Pure."""

from __future__ import annotations

import unicodedata

from .values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Select Graphic Rendition; an empty style is the terminal's own.
PLAIN, BOLD, DIM, RED, GREEN, YELLOW = "", "1", "2", "31", "32", "33"

_WIDE = ("W", "F")


class Span(NamedTuple):
    """A stretch of text in one style."""

    text: str
    style: str = PLAIN


def neutralize(text: str) -> str:
    """Without anything that a terminal would obey or that would break a line: each becomes a question mark."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def count_cells(text: str) -> int:
    """The width on a screen: some letters take two cells, marks above others none."""
    if text.isascii():
        return len(text)
    return sum(map(_cells_of, text))


def clip(text: str, cells: int, ellipsis: str = "…") -> str:
    """The text if it fits, else as much of it as fits before an ellipsis."""
    room = cells - len(ellipsis)
    used = cut = 0
    for place, letter in enumerate(text):
        if used <= room:
            cut = place
        used += _cells_of(letter)
        if used > cells:
            return text[:cut] + ellipsis[: max(0, cells)]
    return text


def pad(text: str, cells: int, *, is_number: bool = False) -> str:
    """Filled up with spaces: numbers from the left, words from the right."""
    spaces = " " * (cells - count_cells(text))
    return spaces + text if is_number else text + spaces


def paint(spans: Iterable[Span], cells: int, *, has_colour: bool, ellipsis: str = "…") -> str:
    """One line of a screen, never wider than it."""
    painted = []
    left = cells
    for span in spans:
        if left <= 0:
            break
        text = clip(span.text, left, ellipsis)
        left = 0 if text != span.text else left - count_cells(text)
        painted.append(f"\x1b[{span.style}m{text}\x1b[0m" if has_colour and span.style else text)
    return "".join(painted)


def align(
    rows: Sequence[Sequence[str]], words: frozenset[int] = frozenset({0}), gap: str = "  "
) -> list[str]:
    """One line per row; columns are numbers, set to the right, unless they are among the `words`."""
    widths = [max(map(count_cells, column)) for column in zip(*rows, strict=True)]
    return [
        gap.join(
            pad(cell, width, is_number=place not in words)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _cells_of(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in _WIDE else 1
