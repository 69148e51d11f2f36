"""NVIDIA, through NVML and the official nvidia-ml-py. Loaded in the sampler only, and only if there is a driver.

Scalars are read through nvidia-ml-py. Lists (processes, samples) are read from the same library into one buffer
each: with hundreds of processes, an object per entry would cost more than the driver's answer.
"""

from __future__ import annotations

import time

from ...core.figures import PROCESS_LISTS, name_device_figure
from ...core.model import Gpu, GpuHighWater, GpuProcessReading, GpuReading, GpuReadings, GpuShares
from .. import NotAvailableError
from .evidence import has_driver_loaded, is_in_a_container
from .guard import DENIED, LOST, TROUBLE, UNSUPPORTED, Failure, Guard
from .nvidia import LIBRARY, has_library, name_limits, parse_bus_id
from .process_samples import WINDOW_US, SampleWindow, find_share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

NAME = "nvml"

_SLOW_SECONDS = 0.9  # figures that change slowly, or are expensive to read, are read about once a second
_NOT_AVAILABLE = 2**64 - 1
_LONGEST_SAMPLE_SECONDS = 2.0  # no driver samples less often
_BLIND_SECONDS = 3.0
_NOTABLE_BYTES = 2**30
_MOST_ATTEMPTS = 3
# Names of the lists in the library; kinds of the processes in them, and names of the lists here.
_LISTS = tuple(
    zip(("Compute", "Graphics", "MPSCompute"), ("compute", "graphics", "compute"), PROCESS_LISTS, strict=True)
)


def why_absent() -> str | None:
    """A reason not to try, or None."""
    if has_library():
        return None
    return f"No NVIDIA GPU was measured: this machine has no NVIDIA driver library ({LIBRARY})."


def connect(now: Callable[[], float]) -> NvmlSource:
    """Open the driver, or raise with the reason why not."""
    try:
        import pynvml  # type: ignore[import-untyped]
    except ImportError:
        raise NotAvailableError(
            "No NVIDIA GPU was measured: there is a driver, but not its Python package; "
            "run `pip install nvidia-ml-py`."
        ) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NotAvailableError(
            f"No NVIDIA GPU was measured: the driver reports: {_sentence(error)}{_suggest_fix(pynvml, error)}"
        ) from None
    return NvmlSource(pynvml, now)


def _suggest_fix(pynvml: Any, error: Any) -> str:
    fixes = {
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED: " Is the kernel module loaded (`modprobe nvidia`)?",
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: " The driver was updated while the old one was loaded: reboot.",
        pynvml.NVML_ERROR_NO_PERMISSION: " Ask for access to the device files /dev/nvidia*.",
        pynvml.NVML_ERROR_UNKNOWN: " A container that has lost its devices must be restarted.",
    }
    return fixes.get(error.value, "")


# ---- Parsers: the driver's entries → values. Pure.


def is_wide_entry_driver(version: str) -> bool:
    """Drivers 535.43 to 535.86 write process entries of 32 bytes instead of 24."""
    try:
        major, minor = map(int, version.split(".")[:2])
    except ValueError:
        return False
    return major == 535 and 43 <= minor <= 86


def merge_processes(
    lists: Iterable[tuple[str, Iterable[tuple[int, int]]]],
) -> dict[int, tuple[int | None, str]]:
    """Bytes and kind by pid. A process may be in several lists, each with its total."""
    merged: dict[int, tuple[int | None, str]] = {}
    for kind, entries in lists:
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


# ---- The driver's lists, in one buffer each.


class _Lists:
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


# ---- Devices.


class _Device:
    """One device, and its state between two readings."""

    def __init__(self, gpu: Gpu, handle: Any) -> None:
        self.gpu = gpu
        self.handle = handle
        self.slow_seconds = float("-inf")
        self.slow_figures: dict[str, Any] = {}
        """Fields of GpuReading that are not read every time."""
        self.sample_us = -1
        self.sample_seconds = float("-inf")
        """When the driver last had new samples of its utilization."""
        self.samples: SampleWindow | None = None
        self.has_named: set[bool] = set()
        """Whether a sample has named a process that the device lists: one of MPS, or any other."""
        self.mps_pids: frozenset[int] = frozenset()
        """Clients of MPS, which work through a server."""
        self.blind_seconds = float("inf")
        self.is_part_of: str | None = None
        """The first device with the same memory."""
        self.has_accounting = False
        self.accounted_before: frozenset[int] = frozenset()
        self.job_pids: set[int] = set()

    @property
    def is_instance(self) -> bool:
        return self.gpu.parent_uuid is not None


class NvmlSource:
    """Every NVIDIA device that can be opened. Each call is guarded on its own."""

    # Without samples, utilization is that of the driver's latest period, which is no shorter.
    poll_seconds = 0.1

    def __init__(self, pynvml: Any, now: Callable[[], float]) -> None:
        self._nvml = pynvml
        self._now = now
        errors = (pynvml.NVMLError, UnicodeDecodeError)
        self._guard = Guard(now, errors, self._explain)
        self.reasons: Mapping[tuple[str, str], str] = self._guard.reasons
        self.kinds: Mapping[tuple[str, str], str] = self._guard.kinds
        self._labels: dict[str, str] = {}
        self._driver = self._guard.ask("", "driver", pynvml.nvmlSystemGetDriverVersion) or ""
        self._lists = _Lists(pynvml, self._driver)
        self._reads_reserve: bool | None = None
        self._known_pids: set[int] = set()
        self._missing_pids: set[int] = set()
        self._first_missing_pids: set[int] | None = None
        self._shows_foreign_pids = self._has_seen_foreign_pids = self._has_strangers = False
        self._doubt: tuple[frozenset[int], frozenset[int] | None] | None = None
        self._doubt_seconds = float("-inf")
        self._is_in_a_container = is_in_a_container()
        self._is_list_trusted = not self._is_in_a_container
        """Whether a list without processes means that there are none."""
        self._devices = self._open_all()
        self.gpus = tuple(device.gpu for device in self._devices)
        for device in self._devices:
            self._open_accounting(device)

    def read(self, pids: frozenset[int] | None) -> GpuReadings:
        """Read every device, and what these processes use of it."""
        from ..processes import exists

        at = self._now()
        devices: list[GpuReading] = []
        processes: list[GpuProcessReading] = []
        high_waters: list[GpuHighWater] = []
        present = [device for device in self._devices if device.gpu.uuid not in self._guard.lost]
        lists = {device.gpu.uuid: self._read_processes(device) for device in present}
        self._check_namespace({pid for listed in lists.values() for pid in listed or ()}, pids, at)
        for device in present:
            uuid = device.gpu.uuid
            is_slow_turn = at - device.slow_seconds >= _SLOW_SECONDS
            if is_slow_turn:
                device.slow_seconds = at
                device.slow_figures = self._read_slow(device)
            rates = self._read_utilization(device)
            listed = None if self._shows_foreign_pids or self._has_strangers else lists[uuid]
            if listed is not None and not self._is_list_trusted and not any(lists.values()):
                listed = self._doubt_empty_list(device, is_busy=bool(rates[0]))
            everybody = frozenset(listed or ())  # the dead among them, too
            if listed is not None and pids is not None:
                # One that has just ended may still be listed, and still be among those of the job.
                listed = {pid: entry for pid, entry in listed.items() if pid in pids and exists(pid)}
                device.job_pids.update(listed)
            shares = None if listed is None else self._read_shares(device, pids or frozenset())
            if shares is not None and rates[0] and self._is_blind(device, at, everybody):
                shares = None
            if pids is not None and any(used is None for used, _ in (listed or {}).values()):
                text = (
                    f"{self._labels[uuid]} lists processes of the job without their memory (for MIG instances it "
                    "requires root, and WSL does not report it): what they hold meanwhile is not known."
                )
                self._guard.say(uuid, "process_used_bytes", text)
            for pid, (used, kind) in (listed or {}).items():
                percent = device.samples.percent_of(pid) if device.samples and shares is not None else None
                processes.append(GpuProcessReading(uuid, pid, used, percent, kind))
            if device.has_accounting and is_slow_turn and pids is not None:
                high_waters += self._read_accounting(device, pids)
            reading = self._read_device(device, rates, shares)
            devices.append(
                reading._replace(
                    lists_processes=listed is not None,
                    has_lost_list=lists[uuid] is None,
                    is_part_of=device.is_part_of,
                )
            )
        return GpuReadings(at, tuple(devices), tuple(processes), tuple(high_waters))

    def read_details(self) -> Mapping[str, Mapping[str, float | str]]:
        """Performance state, fan, limits..."""
        from .nvml_details import read_details

        return {device.gpu.uuid: read_details(self._nvml, device.handle) for device in self._devices}

    def take_notes(self) -> tuple[str, ...]:
        """Sentences for the user since the last call."""
        return self._guard.take_notes()

    def close(self) -> None:
        """Close the driver."""
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError:
            pass  # already closed

    # ---- Opening.

    def _open_all(self) -> list[_Device]:
        nvml = self._nvml
        devices: list[_Device] = []
        for index in range(self._guard.ask("", "number of GPUs", nvml.nvmlDeviceGetCount) or 0):
            label = f"GPU {index}"
            self._labels[label] = label
            handle = self._guard.ask(label, "device", nvml.nvmlDeviceGetHandleByIndex, index)
            if handle is None:
                continue
            whole = self._open(index, handle, label, None)
            instances = self._open_instances(index, handle, whole.uuid)
            devices += instances or [_Device(whole, handle)]
        return devices

    def _open(self, index: int, handle: Any, label: str, parent_uuid: str | None) -> Gpu:
        nvml = self._nvml
        uuid = self._guard.ask(label, "UUID", nvml.nvmlDeviceGetUUID, handle) or label.replace(" ", "-")
        self._labels[uuid] = label
        name = self._guard.ask(uuid, "name", nvml.nvmlDeviceGetName, handle) or "NVIDIA GPU"
        memory = self._guard.ask(uuid, "memory_bytes", nvml.nvmlDeviceGetMemoryInfo, handle)
        bus_id = ""
        if parent_uuid is None:
            pci = self._guard.ask(uuid, "bus", nvml.nvmlDeviceGetPciInfo, handle)
            bus_id = "" if pci is None else parse_bus_id(_text(pci.busId))
        return Gpu(
            ordinal=index,
            uuid=uuid,
            name=name,
            memory_bytes=int(memory.total) if memory else None,
            vendor="nvidia",
            source=NAME,
            bus_id=bus_id,
            driver=self._driver,
            parent_uuid=parent_uuid,
            **({} if parent_uuid else self._read_limits_of(handle)),
        )

    def _read_limits_of(self, handle: Any) -> dict[str, Any]:
        """What the device may draw, how fast it may run, and how hot it may get; what it does not report is left out."""
        nvml = self._nvml
        calls: dict[str, Callable[[], float]] = {
            "power_limit_watts": lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000,
            "top_sm_clock_mhz": lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM),
            "slowdown_celsius": lambda: nvml.nvmlDeviceGetTemperatureThreshold(
                handle, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
            ),
        }
        limits = {}
        for figure, call in calls.items():
            try:
                limits[figure] = float(call())
            except nvml.NVMLError:
                continue
        return limits

    def _open_instances(self, index: int, handle: Any, parent_uuid: str) -> list[_Device]:
        """The instances of a device in MIG mode, which replace the whole device."""
        nvml = self._nvml
        devices = []
        owners: dict[int, str] = {}  # instances for computing may share one of the GPU, with its memory
        try:
            is_split, _ = nvml.nvmlDeviceGetMigMode(handle)
            most = nvml.nvmlDeviceGetMaxMigDeviceCount(handle) if is_split else 0
        except nvml.NVMLError:
            return []  # MIG is not supported
        for number in range(most):
            try:
                instance = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
            except nvml.NVMLError:
                continue  # there is no instance with this number
            gpu = self._open(index, instance, f"GPU {index} instance {number}", parent_uuid)
            device = _Device(gpu, instance)
            part = self._guard.ask(gpu.uuid, "GPU instance", nvml.nvmlDeviceGetGpuInstanceId, instance)
            if part in owners:
                device.is_part_of = owners[part]
            elif part is not None:
                owners[part] = gpu.uuid
            devices.append(device)
        return devices

    def _open_accounting(self, device: _Device) -> None:
        """The driver's accounting of processes: used if it is on, never switched on."""
        nvml = self._nvml
        try:
            if nvml.nvmlDeviceGetAccountingMode(device.handle):
                device.accounted_before = frozenset(nvml.nvmlDeviceGetAccountingPids(device.handle))
                device.has_accounting = True
        except nvml.NVMLError:
            return  # not supported by most devices

    # ---- Reading.

    def _doubt_empty_list(
        self, device: _Device, *, is_busy: bool
    ) -> dict[int, tuple[int | None, str]] | None:
        """In a container most drivers list nothing: that says nothing about a device in use."""
        memory = self._guard.ask(device.gpu.uuid, "used_bytes", self._read_memory, device.handle)
        if not is_busy and (memory is None or memory[0] < _NOTABLE_BYTES):
            return {}
        self._mark(
            device,
            "lists_processes",
            "this is a container, and the NVIDIA driver lists no process in it; "
            "start it with the process IDs of the host (docker run --pid=host).",
        )
        return None

    def _is_blind(self, device: _Device, at_seconds: float, listed: frozenset[int]) -> bool:
        """Whether a busy device has never named a process that it lists: its samples then say nothing of the job."""
        from ..processes import exists

        figure = "utilization_of_processes"
        # A sample that names the server of MPS says nothing of its clients.
        is_mps = not device.job_pids.isdisjoint(device.mps_pids)
        peers = device.mps_pids if is_mps else listed | device.job_pids
        if is_mps in device.has_named or (device.samples and device.samples.names_any(peers)):
            device.has_named.add(is_mps)
            self._unmark(device, figure)
            return False
        if not any(map(exists, listed)):
            return False  # there is nobody to name
        where = "in a container, or " if self._is_in_a_container else ""
        text = (
            f"{self._labels[device.gpu.uuid]} is busy, but the driver names none of the processes that it lists, "
            f"so the job's own utilization is not known (as {where}with MPS)."
        )
        self._mark(device, figure, text)
        device.blind_seconds = min(device.blind_seconds, at_seconds)
        if at_seconds - device.blind_seconds > _BLIND_SECONDS:
            self._guard.say(device.gpu.uuid, figure, text)
        return True

    def _mark(self, device: _Device, figure: str, text: str) -> None:
        key = (device.gpu.uuid, figure)
        self._guard.kinds[key], self._guard.reasons[key] = DENIED, text

    def _unmark(self, device: _Device, figure: str) -> None:
        key = (device.gpu.uuid, figure)
        self._guard.kinds.pop(key, None)
        self._guard.reasons.pop(key, None)

    def _read_device(
        self, device: _Device, rates: tuple[float | None, float | None], shares: GpuShares | None
    ) -> GpuReading:
        guard, uuid, handle = self._guard, device.gpu.uuid, device.handle
        used, reserved = guard.ask(uuid, "used_bytes", self._read_memory, handle) or (None, None)
        busy, memory_busy = rates
        samples = self._read_samples(device)
        percents = [percent for _, percent in samples or ()]
        if percents:
            busy = sum(percents) / len(percents)
        energy = None
        if not device.is_instance:
            energy = guard.ask(uuid, "energy_joules", self._nvml.nvmlDeviceGetTotalEnergyConsumption, handle)
        return GpuReading(
            uuid,
            used,
            busy,
            max(percents, default=busy),
            reserved,
            memory_busy,
            energy_joules=None if energy is None else energy / 1000,
            samples=samples,
            measures_processes=shares is not None,
            shares=shares,
            **device.slow_figures,
        )

    def _read_memory(self, handle: Any) -> tuple[int, int | None]:
        """Used and reserved bytes. Old drivers include their reserve in the used bytes."""
        nvml = self._nvml
        if self._reads_reserve is not False:
            try:
                memory = nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2)
            except nvml.NVMLError as error:
                if not self._is_missing(error):
                    raise
            else:
                self._reads_reserve = True
                return int(memory.used), int(memory.reserved)
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        if self._reads_reserve is None:
            self._reads_reserve = False
            text = (
                "Memory in use includes the NVIDIA driver's own reserve, which this driver does not report."
            )
            self._guard.say("", "reserved_bytes", text)
        return int(memory.used), None

    def _read_utilization(self, device: _Device) -> tuple[float | None, float | None]:
        """The latest value, and that of memory."""
        if device.is_instance:
            return None, None  # the driver reports it for the whole device only
        rates = self._guard.ask(
            device.gpu.uuid, "utilization_percent", self._nvml.nvmlDeviceGetUtilizationRates, device.handle
        )
        return (None, None) if rates is None else (float(rates.gpu), float(rates.memory))

    def _read_samples(self, device: _Device) -> tuple[tuple[float, float], ...] | None:
        """Utilization that the driver has sampled since the last reading; None if it keeps no samples."""
        if device.is_instance:
            return None
        since, is_first = max(0, device.sample_us), device.sample_us < 0
        try:
            samples = self._lists.utilization_samples(device.handle, since)
        except self._nvml.NVMLError:
            return None
        now, now_us = self._now(), time.time() * 1e6
        fresh = [sample for sample in samples if sample[0] > since and sample[1] <= 100]
        if fresh:
            device.sample_us, device.sample_seconds = max(at_us for at_us, _ in fresh), now
        device.sample_us = max(0, device.sample_us)
        if now - device.sample_seconds > _LONGEST_SAMPLE_SECONDS:
            return None
        return () if is_first else tuple((now - (now_us - at_us) / 1e6, percent) for at_us, percent in fresh)

    def _read_slow(self, device: _Device) -> dict[str, Any]:
        if device.is_instance:
            return {}  # the driver reports them for the whole device only
        nvml = self._nvml
        calls = {
            "power_watts": (lambda handle: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,),
            "temperature_celsius": (nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
            "sm_clock_mhz": (nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
            "memory_clock_mhz": (nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM),
            "limits": (self._read_limits,),
        }
        return {
            figure: self._guard.ask(device.gpu.uuid, figure, call, device.handle, *arguments)
            for figure, (call, *arguments) in calls.items()
        }

    def _read_limits(self, handle: Any) -> tuple[str, ...]:
        nvml = self._nvml
        try:
            return name_limits(nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
        except nvml.NVMLError as error:
            if not self._is_missing(error):
                raise
        return name_limits(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))

    def _read_processes(self, device: _Device) -> dict[int, tuple[int | None, str]] | None:
        """Bytes and kind of each process on the device; None if it does not list all of them."""
        guard, uuid = self._guard, device.gpu.uuid
        lists = []
        for kind, word, what in _LISTS:
            entries = guard.ask(uuid, what, self._lists.processes, kind, device.handle)
            is_optional = what != PROCESS_LISTS[0] and guard.kinds.get((uuid, what)) == UNSUPPORTED
            if entries is None and not is_optional:
                return None
            if kind == "MPSCompute":
                device.mps_pids = frozenset(pid for pid, _ in entries or ())
            lists.append((word, entries or ()))
        return merge_processes(lists)

    def _check_namespace(self, listed: set[int], pids: frozenset[int] | None, at_seconds: float) -> None:
        """Whether the driver lists processes by the IDs of the host of our container; the same ID here is another process.

        A listed process that does not exist is no proof: drivers have been seen to list the dead. But drivers that
        translate IDs leave processes of other namespaces out: so it is one if it has come while we watch; one that was
        there before makes us doubt, until a process of ours is listed. And a process of ours uses the driver.
        """
        if not self._is_in_a_container:
            return
        from ..processes import exists

        strangers = listed - self._known_pids
        gone = {pid for pid in strangers if not exists(pid)}
        self._known_pids |= strangers - gone
        if len(self._known_pids) > 4096:
            self._known_pids.clear()
        if self._first_missing_pids is None:
            self._first_missing_pids = gone
        # Missing twice, because a process may end after it was listed. Who asks about all processes may ask once only.
        suspects = gone if pids is None else gone & self._missing_pids
        self._missing_pids = gone
        self._has_seen_foreign_pids |= not suspects <= self._first_missing_pids
        self._has_strangers = pids is not None and not gone <= self._first_missing_pids | suspects
        is_doubted = bool(suspects or self._shows_foreign_pids)
        if not self._has_seen_foreign_pids and (is_doubted or not self._is_list_trusted):
            lists_ours = self._lists_ours(listed, gone, pids)
            self._is_list_trusted |= lists_ours
            is_doubted &= not lists_ours
        is_foreign = is_doubted and (
            self._shows_foreign_pids or self._is_one_of_us_missing(listed - gone, gone, pids, at_seconds)
        )
        if is_foreign != self._shows_foreign_pids:
            self._shows_foreign_pids = is_foreign
            self._note_namespace(is_foreign)

    def _lists_ours(self, listed: set[int], gone: set[int], pids: frozenset[int] | None) -> bool:
        ours = listed - gone if pids is None else listed & pids
        return any(map(has_driver_loaded, ours))

    def _is_one_of_us_missing(
        self, alive: set[int], gone: set[int], pids: frozenset[int] | None, at_seconds: float
    ) -> bool:
        """Whether a process of ours uses the driver, but is not listed as such. What it has loaded is not read each time."""
        if pids is None:
            return True  # all processes are asked for, also those that cannot be seen from here
        doubt = (frozenset(gone), pids)
        if doubt == self._doubt and at_seconds - self._doubt_seconds < _SLOW_SECONDS:
            return False
        self._doubt, self._doubt_seconds = doubt, at_seconds
        # One that is listed without the driver has the same ID as another by chance. And what may not be read counts:
        # zero bytes must not be made up.
        return not alive.isdisjoint(pids) or any(has_driver_loaded(pid, if_denied=True) for pid in pids)

    def _note_namespace(self, is_foreign: bool) -> None:
        text = (
            "this is a container, and the NVIDIA driver lists processes that do not exist in it; "
            "start it with the process IDs of the host (docker run --pid=host)."
        )
        for device in self._devices:
            self._unmark(device, "lists_processes")
            if is_foreign:
                self._mark(device, "lists_processes", text)

    def _read_shares(self, device: _Device, pids: frozenset[int]) -> GpuShares | None:
        """The shares of these processes since the last reading. None if the device does not report them."""
        if device.is_instance:
            return None
        window, until = device.samples, self._now()
        if window is None:
            # The driver keeps ten seconds, with timestamps of the wall clock.
            window = device.samples = SampleWindow(int(time.time() * 1e6) - WINDOW_US)
        samples = self._guard.ask(
            device.gpu.uuid,
            "utilization_of_processes",
            self._lists.process_samples,
            device.handle,
            window.newest_us,
        )
        if samples is None:
            device.samples = None
            return None
        now, now_us, ours = self._now(), int(time.time() * 1e6), pids | device.job_pids
        instants = tuple(
            (now - (now_us - at_us) / 1e6, find_share(named, ours.__contains__))
            for at_us, named in window.take(samples, now_us).items()
        )
        return GpuShares(instants, window.are_complete, max([until, *(at for at, _ in instants)]))

    def _read_accounting(self, device: _Device, pids: frozenset[int]) -> list[GpuHighWater]:
        """Peak memory of each process of the job by the driver's accounting, including those that have ended.

        A process that was accounted before the job began is left out: its peak may be older than the job, or its
        pid may have been reused.
        """
        nvml = self._nvml
        peaks = []
        try:
            for pid in nvml.nvmlDeviceGetAccountingPids(device.handle):
                if pid in device.accounted_before or not (pid in pids or pid in device.job_pids):
                    continue
                peak = nvml.nvmlDeviceGetAccountingStats(device.handle, pid).maxMemoryUsage
                if peak is not None:
                    peaks.append(GpuHighWater(device.gpu.uuid, pid, int(peak)))
        except nvml.NVMLError:
            pass  # one was removed meanwhile; the others follow at the next reading
        return peaks

    # ---- Trouble.

    def _is_missing(self, error: Any) -> bool:
        nvml = self._nvml
        return error.value in (
            nvml.NVML_ERROR_NOT_SUPPORTED,
            nvml.NVML_ERROR_FUNCTION_NOT_FOUND,
            nvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        )

    def _explain(self, error: Exception, device: str, what: str) -> Failure:
        nvml = self._nvml
        code = getattr(error, "value", None)
        label = self._labels.get(device, "The NVIDIA driver")
        figure = name_device_figure(what)
        if code in (nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED):
            return Failure(LOST, f"{label} was lost; its figures end there.")
        if isinstance(error, nvml.NVMLError) and self._is_missing(error):
            if what == "memory_bytes":
                return Failure(
                    UNSUPPORTED, f"{label} reports no memory of its own, as a device that uses RAM."
                )
            if what == "device":
                return Failure(UNSUPPORTED, f"{label} cannot be read: {_sentence(error)}")
            return Failure(UNSUPPORTED, f"{label} does not report {figure}.", label, figure)
        if code == nvml.NVML_ERROR_NO_PERMISSION:
            text = label if what == "device" else f"{figure[0].upper()}{figure[1:]} of {label}"
            verb = "require" if what in (*PROCESS_LISTS, "limits") else "requires"
            return Failure(DENIED, f"{text} {verb} administrator rights.")
        return Failure(TROUBLE, f"{label} could not be read for a while: {_sentence(error)}")


def _sentence(error: Exception) -> str:
    return f"{str(error).rstrip('.')}."


def _text(value: str | bytes) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value
