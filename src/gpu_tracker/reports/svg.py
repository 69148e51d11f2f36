"""A report as an SVG: charts below each other on one time axis. Pure.

Without a background, and in tones that can be read on light and on dark pages.
"""

from __future__ import annotations

from html import escape
from itertools import groupby
from math import isnan

from ..core.text import neutralize, shorten, shorten_middle
from ..core.units import humanize_seconds
from .axes import list_times, list_values, name_times, name_value
from .charts import explain_shades, find_length, list_charts
from .report import describe_title

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..analysis.series import Binned
    from .build import Report
    from .charts import Chart, Line
    from .contract import View

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
GREY = "#767676"  # as readable on white as on black
_WIDTH, _LEFT, _RIGHT = 960, 130, 24
_PLOT_WIDTH = _WIDTH - _LEFT - _RIGHT
_TOP, _HEADING, _HEIGHT, _STRIP, _GAP, _BOTTOM = 34, 20, 84, 14, 14, 30
_BINS = 400
_TITLE_CELLS, _NAME_CELLS = 90, 18
_SHADES = 20
# Above a mark that is so high, there is room for its label.
_HIGH, _HEADROOM = 0.85, 1.2
_EDGE = 0.03


def to_svg(report: Report, _view: View | None = None) -> str:
    """One picture."""
    charts = list_charts(report, _BINS)
    seconds = find_length(report)
    body: list[str] = []
    y = _TOP
    for chart in charts:
        body += _draw_chart(chart, y, seconds)
        y += _HEADING + _measure(chart) + _GAP
    body += _draw_times(seconds, _TOP + _HEADING, y - _GAP)
    height = y + _BOTTOM
    title = _escape(shorten(describe_title(report), _TITLE_CELLS))
    length = "-" if report.summary.is_unread else humanize_seconds(report.summary.seconds)
    about = f"{report.header.host}, {length}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
        f' font-family="sans-serif" font-size="11" fill="{GREY}" role="img">',
        f"<title>{title}</title>",
        f'<text x="8" y="18" font-size="14" font-weight="bold">{title}</text>',
        write_text(_WIDTH - _RIGHT, 18, shorten(about, 40), "end"),
        *body,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _measure(chart: Chart) -> int:
    if chart.problem:
        return _STRIP
    return _STRIP * len(chart.lines) if chart.has_strips else _HEIGHT


def _draw_chart(chart: Chart, y: int, seconds: float) -> Iterator[str]:
    yield write_text(8, y + 12, shorten_middle(chart.title, 40), extra=' font-weight="bold"')
    top = y + _HEADING
    if chart.problem:
        yield write_text(_LEFT, top + 10, chart.problem, extra=' font-style="italic"')
    elif chart.has_strips:
        for index, line in enumerate(chart.lines):
            yield from _draw_strip(line, top + index * _STRIP, chart.top)
        yield from _draw_note(chart, y + 12)
    else:
        yield from _draw_legend(chart, y + 12)
        yield from _draw_lines(chart, top, seconds)


def _draw_legend(chart: Chart, y: int) -> Iterator[str]:
    """Names at the left, the capacity at the right, so that they never meet."""
    x = _LEFT + 60
    for line, colour in zip(
        chart.lines if len(chart.lines) > 1 else (), _cycle(len(chart.lines)), strict=False
    ):
        yield f'<rect x="{x}" y="{y - 8}" width="9" height="9" fill="{colour}"/>'
        yield write_text(x + 13, y, shorten_middle(line.name, _NAME_CELLS))
        x += 30 + 7 * min(len(line.name), _NAME_CELLS)
    yield from _draw_note(chart, y)


def _draw_note(chart: Chart, y: int) -> Iterator[str]:
    if chart.has_strips:
        yield write_text(_WIDTH - _RIGHT, y, explain_shades(chart), "end")
    elif chart.capacity_name:
        note = f"dashed: {chart.capacity_name}" if chart.shows_capacity else f"of {chart.capacity_name}"
        yield write_text(_WIDTH - _RIGHT, y, note, "end")


def _cycle(count: int) -> list[str]:
    return [COLOURS[index % len(COLOURS)] for index in range(count)]


def _draw_lines(chart: Chart, top: int, seconds: float) -> Iterator[str]:
    low, high = chart.bottom, chart.top or 1.0
    has_high_mark = any(mark.value > _HIGH * high for mark in chart.marks)
    end = high * _HEADROOM if has_high_mark else high

    def place(value: float) -> float:
        return round(top + _HEIGHT * (1 - (value - low) / (end - low)), 1)

    for value in list_values(low, high):
        yield _rule(_LEFT, place(value), _WIDTH - _RIGHT, place(value), 0.25)
        yield write_text(_LEFT - 6, place(value) + 4, name_value(value, chart.unit), "end")
    if chart.capacity is not None and chart.shows_capacity:
        y = place(chart.capacity)
        yield _rule(_LEFT, y, _WIDTH - _RIGHT, y, 0.9, ' stroke-dasharray="6 4"')
    if chart.is_stack:
        yield from _draw_stack(chart, place)
        return
    for index, (line, colour) in enumerate(zip(chart.lines, _cycle(len(chart.lines)), strict=True)):
        ys = [[None if isnan(value) else place(value) for value in column] for column in line.values[:3]]
        if not index:
            yield from _draw_band(ys[0], ys[2], colour)
        yield from _draw_line(ys[1], colour, is_joined=chart.name == "metrics", is_first=not index)
    for mark in chart.marks:
        label = name_value(mark.value, chart.unit)
        colour = COLOURS[mark.line % len(COLOURS)]
        yield from _draw_mark(mark.seconds / seconds, place(mark.value), label, colour)


def _draw_stack(chart: Chart, place: Callable[[float], float]) -> Iterator[str]:
    """Areas, each from the top of the one below to its own."""
    tops = [[None if isnan(value) else place(value) for value in line.values.mean] for line in chart.lines]
    floors: list[Sequence[float | None]] = [[place(0.0)] * len(tops[0]), *tops]
    for floor, top, colour in zip(floors, tops, _cycle(len(tops)), strict=False):
        yield from _draw_band(floor, top, colour, 0.7)


def _at(index: float, count: int) -> float:
    return round(_LEFT + _PLOT_WIDTH * index / count, 1)


def _draw_band(
    low: Sequence[float | None], high: Sequence[float | None], colour: str, opacity: float = 0.2
) -> Iterator[str]:
    """Between the smallest and the largest value of each bin."""
    count, points = len(low), list(zip(low, high, strict=True))
    for is_known, run in groupby(range(count), lambda index: None not in points[index]):
        if is_known:
            some = list(run)
            there = [f"{_at(index + 0.5, count)},{points[index][1]}" for index in some]
            back = [f"{_at(index + 0.5, count)},{points[index][0]}" for index in reversed(some)]
            yield f'<polygon points="{" ".join(there + back)}" fill="{colour}" fill-opacity="{opacity:g}"/>'


def _draw_line(ys: Sequence[float | None], colour: str, *, is_joined: bool, is_first: bool) -> Iterator[str]:
    """Broken where nothing is known; what is logged now and then is joined. Only the first is not dashed."""
    dashes = "" if is_first else ' stroke-dasharray="5 2"'
    count = len(ys)
    known = [(index, y) for index, y in enumerate(ys) if y is not None]
    for _, run in groupby(enumerate(known), lambda item: 0 if is_joined else item[1][0] - item[0]):
        points = [f"{_at(index + 0.5, count)},{y}" for _, (index, y) in run]
        if len(points) == 1:
            x, y = points[0].split(",")
            yield f'<circle cx="{x}" cy="{y}" r="1.2" fill="{colour}"/>'
        else:
            yield f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="1.4"{dashes}/>'


def _draw_mark(share: float, y: float, label: str, colour: str) -> Iterator[str]:
    """The label is above the dot, where no line is above a peak."""
    x = _at(min(share, 1.0), 1)
    yield f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}" stroke="{GREY}"/>'
    anchor = "start" if share < _EDGE else "end" if share > 1 - _EDGE else "middle"
    yield write_text(x, y - 6, label, anchor)


def _draw_strip(line: Line, y: int, most: float) -> Iterator[str]:
    """From light to dark; equal neighbours are one rectangle."""
    yield write_text(_LEFT - 6, y + 10, shorten_middle(line.name, _NAME_CELLS), "end")
    height = _STRIP - 3
    yield f'<rect x="{_LEFT}" y="{y}" width="{_PLOT_WIDTH}" height="{height}" fill="{GREY}" fill-opacity="0.08"/>'
    shades = _shade(line.values, most)
    for shade, run in groupby(range(len(shades)), shades.__getitem__):
        some = list(run)
        if shade:
            x, end = _at(some[0], len(shades)), _at(some[-1] + 1, len(shades))
            yield (
                f'<rect x="{x}" y="{y}" width="{end - x:.1f}" height="{height}" fill="{COLOURS[0]}"'
                f' fill-opacity="{shade / _SHADES:g}"/>'
            )


def _shade(values: Binned, most: float) -> list[int]:
    return [0 if isnan(value) or not most else round(_SHADES * value / most) for value in values.mean]


def _draw_times(seconds: float, top: int, bottom: int) -> Iterator[str]:
    moments = list_times(seconds)
    for moment, name in zip(moments, name_times(moments), strict=True):
        x = _at(moment / seconds if seconds else 0.0, 1)
        yield _rule(x, top, x, bottom + 4, 0.2)
        yield write_text(x, bottom + 16, name, "middle")


def _rule(x1: float, y1: float, x2: float, y2: float, opacity: float, extra: str = "") -> str:
    return (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{GREY}" stroke-opacity="{opacity}"{extra}/>'
    )


def write_text(x: float, y: float, text: str, anchor: str = "start", extra: str = "") -> str:
    """Escaped, with its baseline at that point."""
    return f'<text x="{round(x, 1)}" y="{round(y, 1)}" text-anchor="{anchor}"{extra}>{_escape(text)}</text>'


def _escape(text: str) -> str:
    return escape(neutralize(text))
