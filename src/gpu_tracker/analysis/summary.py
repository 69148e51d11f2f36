"""From what was counted to what it means: means, percentages, peaks. The only place where rates are computed. Pure."""

from __future__ import annotations

from ..model import UNKNOWN, Busiest, Gpu, RamPeak
from ..values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model import Recording


class CpuSummary(NamedTuple):
    """CPU of one part of the tree, in percent of one core: two busy cores are 200."""

    seconds: float
    mean_percent: float
    max_percent: float


class GpuSummary(NamedTuple):
    """One device. None is not known."""

    gpu: Gpu
    used_bytes: int | None
    main_bytes: int
    descendants_bytes: int
    combined_bytes: int
    mean_percent: float | None
    max_percent: float | None
    is_expected: bool
    """Whether its utilization counts: all do, unless the user named some."""


class Summary(NamedTuple):
    """A whole recording in figures."""

    seconds: float
    looks: int
    n_cores: int
    n_expected_cores: float
    main_cpu: CpuSummary
    descendants_cpu: CpuSummary
    combined_cpu: CpuSummary
    system_cpu: CpuSummary
    main_threads: int
    descendants_threads: int
    combined_threads: int
    processes: int
    ram_capacity_bytes: int
    ram_used_bytes: int
    """Used under the job's own limit if it has one, else on the machine."""
    machine_ram_bytes: int
    machine_ram_used_bytes: int
    main_ram: RamPeak
    descendants_ram: RamPeak
    combined_ram: RamPeak
    combined_ram_ceiling_bytes: int
    gpus: tuple[GpuSummary, ...]
    main_gpu_bytes: int
    descendants_gpu_bytes: int
    combined_gpu_bytes: int
    system_gpu_bytes: int
    gpu_capacity_bytes: int
    gpu_max_sum_percent: float
    gpu_mean_sum_percent: float


def summarize(recording: Recording) -> Summary:
    """The figures of a recording, finished or not."""
    header, totals = recording.header, recording.totals
    allocation, peaks = header.allocation, totals.peaks
    seconds, cores = totals.at_seconds, allocation.machine_cores
    main, descendants = totals.main_cpu_seconds, totals.descendants_cpu_seconds
    # What the tree held was in use, also where the machine calls mapped files available, and however short it was.
    tree_ram = peaks.combined_ram.total_bytes
    system_ram = max(peaks.system_ram_bytes, tree_ram)
    gpus = _summarize_gpus(recording)
    expected = [gpu for gpu in gpus if gpu.is_expected]
    return Summary(
        seconds,
        totals.looks,
        cores,
        header.n_expected_cores,
        _summarize_cpu(main, seconds, peaks.main_busiest, cores),
        _summarize_cpu(descendants, seconds, peaks.descendants_busiest, cores),
        _summarize_cpu(main + descendants, seconds, peaks.combined_busiest, cores),
        _summarize_cpu(totals.system_cpu_seconds, seconds, peaks.system_busiest, cores),
        peaks.main_threads,
        peaks.descendants_threads,
        peaks.combined_threads,
        peaks.processes,
        allocation.ram_bytes,
        system_ram if peaks.limit_ram_bytes is None else max(peaks.limit_ram_bytes, tree_ram),
        allocation.machine_ram_bytes,
        system_ram,
        peaks.main_ram,
        peaks.descendants_ram,
        # A process that is there holds something: nothing means that no look has met it.
        peaks.combined_ram if peaks.combined_ram.total_bytes else RamPeak(basis=UNKNOWN),
        peaks.combined_ram_ceiling_bytes,
        gpus,
        peaks.main_gpu_bytes,
        peaks.descendants_gpu_bytes,
        peaks.combined_gpu_bytes,
        peaks.system_gpu_bytes,
        sum(gpu.gpu.memory_bytes or 0 for gpu in gpus),
        peaks.gpu_utilization_sum_percent,
        sum((gpu.mean_percent or 0.0 for gpu in expected), 0.0),
    )


def percent_of(part_seconds: float, whole_seconds: float, cores: int) -> float:
    """A rate in percent of one core, never more than the cores can give.

    The time of short-lived children arrives when they are waited for, all at once.
    """
    if whole_seconds <= 0:
        return 0.0
    return min(100.0 * part_seconds / whole_seconds, 100.0 * cores)


def _summarize_cpu(cpu_seconds: float, seconds: float, busiest: Busiest, cores: int) -> CpuSummary:
    mean = percent_of(cpu_seconds, seconds, cores)
    most = percent_of(busiest.cpu_seconds, busiest.wall_seconds, cores)
    return CpuSummary(cpu_seconds, mean, max(mean, most))


def _summarize_gpus(recording: Recording) -> tuple[GpuSummary, ...]:
    peaks = {gpu.uuid: gpu for gpu in recording.totals.peaks.gpus}
    counters = {gpu.uuid: gpu for gpu in recording.totals.gpu_counters}
    named = recording.header.gpu_uuids
    summaries = []
    for mark in recording.marks:
        gpu = mark.gpu
        if gpu is None:
            continue
        peak, counter = peaks.get(gpu.uuid), counters.get(gpu.uuid)
        most = peak.utilization_percent if peak else None
        mean = None
        if counter and counter.utilization_seconds:
            mean = counter.utilization_percent_seconds / counter.utilization_seconds
        summaries.append(
            GpuSummary(
                gpu,
                peak.used_bytes if peak else None,
                peak.main_bytes if peak else 0,
                peak.descendants_bytes if peak else 0,
                peak.combined_bytes if peak else 0,
                most if mean is None else mean,
                most,
                named is None or gpu.uuid in named,
            )
        )
    return tuple(summaries)
