"""Runs of any kind for tests of findings: what matters is named, the rest is a healthy run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from builders import MB, gpu, header, recording
from gpu_tracker.analysis.findings.finding import Finding
from gpu_tracker.core.model import (
    Allocation,
    Call,
    End,
    Event,
    Gpu,
    GpuCounters,
    GpuPeaks,
    GpuSample,
    MetricRow,
    Parts,
    PeakMoment,
    Peaks,
    RamPeak,
    RecordingData,
    RegionTotals,
    Sample,
    Spread,
    Stalls,
    Totals,
    TreeCounters,
    add_parts,
)
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import Report, build

GB = 1000 * MB
Series = float | Sequence[float] | Callable[[int], float]


class Device:
    """A device of 40 GB on which the job was seen; series are numbers, lists or functions of the interval."""

    def __init__(self, ordinal: int = 0, **fields: Any) -> None:
        self.gpu: Gpu = gpu(ordinal)._replace(**fields.pop("gpu", {}))
        self.busy: Series = fields.pop("busy", 85)
        self.own: Series | None = fields.pop("own", None)
        self.used: Series = fields.pop("used", 30 * GB)
        self.job: Series | None = fields.pop("job", self.used)
        self.watts: Series = fields.pop("watts", 300)
        self.sm: Series | None = fields.pop("sm", None)
        self.has_job: bool = fields.pop("has_job", True)
        self.throttled: dict[str, float] = fields.pop("throttled", {})
        self.celsius: float | None = fields.pop("celsius", None)
        self.known_share: float = fields.pop("known_share", 1.0)
        self.own_share: float = fields.pop("own_share", 1.0)
        assert not fields


def allocation(**fields: Any) -> Allocation:
    """Sixteen cores and 64 GB that Slurm gave, of a machine with 64 cores and 256 GB."""
    defaults: dict[str, Any] = {
        "machine_cores": 64,
        "cores": 16.0,
        "cores_source": "Slurm",
        "machine_ram_bytes": 256 * GB,
        "ram_bytes": 64 * GB,
        "ram_source": "Slurm",
    }
    return Allocation(**{**defaults, **fields})


def made_run(
    *devices: Device,
    n: int = 100,
    step: float = 1.0,
    cores: Series = 14,
    workers_cores: Series = 0,
    machine: Series = 20,
    ram: Series = 50 * GB,
    workers_ram: Series = 0,
    peak: int | None = None,
    threads: Series = 16,
    exit_code: int | None = 0,
    reason: str = "exited",
    waiting: float | None = 0.0,
    counters: TreeCounters = TreeCounters(),  # noqa: B008 - it is immutable
    stalls: Stalls = Stalls(),  # noqa: B008
    virtual: int = 0,
    limit_used: int | None = None,
    given: dict[str, Any] | None = None,
    regions: Sequence[RegionTotals] = (),
    calls: Sequence[Call] = (),
    metrics: Sequence[MetricRow] = (),
    moments: Sequence[PeakMoment] = (),
    events: Sequence[Event] = (),
    **others: Any,
) -> RecordingData:
    """A run of n intervals; sizes are bytes, `cores` those of the main process."""
    main, descendants = _list(cores, n), _list(workers_cores, n)
    own_ram, their_ram = _list(ram, n), _list(workers_ram, n)
    spent = [
        accumulate(value * step for value in values) for values in (main, descendants, _list(machine, n))
    ]
    counted = [_count(device, n, step) for device in devices]
    samples = [
        Sample(
            at_seconds=step * (number + 1),
            readings=3,
            late_seconds=0.0,
            cpu_seconds=add_parts(one, other),
            system_cpu_seconds=all_spent,
            ram_bytes=Parts(
                _flat(own_ram[number]), _flat(their_ram[number]), _flat(own_ram[number] + their_ram[number])
            ),
            system_ram_bytes=100 * GB,
            threads=int(_list(threads, n)[number]),
            processes=2,
            gpus=tuple(_sample(device, n, number) for device in devices),
        )
        for number, (one, other, all_spent) in enumerate(zip(*spent, strict=True))
    ]
    last = samples[-1]
    gpu_peaks = Peaks(gpus=tuple(peaks for _, peaks in counted))  # lines name devices by them
    samples = [sample._replace(peaks=gpu_peaks) for sample in samples]
    most = int(peak if peak is not None else max(a + b for a, b in zip(own_ram, their_ram, strict=True)))
    totals = Totals(
        at_seconds=last.at_seconds,
        cpu_seconds=last.cpu_seconds,
        system_cpu_seconds=last.system_cpu_seconds,
        readings=3 * n,
        gpu_counters=tuple(counters for counters, _ in counted),
        peaks=Peaks(
            ram=Parts(RamPeak(most), RamPeak(), RamPeak(most)),
            system_ram_bytes=100 * GB,
            limit_ram_bytes=limit_used,
            virtual_bytes=virtual,
            processes=2,
            gpus=tuple(peaks for _, peaks in counted),
        ),
        counters=counters._replace(waiting_seconds=waiting),
        stalls=stalls,
    )
    allowed = allocation(**(given or {}))
    head = {"allocation": allowed, "n_expected_cores": allowed.cores, **others.pop("header", {})}
    return recording(
        header=header(**head),
        samples=tuple(samples),
        totals=totals,
        end=End(reason, exit_code, totals, 0.1, 9 * MB),
        events=(*(Event(0.0, "gpu", gpu=device.gpu) for device in devices), *events),
        regions=tuple(regions),
        calls=tuple(calls),
        metrics=tuple(metrics),
        peak_moments=tuple(moments),
        **others,
    )


def lose(run: RecordingData, seconds: float) -> RecordingData:
    """The same run if it had gone on for that long after its sampler was lost."""
    totals = run.totals._replace(at_seconds=run.totals.at_seconds + seconds, unread_seconds=seconds)
    return run._replace(totals=totals, end=End("sampler lost", 0, totals, 0.0, 0))


def judge(run: RecordingData, **keywords: Any) -> Report:
    """The report of a run, with its findings."""
    return build(run, read_columns(run), **keywords)


def find(run: RecordingData, rule: str) -> Finding | None:
    """What a rule says about a run."""
    return next((finding for finding in judge(run).findings if finding.rule == rule), None)


def why_not(run: RecordingData, rule: str) -> str | None:
    """Why a rule did not judge a run."""
    return dict(judge(run).unjudged).get(rule)


def repeat(
    path: tuple[str, ...], lengths: Sequence[float], ram: Sequence[int] | None = None, start: float = 0.0
) -> tuple[RegionTotals, list[Call]]:
    """A region that was entered again and again, without pause: its totals and its calls."""
    starts = [start + sum(lengths[:number]) for number in range(len(lengths))]
    calls = [
        Call(path, 100, number + 1, begin, begin + length, peak_ram_bytes=ram[number] if ram else 10 * MB)
        for number, (begin, length) in enumerate(zip(starts, lengths, strict=True))
    ]
    totals = RegionTotals(
        pid=100,
        path=path,
        calls=len(lengths),
        wall_seconds=sum(lengths),
        shortest_seconds=min(lengths),
        longest_seconds=max(lengths),
        squared_seconds=sum(length * length for length in lengths),
        peak_ram_bytes=10 * MB,
        first_seconds=start,
        last_seconds=start + sum(lengths),
    )
    return totals, calls


def _list(series: Series, n: int) -> list[float]:
    if callable(series):
        return [series(number) for number in range(n)]
    if isinstance(series, (int, float)):
        return [series] * n
    assert len(series) == n
    return list(series)


def _flat(size: float) -> Spread:
    return Spread(size, size, size)


def _sample(device: Device, n: int, number: int) -> GpuSample:
    return GpuSample(
        uuid=device.gpu.uuid,
        used_bytes=int(_list(device.used, n)[number]),
        job_bytes=None if device.job is None else int(_list(device.job, n)[number]),
        utilization_percent=_list(device.busy, n)[number],
        job_percent=None if device.own is None else _list(device.own, n)[number],
        power_watts=_list(device.watts, n)[number],
        sm_percent=None if device.sm is None else _list(device.sm, n)[number],
    )


def _count(device: Device, n: int, step: float) -> tuple[GpuCounters, GpuPeaks]:
    seconds = n * step
    held = None if device.job is None else int(max(_list(device.job, n)))
    return (
        GpuCounters(
            uuid=device.gpu.uuid,
            utilization_percent_seconds=sum(_list(device.busy, n)) * step * device.known_share,
            utilization_seconds=seconds * device.known_share,
            job_percent_seconds=0.0
            if device.own is None
            else sum(_list(device.own, n)) * step * device.own_share,
            job_seconds=0.0 if device.own is None else seconds * device.own_share,
            energy_joules=sum(_list(device.watts, n)) * step,
            energy_seconds=seconds,
            limited_seconds=tuple((reason, share * seconds) for reason, share in device.throttled.items()),
            activity=() if device.sm is None else ((sum(_list(device.sm, n)) * step, seconds),),
        ),
        GpuPeaks(
            uuid=device.gpu.uuid,
            used_bytes=int(max(_list(device.used, n))),
            job_bytes=Parts(held, 0, held),
            utilization_percent=max(_list(device.busy, n)),
            temperature_celsius=device.celsius,
            has_job=device.has_job,
        ),
    )
