"""A run that has something of everything: devices, regions, metrics, workers, a peak, findings."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from builders import MB, found, gpu, header, recording, sample
from gpu_tracker.analysis.findings.finding import Finding
from gpu_tracker.core.model import (
    Allocation,
    Busiest,
    Call,
    End,
    Event,
    GpuCounters,
    GpuPeaks,
    GpuSample,
    MetricRow,
    Parts,
    PeakMoment,
    PeakProcess,
    Peaks,
    ProcessTotals,
    RamPeak,
    RecordingData,
    Sample,
    Spread,
    Stalls,
    Totals,
    TreeCounters,
    add_parts,
)
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import Report, build
from recorded import part

GB = 10**9
SECONDS = 11_530.0
SAMPLES = 200
EPOCHS = 11
FINDINGS = (
    Finding(
        "waiting-for-data",
        "serious",
        "likely",
        "34 % of the time went to waiting for the next batch.",
        "Use more workers, or pin_memory=True.",
        evidence=(("share", 0.34),),
    ),
    Finding("gpu-imbalance", "warning", "certain", "GPU 1 does 77 % of the work of GPU 0."),
    Finding("ram-tight", "note", "certain", "RAM peaked at 88 % of 32 GiB."),
)


def _spread(size: float) -> Spread:
    return Spread(0.97 * size, size, 1.02 * size)


def _samples(n_gpus: int) -> tuple[Sample, ...]:
    """Loading, then epochs of work that end with an evaluation on few cores; once much memory."""
    step, main, workers, machine = SECONDS / SAMPLES, 0.0, 0.0, 0.0
    busy = [0.0] * n_gpus
    samples = []
    for number in range(SAMPLES):
        at, phase = step * (number + 1), number % 20 / 20
        cores = 0.5 if number < 7 else 2.0 if phase > 0.85 else 8.0 + phase
        main, workers, machine = (
            main + 0.4 * cores * step,
            workers + 0.6 * cores * step,
            machine + (cores + 9) * step,
        )
        ram = (29.5 if number in (160, 161) else 2 + 8 * min(1, number / 20) + 3 * phase) * GB
        gpus, counters = [], []
        for index in range(n_gpus):
            percent = 0.0 if number < 10 else 12.0 if phase > 0.85 else 92.0 - 21 * min(index, 1)
            busy[index] += percent * step
            held = int((17 + phase) * GB) if number >= 10 else 0
            gpus.append(
                GpuSample(f"GPU-{index}", held + GB, held, percent, percent, 60 + 2 * percent, 40, 1410)
            )
            counters.append(
                GpuCounters(
                    f"GPU-{index}", busy[index], at, busy[index], at, 250 * at, at, (("power", 0.12 * at),)
                )
            )
        samples.append(
            sample(
                at,
                cpu_seconds=add_parts(main, workers),
                system_cpu_seconds=machine,
                ram_bytes=Parts(_spread(0.36 * ram), _spread(0.64 * ram), _spread(ram)),
                system_ram_bytes=int(ram + 9 * GB),
                threads=42,
                processes=9,
                gpus=tuple(gpus),
                gpu_counters=tuple(counters),
                peaks=Peaks(gpus=tuple(GpuPeaks(f"GPU-{index}") for index in range(n_gpus))),
            )
        )
    return tuple(samples)


def make_rich(n_gpus: int = 2, names: str = "", **fields: Any) -> RecordingData:
    """The recording; `names` is in front of everything that has a name from outside."""
    samples = _samples(n_gpus)
    held: Parts[int | None] = Parts(17_900 * MB, 0, 17_900 * MB)
    peaks = Peaks(
        ram=Parts(
            RamPeak(10_900 * MB, 10_900 * MB, 0, "exact"),
            RamPeak(19_500 * MB, 19_500 * MB, 0),
            RamPeak(30_100 * MB, 30_100 * MB, 0),
        ),
        ram_ceiling_bytes=33 * GB,
        system_ram_bytes=44 * GB,
        threads=Parts(12, 30, 42),
        processes=9,
        busiest=Parts(Busiest(40, 10), Busiest(80, 10), Busiest(121, 10)),
        gpu_bytes=Parts(*(n_gpus * (size or 0) for size in held)),
        system_gpu_bytes=19 * GB * n_gpus,
        gpus=tuple(
            GpuPeaks(f"GPU-{index}", 19 * GB, held, utilization_percent=98.0, power_watts=305.0, has_job=True)
            for index in range(n_gpus)
        ),
    )
    last = samples[-1]
    summed = Totals(
        SECONDS,
        last.cpu_seconds,
        last.system_cpu_seconds,
        6000,
        last.gpu_counters,
        peaks,
        TreeCounters(212 * GB, 3_100 * MB, 120, 900_000, 1400.0),
        Stalls(cpu_seconds=300.0, memory_seconds=20.0, io_seconds=1400.0, throttled_seconds=900.0),
    )
    epoch, worker = f"{names}epoch", f"{names}pt_data_worker"
    starts = [400 + 990.0 * number for number in range(EPOCHS)]
    made: dict[str, Any] = {
        "header": header(
            command=("python", f"{names}train.py", "--epochs", "11"),
            host=f"{names}node7",
            allocation=Allocation(64, 16.0, "Slurm", 264 * GB, 32 * 2**30, "Slurm"),
            n_expected_cores=16.0,
        ),
        "samples": samples,
        "events": (
            *(found(gpu(index)._replace(name=f"{names}NVIDIA A100")) for index in range(n_gpus)),
            Event(3.0, "note", f"{names}The driver did not answer for 12 s."),
        ),
        "totals": summed,
        "end": End("exited", 0, summed, 3.52, 11 * MB),
        "regions": (
            part(
                100,
                *[970.0] * EPOCHS,
                path=(epoch,),
                first_seconds=400.0,
                cpu_seconds=60_000.0,
                peak_ram_bytes=10_900 * MB,
            ),
            part(100, *[70.0] * EPOCHS, path=(epoch, "eval"), first_seconds=1300.0, cpu_seconds=1500.0),
            part(100, 380.0, path=("load data",), first_seconds=10.0, cpu_seconds=300.0),
        ),
        "calls": (
            *(
                Call((epoch,), 100, number + 1, start, start + 970, 100, 10_900 * MB)
                for number, start in enumerate(starts)
            ),
            *(
                Call((epoch, "eval"), 100, number + 1, start + 900, start + 970, 100)
                for number, start in enumerate(starts)
            ),
            Call(("load data",), 100, 1, 10.0, 390.0, 100),
        ),
        "metrics": tuple(
            MetricRow(400 + 50.0 * number, {f"{names}loss": 2.5 / (1 + number / 20)}, number, 100)
            for number in range(200)
        ),
        "peak_moments": (
            PeakMoment(
                "ram",
                9300.0,
                30_100 * MB,
                9,
                (
                    PeakProcess(100, "python", 10_900 * MB),
                    *(PeakProcess(200 + n, worker, 2400 * MB) for n in range(7)),
                ),
                ((epoch, "eval"),),
            ),
        ),
        "processes": (
            ProcessTotals(100, 1, f"{names}python", 0.0, SECONDS, 9000.0, 10_900 * MB),
            *(ProcessTotals(200 + n, 100, worker, 300.0, SECONDS - 60, 2000.0, 2400 * MB) for n in range(8)),
        ),
    }
    return recording(**{**made, **fields})


@lru_cache
def report_rich(n_gpus: int = 2, names: str = "") -> Report:
    """Its report, with three findings."""
    made = make_rich(n_gpus, names)
    findings = (FINDINGS[0]._replace(sentence=f"{names}{FINDINGS[0].sentence}"), *FINDINGS[1:])
    return build(made, read_columns(made))._replace(findings=findings)
