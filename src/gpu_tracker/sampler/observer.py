"""The sampler's half of live views: keeps every GPU source open, and takes an `Observation` on request.

Each vendor has its own thread, so that a driver that hangs delays no other.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from queue import Empty, SimpleQueue

from ..accounts.sharing import find_overlap, hold
from ..core.observation import (
    BROKEN,
    SLOW,
    Holder,
    MachineState,
    Missing,
    Observation,
    Reason,
    VendorState,
)
from ..core.vendors import VENDORS, name_vendor
from ..recording.secrets import mask_secrets
from ..sources.allocation import read_machine_ram_bytes
from ..sources.gpu.connect import connect, describe_bug
from ..sources.processes import read_holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from ..core.model import Gpu, GpuReadings
    from ..core.vendors import Vendor
    from ..sources import GpuSource, MachineSource, ProcessTreeSource
    from .handle.wire import Request

# Between two checks whether the observation is still wanted.
_LONGEST_WAIT_SECONDS = 0.1


class Observer:
    """Takes observations; sources stay open in between."""

    def __init__(self, vendors: Mapping[str, Vendor] = VENDORS) -> None:
        self._vendors = [_Vendor(name, vendor) for name, vendor in vendors.items()]
        self._processes = _find_source()
        self._machine: MachineSource = self._processes.Machine()
        self._cores = os.cpu_count() or 1
        self._ram_total_bytes = _read_ram_total()

    def observe(self, request: Request, is_wanted: Callable[[], bool]) -> Observation:
        """Read everything; vendors that do not answer in time, or while it is wanted, are named in the result."""
        for vendor in self._vendors:
            vendor.ask(request)
        deadline = time.monotonic() + request.patience_seconds
        states = tuple(vendor.take(deadline, request.patience_seconds, is_wanted) for vendor in self._vendors)
        return Observation(
            time.monotonic(),
            time.time(),
            self._read_machine(),
            states,
            tuple(_read_holders(states)),
            None if request.root_pid is None else _read_tree(self._processes, request.root_pid),
        )

    def _read_machine(self) -> MachineState:
        try:
            reading = self._machine.read()
        except (OSError, ValueError):
            return MachineState(self._cores, self._ram_total_bytes)
        return MachineState(self._cores, self._ram_total_bytes, reading.ram_used_bytes, reading.cpu_seconds)


class _Vendor:
    """The handle of a vendor's thread."""

    def __init__(self, name: str, vendor: Vendor) -> None:
        self._name = name
        self._vendor = vendor
        self._requests: SimpleQueue[Request] = SimpleQueue()
        self._states: SimpleQueue[VendorState] = SimpleQueue()
        self._is_asked = False
        self._is_late = False
        threading.Thread(target=self._work, daemon=True).start()

    def ask(self, request: Request) -> None:
        """Request a state, unless a request is pending."""
        if not self._is_asked:
            self._is_asked = True
            self._requests.put(request)

    def take(self, deadline: float, patience_seconds: float, is_wanted: Callable[[], bool]) -> VendorState:
        """The state, or the reason why there is none. A vendor that was late is not waited for again."""
        state = self._try_take()
        while state is None and not self._is_late and time.monotonic() < deadline and is_wanted():
            state = self._try_take(min(_LONGEST_WAIT_SECONDS, max(0.0, deadline - time.monotonic())))
        if state is None:
            self._is_late = True
            # Always the same words, because a note is shown once.
            text = (
                f"The {name_vendor(self._name)} driver has not answered within {patience_seconds:g} s. "
                "If it hangs, reset the device or restart the machine."
            )
            return VendorState(self._name, missing=(Missing(self._vendor.sources[0], SLOW, text),))
        self._is_asked = self._is_late = False
        return state

    def _try_take(self, seconds: float = 0.0) -> VendorState | None:
        try:
            return self._states.get(timeout=seconds)
        except Empty:
            return None

    def _work(self) -> None:
        """In the thread: connect once, then read on request."""
        request = self._requests.get()
        source, name, missing = connect(self._vendor, os.environ)
        while True:
            self._states.put(self._read(source, name, missing, request))
            request = self._requests.get()._replace(settle_seconds=0.0)

    def _read(
        self, source: GpuSource | None, name: str, missing: tuple[Missing, ...], request: Request
    ) -> VendorState:
        if source is None:
            return VendorState(self._name, missing=missing)
        try:
            readings = _read_settled(source, request.settle_seconds)
            details = source.read_details(request.details) if request.details else {}
            return VendorState(
                vendor=self._name,
                source=name,
                gpus=_list_gpus(source),
                readings=readings,
                details={uuid: dict(values) for uuid, values in details.items()},
                reasons=tuple(
                    Reason(*key, text, source.kinds.get(key)) for key, text in source.reasons.items()
                ),
                notes=source.take_notes(),
                missing=missing,
            )
        except Exception as error:  # noqa: BLE001 - one vendor's bug must not cost the others
            return VendorState(
                self._name, missing=(*missing, Missing(name, BROKEN, describe_bug(name, error)))
            )


def _list_gpus(source: GpuSource) -> tuple[Gpu, ...]:
    """Each in its place, also those that could not be opened."""
    if not source.unopened:
        return source.gpus
    return tuple(sorted((*source.gpus, *source.unopened), key=lambda gpu: gpu.ordinal))


def _read_settled(source: GpuSource, settle_seconds: float) -> GpuReadings:
    """One reading; two if utilization is missing for no known reason, because some sources need two."""
    readings = source.read(None)
    is_unsettled = any(
        device.utilization_percent is None and (device.uuid, "utilization_percent") not in source.reasons
        for device in readings.devices
    )
    if is_unsettled and settle_seconds:
        time.sleep(settle_seconds)
        readings = source.read(None)
    return readings


def _read_holders(states: tuple[VendorState, ...]) -> list[Holder]:
    pids = {process.pid for state in states if state.readings for process in state.readings.processes}
    holders = (read_holder(pid) for pid in sorted(pids))
    # These are shown on screens and in logs.
    return [
        holder if holder.command is None else holder._replace(command=mask_secrets(holder.command))
        for holder in holders
    ]


def _read_tree(processes: ModuleType, root_pid: int) -> int | None:
    """The memory of a process and its descendants. Once, so that what they share is read, not bounded."""
    try:
        tree: ProcessTreeSource = processes.ProcessTree(root_pid)
    except (OSError, ValueError, IndexError):
        return None
    readings = tree.read()
    sharings = [(one, tree.read_sharing(one.pid)) for one in readings if len(readings) > 1]
    tree.close()
    overlaps = {one.pid: find_overlap(one, sharing) for one, sharing in sharings if sharing is not None}
    return hold(readings, overlaps, is_whole_tree=True).unique_bytes if readings else None


def _find_source() -> ModuleType:
    if sys.platform == "win32":
        from ..sources import windows

        return windows
    if os.path.exists("/proc/stat"):
        from ..sources import procfs

        return procfs
    if sys.platform == "darwin":
        from ..sources import darwin

        return darwin
    from ..sources import portable

    return portable


def _read_ram_total() -> int | None:
    try:
        return read_machine_ram_bytes()
    except (OSError, ValueError):
        return None
