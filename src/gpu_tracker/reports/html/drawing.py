"""Charts as data for the page's script: what to draw, and packed columns. Pure."""

from __future__ import annotations

from bisect import bisect_right

from ...analysis.charts import SAMPLED_NOTE, make_lanes
from ...analysis.series import bin_column, cut_time, make_bins
from ...analysis.summary import CpuSummary
from ...core.model import Parts
from ...core.text import neutralize
from ...core.units import NUMBER
from .pack import COARSE, FINE, Packer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ...analysis.charts import Chart, Lane, Line
    from ...core.columns import Column
    from ..build import Report

# About 1.3 MB of a page. More values are put into bins of equal time, with their smallest and largest.
MOST_VALUES = 900_000
_VALUES_PER_BIN = 3


def draw(report: Report) -> tuple[dict[str, Any], str]:
    """Everything that the script needs for one run, and the packed columns."""
    seconds = report.summary.seconds
    lanes = make_lanes(report.calls, report.regions, seconds, is_running=report.ending == "running")
    return draw_charts(report.list_charts(), seconds, lanes)


def draw_rows(report: Report, since_seconds: float, seconds: float) -> tuple[dict[str, Any], str]:
    """The same for what has come after a moment, of a report that has only the last of its samples and metrics."""
    summary = report.summary
    unknown = CpuSummary(0.0, None, None)
    # Its figures are of an earlier moment: an interval since then may have been the busiest.
    later = report._replace(
        summary=summary._replace(cpu=Parts(unknown, unknown, unknown), system_cpu=unknown)
    )
    charts = [
        chart._replace(lines=tuple(_cut(line, since_seconds) for line in chart.lines))
        for chart in later.list_charts()
    ]
    return draw_charts(charts, seconds)


def _cut(line: Line, since_seconds: float) -> Line:
    """Its intervals that end later."""
    if line.start is line.end:
        return line
    first = bisect_right(line.end, since_seconds)
    columns = {name: getattr(line, name) for name in ("start", "end", "mean", "low", "high")}
    return line._replace(**{name: column and column[first:] for name, column in columns.items()})


def draw_charts(
    charts: Sequence[Chart], seconds: float, lanes: Sequence[Lane] = (), most_values: int = MOST_VALUES
) -> tuple[dict[str, Any], str]:
    """The same for any charts."""
    packer = Packer()
    drawn = [_draw_chart(chart, packer) for chart in thin(charts, most_values)]
    data = {
        "seconds": seconds,
        "charts": drawn,
        "lanes": [{"path": "/".join(lane.path), "spans": lane.spans, "band": lane.band} for lane in lanes],
        "lanesNote": SAMPLED_NOTE if any(lane.band for lane in lanes) else "",
        "columns": packer.columns,
    }
    return _clean(data), packer.pack()


def _clean(value: Any) -> Any:
    """The same without control characters, which JSON would carry into the page."""
    if isinstance(value, dict):
        return {name: _clean(one) for name, one in value.items()}
    if isinstance(value, list):
        return [*map(_clean, value)]
    return neutralize(value) if isinstance(value, str) else value


def thin(charts: Sequence[Chart], most_values: int) -> list[Chart]:
    """The same charts, with bins in the place of lines that have too many values together."""
    lines = [line for chart in charts for line in chart.lines]
    n_values = sum(len(line.mean) * (1 if line.low is None else _VALUES_PER_BIN) for line in lines)
    if n_values <= most_values:
        return list(charts)
    n_bins = max(1, most_values // (_VALUES_PER_BIN * len(lines)))
    return [chart._replace(lines=tuple(_thin(line, n_bins) for line in chart.lines)) for chart in charts]


def _thin(line: Line, n_bins: int) -> Line:
    if len(line.mean) <= n_bins:
        return line
    edges = cut_time(line.start[0], line.end[-1], n_bins)
    bins = make_bins(edges, line.start, line.end)
    binned = bin_column(bins, line.end, line.mean, line.low, line.high)
    times = type(line.end)("d", edges)
    return line._replace(start=times[:-1], end=times[1:], mean=binned.mean, low=binned.low, high=binned.high)


def _draw_chart(chart: Chart, packer: Packer) -> dict[str, Any]:
    levels = FINE if chart.unit == NUMBER else COARSE
    times: dict[int, int] = {}

    def add_times(column: Column) -> int:
        number = times.get(id(column))
        if number is None:
            number = times[id(column)] = packer.add_times(column)
        return number

    return {
        "name": chart.name,
        "title": chart.title,
        "unit": chart.unit,
        "kind": chart.kind,
        "capacity": chart.capacity,
        "capacityLabel": chart.capacity_label,
        "peak": chart.peak,
        "note": chart.note,
        "lines": [
            {
                "label": line.label,
                "start": add_times(line.start),
                "end": add_times(line.end),
                "wholeMean": line.whole_mean,
                "wholeHigh": line.whole_high,
                **{
                    name: None if column is None else packer.add(column, levels)
                    for name, column in (("mean", line.mean), ("low", line.low), ("high", line.high))
                },
            }
            for line in chart.lines
        ],
    }
