"""Rows of a report on a terminal: a label, a text that is wrapped between words, and a small picture. Pure."""

from __future__ import annotations

from ..core.blocks import draw_bar, draw_line
from ..core.text import Span, choose_style, neutralize, pad, paint, wrap
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .contract import View

LINE_CELLS = 40
_BAR_CELLS = 20
_FEWEST_CELLS = 8
_INDENT = 2
_GAP = 2
_PERCENT_CELLS = 7
# The longest label that pictures leave room for.
_LABEL_CELLS = 7


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
    width = max((len(row.label) for row in rows), default=0)
    hanging = _INDENT + width + _GAP
    lines = []
    for row in rows:
        text = f"{' ' * _INDENT}{pad(neutralize(row.label), width)}{' ' * _GAP}{neutralize(row.text)}"
        line = "" if row.picture is None else _draw_line(row.picture, view)
        if row.after is not None:
            text = f"{text}  {line}  {neutralize(row.after)}" if line else f"{text}  {neutralize(row.after)}"
        lines += wrap(text, view.columns, hanging)
        if row.picture is not None and row.after is None:
            lines.append(f"{' ' * hanging}{_draw_bar(row.picture, view)}  {line}".rstrip())
    return lines


def lay_out(text: str, view: View, hanging: int = 2 * _INDENT) -> list[str]:
    """One sentence in as many lines as it needs."""
    return wrap(f"{' ' * _INDENT}{neutralize(text)}", view.columns, hanging)


def _draw_bar(picture: Picture, view: View) -> str:
    share = picture.share or 0.0
    bar = Span(draw_bar(share, _BAR_CELLS, has_unicode=view.has_unicode), choose_style(100 * share))
    return paint((bar,), _BAR_CELLS, has_colour=view.has_colour) + pad(
        f"{100 * share:.0f} %", _PERCENT_CELLS, is_number=True
    )


def _draw_line(picture: Picture, view: View) -> str:
    return draw_line(picture.values, picture.top, has_unicode=view.has_unicode)
