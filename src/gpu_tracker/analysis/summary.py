"""A recording as figures: means, percentages, peaks. Rates of a recording are computed only here. Pure."""

from __future__ import annotations

from heapq import nlargest

from ..core.model import (
    DRAWN,
    EARLIER,
    ESTIMATE,
    EXACT,
    INTEGRATED,
    NO_PROCESS,
    POLLED,
    SAMPLED,
    SAMPLER_LOST,
    UNKNOWN,
    UNREAD,
    UNREAPED,
    UNSEEN_END,
    Activity,
    Busiest,
    Gpu,
    GpuCounters,
    GpuPeaks,
    GpuProcessPeak,
    Parts,
    RamPeak,
    Stalls,
    Traffic,
    TreeCounters,
    add_capacities,
    add_known,
    average_activity,
    larger,
    name_unread,
)
from ..core.values import NamedTuple
from ..core.vendors import NO_GPU
from .elsewhere import find_elsewhere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from ..core.model import Peaks, ProcessTotals, RecordingData

_SHORTEST_SECONDS = 1e-3
_MOST_USES = 32
# A mean or sum that is known for less of the run does not stand for it...
_LEAST_KNOWN_SHARE = 0.5
# ...and what is missing is told from this share on. Drivers take samples at least once a second.
_NOTABLE_SHARE = 0.01
# If nothing was measured for more of the run, "usually" and shares of its time are not known.
UNREAD_SHARE = 0.1
# Reasons to end that come from a main process whose parent is not us, nor it itself.
_UNSEEN_ENDS = ("ended", "abandoned")
_LATE_READING_SECONDS = 0.05
# Of devices no more is tolerated, however long the run, and in its middle nothing.
_MOST_TOLERATED_SECONDS = 0.5
_SHORTEST_GAP_SECONDS = 0.01
_LATE_SAMPLE_SECONDS = 1.0
# Drivers may sample processes only once a second: what comes before the first sample and after the last is not known.
_LATE_NAME_SECONDS = 2.0
# A device that was read for less has told nothing of the job.
_GLIMPSE_SECONDS = 0.5
# What a driver holds of a device that the job has to itself; by how much such a device and the job may differ.
_OVERHEAD_SHARE = 0.01
_NOTABLE_POINTS = 3.0


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
    """Over the time in which it is known."""
    utilization_seconds: float
    """How long that is."""
    max_percent: float | None
    utilization_basis: str
    """Sampled by the driver, or an estimate from its latest values: what changes faster than we read is hit or missed."""
    job_mean_percent: float | None
    """Of the job's own processes, where the driver reports them."""
    energy_joules: float | None
    """Of the whole device."""
    energy_basis: str
    """By the driver's counter, or an estimate from its power."""
    energy_seconds: float
    mean_watts: float | None
    max_watts: float | None
    max_celsius: float | None
    throttled: tuple[tuple[str, float], ...]
    """What throttled its clocks, and for what share of the time."""
    activity: Activity
    """How much of it worked, on average; utilization only says that something ran."""
    is_expected: bool
    """Whether its utilization counts: devices named by the user, else used by the job, else visible to it."""
    job_bytes_unknown_seconds: float = 0.0
    """How long it was not known what the job held, which may have been more."""
    used_bytes_unknown_seconds: float = 0.0
    """The same of all processes."""
    job_bytes_gap_seconds: float = 0.0
    """How much of these came after it was known, and the same of utilization; at the start, drivers need time to answer."""
    used_bytes_gap_seconds: float = 0.0
    utilization_gap_seconds: float = 0.0
    job_percent_unknown_seconds: float = 0.0
    """How long the job's own utilization was not known: its mean is without that time."""
    traffic: Traffic = Traffic()
    """What went through its links, of all processes."""
    may_hold_unseen: bool = False
    """Whether the job may hold memory on it of which nothing is known, so that totals are not known either."""
    may_have_been_unlisted: bool = False
    """Whether the job used devices that did not list it, although all list it now: it may have held more then."""
    job_utilization_basis: str = UNKNOWN
    """Sampled by the driver, or an estimate: where the job is alone on a device that did notably more, samples of it are missing."""

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
    threads: Parts[int | None]
    """This and the next: None if no process was ever read."""
    processes: int | None
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
    gpu_uses: tuple[ProcessTotals, ...] = ()
    """The processes whose utilization of GPUs is known, those that used most of them first."""
    counters: TreeCounters = TreeCounters()
    """What the job read and wrote, and how long it waited for a core."""
    stalls: Stalls = Stalls()
    """How long the machine kept anything waiting."""
    unread_seconds: float = 0.0
    """For how long nothing was read, in gaps or after the sampler was lost: peaks may be missing."""
    is_cpu_least: bool = False
    """Whether processes may have used more CPU time, of which nobody knows."""
    has_lost_children: bool = False
    """Whether the kernel has kept no account of children that have ended."""
    is_end_unseen: bool = False
    """Whether the main process has ended where nobody is told its peak."""
    has_begun_late: bool = False
    """Whether the job had used a notable amount before anybody measured it: it may have held more then."""
    has_unread_gpus: bool = False
    """Whether a vendor's driver has never answered, or a device that the job may use could never be opened: what concerns
    all devices is not known then."""
    gpu_growth_bytes: int | None = None
    """What the job held on all devices at the end, less what it held before it began."""
    elsewhere: str = ""
    """Who had work done elsewhere, in a sentence: what was measured of anything but time is then the least."""

    @property
    def is_unread(self) -> bool:
        """Whether not even time and CPU time are known: the recording ends before its first sample."""
        return not self.readings and not self.seconds

    @property
    def is_partly_unread(self) -> bool:
        """Whether nothing was read for so much of the run that what was read does not stand for it."""
        return self.unread_seconds > UNREAD_SHARE * self.seconds

    @property
    def has_rates(self) -> bool:
        """Whether the run was long enough for shares of its time."""
        return self.seconds >= _SHORTEST_SECONDS


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
    kinds = {event.kind for event in recording.events}
    elsewhere = find_elsewhere(recording)
    summary = Summary(
        seconds=seconds,
        gpu_growth_bytes=None if recording.end is None else recording.end.gpu_growth_bytes,
        readings=totals.readings,
        n_cores=cores,
        n_expected_cores=header.n_expected_cores,
        cpu=Parts(*(_summarize_cpu(used, seconds, busiest, cores) for used, busiest in parts)),
        system_cpu=_summarize_cpu(totals.system_cpu_seconds, seconds, peaks.system_busiest, cores),
        threads=Parts(*peaks.threads) if peaks.processes else Parts(None, None, None),
        processes=peaks.processes or None,
        ram=_find_ram(peaks, is_cut_off=recording.end is None),
        ram_ceiling_bytes=peaks.ram_ceiling_bytes or None,
        ram_capacity_bytes=allocation.ram_bytes,
        ram_used_bytes=system_ram if limit_ram is None else limit_ram,
        ram_source=allocation.ram_source,
        machine_ram_bytes=allocation.machine_ram_bytes,
        machine_ram_used_bytes=system_ram,
        gpus=gpus,
        gpu_bytes=_complete(peaks.gpu_bytes, gpus),
        system_gpu_bytes=peaks.system_gpu_bytes,
        gpu_capacity_bytes=add_capacities(gpu.gpu for gpu in gpus),
        gpu_max_sum_percent=busiest_sum,
        gpu_mean_sum_percent=add_known(gpu.mean_percent for gpu in gpus if gpu.is_expected),
        gpu_processes=peaks.gpu_processes,
        gpu_uses=_list_uses(recording.processes) if gpus else (),
        counters=totals.counters,
        stalls=totals.stalls,
        unread_seconds=totals.unread_seconds,
        is_cpu_least=bool(elsewhere) or _has_lost_cpu(recording, kinds),
        has_lost_children=UNREAPED in kinds,
        has_begun_late=EARLIER in kinds,
        is_end_unseen=header.pid != NO_PROCESS
        and recording.end is not None
        and recording.end.reason in _UNSEEN_ENDS,
        elsewhere=elsewhere,
    )
    return _forget_totals(summary) if _has_unread_gpus(recording) else summary


def _find_ram(peaks: Peaks, *, is_cut_off: bool) -> Parts[RamPeak]:
    """A live process holds some memory: zero means that it was never read, and of descendants that none was."""
    is_read = peaks.processes and peaks.ram.combined.total_bytes
    known = (part if part.total_bytes or is_read else RamPeak(basis=UNKNOWN) for part in peaks.ram)
    # It may have grown after the last sample.
    return Parts(
        *(part._replace(basis=SAMPLED) if is_cut_off and part.basis == EXACT else part for part in known)
    )


def are_gpus_known(recording: RecordingData) -> bool:
    """Whether all drivers have answered: without, no device does not mean that there is none."""
    end = recording.end
    is_whole = end is not None and end.reason != SAMPLER_LOST
    is_told = is_whole or any(event.text == NO_GPU for event in recording.events)
    return bool(recording.gpus or is_told) and not _has_unread_gpus(recording)


def _has_unread_gpus(recording: RecordingData) -> bool:
    found = {name_unread(gpu.vendor, gpu.ordinal) for gpu in recording.gpus}
    return any(event.kind == UNREAD and event.text not in found for event in recording.events)


def _has_lost_cpu(recording: RecordingData, kinds: Collection[str]) -> bool:
    """Whether processes may have ended of which nobody has learned what they used."""
    is_sampler_lost = recording.end is not None and recording.end.reason == SAMPLER_LOST
    return is_sampler_lost or not {EARLIER, UNREAPED, UNSEEN_END}.isdisjoint(kinds)


def _forget_totals(summary: Summary) -> Summary:
    """Without what concerns all devices, because some may not be known."""
    return summary._replace(
        gpu_bytes=Parts(None, None, None),
        system_gpu_bytes=None,
        gpu_capacity_bytes=None,
        gpu_max_sum_percent=None,
        gpu_mean_sum_percent=None,
        has_unread_gpus=True,
    )


def is_ram_least(summary: Summary, ending: str) -> bool:
    """Whether the peak of RAM may have been higher: in processes of which nothing is known, or while nothing was read.

    After a lost sampler, however short that was.
    """
    basis = summary.ram.combined.basis
    if summary.has_lost_children or summary.is_end_unseen or summary.has_begun_late or summary.elsewhere:
        return basis != UNKNOWN
    if basis in (EXACT, UNKNOWN):
        return False
    read_seconds = summary.seconds - summary.unread_seconds
    return ending == SAMPLER_LOST or find_missing(read_seconds, summary.seconds, _LATE_READING_SECONDS) > 0


def list_counted(summary: Summary) -> list[GpuSummary]:
    """The devices whose utilization counts; all if none does."""
    return [gpu for gpu in summary.gpus if gpu.is_expected] or list(summary.gpus)


def find_unmetered_seconds(gpu: GpuSummary, seconds: float) -> float:
    """How much of a run its energy is without; 0 if that is not worth a word."""
    return _find_unknown(seconds - gpu.energy_seconds, 0.0, seconds, _LATE_READING_SECONDS)


def find_unutilized_seconds(gpu: GpuSummary, seconds: float) -> float:
    """The same of its utilization."""
    return _find_unknown(seconds - gpu.utilization_seconds, gpu.utilization_gap_seconds, seconds)


def find_unattributed_seconds(gpu: GpuSummary, seconds: float) -> float:
    """The same of the job's own utilization."""
    return find_missing(seconds - gpu.job_percent_unknown_seconds, seconds, _LATE_NAME_SECONDS)


def find_unheld_seconds(gpu: GpuSummary, seconds: float) -> float:
    """The same of the peak of what the job held."""
    return _find_unknown(gpu.job_bytes_unknown_seconds, gpu.job_bytes_gap_seconds, seconds)


def find_unlisted_seconds(gpu: GpuSummary, seconds: float) -> float:
    """How much of it what the job held was not known although what all processes held was."""
    unlisted_seconds = gpu.job_bytes_unknown_seconds - gpu.used_bytes_unknown_seconds
    gap_seconds = gpu.job_bytes_gap_seconds - gpu.used_bytes_gap_seconds
    return _find_unknown(unlisted_seconds, gap_seconds, seconds, _LATE_READING_SECONDS)


class HeldDoubt(NamedTuple):
    """How sure the job's peak of GPU memory is."""

    basis: str
    unheld_seconds: float
    """How much of the time it is without, if that is notable: it may have been more."""


def doubt_held(gpus: Iterable[GpuSummary], seconds: float) -> HeldDoubt:
    """Of what the job held on these devices together: no surer than on any of them."""
    gpus = list(gpus)
    known = [gpu for gpu in gpus if gpu.job_bytes.combined is not None]
    bases = {gpu.basis for gpu in known}
    basis = next((basis for basis in (ESTIMATE, SAMPLED) if basis in bases), EXACT if bases else UNKNOWN)
    unheld = [find_unheld_seconds(gpu, seconds) for gpu in known]
    # On the others it was never seen, while they could be read.
    unseen = [gpu for gpu in gpus if gpu.job_bytes.combined is None and gpu.may_be_used]
    return HeldDoubt(
        basis, max((*unheld, *(find_unused_seconds(gpu, seconds) for gpu in unseen)), default=0.0)
    )


def find_unused_seconds(gpu: GpuSummary, seconds: float) -> float:
    """The same of the peak of all processes."""
    return _find_unknown(gpu.used_bytes_unknown_seconds, gpu.used_bytes_gap_seconds, seconds)


def _find_unknown(
    unknown_seconds: float, gap_seconds: float, seconds: float, late_seconds: float = _LATE_SAMPLE_SECONDS
) -> float:
    """How long a figure of a device was not known; 0 if that is only for a moment at the start, or at the end."""
    tolerated = late_seconds + min(_NOTABLE_SHARE * seconds, _MOST_TOLERATED_SECONDS)
    is_notable = gap_seconds > _SHORTEST_GAP_SECONDS or unknown_seconds - gap_seconds > tolerated
    return unknown_seconds if is_notable else 0.0


def is_known_enough(known_seconds: float, seconds: float, late_seconds: float = _LATE_SAMPLE_SECONDS) -> bool:
    """Whether a mean, sum or peak over this time stands for the run: its last part may not have been reported."""
    return known_seconds >= _LEAST_KNOWN_SHARE * (seconds - late_seconds)


def is_read_enough(known_seconds: float, seconds: float) -> bool:
    """The same of what is read, and need not be sampled by a driver first."""
    return is_known_enough(known_seconds, seconds, _LATE_READING_SECONDS)


def find_missing(known_seconds: float, seconds: float, late_seconds: float = _LATE_SAMPLE_SECONDS) -> float:
    """How much of a run a figure is without; 0 if that is not worth a word."""
    missing = seconds - known_seconds
    return missing if missing > _NOTABLE_SHARE * seconds + late_seconds else 0.0


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
    estimates = {(event.kind, event.text) for event in recording.events}
    named, by_use = recording.header.gpu_uuids, _counts_by_use(recording)
    summaries = []
    # Drivers answer in any order; reports always use the same one.
    for gpu in sorted(recording.gpus, key=lambda gpu: gpu.sort_key):
        peak = peaks.get(gpu.uuid, GpuPeaks(gpu.uuid))
        is_expected = peak.has_job if by_use else gpu.is_visible
        if named is not None:
            is_expected = gpu.uuid in named
        seconds = recording.totals.at_seconds
        was_read = gpu.uuid in peaks or gpu.uuid in counters
        counter = counters.get(gpu.uuid) or _count_nothing(gpu.uuid, 0.0 if was_read else seconds)
        summary = _summarize_gpu(gpu, peak, counter, seconds, is_estimate, is_expected)
        was_idle = 0 < counter.job_bytes_unknown_seconds < seconds - _GLIMPSE_SECONDS and not peak.has_job
        if summary.may_be_used and summary.job_bytes.combined is None and not was_idle:
            summary = summary._replace(may_hold_unseen=True)
        if seconds < _SHORTEST_SECONDS:
            summary = summary._replace(
                mean_percent=None, job_mean_percent=None, mean_watts=None, throttled=()
            )
        if (POLLED, gpu.uuid) in estimates:
            summary = summary._replace(utilization_basis=ESTIMATE)
        if summary.job_mean_percent is not None:
            is_drawn = (DRAWN, gpu.uuid) in estimates
            summary = summary._replace(job_utilization_basis=ESTIMATE if is_drawn else _judge_own(summary))
        if (INTEGRATED, gpu.uuid) in estimates:
            summary = summary._replace(energy_basis=ESTIMATE)
        summaries.append(summary)
    if is_estimate and not any(summary.basis == ESTIMATE for summary in summaries):
        return tuple(gpu._replace(may_have_been_unlisted=gpu.basis == SAMPLED) for gpu in summaries)
    return tuple(summaries)


def _count_nothing(uuid: str, seconds: float) -> GpuCounters:
    """Of a device of which nothing was read for so long."""
    return GpuCounters(uuid, job_bytes_unknown_seconds=seconds, used_bytes_unknown_seconds=seconds)


def _complete(known: Parts[int | None], gpus: Sequence[GpuSummary]) -> Parts[int | None]:
    """Unknown if it is on a device that the job uses or may use; of estimates no part is known.

    A device that the job was not on until it was lost is no such device.
    """
    if any(gpu.basis == ESTIMATE for gpu in gpus):
        return Parts(None, None, known.combined or None)
    used = [
        gpu.job_bytes
        for gpu in gpus
        if gpu.may_hold_unseen or (gpu.may_be_used and gpu.job_bytes.combined is not None)
    ]
    return Parts(*(None if None in sizes else whole for whole, *sizes in zip(known, *used, strict=True)))


def _counts_by_use(recording: RecordingData) -> bool:
    """Whether the devices that count are those the job was seen on."""
    is_named = recording.header.gpu_uuids is not None
    return not is_named and any(gpu.has_job for gpu in recording.totals.peaks.gpus)


def _summarize_gpu(
    gpu: Gpu, peak: GpuPeaks, counter: GpuCounters, seconds: float, is_estimate: bool, is_expected: bool
) -> GpuSummary:
    job, basis = peak.job_bytes, peak.basis
    if job.combined is None:
        basis = UNKNOWN
    if is_estimate and not job.combined and gpu.is_visible and peak.grown_bytes is not None:
        job, basis = Parts(None, None, peak.grown_bytes), ESTIMATE
    mean = _mean(counter.utilization_percent_seconds, counter.utilization_seconds)
    return GpuSummary(
        gpu=gpu,
        # The job is one of all: what only the driver's accounting knows of it was in use, too.
        used_bytes=peak.used_bytes and max(peak.used_bytes, peak.job_bytes.combined or 0),
        job_bytes=job,
        basis=basis,
        # Of a short run it may be known at one instant only.
        mean_percent=peak.utilization_percent if mean is None and is_known_enough(0.0, seconds) else mean,
        utilization_seconds=counter.utilization_seconds,
        max_percent=peak.utilization_percent,
        utilization_basis=UNKNOWN if peak.utilization_percent is None else SAMPLED,
        # A job that is not listed, but uses the device, is not idle.
        job_mean_percent=None
        if basis == ESTIMATE
        else _mean(counter.job_percent_seconds, counter.job_seconds),
        energy_joules=counter.energy_joules,
        energy_basis=UNKNOWN if counter.energy_joules is None else EXACT,
        energy_seconds=counter.energy_seconds,
        mean_watts=_mean(counter.energy_joules, counter.energy_seconds),
        max_watts=peak.power_watts,
        max_celsius=peak.temperature_celsius,
        throttled=tuple(
            (reason, seconds / counter.utilization_seconds)
            for reason, seconds in counter.limited_seconds
            if counter.utilization_seconds
        ),
        activity=average_activity(counter.activity),
        traffic=Traffic(*counter.traffic[: len(Traffic._fields)]),
        is_expected=is_expected,
        job_bytes_unknown_seconds=counter.used_bytes_unknown_seconds
        if basis == ESTIMATE
        else counter.job_bytes_unknown_seconds,
        used_bytes_unknown_seconds=counter.used_bytes_unknown_seconds,
        job_bytes_gap_seconds=counter.used_bytes_gap_seconds
        if basis == ESTIMATE
        else counter.job_bytes_gap_seconds,
        used_bytes_gap_seconds=counter.used_bytes_gap_seconds,
        utilization_gap_seconds=counter.utilization_gap_seconds,
        job_percent_unknown_seconds=max(0.0, seconds - counter.job_seconds),
    )


def _judge_own(gpu: GpuSummary) -> str:
    """How sure the job's own utilization is."""
    used, job = gpu.used_bytes, gpu.job_bytes.combined
    is_alone = None not in (used, job) and (used or 0) - (job or 0) <= _OVERHEAD_SHARE * (
        gpu.gpu.memory_bytes or 0
    )
    missing = (gpu.mean_percent or 0.0) - (gpu.job_mean_percent or 0.0)
    return (
        ESTIMATE if (is_alone and missing > _NOTABLE_POINTS) or gpu.utilization_basis == ESTIMATE else SAMPLED
    )


def _list_uses(processes: Iterable[ProcessTotals]) -> tuple[ProcessTotals, ...]:
    used = (process for process in processes if process.gpu_seconds is not None)
    return tuple(nlargest(_MOST_USES, used, key=lambda process: process.gpu_seconds or 0.0))


def _mean(integral: float | None, seconds: float) -> float | None:
    return integral / seconds if integral is not None and seconds > 0 else None
