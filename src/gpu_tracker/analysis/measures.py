"""The figures of a recording that are compared, listed and checked against limits. Pure."""

from __future__ import annotations

import math

from ..core.figures import LAST_METRIC, REGION, RUN, Figure
from ..core.model import ESTIMATE
from ..core.values import NamedTuple
from .regions import summarize_metrics, summarize_regions
from .summary import percent_of, summarize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.model import End, RecordingData
    from .regions import Region
    from .summary import Summary

UNKNOWN_OUTCOME = "exit code not known"


class Subject(NamedTuple):
    """What a number is about: the whole run, a region (by path), or the last value of a metric (by name)."""

    figure: Figure
    region: tuple[str, ...] = ()
    metric: str | None = None


class RunFigures(NamedTuple):
    """One recording, reduced to what is compared. An unknown figure is None; a metric may be nan."""

    values: dict[Subject, float | None]
    host: str = ""
    cores: float = 0.0
    ram_bytes: int = 0
    failure: str = ""
    """Why it is no successful run: it failed, was killed, has no end or nobody knows."""


def measure(recording: RecordingData) -> RunFigures:
    """The figures of one recording."""
    header = recording.header
    values: dict[Subject, float | None] = {}
    whole = overall_values(summarize(recording))
    for figure in RUN:
        values[Subject(figure)] = whole[figure.name]
    for region in summarize_regions(recording):
        of_region = _region_values(region)
        for figure in REGION:
            values[Subject(figure, region.path)] = of_region[figure.name]
    for metric in summarize_metrics(recording):
        values[Subject(LAST_METRIC, metric=metric.name)] = math.nan if metric.last is None else metric.last
    return RunFigures(
        values,
        host=header.host,
        cores=header.allocation.cores,
        ram_bytes=header.allocation.ram_bytes,
        failure=find_failure(recording.end),
    )


def find_failure(end: End | None) -> str:
    """Why a run is no successful one; empty if it is."""
    if end is None:
        return "no end: killed, or still running"
    if end.exit_code:
        return f"exit code {end.exit_code}" if end.exit_code > 0 else f"killed by signal {-end.exit_code}"
    if end.reason == "ended":
        return UNKNOWN_OUTCOME if end.exit_code is None else ""
    return "" if end.reason in ("exited", "stopped") else str(end.reason)


def overall_values(summary: Summary) -> dict[str, float | None]:
    """The figures of a whole run, by name."""
    values = {
        "time": summary.seconds,
        "cpu_time": summary.cpu.combined.seconds,
        "mean_cores": _to_cores(summary.cpu.combined.mean_percent),
        "peak_ram": summary.ram.combined.total_bytes or None,
        "peak_gpu_ram": _peak_gpu_bytes(summary),
        "gpu_utilization": _gpu_percent(summary),
        "energy": _energy(summary),
    }
    return {name: _known(value) for name, value in values.items()}


def _peak_gpu_bytes(summary: Summary) -> int | None:
    """The peak on all devices together; with estimates, the sum of the peaks."""
    if not any(gpu.basis == ESTIMATE for gpu in summary.gpus):
        return summary.gpu_bytes.combined
    sizes = [gpu.job_bytes.combined for gpu in summary.gpus if gpu.may_be_used]
    return None if None in sizes else sum(size or 0 for size in sizes)


def _to_cores(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def _known(value: float | None) -> float | None:
    """A file may contain nan, which does not compare."""
    return value if value is not None and math.isfinite(value) else None


def _gpu_percent(summary: Summary) -> float | None:
    known = [gpu.mean_percent for gpu in summary.gpus if gpu.is_expected and gpu.mean_percent is not None]
    return sum(known) / len(known) if known else None


def _energy(summary: Summary) -> float | None:
    known = [gpu.energy_joules for gpu in summary.gpus if gpu.is_expected and gpu.energy_joules is not None]
    return sum(known) if known else None


def _region_values(region: Region) -> dict[str, float | None]:
    """A region in which no process was read has no time."""
    has_time = bool(region.calls or region.wall_seconds)
    values = {
        "time": region.wall_seconds if has_time else None,
        "calls": region.calls,
        "time_per_call": region.mean_seconds,
        "cpu_time": region.cpu_seconds if has_time else None,
        "mean_cores": _to_cores(percent_of(region.cpu_seconds, region.wall_seconds, math.inf)),
        "peak_ram": region.peak_ram_bytes,
        "peak_gpu_ram": region.gpu_bytes,
        "gpu_utilization": region.gpu_percent,
        "energy": region.energy_joules,
    }
    return {name: _known(value) for name, value in values.items()}
