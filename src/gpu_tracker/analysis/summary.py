"""From what was counted to what it means: means, percentages, peaks. The only place where rates are computed. Pure."""

from __future__ import annotations

from ..core.model import ESTIMATE, UNKNOWN, Busiest, Gpu, GpuCounters, GpuPeaks, GpuProcessPeak, RamPeak
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.model import Recording


class CpuSummary(NamedTuple):
    """CPU of one part of the tree, in percent of one core: two busy cores are 200."""

    seconds: float
    mean_percent: float
    max_percent: float


class GpuSummary(NamedTuple):
    """One device. None is not known."""

    gpu: Gpu
    used_bytes: int | None
    main_bytes: int | None
    descendants_bytes: int | None
    combined_bytes: int | None
    basis: str
    """How the combined bytes were obtained."""
    mean_percent: float | None
    max_percent: float | None
    job_mean_percent: float | None
    """Of the job's own processes, where the driver tells them apart."""
    energy_joules: float | None
    """Of the whole device."""
    energy_seconds: float
    mean_watts: float | None
    max_watts: float | None
    max_celsius: float | None
    limited: tuple[tuple[str, float], ...]
    """What held its clocks down, and for which part of the time."""
    is_expected: bool
    """Whether its utilization counts: those named, else those used, else those that may be used."""


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
    gpu_processes: tuple[GpuProcessPeak, ...]


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
        peaks.gpu_with_job_sum_percent if _counts_by_use(recording) else peaks.gpu_utilization_sum_percent,
        sum((gpu.mean_percent or 0.0 for gpu in expected), 0.0),
        peaks.gpu_processes,
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
    is_estimate = any(mark.kind == "unattributed" for mark in recording.marks)
    named, by_use = recording.header.gpu_uuids, _counts_by_use(recording)
    summaries = []
    # Each vendor's driver answers when it likes; people want the same order every time.
    for gpu in sorted(recording.gpus, key=lambda gpu: (gpu.vendor, gpu.ordinal)):
        peak = peaks.get(gpu.uuid, GpuPeaks(gpu.uuid))
        is_expected = peak.has_job if by_use else gpu.is_visible
        if named is not None:
            is_expected = gpu.uuid in named
        counter = counters.get(gpu.uuid, GpuCounters(gpu.uuid))
        summaries.append(_summarize_gpu(gpu, peak, counter, is_estimate, is_expected))
    return tuple(summaries)


def _counts_by_use(recording: Recording) -> bool:
    """Whether the devices that count are those where the job was met."""
    is_named = recording.header.gpu_uuids is not None
    return not is_named and any(gpu.has_job for gpu in recording.totals.peaks.gpus)


def _summarize_gpu(
    gpu: Gpu, peak: GpuPeaks, counter: GpuCounters, is_estimate: bool, is_expected: bool
) -> GpuSummary:
    combined, basis = peak.combined_bytes, peak.basis
    if combined is None:
        basis = UNKNOWN
    if is_estimate and not combined and gpu.is_visible and peak.grown_bytes is not None:
        combined, basis = peak.grown_bytes, ESTIMATE
    mean = _mean(counter.utilization_percent_seconds, counter.utilization_seconds)
    return GpuSummary(
        gpu,
        peak.used_bytes,
        peak.main_bytes,
        peak.descendants_bytes,
        combined,
        basis,
        peak.utilization_percent if mean is None else mean,
        peak.utilization_percent,
        _mean(counter.job_percent_seconds, counter.job_seconds),
        counter.energy_joules,
        counter.energy_seconds,
        _mean(counter.energy_joules, counter.energy_seconds),
        peak.power_watts,
        peak.temperature_celsius,
        tuple(
            (reason, seconds / counter.utilization_seconds)
            for reason, seconds in counter.limited_seconds
            if counter.utilization_seconds
        ),
        is_expected,
    )


def _mean(integral: float | None, seconds: float) -> float | None:
    return integral / seconds if integral is not None and seconds > 0 else None
