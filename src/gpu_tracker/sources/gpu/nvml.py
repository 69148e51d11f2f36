"""NVIDIA, through NVML and the official nvidia-ml-py. Loaded in the sampler only, and only if there is a driver.

Scalars are read through nvidia-ml-py, lists from the same library by `nvml_lists`.
"""

from __future__ import annotations

import time

from ...core.figures import PROCESS_LISTS, name_device_figure
from ...core.model import (
    Gpu,
    GpuFault,
    GpuHighWater,
    GpuProcessReading,
    GpuReading,
    GpuReadings,
    GpuShares,
    Traffic,
    add_sizes,
    name_unopened,
)
from ...core.observation import PROBE
from .. import NotAvailableError
from .faults import FaultWatch
from .foreign_pids import HOST_PIDS, NamespaceCheck
from .gpm import ActivityMeter, Measured, can_measure
from .guard import DENIED, LOST, TROUBLE, UNSUPPORTED, Failure, Guard
from .nvidia import LIBRARY, is_no_such_file, name_limits, parse_bus_id, why_not_loaded
from .nvml_lists import DriverLists, merge_processes
from .nvml_older import initialize, read_bus_id
from .owners import Owners
from .process_samples import WINDOW_US, SamplePeriod, SampleWindow, find_share, limit_percents
from .sample_clock import SampleClock
from .traffic import TrafficMeter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any

NAME = "nvml"

_SLOW_SECONDS = 0.9  # figures that change slowly, or are expensive to read, are read about once a second
_BLIND_SECONDS = 3.0
_LAYOUT_SECONDS = 1.0  # between two checks for devices that are new
_NOTABLE_BYTES = 2**30
_CLOCK_TOLERANCE_SECONDS = 1.0
_NO_DEVICE = (
    "The NVIDIA driver is loaded, but reports no device; "
    "in a container, or under a scheduler, a GPU must be requested."
)
# Names of the lists in the library; kinds of the processes in them, and names of the lists here.
_LISTS = tuple(
    zip(("Compute", "Graphics", "MPSCompute"), ("compute", "graphics", "compute"), PROCESS_LISTS, strict=True)
)
# What is read besides figures, and need not be there.
_PROBED = {
    "memory_errors": "number of memory errors (ECC)",
    "faults": "list of errors of the driver (Xid)",
    "activity": "activity of the units",
    "samples": "list of the driver's samples",
    "instances": "list of MIG instances",
    "accounting": "accounting of processes",
    "power_limit_watts": "power limit",
    "top_sm_clock_mhz": "highest clock",
    "slowdown_celsius": "temperature limit",
}


def why_absent() -> str | None:
    """A reason not to try, or None."""
    reason = why_not_loaded()
    if reason is None or not is_no_such_file(reason):
        return None
    return f"No NVIDIA GPU was measured: this machine has no NVIDIA driver library ({LIBRARY})."


def connect(now: Callable[[], float]) -> NvmlSource:
    """Open the driver, or raise with the reason why not."""
    reason = why_not_loaded()
    if reason:
        raise NotAvailableError(
            f"No NVIDIA GPU was measured: the driver's library ({LIBRARY}) cannot be loaded: {reason}. "
            "Install the driver again, or take the folder of the broken file out of LD_LIBRARY_PATH."
        )
    try:
        import pynvml  # type: ignore[import-untyped]
    except ImportError:
        raise NotAvailableError(
            "No NVIDIA GPU was measured: there is a driver, but not its Python package; "
            "run `pip install nvidia-ml-py`."
        ) from None
    try:
        initialize(pynvml)
        return _open(pynvml, now)
    except pynvml.NVMLError as error:
        raise NotAvailableError(
            f"No NVIDIA GPU was measured: the driver reports: {_sentence(error)}{_suggest_fix(pynvml, error)}"
        ) from None


def _open(pynvml: Any, now: Callable[[], float]) -> NvmlSource:
    try:
        return NvmlSource(pynvml, now, pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:
        pynvml.nvmlShutdown()
        raise


def _suggest_fix(pynvml: Any, error: Any) -> str:
    fixes = {
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED: " Is the kernel module loaded (`modprobe nvidia`)?",
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: " The driver was updated while the old one was loaded: reboot.",
        pynvml.NVML_ERROR_NO_PERMISSION: " Ask for access to the device files /dev/nvidia*.",
        pynvml.NVML_ERROR_UNKNOWN: " A container that has lost its devices must be restarted.",
    }
    general = " If `nvidia-smi` fails, too, install the driver again or reboot; restart a container that fails alone."
    return fixes.get(error.value, general)


def _average(samples: Sequence[tuple[float, float]] | None, latest: float | None) -> float | None:
    """The mean of what the driver has sampled, else its latest value."""
    percents = [percent for _, percent in samples or ()]
    return sum(percents) / len(percents) if percents else latest


# ---- Devices.


class _Device:
    """One device, and its state between two readings."""

    def __init__(self, gpu: Gpu, handle: Any, clock: SampleClock) -> None:
        self.gpu = gpu
        self.handle = handle
        self._recent: list[tuple[float, float]] = []
        self.slow_seconds = float("-inf")
        self.slow_figures: dict[str, Any] = {}
        """Fields of GpuReading that are not read every time."""
        self.sample_us = -1
        self.clock = clock
        self.is_clock_set_back = False
        self.period, self.named_period = SamplePeriod(), SamplePeriod()
        """How often the driver samples the device, and its processes."""
        self.samples: SampleWindow | None = None
        self.is_forgetful = False
        """Whether the driver keeps only the newest sample of each process, and the job has some here."""
        self.collected: list[tuple[float, list[tuple[int, int, int]]]] = []
        """Samples since the last reading, and when the driver was asked for them."""
        self.has_named: set[bool] = set()
        """Whether a sample has named a process that the device lists: one of MPS, or any other."""
        self.others_us = -1
        """The newest sample of its processes that was searched for others than those of the job."""
        self.mps_pids: frozenset[int] = frozenset()
        """Clients of MPS, which work through a server, also those that have ended."""
        self.blind_seconds = float("inf")
        self.gpu_instance: int | None = None
        """That it is a part of."""
        self.part: tuple[Any, int] | None = None
        """The whole device and its instance of which this is one, if nothing else is a part of that."""
        self.meter: ActivityMeter | TrafficMeter | None = None
        self.measured = Measured()
        """The last answer of its meter."""
        self.busy_samples: tuple[tuple[float, float], ...] | None = None
        self.has_accounting = False
        self.accounted_before: frozenset[int] = frozenset()
        self.job_pids: set[int] = set()

    def find_recent_busy(
        self, samples: Sequence[tuple[float, float]] | None, latest: float | None, at_seconds: float
    ) -> float | None:
        """Its mean over the time that is shown of its processes; `samples` are those since the last reading."""
        since = at_seconds - WINDOW_US / 1e6
        self._recent = [sample for sample in (*self._recent, *(samples or ())) if sample[0] > since]
        return _average(self._recent, latest)

    @property
    def is_instance(self) -> bool:
        return self.gpu.parent_uuid is not None

    def find_newest_us(self, window: SampleWindow) -> int:
        """The newest sample of its processes that is known."""
        return max([window.newest_us, *(at_us for _, some in self.collected for _, at_us, _ in some)])


class NvmlSource:
    """Every NVIDIA device that can be opened. Each call is guarded on its own."""

    # Without samples, utilization is that of the driver's latest period, which is no shorter.
    poll_seconds = 0.1

    def __init__(self, pynvml: Any, now: Callable[[], float], count: int) -> None:
        self._nvml = pynvml
        self._now = now
        self._opened_seconds = time.time()
        errors = (pynvml.NVMLError, UnicodeDecodeError)
        self._guard = Guard(now, errors, self._explain)
        self.reasons: Mapping[tuple[str, str], str] = self._guard.reasons
        self.kinds: Mapping[tuple[str, str], str] = self._guard.kinds
        self._labels: dict[str, str] = {}
        self._driver = self._guard.ask("", "driver", pynvml.nvmlSystemGetDriverVersion) or ""
        self._lists = DriverLists(pynvml, self._driver)
        self._reads_reserve: bool | None = None
        self._namespace = NamespaceCheck()
        self._owners = Owners(sees_everybody=not self._namespace.is_in_a_container)
        self._wholes: dict[int, Any] = {}
        """The handles of whole devices, by index."""
        self.unopened: tuple[Gpu, ...] = ()
        self._devices = self._open_all(count)
        self.gpus = tuple(device.gpu for device in self._devices)
        self._faults: dict[int, FaultWatch] = {}
        """Of whole devices, by index; nobody listens until a job is tracked."""
        self._faults_seconds = float("-inf")
        self._is_last = False
        self._layout = self._list_layout(count)
        self._layout_due_seconds = now() + _LAYOUT_SECONDS
        self.is_outdated = False
        if not count:
            self._guard.say("", "devices", _NO_DEVICE)
        for device in self._devices:
            if not device.gpu.is_split:
                self._open_accounting(device)
                self._open_meter(device)

    def read(self, pids: frozenset[int] | None) -> GpuReadings:
        """Read every device, and what these processes use of it."""
        from ..processes import exists

        at = self._now()
        devices: list[GpuReading] = []
        processes: list[GpuProcessReading] = []
        high_waters: list[GpuHighWater] = []
        if pids is not None:
            self._owners.update(pids, at)
        if at >= self._layout_due_seconds or self._is_last:
            self._layout_due_seconds = at + _LAYOUT_SECONDS
            self._look_for_new_devices()
        # A job can use the instances of a split device only; what is left of the whole one is for those who look at everything.
        present = [
            device
            for device in self._devices
            if device.gpu.uuid not in self._guard.lost and not (device.gpu.is_split and pids is not None)
        ]
        lists = {device.gpu.uuid: self._read_processes(device) for device in present}
        namespace, was_foreign = self._namespace, self._namespace.shows_foreign_pids
        namespace.take(
            {pid for listed in lists.values() for pid in listed or ()},
            pids,
            at,
            lambda pid: self._owners.own(pid, at),
        )
        if namespace.shows_foreign_pids != was_foreign:
            self._note_namespace(namespace.shows_foreign_pids)
        for device in present:
            uuid = device.gpu.uuid
            is_slow_turn = at - device.slow_seconds >= _SLOW_SECONDS
            if is_slow_turn:
                device.slow_seconds = at
                device.slow_figures = self._read_slow(device)
            activity_seconds = self._read_activity(device, at)
            rates = self._read_utilization(device)
            listed = None if namespace.shows_foreign_pids or namespace.has_strangers else lists[uuid]
            if listed is not None and not namespace.is_list_trusted and not any(lists.values()):
                listed = self._doubt_empty_list(device, is_busy=bool(rates[0]))
            everybody = frozenset(listed or ())  # the dead among them, too
            listed_bytes = None if listed is None else add_sizes(used for used, _ in listed.values())
            if listed is not None and pids is not None:
                # One that has just ended may still be listed, and still be among those of the job.
                listed = {
                    pid: entry for pid, entry in listed.items() if exists(pid) and self._owners.own(pid, at)
                }
                device.job_pids.update(listed)
            asked = self._now()
            named = None if listed is None else self._read_process_samples(device)
            samples = self._read_samples(device)
            collected, device.collected = device.collected, []
            if named is not None and device.is_clock_set_back:
                named, collected = self._read_process_samples(device), []
            shares = None
            has_others = True
            if named is not None:
                all_named = [sample for _, some in (*collected, (asked, named)) for sample in some]
                there = everybody | {pid for pid, at_us, _ in all_named if at_us > device.others_us}
                device.others_us = max([device.others_us, *(at_us for _, at_us, _ in all_named)])
                has_others = any(pid not in device.job_pids and exists(pid) for pid in there)
                device.is_forgetful = samples is not None and bool(listed)
                earlier = [self._find_shares(device, some, at) for at, some in collected]
                shares = self._find_shares(
                    device, named, asked, has_ticks=samples is not None, is_job=pids is not None
                )
                shares = shares and shares._replace(earlier=tuple(filter(None, earlier)))
            busy = _average(samples, rates[0])
            is_busy = bool(rates[0] or busy) or (
                shares is not None
                and any(share for one in (*shares.earlier, shares) for _, share in one.instants)
            )
            is_blind = shares is not None and is_busy and self._is_blind(device, at, everybody)
            if is_blind:
                # Where the device is sampled, what comes before the first name is known as soon as there is one,
                # unless it is that of a server.
                is_early = samples is not None and at - device.blind_seconds <= _BLIND_SECONDS
                is_early &= device.job_pids.isdisjoint(device.mps_pids)
                shares = shares if is_early else None
            percents: Mapping[int, float | None] = {}
            if device.samples and shares is not None and not is_blind:
                named_percents = device.samples.find_percents(listed or ())
                percents = limit_percents(named_percents, device.find_recent_busy(samples, busy, at))
            if pids is not None and any(used is None for used, _ in (listed or {}).values()):
                text = (
                    f"{self._labels[uuid]} lists processes of the job without their memory (for MIG instances it "
                    "requires root, and WSL does not report it): what they hold meanwhile is not known."
                )
                self._guard.say(uuid, "process_used_bytes", text)
            processes += [
                GpuProcessReading._make((uuid, pid, used, percents.get(pid), kind))
                for pid, (used, kind) in (listed or {}).items()
            ]
            if device.has_accounting and (is_slow_turn or self._is_last) and pids is not None:
                high_waters += self._read_accounting(device, pids)
            reading = self._read_device(device, rates, samples, shares)
            devices.append(
                reading._replace(
                    lists_processes=listed is not None,
                    has_lost_list=lists[uuid] is None,
                    listed_bytes=listed_bytes,
                    **device.measured.activity._asdict(),
                    activity_seconds=activity_seconds,
                    traffic=device.measured.traffic if activity_seconds else Traffic(),
                    has_others=has_others,
                )
            )
        return GpuReadings(
            at,
            tuple(devices),
            tuple(processes),
            tuple(high_waters),
            faults=() if pids is None else tuple(self._take_faults(at)),
        )

    def collect(self) -> None:
        """Fetch samples of processes where the driver keeps only the newest, which costs a small part of a reading."""
        for device in self._devices:
            if device.samples is not None and device.is_forgetful and device.gpu.uuid not in self._guard.lost:
                asked = self._now()
                samples = self._ask_for_process_samples(device, device.find_newest_us(device.samples))
                device.collected.append((asked, samples or []))

    def expect_end(self) -> None:
        """Read counters once more; a memory error may be why the job has just ended."""
        self._faults_seconds = float("-inf")
        self._is_last = True

    def read_details(self, names: Collection[str]) -> Mapping[str, Mapping[str, float | str]]:
        """Performance state, fan, limits..."""
        from .nvml_details import read_details

        if PROBE in names:
            for device in self._devices:
                self._probe(device)
        return {device.gpu.uuid: read_details(self._nvml, device.handle, names) for device in self._devices}

    def take_notes(self) -> tuple[str, ...]:
        """Sentences for the user since the last call."""
        return self._guard.take_notes()

    def close(self) -> None:
        """Close the driver."""
        for device in self._devices:
            if device.meter is not None:
                device.meter.close()
        for watch in self._faults.values():
            watch.close()
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError:
            pass  # already closed

    # ---- Opening.

    def _open_all(self, count: int) -> list[_Device]:
        devices: list[_Device] = []
        for index in range(count):
            label = name_unopened(index)
            self._labels[label] = label
            handle = self._guard.ask(label, "device", self._nvml.nvmlDeviceGetHandleByIndex, index)
            if handle is None:
                # One that is denied, or that the driver does not support, is none that a job could use.
                if self._guard.kinds[label, "device"] in (LOST, TROUBLE):
                    self.unopened += (Gpu(index, label, "", None, "nvidia", NAME, driver=self._driver),)
                continue
            whole = self._open(index, handle, label, None)
            if not self._guard.lost.isdisjoint((label, whole.uuid)):
                self.unopened += (whole._replace(uuid=label) if label in self._guard.lost else whole,)
                continue
            self._wholes[index] = handle
            instances = self._open_instances(index, handle, whole.uuid)
            whole = whole._replace(is_split=bool(instances))
            devices += [_Device(whole, handle, self._start_clock()), *instances]
        return devices

    def _list_layout(self, count: int) -> set[tuple[int, int | None]]:
        """All devices by index, with the numbers of their MIG instances."""
        instances = {
            (index, number)
            for index, handle in self._wholes.items()
            for number, _ in self._find_instances(handle)
        }
        return {(index, None) for index in range(count)} | instances

    def _look_for_new_devices(self) -> None:
        try:
            count = self._nvml.nvmlDeviceGetCount()
        except self._nvml.NVMLError:
            return
        self.is_outdated = not self._list_layout(count) <= self._layout

    def _start_clock(self) -> SampleClock:
        """Most drivers date samples by the wall clock."""
        return SampleClock(self._now(), time.time() * 1e6)

    def _open(self, index: int, handle: Any, label: str, parent_uuid: str | None) -> Gpu:
        nvml = self._nvml
        uuid = self._guard.ask(label, "UUID", nvml.nvmlDeviceGetUUID, handle) or label
        self._labels[uuid] = label
        name = self._guard.ask(uuid, "name", nvml.nvmlDeviceGetName, handle) or "NVIDIA GPU"
        memory = self._guard.ask(uuid, "memory_bytes", nvml.nvmlDeviceGetMemoryInfo, handle)
        bus_id = ""
        if parent_uuid is None:
            address = self._guard.ask(uuid, "bus", read_bus_id, nvml, handle)
            bus_id = "" if address is None else parse_bus_id(_text(address))
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
        limits = {}
        for figure, call in self._list_limits_of(handle).items():
            try:
                limits[figure] = float(call())
            except self._nvml.NVMLError:
                continue
        return limits

    def _list_limits_of(self, handle: Any) -> dict[str, Callable[[], float]]:
        nvml = self._nvml
        return {
            "power_limit_watts": lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000,
            "top_sm_clock_mhz": lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM),
            "slowdown_celsius": lambda: nvml.nvmlDeviceGetTemperatureThreshold(
                handle, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
            ),
        }

    def _open_instances(self, index: int, handle: Any, parent_uuid: str) -> list[_Device]:
        """The instances of a device in MIG mode."""
        nvml = self._nvml
        devices: list[_Device] = []
        # Instances for computing may share one of the GPU, with its memory and its counters.
        owners: dict[int, _Device] = {}
        for number, instance in self._find_instances(handle):
            gpu = self._open(index, instance, f"GPU {index}:{number}", parent_uuid)._replace(instance=number)
            part = self._guard.ask(gpu.uuid, "GPU instance", nvml.nvmlDeviceGetGpuInstanceId, instance)
            gpu = gpu._replace(old_uuid=self._find_old_uuid(gpu, part, instance))
            owner = owners.get(part)
            if owner is not None:
                owner.part, gpu = None, gpu._replace(shares_memory_with=owner.gpu.uuid)
            devices.append(_Device(gpu, instance, self._start_clock()))
            devices[-1].gpu_instance = part
            if owner is None and part is not None:
                owners[part], devices[-1].part = devices[-1], (handle, part)
        return devices

    def _find_old_uuid(self, gpu: Gpu, part: int | None, instance: Any) -> str:
        try:
            number = self._nvml.nvmlDeviceGetComputeInstanceId(instance)
        except self._nvml.NVMLError:
            return ""  # it can be named by its UUID
        return "" if part is None else f"MIG-{gpu.parent_uuid}/{part}/{number}"

    def _find_instances(self, handle: Any) -> Iterator[tuple[int, Any]]:
        """The MIG instances of a device, by number."""
        nvml = self._nvml
        try:
            is_split, _ = nvml.nvmlDeviceGetMigMode(handle)
            most = nvml.nvmlDeviceGetMaxMigDeviceCount(handle) if is_split else 0
        except nvml.NVMLError:
            return  # MIG is not supported
        for number in range(most):
            try:
                yield number, nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
            except nvml.NVMLError:
                continue  # there is no instance with this number

    def _open_accounting(self, device: _Device) -> None:
        """The driver's accounting of processes: used if it is on, never switched on."""
        nvml = self._nvml
        try:
            if nvml.nvmlDeviceGetAccountingMode(device.handle):
                device.accounted_before = frozenset(nvml.nvmlDeviceGetAccountingPids(device.handle))
                device.has_accounting = True
        except nvml.NVMLError:
            return  # not supported by most devices

    def _open_meter(self, device: _Device) -> None:
        """What a device cannot measure is not worth a note: most cannot."""
        nvml, uuid = self._nvml, device.gpu.uuid
        whole, part = device.part or (device.handle, None)
        if device.is_instance and part is None:
            return
        if not can_measure(nvml, whole):
            if part is None:
                device.meter = self._open_traffic_meter(device)
            return

        def take_sample(sample: Any) -> None:
            if part is None:
                nvml.nvmlGpmSampleGet(whole, sample)
            else:
                nvml.nvmlGpmMigSampleGet(whole, part, sample)

        device.meter = self._guard.ask(uuid, "sm_percent", ActivityMeter, nvml, take_sample)

    def _open_traffic_meter(self, device: _Device) -> TrafficMeter | None:
        try:
            meter = TrafficMeter(self._nvml, device.handle)
        except self._nvml.NVMLError:
            return None
        return None if meter.is_empty else meter

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
        if not is_mps and not any(map(exists, listed)):
            return False  # there is nobody to name
        where = "in a container, or " if self._namespace.is_in_a_container else ""
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

    def _take_faults(self, at_seconds: float) -> Iterator[GpuFault]:
        """Those of a whole device are of each of its instances."""
        is_slow_turn = at_seconds - self._faults_seconds >= _SLOW_SECONDS
        if is_slow_turn:
            self._faults_seconds = at_seconds
        for index, handle in self._wholes.items():
            watch = self._faults.get(index)
            if watch is None:
                watch = self._faults[index] = FaultWatch(self._nvml, handle)
            for kind, number, instance in watch.take(counts_memory_errors=is_slow_turn):
                for device in self._devices:
                    is_there = instance is None or device.gpu_instance in (None, instance)
                    if device.gpu.ordinal == index and not device.gpu.is_split and is_there:
                        yield GpuFault(device.gpu.uuid, kind, number, self._now())

    def _read_device(
        self,
        device: _Device,
        rates: tuple[float | None, float | None],
        samples: tuple[tuple[float, float], ...] | None,
        shares: GpuShares | None,
    ) -> GpuReading:
        guard, uuid, handle = self._guard, device.gpu.uuid, device.handle
        used, reserved = guard.ask(uuid, "used_bytes", self._read_memory, handle) or (None, None)
        busy, memory_busy = _average(samples, rates[0]), rates[1]
        energy = None
        if not device.is_instance:
            energy = guard.ask(uuid, "energy_joules", self._nvml.nvmlDeviceGetTotalEnergyConsumption, handle)
        energy_at_seconds = self._now()
        figures = device.slow_figures
        if energy is None and not device.is_instance:  # then it is the sum of its power over time
            figures = {**figures, "power_watts": self._read_power(device)}
        return GpuReading(
            uuid,
            used,
            busy,
            max((percent for _, percent in samples or ()), default=busy),
            reserved,
            memory_busy,
            energy_joules=None if energy is None else energy / 1000,
            energy_at_seconds=energy_at_seconds,
            samples=samples,
            measures_processes=shares is not None,
            shares=shares,
            **figures,
        )

    def _read_memory(self, handle: Any) -> tuple[int, int | None] | None:
        """Used and reserved bytes, None of a device without any. Old drivers include their reserve in the used bytes."""
        nvml = self._nvml
        if self._reads_reserve is not False:
            try:
                memory = nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2)
            except nvml.NVMLError as error:
                # What has once worked is there: without it, the reserve would count as used.
                if self._reads_reserve or not self._is_missing(error):
                    raise
            else:
                self._reads_reserve = True
                return (int(memory.used), int(memory.reserved)) if memory.total else None
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        if self._reads_reserve is None:
            self._reads_reserve = False
            text = (
                "Memory in use includes the NVIDIA driver's own reserve, which this driver does not report."
            )
            self._guard.say("", "reserved_bytes", text)
        return (int(memory.used), None) if memory.total else None

    def _read_utilization(self, device: _Device) -> tuple[float | None, float | None]:
        """The latest value, and that of memory."""
        if device.is_instance or device.gpu.is_split:
            # The driver itself reports it for devices that are not split only.
            return device.measured.busy_percent, None
        rates = self._guard.ask(
            device.gpu.uuid, "utilization_percent", self._nvml.nvmlDeviceGetUtilizationRates, device.handle
        )
        return (None, None) if rates is None else (float(rates.gpu), float(rates.memory))

    def _read_samples(self, device: _Device) -> tuple[tuple[float, float], ...] | None:
        """Utilization that the driver has sampled since the last reading; None if it keeps no samples."""
        if device.is_instance or device.gpu.is_split:
            return device.busy_samples
        since, is_first = max(0, device.sample_us), device.sample_us < 0
        try:
            fresh = [
                sample
                for sample in self._lists.utilization_samples(device.handle, since)
                if sample[0] > since and not device.clock.is_old(sample[0])
            ]
            if not fresh and since and device.clock.is_silent(self._now()):
                kept = self._lists.utilization_samples(device.handle, 0)
                new = device.clock.find_new(at_us for at_us, _ in kept)
                fresh = [sample for sample in kept if sample[0] in new]
        except self._nvml.NVMLError:
            return None
        now, stamps = self._now(), [at_us for at_us, _ in fresh]
        device.clock.take(stamps, now)
        device.is_clock_set_back = False
        if stamps:
            device.period.take(stamps)
            device.sample_us = max(stamps)
            device.is_clock_set_back = bool(
                device.samples and device.samples.newest_us > device.sample_us + WINDOW_US
            )
            if device.samples and device.is_clock_set_back:
                device.samples.newest_us = max(stamps) if is_first else min(stamps) - 1
        device.sample_us = max(0, device.sample_us)
        if device.clock.is_silent(now):
            return None
        valid = ((device.clock.date(at_us), percent) for at_us, percent in sorted(fresh) if percent <= 100)
        return () if is_first else tuple(valid)

    def _probe(self, device: _Device) -> None:
        """Find out why what is read besides the usual figures may be missing; a device need not have it."""
        if device.is_instance or device.gpu.is_split:
            return
        nvml, handle, uuid = self._nvml, device.handle, device.gpu.uuid

        def listen() -> None:
            events = nvml.nvmlEventSetCreate()
            try:
                nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, events)
            finally:
                nvml.nvmlEventSetFree(events)

        def account() -> None:
            if nvml.nvmlDeviceGetAccountingMode(handle):
                nvml.nvmlDeviceGetAccountingPids(handle)

        def measure() -> None:
            if nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
                sample = nvml.nvmlGpmSampleAlloc()
                try:
                    nvml.nvmlGpmSampleGet(handle, sample)
                finally:
                    nvml.nvmlGpmSampleFree(sample)

        calls: dict[str, Callable[[], object]] = {
            "memory_errors": lambda: nvml.nvmlDeviceGetTotalEccErrors(
                handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
            ),
            "faults": listen,
            "activity": measure,
            "traffic": lambda: TrafficMeter(nvml, handle),
            "samples": lambda: self._lists.utilization_samples(handle, 0),
            "instances": lambda: nvml.nvmlDeviceGetMigMode(handle),
            "accounting": account,
            **self._list_limits_of(handle),
        }
        for what, call in calls.items():
            try:
                call()
            except nvml.NVMLError as error:
                failure = self._explain(error, uuid, what)
                if failure.kind != UNSUPPORTED:
                    self._guard.reasons.setdefault((uuid, what), failure.text)
                    self._guard.kinds.setdefault((uuid, what), failure.kind)

    def _read_slow(self, device: _Device) -> dict[str, Any]:
        if device.is_instance:
            return {}  # the driver reports them for the whole device only
        nvml = self._nvml
        calls = {
            "temperature_celsius": (nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
            "sm_clock_mhz": (nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
            "memory_clock_mhz": (nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM),
            "limits": (self._read_limits,),
        }
        power = self._read_power(device)
        slow = {
            figure: self._guard.ask(device.gpu.uuid, figure, call, device.handle, *arguments)
            for figure, (call, *arguments) in calls.items()
        }
        return {"power_watts": power, **slow}

    def _read_power(self, device: _Device) -> float | None:
        milliwatts = self._guard.ask(
            device.gpu.uuid, "power_watts", self._nvml.nvmlDeviceGetPowerUsage, device.handle
        )
        return None if milliwatts is None else milliwatts / 1000

    def _read_activity(self, device: _Device, at_seconds: float) -> float:
        """The seconds of which its means are new; 0 if they are the same as before, or none is known."""
        meter, seconds = device.meter, 0.0
        if meter is None:
            return seconds
        if meter.is_due(at_seconds, is_last=self._is_last):
            answer = self._guard.ask(device.gpu.uuid, meter.figure, meter.read, at_seconds)
            device.measured = answer or Measured()
            seconds = device.measured.seconds
        busy = device.measured.busy_percent
        device.busy_samples = None if busy is None else ((at_seconds, busy),) if seconds else ()
        return seconds

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
        if device.gpu.is_split:
            return {}  # they are listed by its instances
        guard, uuid = self._guard, device.gpu.uuid
        lists = []
        for kind, word, what in _LISTS:
            entries = guard.ask(uuid, what, self._lists.processes, kind, device.handle)
            is_optional = what != PROCESS_LISTS[0] and guard.kinds.get((uuid, what)) == UNSUPPORTED
            if entries is None and not is_optional:
                return None
            if kind == "MPSCompute":
                device.mps_pids |= {pid for pid, _ in entries or ()}
            lists.append((word, entries or ()))
        return merge_processes(lists)

    def _note_namespace(self, is_foreign: bool) -> None:
        for device in self._devices:
            self._unmark(device, "lists_processes")
            if is_foreign:
                self._mark(device, "lists_processes", HOST_PIDS)

    def _read_process_samples(self, device: _Device) -> list[tuple[int, int, int]] | None:
        """The driver's samples of processes since the last reading. None if the device does not report them."""
        if device.is_instance or device.gpu.is_split:
            return None
        if device.samples is None:
            # The driver keeps ten seconds.
            device.samples = SampleWindow(device.clock.stamp(self._now()) - WINDOW_US)
        samples = self._ask_for_process_samples(device, device.find_newest_us(device.samples))
        if samples is None:
            device.samples = None
        elif not samples and device.sample_us <= 0 and device.clock.is_silent(self._now()):
            kept = self._ask_for_process_samples(device, 0) or []
            new = device.clock.find_new(at_us for _, at_us, _ in kept)
            if new:
                device.samples.newest_us = min(new) - 1
            return [sample for sample in kept if sample[1] in new]
        return samples

    def _ask_for_process_samples(self, device: _Device, since_us: int) -> list[tuple[int, int, int]] | None:
        call, figure = self._lists.process_samples, "utilization_of_processes"
        samples: list[tuple[int, int, int]] | None = self._guard.ask(
            device.gpu.uuid, figure, call, device.handle, since_us
        )
        return samples

    def _find_shares(
        self,
        device: _Device,
        samples: list[tuple[int, int, int]],
        asked_seconds: float,
        *,
        has_ticks: bool = True,
        is_job: bool = True,
    ) -> GpuShares | None:
        """The job's shares since the driver was last asked; without one they are nobody's."""
        window, clock, now = device.samples, device.clock, self._now()
        if window is None:
            return None
        if not has_ticks:
            clock.take([at_us for _, at_us, _ in samples if at_us > window.newest_us], now)
        new = window.take(samples, clock.stamp(now))
        device.named_period.take(new)
        instants = tuple(
            (at, self._find_share(device, named, at))
            for at, named in ((clock.date(at_us), named) for at_us, named in new.items())
            if is_job
        )
        until = max([asked_seconds, *(at for at, _ in instants)])
        device.is_forgetful &= not window.are_complete
        pause = min(device.period.pause_seconds, device.named_period.pause_seconds)
        return GpuShares(
            instants,
            window.are_complete,
            until,
            pause if device.is_forgetful else float("inf"),
            window.names_one,
        )

    def _find_share(
        self, device: _Device, named: Mapping[int, int | None], at_seconds: float
    ) -> float | None:
        period = min(device.period.usual_seconds, device.named_period.usual_seconds)
        owners = ((pid, percent, self._owners.own(pid, at_seconds, period)) for pid, percent in named.items())
        # What a process of ours is there, such as a server of MPS, is known once the device lists it.
        return find_share(
            (percent, is_ours and (pid in device.job_pids or None)) for pid, percent, is_ours in owners
        )

    def _read_accounting(self, device: _Device, pids: frozenset[int]) -> list[GpuHighWater]:
        """Peak memory of each process of the job by the driver's accounting, including those that have ended.

        A process that was accounted before the job began is left out: its peak may be older than the job, or its
        pid may have been reused. So is an account that is older than the process of that pid.
        """
        from ..processes import exists

        peaks: list[tuple[int, int]] = []
        are_all = True
        try:
            accounted = self._nvml.nvmlDeviceGetAccountingPids(device.handle)
        except self._nvml.NVMLError as error:
            self._note_accounting(device, error)
            return []
        for pid in accounted:
            if pid in device.accounted_before:
                continue
            if not (pid in pids or pid in device.job_pids):
                are_all &= exists(pid)  # one that has ended before it was seen may have been the job's
                continue
            try:
                most_bytes, began_us = self._lists.account(device.handle, pid)
            except self._nvml.NVMLError as error:
                are_all = False
                self._note_accounting(device, error)
                continue
            is_ours = began_us / 1e6 >= self._find_begin(pid) - _CLOCK_TOLERANCE_SECONDS
            if is_ours and most_bytes is not None:
                peaks.append((pid, most_bytes))
        return [GpuHighWater(device.gpu.uuid, pid, most_bytes, are_all) for pid, most_bytes in peaks]

    def _note_accounting(self, device: _Device, error: Any) -> None:
        if error.value != self._nvml.NVML_ERROR_NOT_FOUND:  # it was removed to make room
            text = (
                f"{self._labels[device.gpu.uuid]} could not report its accounting of processes: {_sentence(error)} "
                "What was not read by then is sampled."
            )
            self._guard.say(device.gpu.uuid, "accounting", text)

    def _find_begin(self, pid: int) -> float:
        """When a process began, by the wall clock; one that has ended must have begun since the driver was opened."""
        from ..processes import read_start

        start = read_start(pid)
        return self._opened_seconds if start is None else start

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
        figure = _PROBED.get(what) or name_device_figure(what)
        if code in (nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED):
            return Failure(LOST, f"{label} was lost; its figures are missing until it returns.")
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
        if what == "device":
            return Failure(TROUBLE, f"{label} could not be opened: {_sentence(error)}")
        return Failure(TROUBLE, f"{label} could not be read for a while: {_sentence(error)}")


def _sentence(error: Exception) -> str:
    return f"{str(error).rstrip('.')}."


def _text(value: str | bytes) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value
