"""One interval of a run in figures: what windows that follow it show, and what callbacks and sinks get. Pure."""

from __future__ import annotations

from math import isnan

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.columns import Column, SampleColumns
    from ..core.model import Gpu

# The machine counts its CPU time in hundredths of a second.
_LEAST_SECONDS = 0.2


class GpuInterval(NamedTuple):
    """One device. None is not known."""

    label: str
    """What it is called: `0`, `1:0`, `amd:0`."""
    uuid: str
    name: str
    memory_bytes: int | None
    used_bytes: float | None
    """By all processes."""
    job_bytes: float | None
    utilization_percent: float | None
    job_percent: float | None
    """How busy the job itself kept it."""
    power_watts: float | None
    temperature_celsius: float | None
    sm_clock_mhz: float | None


class Interval(NamedTuple):
    """What the job and all its descendants used in one interval: rates where a sample has counters. None is not known."""

    start_seconds: float
    """Since the start of the recording."""
    end_seconds: float
    cpu_cores: float | None
    """How many cores were busy: 6.42 where others say 642 %."""
    machine_cores: float | None
    """The same of everything on the machine; not known of the short rest at the end of a run, for which its clocks are too coarse."""
    ram_bytes: float | None
    """The mean."""
    highest_ram_bytes: float | None
    machine_ram_bytes: float | None
    threads: int
    processes: int
    read_bytes_per_second: float | None
    written_bytes_per_second: float | None
    gpus: tuple[GpuInterval, ...] = ()


def read_interval(columns: SampleColumns, gpus: Sequence[Gpu], row: int = -1) -> Interval:
    """One row of the columns; `gpus` are the devices that were found."""
    return Interval(
        start_seconds=columns.start_seconds[row],
        end_seconds=columns.end_seconds[row],
        cpu_cores=_known(columns.cpu_cores.combined, row),
        machine_cores=None if is_remainder(columns, row) else _known(columns.machine_cores, row),
        ram_bytes=_known(columns.ram_bytes.combined.mean, row),
        highest_ram_bytes=_known(columns.ram_bytes.combined.high, row),
        machine_ram_bytes=_known(columns.machine_ram_bytes, row),
        threads=int(columns.threads[row]),
        processes=int(columns.processes[row]),
        read_bytes_per_second=_known(columns.read_bytes_per_second, row),
        written_bytes_per_second=_known(columns.written_bytes_per_second, row),
        gpus=tuple(_read_gpu(columns, gpu, row) for gpu in gpus if gpu.uuid in columns.gpus),
    )


def is_remainder(columns: SampleColumns, row: int) -> bool:
    """Whether the row is short, and much shorter than the one before it."""
    rows = range(len(columns.end_seconds))[row], range(len(columns.end_seconds))[row] - 1
    length, before = (columns.end_seconds[one] - columns.start_seconds[one] for one in rows)
    return rows[1] >= 0 and length < min(before / 2, _LEAST_SECONDS)


def _read_gpu(columns: SampleColumns, gpu: Gpu, row: int) -> GpuInterval:
    device = columns.gpus[gpu.uuid]
    return GpuInterval(
        label=gpu.label,
        uuid=gpu.uuid,
        name=gpu.name,
        memory_bytes=gpu.memory_bytes,
        used_bytes=_known(device.used_bytes, row),
        job_bytes=_known(device.job_bytes, row),
        utilization_percent=_known(device.utilization_percent, row),
        job_percent=_known(device.job_percent, row),
        power_watts=_known(device.power_watts, row),
        temperature_celsius=_known(device.temperature_celsius, row),
        sm_clock_mhz=_known(device.sm_clock_mhz, row),
    )


def _known(column: Column, row: int) -> float | None:
    value = column[row]
    return None if isnan(value) else value
