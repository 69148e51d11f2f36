"""A recording as figures: means, percentages, peaks. Rates of a recording are computed only here. Pure."""

from __future__ import annotations

from ..core.model import (
    ESTIMATE,
    SAMPLED,
    UNKNOWN,
    Busiest,
    Gpu,
    GpuCounters,
    GpuPeaks,
    GpuProcessPeak,
    Parts,
    RamPeak,
    Stalls,
    TreeCounters,
    add_known,
    larger,
)
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.model import RecordingData

_SHORTEST_SECONDS = 1e-3


class CpuSummary(NamedTuple):
    """CPU of one part of the tree, in percent of one core: two busy cores are 200."""

    seconds: float
    mean_percent: float | None
    """This and the next: None if the run was too short for a rate."""
    max_percent: float | None


class GpuSummary(NamedTuple):
    """One device. None is not known."""

    gpu: Gpu
    used_bytes: int | None
    """Held by all processes."""
    job_bytes: Parts[int | None]
    basis: str
    """How the job's combined bytes were obtained."""
    mean_percent: float | None
    max_percent: float | None
    utilization_basis: str
    """Sampled by the driver, or an estimate from its latest values: what changes faster than we read is hit or missed."""
    job_mean_percent: float | None
    """Of the job's own processes, where the driver reports them."""
    energy_joules: float | None
    """Of the whole device."""
    energy_seconds: float
    mean_watts: float | None
    max_watts: float | None
    max_celsius: float | None
    throttled: tuple[tuple[str, float], ...]
    """What throttled its clocks, and for what share of the time."""
    is_expected: bool
    """Whether its utilization counts: devices named by the user, else used by the job, else visible to it."""

    @property
    def may_be_used(self) -> bool:
        """Whether the job has memory on it, unless it is known that it has none."""
        return self.is_expected or self.gpu.is_visible


class Summary(NamedTuple):
    """A whole recording in figures."""

    seconds: float
    readings: int
    """How often the processes were read."""
    n_cores: int
    """Of the machine."""
    n_expected_cores: float
    cpu: Parts[CpuSummary]
    system_cpu: CpuSummary
    threads: Parts[int]
    processes: int
    ram: Parts[RamPeak]
    ram_ceiling_bytes: int | None
    """What combined RAM would be if nothing were shared."""
    ram_capacity_bytes: int
    ram_used_bytes: int
    """Used under the job's own limit if it has one, else on the machine."""
    ram_source: str
    """What sets the capacity: machine, cgroup or Slurm."""
    machine_ram_bytes: int
    machine_ram_used_bytes: int
    gpus: tuple[GpuSummary, ...]
    gpu_bytes: Parts[int | None]
    """This and the following: None if not known, as without a GPU."""
    system_gpu_bytes: int | None
    gpu_capacity_bytes: int | None
    gpu_max_sum_percent: float | None
    gpu_mean_sum_percent: float | None
    gpu_processes: tuple[GpuProcessPeak, ...]
    counters: TreeCounters = TreeCounters()
    """What the job read and wrote, and how long it waited for a core."""
    stalls: Stalls = Stalls()
    """How long the machine kept anything waiting."""


def summarize(recording: RecordingData) -> Summary:
    """The figures of a recording, finished or not."""
    header, totals = recording.header, recording.totals
    allocation, peaks = header.allocation, totals.peaks
    seconds, cores = totals.at_seconds, allocation.machine_cores
    # What the tree held was in use, even if the machine counts mapped files as available.
    tree_ram = peaks.ram.combined.total_bytes
    system_ram = max(peaks.system_ram_bytes, tree_ram)
    limit_ram = None if peaks.limit_ram_bytes is None else max(peaks.limit_ram_bytes, tree_ram)
    gpus = _summarize_gpus(recording)
    busiest_sum = (
        peaks.gpu_with_job_sum_percent if _counts_by_use(recording) else peaks.gpu_utilization_sum_percent
    )
    parts = zip(totals.cpu_seconds, peaks.busiest, strict=True)
    return Summary(
        seconds=seconds,
        readings=totals.readings,
        n_cores=cores,
        n_expected_cores=header.n_expected_cores,
        cpu=Parts(*(_summarize_cpu(used, seconds, busiest, cores) for used, busiest in parts)),
        system_cpu=_summarize_cpu(totals.system_cpu_seconds, seconds, peaks.system_busiest, cores),
        threads=peaks.threads,
        processes=peaks.processes,
        # A live process holds some memory: zero means that it was never read.
        ram=peaks.ram if tree_ram else Parts(*[RamPeak(basis=UNKNOWN)] * 3),
        ram_ceiling_bytes=peaks.ram_ceiling_bytes or None,
        ram_capacity_bytes=allocation.ram_bytes,
        ram_used_bytes=system_ram if limit_ram is None else limit_ram,
        ram_source=allocation.ram_source,
        machine_ram_bytes=allocation.machine_ram_bytes,
        machine_ram_used_bytes=system_ram,
        gpus=gpus,
        gpu_bytes=_complete(peaks.gpu_bytes, gpus),
        system_gpu_bytes=peaks.system_gpu_bytes,
        gpu_capacity_bytes=add_known(gpu.gpu.memory_bytes for gpu in gpus),
        gpu_max_sum_percent=busiest_sum,
        gpu_mean_sum_percent=add_known(gpu.mean_percent for gpu in gpus if gpu.is_expected),
        gpu_processes=peaks.gpu_processes,
        counters=totals.counters,
        stalls=totals.stalls,
    )


def list_counted(summary: Summary) -> list[GpuSummary]:
    """The devices whose utilization counts; all if none does."""
    return [gpu for gpu in summary.gpus if gpu.is_expected] or list(summary.gpus)


def percent_of(part_seconds: float, whole_seconds: float, cores: float) -> float | None:
    """A rate in percent of one core, capped at what the cores can give; None for less than a millisecond.

    CPU time of short-lived children arrives all at once, when they are waited for. In an empty block, reading the clocks
    takes longer than what they measure.
    """
    if whole_seconds < _SHORTEST_SECONDS:
        return None
    return min(100.0 * part_seconds / whole_seconds, 100.0 * cores)


def _summarize_cpu(cpu_seconds: float, seconds: float, busiest: Busiest, cores: int) -> CpuSummary:
    mean = percent_of(cpu_seconds, seconds, cores)
    most = percent_of(busiest.cpu_seconds, busiest.wall_seconds, cores)
    return CpuSummary(cpu_seconds, mean, larger(mean, most))


def _summarize_gpus(recording: RecordingData) -> tuple[GpuSummary, ...]:
    peaks = {gpu.uuid: gpu for gpu in recording.totals.peaks.gpus}
    counters = {gpu.uuid: gpu for gpu in recording.totals.gpu_counters}
    is_estimate = any(event.kind == "unattributed" for event in recording.events)
    polled = {event.text for event in recording.events if event.kind == "polled"}
    named, by_use = recording.header.gpu_uuids, _counts_by_use(recording)
    summaries = []
    # Drivers answer in any order; reports always use the same one.
    for gpu in sorted(recording.gpus, key=lambda gpu: (gpu.vendor, gpu.ordinal)):
        peak = peaks.get(gpu.uuid, GpuPeaks(gpu.uuid))
        is_expected = peak.has_job if by_use else gpu.is_visible
        if named is not None:
            is_expected = gpu.uuid in named
        counter = counters.get(gpu.uuid, GpuCounters(gpu.uuid))
        summary = _summarize_gpu(gpu, peak, counter, is_estimate, is_expected)
        if gpu.uuid in polled:
            summary = summary._replace(utilization_basis=ESTIMATE)
        summaries.append(summary)
    return tuple(summaries)


def _complete(known: Parts[int | None], gpus: Sequence[GpuSummary]) -> Parts[int | None]:
    """Unknown if it is on a device that the job uses or may use; of estimates no part is known."""
    if any(gpu.basis == ESTIMATE for gpu in gpus):
        return Parts(None, None, known.combined or None)
    used = [gpu.job_bytes for gpu in gpus if gpu.may_be_used]
    return Parts(*(None if None in sizes else whole for whole, *sizes in zip(known, *used, strict=True)))


def _counts_by_use(recording: RecordingData) -> bool:
    """Whether the devices that count are those the job was seen on."""
    is_named = recording.header.gpu_uuids is not None
    return not is_named and any(gpu.has_job for gpu in recording.totals.peaks.gpus)


def _summarize_gpu(
    gpu: Gpu, peak: GpuPeaks, counter: GpuCounters, is_estimate: bool, is_expected: bool
) -> GpuSummary:
    job, basis = peak.job_bytes, peak.basis
    if job.combined is None:
        basis = UNKNOWN
    if is_estimate and not job.combined and gpu.is_visible and peak.grown_bytes is not None:
        job, basis = Parts(None, None, peak.grown_bytes), ESTIMATE
    mean = _mean(counter.utilization_percent_seconds, counter.utilization_seconds)
    return GpuSummary(
        gpu=gpu,
        used_bytes=peak.used_bytes,
        job_bytes=job,
        basis=basis,
        mean_percent=peak.utilization_percent if mean is None else mean,
        max_percent=peak.utilization_percent,
        utilization_basis=UNKNOWN if peak.utilization_percent is None else SAMPLED,
        # A job that is not listed, but uses the device, is not idle.
        job_mean_percent=None
        if basis == ESTIMATE
        else _mean(counter.job_percent_seconds, counter.job_seconds),
        energy_joules=counter.energy_joules,
        energy_seconds=counter.energy_seconds,
        mean_watts=_mean(counter.energy_joules, counter.energy_seconds),
        max_watts=peak.power_watts,
        max_celsius=peak.temperature_celsius,
        throttled=tuple(
            (reason, seconds / counter.utilization_seconds)
            for reason, seconds in counter.limited_seconds
            if counter.utilization_seconds
        ),
        is_expected=is_expected,
    )


def _mean(integral: float | None, seconds: float) -> float | None:
    return integral / seconds if integral is not None and seconds > 0 else None
