"""A report as a matplotlib figure, as PNG and as PDF. The user's own figures and settings are not touched."""

from __future__ import annotations

import warnings
from array import array
from io import BytesIO
from math import isnan

from ..core.errors import TrackerError
from ..core.text import shorten, shorten_middle
from ..core.version import DISTRIBUTION
from .axes import list_times, list_values, name_times, name_value
from .charts import explain_shades, find_length, list_charts
from .report import describe_title
from .svg import COLOURS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .build import Report
    from .charts import Chart
    from .contract import View

_BINS = 800
_WIDTH_INCHES, _CHART_INCHES, _STRIP_INCHES = 10.0, 1.5, 0.3
_TITLE_CELLS, _NAME_CELLS = 90, 24
_GREY = "#767676"
# So that the number at the highest point is below the title.
_HEADROOM = 1.2
_EDGE = 0.03
_MOST_IN_A_ROW = 4


def draw(report: Report, names: str | Sequence[str] | None = None) -> Any:
    """The charts below each other on one time axis: a `matplotlib.figure.Figure`, in no window of pyplot."""
    charts = list_charts(report, _BINS, names)
    need_matplotlib()
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    heights = [_measure(chart) for chart in charts]
    with rc_context():
        figure = Figure(figsize=(_WIDTH_INCHES, sum(heights) + 1.0), layout="constrained")
        FigureCanvasAgg(figure)
        title = shorten(describe_title(report), _TITLE_CELLS)
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, parse_math=False)
        grid = figure.subplots(len(charts), 1, sharex=True, squeeze=False, height_ratios=heights)
        for axes, chart in zip(grid[:, 0], charts, strict=True):
            _draw_chart(axes, chart, find_length(report))
        moments = list_times(find_length(report))
        grid[-1, 0].set_xticks(moments, name_times(moments))
    return figure


def need_matplotlib() -> None:
    """Raise an error that says what to do if there is none."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise TrackerError(
            "This needs matplotlib, which is not installed.",
            f"Install it with: pip install '{DISTRIBUTION}[plot]' (SVG works without).",
        )


def to_png(report: Report, _view: View | None = None) -> bytes:
    """One picture."""
    return _save(report, "png")


def to_pdf(report: Report, _view: View | None = None) -> bytes:
    """One page."""
    return _save(report, "pdf")


def _save(report: Report, kind: str) -> bytes:
    content, figure = BytesIO(), draw(report)
    with warnings.catch_warnings():
        # Names may be in a writing that the user's font lacks; boxes in the picture say so.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(content, format=kind, dpi=150)
    return content.getvalue()


def _measure(chart: Chart) -> float:
    return 0.4 + _STRIP_INCHES * len(chart.lines) if chart.has_strips or chart.problem else _CHART_INCHES


def _draw_chart(axes: Any, chart: Chart, seconds: float) -> None:
    axes.set_title(shorten_middle(chart.title, 40), loc="left", fontsize=9, parse_math=False)
    axes.set_xlim(0, seconds or 1.0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8)
    if chart.problem:
        axes.set_yticks([])
        axes.text(
            0.01, 0.5, chart.problem, transform=axes.transAxes, style="italic", color=_GREY, va="center"
        )
    elif chart.has_strips:
        _draw_strips(axes, chart, seconds)
    else:
        _draw_lines(axes, chart, seconds)


def _draw_strips(axes: Any, chart: Chart, seconds: float) -> None:
    names = [shorten_middle(line.name, _NAME_CELLS) for line in chart.lines]
    axes.imshow(
        [line.values.mean for line in chart.lines],
        aspect="auto",
        extent=(0, seconds or 1.0, len(names), 0),
        cmap="Blues",
        vmin=0,
        vmax=chart.top or 1.0,
        interpolation="none",
    )
    axes.set_yticks([index + 0.5 for index in range(len(names))], names, parse_math=False)
    axes.set_title(explain_shades(chart), loc="right", fontsize=8, color=_GREY, parse_math=False)


def _draw_stack(axes: Any, chart: Chart, seconds: float) -> None:
    floor: Sequence[float] = array("d", [0.0]) * _BINS
    for line, colour in zip(chart.lines, COLOURS, strict=False):
        top, name = line.values.mean, shorten_middle(line.name, _NAME_CELLS)
        axes.fill_between(
            _list_moments(seconds, len(top)), floor, top, color=colour, alpha=0.7, linewidth=0, label=name
        )
        floor = top


def _list_moments(seconds: float, count: int) -> list[float]:
    """The middle of each bin."""
    return [seconds * (number + 0.5) / count for number in range(count)]


def _draw_curves(axes: Any, chart: Chart, seconds: float) -> None:
    for index, line in enumerate(chart.lines):
        colour, count = COLOURS[index % len(COLOURS)], len(line.values.mean)
        moments = _list_moments(seconds, count)
        known = [
            number
            for number in range(count)
            if chart.name != "metrics" or not isnan(line.values.mean[number])
        ]
        if not index:
            axes.fill_between(
                moments, line.values.low, line.values.high, color=colour, alpha=0.2, linewidth=0
            )
        axes.plot(
            [moments[number] for number in known],
            [line.values.mean[number] for number in known],
            color=colour,
            linewidth=1.2,
            linestyle="--" if index else "-",
            label=shorten_middle(line.name, _NAME_CELLS),
        )


def _draw_lines(axes: Any, chart: Chart, seconds: float) -> None:
    (_draw_stack if chart.is_stack else _draw_curves)(axes, chart, seconds)
    if chart.capacity is not None and chart.shows_capacity:
        axes.axhline(chart.capacity, color=_GREY, linestyle=":", linewidth=1)
    if chart.capacity_name:
        capacity = f"of {shorten(chart.capacity_name, _TITLE_CELLS)}"
        axes.set_title(capacity, loc="right", fontsize=8, color=_GREY, parse_math=False)
    axes.set_ylim(chart.bottom, (chart.top or 1.0) * _HEADROOM)
    ticks = list_values(chart.bottom, chart.top or 1.0)
    axes.set_yticks(ticks, [name_value(value, chart.unit) for value in ticks])
    for mark in chart.marks:
        axes.plot(
            [mark.seconds],
            [mark.value],
            marker="o",
            color=COLOURS[mark.line % len(COLOURS)],
            markersize=4,
            clip_on=False,
        )
        is_early, is_late = mark.seconds < _EDGE * seconds, mark.seconds > (1 - _EDGE) * seconds
        axes.annotate(
            name_value(mark.value, chart.unit),
            (mark.seconds, mark.value),
            xytext=(0, 4),
            textcoords="offset points",
            ha="left" if is_early else "right" if is_late else "center",
            fontsize=8,
        )
    if len(chart.lines) > 1:
        legend = axes.legend(
            loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=7, ncols=_MOST_IN_A_ROW, frameon=False
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
