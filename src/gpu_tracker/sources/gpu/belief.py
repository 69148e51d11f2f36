"""What a driver reports but no device can do counts as not reported. Pure."""

from __future__ import annotations

from ...core.figures import DEVICE, MOST_BYTES, is_possible, name_device_figure
from .guard import TROUBLE, Notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from ...core.model import Gpu, GpuReadings
    from .. import GpuSource

# Sizes are rounded, and a reserve may be counted in one and not in the other.
_SLACK = 1.1


class BelievedSource:
    """A source, without what cannot be. The devices of every vendor are read through this."""

    def __init__(self, source: GpuSource) -> None:
        self._source = source
        self._notes = Notes()
        self.gpus = tuple(believe_size(gpu, self._notes) for gpu in source.gpus)
        self.unopened, self.is_outdated = source.unopened, source.is_outdated
        self._refusals: dict[tuple[str, str], str] = {}
        self._explain()
        self.poll_seconds = source.poll_seconds

    def read(self, pids: frozenset[int] | None) -> GpuReadings:
        """Read every device, and what these processes use of it."""
        self._refusals.clear()
        readings = believe(self._source.read(pids), self.gpus, self._notes, self._refusals)
        self.is_outdated = self._source.is_outdated
        self._explain()
        return readings

    def _explain(self) -> None:
        """Why figures are missing: for reasons of the source, or because they cannot be."""
        self.reasons: Mapping[tuple[str, str], str] = {**self._source.reasons, **self._refusals}
        self.kinds: Mapping[tuple[str, str], str] = {
            **self._source.kinds,
            **dict.fromkeys(self._refusals, TROUBLE),
        }

    def collect(self) -> None:
        """Fetch samples for the next reading."""
        self._source.collect()

    def expect_end(self) -> None:
        """The next reading is the last."""
        self._source.expect_end()

    def read_details(self, names: Collection[str]) -> Mapping[str, Mapping[str, float | str]]:
        """Less common figures, as they are reported."""
        details = self._source.read_details(names)
        self._explain()
        return details

    def take_notes(self) -> tuple[str, ...]:
        """Sentences for the user since the last call."""
        return (*self._source.take_notes(), *self._notes.take_notes())

    def close(self) -> None:
        """Release all resources."""
        self._source.close()


def believe_size(gpu: Gpu, notes: Notes) -> Gpu:
    """The device without a memory size that cannot be."""
    if gpu.memory_bytes is None or 0 < gpu.memory_bytes <= MOST_BYTES:
        return gpu
    notes.say(gpu.uuid, "memory_bytes", _describe(gpu, "memory_bytes", gpu.memory_bytes))
    return gpu._replace(memory_bytes=None)


def believe(
    readings: GpuReadings, gpus: Sequence[Gpu], notes: Notes, refusals: dict[tuple[str, str], str]
) -> GpuReadings:
    """The readings without what cannot be; each figure of a device is noted once, and why it is refused this time."""
    by_uuid = {gpu.uuid: gpu for gpu in gpus}

    def check(uuid: str, figure: str, value: float | None) -> bool:
        gpu = by_uuid[uuid]
        most_bytes = _SLACK * gpu.memory_bytes if gpu.memory_bytes else MOST_BYTES
        is_size = figure.endswith("_bytes")
        if value is None or (0 <= value <= most_bytes if is_size else is_possible(figure, value)):
            return True
        text = refusals.setdefault((uuid, figure), _describe(gpu, figure, value))
        notes.say(uuid, f"impossible {figure}", text)
        return False

    devices = []
    for reading in readings.devices:
        wrong: dict[str, Any] = {
            figure.name: None
            for figure in DEVICE
            if not check(reading.uuid, figure.name, getattr(reading, figure.name))
        }
        if "utilization_percent" in wrong:
            wrong.update(utilization_high_percent=None, samples=None)
        devices.append(reading._replace(**wrong) if wrong else reading)
    processes = tuple(
        process
        if check(process.uuid, "process_used_bytes", process.used_bytes)
        else process._replace(used_bytes=None)
        for process in readings.processes
    )
    high_waters = tuple(
        peak for peak in readings.high_waters if check(peak.uuid, "process_used_bytes", peak.used_bytes)
    )
    return readings._replace(devices=tuple(devices), processes=processes, high_waters=high_waters)


def _describe(gpu: Gpu, figure: str, value: float) -> str:
    return (
        f"GPU {gpu.place} reports an impossible {name_device_figure(figure)} ({value:g}), which is not used."
    )
