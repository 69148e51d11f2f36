"""Observations for tests, with defaults for everything that does not matter."""

from __future__ import annotations

from typing import Any

from gpu_tracker.core.model import Gpu, GpuProcessReading, GpuReading, GpuReadings
from gpu_tracker.core.observation import Holder, MachineState, Observation, VendorState

MIB = 2**20
GIB = 2**30


def gpu(ordinal: int = 0, **fields: Any) -> Gpu:
    """A device of 40 GiB."""
    defaults: dict[str, Any] = {"uuid": f"GPU-{ordinal}", "name": "NVIDIA A100", "memory_bytes": 40 * GIB}
    return Gpu(ordinal, **{**defaults, **fields})


def reading(ordinal: int = 0, **fields: Any) -> GpuReading:
    """A device that is half busy."""
    defaults: dict[str, Any] = {
        "used_bytes": 10 * GIB,
        "utilization_percent": 55.0,
        "reserved_bytes": GIB,
        "memory_utilization_percent": 12.0,
        "power_watts": 250.4,
        "energy_joules": 1000.0,
        "temperature_celsius": 61.0,
        "sm_clock_mhz": 1410.0,
        "memory_clock_mhz": 1215.0,
        "limits": (),
        "measures_processes": True,
    }
    return GpuReading(f"GPU-{ordinal}", **{**defaults, **fields})


def process(ordinal: int = 0, pid: int = 4242, mib: int | None = 1234, percent: float | None = 50.0) -> Any:
    """A process on a device."""
    return GpuProcessReading(f"GPU-{ordinal}", pid, None if mib is None else mib * MIB, percent)


def vendor(*readings: GpuReading, processes: tuple[Any, ...] = (), **fields: Any) -> VendorState:
    """NVIDIA, with a device for every reading."""
    defaults: dict[str, Any] = {
        "vendor": "nvidia",
        "source": "nvml",
        "gpus": tuple(gpu(int(one.uuid.removeprefix("GPU-"))) for one in readings),
        "readings": GpuReadings(1.0, readings, processes),
    }
    return VendorState(**{**defaults, **fields})


def observation(*vendors: VendorState, at: float = 100.0, **fields: Any) -> Observation:
    """A machine of 8 cores and 64 GB."""
    defaults: dict[str, Any] = {
        "machine": MachineState(8, 64 * 10**9, 16 * 10**9, 4 * at),
        "holders": (Holder(4242, "anna", ("python", "train.py"), 2 * 10**9, 2 * at),),
    }
    return Observation(at, 1_700_000_000.25 + at, vendors=vendors, **{**defaults, **fields})
