"""Memory as it is now: what each part of it is for, and who holds it. Pure."""

from __future__ import annotations

from ..accounts.frameworks import find_device
from ..core.values import NamedTuple
from .frameworks import find_rest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..core.model import FrameworkReading
    from ..core.observation import Device


class GpuMemory(NamedTuple):
    """The memory of one device, seen from one process. None is not known."""

    label: str
    name: str
    uuid: str | None
    total_bytes: int | None
    process_bytes: int | None
    """All that this process holds there, by the driver: the next three together."""
    tensors_bytes: int | None
    """In use, by the frameworks of this process; None without one."""
    cached_bytes: int | None
    """Kept by the frameworks for reuse: free for this process, not for others."""
    context_bytes: int | None
    """The rest of this process: the driver's context, libraries, their workspaces."""
    others_bytes: int | None
    """Held by other processes."""
    free_bytes: int | None
    peak_tensors_bytes: int | None = None
    """The most since the process began, or since the program reset it."""

    @property
    def parts(self) -> tuple[int | None, ...]:
        """In the order of `frameworks.PARTS`."""
        return (
            self.tensors_bytes,
            self.cached_bytes,
            self.context_bytes,
            self.others_bytes,
            self.free_bytes,
        )


class RamMemory(NamedTuple):
    """RAM, seen from one process. None is not known."""

    process_bytes: int | None
    tree_bytes: int | None
    """With all descendants, each shared page once."""
    capacity_bytes: int | None
    """What the job may use."""
    capacity_source: str
    """What sets that: `machine`, `cgroup` or `Slurm`."""


def split_gpus(
    devices: Sequence[Device], pid: int, readings: Sequence[FrameworkReading]
) -> tuple[GpuMemory, ...]:
    """The memory of each device, given what the frameworks of the process report."""
    used = [device.gpu.uuid for device in devices if any(process.pid == pid for process in device.processes)]
    uuids = [device.gpu.uuid for device in devices]
    only = used if len(readings) == 1 else ()
    by_device = [(find_device(reading, uuids, only), reading) for reading in readings]
    return tuple(
        _split(device, pid, [reading for uuid, reading in by_device if uuid == device.gpu.uuid])
        for device in devices
    )


def _split(device: Device, pid: int, readings: Sequence[FrameworkReading]) -> GpuMemory:
    tensors = _add(readings, lambda reading: reading.in_use_bytes)
    held = _add(readings, lambda reading: reading.held_bytes)
    process = _find_process(device, pid, held or tensors)
    return GpuMemory(
        label=device.label,
        name=device.name,
        uuid=device.uuid,
        total_bytes=device.memory_total_bytes,
        process_bytes=process,
        tensors_bytes=tensors,
        cached_bytes=find_rest(held, tensors),
        context_bytes=find_rest(process, held),
        others_bytes=find_rest(device.memory_used_bytes, process),
        free_bytes=device.memory_free_bytes,
        peak_tensors_bytes=_add(readings, lambda reading: reading.peak_in_use_bytes),
    )


def _add(readings: Iterable[FrameworkReading], find: Callable[[FrameworkReading], int | None]) -> int | None:
    """The sum, if there is anything to add and all of it is known."""
    sizes = [find(reading) for reading in readings]
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def _find_process(device: Device, pid: int, at_least_bytes: int | None) -> int | None:
    """What the driver attributes to the process; a list without a process that holds something is not complete."""
    if not device.reading.lists_processes:
        return None
    sizes = [process.used_bytes for process in device.processes if process.pid == pid]
    if not sizes:
        return None if at_least_bytes else 0
    return None if None in sizes else sum(size for size in sizes if size is not None)
