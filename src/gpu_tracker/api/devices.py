"""The GPUs of this machine as they are now, for scripts: `gpu_tracker.gpus()`."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.observation import list_gpus, list_notes
from ..sampler.handle.client import DEFAULT_PATIENCE_SECONDS, ObserverClient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.observation import ObservedGpu, ObservedProcess

# Trouble that this process has heard of already: a script that asks every second is told once.
_said: set[str] = set()


@dataclass(frozen=True)
class DeviceProcess:
    """A process that is on a GPU. None: not known, or not shown to this user."""

    pid: int
    user: str | None
    command: str | None
    """Its arguments in one line, secrets masked."""
    used_bytes: int | None
    """GPU memory that the driver attributes to it."""
    utilization_percent: float | None
    """Of the device's compute units."""
    kind: str
    """`compute`, `graphics` or `compute+graphics`."""


# No tuple: those have an `index` of their own.
@dataclass(frozen=True)
class Device:
    """A GPU and what it is doing, at one moment. None: not known; 0: measured zero."""

    index: int
    """The number that its vendor's own tool gives it; CUDA may count in another order."""
    uuid: str
    name: str
    vendor: str
    """`nvidia`, `amd`, `intel` or `apple`."""
    memory_total_bytes: int | None
    memory_used_bytes: int | None
    memory_free_bytes: int | None
    utilization_percent: float | None
    """Share of the last moments in which anything ran on it; it does not say how full the device was."""
    memory_utilization_percent: float | None
    """Share of time in which memory was read or written."""
    temperature_celsius: float | None
    power_watts: float | None
    sm_clock_mhz: float | None
    memory_clock_mhz: float | None
    processes: tuple[DeviceProcess, ...]
    """Who is on it, who holds most first."""
    reasons: Mapping[str, str]
    """Figure → why it is not known, in a sentence."""


def gpus(timeout_seconds: float = DEFAULT_PATIENCE_SECONDS) -> list[Device]:
    """Every GPU of this machine, of any vendor, as it is now.

        import gpu_tracker as gput

        for gpu in gput.gpus():
            print(gpu.index, gpu.name, gpu.memory_free_bytes, gpu.utilization_percent)
        free = max(gput.gpus(), key=lambda gpu: gpu.memory_free_bytes or 0)

    No driver is loaded into this process: a short-lived one asks it and is gone when this returns, so a
    program may fork before and after, and a driver that hangs costs `timeout_seconds` and no more.
    The list is empty on a machine without GPUs; `gpu-tracker doctor` tells why one is missing.
    """
    with ObserverClient(timeout_seconds) as client:
        observation = client.observe()
    for text in list_notes(observation):
        _say(text)
    return [_to_device(observed) for observed in list_gpus(observation)]


def _to_device(observed: ObservedGpu) -> Device:
    gpu, reading = observed.gpu, observed.reading
    return Device(
        gpu.ordinal,
        gpu.uuid,
        gpu.name,
        gpu.vendor,
        gpu.memory_bytes,
        reading.used_bytes,
        observed.free_bytes,
        reading.utilization_percent,
        reading.memory_utilization_percent,
        reading.temperature_celsius,
        reading.power_watts,
        reading.sm_clock_mhz,
        reading.memory_clock_mhz,
        tuple(map(_to_process, observed.processes)),
        observed.reasons,
    )


def _to_process(observed: ObservedProcess) -> DeviceProcess:
    reading, holder = observed.reading, observed.holder
    return DeviceProcess(
        reading.pid,
        holder.user,
        holder.command_line,
        reading.used_bytes,
        reading.utilization_percent,
        reading.kind,
    )


def _say(text: str) -> None:
    if text not in _said:
        import logging

        _said.add(text)
        logging.getLogger("gpu_tracker").warning(text)
