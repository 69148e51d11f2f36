"""What the machine and its GPUs are doing now, outside a recording. Values only. Pure."""

from __future__ import annotations

from .model import Gpu, GpuProcessReading, GpuReading, GpuReadings, tell_apart
from .text import neutralize
from .values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Why a source does not answer.
ABSENT = "absent"  # this machine has nothing for it to read
REQUESTED = "requested"  # the same, but the environment asks for devices
BROKEN = "broken"  # there is something, but it cannot be read
SLOW = "slow"  # it has not answered yet

# Kinds of `sources.guard`. The first is not a failure: the device has no such figure.
UNSUPPORTED = "unsupported"
LOST = "lost"
TROUBLE = "trouble"

# Asked for like a detail: try also what is read only while a job is tracked.
PROBE = "probe"


class MachineState(NamedTuple):
    """The whole machine."""

    cores: int
    ram_total_bytes: int | None
    ram_used_bytes: int | None = None
    cpu_seconds: float | None = None
    """CPU time of all processes, a counter."""


class Holder(NamedTuple):
    """A process on a device, as the machine shows it. None is not shown to this user."""

    pid: int
    user: str | None = None
    command: tuple[str, ...] | None = None
    """Its arguments, control characters included."""
    rss_bytes: int | None = None
    cpu_seconds: float | None = None

    @property
    def command_line(self) -> str | None:
        """The arguments in one line."""
        return None if self.command is None else " ".join(self.command)


class Reason(NamedTuple):
    """Why one figure of one device is not measured."""

    uuid: str
    """Empty if it concerns all devices; unknown elsewhere for a device that cannot be opened."""
    figure: str
    text: str
    kind: str | None = None
    """A kind of `sources.guard`, if known."""


class Missing(NamedTuple):
    """A source that does not answer."""

    source: str
    kind: str
    text: str


class VendorState(NamedTuple):
    """All devices of one vendor."""

    vendor: str
    source: str | None = None
    """The source that reads them, if any."""
    gpus: tuple[Gpu, ...] = ()
    readings: GpuReadings | None = None
    details: Mapping[str, Mapping[str, float | str]] = {}
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()


class Observation(NamedTuple):
    """Everything at one moment."""

    at_seconds: float
    """Monotonic clock, for rates between two observations."""
    epoch_seconds: float
    machine: MachineState
    vendors: tuple[VendorState, ...] = ()
    holders: tuple[Holder, ...] = ()
    tree_bytes: int | None = None
    """RAM of the processes that were asked for, each page once. None: nobody asked, or it cannot be read."""


class DeviceProcess(NamedTuple):
    """A process on a GPU. None is not known, or not shown to this user."""

    reading: GpuProcessReading
    holder: Holder

    @property
    def pid(self) -> int:
        """Process ID."""
        return self.reading.pid

    @property
    def user(self) -> str | None:
        """Name of its user."""
        return self.holder.user

    @property
    def command(self) -> str | None:
        """Its arguments in one line, secrets masked."""
        return self.holder.command_line

    @property
    def used_bytes(self) -> int | None:
        """GPU memory that the driver attributes to it."""
        return self.reading.used_bytes

    @property
    def utilization_percent(self) -> float | None:
        """Of the device's compute units."""
        return self.reading.utilization_percent

    @property
    def kind(self) -> str:
        """`compute`, `graphics` or `compute+graphics`."""
        return self.reading.kind


# Not a tuple: tuples have an `index` of their own.
class Device:
    """A GPU and what it is doing at one moment. None is not known, 0 is measured zero."""

    __slots__ = ("details", "gpu", "parent", "processes", "reading", "reasons")

    def __init__(
        self,
        gpu: Gpu,
        reading: GpuReading,
        details: Mapping[str, float | str],
        processes: tuple[DeviceProcess, ...],
        reasons: Mapping[str, str],
        parent: Device | None = None,
    ) -> None:
        self.gpu = gpu
        self.parent = parent
        """The whole device that a MIG instance is a part of, which has the temperature and the power."""
        self.reading = reading
        """Empty if it was not read."""
        self.details = details
        self.processes = processes
        """Its processes, largest memory first."""
        self.reasons = reasons
        """Figure → why it is not known, in one sentence."""

    def within(self, parent: Device | None) -> Device:
        """The same, as a part of another."""
        return Device(self.gpu, self.reading, self.details, self.processes, self.reasons, parent)

    def __repr__(self) -> str:
        return neutralize(f"<Device {self.label}: {self.name} ({self.uuid})>")

    @property
    def index(self) -> int:
        """Its index in the vendor's own tool, of a MIG instance that of its device; CUDA may use another order."""
        return self.gpu.ordinal

    @property
    def label(self) -> str:
        """What it is called everywhere: `0`, a MIG instance `1:0`, with devices of several vendors `amd:0`."""
        return self.gpu.label

    @property
    def uuid(self) -> str | None:
        """The vendor's unique ID; None if the driver has not told it."""
        return self.gpu.known_uuid

    @property
    def name(self) -> str:
        """The product's name."""
        return self.gpu.name

    @property
    def vendor(self) -> str:
        """`nvidia`, `amd`, `intel` or `apple`."""
        return self.gpu.vendor

    @property
    def memory_total_bytes(self) -> int | None:
        """Size of its memory."""
        return self.gpu.memory_bytes

    @property
    def memory_used_bytes(self) -> int | None:
        """Used by all processes."""
        return self.reading.used_bytes

    @property
    def memory_free_bytes(self) -> int | None:
        """Neither used nor reserved by the driver."""
        total, used = self.gpu.memory_bytes, self.reading.used_bytes
        if total is None or used is None:
            return None
        return max(0, total - used - (self.reading.reserved_bytes or 0))

    @property
    def utilization_percent(self) -> float | None:
        """Share of time in which any kernel ran; not how much of the device it used."""
        return self.reading.utilization_percent

    @property
    def memory_utilization_percent(self) -> float | None:
        """Share of time in which memory was read or written."""
        return self.reading.memory_utilization_percent

    @property
    def sm_percent(self) -> float | None:
        """Of its multiprocessors, how many had work: since Hopper, and from the second observation on."""
        return self.reading.sm_percent

    @property
    def temperature_celsius(self) -> float | None:
        """Of the chip."""
        return self.reading.temperature_celsius

    @property
    def power_watts(self) -> float | None:
        """Current power draw."""
        return self.reading.power_watts

    @property
    def sm_clock_mhz(self) -> float | None:
        """Of the compute units."""
        return self.reading.sm_clock_mhz

    @property
    def memory_clock_mhz(self) -> float | None:
        """Of the memory."""
        return self.reading.memory_clock_mhz


def list_gpus(observation: Observation) -> tuple[Device, ...]:
    """Every device with its processes, vendor by vendor."""
    holders = {holder.pid: holder for holder in observation.holders}
    owners = {gpu.uuid: vendor for vendor in observation.vendors for gpu in vendor.gpus}
    gpus = tell_apart(gpu for vendor in observation.vendors for gpu in vendor.gpus)
    return tuple(_join(owners[gpu.uuid], gpu, holders) for gpu in gpus)


def list_notes(observation: Observation, devices: Iterable[Device] | None = None) -> tuple[str, ...]:
    """Problems, each sentence once; if only some devices matter, without those of others.

    Absent vendors and unsupported figures are not problems.
    """
    shown = None if devices is None else {"", *(device.uuid for device in devices)}
    texts: list[str] = []
    left_out: set[str] = set()
    for vendor in observation.vendors:
        left_out |= {reason.text for reason in vendor.reasons if shown and reason.uuid not in shown}
        usual = {reason.text for reason in vendor.reasons if reason.kind == UNSUPPORTED}
        if vendor.source is None:
            texts += [missing.text for missing in vendor.missing if missing.kind != ABSENT]
        texts += [reason.text for reason in vendor.reasons if reason.kind not in (None, UNSUPPORTED)]
        texts += [note for note in vendor.notes if note not in usual]
    return tuple(text for text in dict.fromkeys(texts) if text not in left_out)


def _join(vendor: VendorState, gpu: Gpu, holders: Mapping[int, Holder]) -> Device:
    readings = vendor.readings or GpuReadings(0.0)
    reading = next((device for device in readings.devices if device.uuid == gpu.uuid), None)
    processes = sorted(
        (process for process in readings.processes if process.uuid == gpu.uuid),
        key=lambda process: (-(process.used_bytes or 0), process.pid),
    )
    return Device(
        gpu,
        reading or GpuReading(gpu.uuid, lists_processes=False),
        vendor.details.get(gpu.uuid, {}),
        tuple(
            DeviceProcess(process, holders.get(process.pid) or Holder(process.pid)) for process in processes
        ),
        {reason.figure: reason.text for reason in vendor.reasons if reason.uuid == gpu.uuid},
    )
