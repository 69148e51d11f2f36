"""What a driver reports but no device can do counts as not reported. Pure."""

from __future__ import annotations

from ...core.figures import DEVICE, MOST_BYTES, is_possible, name_device_figure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ...core.model import Gpu, GpuReadings
    from .guard import Guard

# Sizes are rounded, and a reserve may be counted in one and not in the other.
_SLACK = 1.1


def believe(readings: GpuReadings, gpus: Sequence[Gpu], guard: Guard) -> GpuReadings:
    """The readings without what cannot be; each figure of a device is noted once."""
    sizes = {gpu.uuid: _SLACK * gpu.memory_bytes if gpu.memory_bytes else MOST_BYTES for gpu in gpus}
    labels = {gpu.uuid: f"GPU {gpu.ordinal}" for gpu in gpus}

    def check(uuid: str, figure: str, value: float | None) -> bool:
        is_size = figure.endswith("_bytes")
        if value is None or (0 <= value <= sizes[uuid] if is_size else is_possible(figure, value)):
            return True
        text = f"{labels[uuid]} reports an impossible {name_device_figure(figure)} ({value:g}), which is not used."
        guard.say(uuid, f"impossible {figure}", text)
        return False

    devices = []
    for reading in readings.devices:
        wrong: dict[str, Any] = {
            figure.name: None
            for figure in DEVICE
            if not check(reading.uuid, figure.name, getattr(reading, figure.name))
        }
        if "utilization_percent" in wrong:
            wrong["utilization_high_percent"] = None
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
