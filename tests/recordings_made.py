"""Recordings on disk, for tests: written as the sampler writes them."""

from __future__ import annotations

import os
from pathlib import Path

from builders import MB, found, gpu, gpu_totals, header, totals
from gpu_tracker.core.model import (
    End,
    Event,
    FrameworkMemory,
    GpuSample,
    Header,
    MetricRow,
    Peaks,
    ProcessTotals,
    RamPeak,
    RegionTotals,
    Sample,
    Spread,
)
from gpu_tracker.recording.writer import Writer

FLAT = Spread(5, 5, 5)
NONE = Spread(0, 0, 0)
REGIONS = (
    RegionTotals(100, ("epoch",), 3, 0, 2.5, 0.5, 1.0, 2.25, 1.5, 2.0, 1.0, 5 * MB, 6 * MB, 7 * MB, "exact"),
    RegionTotals(100, ("epoch", "a/b"), 30, 1, gpu_bytes=0, energy_joules=12.5, first_seconds=0.0),
)
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
PROCESSES = (
    ProcessTotals(100, 1, "python", 0.0, 10.0, 9.5, 500 * MB),
    ProcessTotals(101, 100, 'a "b"\n', 1.0, 2.0, 0.0, 0),
)


class Made:
    """A recording that is being written to a file."""

    def __init__(self, path: Path, first: Header | None = None) -> None:
        self.path = path
        self._fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_WRONLY, 0o600)
        self.writer = Writer(self._fd)
        self.writer.write_header(first or header())

    def __enter__(self) -> Writer:
        return self.writer

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def plain_sample(at: float, peak: int = 100) -> Sample:
    """A window of a job without GPUs that ended with that peak."""
    peaks = Peaks(main_ram=RamPeak(peak * MB, peak * MB, 0), combined_ram=RamPeak(peak * MB, peak * MB, 0))
    return Sample(at, 10, 0.0, at, 0.0, at, FLAT, NONE, FLAT, 7, 1, 1, (), (), peaks)


def gpu_sample(at: float) -> Sample:
    """A window of a job with children on the second of two devices."""
    counters, peak = gpu_totals("GPU-1")
    return Sample(
        at, 4, 0.001, at, at / 2, at * 3, Spread(1, 2.5, 4), Spread(0, 1, 3), Spread(1, 3.5, 6), 8 * MB, 5, 2,
        (GpuSample("GPU-1", 3000 * MB, 0, 50.25, None, 250.5),), (counters,),
        Peaks(combined_ram=RamPeak(6, 6, 0), gpus=(peak,)),
    )  # fmt: skip


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
        for process in PROCESSES:
            writer.write_process(process)
        for memory in (FRAMEWORKS[0]._replace(in_use_bytes=1), *FRAMEWORKS):
            writer.write_framework(memory)
        summed = totals(gpu_counters=(counters,), peaks=totals().peaks._replace(gpus=(peak,)))
        writer.write_end(End("exited", 1, summed, 0.1, 9))
    return path
