"""Recordings on disk, for tests of what reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from builders import MB, found, gpu, gpu_totals, header, recording, totals
from gpu_tracker.analysis.job import Combined, combine
from gpu_tracker.core.model import End, GpuSample, Peaks, RamPeak, Recording, RegionTotals, Sample, Spread
from gpu_tracker.recording.writer import Writer, create

NOBODY = Spread(0, 0, 0)


def window(at: float, ram: int, **fields: Any) -> Sample:
    """A window that ended then, with so many MB held in it and never more before."""
    size = ram * MB
    held = Spread(size, size, size)
    peaks = fields.pop("peaks", Peaks(combined_ram=RamPeak(size, size, 0), system_ram_bytes=2000 * MB))
    return Sample(at, 1, 0.0, at, 0.0, at, held, NOBODY, held, 7, 1, 1, (), (), peaks)._replace(**fields)


def run(seconds: float = 10.0, ram: int = 500, exit_code: int | None = 0, **fields: Any) -> Recording:
    """A finished run of so many seconds on one core, with so many MB at most."""
    peak = RamPeak(ram * MB, ram * MB, 0, "exact")
    summed = fields.pop("totals", None) or totals(
        at_seconds=seconds,
        main_cpu_seconds=seconds,
        peaks=totals().peaks._replace(main_ram=peak, combined_ram=peak),
    )
    return recording(
        **{
            "header": header(**fields.pop("header", {})),
            "totals": summed,
            "end": End("exited", exit_code, summed, 0.02, 9 * MB),
            **fields,
        }
    )


def part(pid: int = 1, *times: float, path: tuple[str, ...] = ("step",), **fields: Any) -> RegionTotals:
    """One process's calls of a region."""
    defaults: dict[str, Any] = {
        "calls": len(times),
        "wall_seconds": sum(times),
        "shortest_seconds": min(times, default=None),
        "longest_seconds": max(times, default=None),
        "squared_seconds": sum(time * time for time in times),
    }
    return RegionTotals(pid, path, **{**defaults, **fields})


def rank(
    start: int = 0, ram: int = 500, seconds: float = 10.0, host: str = "node1", pid: int = 1, **fields: Any
) -> Recording:
    """A run that began so many seconds after noon and held so much all the time."""
    return run(
        seconds,
        ram,
        header={"started_at": f"2026-01-31T12:00:{start:02d}+0000", "host": host, "pid": pid},
        **{"samples": (window(seconds, ram),), **fields},
    )


def on_gpu(pid: int, host: str = "node1", *, has_job: bool = True, job: int | None = 2000) -> Recording:
    """A rank that sees one device and holds something there."""
    counters, peaks = gpu_totals()
    peaks = peaks._replace(has_job=has_job, combined_bytes=None if job is None else job * MB)
    summed = totals(
        gpu_counters=(counters,), peaks=totals().peaks._replace(gpus=(peaks,), combined_gpu_bytes=2000 * MB)
    )
    held = GpuSample("GPU-0", 3000 * MB, None if job is None else job * MB)
    return rank(
        pid=pid,
        host=host,
        events=(found(gpu()._replace(is_visible=has_job)), found(gpu(1)._replace(is_visible=False))),
        totals=summed,
        samples=(window(10.0, 500, gpus=(held,)),),
    )


def join(*ranks: Recording) -> Combined:
    """They are called 0, 1, 2."""
    return combine([(str(number), recording) for number, recording in enumerate(ranks)])


def write(path: Path, shown: Recording) -> Path:
    """Put a recording into a file, line by line."""
    fd = os.open(create(str(path), ("job",), 1), os.O_APPEND | os.O_WRONLY)
    writer = Writer(fd)
    writer.write_header(shown.header)
    for mark in shown.events:
        writer.write_event(mark)
    for sample in shown.samples:
        writer.write_sample(sample)
    for region in shown.regions:
        writer.write_region(region)
    if shown.metrics:
        writer.write_metrics(shown.metrics)
    for process in shown.processes:
        writer.write_process(process)
    if shown.end is not None:
        writer.write_end(shown.end)
    os.close(fd)
    return path
