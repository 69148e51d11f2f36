"""Everything that a full-screen view shows of a run at one moment. Pure."""

from __future__ import annotations

from array import array
from itertools import pairwise
from math import isnan

from ..analysis.forecast import find_rate
from ..analysis.intervals import is_remainder
from ..core.text import join_command, neutralize
from ..core.units import (
    BYTES,
    PERCENT,
    count_cores,
    format_cores,
    humanize_bytes,
    humanize_number,
    humanize_part,
    humanize_percent,
)
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..analysis.findings.finding import Finding
    from ..analysis.forecast import Forecast, Point
    from ..core.columns import Column, SampleColumns
    from ..core.model import Call, Gpu, Header, MetricRow, ProcessTotals, RegionTotals

    Path = tuple[str, ...]

CORES, RATE = "cores", "steps"


class Series(NamedTuple):
    """One figure over time."""

    label: str
    now: str
    """In words."""
    unit: str
    capacity: float
    """The most that it can be; 0 if that is not known."""
    start: Column
    end: Column
    values: Column
    """The mean of each interval."""
    highs: Column
    """The highest value in it; of what is read only as a mean, that."""


class OpenRegion(NamedTuple):
    """A call of a region that is running."""

    name: str
    depth: int
    seconds: float
    pid: int


class Metric(NamedTuple):
    """What was logged lately under a name, oldest first."""

    name: str
    values: tuple[float, ...]


class Process(NamedTuple):
    """A living process, as the last line about it tells."""

    pid: int
    name: str
    cores: float | None
    """How many it kept busy lately."""
    cpu_seconds: float
    peak_ram_bytes: int


class Scene(NamedTuple):
    """One moment of a run."""

    title: str = ""
    status: str = ""
    """How it ended; empty while it runs."""
    seconds: float = 0.0
    """Since it began."""
    host: str = ""
    processes: int = 0
    threads: int = 0
    series: tuple[Series, ...] = ()
    regions: tuple[OpenRegion, ...] = ()
    metrics: tuple[Metric, ...] = ()
    largest: tuple[Process, ...] = ()
    """Processes, in no order."""
    forecasts: tuple[Forecast, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Worst first."""
    problem: str = ""
    """Why it is not up to date, if it is not."""


def name_run(header: Header) -> str:
    """By its name, else by its command; one of several ranks also by which it is."""
    identity = header.identity
    rank = "" if identity.rank is None else f"rank {identity.rank} on {identity.node or header.host}: "
    return neutralize(rank + (identity.name or join_command(header.command)))


def list_series(header: Header, columns: SampleColumns, gpus: Sequence[Gpu]) -> tuple[Series, ...]:
    """The job, then its devices."""
    time = (columns.start_seconds, columns.end_seconds)
    cores, ram = _skip_remainder(columns), columns.ram_bytes.combined
    capacity = float(header.allocation.ram_bytes)
    series = [
        Series(
            "CPU",
            _tell_cores(cores, header.n_expected_cores),
            CORES,
            header.n_expected_cores,
            *time,
            cores,
            cores,
        ),
        Series("RAM", _tell_size(ram.mean, capacity), BYTES, capacity, *time, ram.mean, ram.high),
    ]
    for gpu in gpus:
        if gpu.uuid not in columns.gpus:
            continue
        device, memory = columns.gpus[gpu.uuid], float(gpu.memory_bytes or 0)
        busy, used = device.utilization_percent, device.used_bytes
        name = f"GPU {gpu.label}"
        series.append(Series(name, _tell_percent(busy), PERCENT, 100.0, *time, busy, busy))
        series.append(Series(f"{name} RAM", _tell_size(used, memory), BYTES, memory, *time, used, used))
    return tuple(series)


def draw_steps(points: Sequence[Point], n_steps: float | None) -> tuple[Series, ...]:
    """How fast the job advances, if it tells: one rate from each point to the next."""
    rate = find_rate(points)
    if rate is None:
        return ()
    steps = [(before, after) for before, after in pairwise(points) if after.at_seconds > before.at_seconds]
    speeds = array("d", (_find_speed(before, after) for before, after in steps))
    of = "" if n_steps is None else f" of {humanize_number(n_steps)}"
    return (
        Series(
            "steps",
            f"{points[-1].steps:.0f}{of}, {humanize_rate(rate)}",
            RATE,
            0.0,
            array("d", (before.at_seconds for before, _ in steps)),
            array("d", (after.at_seconds for _, after in steps)),
            speeds,
            speeds,
        ),
    )


def _find_speed(before: Point, after: Point) -> float:
    """Steps per second; counting that begins anew is no speed."""
    return max(0.0, (after.steps - before.steps) / (after.at_seconds - before.at_seconds))


def humanize_rate(per_second: float) -> str:
    """Per second, or per minute or hour of what is slow."""
    for seconds, unit in ((1.0, "s"), (60.0, "min")):
        if per_second * seconds >= 1:
            return f"{humanize_number(per_second * seconds)}/{unit}"
    return f"{humanize_number(per_second * 3600)}/h"


def list_regions(
    regions: Sequence[RegionTotals], calls: Sequence[Call], main_pid: int, now_seconds: float
) -> tuple[OpenRegion, ...]:
    """The main process first, outer before inner; with how many times each was entered.

    Only of long calls is it known when they began.
    """
    started: dict[tuple[int, Path], float] = {}
    for call in calls:
        key = call.pid, call.path
        started[key] = min(call.start_seconds, started.get(key, call.start_seconds))
    is_open = [one for one in regions if one.open_calls]
    return tuple(
        OpenRegion(
            _count(neutralize(one.path[-1]), one.calls),
            len(one.path) - 1,
            _find_age(one, started.get((one.pid, one.path)), now_seconds),
            one.pid,
        )
        for one in sorted(is_open, key=lambda one: (one.pid != main_pid, one.pid, one.path))
    )


def _find_age(region: RegionTotals, started: float | None, now_seconds: float) -> float:
    if started is not None:
        return max(0.0, now_seconds - started)
    return region.open_wall_seconds / region.open_calls


def _count(name: str, n_ended: int) -> str:
    return f"{name} {n_ended + 1}" if n_ended else name


def list_metrics(rows: Sequence[MetricRow]) -> tuple[Metric, ...]:
    """What was logged last comes first."""
    values: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.values.items():
            values.setdefault(name, []).append(value)
    newest = {name: index for index, row in enumerate(rows) for name in row.values}
    names = sorted(values, key=lambda name: -newest[name])
    return tuple(Metric(neutralize(name), tuple(values[name])) for name in names)


def list_living(
    lines: Mapping[tuple[int, float], tuple[ProcessTotals | None, ProcessTotals]],
) -> tuple[Process, ...]:
    """Those of the last lines about living processes; each has the line before it, if there is one."""
    newest = max((now.last_seconds for _, now in lines.values()), default=0.0)
    return tuple(
        Process(now.pid, neutralize(now.name), _find_cores(before, now), now.cpu_seconds, now.peak_ram_bytes)
        for before, now in lines.values()
        if now.last_seconds == newest
    )


def _find_cores(before: ProcessTotals | None, now: ProcessTotals) -> float | None:
    """Between two lines: when a process began is not known, only when it was first met."""
    if before is None:
        return None
    used, seconds = now.cpu_seconds - before.cpu_seconds, now.last_seconds - before.last_seconds
    return used / seconds if seconds > 0 and used >= 0 else None


def sort_processes(processes: Sequence[Process], by: str) -> list[Process]:
    """The largest first; PIDs in their order."""
    keys = {
        "RAM": lambda one: (-one.peak_ram_bytes, one.pid),
        "CPU": lambda one: (-(one.cores or 0.0), one.pid),
        "time": lambda one: (-one.cpu_seconds, one.pid),
        "PID": lambda one: (one.pid,),
    }
    return sorted(processes, key=keys[by])


def _last(column: Column) -> float | None:
    """The newest value. The last interval of a run may be too short for one."""
    return next((value for value in reversed(column[-2:]) if not isnan(value)), None)


def _skip_remainder(columns: SampleColumns) -> Column:
    """Busy cores; a short rest at the end is no peak, since CPU time of ended children arrives all at once."""
    cores = columns.cpu_cores.combined
    if not cores or not is_remainder(columns, -1):
        return cores
    return cores[:-1] + cores[-2:-1]


def _tell_cores(column: Column, cores: float) -> str:
    value = _last(column)
    return "-" if value is None else f"{format_cores(100 * value)} of {count_cores(cores)}"


def _tell_size(column: Column, capacity: float) -> str:
    value = _last(column)
    if value is None:
        return "-"
    return humanize_part(value, int(capacity)) if capacity else humanize_bytes(value)


def _tell_percent(column: Column) -> str:
    value = _last(column)
    return "-" if value is None else humanize_percent(value)
