"""Recordings on disk, for tests of what reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from builders import MB, alone, found, gpu, gpu_totals, header, recording, sample, together, totals
from gpu_tracker.analysis.energy import CarbonFactor
from gpu_tracker.analysis.job import Combined, combine
from gpu_tracker.core.model import (
    Call,
    End,
    Event,
    FrameworkMemory,
    GpuSample,
    Header,
    MetricRow,
    Parts,
    PeakMoment,
    PeakProcess,
    Peaks,
    ProcessTotals,
    RamPeak,
    RecordingData,
    RegionGaps,
    RegionTotals,
    Sample,
    Spread,
    Stalls,
    TreeCounters,
    add_parts,
)
from gpu_tracker.recording.create import create
from gpu_tracker.recording.sampled import read_held
from gpu_tracker.recording.writer import Writer

REGIONS = (
    RegionTotals(
        pid=100,
        path=("epoch",),
        calls=3,
        wall_seconds=2.5,
        shortest_seconds=0.5,
        longest_seconds=1.0,
        squared_seconds=2.25,
        own_wall_seconds=1.5,
        cpu_seconds=2.0,
        own_cpu_seconds=1.0,
        entry_ram_bytes=5 * MB,
        exit_ram_bytes=6 * MB,
        peak_ram_bytes=7 * MB,
        peak_ram_basis="exact",
    ),
    RegionTotals(
        pid=100,
        path=("epoch", "a/b"),
        calls=30,
        open_calls=1,
        gpu_bytes=0,
        energy_joules=12.5,
        first_seconds=0.0,
    ),
)
CALLS = (
    Call(("epoch",), 100, 1, 0.25, 0.75, 100, 6 * MB, "sampled", 17),
    Call(("epoch",), 100, 2, 0.75, 1.75, 103, 7 * MB, "exact", 2**32 - 1),
    Call(("epoch", "a/b"), 100, 0, 1.875, None),
)
GAPS = RegionGaps(1, 2, 1)
METRICS = (
    MetricRow(0.5, {"loss": 1.5, "lr": 1e-30}, 1, 100),
    MetricRow(1.5, {"loss": 0.0}, None, 101),
    MetricRow(2.0, {}),
)
FRAMEWORKS = (
    FrameworkMemory(100, "PyTorch", "cuda:0", "GPU-0", 9.5, 400 * MB, 900 * MB, "exact", 1000 * MB, 1100 * MB, 1, 0,
                    800 * MB, 1000 * MB, 1400 * MB, 200 * MB, 38_400 * MB),
    FrameworkMemory(101, "JAX", "cuda:1", "", 9.5, 0, 5, "sampled"),
)  # fmt: skip
PEAK_MOMENTS = (
    PeakMoment(
        "ram",
        1.5,
        500 * MB,
        2,
        (PeakProcess(100, "python", 300 * MB), PeakProcess(101, 'a "b"\n', 200 * MB)),
        (("epoch", "a/b"),),
    ),
    PeakMoment("GPU-1", 2.0, 3000 * MB, 1, (PeakProcess(100, "python", 3000 * MB),)),
)
PROCESSES = (
    ProcessTotals(100, 1, "python", 0.0, 10.0, 9.5, 500 * MB),
    ProcessTotals(101, 100, 'a "b"\n', 1.0, 2.0, 0.0, 0),
)


class Made:
    """A recording that is being written to a file."""

    def __init__(self, path: Path, first: Header | None = None) -> None:
        self.path = path
        self._fd = os.open(create(str(path), ("job",), 1), os.O_APPEND | os.O_WRONLY)
        self.writer = Writer(self._fd)
        self.writer.write_header(first or header())

    def __enter__(self) -> Writer:
        return self.writer

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def interval(at: float, ram: int, **fields: Any) -> Sample:
    """An interval that ended then, with that many MB, the most so far."""
    size = ram * MB
    held = Spread(size, size, size)
    defaults: dict[str, Any] = {
        "readings": 1,
        "ram_bytes": Parts(held, Spread(0, 0, 0), held),
        "peaks": Peaks(ram=together(RamPeak(size, size, 0)), system_ram_bytes=2000 * MB),
    }
    return sample(at, **{**defaults, **fields})


def plain_sample(at: float, peak: int = 100) -> Sample:
    """An interval of a job without GPUs that ended with that peak."""
    held = RamPeak(peak * MB, peak * MB, 0)
    return sample(at, peaks=Peaks(ram=alone(held)))


def gpu_sample(at: float) -> Sample:
    """An interval of a job with children on the second of two devices."""
    counters, peak = gpu_totals("GPU-1")
    return sample(
        at,
        readings=4,
        late_seconds=0.001,
        cpu_seconds=add_parts(at, at / 2),
        system_cpu_seconds=at * 3,
        ram_bytes=Parts(Spread(1, 2.5, 4), Spread(0, 1, 3), Spread(1, 3.5, 6)),
        system_ram_bytes=8 * MB,
        threads=5,
        processes=2,
        gpus=(
            GpuSample(
                "GPU-1", used_bytes=3000 * MB, job_bytes=0, utilization_percent=50.25, power_watts=250.5
            ),
        ),
        gpu_counters=(counters,),
        peaks=Peaks(ram=together(RamPeak(6, 6, 0)), gpus=(peak,)),
        counters=TreeCounters(4096, 8192, 3, 1000, 0.25),
        stalls=Stalls(cpu_seconds=1.5, io_seconds=0.5),
    )


def run(seconds: float = 10.0, ram: int = 500, exit_code: int | None = 0, **fields: Any) -> RecordingData:
    """A finished run of that many seconds on one core, with a peak of that many MB."""
    peak = RamPeak(ram * MB, ram * MB, 0, "exact")
    summed = fields.pop("totals", None) or totals(
        at_seconds=seconds,
        cpu_seconds=add_parts(seconds, 0.0),
        peaks=totals().peaks._replace(ram=alone(peak)),
    )
    return recording(
        **{
            "header": header(**fields.pop("header", {})),
            "totals": summed,
            "end": End("exited", exit_code, summed, 0.02, 9 * MB),
            **fields,
        }
    )


def lost_run(seconds: float = 10.0, ram: int = 500, **fields: Any) -> RecordingData:
    """A run whose sampler was lost after a quarter of that time."""
    whole = run(seconds, ram, **fields)
    peaks = whole.totals.peaks._replace(ram=alone(RamPeak(ram * MB, ram * MB, 0, "sampled")))
    summed = whole.totals._replace(unread_seconds=0.75 * seconds, peaks=peaks)
    return whole._replace(totals=summed, end=End("sampler lost", 0, summed, 0.0, 0))


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
) -> RecordingData:
    """A run that began that many seconds after noon and held that much all the time."""
    return run(
        seconds,
        ram,
        header={"started_at": f"2026-01-31T12:00:{start:02d}.000+00:00", "host": host, "pid": pid},
        **{"samples": (interval(seconds, ram),), **fields},
    )


def on_gpu(pid: int, host: str = "node1", *, has_job: bool = True, job: int | None = 2000) -> RecordingData:
    """A rank that uses memory of one device."""
    counters, peaks = gpu_totals()
    size = None if job is None else job * MB
    peaks = peaks._replace(has_job=has_job, job_bytes=peaks.job_bytes._replace(combined=size))
    summed = totals(
        gpu_counters=(counters,),
        peaks=totals().peaks._replace(gpus=(peaks,), gpu_bytes=Parts(0, 0, 2000 * MB)),
    )
    held = GpuSample("GPU-0", 3000 * MB, size)
    return rank(
        pid=pid,
        host=host,
        events=(found(gpu()._replace(is_visible=has_job)), found(gpu(1)._replace(is_visible=False))),
        totals=summed,
        samples=(interval(10.0, 500, gpus=(held,)),),
    )


def join(*ranks: RecordingData, factor: CarbonFactor | None = None) -> Combined:
    """Combined, with the names 0, 1, 2."""
    return combine([(str(number), recording) for number, recording in enumerate(ranks)], read_held, factor)


def write(path: Path, shown: RecordingData) -> Path:
    """Put a recording into a file, line by line."""
    with Made(path, shown.header) as writer:
        for event in shown.events:
            writer.write_event(event)
        for sample in shown.samples:
            writer.write_sample(sample)
        for region in shown.regions:
            writer.write_region(region)
        for call in shown.calls:
            writer.write_calls(call.path, [call])
        if shown.metrics:
            writer.write_metrics(shown.metrics)
        for process in shown.processes:
            writer.write_process(process)
        for memory in shown.frameworks:
            writer.write_framework(memory)
        for moment in shown.peak_moments:
            writer.write_peak_moment(moment)
        if shown.end is not None:
            writer.write_end(shown.end)
    return path


def make_plain(path: Path) -> Path:
    """A job that ran for ten seconds."""
    with Made(path) as writer:
        for at in (1.0, 2.0, 3.0):
            writer.write_sample(plain_sample(at, 100 * int(at)))
        writer.write_event(Event(3.0, "note", "Said once."))
        writer.write_end(End("exited", 0, totals(), 0.1, 9))
    return path


def make_full(path: Path) -> Path:
    """A job with two GPUs, regions, metrics and processes."""
    counters, peak = gpu_totals("GPU-1")
    with Made(path) as writer:
        writer.write_event(found(gpu()))
        writer.write_event(found(gpu(1, None)))
        writer.write_region(RegionTotals(100, ("epoch",)))
        writer.write_sample(plain_sample(0.5))
        writer.write_sample(gpu_sample(1.0))
        for region in REGIONS:
            writer.write_region(region)
        writer.write_metrics(METRICS[:1])
        writer.write_metrics(METRICS[1:])
        writer.write_sample(gpu_sample(2.0))
        writer.write_gaps(GAPS._replace(long_names=0))
        writer.write_gaps(GAPS)
        writer.write_calls(("epoch",), [CALLS[0], Call(("epoch",), 100, 0, 0.75, None)])
        writer.write_calls(("epoch",), [CALLS[1]])
        writer.write_calls(("epoch", "a/b"), [CALLS[2]])
        for process in PROCESSES:
            writer.write_process(process)
        for memory in (FRAMEWORKS[0]._replace(in_use_bytes=1), *FRAMEWORKS):
            writer.write_framework(memory)
        for moment in (PEAK_MOMENTS[0]._replace(size_bytes=1), *PEAK_MOMENTS):
            writer.write_peak_moment(moment)
        summed = totals(
            gpu_counters=(counters,),
            peaks=totals().peaks._replace(gpus=(peak,)),
            counters=TreeCounters(4096, 8192, 3, 1000, 0.25),
            stalls=Stalls(cpu_seconds=1.5, io_seconds=0.5, throttled_seconds=0.125),
        )
        writer.write_end(End("exited", 1, summed, 0.1, 9))
    return path
