"""How much to ask for the next time: memory, cores, GPUs and time, from what runs really used. Pure.

Memory is what a limit counts: anonymous, shared and kernel memory, but not the page cache, which the kernel gives back.
What a run that failed, was killed or has no end used is a lower bound.
"""

from __future__ import annotations

import math

from ..core.model import ESTIMATE, RAM, UNKNOWN
from ..core.values import NamedTuple
from .measures import find_failure
from .summary import summarize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..core.columns import SampleColumns
    from ..core.model import PeakMoment, RecordingData
    from .summary import Summary

# How sure the advice is.
LOW, MEDIUM, HIGH = "low", "medium", "high"

_KIB, _MIB, _GIB = 2**10, 2**20, 2**30
_MARGIN = 0.2
# No run needs more of anything.
_MOST = 1e20
_MARGIN_OF_MANY = 0.15
_MANY_RUNS = 5
_TIME_MARGIN = 0.3
_LEAST_BYTES_AFTER_OOM = 100 * 10**6
_USUAL_SHARE = 0.95
# Of fewer intervals, 95 % of the time needs as much as the busiest one.
_MANY_INTERVALS = 20
# Fewer cores than the intervals needed slow the job by less than this part of a core.
_SPARE_CORES = 0.1
# What the kernel keeps for a process and for a thread, where no limit counts it.
_KERNEL_BYTES_PER_PROCESS = 128 * _KIB
_KERNEL_BYTES_PER_THREAD = 32 * _KIB
_STARVED_SHARE = 0.25
_THROTTLED_SHARE = 0.05
_SPIKE_FACTOR = 1.5
_SPIKE_SHARE = 0.01
_NEAR_PEAK = 0.8
_SAME_NEED = 1.1
_NOTABLE_SHARE = 0.4
# A size is a multiple of the largest step that is at most an eighth of it.
_STEPS_PER_SIZE = 8
_BYTE_STEPS = (
    *(step * _KIB for step in (1, 5, 10, 50, 100)),
    *(step * _MIB for step in (1, 5, 10, 50, 100)),
    *(step * _GIB for step in (1, 5, 10, 100, 1000)),
)
_SECOND_STEPS = (1, 5, 10, 30, 60, 300, 900)


class Spike(NamedTuple):
    """A peak that is far above what the job needs for nearly all of the time."""

    peak_bytes: int
    usual_bytes: int
    """What 95 % of the time needs no more than."""
    saved_bytes: int
    """How much less could be asked for without it."""
    at_seconds: float | None
    """This and the following: unknown if only the kernel's high-water mark has seen the peak."""
    process: str
    """The name of the process that held most."""
    region: tuple[str, ...]


class Need(NamedTuple):
    """What one run used. None is not known."""

    seconds: float
    failure: str = ""
    """Why it is no successful run."""
    ran_out_of_memory: bool = False
    limit_bytes: int | None = None
    """The memory limit that it ran under."""
    memory_bytes: int | None = None
    outside_bytes: int = 0
    """The part of it that is not resident in the job's processes."""
    cores: float | None = None
    has_starved: bool = False
    """Whether it would have used more cores, had there been more for it."""
    gpus: int | None = None
    gpu_vendor: str = ""
    gpu_bytes: int | None = None
    """On the device where it held most."""
    spike: Spike | None = None
    job: str | None = None
    rank: int | None = None
    """Of a process in a parallel job."""
    has_samples: bool = True
    """Whether cores are those of its intervals, not of the busiest one."""


class Amount(NamedTuple):
    """How much of one thing to ask for."""

    advised: int
    used: float
    """The most that a run used."""
    least_used: float
    """By the run that used least."""
    is_at_least: bool = False
    """Whether the true need is not known, and may be larger."""


class Sizing(NamedTuple):
    """What to ask for the next time. None is not known."""

    runs: int
    finished_runs: int
    margin_percent: float
    """Of memory."""
    confidence: str
    memory_bytes: Amount | None
    cores: Amount | None
    gpus: Amount | None
    gpu_memory_bytes: Amount | None
    """Per device."""
    time_seconds: Amount | None
    gpu_vendor: str = ""
    spike: Spike | None = None
    notes: tuple[str, ...] = ()


# ---- What one run needed.


def needs_samples(recording: RecordingData) -> bool:
    """Whether the samples of a recording say more than its totals."""
    return recording.totals.at_seconds >= _MANY_INTERVALS * recording.header.sleep_seconds


def find_need(recording: RecordingData, columns: SampleColumns | None = None) -> Need:
    """What a recording says; `columns` are its samples, without which the busiest interval counts for cores."""
    summary, peaks = summarize(recording), recording.totals.peaks
    tracker_bytes = recording.end.tracker_ram_bytes if recording.end else 0
    memory, outside = _find_memory(summary, peaks.limit_held_bytes, tracker_bytes)
    cores = _find_cores(summary, columns, recording.header.allocation.cores)
    used = [gpu for gpu in summary.gpus if gpu.job_bytes.combined]
    return Need(
        seconds=summary.seconds,
        failure=find_failure(recording.end),
        ran_out_of_memory=any(event.kind == "oom" for event in recording.events),
        limit_bytes=None if summary.ram_source == "machine" else summary.ram_capacity_bytes,
        memory_bytes=memory,
        outside_bytes=outside,
        cores=cores,
        has_starved=_has_starved(summary, cores),
        gpus=_count_gpus(summary),
        gpu_vendor=used[0].gpu.vendor if used else "",
        gpu_bytes=max((gpu.job_bytes.combined or 0 for gpu in used), default=None),
        spike=None if columns is None else _find_spike(summary, columns, recording.peak_moments, memory),
        job=recording.header.identity.job,
        rank=recording.header.identity.rank,
        has_samples=columns is not None or not needs_samples(recording),
    )


def _find_memory(summary: Summary, held_bytes: int | None, tracker_bytes: int) -> tuple[int | None, int]:
    """What a limit would count, the tracker included, and how much of it is not resident in the job's processes."""
    resident = summary.ram.combined
    if held_bytes:
        in_processes = max(summary.ram_ceiling_bytes or 0, resident.total_bytes)
        return held_bytes, max(0, held_bytes - in_processes)
    if resident.basis == UNKNOWN:
        return None, 0
    kernel = (
        summary.processes * _KERNEL_BYTES_PER_PROCESS + summary.threads.combined * _KERNEL_BYTES_PER_THREAD
    )
    return resident.total_bytes + kernel + tracker_bytes, 0


def _find_cores(summary: Summary, columns: SampleColumns | None, allowed: float) -> float | None:
    most = summary.cpu.combined.max_percent
    busiest = None if most is None else most / 100
    usual = None
    if columns is not None:
        usual = _percentile(columns.cpu_cores.combined, columns.start_seconds, columns.end_seconds)
    cores = busiest if usual is None else usual
    # Time of ended children arrives all at once.
    return None if cores is None or not math.isfinite(cores) else min(cores, max(allowed, 0.0))


def _percentile(values: Sequence[float], starts: Sequence[float], ends: Sequence[float]) -> float | None:
    """What the value does not exceed for 95 % of the time; None if nothing is known."""
    rows = sorted(
        (value, end - start)
        for value, start, end in zip(values, starts, ends, strict=True)
        if math.isfinite(value) and end > start
    )
    left = _USUAL_SHARE * sum(seconds for _, seconds in rows)
    for value, seconds in rows:
        left -= seconds
        if left <= 0:
            return value
    return rows[-1][0] if rows else None  # rounding


def _has_starved(summary: Summary, cores: float | None) -> bool:
    """Whether it was stopped by a quota, or would have used more cores than are advised, had it not waited."""
    waited, throttled = summary.counters.waiting_seconds or 0.0, summary.stalls.throttled_seconds or 0.0
    if throttled > _THROTTLED_SHARE * summary.seconds > 0:
        return True
    if cores is None or summary.seconds <= 0 or waited <= _STARVED_SHARE * summary.cpu.combined.seconds:
        return False
    wanted = cores + waited / summary.seconds
    return math.isfinite(wanted) and _size_cores(wanted, 0) > _size_cores(cores, 0)


def _count_gpus(summary: Summary) -> int | None:
    """The devices that the job really used."""
    if not summary.gpus or any(_is_use_unknown(gpu.basis, gpu.is_expected) for gpu in summary.gpus):
        return None
    return sum(bool(gpu.job_bytes.combined) for gpu in summary.gpus)


def _is_use_unknown(basis: str, is_expected: bool) -> bool:
    return is_expected and basis in (UNKNOWN, ESTIMATE)


def _find_spike(
    summary: Summary, columns: SampleColumns, moments: Sequence[PeakMoment], memory_bytes: int | None
) -> Spike | None:
    """Memory that is needed for less than a hundredth of the time."""
    ram, peak = columns.ram_bytes.combined, summary.ram.combined.total_bytes
    usual = _percentile(ram.mean, columns.start_seconds, columns.end_seconds)
    if memory_bytes is None or not usual or peak < _SPIKE_FACTOR * usual:
        return None
    if _measure_near_peak(columns, peak) > _SPIKE_SHARE * summary.seconds:
        return None
    moment = next(
        (one for one in moments if one.subject == RAM and one.size_bytes >= _NEAR_PEAK * peak), None
    )
    without = max(0, memory_bytes - peak + round(usual))
    return Spike(
        peak_bytes=peak,
        usual_bytes=round(usual),
        saved_bytes=max(0, _size_memory(memory_bytes, _MARGIN) - _size_memory(without, _MARGIN)),
        at_seconds=moment.at_seconds if moment else None,
        process=moment.processes[0].name if moment and moment.processes else "",
        region=moment.regions[0] if moment and moment.regions else (),
    )


def _measure_near_peak(columns: SampleColumns, peak_bytes: int) -> float:
    """For how many seconds the memory was near its peak."""
    ram = columns.ram_bytes.combined
    rows = zip(columns.start_seconds, columns.end_seconds, ram.low, ram.mean, ram.high, strict=True)
    return sum(
        (end - start) * _share_above(low, mean, high)
        for start, end, low, mean, high in rows
        if end > start and high >= _NEAR_PEAK * peak_bytes
    )


def _share_above(low: float, mean: float, high: float) -> float:
    """The share of an interval at its highest value, if it is at its lowest for the rest."""
    return (mean - low) / (high - low) if high > low and mean >= low else 1.0


# ---- What to ask for.


def advise(needs: Sequence[Need]) -> Sizing:
    """What to ask for, given one or more runs of the same job."""
    finished = [need for need in needs if not need.failure]
    margin = _MARGIN_OF_MANY if len(finished) >= _MANY_RUNS else _MARGIN
    memory = _choose(needs, lambda need: need.memory_bytes, lambda need, _: _size_memory_of(need, margin))
    gpus = _choose(needs, lambda need: need.gpus, lambda _, used: int(used))
    n_gpus = gpus.advised if gpus else 0
    cores = _choose(needs, lambda need: need.cores, lambda _, used: _size_cores(used, n_gpus))
    if cores and any(need.has_starved for need in needs):
        cores = cores._replace(is_at_least=True)
    largest = max(needs, key=lambda need: need.memory_bytes or 0, default=None)
    return Sizing(
        runs=len(needs),
        finished_runs=len(finished),
        margin_percent=100 * margin,
        confidence=_judge(finished, memory),
        memory_bytes=memory,
        cores=cores,
        gpus=gpus,
        gpu_memory_bytes=_choose(
            needs, lambda need: need.gpu_bytes, lambda _, used: _size_memory(int(used), margin)
        ),
        time_seconds=_choose(
            needs, lambda need: need.seconds if need.seconds > 0 else None, lambda _, used: _size_time(used)
        ),
        gpu_vendor=next((need.gpu_vendor for need in needs if need.gpu_vendor), ""),
        spike=largest.spike if largest else None,
        notes=tuple(_explain(needs, largest)),
    )


def _choose(
    needs: Sequence[Need],
    get: Callable[[Need], float | None],
    size: Callable[[Need, float], int],
) -> Amount | None:
    """The largest of all runs. It is a lower bound if a run that did not finish needs more than those that did."""
    known = [(need, used) for need in needs if (used := get(need)) is not None and used < _MOST]
    if not known:
        return None
    sizes = [(size(need, used), bool(need.failure) or need.ran_out_of_memory) for need, used in known]
    advised = max(sized for sized, _ in sizes)
    is_certain = any(sized == advised and not has_failed for sized, has_failed in sizes)
    every = [used for _, used in known]
    return Amount(advised, max(every), min(every), is_at_least=not is_certain)


def _size_memory_of(need: Need, margin: float) -> int:
    used = need.memory_bytes or 0
    if not need.ran_out_of_memory:
        return _size_memory(used, margin)
    reached = max(used, need.limit_bytes or 0)
    return round_up(max(reached * (1 + _MARGIN), reached + _LEAST_BYTES_AFTER_OOM), _BYTE_STEPS)


def _size_memory(used_bytes: int, margin: float) -> int:
    return round_up(used_bytes * (1 + margin), _BYTE_STEPS)


def _size_cores(used: float, n_gpus: int) -> int:
    return max(1, n_gpus, math.ceil(used - _SPARE_CORES))


def _size_time(seconds: float) -> int:
    return round_up(seconds * (1 + _TIME_MARGIN), _SECOND_STEPS)


def round_up(size: float, steps: Sequence[int]) -> int:
    """To a multiple of the largest step that is at most an eighth of the size; never by more than an eighth of it."""
    fitting = [number for number, step in enumerate(steps) if step * _STEPS_PER_SIZE <= size]
    number = fitting[-1] if fitting else 0
    rounded = math.ceil(size / steps[number]) * steps[number]
    # The first size of the next step may be nearer.
    return min([rounded, *(step * _STEPS_PER_SIZE for step in steps[number + 1 : number + 2])])


def _judge(finished: Sequence[Need], memory: Amount | None) -> str:
    if len(finished) < 2 or memory is None:
        return LOW
    is_alike = memory.used <= _SAME_NEED * memory.least_used
    return HIGH if len(finished) >= _MANY_RUNS and is_alike else MEDIUM


def _explain(needs: Sequence[Need], largest: Need | None) -> Iterable[str]:
    failures = list(dict.fromkeys(need.failure for need in needs if need.failure))
    if failures:
        yield f"Lower bounds only, where a run did not finish ({'; '.join(failures)})."
    if any(need.ran_out_of_memory for need in needs):
        yield "A run was killed for lack of memory: how much it needs is not known."
    if any(need.has_starved for need in needs):
        yield "The job waited for cores that it did not get: it may use more than it could show."
    if not all(need.has_samples for need in needs):
        yield "Cores are those of the busiest interval: the samples were not read."
    if len({need.rank for need in needs}) > 1 and len({need.job for need in needs}) == 1:
        yield "These are ranks of one job: this is the request for one of them."
    if largest and largest.memory_bytes and largest.outside_bytes > _NOTABLE_SHARE * largest.memory_bytes:
        yield (
            "Much of the memory is not in the job's processes: files in /dev/shm, kernel memory, "
            "or other processes under the same limit."
        )
