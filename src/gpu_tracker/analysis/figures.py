"""What is compared, listed and gated: a few figures with names, units and a resolution. Pure."""

from __future__ import annotations

import math

from ..core.model import ESTIMATE
from ..core.units import humanize_bytes, humanize_joules, humanize_seconds
from ..core.values import NamedTuple
from .regions import summarize_metrics, summarize_regions
from .summary import summarize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.model import Recording
    from .regions import RegionSummary
    from .summary import Summary

SECONDS, BYTES, PERCENT, JOULES, CORES, COUNT, NUMBER = (
    "seconds",
    "bytes",
    "percent",
    "joules",
    "cores",
    "count",
    "number",
)


class Quantity(NamedTuple):
    """One figure that a run or a region has."""

    name: str
    label: str
    unit: str
    resolution: float = 0.0
    """Differences below say nothing: clocks, looks and allocators are no finer."""


OVERALL = (
    Quantity("time", "time", SECONDS, 0.01),
    Quantity("cpu_time", "CPU time", SECONDS, 0.01),
    Quantity("mean_cores", "mean cores", CORES, 0.01),
    Quantity("peak_ram", "peak RAM", BYTES, 1e6),
    Quantity("peak_gpu_ram", "peak GPU RAM", BYTES, 1e6),
    Quantity("gpu_utilization", "GPU busy", PERCENT, 1.0),
    Quantity("energy", "GPU energy", JOULES, 1.0),
)
REGION = (
    OVERALL[0],
    Quantity("calls", "calls", COUNT),
    Quantity("time_per_call", "time per call", SECONDS),
    *OVERALL[1:],
)
METRIC = Quantity("last", "last", NUMBER)


class Figure(NamedTuple):
    """What a number is about: the whole run, a region (its path) or a metric (its name)."""

    quantity: Quantity
    region: tuple[str, ...] = ()
    metric: str | None = None


class RunFigures(NamedTuple):
    """One recording, as far as it is compared. A figure that is not known is None; a metric may be nan."""

    values: dict[Figure, float | None]
    host: str = ""
    cores: float = 0.0
    ram_bytes: int = 0
    is_complete: bool = True
    exit_code: int | None = None


def measure(recording: Recording) -> RunFigures:
    """The figures of one recording: a few hundred numbers, whatever its length."""
    header, end = recording.header, recording.end
    values: dict[Figure, float | None] = {}
    whole = overall_values(summarize(recording))
    for quantity in OVERALL:
        values[Figure(quantity)] = whole[quantity.name]
    for region in summarize_regions(recording):
        of_region = _region_values(region)
        for quantity in REGION:
            values[Figure(quantity, region.path)] = of_region[quantity.name]
    for metric in summarize_metrics(recording):
        values[Figure(METRIC, metric=metric.name)] = math.nan if metric.last is None else metric.last
    return RunFigures(
        values,
        str(header.host),
        float(header.allocation.cores),
        int(header.allocation.ram_bytes),
        end is not None,
        end.exit_code if end else None,
    )


def overall_values(summary: Summary) -> dict[str, float | None]:
    """The figures of a whole run, by name."""
    values = {
        "time": summary.seconds,
        "cpu_time": summary.cpu.combined.seconds,
        "mean_cores": summary.cpu.combined.mean_percent / 100,
        "peak_ram": summary.ram.combined.total_bytes or None,
        "peak_gpu_ram": peak_gpu_bytes(summary),
        "gpu_utilization": _gpu_percent(summary),
        "energy": _energy(summary),
    }
    return {name: _known(value) for name, value in values.items()}


def peak_gpu_bytes(summary: Summary) -> int | None:
    """The most that the job held on its devices together; of estimates, the sum."""
    known = [gpu for gpu in summary.gpus if gpu.job_bytes.combined is not None]
    if not known:
        return None
    if any(gpu.basis == ESTIMATE for gpu in known):
        return sum(gpu.job_bytes.combined or 0 for gpu in known)
    return summary.gpu_bytes.combined


def humanize(value: float | None, unit: str) -> str:
    """A figure for people; `-` if it is not known."""
    if value is None:
        return "-"
    if unit == SECONDS:
        return humanize_seconds(value)
    if unit == BYTES:
        return humanize_bytes(value)
    if unit == JOULES:
        return humanize_joules(value)
    if unit == PERCENT:
        return f"{value:.0f} %"
    return f"{value:.3g}" if unit == CORES else f"{value:.6g}"


def _known(value: float | None) -> float | None:
    """No file may bring in a nan, which is neither more nor less than anything."""
    return value if value is not None and math.isfinite(value) else None


def _gpu_percent(summary: Summary) -> float | None:
    known = [gpu.mean_percent for gpu in summary.gpus if gpu.is_expected and gpu.mean_percent is not None]
    return sum(known) / len(known) if known else None


def _energy(summary: Summary) -> float | None:
    known = [gpu.energy_joules for gpu in summary.gpus if gpu.is_expected and gpu.energy_joules is not None]
    return sum(known) if known else None


def _region_values(region: RegionSummary) -> dict[str, float | None]:
    """Time of calls that have not ended is not known, so a region that was never left has none."""
    has_time = bool(region.calls)
    values = {
        "time": region.wall_seconds if has_time else None,
        "calls": region.calls,
        "time_per_call": region.mean_seconds,
        "cpu_time": region.cpu_seconds if has_time else None,
        "mean_cores": region.cpu_seconds / region.wall_seconds if region.wall_seconds > 0 else None,
        "peak_ram": region.peak_ram_bytes,
        "peak_gpu_ram": region.gpu_bytes,
        "gpu_utilization": region.gpu_percent,
        "energy": region.energy_joules,
    }
    return {name: _known(value) for name, value in values.items()}
