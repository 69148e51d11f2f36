"""An observation as plain lines for a pipe (one per GPU, like `nvidia-smi dmon`) or as one JSON object. Pure."""

from __future__ import annotations

import json

from ..analysis.rates import busy_cores, busy_cores_by_pid, busy_percent
from ..core.moments import write_moment
from ..core.observation import list_notes
from .selection import Selection, select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..core.observation import Device, DeviceProcess, Observation

_MIB = 2**20
_EVERYTHING = Selection()
UNKNOWN = "-"
_COLUMNS = (
    ("time", 19),
    ("gpu", 3),
    ("used_MiB", 8),
    ("total_MiB", 9),
    ("gpu_%", 5),
    ("mem_%", 5),
    ("temp_C", 6),
    ("power_W", 7),
    ("sm_MHz", 6),
    ("procs", 5),
    ("cpu_%", 5),
    ("ram_MiB", 8),
)
# Of a reading: what only totals are made of, and what its device says already.
_LEFT_OUT = ("uuid", "samples", "shares", "has_lost_list", "listed_bytes", "activity_seconds")


def head_line() -> str:
    """The names of the columns, as a comment."""
    return _join(["# time", *(name for name, _ in _COLUMNS[1:])])


def build_lines(
    before: Observation | None, now: Observation, selection: Selection = _EVERYTHING
) -> list[str]:
    """One line per GPU, or one for a machine without GPUs."""
    machine = [format_number(busy_percent(before, now)), format_mib(now.machine.ram_used_bytes)]
    at = write_moment(now.epoch_seconds, "%Y-%m-%dT%H:%M:%S")
    devices = [_device_cells(observed) for observed in select(now, selection)]
    return [_join([at, *cells, *machine]) for cells in devices or [[UNKNOWN] * (len(_COLUMNS) - 3)]]


def build_object(
    before: Observation | None, now: Observation, selection: Selection = _EVERYTHING
) -> dict[str, Any]:
    """Everything by name, in base units; null is not known."""
    cores = busy_cores_by_pid(before, now)
    return {
        "time": write_moment(now.epoch_seconds, "%Y-%m-%dT%H:%M:%S.%f%z"),
        "machine": {**now.machine._asdict(), "busy_cores": busy_cores(before, now)},
        "gpus": [_gpu_object(observed, cores) for observed in select(now, selection)],
        "notes": list(list_notes(now)),
    }


def render_object(value: Mapping[str, Any]) -> str:
    """One line of JSON."""
    return json.dumps(value, separators=(",", ":"))


def _device_cells(observed: Device) -> list[str]:
    gpu, reading = observed.gpu, observed.reading
    return [
        gpu.label,
        format_mib(reading.used_bytes),
        format_mib(gpu.memory_bytes),
        format_number(reading.utilization_percent),
        format_number(reading.memory_utilization_percent),
        format_number(reading.temperature_celsius),
        format_number(reading.power_watts),
        format_number(reading.sm_clock_mhz),
        str(len(observed.processes)) if reading.lists_processes else UNKNOWN,
    ]


def _gpu_object(observed: Device, cores: Mapping[int, float]) -> dict[str, Any]:
    reading = {name: value for name, value in observed.reading._asdict().items() if name not in _LEFT_OUT}
    return {
        **observed.gpu._asdict(),
        "uuid": observed.gpu.known_uuid,
        **reading,
        "free_bytes": observed.memory_free_bytes,
        "processes": [_process_object(process, cores) for process in observed.processes],
        "reasons": dict(observed.reasons),
    }


def _process_object(process: DeviceProcess, cores: Mapping[int, float]) -> dict[str, Any]:
    reading, holder = process.reading, process.holder
    return {
        "pid": reading.pid,
        "user": holder.user,
        "command": holder.command_line,
        "kind": reading.kind,
        "used_bytes": reading.used_bytes,
        "utilization_percent": reading.utilization_percent,
        "rss_bytes": holder.rss_bytes,
        "cpu_seconds": holder.cpu_seconds,
        "busy_cores": cores.get(holder.pid),
    }


def _join(cells: list[str]) -> str:
    padded = [cell.rjust(width) for cell, (_, width) in zip(cells[1:], _COLUMNS[1:], strict=True)]
    return " ".join([cells[0].ljust(_COLUMNS[0][1]), *padded])


def format_mib(count: int | None) -> str:
    """In whole MiB."""
    return UNKNOWN if count is None else str(count // _MIB)


def format_number(value: float | None, unit: str = "") -> str:
    """Rounded."""
    return UNKNOWN if value is None else f"{value:.0f}{unit}"
