"""A simulated NVIDIA driver for tests: the hardware is a file, changed while real clients poll it.

A test builds the library once, creates a `Simulator` and starts clients with its `environment()`.
A fake workload calls `Simulator.open()` in its own process and "allocates" GPU memory for its own
pid. Clients read without a lock, so every change is published by one last store (see state.h).
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import fcntl
import heapq
import itertools
import mmap
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from nvml_simulator import layout
from nvml_simulator.library import Generation, absent_functions, build

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Code", "Generation", "Simulator", "build"]

Kind = Literal["compute", "graphics", "mps"]
SampleKind = Literal["power", "gpu_utilization", "memory_utilization"]

_ANY_DEVICE: Final = -1
PARTLY_BUSY_PERCENT: Final = 40
_FOREVER: Final = -1
_LATE_SECONDS: Final = 0.02

_STATE_VARIABLE: Final = "NVML_SIMULATOR_STATE"
_KINDS: Final[tuple[Kind, ...]] = ("compute", "graphics", "mps")
_SAMPLE_KINDS: Final[tuple[SampleKind, ...]] = ("power", "gpu_utilization", "memory_utilization")
_NOT_AVAILABLE: Final = 2**64 - 1
_DERIVED: Final = -1
_MIB: Final = 2**20
_XID_CRITICAL_ERROR: Final = 8


class Code(enum.IntEnum):
    """What an NVML call answers."""

    SUCCESS = 0
    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    INSUFFICIENT_SIZE = 7
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    VERSION_MISMATCH = 18
    ARGUMENT_VERSION_MISMATCH = 25
    UNKNOWN = 999


class Simulator:
    """The simulated hardware; a context manager that removes its state file at the end.

    Devices are named by their NVML index; MIG instances have numbers of their own, given by
    `add_mig_instance()`, which every method taking a device accepts.
    """

    def __init__(
        self,
        library: Path,
        path: Path | None = None,
        *,
        driver_version: str = "550.54.15",
        generation: Generation = Generation.V3,
    ) -> None:
        """Create a state file without devices; a temporary file unless a path is given."""
        if path is None:
            handle, name = tempfile.mkstemp(prefix="nvml-simulator-")
            os.close(handle)
            path = Path(name)
        # Clients compare version and size, so they cannot mistake this for a finished file.
        path.write_bytes(bytes(ctypes.sizeof(layout.State)))
        self._map(path, library, owned=True)
        self._state.driver_version = _text(driver_version, layout.State.driver_version.size)
        self.set_generation(generation)
        self._state.layout_bytes = ctypes.sizeof(layout.State)
        self._state.layout_version = layout.LAYOUT_VERSION

    @classmethod
    def open(cls, path: Path | None = None, library: Path | None = None) -> Simulator:
        """Attach to an existing state file, by default the one this process's NVML would use."""
        path = path or Path(os.environ[_STATE_VARIABLE])
        if path.stat().st_size != ctypes.sizeof(layout.State):
            raise ValueError(f"{path} has the size of another layout")
        simulator = cls.__new__(cls)
        simulator._map(path, library, owned=False)
        if simulator._state.layout_version != layout.LAYOUT_VERSION:
            version = simulator._state.layout_version
            simulator.close()
            raise ValueError(f"{path} has layout {version}, not {layout.LAYOUT_VERSION}")
        return simulator

    def _map(self, path: Path, library: Path | None, *, owned: bool) -> None:
        self.path = path
        self._library = library
        self._owned = owned
        self._lock = threading.Lock()
        self._file = path.open("r+b")
        self._memory = mmap.mmap(self._file.fileno(), ctypes.sizeof(layout.State))
        self._state = layout.State.from_buffer(self._memory)

    def close(self) -> None:
        """Detach; the creator also removes the file, so later clients find no driver."""
        del self._state  # the mapping cannot be closed while a structure looks into it
        self._memory.close()
        self._file.close()
        if self._owned:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def environment(self) -> dict[str, str]:
        """Return the variables that make a child process use the simulated driver."""
        if self._library is None:
            raise RuntimeError("opened without a library; its processes inherit the environment")
        directories = [str(self._library.parent), os.environ.get("LD_LIBRARY_PATH", "")]
        return {
            "LD_LIBRARY_PATH": os.pathsep.join(filter(None, directories)),
            _STATE_VARIABLE: str(self.path),
        }

    # -- the driver ------------------------------------------------------------------------------

    def set_generation(self, generation: Generation) -> None:
        """Let calls that are newer than this driver generation answer FUNCTION_NOT_FOUND."""
        names = absent_functions(generation)
        for index in range(layout.ABSENT_LIMIT):
            name = names[index] if index < len(names) else ""
            self._state.absent[index].value = _text(name, layout.NAME_BYTES)
        wide = generation is Generation.V3_WIDE_ENTRIES
        self._state.v3_entry_bytes = 32 if wide else 24

    def set_pid_namespace(self, *, offset: int = 0, hides_foreign: bool = False) -> None:
        """Choose which pids clients see.

        An offset stands for a driver that reports the host's pids inside a container. Hiding
        foreign processes stands for one that translates pids and skips those of other namespaces.
        """
        self._state.pid_offset = offset
        self._state.hides_foreign = hides_foreign

    # -- devices ---------------------------------------------------------------------------------

    def add_device(
        self,
        *,
        name: str = "NVIDIA Simulated GPU",
        uuid: str | None = None,
        pci_bus_id: str | None = None,
        memory_total_bytes: int = 40960 * _MIB,
        memory_reserved_bytes: int = 512 * _MIB,
        extra_used_bytes: int = 0,
        power_watts: float = 50.0,
        power_limit_watts: float = 300.0,
        temperature_celsius: int = 40,
        mig_capable: bool = False,
    ) -> int:
        """Plug in a GPU and return its index."""
        with self._writing():
            index = int(self._state.device_count)
            if index == layout.DEVICE_LIMIT:
                raise ValueError(f"at most {layout.DEVICE_LIMIT} devices")
            device = self._state.devices[index]
            uuid = uuid or f"GPU-{index:08x}-5150-4d4c-8000-{index:012x}"
            device.name = _text(name, layout.Device.name.size)
            device.uuid = _text(uuid, layout.Device.uuid.size)
            bus_id = pci_bus_id or f"00000000:{index + 1:02X}:00.0"
            device.pci_bus_id = _text(bus_id, layout.Device.pci_bus_id.size)
            device.memory_total_bytes = memory_total_bytes
            device.memory_reserved_bytes = memory_reserved_bytes
            device.extra_used_bytes = extra_used_bytes
            device.power_limit_mw = round(power_limit_watts * 1000)
            device.temperature_celsius = temperature_celsius
            device.fan_percent = 30
            device.gpu_percent = device.memory_percent = _DERIVED
            device.clocks_mhz[:] = device.max_clocks_mhz[:] = (1410, 1410, 1215, 1275)
            device.mig_mode = 0 if mig_capable else -1
            device.parent = -1
            power_mw = round(power_watts * 1000)
            _start_power_segment(device, _monotonic_us(), power_mw, 0, integrates=True)
            self._state.device_count = index + 1
        return index

    def add_mig_instance(
        self,
        device: int,
        *,
        memory_total_bytes: int = 4864 * _MIB,
        uuid: str | None = None,
        gpu_instance: int | None = None,
    ) -> int:
        """Cut a MIG instance out of a GPU and return its number, to be used like a device's.

        Instances for computing may be parts of one GPU instance, whose memory they share.
        """
        parent = self._device(device)
        with self._writing():
            count = int(self._state.instance_count)
            if count == layout.INSTANCE_LIMIT:
                raise ValueError(f"at most {layout.INSTANCE_LIMIT} MIG instances")
            index = layout.DEVICE_LIMIT + count
            siblings = [self._state.devices[layout.DEVICE_LIMIT + i].parent for i in range(count)]
            instance = self._state.devices[index]
            instance.name = _text(f"{parent.name.decode()} MIG 1g", layout.Device.name.size)
            uuid = uuid or f"MIG-{index:08x}-5150-4d4c-8000-{index:012x}"
            instance.uuid = _text(uuid, layout.Device.uuid.size)
            instance.memory_total_bytes = memory_total_bytes
            instance.parent = device
            instance.gpu_instance = gpu_instance or siblings.count(device) + 1
            parent.mig_mode = 1
            self._state.instance_count = count + 1
        return index

    def set_extra_used_bytes(self, device: int, extra_used_bytes: int) -> None:
        """Set the memory in use that belongs to no process."""
        self._device(device).extra_used_bytes = extra_used_bytes

    def set_utilization(
        self, device: int, gpu_percent: int | None, memory_percent: int | None = None
    ) -> None:
        """Fix the utilization; None derives it from the processes again."""
        target = self._device(device)
        target.gpu_percent = _DERIVED if gpu_percent is None else gpu_percent
        target.memory_percent = _DERIVED if memory_percent is None else memory_percent

    def set_activity(
        self,
        device: int,
        *,
        busy: float | None = 0.0,
        sm: float | None = 0.0,
        occupancy: float | None = 0.0,
        tensor: float | None = 0.0,
        bandwidth: float | None = 0.0,
        links: Sequence[float | None] = (None,) * layout.LINK_COUNTERS,
    ) -> None:
        """Let the device measure how active its units are (GPM), from now on so many percent; None is not supported.

        `links`: MiB per second through PCIe, received and sent, and through NVLink. A MIG instance measures it if its GPU does.
        """
        target = self._device(device)
        percents = [
            -1.0 if percent is None else percent
            for percent in (busy, sm, occupancy, tensor, bandwidth, *links)
        ]
        with self._writing():
            now_us, change = _monotonic_us(), target.activity_changes + 1
            before, segment = target.activity[(change - 1) % 2], target.activity[change % 2]
            known = zip(before.percent_us, before.percent, strict=True)
            elapsed_us = now_us - before.since_us
            segment.percent_us[:] = [
                total + (percent * elapsed_us if percent > 0 else 0.0) for total, percent in known
            ]
            segment.since_us = now_us
            segment.percent[:] = percents
            target.activity_changes = change
            (self._device(target.parent) if target.parent >= 0 else target).has_gpm = True

    def set_traffic(
        self, device: int, *bytes_per_second: float | None, counted: int = 10**12, is_short: bool = False
    ) -> None:
        """Let the device count what goes through PCIe, received and sent, and through NVLink, from now on; None is not counted.

        So much has gone through each of them before; `is_short`: counters of PCIe have 32 bits.
        """
        target = self._device(device)
        with self._writing():
            target.counted_bytes, target.has_short_counters = counted, is_short
            target.bytes_per_us[:] = [-1.0 if rate is None else rate / 1e6 for rate in bytes_per_second]
            target.traffic_since_us = _monotonic_us()

    def held_gpm_samples(self) -> int:
        """How many samples clients have allocated and not freed."""
        return int(self._state.gpm_samples)

    def report_xid(self, device: int, xid: int, *, gpu_instance: int | None = None) -> None:
        """Let the driver report an error, of a MIG instance if its GPU instance is given."""
        with self._writing():
            ring = self._device(device).faults
            fault = ring.entries[ring.written % layout.FAULT_LIMIT]
            fault.type, fault.data = _XID_CRITICAL_ERROR, xid
            fault.gpu_instance = 2**32 - 1 if gpu_instance is None else gpu_instance
            ring.written += 1

    def add_memory_errors(self, device: int, *, corrected: int = 0, uncorrected: int = 0) -> None:
        """Let ECC find errors."""
        errors = self._device(device).memory_errors
        errors[0] += corrected
        errors[1] += uncorrected

    def held_event_sets(self) -> int:
        """How many sets of events clients have created and not freed."""
        return int(self._state.event_sets)

    def set_video_utilization(self, device: int, encoder_percent: int, decoder_percent: int) -> None:
        """Set how busy the video engines are."""
        target = self._device(device)
        target.encoder_percent = encoder_percent
        target.decoder_percent = decoder_percent

    def set_power_watts(self, device: int, power_watts: float) -> None:
        """Change the power draw; the energy counter goes on from where it is."""
        target = self._device(device)
        with self._writing():
            now_us = _monotonic_us()
            power_mw = round(power_watts * 1000)
            integrates = bool(_last_power_segment(target).integrates)
            energy_mj = _energy_mj(target, now_us)
            _start_power_segment(target, now_us, power_mw, energy_mj, integrates=integrates)

    def set_energy_joules(self, device: int, joules: float, *, integrates: bool = False) -> None:
        """Set the energy counter; it stands still there unless it integrates the power."""
        target = self._device(device)
        with self._writing():
            power_mw = int(_last_power_segment(target).power_mw)
            energy_mj = round(joules * 1000)
            now_us = _monotonic_us()
            _start_power_segment(target, now_us, power_mw, energy_mj, integrates=integrates)
            target.energy_seen_mj = 0

    def hold_energy(self, device: int, *, holds: bool = True) -> None:
        """Let the energy counter stand still where it is, or go on from there."""
        target = self._device(device)
        with self._writing():
            now_us, power_mw = _monotonic_us(), int(_last_power_segment(target).power_mw)
            _start_power_segment(target, now_us, power_mw, _energy_mj(target, now_us), integrates=not holds)

    def set_temperature_celsius(self, device: int, temperature_celsius: int) -> None:
        """Set the temperature of the GPU."""
        self._device(device).temperature_celsius = temperature_celsius

    def set_clocks_mhz(self, device: int, *, sm: int, memory: int) -> None:
        """Set the current clocks; the maximum ones stay."""
        self._device(device).clocks_mhz[:] = (sm, sm, memory, sm)

    def set_throttle_reasons(self, device: int, reasons: int) -> None:
        """Set the bit mask that says why the clocks are low."""
        self._device(device).throttle_reasons = reasons

    def lose(self, device: int) -> None:
        """Let the GPU fall off the bus: its calls answer GPU_IS_LOST."""
        self._device(device).lost = True

    def reload(self) -> None:
        """Load the driver again: to clients that have not closed the old one, every call answers UNINITIALIZED."""
        self._state.driver_loads += 1

    def deny(self, device: int) -> None:
        """Deny access to the GPU: it is counted, but its handle call answers NO_PERMISSION."""
        self._device(device).denied = True

    def recover(self, device: int) -> None:
        """Undo lose() and deny()."""
        target = self._device(device)
        target.lost = target.denied = False

    # -- processes -------------------------------------------------------------------------------

    def set_process(
        self,
        device: int,
        pid: int,
        used_bytes: int | None,
        kind: Kind = "compute",
        sm_percent: int = 0,
        memory_percent: int = 0,
        *,
        foreign: bool = False,
        lingers: bool = False,
    ) -> None:
        """Put a process on a device, or change what it uses there; None means memory "N/A".

        It leaves the device when it ends, unless it is foreign: in another PID namespace, where it
        cannot be looked up; or unless it lingers: drivers have been seen to list the dead.
        """
        target = self._device(device)
        start_ticks = _start_ticks(pid) or 0
        used = _NOT_AVAILABLE if used_bytes is None else used_bytes
        with self._writing():
            entry = self._find_process(device, pid, _KINDS.index(kind), start_ticks)
            if entry is None:
                entry = self._free_process_entry()
                entry.device = device
                entry.kind = _KINDS.index(kind)
                entry.foreign = foreign
                entry.lingers = lingers
                entry.start_ticks = start_ticks
            entry.used_bytes = used
            entry.sm_percent = sm_percent
            entry.memory_percent = memory_percent
            entry.pid = pid
            if target.accounting:
                self._account(entry)

    def remove_process(self, device: int, pid: int) -> None:
        """Take a process off a device, from all lists it is in."""
        with self._writing():
            for entry in self._state.processes:
                if entry.pid == pid and entry.device == device:
                    entry.pid = 0

    def set_accounting(self, device: int, enabled: bool) -> None:
        """Switch per-process accounting; as in the driver, switching it off forgets everything."""
        with self._writing():
            self._device(device).accounting = enabled
            for record in self._state.accounting:
                if not enabled and record.device == device:
                    record.pid = 0

    def add_account(
        self, device: int, pid: int, max_used_bytes: int | None, *, begun_seconds_ago: float
    ) -> None:
        """The account of an earlier process with the same ID; without a size it is not available."""
        with self._writing():
            record = min(self._state.accounting, key=lambda entry: entry.pid != 0)
            used = _NOT_AVAILABLE if max_used_bytes is None else max_used_bytes
            record.device, record.start_ticks, record.max_used_bytes = device, 0, used
            record.start_us = _epoch_us() - int(begun_seconds_ago * 1e6)
            record.pid = pid

    # -- samples ---------------------------------------------------------------------------------

    def push_process_utilization_sample(
        self, device: int, pid: int, sm_percent: int, memory_percent: int = 0, *, timestamp_us: int
    ) -> None:
        """Record a process's utilization.

        A device that has such samples no longer derives any from its running processes.
        """
        ring = self._device(device).process_samples
        with self._writing():
            entry = ring.entries[ring.written % layout.PROCESS_SAMPLE_LIMIT]
            entry.pid = pid
            entry.sm_percent = sm_percent
            entry.memory_percent = memory_percent
            entry.encoder_percent = entry.decoder_percent = 0
            entry.timestamp_us = timestamp_us
            ring.written += 1

    @contextlib.contextmanager
    def sampling(
        self,
        hertz: float,
        *,
        process_hertz: float | None = None,
        process_delay_seconds: float = 0.0,
        keeps_every_sample: bool = True,
        is_busy: Callable[[float], bool] = lambda _: True,
        stamp_seconds: Callable[[float], float] = lambda at_seconds: at_seconds,
    ) -> Iterator[None]:
        """Sample as the driver does: at each instant, one of a device's busy processes is named with its percent.

        The processes take turns. While none is busy there is no sample of processes, and zero for the device. If they
        pause at an instant, none is named, but the device was partly busy. A client is given every sample that it has not
        seen, or only the newest of each process. Both functions are given the seconds since sampling began; the stamp
        says what the driver's clock shows then.

        Processes are sampled with their device, or as often as is said, with a delay. Then the device is as busy as they
        were since its last sample, of all the time in which any of them ran.
        """
        self._state.keeps_every_sample = keeps_every_sample
        is_over = threading.Event()
        devices = ((number / hertz, 1, number) for number in itertools.count(1))
        names = (
            (number / (process_hertz or hertz) + process_delay_seconds, 0, number)
            for number in itertools.count(1)
        )

        def measure(since: float, due: float) -> float | None:
            if process_hertz is None:
                return None
            parts = (due - part / 50 / hertz for part in range(50))
            return sum(at > since and is_busy(at) for at in parts) / 50

        # A driver has sampled before anybody asks.
        for device in range(self._state.device_count):
            first_us = _epoch_us() + int(stamp_seconds(0.0) * 1e6)
            self.push_sample(device, "gpu_utilization", 0, timestamp_us=first_us)
        thread = threading.Thread(
            target=self._sample_repeatedly,
            args=(heapq.merge(names, devices), measure, is_busy, stamp_seconds, is_over),
        )
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def _sample_repeatedly(
        self,
        instants: Iterator[tuple[float, int, int]],
        measure: Callable[[float, float], float | None],
        is_busy: Callable[[float], bool],
        stamp_seconds: Callable[[float], float],
        is_over: threading.Event,
    ) -> None:
        """A thread that wakes up late makes up for it: every instant has its sample, dated as if in time.

        Who has been seen busy before such an instant was busy at it, too: some may have ended since.
        """
        began, began_us = time.monotonic(), _epoch_us()
        for device in range(self._state.device_count):  # so that no other samples are made up
            self.push_process_utilization_sample(device, 0, 0, timestamp_us=1)
        idle_until: dict[int, float] = {}
        busy: dict[int, list[tuple[int, int]]] = {}
        for due, is_of_device, number in instants:
            is_over.wait(max(0.0, began + due - time.monotonic()))
            if is_over.is_set():
                return
            timestamp_us = began_us + int(stamp_seconds(due) * 1e6)
            is_late = time.monotonic() - began - due > _LATE_SECONDS
            for device in range(self._state.device_count):
                now = self._list_busy(device)
                ended = [one for one in busy.get(device, ()) if is_late and one not in now]
                busy[device] = now + ended
                if not busy[device]:
                    idle_until[device] = due
                if is_of_device:
                    share = measure(idle_until.get(device, 0.0), due)
                    self._sample_device(device, busy[device], timestamp_us, share, is_busy=is_busy(due))
                elif is_busy(due) and busy[device]:
                    pid, percent = busy[device][number % len(busy[device])]
                    self.push_process_utilization_sample(device, pid, percent, timestamp_us=timestamp_us)

    def _list_busy(self, device: int) -> list[tuple[int, int]]:
        """Process IDs and percentages."""
        return [
            (entry.pid, entry.sm_percent)
            for entry in self._state.processes
            if entry.pid and entry.device == device and entry.sm_percent and self._is_listed(entry)
        ]

    def _sample_device(
        self,
        device: int,
        busy: Sequence[tuple[int, int]],
        timestamp_us: int,
        busy_share: float | None,
        *,
        is_busy: bool,
    ) -> None:
        percent = 0
        if busy and busy_share is not None:
            percent = round(100 * busy_share)
        elif busy:
            percent = max(percent for _, percent in busy) if is_busy else PARTLY_BUSY_PERCENT
        self.push_sample(device, "gpu_utilization", percent, timestamp_us=timestamp_us)

    def push_sample(
        self, device: int, kind: SampleKind, value: int, *, timestamp_us: int | None = None
    ) -> None:
        """Record a value (percent or milliwatts) in a sample buffer."""
        ring = self._device(device).samples[_SAMPLE_KINDS.index(kind)]
        with self._writing():
            entry = ring.entries[ring.written % layout.SAMPLE_LIMIT]
            entry.value = value
            entry.timestamp_us = _epoch_us() if timestamp_us is None else timestamp_us
            ring.written += 1

    # -- injected errors and latency -------------------------------------------------------------

    def fail(
        self,
        function: str,
        code: int,
        device: int = _ANY_DEVICE,
        after: int = 0,
        times: int = _FOREVER,
    ) -> None:
        """Let calls matching a function's name or shell pattern answer an error.

        It begins after `after` matching calls, counted over all clients, and happens `times` times.
        """
        self._add_rule(function, device, after, times, code=code, latency_ms=0)

    def delay(self, function: str, milliseconds: int) -> None:
        """Delay calls matching a function's name or shell pattern."""
        self._add_rule(function, _ANY_DEVICE, 0, _FOREVER, code=0, latency_ms=milliseconds)

    def crash(self, function: str) -> None:
        """Calls of a function end the client's process, by a segmentation fault."""
        self._add_rule(function, _ANY_DEVICE, 0, _FOREVER, code=0, latency_ms=layout.CRASHES)

    def hang(self, function: str, device: int = _ANY_DEVICE, after: int = 0, times: int = _FOREVER) -> None:
        """Let calls matching a function's name or shell pattern not return before the rules are cleared."""
        self._add_rule(function, device, after, times, code=0, latency_ms=layout.HANGS)

    def clear_rules(self) -> None:
        """Remove all injected errors and latencies; calls that hang go on."""
        with self._writing():
            for rule in self._state.rules:
                rule.active = 0

    # -- calls and clients -----------------------------------------------------------------------

    def calls(self) -> dict[str, int]:
        """Count the calls per function, over all clients since the last clear_calls()."""
        entries = [entry for entry in self._state.calls if entry.calls]
        return {entry.function.decode(): entry.calls for entry in entries}

    def clear_calls(self) -> None:
        """Reset the counts of calls."""
        for entry in self._state.calls:
            entry.calls = 0

    def clients(self) -> list[int]:
        """List the pids of the processes that initialised the library, newest last."""
        count = int(self._state.client_count)
        newest = range(max(0, count - layout.CLIENT_LIMIT), count)
        return [self._state.clients[index % layout.CLIENT_LIMIT] for index in newest]

    # -- entries of the tables -------------------------------------------------------------------

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Exclude other writers: threads by a lock, processes by one that the kernel frees at exit."""
        with self._lock:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _device(self, index: int) -> layout.Device:
        is_gpu = 0 <= index < self._state.device_count
        is_instance = 0 <= index - layout.DEVICE_LIMIT < self._state.instance_count
        if not (is_gpu or is_instance):
            raise IndexError(f"no device {index}")
        device: layout.Device = self._state.devices[index]
        return device

    def _find_process(self, device: int, pid: int, kind: int, start_ticks: int) -> layout.Process | None:
        wanted = (device, pid, kind, start_ticks)
        entry: layout.Process
        for entry in self._state.processes:
            if (entry.device, entry.pid, entry.kind, entry.start_ticks) == wanted:
                return entry
        return None

    def _free_process_entry(self) -> layout.Process:
        """Find an unused entry, or one whose process is dead: jobs rarely clean up."""
        entry: layout.Process
        for entry in self._state.processes:
            if entry.pid == 0:
                return entry
        for entry in self._state.processes:
            if not self._is_listed(entry):
                entry.pid = 0
                return entry
        raise ValueError(f"at most {layout.PROCESS_LIMIT} processes")

    @staticmethod
    def _is_listed(entry: layout.Process) -> bool:
        return bool(entry.foreign or entry.lingers or _start_ticks(entry.pid) == entry.start_ticks)

    def _account(self, process: layout.Process) -> None:
        record = self._accounting_record(process)
        used_bytes = 0 if process.used_bytes == _NOT_AVAILABLE else process.used_bytes
        record.max_used_bytes = max(record.max_used_bytes, used_bytes)
        record.active_ms = (_epoch_us() - record.start_us) // 1000
        record.gpu_percent = process.sm_percent
        record.memory_percent = process.memory_percent
        record.pid = process.pid

    def _accounting_record(self, process: layout.Process) -> layout.Accounting:
        """Find the record of a process, or begin one in a free entry or that of the oldest."""
        wanted = (process.device, process.pid, process.start_ticks)
        records: Sequence[layout.Accounting] = self._state.accounting
        for record in records:
            if (record.device, record.pid, record.start_ticks) == wanted:
                return record
        record = min(records, key=lambda entry: (entry.pid != 0, entry.start_us))
        record.pid = 0
        record.device = process.device
        record.start_ticks = process.start_ticks
        record.max_used_bytes = 0
        record.start_us = _epoch_us()
        return record

    def _add_rule(
        self, function: str, device: int, after: int, times: int, *, code: int, latency_ms: int
    ) -> None:
        with self._writing():
            for rule in self._state.rules:
                if not rule.active:
                    break
            else:
                raise ValueError(f"at most {layout.RULE_LIMIT} rules")
            rule.function = _text(function, layout.NAME_BYTES)
            rule.device = device
            rule.code = code
            rule.latency_ms = latency_ms
            rule.after = after
            rule.times = times
            rule.matches = 0
            rule.active = 1 + _monotonic_us() % 2**31


def _text(text: str, capacity: int) -> bytes:
    encoded = text.encode()
    if len(encoded) >= capacity:  # C needs the closing zero
        raise ValueError(f"{text!r} is longer than {capacity - 1} bytes")
    return encoded


def _epoch_us() -> int:
    return time.time_ns() // 1000


def _monotonic_us() -> int:
    return time.monotonic_ns() // 1000


def _last_power_segment(device: layout.Device) -> layout.PowerSegment:
    segment: layout.PowerSegment = device.power[device.power_changes % 2]
    return segment


def _energy_mj(device: layout.Device, now_us: int) -> int:
    segment = _last_power_segment(device)
    elapsed_us = now_us - segment.since_us if segment.integrates else 0
    return int(segment.energy_start_mj + segment.power_mw * elapsed_us // 1_000_000)


def _start_power_segment(
    device: layout.Device, now_us: int, power_mw: int, energy_mj: int, *, integrates: bool
) -> None:
    change = device.power_changes + 1
    segment = device.power[change % 2]
    segment.energy_start_mj = energy_mj
    segment.since_us = now_us
    segment.power_mw = power_mw
    segment.integrates = integrates
    device.power_changes = change


def _start_ticks(pid: int) -> int | None:
    """Read when a process started; None if it is dead or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
