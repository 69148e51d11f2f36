"""What the machine and its GPUs are doing now, for people and scripts rather than for a recording. Values only. Pure."""

from __future__ import annotations

from .model import Gpu, GpuProcessReading, GpuReading, GpuReadings
from .values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Why a source does not answer.
ABSENT = "absent"  # this machine has nothing that it could read
BROKEN = "broken"  # there is something, and it cannot be read
SLOW = "slow"  # it has not answered yet

# Of the kinds of `sources.guard` the one that is nobody's fault: the device does not have such a figure.
UNSUPPORTED = "unsupported"


class MachineState(NamedTuple):
    """The whole machine."""

    cores: int
    ram_total_bytes: int | None
    ram_used_bytes: int | None = None
    cpu_seconds: float | None = None
    """CPU time spent by anybody, a counter."""


class Holder(NamedTuple):
    """A process that is on a device, as the machine shows it; None where it does not show it to us."""

    pid: int
    user: str | None = None
    command: tuple[str, ...] | None = None
    """Its words as the process wrote them, control characters included."""
    rss_bytes: int | None = None
    cpu_seconds: float | None = None

    @property
    def command_line(self) -> str | None:
        """The words in one line."""
        return None if self.command is None else " ".join(self.command)


class Reason(NamedTuple):
    """Why one figure of one device is not measured."""

    uuid: str
    """Empty for what concerns all devices; no device's for one that cannot even be opened."""
    figure: str
    text: str
    kind: str | None = None
    """A kind of `sources.guard`, where the source tells it."""


class Missing(NamedTuple):
    """A source that does not answer."""

    source: str
    kind: str
    text: str


class VendorState(NamedTuple):
    """All devices of one vendor."""

    vendor: str
    source: str | None = None
    """The source that reads them, if one does."""
    gpus: tuple[Gpu, ...] = ()
    look: GpuReadings | None = None
    details: Mapping[str, Mapping[str, float | str]] = {}
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()


class Observation(NamedTuple):
    """Everything at one moment."""

    at_seconds: float
    """On the monotonic clock, for rates between two observations."""
    epoch_seconds: float
    machine: MachineState
    vendors: tuple[VendorState, ...] = ()
    holders: tuple[Holder, ...] = ()


class DeviceProcess(NamedTuple):
    """A process that is on a GPU. None: not known, or not shown to this user."""

    reading: GpuProcessReading
    holder: Holder

    @property
    def pid(self) -> int:
        """Its number."""
        return self.reading.pid

    @property
    def user(self) -> str | None:
        """Whose it is."""
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


# No tuple: those have an `index` of their own.
class Device:
    """A GPU and what it is doing, at one moment. None: not known; 0: measured zero."""

    __slots__ = ("details", "gpu", "processes", "reading", "reasons")

    def __init__(
        self,
        gpu: Gpu,
        reading: GpuReading,
        details: Mapping[str, float | str],
        processes: tuple[DeviceProcess, ...],
        reasons: Mapping[str, str],
    ) -> None:
        self.gpu = gpu
        self.reading = reading
        """Empty if it was not read."""
        self.details = details
        self.processes = processes
        """Who is on it, who holds most first."""
        self.reasons = reasons
        """Figure → why it is not known, in a sentence."""

    def __repr__(self) -> str:
        return f"<Device {self.index}: {self.name} ({self.uuid})>"

    @property
    def index(self) -> int:
        """The number that its vendor's own tool gives it; CUDA may count in another order."""
        return self.gpu.ordinal

    @property
    def uuid(self) -> str:
        """The vendor's name for this very device."""
        return self.gpu.uuid

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
        """What it has."""
        return self.gpu.memory_bytes

    @property
    def memory_used_bytes(self) -> int | None:
        """Held by all processes."""
        return self.reading.used_bytes

    @property
    def memory_free_bytes(self) -> int | None:
        """What could still be allocated: neither used nor kept by the driver for itself."""
        total, used = self.gpu.memory_bytes, self.reading.used_bytes
        if total is None or used is None:
            return None
        return max(0, total - used - (self.reading.reserved_bytes or 0))

    @property
    def utilization_percent(self) -> float | None:
        """Share of the last moments in which anything ran on it; it does not say how full the device was."""
        return self.reading.utilization_percent

    @property
    def memory_utilization_percent(self) -> float | None:
        """Share of time in which memory was read or written."""
        return self.reading.memory_utilization_percent

    @property
    def temperature_celsius(self) -> float | None:
        """Of the chip."""
        return self.reading.temperature_celsius

    @property
    def power_watts(self) -> float | None:
        """Drawn now."""
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
    """Every device, vendor by vendor, with what belongs to it."""
    holders = {holder.pid: holder for holder in observation.holders}
    return tuple(_join(vendor, gpu, holders) for vendor in observation.vendors for gpu in vendor.gpus)


def list_notes(observation: Observation) -> tuple[str, ...]:
    """What there is to say about trouble, each sentence once.

    Neither a vendor that is not there nor a figure that a device does not have is trouble.
    """
    texts: list[str] = []
    for vendor in observation.vendors:
        usual = {reason.text for reason in vendor.reasons if reason.kind == UNSUPPORTED}
        if vendor.source is None:
            texts += [missing.text for missing in vendor.missing if missing.kind != ABSENT]
        texts += [reason.text for reason in vendor.reasons if reason.kind not in (None, UNSUPPORTED)]
        texts += [note for note in vendor.notes if note not in usual]
    return tuple(dict.fromkeys(texts))


def _join(vendor: VendorState, gpu: Gpu, holders: Mapping[int, Holder]) -> Device:
    look = vendor.look or GpuReadings(0.0)
    reading = next((device for device in look.devices if device.uuid == gpu.uuid), None)
    processes = sorted(
        (process for process in look.processes if process.uuid == gpu.uuid),
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
