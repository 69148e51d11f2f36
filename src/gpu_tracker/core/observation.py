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


class ObservedProcess(NamedTuple):
    """What a process does on one device, and who it is."""

    reading: GpuProcessReading
    holder: Holder


class ObservedGpu(NamedTuple):
    """One device with all that was said about it."""

    gpu: Gpu
    reading: GpuReading
    """Empty if it was not read."""
    details: Mapping[str, float | str]
    processes: tuple[ObservedProcess, ...]
    """Who holds most comes first."""
    reasons: Mapping[str, str]
    """Figure → why it is not measured."""

    @property
    def free_bytes(self) -> int | None:
        """What could still be allocated: neither used nor kept by the driver for itself."""
        total, used = self.gpu.memory_bytes, self.reading.used_bytes
        if total is None or used is None:
            return None
        return max(0, total - used - (self.reading.reserved_bytes or 0))


def list_gpus(observation: Observation) -> tuple[ObservedGpu, ...]:
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


def _join(vendor: VendorState, gpu: Gpu, holders: Mapping[int, Holder]) -> ObservedGpu:
    look = vendor.look or GpuReadings(0.0)
    reading = next((device for device in look.devices if device.uuid == gpu.uuid), None)
    processes = sorted(
        (process for process in look.processes if process.uuid == gpu.uuid),
        key=lambda process: (-(process.used_bytes or 0), process.pid),
    )
    return ObservedGpu(
        gpu,
        reading or GpuReading(gpu.uuid, lists_processes=False),
        vendor.details.get(gpu.uuid, {}),
        tuple(
            ObservedProcess(process, holders.get(process.pid) or Holder(process.pid)) for process in processes
        ),
        {reason.figure: reason.text for reason in vendor.reasons if reason.uuid == gpu.uuid},
    )
