"""The nouns: what a source reads, what a recording keeps. Values only; no behaviour, no I/O.

Bytes are bytes, times are seconds, counters stay counters. `None` means not known, 0 means measured zero. Pure.
"""

from __future__ import annotations

from .values import Generic, NamedTuple, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# How a number was obtained, best first.
EXACT = "exact"  # a kernel or driver counter, or a kernel high-water mark
SAMPLED = "sampled"  # the largest of the looks taken
ESTIMATE = "estimate"  # derived, with the reason in the notes
UNKNOWN = "unknown"


class Parts(NamedTuple, Generic[Value]):
    """One figure of the tracked process, of all its descendants, and of both together."""

    main: Value
    descendants: Value
    combined: Value


def add_parts(main: float, descendants: float) -> Parts[float]:
    """Both together are the sum."""
    return Parts(main, descendants, main + descendants)


# ---- Readings: what one source said of one subject at one instant.


class ProcessReading(NamedTuple):
    """One process of the tree."""

    pid: int
    parent_pid: int
    name: str
    is_forked_copy: bool
    """It has not called exec, so its anonymous pages may be its parent's."""
    n_threads: int
    cpu_seconds: float
    reaped_cpu_seconds: float
    """CPU of the children it has waited for, and of theirs."""
    rss_bytes: int
    file_bytes: int
    """The part of the resident set that is files and shared memory, not anonymous."""
    peak_rss_bytes: int | None = None
    """The kernel's high-water mark, where it was read."""
    was_running_at_start: bool = False


class SharingReading(NamedTuple):
    """How much of one process's resident memory is its own."""

    pss_bytes: int
    """Resident memory with every page divided by the number of processes that map it."""
    anonymous_pss_bytes: int
    private_bytes: int
    """Pages that no other process maps."""


class MachineReading(NamedTuple):
    """The whole machine."""

    cpu_seconds: float
    """CPU time spent by anybody, a counter."""
    ram_used_bytes: int
    limit_used_bytes: int | None = None
    """Memory used under the job's own limit, where it has one."""


class Gpu(NamedTuple):
    """A device, as its driver describes it."""

    ordinal: int
    """The number that its vendor's own tool gives it."""
    uuid: str
    """The vendor's UUID, or where there is none a name that lasts as long as the slot: `pci-0000:03:00.0`."""
    name: str
    memory_bytes: int | None
    vendor: str = "nvidia"
    source: str = "nvml"
    """Which source reads it."""
    bus_id: str = ""
    driver: str = ""
    """The driver's version."""
    parent_uuid: str | None = None
    """The whole device that this is an instance of."""
    is_visible: bool = True
    """Whether the job's environment lets it use this device."""


class GpuReading(NamedTuple):
    """One device at one instant; what it does not tell is None."""

    uuid: str
    used_bytes: int | None = None
    """Held by anybody, without what the driver reserves for itself where that is told apart."""
    utilization_percent: float | None = None
    """Mean since the last look where the driver keeps samples, else its latest figure."""
    utilization_high_percent: float | None = None
    reserved_bytes: int | None = None
    memory_utilization_percent: float | None = None
    power_watts: float | None = None
    energy_joules: float | None = None
    """The driver's counter."""
    temperature_celsius: float | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    limits: tuple[str, ...] | None = None
    """What holds the clocks down: power, heat..."""
    lists_processes: bool = True
    """Whether the device says who uses it; without, a job's memory there is not known."""
    measures_processes: bool = False
    """Whether it says how busy each process keeps it."""


class GpuProcessReading(NamedTuple):
    """What the driver attributes to one process on one device."""

    uuid: str
    pid: int
    used_bytes: int | None = None
    utilization_percent: float | None = None
    """Of the device's compute units, since the last look."""
    kind: str = "compute"
    """Compute, graphics, or both in one word: `compute+graphics`."""


class GpuHighWater(NamedTuple):
    """The most that one process ever held on one device, by the driver's own account; it may have ended."""

    uuid: str
    pid: int
    used_bytes: int


class GpuReadings(NamedTuple):
    """All that one GPU source said in one tick."""

    at_seconds: float
    devices: tuple[GpuReading, ...] = ()
    processes: tuple[GpuProcessReading, ...] = ()
    high_waters: tuple[GpuHighWater, ...] = ()


class FrameworkReading(NamedTuple):
    """What a framework says of one device, in the process that uses it."""

    framework: str
    device: str
    """The framework's own name for it."""
    uuid: str
    """Without the vendor's prefix; empty where the framework does not tell."""
    in_use_bytes: int
    """By tensors."""
    peak_in_use_bytes: int
    """Since the process began, or since somebody reset it."""
    held_bytes: int | None = None
    """With what is cached to be used again."""
    peak_held_bytes: int | None = None
    flushes: int = 0
    """How often the cache had to be given back to make room."""
    failures: int = 0
    """How often there was no room even so."""
    earlier_peak_in_use_bytes: int = 0
    """The peak that was already there when the tracking began."""
    earlier_peak_held_bytes: int = 0


class RootFigures(NamedTuple):
    """What the root's owner or parent knows of it better than anyone who looks from outside."""

    own_cpu_seconds: float
    reaped_cpu_seconds: float
    adopted_cpu_seconds: float = 0.0
    """CPU time of orphans of the job that its parent has inherited and waited for."""
    largest_peak_bytes: int | None = None
    """Largest resident set of any one process among the root and those that were waited for."""
    may_be_a_childs: bool = False
    """Whether that process may have been another than the root."""


# ---- What a recording keeps.


class Allocation(NamedTuple):
    """What the job may use, beside what the machine has, and who says so."""

    machine_cores: int
    cores: float
    cores_source: str
    machine_ram_bytes: int
    ram_bytes: int
    ram_source: str


class Identity(NamedTuple):
    """Which run this is, of which job, where in it. None is what there is not."""

    name: str | None = None
    """As the user calls the run."""
    labels: tuple[tuple[str, str], ...] = ()
    """The user's own words for it: names and values."""
    boot_id: str | None = None
    """Tells machines apart whose names are the same, and one from itself before a restart."""
    node: str | None = None
    """As the scheduler calls the machine."""
    job: str | None = None
    step: str | None = None
    array_task: str | None = None
    rank: int | None = None
    """Of the process among those of a parallel job."""
    local_rank: int | None = None
    """Among those on this machine."""
    world_size: int | None = None
    """How many ranks there are."""


class Header(NamedTuple):
    """Everything known when a recording begins."""

    version: int
    tracker_version: str
    command: tuple[str, ...]
    pid: int
    host: str
    started_at: str
    """Local time with milliseconds and the offset from UTC, as ISO 8601 writes it."""
    sleep_seconds: float
    allocation: Allocation
    source: str
    """Which source reads the processes."""
    n_expected_cores: float
    gpu_uuids: tuple[str, ...] | None = None
    """The GPUs the user named, if any."""
    identity: Identity = Identity()


class Spread(NamedTuple):
    """Smallest, mean and largest value of a gauge over one window."""

    low: float
    mean: float
    high: float


class RamPeak(NamedTuple):
    """The largest resident memory of a part of the tree; private + shared = total."""

    total_bytes: int = 0
    private_bytes: int = 0
    shared_bytes: int = 0
    basis: str = SAMPLED


class Busiest(NamedTuple):
    """The window in which most CPU was used. Rates are for the reader to compute."""

    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0


class GpuCounters(NamedTuple):
    """What one device has summed up since the start. An integral divided by its seconds is a mean."""

    uuid: str
    utilization_percent_seconds: float = 0.0
    utilization_seconds: float = 0.0
    job_percent_seconds: float = 0.0
    """The same for the job's own processes, where the driver tells them apart."""
    job_seconds: float = 0.0
    energy_joules: float | None = None
    """Of the whole device, by the driver's counter."""
    energy_seconds: float = 0.0
    """The time that this energy was drawn in: shorter than the run if the driver answered late."""
    limited_seconds: tuple[tuple[str, float], ...] = ()
    """How long the clocks were held down, by what."""


class GpuPeaks(NamedTuple):
    """The largest figures of one device since the start. None is not known."""

    uuid: str
    used_bytes: int | None = None
    """Held by anybody."""
    job_bytes: Parts[int | None] = Parts(None, None, None)
    basis: str = SAMPLED
    """How the job's combined bytes were obtained."""
    utilization_percent: float | None = None
    grown_bytes: int | None = None
    """What the device held beyond what it held at the start, whoever it was."""
    power_watts: float | None = None
    temperature_celsius: float | None = None
    has_job: bool = False
    """Whether a process of the job was ever met there."""


class GpuProcessPeak(NamedTuple):
    """The most that one process of the job held on one device."""

    uuid: str
    pid: int
    name: str
    used_bytes: int | None
    basis: str = SAMPLED


class Peaks(NamedTuple):
    """Everything that only grows, except the counters."""

    ram: Parts[RamPeak] = Parts(RamPeak(), RamPeak(), RamPeak())
    ram_ceiling_bytes: int = 0
    """What combined RAM would be if nothing were shared: the truth lies between."""
    system_ram_bytes: int = 0
    limit_ram_bytes: int | None = None
    threads: Parts[int] = Parts(0, 0, 0)
    processes: int = 0
    busiest: Parts[Busiest] = Parts(Busiest(), Busiest(), Busiest())
    system_busiest: Busiest = Busiest()
    gpu_bytes: Parts[int] = Parts(0, 0, 0)
    system_gpu_bytes: int = 0
    gpu_utilization_sum_percent: float = 0.0
    """Of the devices that the job may use."""
    gpu_with_job_sum_percent: float = 0.0
    """Of those where it was met."""
    gpus: tuple[GpuPeaks, ...] = ()
    gpu_processes: tuple[GpuProcessPeak, ...] = ()
    """The largest ones, at most a few dozen."""


class GpuSample(NamedTuple):
    """One device over one window. None is not known."""

    uuid: str
    used_bytes: int | None = None
    """The most in the window."""
    job_bytes: int | None = None
    """The most that the job held."""
    utilization_percent: float | None = None
    """The mean over the window."""
    job_percent: float | None = None
    power_watts: float | None = None
    temperature_celsius: float | None = None
    sm_clock_mhz: float | None = None


class Sample(NamedTuple):
    """One line of a recording: an interval, with the counters so far."""

    at_seconds: float
    """Since the start of the recording, at the end of the interval."""
    readings: int
    """How often the tree was read in it."""
    late_seconds: float
    """How late the latest of these readings was."""
    cpu_seconds: Parts[float]
    system_cpu_seconds: float
    ram_bytes: Parts[Spread]
    system_ram_bytes: int
    threads: int
    processes: int
    gpus: tuple[GpuSample, ...] = ()
    gpu_counters: tuple[GpuCounters, ...] = ()
    peaks: Peaks = Peaks()
    """As they stood at the end of the interval."""


class Event(NamedTuple):
    """Something that happened at one instant: a device found, a note to the user."""

    at_seconds: float
    kind: str
    text: str = ""
    gpu: Gpu | None = None


class RegionTotals(NamedTuple):
    """One region in one process, all its calls so far. Written again whenever it has changed: the last one counts."""

    pid: int
    """0 for the calls of many processes together, where a job starts thousands that mark regions."""
    path: tuple[str, ...]
    """From the outermost region to this one; a region inside itself is the same region."""
    calls: int = 0
    """Entered and left. Calls inside itself count too, their time only once."""
    open_calls: int = 0
    """Entered and not left yet."""
    wall_seconds: float = 0.0
    shortest_seconds: float | None = None
    longest_seconds: float | None = None
    squared_seconds: float = 0.0
    """Sum of the squares, for the spread."""
    own_wall_seconds: float = 0.0
    """Without the regions inside."""
    cpu_seconds: float = 0.0
    own_cpu_seconds: float = 0.0
    """Without the regions inside: of all regions of a process together never more than the process used."""
    entry_ram_bytes: int | None = None
    """Of the process, when it was last entered."""
    exit_ram_bytes: int | None = None
    peak_ram_bytes: int | None = None
    peak_ram_basis: str = SAMPLED
    gpu_bytes: int | None = None
    """The most that the job held on all devices together, in a look while inside."""
    gpu_percent_seconds: float = 0.0
    gpu_seconds: float = 0.0
    """Time of the looks that the integral is over."""
    energy_joules: float | None = None
    first_seconds: float | None = None
    """When it was first entered, since the start."""
    last_seconds: float | None = None


class MetricRow(NamedTuple):
    """What the job logged at one instant: its own numbers, by name."""

    at_seconds: float
    values: dict[str, float]
    step: float | None = None
    pid: int = 0


class MetricTotals(NamedTuple):
    """One number that the job logged, all its values so far."""

    name: str
    logged: int
    not_finite: int
    """How many were nan or inf; they are in none of the sums."""
    sum: float
    minimum: float | None
    maximum: float | None
    last: float
    last_seconds: float


class ProcessTotals(NamedTuple):
    """One process of the job, from first to last look. Written when it has gone; the last one counts."""

    pid: int
    parent_pid: int
    name: str
    first_seconds: float
    last_seconds: float
    cpu_seconds: float
    peak_ram_bytes: int


class FrameworkMemory(NamedTuple):
    """What a framework in one process holds on one device. Written again whenever it has changed: the last one counts."""

    pid: int
    framework: str
    """PyTorch, JAX or TensorFlow."""
    device: str
    """The framework's own name for it."""
    uuid: str
    """Empty where it could not be told which device that is."""
    at_seconds: float
    in_use_bytes: int
    """By tensors (arrays), at that time."""
    peak_in_use_bytes: int
    peak_in_use_basis: str
    """Exact by the allocator's own mark, or sampled if the mark is older than the tracking or was reset."""
    held_bytes: int | None = None
    """In use and cached to be used again."""
    peak_held_bytes: int | None = None
    flushes: int = 0
    """How often the cache had to be given back to make room."""
    failures: int = 0
    """How often there was no room even so."""
    split_in_use_bytes: int | None = None
    """This and the following: at the moment when the process was seen to hold most."""
    split_held_bytes: int | None = None
    split_process_bytes: int | None = None
    """By the driver's account."""
    split_others_bytes: int | None = None
    split_free_bytes: int | None = None


class Totals(NamedTuple):
    """All there is to say at one instant about everything since the start."""

    at_seconds: float = 0.0
    cpu_seconds: Parts[float] = Parts(0.0, 0.0, 0.0)
    system_cpu_seconds: float = 0.0
    readings: int = 0
    gpu_counters: tuple[GpuCounters, ...] = ()
    peaks: Peaks = Peaks()


class End(NamedTuple):
    """The closing line."""

    reason: str
    exit_code: int | None
    totals: Totals
    tracker_cpu_seconds: float
    tracker_ram_bytes: int


class Recording(NamedTuple):
    """A recording. Without an end, the sampler was killed. Read from a file, its sequences are decoded when looked at."""

    header: Header
    samples: Sequence[Sample]
    events: tuple[Event, ...]
    end: End | None
    totals: Totals
    problems: Sequence[str] = ()
    """The lines that had to be left out. Looking at samples, regions, metrics or processes may find more."""
    regions: Sequence[RegionTotals] = ()
    metrics: Sequence[MetricRow] = ()
    processes: Sequence[ProcessTotals] = ()
    frameworks: Sequence[FrameworkMemory] = ()
    metric_totals: Sequence[MetricTotals] = ()
    """In place of the metrics, where whoever tells has only these."""

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The devices that were found."""
        return tuple(event.gpu for event in self.events if event.gpu is not None)
