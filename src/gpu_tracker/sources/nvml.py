"""NVIDIA, through NVML and the official nvidia-ml-py. Loaded in the sampler only, and only if there is a driver."""

from __future__ import annotations

from _ctypes import dlopen  # what ctypes itself calls, without the cost of importing all of it

from ..model import Gpu, GpuLook, GpuProcessReading, GpuReading
from . import NotAvailableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NAME = "nvml"

_LIBRARY = "libnvidia-ml.so.1"


def why_absent() -> str | None:
    """A reason not to try, or None. Cheap: most machines have no such driver."""
    try:
        dlopen(_LIBRARY, 0)
    except OSError:
        return f"No GPU was measured: there is no NVIDIA driver library ({_LIBRARY}) on this machine."
    return None


def connect(now: Callable[[], float]) -> NvmlSource:
    """Open the driver, or say why not."""
    try:
        import pynvml  # type: ignore[import-untyped]
    except ImportError:
        raise NotAvailableError(
            "No GPU was measured: an NVIDIA driver is there, but not the Python package for it; "
            "`pip install nvidia-ml-py` brings it."
        ) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NotAvailableError(f"No GPU was measured: the NVIDIA driver says: {error}.") from None
    return NvmlSource(pynvml, now)


class NvmlSource:
    """Every NVIDIA device that may be opened. Each call is guarded on its own."""

    def __init__(self, pynvml: Any, now: Callable[[], float]) -> None:
        self._nvml = pynvml
        self._now = now
        self._notes: list[str] = []
        self._silenced: set[tuple[int, str]] = set()
        self._handles: dict[int, Any] = {}
        self.gpus = tuple(self._open_all())

    def read(self, pids: frozenset[int] | None) -> GpuLook:
        """Look at every device."""
        devices: list[GpuReading] = []
        processes: list[GpuProcessReading] = []
        for gpu in self.gpus:
            handle = self._handles.get(gpu.ordinal)
            if handle is None:
                continue
            memory = self._ask(gpu.ordinal, "memory", self._read_used, handle)
            utilization = self._ask(gpu.ordinal, "utilization", self._read_utilization, handle)
            devices.append(GpuReading(gpu.uuid, memory, utilization))
            used = self._read_processes(gpu.ordinal, handle)
            processes.extend(GpuProcessReading(gpu.uuid, pid, size) for pid, size in used.items())
        return GpuLook(self._now(), tuple(devices), tuple(processes))

    def take_notes(self) -> tuple[str, ...]:
        """What went wrong since the last call."""
        notes, self._notes = self._notes, []
        return tuple(notes)

    def _open_all(self) -> list[Gpu]:
        nvml = self._nvml
        gpus = []
        for index in range(self._ask(-1, "number of GPUs", nvml.nvmlDeviceGetCount) or 0):
            handle = self._ask(index, "device", nvml.nvmlDeviceGetHandleByIndex, index)
            if handle is None:
                continue
            uuid = self._ask(index, "UUID", nvml.nvmlDeviceGetUUID, handle) or f"GPU-{index}"
            name = self._ask(index, "name", nvml.nvmlDeviceGetName, handle) or "NVIDIA GPU"
            memory = self._ask(index, "memory size", nvml.nvmlDeviceGetMemoryInfo, handle)
            self._handles[index] = handle
            gpus.append(Gpu(index, uuid, name, int(memory.total) if memory else None))
        return gpus

    def _read_used(self, handle: Any) -> int:
        return int(self._nvml.nvmlDeviceGetMemoryInfo(handle).used)

    def _read_utilization(self, handle: Any) -> float:
        return float(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu)

    def _read_processes(self, ordinal: int, handle: Any) -> dict[int, int | None]:
        """Bytes by pid. A process may be in several lists, each time with all that it uses."""
        used: dict[int, int | None] = {}
        for kind in ("Compute", "Graphics", "MPSCompute"):
            call = getattr(self._nvml, f"nvmlDeviceGet{kind}RunningProcesses")
            for process in self._ask(ordinal, f"list of {kind} processes", call, handle) or ():
                size = process.usedGpuMemory
                known = used.get(process.pid)
                used[process.pid] = known if size is None else max(int(size), known or 0)
        return used

    def _ask(self, index: int, what: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """Make one call; a failure costs that one figure, and is said once."""
        try:
            return call(*arguments)
        except self._nvml.NVMLError as error:
            self._note(index, what, error)
            return None

    def _note(self, index: int, what: str, error: Any) -> None:
        """A figure that a device does not have is said by its name; trouble with a device once for all of it."""
        nvml = self._nvml
        if error.value == nvml.NVML_ERROR_GPU_IS_LOST:
            self._handles.pop(index, None)
            key, text = "lost", f"GPU {index} was lost; its figures are those up to then."
        elif error.value in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND):
            key, text = what, f"GPU {index} does not tell its {what}."
        elif error.value == nvml.NVML_ERROR_NO_PERMISSION:
            key, text = what, f"GPU {index} does not tell its {what} to this user ({error})."
        else:
            key, text = "", f"GPU {index} could not be read for a while: {error}."
        if (index, key) not in self._silenced:
            self._silenced.add((index, key))
            self._notes.append(text)
