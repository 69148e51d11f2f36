"""Values for tests, with defaults for everything that does not matter."""

from __future__ import annotations

from typing import Any

from gpu_tracker.core.model import (
    Allocation,
    End,
    Event,
    Gpu,
    GpuCounters,
    GpuPeaks,
    GpuProcessReading,
    GpuReading,
    GpuReadings,
    Header,
    MachineReading,
    Parts,
    Peaks,
    ProcessReading,
    RamPeak,
    RecordingData,
    Sample,
    Spread,
    Totals,
    add_parts,
)
from gpu_tracker.reports.contract import View, render

MB = 10**6
ROOT = 100


def process(pid: int = ROOT, parent: int = 1, **fields: Any) -> ProcessReading:
    """One process; `rss` and `file` in MB."""
    rss, file = fields.pop("rss", 10) * MB, fields.pop("file", 0) * MB
    peak = fields.pop("peak", None)
    defaults: dict[str, Any] = {
        "name": "job",
        "is_forked_copy": False,
        "n_threads": 1,
        "cpu_seconds": 0.0,
        "reaped_cpu_seconds": 0.0,
        "peak_rss_bytes": None if peak is None else peak * MB,
        "was_running_at_start": False,
    }
    return ProcessReading(
        pid=pid, parent_pid=parent, rss_bytes=rss, file_bytes=file, **{**defaults, **fields}
    )


def machine(cpu: float = 0.0, ram: int = 1000, limit: int | None = None) -> MachineReading:
    """The machine; memory in MB."""
    return MachineReading(cpu, ram * MB, None if limit is None else limit * MB)


def header(**fields: Any) -> Header:
    """A header of a job on a machine of four cores and 16 GB."""
    defaults: dict[str, Any] = {
        "version": 1,
        "tracker_version": "0.1.0",
        "command": ("python", "train.py"),
        "pid": ROOT,
        "host": "node1",
        "started_at": "2026-01-31T12:00:00.000+00:00",
        "sleep_seconds": 1.0,
        "allocation": Allocation(4, 4.0, "machine", 16_000 * MB, 16_000 * MB, "machine"),
        "source": "procfs",
        "n_expected_cores": 4.0,
    }
    return Header(**{**defaults, **fields})


def alone(peak: RamPeak) -> Parts[RamPeak]:
    """Peaks of a process without descendants."""
    return Parts(peak, RamPeak(), peak)


def together(peak: RamPeak) -> Parts[RamPeak]:
    """Peaks where only the combined one matters."""
    return Parts(RamPeak(), RamPeak(), peak)


def totals(**fields: Any) -> Totals:
    """Ten seconds of a job that used one core and 500 MB."""
    defaults: dict[str, Any] = {
        "at_seconds": 10.0,
        "cpu_seconds": add_parts(10.0, 0.0),
        "readings": 100,
        "peaks": Peaks(
            ram=alone(RamPeak(500 * MB, 490 * MB, 10 * MB, "exact")),
            system_ram_bytes=2000 * MB,
            threads=Parts(3, 0, 3),
            processes=1,
        ),
    }
    return Totals(**{**defaults, **fields})


def sample(at: float, **fields: Any) -> Sample:
    """An interval of ten readings of a job without GPUs that uses one core and five bytes."""
    held = Spread(low=5, mean=5, high=5)
    defaults: dict[str, Any] = {
        "readings": 10,
        "late_seconds": 0.0,
        "cpu_seconds": add_parts(at, 0.0),
        "system_cpu_seconds": at,
        "ram_bytes": Parts(held, Spread(low=0, mean=0, high=0), held),
        "system_ram_bytes": 7,
        "threads": 1,
        "processes": 1,
    }
    return Sample(at_seconds=at, **{**defaults, **fields})


def recording(**fields: Any) -> RecordingData:
    """A finished recording of those ten seconds."""
    summed = fields.pop("totals", totals())
    defaults: dict[str, Any] = {
        "header": header(),
        "samples": (),
        "events": (),
        "end": End("exited", 0, summed, 0.02, 9 * MB),
        "totals": summed,
    }
    return RecordingData(**{**defaults, **fields})


def gpu(ordinal: int = 0, memory: int | None = 40_000) -> Gpu:
    """A device; memory in MB."""
    return Gpu(ordinal, f"GPU-{ordinal}", "Simulated A100", None if memory is None else memory * MB)


def found(device: Gpu) -> Event:
    """The event of a device that was found."""
    return Event(0.0, "gpu", gpu=device)


def gpu_readings(
    at: float, *devices: tuple[str, int | None, float | None], **held: dict[int, int | None]
) -> GpuReadings:
    """Readings: (uuid, used MB, percent) each; `GPU_0={pid: MB}` for the memory of processes."""
    return GpuReadings(
        at,
        tuple(
            GpuReading(uuid, None if used is None else used * MB, percent) for uuid, used, percent in devices
        ),
        tuple(
            GpuProcessReading(name.replace("_", "-"), pid, None if size is None else size * MB)
            for name, processes in held.items()
            for pid, size in processes.items()
        ),
    )


def gpu_totals(uuid: str = "GPU-0") -> tuple[GpuCounters, GpuPeaks]:
    """Half busy for ten seconds, with 3 GB used, 2 of them by the job."""
    return (
        GpuCounters(
            uuid=uuid,
            utilization_percent_seconds=500.0,
            utilization_seconds=10.0,
            job_percent_seconds=400.0,
            job_seconds=10.0,
            energy_joules=2500.0,
            energy_seconds=10.0,
            limited_seconds=(("heat", 1.0),),
        ),
        GpuPeaks(
            uuid=uuid,
            used_bytes=3000 * MB,
            job_bytes=Parts(1500 * MB, 500 * MB, 2000 * MB),
            utilization_percent=90.0,
            grown_bytes=2500 * MB,
            power_watts=300.0,
            temperature_celsius=70.0,
            has_job=True,
        ),
    )


def render_str(document: Any, format_name: str = "text", **view: Any) -> str:
    """A document in a format that is text."""
    text = render(document, format_name, View(**view))
    assert isinstance(text, str)
    return text
