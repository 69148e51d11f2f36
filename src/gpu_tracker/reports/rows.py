"""Rows of a report on a terminal: a label, a text that is wrapped between words, and a small picture. Pure."""

from __future__ import annotations

from ..core.blocks import draw_bar, draw_line
from ..core.text import Span, choose_style, count_cells, neutralize, pad, paint, shorten, wrap
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .contract import View

LINE_CELLS = 40
_BAR_CELLS = 20
_FEWEST_CELLS = 8
_FEWEST_BAR_CELLS = 4
_INDENT = 2
_GAP = 2
_PERCENT_CELLS, _MOST_PERCENT = 7, 9999
# The usual label; for a longer one, bars are shorter.
_LABEL_CELLS = 7
_MOST_LABEL_CELLS = 12


class Picture(NamedTuple):
    """How much of what there is, and how that changed."""

    share: float | None
    values: tuple[float, ...]
    """From the start to the end; nan is not known."""
    top: float
    """The highest that the picture shows."""


class Row(NamedTuple):
    """A label, a text and a picture below it."""

    label: str
    text: str
    picture: Picture | None = None
    after: str | None = None
    """A text after the picture, which then has no bar and is in the same line."""


def count_line_cells(view: View) -> int:
    """How wide a line over time may be."""
    if view.columns is None:
        return LINE_CELLS
    room = view.columns - _INDENT - _LABEL_CELLS - _GAP - _BAR_CELLS - _PERCENT_CELLS - _GAP
    return max(_FEWEST_CELLS, min(LINE_CELLS, room))


def lay_out_rows(rows: Sequence[Row], view: View) -> list[str]:
    """Labels in one column, texts in the next."""
    labels = [shorten(row.label, _MOST_LABEL_CELLS) for row in rows]
    width = max(map(count_cells, labels), default=0)
    hanging = _INDENT + width + _GAP
    lines = []
    for label, row in zip(labels, rows, strict=True):
        text = f"{' ' * _INDENT}{pad(label, width)}{' ' * _GAP}{neutralize(row.text)}"
        line = "" if row.picture is None else _draw_line(row.picture, view)
        if row.after is not None:
            text = f"{text}  {line}  {neutralize(row.after)}" if line else f"{text}  {neutralize(row.after)}"
        lines += wrap(text, view.columns, hanging)
        cells = _count_bar_cells(hanging, line, view)
        if row.picture is not None and row.after is None and cells >= _FEWEST_BAR_CELLS:
            lines.append(f"{' ' * hanging}{_draw_bar(row.picture, cells, view)}  {line}".rstrip())
    return lines


def _count_bar_cells(hanging: int, line: str, view: View) -> int:
    """What the label before and the line after it leave."""
    if view.columns is None:
        return _BAR_CELLS
    return min(_BAR_CELLS, view.columns - hanging - _PERCENT_CELLS - _GAP - count_cells(line))


def lay_out(text: str, view: View, hanging: int = 2 * _INDENT) -> list[str]:
    """One sentence in as many lines as it needs."""
    return wrap(f"{' ' * _INDENT}{neutralize(text)}", view.columns, hanging)


def _draw_bar(picture: Picture, cells: int, view: View) -> str:
    percent = 100 * (picture.share or 0.0)
    bar = Span(draw_bar(percent / 100, cells, has_unicode=view.has_unicode), choose_style(percent))
    number = f"{percent:.0f} %" if percent < _MOST_PERCENT else f">{_MOST_PERCENT} %"
    return paint((bar,), cells, has_colour=view.has_colour) + pad(number, _PERCENT_CELLS, is_number=True)


def _draw_line(picture: Picture, view: View) -> str:
    return draw_line(picture.values, picture.top, has_unicode=view.has_unicode)
