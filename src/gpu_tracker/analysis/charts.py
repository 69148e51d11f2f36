"""What is drawn of a run: the charts, in their order, whoever draws them. Pure.

One family of figures per chart, all on one time axis that starts at zero. A figure that is not known has no line.
"""

from __future__ import annotations

from array import array
from math import isnan

from ..core.figures import BYTES, CORES, NUMBER, PERCENT, RATE, WATTS
from ..core.model import RAM
from ..core.units import humanize_bytes, humanize_limit
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..core.columns import Column, GpuColumns, SampleColumns
    from ..core.model import Call, MetricRow
    from .summary import GpuSummary, Summary

LINES, HEAT = "lines", "heat"
TITLES = {
    "cpu": "CPU, cores in use",
    "ram": "RAM of the job",
    "gpu_busy": "GPU busy",
    "gpu_ram": "GPU memory",
    "power": "Power of the devices",
    "io": "Storage, per second",
    "metrics": "Metrics",
    "regions": "Regions",
}
NAMES = tuple(TITLES)
"""As in `report.plot(["cpu"])`; of `metrics` and `regions` there may be several charts."""
_METRIC = "metric:"
# More lines than this cannot be told apart.
_MOST_LINES = 4
_MOST_OVERLAID = 8
_MOST_STRIPS = 64
_OF_THE_JOB = ("cpu", "ram")
_MOST_METRICS = 12
_MOST_LANES = 10
_MOST_CALLS_PER_LANE = 400
_NOTABLE_OTHERS = 0.05
# Differences of larger values are beyond what a number can hold.
_LARGEST_DRAWN = 1e150


class Line(NamedTuple):
    """One figure over time."""

    label: str
    start: Column
    """This and the next: each value is of the time between; equal for values of an instant."""
    end: Column
    mean: Column
    low: Column | None = None
    """This and the next: the extremes in each interval, where they differ from the mean."""
    high: Column | None = None


class Chart(NamedTuple):
    """One family of figures."""

    name: str
    """As in `report.plot(["cpu"])`."""
    title: str
    unit: str
    lines: tuple[Line, ...]
    kind: str = LINES
    capacity: float | None = None
    """What there is at most."""
    capacity_label: str = ""
    """The same in words."""
    peak: tuple[float, float] | None = None
    """When the largest value was, and how large."""
    note: str = ""


class Lane(NamedTuple):
    """The calls of one region on the time axis."""

    path: tuple[str, ...]
    spans: tuple[tuple[float, float], ...]
    is_complete: bool
    """Whether these are all its calls."""


class Logged(NamedTuple):
    """One metric over time, without what cannot be drawn."""

    name: str
    at_seconds: Column
    values: Column
    not_finite: int = 0


def collect_logged(rows: Iterable[MetricRow]) -> tuple[Logged, ...]:
    """The metrics of a run, in the order in which they first came."""
    points: dict[str, tuple[Column, Column]] = {}
    spoiled: dict[str, int] = {}
    for row in rows:
        for name, value in row.values.items():
            at, values = points.setdefault(name, (array("d"), array("d")))
            if -_LARGEST_DRAWN < value < _LARGEST_DRAWN:
                at.append(row.at_seconds)
                values.append(value)
            else:
                spoiled[name] = spoiled.get(name, 0) + 1
    return tuple(Logged(name, *columns, spoiled.get(name, 0)) for name, columns in points.items())


def make_charts(
    summary: Summary,
    columns: SampleColumns,
    peaks: Mapping[str, tuple[float, float]],
    logged: Sequence[Logged] = (),
) -> tuple[Chart, ...]:
    """Every chart that has something to show. `peaks` are the moments and sizes of the peaks of `ram` and devices."""
    gpus = [gpu for gpu in summary.gpus if gpu.is_expected and gpu.gpu.uuid in columns.gpus]
    charts = [_chart_cpu(summary, columns), _chart_ram(summary, columns, peaks.get(RAM))]
    if gpus:
        charts += [
            _chart_busy(gpus, columns),
            _chart_gpu_ram(gpus, columns),
            _chart_gpus("power", TITLES["power"], WATTS, gpus, columns, "power_watts"),
        ]
    charts += [_chart_io(columns), *map(_chart_metric, logged[:_MOST_METRICS])]
    return tuple(chart for chart in charts if any(map(_is_known, chart.lines)))


def of_metric(chart: Chart) -> bool:
    """Whether it shows what the job logged."""
    return chart.name.startswith(_METRIC)


def make_lanes(
    calls: Sequence[Call], totals: Mapping[tuple[str, ...], int], end_seconds: float
) -> tuple[Lane, ...]:
    """The regions with the most time, outer ones first. `totals` are their numbers of calls."""
    spans: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for call in calls:
        end = end_seconds if call.end_seconds is None else call.end_seconds
        spans.setdefault(call.path, []).append((call.start_seconds, max(call.start_seconds, end)))
    longest = sorted(spans, key=lambda path: -sum(end - start for start, end in spans[path]))[:_MOST_LANES]
    return tuple(_make_lane(path, spans[path], totals.get(path, 0)) for path in sorted(longest))


class Run(NamedTuple):
    """One of several runs in one picture."""

    name: str
    charts: tuple[Chart, ...]
    begin_seconds: float = 0.0
    """Since the first of them began."""


def overlay(runs: Sequence[Run]) -> tuple[Chart, ...]:
    """The charts of several runs on one time axis: lines while few enough to be told apart, else a strip for each."""
    families = dict.fromkeys(chart.name for run in runs for chart in run.charts)
    return tuple(
        _overlay_family([(run, chart) for run in runs for chart in run.charts if chart.name == name])
        for name in families
    )


def _overlay_family(found: Sequence[tuple[Run, Chart]]) -> Chart:
    lines = [
        _shift(line, run.begin_seconds)._replace(label=_name_line(run, chart, line))
        for run, chart in found
        for line in _choose_lines(chart)
    ]
    first = found[0][1]
    capacities = {(chart.capacity, chart.capacity_label) for _, chart in found}
    capacity, label = capacities.pop() if len(capacities) == 1 else (None, "")
    kind = HEAT if first.kind == HEAT or len(lines) > _MOST_OVERLAID else LINES
    return first._replace(
        lines=tuple(lines[:_MOST_STRIPS]), kind=kind, capacity=capacity, capacity_label=label, peak=None
    )


def _choose_lines(chart: Chart) -> Sequence[Line]:
    """Of the job, without the machine around it or a part of it; of every device."""
    return chart.lines[:1] if chart.name in _OF_THE_JOB else chart.lines


def _name_line(run: Run, chart: Chart, line: Line) -> str:
    return f"{run.name} {line.label}" if len(_choose_lines(chart)) > 1 else run.name


def _shift(line: Line, seconds: float) -> Line:
    if not seconds:
        return line
    return line._replace(
        start=array("d", (moment + seconds for moment in line.start)),
        end=array("d", (moment + seconds for moment in line.end)),
    )


def _make_lane(path: tuple[str, ...], spans: list[tuple[float, float]], total: int) -> Lane:
    longest = sorted(spans, key=lambda span: span[0] - span[1])[:_MOST_CALLS_PER_LANE]
    return Lane(path, tuple(sorted(longest)), len(longest) >= total)


def _chart_cpu(summary: Summary, columns: SampleColumns) -> Chart:
    lines = [_line("job", columns, columns.cpu_cores.combined)]
    if _are_others_notable(columns):
        lines.append(_line("whole machine", columns, columns.machine_cores))
    allowed = summary.n_expected_cores
    return Chart(
        name="cpu",
        title=TITLES["cpu"],
        unit=CORES,
        lines=tuple(lines),
        capacity=allowed,
        capacity_label=f"{allowed:g} cores allowed",
    )


def _are_others_notable(columns: SampleColumns) -> bool:
    """Whether others used more than a little of the machine."""
    pairs = zip(columns.machine_cores, columns.cpu_cores.combined, strict=True)
    extra = [machine - job for machine, job in pairs if not isnan(machine) and not isnan(job)]
    return bool(extra) and sum(extra) / len(extra) > _NOTABLE_OTHERS


def _chart_ram(summary: Summary, columns: SampleColumns, peak: tuple[float, float] | None) -> Chart:
    main, descendants, combined = columns.ram_bytes
    lines = [
        Line(
            "job", columns.read_since_seconds, columns.end_seconds, combined.mean, combined.low, combined.high
        )
    ]
    if any(value > 0 for value in descendants.high):
        lines.append(Line("main process", columns.read_since_seconds, columns.end_seconds, main.mean))
    return Chart(
        name="ram",
        title=TITLES["ram"],
        unit=BYTES,
        lines=tuple(lines),
        capacity=float(summary.ram_capacity_bytes) or None,
        capacity_label=_name_limit(summary),
        peak=peak,
    )


def _name_limit(summary: Summary) -> str:
    size = summary.ram_capacity_bytes
    if summary.ram_source == "machine":
        return f"{humanize_bytes(size)} of the machine"
    return f"{humanize_limit(size)} ({summary.ram_source} limit)"


def _chart_busy(gpus: Sequence[GpuSummary], columns: SampleColumns) -> Chart:
    lines = [_line(_name(gpu), columns, columns.gpus[gpu.gpu.uuid].utilization_percent) for gpu in gpus]
    return Chart("gpu_busy", TITLES["gpu_busy"], PERCENT, tuple(lines), HEAT, 100.0)


def _chart_gpu_ram(gpus: Sequence[GpuSummary], columns: SampleColumns) -> Chart:
    sizes = {gpu.gpu.memory_bytes for gpu in gpus}
    size = sizes.pop() if len(sizes) == 1 else None
    is_job = any(_is_known_column(columns.gpus[gpu.gpu.uuid].job_bytes) for gpu in gpus)
    name, whose = ("job_bytes", "the job") if is_job else ("used_bytes", "all processes")
    chart = _chart_gpus("gpu_ram", f"{TITLES['gpu_ram']} held by {whose}", BYTES, gpus, columns, name)
    if size is None:
        return chart
    each = " each" if len(gpus) > 1 else ""
    return chart._replace(capacity=float(size), capacity_label=f"{humanize_bytes(size)}{each}")


def _chart_gpus(
    name: str, title: str, unit: str, gpus: Sequence[GpuSummary], columns: SampleColumns, field: str
) -> Chart:
    lines = tuple(_line(_name(gpu), columns, _pick(columns.gpus[gpu.gpu.uuid], field)) for gpu in gpus)
    return Chart(name, title, unit, lines, LINES if len(lines) <= _MOST_LINES else HEAT)


def _chart_io(columns: SampleColumns) -> Chart:
    lines = [
        _line("read", columns, columns.read_bytes_per_second),
        _line("written", columns, columns.written_bytes_per_second),
    ]
    return Chart("io", TITLES["io"], RATE, tuple(line for line in lines if any(map(_is_above, line.mean))))


def _is_above(value: float) -> bool:
    return value > 0


def _chart_metric(logged: Logged) -> Chart:
    line = Line(logged.name, logged.at_seconds, logged.at_seconds, logged.values)
    note = f"{logged.not_finite} values cannot be drawn (nan, inf or too large)" if logged.not_finite else ""
    return Chart(f"{_METRIC}{logged.name}", logged.name, NUMBER, (line,), note=note)


def _pick(gpu: GpuColumns, field: str) -> Column:
    column: Column = getattr(gpu, field)
    return column


def _line(label: str, columns: SampleColumns, mean: Column) -> Line:
    return Line(label, columns.start_seconds, columns.end_seconds, mean)


def _name(gpu: GpuSummary) -> str:
    return f"GPU {gpu.gpu.ordinal}"


def _is_known(line: Line) -> bool:
    return _is_known_column(line.mean)


def _is_known_column(column: Column) -> bool:
    return any(not isnan(value) for value in column)
