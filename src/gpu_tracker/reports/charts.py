"""What a report shows over time, for every format that draws: one chart per kind of figure. Pure.

All charts of a report have the same time axis, in bins of equal length: samples are dense at the start of a long run and
sparse at its end.
"""

from __future__ import annotations

from array import array
from math import isfinite, isnan, nan

from ..analysis.series import Binned, bin_column, cut_time, make_bins
from ..analysis.summary import list_counted
from ..core.errors import UsageError
from ..core.figures import BYTES, CORES, NUMBER, PERCENT, WATTS
from ..core.units import humanize_bytes, humanize_limit
from ..core.values import NamedTuple
from .region_tables import name_region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..core.columns import Column, GpuColumns, SampleColumns
    from .build import Report

    Draw = Callable[[Report, list[float]], "Iterable[Chart]"]

_MOST_METRICS = 4
_MOST_LINES = 4
# What does not reach this share of its capacity is drawn without it.
_SMALLEST_SHARE = 0.2
_MOST_REGIONS = 6
_NOT_MEASURED = "not measured"
_NO_SAMPLES = "no samples were recorded"


class Line(NamedTuple):
    """One figure over time."""

    name: str
    values: Binned


class Mark(NamedTuple):
    """A point of a line that is worth its number."""

    seconds: float
    value: float


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
    marks: tuple[Mark, ...] = ()

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


def _find_peak(lines: Sequence[Line]) -> tuple[Mark, ...]:
    """The first of the highest points of the first line."""
    if not lines:
        return ()
    values = lines[0].values
    known = [index for index, value in enumerate(values.high) if not isnan(value)]
    index = max(known, key=values.high.__getitem__)
    return (Mark(values.high_seconds[index], values.high[index]),)


def list_charts(report: Report, n_bins: int, names: Sequence[str] | None = None) -> tuple[Chart, ...]:
    """The charts of those names, or all that this run has something for."""
    for name in names or ():
        if name not in _CHARTS:
            raise UsageError(f'"{name}" is not a chart. Charts are {", ".join(_CHARTS)}.')
    edges = cut_time(0.0, max(report.summary.seconds, 1e-3), n_bins)
    charts = [chart for name in names or _CHARTS for chart in _CHARTS[name](report, edges)]
    missing = {name: Chart(name, _TITLES[name], NUMBER, problem=_NOT_MEASURED) for name in names or ()}
    found = {chart.name for chart in charts}
    return (*charts, *(chart for name, chart in missing.items() if name not in found))


def _draw_cpu(report: Report, edges: list[float]) -> Iterable[Chart]:
    summary, columns = report.summary, report.columns
    title = _TITLES["cpu"]
    if columns is None or not len(columns.end_seconds):
        yield Chart("cpu", title, CORES, problem=_NO_SAMPLES)
        return
    bins = make_bins(edges, columns.start_seconds, columns.end_seconds)
    job = bin_column(bins, columns.end_seconds, columns.cpu_cores.combined)
    machine = bin_column(bins, columns.end_seconds, columns.machine_cores)
    lines = _keep_known([Line("job", job), Line("whole machine", machine)])
    cores = summary.n_expected_cores
    yield Chart(
        "cpu",
        title,
        CORES,
        lines,
        cores,
        f"{cores:g} cores",
        problem=_explain(lines),
        marks=_find_peak(lines),
    )


def _draw_ram(report: Report, edges: list[float]) -> Iterable[Chart]:
    summary, columns = report.summary, report.columns
    title = _TITLES["ram"]
    if columns is None or not len(columns.end_seconds):
        yield Chart("ram", title, BYTES, problem=_NO_SAMPLES)
        return
    bins = make_bins(edges, columns.read_since_seconds, columns.end_seconds)
    parts = dict(zip(("job", "main process"), columns.ram_bytes[::-2], strict=True))
    if not summary.ram.descendants.total_bytes:
        del parts["main process"]
    lines = _keep_known(
        [
            Line(name, bin_column(bins, columns.end_seconds, part.mean, part.low, part.high))
            for name, part in parts.items()
        ]
    )
    capacity = summary.ram_capacity_bytes or None
    yield Chart(
        "ram",
        title,
        BYTES,
        lines,
        capacity,
        _name_limit(report),
        problem=_explain(lines),
        marks=_find_peak(lines),
    )


def _name_limit(report: Report) -> str:
    summary = report.summary
    if summary.ram_source == "machine":
        return humanize_bytes(summary.ram_capacity_bytes)
    return f"{humanize_limit(summary.ram_capacity_bytes)} ({summary.ram_source} limit)"


def _draw_gpu(report: Report, edges: list[float]) -> Iterable[Chart]:
    lines = _bin_gpus(report, edges, lambda gpu: gpu.utilization_percent)
    yield from _make_gpu_chart(report, "gpu_busy", PERCENT, lines, 100.0, "", has_strips=True)


def _draw_gpu_ram(report: Report, edges: list[float]) -> Iterable[Chart]:
    lines = _bin_gpus(report, edges, _choose_memory)
    sizes = {gpu.gpu.memory_bytes for gpu in list_counted(report.summary)}
    size = sizes.pop() if len(sizes) == 1 else None
    name = "" if size is None else f"{humanize_bytes(size)} each"
    yield from _make_gpu_chart(report, "gpu_ram", BYTES, lines, size, name)


def _draw_power(report: Report, edges: list[float]) -> Iterable[Chart]:
    lines = _bin_gpus(report, edges, lambda gpu: gpu.power_watts)
    yield from _make_gpu_chart(report, "power", WATTS, lines, None, "")


def _make_gpu_chart(
    report: Report,
    name: str,
    unit: str,
    lines: Sequence[Line],
    capacity: float | None,
    capacity_name: str,
    *,
    has_strips: bool = False,
) -> Iterable[Chart]:
    if not report.summary.gpus:
        return
    known = _keep_known(lines)
    problem = _NO_SAMPLES if report.columns is None else _explain(known)
    has_strips = has_strips or len(known) > _MOST_LINES
    marks = () if has_strips else _find_peak(known)
    yield Chart(name, _TITLES[name], unit, known, capacity, capacity_name, problem, has_strips, marks)


def _bin_gpus(report: Report, edges: list[float], choose: Callable[[GpuColumns], Column]) -> list[Line]:
    columns: SampleColumns | None = report.columns
    if columns is None:
        return []
    bins = make_bins(edges, columns.read_since_seconds, columns.end_seconds)
    return [
        Line(f"GPU {gpu.gpu.ordinal}", bin_column(bins, columns.end_seconds, choose(found)))
        for gpu in list_counted(report.summary)
        if (found := columns.gpus.get(gpu.gpu.uuid)) is not None
    ]


def _choose_memory(gpu: GpuColumns) -> Column:
    """The job's own, where it is known."""
    return gpu.used_bytes if all(map(isnan, gpu.job_bytes)) else gpu.job_bytes


def _draw_metrics(report: Report, edges: list[float]) -> Iterable[Chart]:
    for metric in report.metrics[:_MOST_METRICS]:
        points = sorted(
            (row.at_seconds, row.values[metric.name])
            for row in report.metric_rows
            if isfinite(row.values.get(metric.name, nan))
        )
        if points:
            at, values = (array("d", column) for column in zip(*points, strict=True))
            line = Line(metric.name, bin_column(make_bins(edges, at, at), at, values))
            yield Chart("metrics", metric.name, NUMBER, (line,), marks=(Mark(*points[-1]),))


def _draw_regions(report: Report, edges: list[float]) -> Iterable[Chart]:
    longest = sorted(report.regions, key=lambda region: -region.wall_seconds)[:_MOST_REGIONS]
    shown = [region.path for region in report.regions if region in longest]
    lines = [Line(name_region(path), _cover(report, path, edges)) for path in shown]
    if any(any(line.values.mean) for line in lines):
        yield Chart("regions", _TITLES["regions"], PERCENT, tuple(lines), 100.0, has_strips=True)


def _cover(report: Report, path: tuple[str, ...], edges: list[float]) -> Binned:
    """In how much of each bin the job was inside a region."""
    length = edges[1] - edges[0]
    inside = [0.0] * (len(edges) - 1)
    for call in report.calls:
        if call.path == path:
            end = edges[-1] if call.end_seconds is None else call.end_seconds
            first = max(0, min(int(call.start_seconds / length), len(inside) - 1))
            for index in range(first, len(inside)):
                if edges[index] >= end:
                    break
                inside[index] += max(0.0, min(end, edges[index + 1]) - max(call.start_seconds, edges[index]))
    share = array("d", (min(100.0, 100.0 * seconds / length) for seconds in inside))
    return Binned(share, share, share, array("d", edges[1:]), array("d", [length]) * len(share))


def _explain(lines: Sequence[Line]) -> str:
    return "" if lines else _NOT_MEASURED


def _keep_known(lines: Sequence[Line]) -> tuple[Line, ...]:
    return tuple(line for line in lines if not all(map(isnan, line.values.mean)))


_CHARTS: dict[str, Draw] = {
    "cpu": _draw_cpu,
    "ram": _draw_ram,
    "gpu_busy": _draw_gpu,
    "gpu_ram": _draw_gpu_ram,
    "power": _draw_power,
    "metrics": _draw_metrics,
    "regions": _draw_regions,
}
_TITLES = {
    "cpu": "CPU, cores busy",
    "ram": "RAM",
    "gpu_busy": "GPU busy",
    "gpu_ram": "GPU memory",
    "power": "GPU power",
    "metrics": "Metrics",
    "regions": "Regions",
}
