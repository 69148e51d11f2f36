"""Memory by the frameworks, split against memory of their processes by the driver. Pure.

The two are read at different times. They are compared only if the framework held the same amount before and after the
driver was read; otherwise the difference would be between two moments.
"""

from __future__ import annotations

import math

from ..core.model import EXACT, SAMPLED, FrameworkMemory, FrameworkReading
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.model import Gpu, GpuReading, GpuReadings

    Key = tuple[int, str, str]


class FrameworkNote(NamedTuple):
    """What one process reported."""

    at_seconds: float
    pid: int
    is_last: bool
    """The process is about to end."""
    readings: tuple[FrameworkReading, ...]


class _Split(NamedTuple):
    """Memory of one device at one moment, by the driver."""

    at_seconds: float
    process_bytes: int
    others_bytes: int | None
    free_bytes: int | None


class _Entry:
    """One framework in one process on one device."""

    def __init__(self, pid: int, reading: FrameworkReading) -> None:
        self.reading = reading
        self.is_alone = False
        self.is_last = False
        self.was_reset = False
        self._unconfirmed: _Split | None = None
        self._before_seconds = self._at_seconds = math.inf  # until the first reading
        self._before = reading
        self._earlier_in_use = reading.earlier_peak_in_use_bytes
        self._earlier_held = reading.earlier_peak_held_bytes
        self.memory = FrameworkMemory(
            pid=pid,
            framework=reading.framework,
            device=reading.device,
            uuid="",
            at_seconds=0.0,
            in_use_bytes=0,
            peak_in_use_bytes=0,
            peak_in_use_basis=SAMPLED,
            held_bytes=reading.held_bytes,
        )

    def take(self, at_seconds: float, reading: FrameworkReading, *, is_last: bool) -> None:
        known, last = self.memory, self.reading
        if reading.peak_in_use_bytes < last.peak_in_use_bytes:
            # The user has reset the framework's peaks: from now on they cover the time since.
            self.was_reset = True
            self._earlier_in_use = self._earlier_held = 0
        self._before_seconds, self._before = self._at_seconds, last
        self._at_seconds = at_seconds
        self.reading, self.is_last = reading, is_last
        is_peak_ours = reading.peak_in_use_bytes > self._earlier_in_use
        peak = max(
            known.peak_in_use_bytes,
            reading.in_use_bytes,
            reading.peak_in_use_bytes if is_peak_ours else 0,
        )
        held = reading.held_bytes
        if held is not None:
            peak_held = reading.peak_held_bytes or 0
            held = max(known.peak_held_bytes or 0, held, peak_held if peak_held > self._earlier_held else 0)
        self.memory = known._replace(
            at_seconds=at_seconds,
            in_use_bytes=reading.in_use_bytes,
            peak_in_use_bytes=peak,
            peak_in_use_basis=EXACT if is_peak_ours and not self.was_reset else SAMPLED,
            held_bytes=reading.held_bytes,
            peak_held_bytes=held,
            flushes=reading.flushes,
            failures=reading.failures,
        )
        if self._unconfirmed is not None and self._is_unchanged():
            self._accept(self._unconfirmed, max(last.in_use_bytes, reading.in_use_bytes))
        self._unconfirmed = None
        if self.memory.split_process_bytes is None:
            self._keep_fullest(reading)

    def take_split(self, split: _Split) -> None:
        """Take a reading of the driver; whether the framework held the same throughout may be known only later."""
        if split.at_seconds >= self._at_seconds:
            if self.is_last:
                self._accept(split, self.reading.in_use_bytes)
            else:
                self._unconfirmed = split
        elif self._before_seconds <= split.at_seconds and self._is_unchanged():
            self._accept(split, max(self._before.in_use_bytes, self.reading.in_use_bytes))

    def _is_unchanged(self) -> bool:
        return self._before.held_bytes == self.reading.held_bytes

    def _keep_fullest(self, reading: FrameworkReading) -> None:
        """Until the driver lists the process: the reading in which the framework held most, the first of equal ones."""
        known = self.memory
        fullest = (known.split_held_bytes or 0, known.split_in_use_bytes or -1)
        if (reading.held_bytes or 0, reading.in_use_bytes) > fullest:
            self.memory = known._replace(
                split_in_use_bytes=reading.in_use_bytes, split_held_bytes=reading.held_bytes
            )

    def _accept(self, split: _Split, in_use_bytes: int) -> None:
        """Keep the fullest moment, the first of equal ones; the cache may be full long after the tensors are gone."""
        held, known = self.reading.held_bytes, self.memory
        fullest = (known.split_process_bytes or 0, known.split_in_use_bytes or 0)
        is_fuller = known.split_process_bytes is None or (split.process_bytes, in_use_bytes) > fullest
        if not is_fuller or split.process_bytes < (held or 0):
            return  # not the peak, or the process is freeing everything
        self.memory = known._replace(
            split_in_use_bytes=in_use_bytes,
            split_held_bytes=held,
            split_process_bytes=split.process_bytes,
            split_others_bytes=split.others_bytes,
            split_free_bytes=split.free_bytes,
        )


def find_device(reading: FrameworkReading, uuids: Iterable[str], used: Iterable[str]) -> str:
    """The one that the framework names, else the only one that its process uses; empty if that is not certain."""
    named = reading.uuid.lower()
    candidates = [uuid for uuid in uuids if named and uuid.lower().endswith(named)] or sorted(used)
    return candidates[0] if len(candidates) == 1 else ""


class FrameworkAccount:
    """All frameworks of the job."""

    def __init__(self) -> None:
        self._gpus: dict[str, Gpu] = {}
        self._entries: dict[Key, _Entry] = {}
        self._uuids_by_pid: dict[int, set[str]] = {}
        self._written: dict[Key, FrameworkMemory] = {}

    def add_gpu(self, gpu: Gpu) -> None:
        """Add a device."""
        self._gpus[gpu.uuid] = gpu
        self._name_devices()

    def take(self, note: FrameworkNote) -> None:
        """Take the report of a process."""
        for reading in note.readings:
            key = (note.pid, reading.framework, reading.device)
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry(note.pid, reading)
            entry.is_alone = len(note.readings) == 1
            entry.take(note.at_seconds, reading, is_last=note.is_last)
        self._name_devices()

    def take_gpus(self, readings: GpuReadings) -> None:
        """Take one reading of the GPUs, with the processes of the job."""
        devices = {device.uuid: device for device in readings.devices}
        for process in readings.processes:
            if process.used_bytes is not None:
                self._uuids_by_pid.setdefault(process.pid, set()).add(process.uuid)
        self._name_devices()
        for process in readings.processes:
            if process.used_bytes is None:
                continue
            split = self._split(readings.at_seconds, process.used_bytes, devices.get(process.uuid))
            for entry in self._entries.values():
                if entry.memory.pid == process.pid and entry.memory.uuid == process.uuid:
                    entry.take_split(split)

    def list_memory(self) -> list[FrameworkMemory]:
        """The memory of each framework, process and device."""
        return [entry.memory for entry in self._entries.values()]

    def take_changed(self) -> list[FrameworkMemory]:
        """Those that have changed since the last call."""
        changed = {
            key: entry.memory
            for key, entry in self._entries.items()
            if self._written.get(key) != entry.memory
        }
        self._written.update(changed)
        return list(changed.values())

    def _name_devices(self) -> None:
        """Find devices for reports that came first: a short job may end before its driver has answered."""
        for entry in self._entries.values():
            if not entry.memory.uuid:
                entry.memory = entry.memory._replace(uuid=self._find_device(entry))

    def _find_device(self, entry: _Entry) -> str:
        only = self._uuids_by_pid.get(entry.memory.pid, ()) if entry.is_alone else ()
        return find_device(entry.reading, self._gpus, only)

    def _split(self, at_seconds: float, process_bytes: int, device: GpuReading | None) -> _Split:
        used = None if device is None else device.used_bytes
        if device is None or used is None:
            return _Split(at_seconds, process_bytes, None, None)
        gpu = self._gpus.get(device.uuid)
        total = None if gpu is None else gpu.memory_bytes
        free = None if total is None else max(0, total - used - (device.reserved_bytes or 0))
        return _Split(at_seconds, process_bytes, max(0, used - process_bytes), free)
