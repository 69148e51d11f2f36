"""What a report shows over time, for every format that draws: one chart per kind of figure. Pure.

All charts of a report have the same time axis, in bins of equal length: samples are dense at the start of a long run and
sparse at its end.
"""

from __future__ import annotations

from array import array
from itertools import accumulate
from math import isnan
from operator import add

from ..analysis.charts import HEAT, MEAN_NOTE, NAMES, STACK, TITLES, make_lanes, of_metric
from ..analysis.series import Binned, bin_column, cut_time, make_bins
from ..core.errors import UsageError
from ..core.units import NUMBER, PERCENT
from ..core.values import NamedTuple
from .axes import name_value
from .region_tables import name_region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.charts import Chart as Figure, Lane, Line as Figures
    from .build import Report

# What does not reach this share of its capacity is drawn without it.
_SMALLEST_SHARE = 0.2
_MOST_REGIONS = 6
_NOT_MEASURED = "not measured"
_OF_GPUS = ("gpu_busy", "gpu_ram", "power")
_NO_SAMPLES = "no samples were recorded"


class Line(NamedTuple):
    """One figure over time."""

    name: str
    values: Binned


class Mark(NamedTuple):
    """A point of a line that is worth its number."""

    seconds: float
    value: float
    line: int = 0
    """Which line it is on."""


class Chart(NamedTuple):
    """Figures that share an axis from 0."""

    name: str
    """As in `plot(["cpu", "gpu_ram"])`."""
    title: str
    unit: str
    lines: tuple[Line, ...] = ()
    capacity: float | None = None
    capacity_name: str = ""
    problem: str = ""
    """Why there is nothing to draw."""
    has_strips: bool = False
    """Each line is a strip from light to dark: many lines across each other are unreadable."""
    is_stack: bool = False
    """Each line lies on the one before, the first on 0."""
    marks: tuple[Mark, ...] = ()
    note: str = ""

    @property
    def top(self) -> float:
        """The end of the axis, or what the darkest part of a strip stands for."""
        return max(self._most, self.capacity or 0.0) if self.shows_capacity else self._most

    @property
    def shows_capacity(self) -> bool:
        """Whether the axis reaches up to it: what is far below would be a flat line."""
        is_near = self.has_strips or self._most >= _SMALLEST_SHARE * (self.capacity or 0.0)
        return self.capacity is not None and is_near

    @property
    def _most(self) -> float:
        values = (value for line in self.lines for value in line.values.high if not isnan(value))
        return max((*values, 0.0))

    @property
    def bottom(self) -> float:
        """The begin of the axis: 0, but for a metric that is below."""
        values = (value for line in self.lines for value in line.values.low if not isnan(value))
        return min((*values, 0.0))


def explain_shades(chart: Chart) -> str:
    """What strips from light to dark mean."""
    return "; ".join(filter(None, (chart.note, f"darkest: {name_value(chart.top, chart.unit)}")))


def _find_peak(lines: Sequence[Line]) -> tuple[Mark, ...]:
    """The first of the highest points."""
    places = [
        (number, index)
        for number, line in enumerate(lines)
        for index, value in enumerate(line.values.high)
        if not isnan(value)
    ]
    number, index = max(places, key=lambda place: lines[place[0]].values.high[place[1]])
    values = lines[number].values
    return (Mark(values.high_seconds[index], values.high[index], number),)


def list_charts(report: Report, n_bins: int, names: str | Sequence[str] | None = None) -> tuple[Chart, ...]:
    """The charts of those names, or all that this run has something for."""
    names = [names] if isinstance(names, str) else names
    for name in names or ():
        if name not in NAMES:
            raise UsageError(f'"{name}" is not a chart. Charts are {", ".join(NAMES)}.')
    edges = cut_time(0.0, find_length(report), n_bins)
    found: dict[str, list[Chart]] = {name: [] for name in names or NAMES}
    for figure in report.list_charts():
        kind = "metrics" if of_metric(figure) else figure.name
        if kind in found:
            found[kind].append(_draw(figure, kind, edges))
    if "regions" in found:
        found["regions"] += _draw_regions(report, edges)
    for name in names or ("cpu", "ram", *(_OF_GPUS if report.summary.gpus else ())):
        found[name] = found[name] or [Chart(name, TITLES[name], NUMBER, problem=_explain(report))]
    return tuple(chart for charts in found.values() for chart in charts)


def find_length(report: Report) -> float:
    """Of the time axis: that of a moment has a length, too."""
    return max(report.summary.seconds, 1e-3)


def _explain(report: Report) -> str:
    columns = report.columns
    return _NOT_MEASURED if columns is not None and len(columns.end_seconds) else _NO_SAMPLES


def _draw(figure: Figure, kind: str, edges: list[float]) -> Chart:
    drawn = (Line(line.label, _bin(line, edges)) for line in figure.lines)
    lines = tuple(line for line in drawn if not all(map(isnan, line.values.high)))
    if not lines:  # whatever is known of it is later than the end of the run
        return Chart(kind, figure.title, figure.unit, problem=_NOT_MEASURED)
    has_strips, is_stack = figure.kind == HEAT, figure.kind == STACK
    if is_stack:
        lines = _pile_up(lines)
    # Of the job, not of what is drawn around it; of devices the highest.
    marks = () if has_strips or is_stack else _find_peak(lines if kind in _OF_GPUS else lines[:1])
    if of_metric(figure):
        last = figure.lines[0]
        marks = (Mark(last.end[-1], last.mean[-1]),)
    return Chart(
        kind,
        figure.title,
        figure.unit,
        lines,
        figure.capacity,
        figure.capacity_label,
        has_strips=has_strips,
        is_stack=is_stack,
        marks=marks,
    )


def _pile_up(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Each with those before it; what is unknown of one is unknown of all."""
    sums = accumulate(
        (line.values.mean for line in lines), lambda below, own: array("d", map(add, below, own))
    )
    return tuple(
        line._replace(values=line.values._replace(low=top, mean=top, high=top))
        for line, top in zip(lines, sums, strict=True)
    )


def _bin(line: Figures, edges: list[float]) -> Binned:
    return bin_column(make_bins(edges, line.start, line.end), line.end, line.mean, line.low, line.high)


def _draw_regions(report: Report, edges: list[float]) -> list[Chart]:
    lanes = make_lanes(
        report.calls,
        report.regions,
        edges[-1],
        is_running=report.ending == "running",
        most=_MOST_REGIONS,
    )
    lines = [Line(name_region(lane.path), _cover(lane, edges)) for lane in lanes]
    if not any(any(line.values.mean) for line in lines):
        return []
    note = MEAN_NOTE if any(lane.band for lane in lanes) else ""
    return [Chart("regions", TITLES["regions"], PERCENT, tuple(lines), 100.0, has_strips=True, note=note)]


def _cover(lane: Lane, edges: list[float]) -> Binned:
    """In how much of each bin the job was inside a region; of calls that are not known, on average."""
    length = edges[1] - edges[0]
    spans = lane.spans if lane.band is None else [lane.band[:2]]
    inside = [0.0] * (len(edges) - 1)
    for start, end in spans:
        first = max(0, min(int(start / length), len(inside) - 1))
        for index in range(first, len(inside)):
            if edges[index] >= end:
                break
            inside[index] += max(0.0, min(end, edges[index + 1]) - max(start, edges[index]))
    each = 100.0 * (1.0 if lane.band is None else lane.band[2]) / length
    share = array("d", (min(100.0, each * seconds) for seconds in inside))
    return Binned(share, share, share, array("d", edges[1:]), array("d", [length]) * len(share))
