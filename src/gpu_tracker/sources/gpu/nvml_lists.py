"""The lists of NVIDIA's driver (processes, samples, accounts), read from its library into one buffer each.

With hundreds of processes, an object per entry would cost more than the driver's answer.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

_NOT_AVAILABLE = 2**64 - 1
_MOST_ATTEMPTS = 3


def is_wide_entry_driver(version: str) -> bool:
    """Drivers 535.43 to 535.86 write process entries of 32 bytes instead of 24."""
    try:
        major, minor = map(int, version.split(".")[:2])
    except ValueError:
        return False
    return major == 535 and 43 <= minor <= 86


def merge_processes(
    lists: Iterable[tuple[str, Sequence[tuple[int, int]]]],
) -> dict[int, tuple[int | None, str]]:
    """Bytes and kind by pid. A process may be in several lists, each with its total."""
    merged: dict[int, tuple[int | None, str]] = {}
    for kind, entries in lists:
        if not merged:  # most devices have one list, with every process once
            merged = {pid: (None if size == _NOT_AVAILABLE else size, kind) for pid, size in entries}
            if len(merged) == len(entries):
                continue
            merged = {}
        for pid, size in entries:
            used = None if size == _NOT_AVAILABLE else size
            known = merged.get(pid)
            if known is None:
                merged[pid] = (used, kind)
                continue
            if used is None or (known[0] is not None and known[0] > used):
                used = known[0]
            merged[pid] = (used, kind if kind == known[1] else "compute+graphics")
    return merged


class DriverLists:
    """Calls that fill an array. The layout of its entries depends on the driver's version."""

    def __init__(self, pynvml: Any, driver_version: str) -> None:
        import ctypes
        import struct

        self._ctypes = ctypes
        self._nvml = pynvml
        self._library = pynvml.nvmlLib
        wide = is_wide_entry_driver(driver_version)
        newest = struct.Struct("<I4xQ16x") if wide else struct.Struct("<I4xQ8x")
        self._shapes = (("_v3", newest), ("_v2", struct.Struct("<I4xQ8x")), ("", struct.Struct("<I4xQ")))
        self._process_sample = struct.Struct("<I4xQI12x")
        self._samples = (struct.Struct("<Qd"), struct.Struct("<QI4x"), struct.Struct("<QQ"))
        self._chosen: dict[str, tuple[Any, Any]] = {}
        self._buffers: dict[str, Any] = {}

    def processes(self, kind: str, handle: Any) -> list[tuple[int, int]]:
        """(pid, bytes) of all processes in one list."""
        chosen = self._chosen.get(kind)
        if chosen is not None:
            return self._list(kind, *chosen, handle)
        for suffix, shape in self._shapes:
            try:
                function = getattr(self._library, f"nvmlDeviceGet{kind}RunningProcesses{suffix}")
                entries = self._list(kind, function, shape, handle)
            except AttributeError:
                continue  # an older library lacks the symbol
            except self._nvml.NVMLError as error:
                if error.value == self._nvml.NVML_ERROR_FUNCTION_NOT_FOUND:
                    continue
                raise
            self._chosen[kind] = (function, shape)
            return entries
        raise self._nvml.NVMLError(self._nvml.NVML_ERROR_FUNCTION_NOT_FOUND)

    def process_samples(self, handle: Any, since_us: int) -> list[tuple[int, int, int]]:
        """(pid, timestamp, percent); empty if no process has used the device since."""
        function = self._find("nvmlDeviceGetProcessUtilization")
        since = self._ctypes.c_ulonglong(since_us)
        return self._fill(
            "process samples",
            self._process_sample,
            lambda buffer, count: function(handle, buffer, count, since),
        )

    def utilization_samples(self, handle: Any, since_us: int) -> list[tuple[int, float]]:
        """(timestamp, percent) that the driver has kept since."""
        function = self._find("nvmlDeviceGetSamples")
        kind, since = self._nvml.NVML_GPU_UTILIZATION_SAMPLES, self._ctypes.c_ulonglong(since_us)
        value_type = self._ctypes.c_uint()
        reference = self._ctypes.byref(value_type)
        raw = self._fill(
            "samples",
            self._samples[2],
            lambda buffer, count: function(handle, kind, since, reference, count, buffer),
        )
        # A value is a union: a double, or an integer whose low half is enough for a percentage.
        if value_type.value == self._nvml.NVML_VALUE_TYPE_DOUBLE:
            return [self._samples[0].unpack(self._samples[2].pack(*sample)) for sample in raw]
        return [(at_us, float(bits & 0xFFFFFFFF)) for at_us, bits in raw]

    def account(self, handle: Any, pid: int) -> tuple[int | None, int]:
        """The most bytes that a process held, None if the driver does not tell, and when it began, in microseconds.

        nvidia-ml-py raises a TypeError where the driver does not tell.
        """
        stats = self._nvml.c_nvmlAccountingStats_t()
        function = self._find("nvmlDeviceGetAccountingStats")
        code = function(handle, self._ctypes.c_uint(pid), self._ctypes.byref(stats))
        if code != self._nvml.NVML_SUCCESS:
            raise self._nvml.NVMLError(code)
        most_bytes = stats.maxMemoryUsage
        return None if most_bytes == _NOT_AVAILABLE else most_bytes, stats.startTime

    def _find(self, name: str) -> Any:
        try:
            return getattr(self._library, name)
        except AttributeError:
            raise self._nvml.NVMLError(self._nvml.NVML_ERROR_FUNCTION_NOT_FOUND) from None

    def _list(self, kind: str, function: Any, shape: Any, handle: Any) -> list[Any]:
        return self._fill(kind, shape, lambda buffer, count: function(handle, count, buffer))

    def _fill(self, name: str, shape: Any, call: Callable[[Any, Any], int]) -> list[Any]:
        """Let the driver fill a buffer, which grows when it is too small."""
        ctypes, nvml = self._ctypes, self._nvml
        for _ in range(_MOST_ATTEMPTS):
            if name not in self._buffers:
                self._buffers[name] = ctypes.create_string_buffer(128 * shape.size)
            buffer = self._buffers[name]
            capacity = len(buffer) // shape.size
            count = ctypes.c_uint(capacity)
            code = call(buffer, ctypes.byref(count))
            if code == nvml.NVML_ERROR_NOT_FOUND:
                return []
            if code != nvml.NVML_ERROR_INSUFFICIENT_SIZE:
                break
            self._buffers[name] = ctypes.create_string_buffer((2 * count.value + 16) * shape.size)
        if code != nvml.NVML_SUCCESS:
            raise nvml.NVMLError(code)
        filled = memoryview(buffer)[: min(count.value, capacity) * shape.size]
        return list(shape.iter_unpack(filled))
