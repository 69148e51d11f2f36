"""A report as a matplotlib figure, as PNG and as PDF. The user's own figures and settings are not touched."""

from __future__ import annotations

from io import BytesIO
from math import isnan

from ..core.errors import TrackerError
from ..core.text import shorten, shorten_middle
from ..core.version import DISTRIBUTION
from .axes import list_times, list_values, name_time, name_value
from .charts import find_length, list_charts
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
_MOST_IN_A_ROW = 4


def draw(report: Report, names: Sequence[str] | None = None) -> Any:
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
        grid[-1, 0].set_xticks(moments, [name_time(moment) for moment in moments])
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
    content = BytesIO()
    draw(report).savefig(content, format=kind, dpi=150)
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


def _draw_lines(axes: Any, chart: Chart, seconds: float) -> None:
    for index, line in enumerate(chart.lines):
        colour, count = COLOURS[index % len(COLOURS)], len(line.values.mean)
        moments = [seconds * (number + 0.5) / count for number in range(count)]
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
    if chart.capacity is not None and chart.shows_capacity:
        axes.axhline(chart.capacity, color=_GREY, linestyle=":", linewidth=1)
    if chart.capacity_name:
        axes.set_title(f"of {chart.capacity_name}", loc="right", fontsize=8, color=_GREY, parse_math=False)
    axes.set_ylim(chart.bottom, (chart.top or 1.0) * 1.05)
    ticks = list_values(chart.bottom, chart.top or 1.0)
    axes.set_yticks(ticks, [name_value(value, chart.unit) for value in ticks])
    for mark in chart.marks:
        axes.plot([mark.seconds], [mark.value], marker="o", color=COLOURS[0], markersize=4, clip_on=False)
        is_late = mark.seconds > 0.85 * seconds
        axes.annotate(
            name_value(mark.value, chart.unit),
            (mark.seconds, mark.value),
            xytext=(-5 if is_late else 5, 3),
            textcoords="offset points",
            ha="right" if is_late else "left",
            fontsize=8,
        )
    if len(chart.lines) > 1:
        legend = axes.legend(
            loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=7, ncols=_MOST_IN_A_ROW, frameon=False
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
