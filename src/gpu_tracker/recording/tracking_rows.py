"""The rows of a tracking file, compatible with later versions of the existing tool: one per sample. Pure.

Memory is the largest in the interval, CPU the mean over it. Samples do not split GPU memory and threads into main and
descendants: with more than one process those columns are empty. So are figures that no device reports.
"""

from __future__ import annotations

from ..core.model import Parts, add_known
from ..core.moments import parse_moment
from ..core.units import BYTES_PER_UNIT
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ..core.model import Gpu, Header, Sample

    Row = tuple[Any, ...]

STATIC_COLUMNS = (
    ("ram_unit", "text"),
    ("gpu_ram_unit", "text"),
    ("time_unit", "text"),
    ("ram_system_capacity", "real"),
    ("gpu_ram_system_capacity", "real"),
    ("system_core_count", "integer"),
    ("n_expected_cores", "real"),
    ("system_gpu_count", "integer"),
    ("n_expected_gpus", "integer"),
)
_CPU_PARTS = ("system", *Parts._fields)
DATA_COLUMNS = (
    *((f"{part}_ram", "real") for part in (*Parts._fields, "system")),
    *((f"{part}_gpu_ram", "real") for part in (*Parts._fields, "system")),
    ("gpu_sum_utilization_percent", "real"),
    ("gpu_hardware_utilization_percent", "real"),
    *((f"{part}_n_threads", "integer") for part in Parts._fields),
    *(
        (f"cpu_{part}_{which}_utilization_percent", "real")
        for part in _CPU_PARTS
        for which in ("sum", "hardware")
    ),
    ("timestamp", "real"),
)


class TrackingUnits(NamedTuple):
    """The units of the numbers."""

    ram: str = "gigabytes"
    gpu_ram: str = "gigabytes"
    time: str = "hours"


def make_static_row(header: Header, gpus: tuple[Gpu, ...] | None, units: TrackingUnits) -> Row:
    """What does not change. `gpus` is None while the devices are not known."""
    sizes = [gpu.memory_bytes for gpu in gpus or () if gpu.shares_memory_with is None]
    memory_bytes = _add_up(sizes, has_devices=gpus != ())
    return (
        *units,
        header.allocation.ram_bytes / BYTES_PER_UNIT[units.ram],
        _convert(memory_bytes, BYTES_PER_UNIT[units.gpu_ram]),
        header.allocation.machine_cores,
        header.n_expected_cores,
        None if gpus is None else len(gpus),
        None if gpus is None else len(_choose_expected(header, gpus)),
    )


def make_data_rows(
    samples: Iterable[Sample],
    header: Header,
    gpus: tuple[Gpu, ...] | None,
    units: TrackingUnits,
    before: Sample | None = None,
) -> Iterator[Row]:
    """One row per sample, given the sample before the first."""
    for sample in samples:
        yield _make_data_row(sample, before, header, gpus, units)
        before = sample


def _make_data_row(
    sample: Sample,
    before: Sample | None,
    header: Header,
    gpus: tuple[Gpu, ...] | None,
    units: TrackingUnits,
) -> Row:
    ram, gpu_ram = BYTES_PER_UNIT[units.ram], BYTES_PER_UNIT[units.gpu_ram]
    expected = _choose_expected(header, gpus or ())
    busy_percent = _add_up(
        [gpu.utilization_percent for gpu in sample.gpus if gpu.uuid in expected],
        has_devices=gpus is None or bool(expected),
    )
    job_bytes = _add_up([gpu.job_bytes for gpu in sample.gpus], has_devices=gpus != ())
    counted = {gpu.uuid for gpu in gpus or () if gpu.shares_memory_with is not None}
    used = [gpu.used_bytes for gpu in sample.gpus if gpu.uuid not in counted]
    used_bytes = _add_up(used, has_devices=gpus != ())
    is_alone = sample.processes <= 1
    is_split = job_bytes is not None and (is_alone or not job_bytes)
    return (
        *(_convert(spread.high, ram) for spread in sample.ram_bytes),
        sample.system_ram_bytes / ram,
        _convert(job_bytes, gpu_ram) if is_split else None,
        0.0 if is_split else None,
        _convert(job_bytes, gpu_ram),
        _convert(used_bytes, gpu_ram),
        busy_percent,
        _convert(busy_percent, max(1, len(expected))),
        sample.threads if is_alone else None,
        0 if is_alone else None,
        sample.threads,
        *_cpu_columns(sample, before, header),
        (parse_moment(header.started_at) or 0.0) + sample.at_seconds,
    )


def _cpu_columns(sample: Sample, before: Sample | None, header: Header) -> Iterator[float | None]:
    """Percent of one core and of all cores, for each part."""
    cores, expected = header.allocation.machine_cores, header.n_expected_cores
    used, used_before = (
        _cpu_seconds(sample),
        _cpu_seconds(before) if before else (0.0,) * len(_CPU_PARTS),
    )
    seconds = sample.at_seconds - (before.at_seconds if before else 0.0)
    for part, now, then in zip(_CPU_PARTS, used, used_before, strict=True):
        if seconds <= 0:
            yield from (None, None)
            continue
        percent = min(max(0.0, 100.0 * (now - then) / seconds), 100.0 * cores)
        yield percent
        yield percent / max(1, cores if part == "system" else expected)


def _cpu_seconds(sample: Sample) -> tuple[float, ...]:
    return sample.system_cpu_seconds, *sample.cpu_seconds


def _add_up(values: Iterable[float | None], *, has_devices: bool) -> float | None:
    """The sum of known values: 0 without devices, or if all are known."""
    return add_known(values) if has_devices else 0.0


def _convert(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _choose_expected(header: Header, gpus: tuple[Gpu, ...]) -> tuple[str, ...]:
    """The devices that the user named, else those the job may use."""
    named = header.gpu_uuids
    return tuple(gpu.uuid for gpu in gpus if (gpu.is_visible if named is None else gpu.uuid in named))
