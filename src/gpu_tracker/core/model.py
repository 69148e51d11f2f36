"""The values: what a source reads, what a recording keeps. No behaviour, no I/O.

Bytes are bytes, times are seconds, counters stay counters. `None` means not known, 0 means measured zero. Pure.
"""

from __future__ import annotations

from .values import Generic, NamedTuple, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeAlias, TypeVar

    _Number = TypeVar("_Number", int, float)
    Path: TypeAlias = tuple[str, ...]

# How a number was obtained, best first.
EXACT = "exact"  # a kernel or driver counter, or a kernel high-water mark
SAMPLED = "sampled"  # from the readings taken: the largest, or the last; the truth may be more
ESTIMATE = "estimate"  # derived, with the reason in the notes
SHARED = "shared"  # of a region's CPU time: part of it may be other code's
UNKNOWN = "unknown"

# What a meter of energy meters.
PROCESSOR_METER, MEMORY_METER = "processor", "memory"
# The kinds of events that say which figure of a device is an estimate.
POLLED, INTEGRATED, DRAWN = "polled", "integrated", "drawn"
OOM_LIMIT = "oom_limit"
# The kind of event that names the job's own group in which that was; without a name it was in that of others under the limit.
OOM_GROUP = "oom_group"
# The kind of event that says why the energy of processors is not measured.
UNMETERED = "unmetered"
# The kind of event that is a note on a process whose children leave no account of what they used.
UNREAPED = "unreaped"
# The kind of event that is a note on the main process, which was gone before it could be read a last time.
UNSEEN_END = "unseen_end"
# The kind of event that is a note on a whole job, some of which ran before its tracker began.
EARLIER = "earlier"
# The kind of event that is a note on samples that could not be written, or did not stay.
UNWRITTEN = "unwritten"
# The kind of event that names a vendor whose driver has never answered, or a device that could not be opened.
UNREAD = "unread"
# Kinds of events that are notes on a GPU: a program's error, and a fault of the device.
GPU_ERROR, GPU_FAULT = "gpu_error", "gpu_fault"
# Kinds of faults that a device reports: an error of its driver, and memory errors.
XID, CORRECTED, UNCORRECTED = "Xid", "corrected", "uncorrected"
# The kind of event that names a signal which reached the job by way of whoever runs it.
SIGNAL = "signal"
# A launcher that starts ranks again.
TORCHRUN = "torchrun"
# How a recording ends whose sampler did not live to see it.
SAMPLER_LOST = "sampler lost"


def name_unread(vendor: str, ordinal: int) -> str:
    """A device in the text of such an event; once it is found, the event no longer counts."""
    return f"{vendor} {ordinal}"


def name_unopened(ordinal: int) -> str:
    """What stands for the UUID of a device that could not be opened, and so could not tell its own."""
    return f"GPU {ordinal}"


class Parts(NamedTuple, Generic[Value]):
    """One figure of the tracked process, of all its descendants, and of both together."""

    main: Value
    descendants: Value
    combined: Value


def add_parts(main: float, descendants: float) -> Parts[float]:
    """With their sum as the combined figure."""
    return Parts(main, descendants, main + descendants)


# ---- Figures that may be unknown.


def larger(known: _Number | None, seen: _Number | None) -> _Number | None:
    """The larger of two figures, either of which may be unknown."""
    if known is None or seen is None:
        return seen if known is None else known
    return max(known, seen)


def find_peak(known: int | None, seen: int | None, by_device: Iterable[int | None]) -> int | None:
    """The largest figure; zero only if no device's is unknown."""
    every = list(by_device)
    most = max((size for size in (known, seen, *every) if size is not None), default=None)
    return most if most or None not in every else None


def add_known(figures: Iterable[_Number | None]) -> _Number | None:
    """The sum of what is known; zero only if everything is."""
    every = list(figures)
    known = [figure for figure in every if figure is not None]
    total = sum(known[1:], known[0]) if known else None
    return total if total or len(known) == len(every) else None


def add_sizes(sizes: Iterable[int | None]) -> int | None:
    """The sum; unknown if one is."""
    every = list(sizes)
    known = [size for size in every if size is not None]
    return sum(known) if len(known) == len(every) else None


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
    """CPU time of the children it has waited for, and of theirs."""
    rss_bytes: int
    file_bytes: int
    """The part of the resident set that is files and shared memory."""
    peak_rss_bytes: int | None = None
    """The kernel's high-water mark, where it was read."""
    was_running_at_start: bool = False
    page_faults: int = 0
    """How often the process has touched a page that it did not have yet, or had to copy."""
    major_faults: int = 0
    """Page faults that had to wait for storage, its own and those of the children it has waited for."""
    virtual_bytes: int = 0
    """The size of its address space."""
    page_table_bytes: int = 0
    """What the kernel keeps to find its pages; 0 until it is read."""
    peak_footprint_bytes: int | None = None
    """The most it was charged with, where the kernel keeps that (macOS) and no high-water mark of the resident set: compressed memory
    counts, unchanged files do not."""


class ProcessActivity(NamedTuple):
    """What one process has done so far. None is not known."""

    pid: int
    was_running_at_start: bool = False
    read_bytes: int | None = None
    """From storage. This and the next two include the children that it has waited for."""
    written_bytes: int | None = None
    major_faults: int | None = None
    switches: int | None = None
    """How often one of its threads was put on a core."""
    waiting_seconds: float | None = None
    """How long its threads could have run, but waited for a core."""


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
    """CPU time of all processes, a counter."""
    ram_used_bytes: int
    limit_used_bytes: int | None = None
    """Memory used under the job's own limit, where it has one."""


class Stalls(NamedTuple):
    """How long anything on the machine waited for a resource: counters of the kernel. None is not known."""

    cpu_seconds: float | None = None
    memory_seconds: float | None = None
    io_seconds: float | None = None
    memory_full_seconds: float | None = None
    """In which nothing else could run either."""
    io_full_seconds: float | None = None
    throttled_seconds: float | None = None
    """How long the job's own group was stopped, because it had used up its CPU quota."""


class EnergyReading(NamedTuple):
    """One meter of the machine."""

    zone: str
    """The kernel's name of the meter."""
    kind: str
    """What it meters: a processor or its memory."""
    joules: float
    """A counter."""
    range_joules: float | None = None
    """Where it begins again at 0."""


class MachineEnergy(NamedTuple):
    """Energy of the whole machine since the start, by its own meters. None is not measured."""

    processors_joules: float | None = None
    memory_joules: float | None = None
    """Where it is metered separately."""
    seconds: float | None = None
    """The time that this covers."""


class Gpu(NamedTuple):
    """A device, as its driver describes it."""

    ordinal: int
    """Its index in the vendor's own tool."""
    uuid: str
    """The vendor's UUID or, without one, the slot: `pci-0000:03:00.0`."""
    name: str
    memory_bytes: int | None
    vendor: str = "nvidia"
    source: str = "nvml"
    """Which source reads it."""
    bus_id: str = ""
    driver: str = ""
    """The driver's version."""
    parent_uuid: str | None = None
    """The physical device that this is an instance of."""
    is_visible: bool = True
    """Whether the job's environment lets it use this device."""
    power_limit_watts: float | None = None
    """This and the next two as they were when it was found, and left out if not known."""
    top_sm_clock_mhz: float | None = None
    slowdown_celsius: float | None = None
    """From this temperature on its clocks are throttled."""
    shares_memory_with: str | None = None
    """The UUID of a device with the same memory, which counts there; left out if none."""
    instance: int | None = None
    """Its number among the instances of the physical device, which has the index; left out of a whole device."""
    label: str = ""
    """What it is called: its place, if need be with its vendor (`amd:0`). Not recorded: it depends on what else is there."""
    is_split: bool = False
    """Whether it is a whole device of which only the instances can be used. Not recorded: only live views show it."""
    old_uuid: str = ""
    """What CUDA called an instance before these had UUIDs, and still accepts: `MIG-GPU-.../7/0`. Not recorded."""

    @property
    def known_uuid(self) -> str | None:
        """Its UUID, unless that is only what stands for one."""
        return None if self.uuid == f"GPU {self.place}" else self.uuid

    @property
    def place(self) -> str:
        """Its index, of an instance with its own number: `1`, `1:0`."""
        return str(self.ordinal) if self.instance is None else f"{self.ordinal}:{self.instance}"

    @property
    def sort_key(self) -> tuple[str, int, int]:
        """By vendor and place."""
        return self.vendor, self.ordinal, -1 if self.instance is None else self.instance


def tell_apart(gpus: Iterable[Gpu]) -> tuple[Gpu, ...]:
    """The same devices with labels, which name the vendor if there are several."""
    gpus = tuple(gpus)
    is_mixed = len({gpu.vendor for gpu in gpus}) > 1
    return tuple(gpu._replace(label=f"{gpu.vendor}:{gpu.place}" if is_mixed else gpu.place) for gpu in gpus)


def add_capacities(gpus: Iterable[Gpu]) -> int | None:
    """The memory of all devices; what several share counts once."""
    return add_known(gpu.memory_bytes for gpu in gpus if gpu.shares_memory_with is None)


class GpuShares(NamedTuple):
    """The job's share of a device at the instants that its driver has sampled since the last reading."""

    instants: tuple[tuple[float, float | None], ...] = ()
    """Time and percent; zero where others ran, None if invalid."""
    are_complete: bool = False
    """Whether the driver is known to return every sample, not only the newest of each process."""
    until_seconds: float = float("inf")
    """Up to here: when the driver was asked, which may be long before the reading was complete."""
    pause_seconds: float = float("inf")
    """A longer time until the driver is asked again may cost samples."""
    names_one: bool = False
    """Whether the driver names only one process at an instant, although others run."""
    earlier: tuple[GpuShares, ...] = ()
    """What it said since the last reading, each time that it was asked for samples only."""


class Activity(NamedTuple):
    """How much of a device worked. None is not measured."""

    sm_percent: float | None = None
    """Of the multiprocessors, how many had work."""
    occupancy_percent: float | None = None
    """Of the warps that fit on them, how many were there."""
    tensor_percent: float | None = None
    """How long tensor cores worked."""
    bandwidth_percent: float | None = None
    """Of the bandwidth of its memory, how much was used."""


LINKS = ("PCIe", "NVLink")


class Traffic(NamedTuple):
    """What went through the links of a device. None is not measured."""

    pcie_received_bytes: int | None = None
    pcie_sent_bytes: int | None = None
    nvlink_received_bytes: int | None = None
    nvlink_sent_bytes: int | None = None


class GpuReading(NamedTuple):
    """One device at one instant. None is not reported."""

    uuid: str
    used_bytes: int | None = None
    """Used by all processes, without what the driver reserves where that is reported separately."""
    utilization_percent: float | None = None
    """Mean since the last reading where the driver keeps samples, else its latest value."""
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
    """What throttles the clocks: power, heat..."""
    samples: tuple[tuple[float, float], ...] | None = None
    """Time and percent that the driver has sampled since the last reading; None if it keeps no samples."""
    lists_processes: bool = True
    """Whether the device lists its processes; if not, a job's memory there is not known."""
    has_lost_list: bool = False
    """Whether its processes could not be listed this time: what they hold is not known even if they are listed later."""
    measures_processes: bool = False
    """Whether it reports utilization per process."""
    shares: GpuShares | None = None
    """Where the driver samples processes. Elsewhere their utilization is that since the last reading."""
    sm_percent: float | None = None
    """This and the next three: the latest `Activity`."""
    occupancy_percent: float | None = None
    tensor_percent: float | None = None
    bandwidth_percent: float | None = None
    activity_seconds: float = 0.0
    """The time of which it is the mean; 0 if an earlier reading has told it already."""
    energy_at_seconds: float | None = None
    """When the counter of energy was read, which may be long after the rest; None if with it."""
    traffic: Traffic = Traffic()
    """Since the reading before; unknown if nothing new is known."""
    has_others: bool = True
    """Whether it may be used by anybody else than the job."""
    listed_bytes: int | None = None
    """What all processes in its list hold; None if the driver does not tell that of each."""


def find_activity(reading: GpuReading | GpuSample) -> Activity:
    """How much of the device worked."""
    return Activity(*(getattr(reading, figure) for figure in Activity._fields))


class GpuProcessReading(NamedTuple):
    """What the driver attributes to one process on one device."""

    uuid: str
    pid: int
    used_bytes: int | None = None
    utilization_percent: float | None = None
    """Of the device's compute units: since the last reading, or over the driver's samples of about a second."""
    kind: str = "compute"
    """`compute`, `graphics` or `compute+graphics`."""


class GpuHighWater(NamedTuple):
    """The peak of one process on one device as recorded by the driver; the process may have ended."""

    uuid: str
    pid: int
    used_bytes: int
    are_all_known: bool = True
    """Whether the driver has told the peak of every process that may have been the job's."""


class GpuFault(NamedTuple):
    """What a device reports that should not have happened."""

    uuid: str
    kind: str
    """`Xid`, `corrected` or `uncorrected`."""
    number: int
    """Of the Xid, or of the memory errors."""
    at_seconds: float = 0.0
    """When it was read, which may be long after the rest."""


class GpuReadings(NamedTuple):
    """All readings of one GPU source at one tick."""

    at_seconds: float
    devices: tuple[GpuReading, ...] = ()
    processes: tuple[GpuProcessReading, ...] = ()
    high_waters: tuple[GpuHighWater, ...] = ()
    vendor: str = ""
    """Whose devices were read: those that are missing could not be, unless they sleep."""
    asleep: frozenset[str] = frozenset()
    """UUIDs of devices that reading would have woken."""
    faults: tuple[GpuFault, ...] = ()
    """Since the last reading."""
    unanswered_seconds: float = 0.0
    """For how long the driver had not answered before, although it usually does."""
    late_seconds: float = 0.0
    """For how long nothing was read before, because nobody ran who reads."""


class FrameworkReading(NamedTuple):
    """What a framework reports about one device, in the process that uses it."""

    framework: str
    device: str
    """The framework's own name for it."""
    uuid: str
    """Without the vendor's prefix; empty if the framework does not report it."""
    in_use_bytes: int
    """By tensors."""
    peak_in_use_bytes: int
    """Since the process began, or since the program reset it."""
    held_bytes: int | None = None
    """Including what is cached for reuse."""
    peak_held_bytes: int | None = None
    flushes: int = 0
    """How often the cache was flushed under memory pressure."""
    failures: int = 0
    """How often an allocation failed."""
    earlier_peak_in_use_bytes: int = 0
    """The peak before tracking began."""
    earlier_peak_held_bytes: int = 0


class Survivor(NamedTuple):
    """An object that could not be freed."""

    name: str | None
    """The variable that had it; None of a tensor that was in none."""
    kind: str
    """Its type."""
    size_bytes: int
    holder: str | None
    """Who holds it; None: nobody that Python knows, so the graph of a tensor or C code."""


class TreeCounters(NamedTuple):
    """What the job has done since the start, ended processes included. None is not known."""

    read_bytes: int | None = None
    """From storage: what came out of the page cache is not counted."""
    written_bytes: int | None = None
    major_faults: int | None = None
    """Page faults that had to wait for storage."""
    switches: int | None = None
    """How often a thread was put on a core."""
    waiting_seconds: float | None = None
    """How long threads could have run, but waited for a core; summed over all threads."""


def add_counters(one: TreeCounters | None, other: TreeCounters) -> TreeCounters:
    """Their sum; unknown if a part of it is."""
    return other if one is None else TreeCounters(*_map_known(lambda a, b: a + b, one, other))


def subtract_counters(after: TreeCounters, before: TreeCounters) -> TreeCounters:
    """What was added in between."""
    return TreeCounters(*_map_known(lambda a, b: max(0, a - b), after, before))


def subtract_stalls(after: Stalls, before: Stalls) -> Stalls:
    """What was added in between."""
    return Stalls(*_map_known(lambda a, b: max(0.0, a - b), after, before))


def _map_known(combine: Callable[[Any, Any], Any], one: Iterable[Any], other: Iterable[Any]) -> Iterable[Any]:
    return [None if a is None or b is None else combine(a, b) for a, b in zip(one, other, strict=True)]


class RootFigures(NamedTuple):
    """Exact figures of the root, from the process itself or its parent."""

    own_cpu_seconds: float
    reaped_cpu_seconds: float
    adopted_cpu_seconds: float = 0.0
    """CPU time of the job's orphans that its parent has adopted and waited for."""
    largest_peak_bytes: int | None = None
    """Largest resident set of any one process among the root and the children waited for."""
    may_be_a_childs: bool = False
    """Whether that process may not have been the root."""
    own_peak_bytes: int | None = None
    """The root's own high-water mark, if it is the root that tells."""
    counters: TreeCounters = TreeCounters()
    """Of the root and the children waited for."""
    is_cpu_split: bool = True
    """Whether the CPU time of the children waited for is known apart; if not, it is in the root's own."""
    risen_peak_bytes: int | None = None
    """The root's own high-water mark, if it has risen to that since the start."""
    footprint_bytes: int | None = None
    """The most that the root was charged with, where that is what the kernel keeps."""


class Known(NamedTuple):
    """What the job's owner or parent knows at the end without a sampler."""

    at_nanoseconds: int
    before: RootFigures
    after: RootFigures | None
    """None where the system does not report it."""
    exit_code: int | None = None
    exception: str | None = None
    """The class of the exception that ended the tracked part."""
    notes: tuple[str, ...] = ()
    """What it has to say about the recording as a whole."""


# ---- What a recording keeps.


class Allocation(NamedTuple):
    """What the job may use, what the machine has, and what sets the limit."""

    machine_cores: int
    cores: float
    cores_source: str
    machine_ram_bytes: int
    ram_bytes: int
    ram_source: str
    address_space_bytes: int | None = None
    """What one process may map at most, if that is limited (`ulimit -v`)."""
    time_limit_seconds: float | None = None
    """Of the whole job, as its scheduler granted it."""
    ends_at_seconds: float | None = None
    """When the scheduler will end the job: seconds since 1970."""
    granted_gpus: int | None = None
    """How many devices the scheduler has given to the job on this machine."""


NO_PROCESS = 0
"""In place of a main process, where all processes of a job are tracked."""


class Identity(NamedTuple):
    """Which run this is, of which job, and its rank. None does not apply."""

    name: str | None = None
    """The user's name for the run."""
    labels: tuple[tuple[str, str], ...] = ()
    """The user's own labels: names and values."""
    boot_id: str | None = None
    """Distinguishes machines with the same name, and boots of one machine."""
    node: str | None = None
    """The scheduler's name for the machine."""
    job: str | None = None
    step: str | None = None
    array_task: str | None = None
    rank: int | None = None
    """Of this process in a parallel job."""
    local_rank: int | None = None
    """Among the ranks on this machine."""
    ranks: int | None = None
    """How many ranks there are."""
    scheduler: str | None = None
    """`slurm`, `pbs` or `kubernetes`."""
    job_name: str | None = None
    array_job: str | None = None
    """The job of which `array_task` is one."""
    restart: int | None = None
    """How often the scheduler has started the job again."""
    nodes: int | None = None
    """How many machines the job has."""
    launcher: str | None = None
    """Who has started the ranks: `openmpi`, `mpich`, `pmix`, `slurm`, `torchrun`..., or its process: `ray`, `dask`."""
    attempt: int | None = None
    """How often the launcher has started this rank again."""
    run_id: str | None = None
    """The launcher's own name for the run."""
    pid_namespace: str | None = None
    """Distinguishes containers and nodes with the same process IDs."""
    launcher_process: str | None = None
    """Of the launcher, the process on this machine that has started this rank: its ID and when it began, in ticks since the boot."""
    rank_process: str | None = None
    """The same of the process that was started as this rank, in which several commands may be tracked."""
    port: int | None = None
    """At which the ranks of one torchrun meet."""
    cluster: str | None = None
    """Of which the job is: others may have one of the same number."""

    @property
    def relaunches(self) -> int:
        """How often its launcher has started this rank again, without what counts as an attempt but is the scheduler's restart."""
        is_launchers = self.launcher == TORCHRUN or self.attempt != self.restart
        return (self.attempt or 0) if is_launchers else 0


class Header(NamedTuple):
    """Everything known when a recording begins."""

    version: int
    tracker_version: str
    command: tuple[str, ...]
    pid: int
    host: str
    started_at: str
    """Local time with milliseconds and the offset from UTC, in ISO 8601."""
    sleep_seconds: float
    allocation: Allocation
    source: str
    """Which source reads the processes."""
    n_expected_cores: float
    gpu_uuids: tuple[str, ...] | None = None
    """The GPUs the user named, if any."""
    identity: Identity = Identity()


class Spread(NamedTuple):
    """Smallest, mean and largest value of a gauge over one interval. None is not known."""

    low: float | None
    mean: float | None
    high: float | None


class RamPeak(NamedTuple):
    """The largest resident memory of a part of the tree; private + shared = total."""

    total_bytes: int = 0
    private_bytes: int = 0
    shared_bytes: int = 0
    basis: str = SAMPLED


class Busiest(NamedTuple):
    """The interval with the most CPU use; the reader computes the rate."""

    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0


class GpuCounters(NamedTuple):
    """Counters of one device since the start. An integral divided by its seconds is a mean."""

    uuid: str
    utilization_percent_seconds: float = 0.0
    utilization_seconds: float = 0.0
    job_percent_seconds: float = 0.0
    """The same for the job's own processes, where the driver reports them."""
    job_seconds: float = 0.0
    energy_joules: float | None = None
    """Of the whole device, by the driver's counter, or of its power over time where it has none."""
    energy_seconds: float = 0.0
    """The time over which this energy was drawn: shorter than the run if the driver answered late, or its counter jumped."""
    limited_seconds: tuple[tuple[str, float], ...] = ()
    """How long the clocks were throttled, by reason."""
    activity: tuple[tuple[float, float], ...] = ()
    """For each figure of `Activity` an integral and its seconds; nothing if none was measured."""
    job_bytes_unknown_seconds: float = 0.0
    """How long it was not known what the job held there."""
    used_bytes_unknown_seconds: float = 0.0
    """The same of all processes."""
    traffic: tuple[int | None, ...] = ()
    """The figures of `Traffic`; nothing if none was measured."""
    job_bytes_gap_seconds: float = 0.0
    """How much of the time in which it was not known came after it was: drivers need time to be opened, but then answer."""
    used_bytes_gap_seconds: float = 0.0
    """The same of all processes."""
    utilization_gap_seconds: float = 0.0
    """The same of its utilization."""


def average_activity(integrals: Iterable[tuple[float, float]]) -> Activity:
    """The means, given an integral and its seconds for each figure."""
    figures = zip(Activity._fields, integrals, strict=False)
    return Activity(**{name: total / seconds for name, (total, seconds) in figures if seconds > 0})


class GpuPeaks(NamedTuple):
    """The largest figures of one device since the start. None is not known."""

    uuid: str
    used_bytes: int | None = None
    """Used by all processes."""
    job_bytes: Parts[int | None] = Parts(None, None, None)
    basis: str = SAMPLED
    """How the job's combined bytes were obtained."""
    utilization_percent: float | None = None
    grown_bytes: int | None = None
    """Growth of the device's used memory since the start, by any process."""
    power_watts: float | None = None
    temperature_celsius: float | None = None
    has_job: bool = False
    """Whether a process of the job was ever seen there."""


class GpuProcessPeak(NamedTuple):
    """The peak of one process of the job on one device."""

    uuid: str
    pid: int
    name: str
    used_bytes: int | None
    basis: str = SAMPLED


class Peaks(NamedTuple):
    """The largest values since the start."""

    ram: Parts[RamPeak] = Parts(RamPeak(), RamPeak(), RamPeak())
    ram_ceiling_bytes: int = 0
    """Upper bound of combined RAM, as if nothing were shared."""
    system_ram_bytes: int = 0
    limit_ram_bytes: int | None = None
    limit_held_bytes: int | None = None
    """What the memory limit counts and the kernel cannot reclaim: anonymous, shared and kernel memory."""
    threads: Parts[int] = Parts(0, 0, 0)
    processes: int = 0
    virtual_bytes: int = 0
    """The largest address space of one process."""
    page_table_bytes: int = 0
    """Of all processes together: a memory limit counts them, too."""
    busiest: Parts[Busiest] = Parts(Busiest(), Busiest(), Busiest())
    system_busiest: Busiest = Busiest()
    gpu_bytes: Parts[int | None] = Parts(None, None, None)
    system_gpu_bytes: int | None = None
    gpu_utilization_sum_percent: float | None = None
    """Of the devices that the job may use."""
    gpu_with_job_sum_percent: float | None = None
    """Of the devices where it was seen."""
    gpus: tuple[GpuPeaks, ...] = ()
    gpu_processes: tuple[GpuProcessPeak, ...] = ()
    """The largest ones, at most a few dozen."""


class GpuSample(NamedTuple):
    """One device over one interval. None is not known."""

    uuid: str
    used_bytes: int | None = None
    """The largest in the interval."""
    job_bytes: int | None = None
    """The largest of the job."""
    utilization_percent: float | None = None
    """The mean over the interval."""
    job_percent: float | None = None
    power_watts: float | None = None
    temperature_celsius: float | None = None
    sm_clock_mhz: float | None = None
    sm_percent: float | None = None
    """How many of its multiprocessors had work. This and the following: the mean, where the driver measures it."""
    occupancy_percent: float | None = None
    tensor_percent: float | None = None
    bandwidth_percent: float | None = None


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
    """At the end of the interval."""
    counters: TreeCounters = TreeCounters()
    """This and the following: since the start, read about once a second."""
    stalls: Stalls = Stalls()
    energy: MachineEnergy = MachineEnergy()


class PeakProcess(NamedTuple):
    """One process at the moment of a peak."""

    pid: int
    name: str
    size_bytes: int
    """Its resident memory, or what it held on the device. Shared pages count in each process that maps them."""


RAM = "ram"


class PeakMoment(NamedTuple):
    """Who held what when a peak was read. Written again when the peak has grown: the last one counts."""

    subject: str
    """`ram` for the memory of the whole job, or the UUID of a device."""
    at_seconds: float
    size_bytes: int
    n_processes: int
    processes: tuple[PeakProcess, ...] = ()
    """The largest ones, at most eight."""
    regions: tuple[Path, ...] = ()
    """The paths of regions that were open, innermost ones only."""


class Event(NamedTuple):
    """Something that happened at one instant: a device found, a note to the user.

    Kinds are `gpu` (a device and its description), `note` (a sentence for the user), `unattributed` (a note, and the job's GPU
    memory is an estimate: it could not be attributed to processes), `polled` (the UUID of a device whose driver keeps no samples:
    its utilization is an estimate), `drawn` (the UUID of a device that the job shares and whose driver samples processes at instants:
    the job's own utilization is an estimate), `integrated` (the UUID of a device without a counter of energy, or with one that
    stood still: it is the sum of its power over
    time, an estimate), `unread` (a vendor whose driver has never answered, or a vendor and the
    index of a device that could not be opened, as `nvidia 0`: totals over all devices are not known unless it is found later),
    `unmetered` (why the energy of processors is not measured), `unreaped` (a note: children of a process leave no account of what
    they used), `unseen_end` (a note: what the main process used last is not known), `earlier` (a note: what a
    whole job used before its tracker began is not in the figures), `unwritten` (a note: samples are missing, for want of room or because the file was truncated), `oom` (a note: the kernel has killed a process for its memory),
    `oom_limit` (the limit in bytes under which that was, if the job entered it after its start), `oom_group` (the control group of the job in which that was;
    empty if it was in that of others under the same limit), `exception` (the class of the one that ended the tracked part), `gpu_error` (a note: a program has made an error on a GPU) and
    `gpu_fault` (a note: a GPU has failed).
    """

    at_seconds: float
    kind: str
    text: str = ""
    gpu: Gpu | None = None


def list_gpus(events: Iterable[Event], known: Iterable[Gpu] = ()) -> tuple[Gpu, ...]:
    """The devices of which events tell, after those that are known: each UUID once, as last described."""
    devices = {gpu.uuid: gpu for gpu in known}
    devices.update((event.gpu.uuid, event.gpu) for event in events if event.gpu is not None)
    return tell_apart(devices.values())


class RegionTotals(NamedTuple):
    """One region in one process, all calls so far. Written again after each change: the last one counts."""

    pid: int
    """0 for the calls of many processes together, where thousands use regions."""
    path: tuple[str, ...]
    """From the outermost region to this one; a recursive region appears once."""
    calls: int = 0
    """Entered and left. Recursive calls count too, but their time only once."""
    open_calls: int = 0
    """Entered and not left yet."""
    wall_seconds: float = 0.0
    open_wall_seconds: float = 0.0
    """The part of it that is of open calls, up to the last reading."""
    shortest_seconds: float | None = None
    longest_seconds: float | None = None
    squared_seconds: float = 0.0
    """Sum of squares, for the standard deviation."""
    own_wall_seconds: float = 0.0
    """Without the regions inside."""
    cpu_seconds: float = 0.0
    own_cpu_seconds: float = 0.0
    """Without the regions inside; over all regions never more than the process used."""
    cpu_basis: str = EXACT
    entry_ram_bytes: int | None = None
    """Of the process, at the last entry."""
    exit_ram_bytes: int | None = None
    peak_ram_bytes: int | None = None
    peak_ram_basis: str = SAMPLED
    gpu_bytes: int | None = None
    """The largest reading of the job on all devices together while inside."""
    gpu_percent_seconds: float = 0.0
    gpu_seconds: float = 0.0
    """The time that the integral covers."""
    energy_joules: float | None = None
    """Of the devices that the job uses: what they drew between two readings is divided by time."""
    first_seconds: float | None = None
    """First entry, since the start."""
    last_seconds: float | None = None
    peak_ram_call_seconds: float | None = None
    """When the call began in which the sampler read this peak; unknown if the process itself found the peak."""
    gpu_bytes_call_seconds: float | None = None
    """When the call began in which the largest GPU memory was read."""
    switches: int = 0
    """How often its code was suspended, or went on in the middle of a call, where that is followed."""
    own_cpu_basis: str | None = None
    """Shared if code of another region may have gone on in the middle of it, and nobody told."""
    gpu_unknown_seconds: float | None = None
    """How long it was open while utilization was not known, if it ever was known."""
    energy_least_joules: float | None = None
    """What was drawn between readings of the devices between which it was open all the time."""
    energy_most_joules: float | None = None
    """What was drawn between those between which it was open at all."""


class Call(NamedTuple):
    """One call of a region. All are kept while few, then the longest, the largest in memory and a uniform sample."""

    path: tuple[str, ...]
    pid: int
    number: int
    """Among the calls of this region in this process, counted from 1 as they end; 0 if it has not ended."""
    start_seconds: float
    end_seconds: float | None
    """None if it was still open at the last reading, or its process was killed inside."""
    thread: int = 0
    """The kernel's number of the thread that ended it; 0 if it has not ended."""
    peak_ram_bytes: int | None = None
    """Of the process during the call, as far as known: memory is not read in every short call."""
    peak_ram_basis: str = SAMPLED
    priority: int = 0
    """Random, below 2³²: the calls with the smallest are the uniform sample."""


class RegionGaps(NamedTuple):
    """What is missing or changed among the regions. Written again after each change: the last one counts."""

    long_names: int = 0
    """Names that were shortened, to their begin and a digest."""
    refused_regions: int = 0
    """Beyond the first thousand of a process: they are not recorded. Counted up to ten thousand per process."""
    refusing_processes: int = 0
    unfollowed_processes: int = 0
    """Processes with regions of which nothing is recorded, for lack of room for their files."""
    lost_metrics: int = 0
    """Rows of metrics that could not be written, for lack of room."""
    refused_metrics: int = 0
    """Logged numbers with names beyond the first ten thousand of the job, which are not recorded; left out if 0."""


# A run has a few dozen; what is put into a name by mistake must not fill the memory.
MOST_METRICS = 10_000


class MetricRow(NamedTuple):
    """Metrics that the job logged at one instant, by name."""

    at_seconds: float
    values: dict[str, float]
    step: float | None = None
    pid: int = 0


class MetricTotals(NamedTuple):
    """One metric, all its values so far."""

    name: str
    logged: int
    not_finite: int
    """How many were nan or inf; they are in no sum."""
    sum: float
    minimum: float | None
    maximum: float | None
    last: float
    last_seconds: float


class ProcessTotals(NamedTuple):
    """One process of the job, from first to last reading. Written when it has ended; the last one counts."""

    pid: int
    parent_pid: int
    name: str
    first_seconds: float
    last_seconds: float
    cpu_seconds: float
    peak_ram_bytes: int
    gpu_seconds: float | None = None
    """How long its kernels kept devices busy, summed over devices: an estimate from the driver's percentages. None: never told."""
    gpu_joules: float | None = None
    """Of the energy of these devices, the part of its share of their utilization: an estimate."""


class FrameworkMemory(NamedTuple):
    """Memory of a framework in one process on one device. Written again after each change: the last one counts."""

    pid: int
    framework: str
    """PyTorch, JAX or TensorFlow."""
    device: str
    """The framework's own name for it."""
    uuid: str
    """Empty if the device could not be identified."""
    at_seconds: float
    in_use_bytes: int
    """By tensors (arrays), at that time."""
    peak_in_use_bytes: int
    peak_in_use_basis: str
    """Exact from the allocator's own peak, or sampled if that is older than the tracking or was reset."""
    held_bytes: int | None = None
    """In use, and cached for reuse."""
    peak_held_bytes: int | None = None
    flushes: int = 0
    """How often the cache was flushed under memory pressure."""
    failures: int = 0
    """How often an allocation failed."""
    split_in_use_bytes: int | None = None
    """This and the following: at the reading in which the process held most."""
    split_held_bytes: int | None = None
    split_process_bytes: int | None = None
    """As the driver reports it."""
    split_others_bytes: int | None = None
    split_free_bytes: int | None = None


class Totals(NamedTuple):
    """Everything since the start, at one instant."""

    at_seconds: float = 0.0
    cpu_seconds: Parts[float] = Parts(0.0, 0.0, 0.0)
    system_cpu_seconds: float = 0.0
    readings: int = 0
    gpu_counters: tuple[GpuCounters, ...] = ()
    peaks: Peaks = Peaks()
    counters: TreeCounters = TreeCounters()
    stalls: Stalls = Stalls()
    energy: MachineEnergy = MachineEnergy()
    unread_seconds: float = 0.0
    """For how long nothing was read although it should have been: the sampler was stopped or lost, or the machine too busy; left out if 0."""


def total_up(last: Sample | None, n_readings: int) -> Totals:
    """The totals of a recording without an end: its last sample has all counters, and the merged peaks."""
    if last is None:
        return Totals()
    return Totals(
        at_seconds=last.at_seconds,
        cpu_seconds=last.cpu_seconds,
        system_cpu_seconds=last.system_cpu_seconds,
        readings=n_readings,
        gpu_counters=last.gpu_counters,
        peaks=last.peaks,
        counters=last.counters,
        stalls=last.stalls,
        energy=last.energy,
    )


def count_unread(totals: Totals, reason: str, last_seconds: float) -> Totals:
    """With the time after the last sample of a lost sampler as unread: older recordings do not count it."""
    if reason != SAMPLER_LOST:
        return totals
    return totals._replace(unread_seconds=max(totals.unread_seconds, totals.at_seconds - last_seconds))


class End(NamedTuple):
    """The closing line."""

    reason: str
    exit_code: int | None
    totals: Totals
    tracker_cpu_seconds: float
    tracker_ram_bytes: int
    gpu_growth_bytes: int | None = None
    """What the job held on all devices at the end, less what it held before it began; left out if not known."""


class RecordingData(NamedTuple):
    """A recording. Without an end, the sampler was killed. From a file, its sequences are decoded on access."""

    header: Header
    samples: Sequence[Sample]
    events: tuple[Event, ...]
    end: End | None
    totals: Totals
    problems: Sequence[str] = ()
    """The damaged lines. Reading samples, regions, metrics or processes may find more."""
    regions: Sequence[RegionTotals] = ()
    metrics: Sequence[MetricRow] = ()
    processes: Sequence[ProcessTotals] = ()
    frameworks: Sequence[FrameworkMemory] = ()
    calls: Sequence[Call] = ()
    gaps: RegionGaps = RegionGaps()
    peak_moments: Sequence[PeakMoment] = ()
    metric_totals: Sequence[MetricTotals] = ()
    """Of the metrics that are not all kept; of those, `metrics` has the most telling values."""
    is_running: bool = False
    """Whether it is still being written."""
    framework_readings: Sequence[FrameworkMemory] = ()
    """`frameworks` over time, at growing intervals."""

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The devices that were found."""
        return list_gpus(self.events)
