"""What is drawn of a run: the charts, in their order, whoever draws them. Pure.

One family of figures per chart, all on one time axis that starts at zero. A figure that is not known has no line.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import compress
from math import isnan, nan

from ..core.calls import MOST_SAMPLED
from ..core.model import LINKS, RAM, Parts
from ..core.units import (
    BYTES,
    CORES,
    NUMBER,
    PERCENT,
    RATE,
    WATTS,
    count_cores,
    humanize_bytes,
    humanize_limit,
)
from ..core.values import NamedTuple
from .frameworks import PARTS
from .logged import collect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ..core.columns import Column, GpuColumns, SampleColumns
    from ..core.model import Call, MetricRow
    from .held_memory import HeldMemory
    from .regions import Region
    from .summary import CpuSummary, GpuSummary, Summary

LINES, HEAT, STACK = "lines", "heat", "stack"
TITLES = {
    "cpu": "CPU, cores in use",
    "ram": "RAM of the job",
    "gpu_busy": "GPU busy",
    "gpu_ram": "GPU memory",
    "gpu_parts": "GPU memory by use",
    "power": "Power of the devices",
    "links": "GPU links, per second",
    "io": "Storage, per second",
    "metrics": "Metrics",
    "regions": "Regions",
}
# What a page, and a picture, shows of a region of which not all calls are kept.
SAMPLED_NOTE = "where not all calls are kept: some of them, over their mean share in a lighter shade"
MEAN_NOTE = "where not all calls are kept: their mean share"
NAMES = tuple(TITLES)
"""As in `report.plot(["cpu"])`; of `gpu_parts`, `metrics` and `regions` there may be several charts."""
_METRIC = "metric:"
# More lines than this cannot be told apart.
_MOST_LINES = 4
_MOST_OVERLAID = 8
_MOST_STRIPS = 64
_MOST_STACKS = 8
# Parts of a device's memory that are drawn; what remains is free.
_N_SPLIT = 4
_OF_THE_JOB = ("cpu", "ram")
_MOST_METRICS = 12
_MOST_LANES = 10
_NOTABLE_OTHERS = 0.05
# Differences of larger values are beyond what a number can hold.
_LARGEST_DRAWN = 1e150
_DRAWN = ("mean", "low", "high")


class Line(NamedTuple):
    """One figure over time."""

    label: str
    start: Column
    """This and the next: each value is of the time between; the same column for values of instants."""
    end: Column
    mean: Column
    low: Column | None = None
    """This and the next: the extremes in each interval, where they differ from the mean."""
    high: Column | None = None
    whole_mean: float | None = None
    """This and the next: of the whole run, where the report has such a figure; else as in the columns."""
    whole_high: float | None = None


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
    band: tuple[float, float, float] | None = None
    """Where these are not all its calls: from when to when it was called, and the share of that time inside, from 0 to 1."""


class Logged(NamedTuple):
    """One metric over time, without what cannot be drawn."""

    name: str
    at_seconds: Column
    values: Column
    not_finite: int = 0


def collect_logged(rows: Sequence[MetricRow]) -> tuple[Logged, ...]:
    """The metrics of a run, in the order in which they first came."""
    return tuple(_choose_drawn(name, *columns) for name, columns in collect(rows).metrics.items())


def _choose_drawn(name: str, at_seconds: Column, values: Column) -> Logged:
    is_drawn = [-_LARGEST_DRAWN < value < _LARGEST_DRAWN for value in values]
    if all(is_drawn):
        return Logged(name, at_seconds, values)
    at_seconds, values = (array("d", compress(column, is_drawn)) for column in (at_seconds, values))
    return Logged(name, at_seconds, values, len(is_drawn) - len(values))


def make_charts(
    summary: Summary,
    columns: SampleColumns,
    peaks: Mapping[str, tuple[float, float]],
    logged: Sequence[Logged] = (),
    held: Sequence[HeldMemory] = (),
) -> tuple[Chart, ...]:
    """Every chart that has something to show.

    `peaks` are the moments and sizes of the peaks of `ram` and devices, `held` is what frameworks held on devices.
    """
    gpus = [gpu for gpu in summary.gpus if gpu.is_expected and gpu.gpu.uuid in columns.gpus]
    charts = [_chart_cpu(summary, columns), _chart_ram(summary, columns, peaks.get(RAM))]
    if gpus:
        charts += [
            _chart_busy(gpus, columns),
            _chart_gpu_ram(gpus, columns),
            *_chart_parts(gpus, columns, {device.uuid: device for device in held}),
            _chart_power(gpus, columns),
            _chart_links(gpus, columns),
        ]
    charts += [_chart_io(columns), *map(_chart_metric, logged[:_MOST_METRICS])]
    shown = (
        chart._replace(lines=tuple(filter(_is_known, map(_keep_drawable, chart.lines)))) for chart in charts
    )
    return tuple(chart for chart in shown if chart.lines)


def _keep_drawable(line: Line) -> Line:
    """Without what no axis has room for: of an interval that took no time, as an edited file may have, a rate is infinite."""
    columns = {name: column for name in _DRAWN if (column := getattr(line, name)) is not None}
    changed: dict[str, Any] = {
        name: array("d", (value if -_LARGEST_DRAWN < value < _LARGEST_DRAWN else nan for value in column))
        for name, column in columns.items()
        if any(abs(value) >= _LARGEST_DRAWN for value in column)
    }
    return line._replace(**changed) if changed else line


def of_metric(chart: Chart) -> bool:
    """Whether it shows what the job logged."""
    return chart.name.startswith(_METRIC)


def make_lanes(
    calls: Sequence[Call],
    regions: Sequence[Region],
    end_seconds: float,
    *,
    is_running: bool = False,
    most: int = _MOST_LANES,
) -> tuple[Lane, ...]:
    """The regions with the most time, outer ones first."""
    spans: dict[tuple[str, ...], list[tuple[float, float]]] = {region.path: [] for region in regions}
    for call in calls:
        end = end_seconds if call.end_seconds is None else call.end_seconds
        spans.setdefault(call.path, []).append((call.start_seconds, max(call.start_seconds, end)))
    longest = sorted(regions, key=lambda region: -region.wall_seconds)[:most]
    lanes = (
        Lane(region.path, tuple(sorted(known)), _find_band(region, len(known), end_seconds, is_running))
        for region in sorted(longest, key=lambda region: region.path)
        for known in (spans[region.path],)
    )
    return tuple(lane for lane in lanes if lane.spans or lane.band)


class Run(NamedTuple):
    """One of several runs in one picture."""

    name: str
    charts: tuple[Chart, ...]
    begin_seconds: float = 0.0
    """Since the first of them began."""


def overlay(runs: Sequence[Run]) -> tuple[Chart, ...]:
    """The charts of several runs on one time axis: lines while few enough to be told apart, else a strip for each."""
    families = dict.fromkeys(chart.name for run in runs for chart in run.charts if chart.kind != STACK)
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
    if kind == HEAT and first.unit != PERCENT:
        # Runs differ by less than what they may use: the darkest shade is the largest value of all.
        capacity, label = None, ""
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
    start = array("d", (moment + seconds for moment in line.start))
    is_of_instants = line.end is line.start
    end = start if is_of_instants else array("d", (moment + seconds for moment in line.end))
    return line._replace(start=start, end=end)


def _find_band(
    region: Region, n_known: int, end_seconds: float, is_running: bool
) -> tuple[float, float, float] | None:
    """What is known of all calls together, where single ones are missing."""
    # While a job runs, its last calls are counted a little before they are written; few calls are all kept.
    is_complete = n_known >= region.calls + region.open_calls or (is_running and 0 < n_known <= MOST_SAMPLED)
    first = region.first_seconds
    last = end_seconds if region.open_calls else region.last_seconds
    if is_complete or first is None or last is None or last <= first:
        return None
    return first, last, min(1.0, region.wall_seconds / (last - first))


def _chart_cpu(summary: Summary, columns: SampleColumns) -> Chart:
    lines = [_draw_cpu(_line("job", columns, "cpu_cores"), summary.cpu.combined, summary.n_cores)]
    if _are_others_notable(columns):
        machine = _line("whole machine", columns, "machine_cores")
        lines.append(_draw_cpu(machine, summary.system_cpu, summary.n_cores))
    allowed = summary.n_expected_cores
    return Chart(
        name="cpu",
        title=TITLES["cpu"],
        unit=CORES,
        lines=tuple(lines),
        capacity=allowed,
        capacity_label=f"{count_cores(allowed)} allowed",
    )


def _draw_cpu(line: Line, cpu: CpuSummary, cores: int) -> Line:
    """With the report's figures of the whole run, and no value above its busiest interval.

    Samples need not begin and end with the intervals of which the busiest is kept.
    """
    mean, most = (
        None if percent is None else percent / 100 for percent in (cpu.mean_percent, cpu.max_percent)
    )
    return _cap(line, cores if most is None else most)._replace(whole_mean=mean, whole_high=most)


def _cap(line: Line, most: float) -> Line:
    """With no largest value above what can be: time of ended children arrives at once, and clocks differ a little.

    The mean is left as it is, so that no CPU time is lost; it is drawn no higher than the largest value.
    """
    high = line.high or line.mean
    if not any(value > most for value in high):
        return line
    low = line.low or line.mean
    return line._replace(
        low=array("d", (min(value, most) for value in low)),
        high=array("d", (min(value, most) for value in high)),
    )


def _are_others_notable(columns: SampleColumns) -> bool:
    """Whether others used more than a little of the machine."""
    pairs = zip(columns.machine_cores, columns.cpu_cores.combined, strict=True)
    extra = [machine - job for machine, job in pairs if not isnan(machine) and not isnan(job)]
    return bool(extra) and sum(extra) / len(extra) > _NOTABLE_OTHERS


def _chart_ram(summary: Summary, columns: SampleColumns, peak: tuple[float, float] | None) -> Chart:
    main, descendants, combined = columns.ram_bytes
    times = columns.read_since_seconds, columns.end_seconds
    job = Line("job", *times, combined.mean, combined.low, combined.high)
    lines = [job._replace(whole_high=_to_float(summary.ram.combined.total_bytes or None))]
    if any(value > 0 for value in descendants.high):
        root = Line("main process", *times, *(main.mean, main.low, main.high))
        lines.append(root._replace(whole_high=_to_float(summary.ram.main.total_bytes or None)))
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
        return f"{humanize_bytes(size)} in the machine"
    return f"{humanize_limit(size)} ({summary.ram_source} limit)"


def _chart_busy(gpus: Sequence[GpuSummary], columns: SampleColumns) -> Chart:
    lines = [
        line
        for gpu in gpus
        for line in (
            _line(_name(gpu), columns, "utilization_percent", gpu.gpu.uuid)._replace(
                whole_mean=gpu.mean_percent, whole_high=gpu.max_percent
            ),
            _line(f"{_name(gpu)} SM activity", columns, "sm_percent", gpu.gpu.uuid),
        )
    ]
    return Chart("gpu_busy", TITLES["gpu_busy"], PERCENT, tuple(lines), HEAT, 100.0)


def _chart_gpu_ram(gpus: Sequence[GpuSummary], columns: SampleColumns) -> Chart:
    sizes = {gpu.gpu.memory_bytes for gpu in gpus}
    size = sizes.pop() if len(sizes) == 1 else None
    is_job = any(_is_known_column(columns.gpus[gpu.gpu.uuid].job_bytes) for gpu in gpus)
    name, whose = ("job_bytes", "the job") if is_job else ("used_bytes", "all processes")
    lines = [
        _line(_name(gpu), columns, name, gpu.gpu.uuid)._replace(
            whole_high=_to_float(gpu.job_bytes.combined if is_job else gpu.used_bytes)
        )
        for gpu in gpus
    ]
    chart = _chart_gpus("gpu_ram", f"{TITLES['gpu_ram']} held by {whose}", BYTES, lines)
    if size is None:
        return chart
    each = " each" if len(gpus) > 1 else ""
    return chart._replace(capacity=float(size), capacity_label=f"{humanize_bytes(size)}{each}")


def _chart_parts(
    gpus: Sequence[GpuSummary], columns: SampleColumns, held: Mapping[str, HeldMemory]
) -> list[Chart]:
    """A stack for each device on which frameworks have been read."""
    return [_chart_device(gpu, columns, held[gpu.gpu.uuid]) for gpu in gpus if gpu.gpu.uuid in held][
        :_MOST_STACKS
    ]


def _chart_device(gpu: GpuSummary, columns: SampleColumns, held: HeldMemory) -> Chart:
    size = gpu.gpu.memory_bytes
    rows = list(_split_rows(columns.gpus[gpu.gpu.uuid], columns.end_seconds, held))
    parts = [array("d", part) for part in zip(*rows, strict=True)]
    lines = [
        Line(label, columns.start_seconds, columns.end_seconds, part)
        for label, part in zip(PARTS, parts, strict=False)
    ]
    return Chart(
        "gpu_parts",
        f"Memory of {_name(gpu)} by use",
        BYTES,
        tuple(line for line in lines if any(map(_is_above, line.mean))),
        STACK,
        capacity=size,
        capacity_label=humanize_bytes(size) if size else "",
        note="tensors and cache as last reported",
    )


def _split_rows(gpu: GpuColumns, end_seconds: Column, held: HeldMemory) -> Iterator[tuple[float, ...]]:
    """Tensors, cache, the rest of the job and other processes in each interval: all of them are known, or none.

    No part is larger than what the driver reports: a process may have ended since its last reading.
    """
    for end, job, used in zip(end_seconds, gpu.job_bytes, gpu.used_bytes, strict=True):
        place = bisect_right(held.at_seconds, end) - 1
        if place < 0 or isnan(job) or isnan(used):
            yield (nan,) * _N_SPLIT
        else:
            whole = min(held.held_bytes[place], job)
            tensors = min(held.in_use_bytes[place], whole)
            yield tensors, whole - tensors, job - whole, max(0.0, used - job)


def _chart_power(gpus: Sequence[GpuSummary], columns: SampleColumns) -> Chart:
    lines = [
        _line(_name(gpu), columns, "power_watts", gpu.gpu.uuid)._replace(
            whole_mean=gpu.mean_watts, whole_high=gpu.max_watts
        )
        for gpu in gpus
    ]
    return _chart_gpus("power", TITLES["power"], WATTS, lines)


def _chart_gpus(name: str, title: str, unit: str, lines: Sequence[Line]) -> Chart:
    """A line for each device, or a strip if they are many."""
    return Chart(name, title, unit, tuple(lines), LINES if len(lines) <= _MOST_LINES else HEAT)


def _chart_links(gpus: Sequence[GpuSummary], columns: SampleColumns) -> Chart:
    lines = [
        _line(f"{_name(gpu)} {link} {way}", columns, f"{link.lower()}_{way}_bytes_per_second", gpu.gpu.uuid)
        for gpu in gpus
        for link in LINKS
        for way in ("received", "sent")
    ]
    moved = [line for line in lines if any(map(_is_above, line.mean))]
    return _chart_gpus("links", TITLES["links"], RATE, moved)


def _chart_io(columns: SampleColumns) -> Chart:
    lines = [
        _line("read", columns, "read_bytes_per_second"),
        _line("written", columns, "written_bytes_per_second"),
    ]
    return Chart("io", TITLES["io"], RATE, tuple(line for line in lines if any(map(_is_above, line.mean))))


def _is_above(value: float) -> bool:
    return value > 0


def _chart_metric(logged: Logged) -> Chart:
    line = Line(logged.name, logged.at_seconds, logged.at_seconds, logged.values)
    note = f"{logged.not_finite} values cannot be drawn (nan, inf or too large)" if logged.not_finite else ""
    return Chart(f"{_METRIC}{logged.name}", logged.name, NUMBER, (line,), note=note)


def _line(label: str, columns: SampleColumns, field: str, uuid: str = "") -> Line:
    """A figure of the job, or of a device."""
    extremes = columns.extremes.get((field, uuid), ())
    return Line(label, columns.start_seconds, columns.end_seconds, _pick(columns, field, uuid), *extremes)


def _pick(columns: SampleColumns, field: str, uuid: str) -> Column:
    column: Column | Parts[Column] = getattr(columns.gpus[uuid] if uuid else columns, field)
    return column.combined if isinstance(column, Parts) else column


def _to_float(value: int | None) -> float | None:
    return None if value is None else float(value)


def _name(gpu: GpuSummary) -> str:
    return f"GPU {gpu.gpu.label}"


def _is_known(line: Line) -> bool:
    return _is_known_column(line.mean)


def _is_known_column(column: Column) -> bool:
    return any(not isnan(value) for value in column)
