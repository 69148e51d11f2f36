"""The rows of a tracking file as later versions of the existing tool write it: one per sample, in units of choice. Pure.

Memory is the most in the window, CPU the mean over it. A sample does not tell main and descendants apart on GPUs and
among threads: where there is more than one process those columns are empty. So is what no device tells, or not yet.
"""

from __future__ import annotations

from ..core.model import Parts
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
    """In which units the user wants the numbers."""

    ram: str = "gigabytes"
    gpu_ram: str = "gigabytes"
    time: str = "hours"


def make_static_row(header: Header, gpus: tuple[Gpu, ...] | None, units: TrackingUnits) -> Row:
    """What does not change. No tuple of GPUs: nobody knows yet which there are."""
    memory_bytes = _add_up([gpu.memory_bytes for gpu in gpus or ()], has_devices=gpus != ())
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
    """One row per sample, given the one before them."""
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
    used_bytes = _add_up([gpu.used_bytes for gpu in sample.gpus], has_devices=gpus != ())
    is_alone = sample.processes <= 1
    is_told_apart = job_bytes is not None and (is_alone or not job_bytes)
    return (
        *(spread.high / ram for spread in sample.ram_bytes),
        sample.system_ram_bytes / ram,
        _convert(job_bytes, gpu_ram) if is_told_apart else None,
        0.0 if is_told_apart else None,
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
    """Percent of one core, and of the cores, for each part."""
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
    """The sum of what is known. Of no device that is nothing; of devices that tell nothing it is not known."""
    known = [value for value in values if value is not None]
    return sum(known, 0.0) if known or not has_devices else None


def _convert(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _choose_expected(header: Header, gpus: tuple[Gpu, ...]) -> tuple[str, ...]:
    """Those that were named, else those that the job may use."""
    named = header.gpu_uuids
    return tuple(gpu.uuid for gpu in gpus if (gpu.is_visible if named is None else gpu.uuid in named))
