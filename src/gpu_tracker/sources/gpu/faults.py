"""Faults that an NVIDIA device reports: Xid errors of its driver, and memory errors that it has found (ECC)."""

from __future__ import annotations

from ...core.model import CORRECTED, UNCORRECTED, XID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# A device in trouble may report faster than anybody reads.
_MOST_AT_ONCE = 64
_NO_INSTANCE = 0xFFFFFFFF
# A counter that jumps by more is wrong.
_MOST_ERRORS = 2**32


class FaultWatch:
    """What one whole device reports since it was opened. One that reports none of it is not worth a note: many cannot."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._events = self._listen()
        self._counted = {kind: self._count(kind) for kind in (CORRECTED, UNCORRECTED)}

    def take(self, *, counts_memory_errors: bool) -> Iterator[tuple[str, int, int | None]]:
        """New faults: their kind, the number of an Xid or how many errors, and the GPU instance if it is that of one.

        An Xid may be why the job has just ended, so it is asked for each time. That costs little, unlike counting.
        """
        for data in self._take_events():
            instance = int(data.gpuInstanceId)
            yield XID, int(data.eventData), None if instance == _NO_INSTANCE else instance
        for kind, before in self._counted.items():
            if before is None or not counts_memory_errors:
                continue
            now = self._count(kind)
            if now is not None and 0 < now - before <= _MOST_ERRORS:
                yield kind, now - before, None
            self._counted[kind] = before if now is None else now

    def close(self) -> None:
        """Give the driver its memory back."""
        if self._events is not None:
            try:
                self._nvml.nvmlEventSetFree(self._events)
            except self._nvml.NVMLError:
                pass  # the driver is gone, and it too
            self._events = None

    def _listen(self) -> Any:
        nvml = self._nvml
        try:
            events = nvml.nvmlEventSetCreate()
        except nvml.NVMLError:
            return None
        try:
            nvml.nvmlDeviceRegisterEvents(self._handle, nvml.nvmlEventTypeXidCriticalError, events)
        except nvml.NVMLError:
            nvml.nvmlEventSetFree(events)
            return None
        return events

    def _take_events(self) -> Iterator[Any]:
        if self._events is None:
            return
        nvml = self._nvml
        for _ in range(_MOST_AT_ONCE):
            try:
                data = nvml.nvmlEventSetWait_v2(self._events, 0)
            except nvml.NVMLError:  # there are no more; or the device is lost, of which others tell
                return
            if data.eventType == nvml.nvmlEventTypeXidCriticalError:
                yield data

    def _count(self, kind: str) -> int | None:
        """Since the driver was loaded."""
        nvml = self._nvml
        error = (
            nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED
            if kind == CORRECTED
            else nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
        )
        try:
            return int(nvml.nvmlDeviceGetTotalEccErrors(self._handle, error, nvml.NVML_VOLATILE_ECC))
        except nvml.NVMLError:
            return None
