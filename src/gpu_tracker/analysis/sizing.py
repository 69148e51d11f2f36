"""How much to ask for the next time: memory, cores, GPUs and time, from what runs really used. Pure.

Memory is what a limit counts: anonymous, shared and kernel memory, but not the page cache, which the kernel gives back.
What a run that failed, was killed or told to end, has no end, was not measured all the time or had work done elsewhere used is a lower bound.
"""

from __future__ import annotations

import math

from ..core.model import ESTIMATE, RAM, SAMPLER_LOST, UNKNOWN
from ..core.moments import parse_moment
from ..core.units import humanize_bytes, humanize_seconds
from ..core.values import NamedTuple
from .endings import is_far_below, is_gpu_memory_error, is_memory_error, is_out_of_time
from .measures import NO_END, find_ceilings, find_failure
from .paging import has_lacked_memory
from .summary import UNREAD_SHARE, doubt_held, summarize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..core.columns import SampleColumns
    from ..core.model import End, PeakMoment, Peaks, RecordingData
    from .summary import GpuSummary, Summary

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
# What the kernel keeps for a process and for a thread besides its page tables, where no limit counts it.
_KERNEL_BYTES_PER_PROCESS = 128 * _KIB
_KERNEL_BYTES_PER_THREAD = 32 * _KIB
# What the next run needs of its own: the command line, which waits for the job, and the sampler, which may not have said it.
_COMMAND_LINE_BYTES = 4 * 10**6
_SAMPLER_BYTES = 10 * 10**6
_STARVED_SHARE = 0.25
_THROTTLED_SHARE = 0.05
_SPIKE_FACTOR = 1.5
_SPIKE_SHARE = 0.01
_NEAR_PEAK = 0.8
_SAME_NEED = 1.1
_NOTABLE_SHARE = 0.4
_MOST_PROGRAMS = 4
# A size is a multiple of the largest step that is at most an eighth of it and adds at most a twelfth: with the margin, and by what
# readings vary, that is less than 1.35 times the need. Of what is small, readings vary more.
_STEPS_PER_SIZE = 8
_MOST_ADDED = 1 / 12
_MOST_ADDED_TO_SMALL = 1 / 20
_SMALL_BYTES = _GIB
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
    was_refused_memory: bool = False
    """Whether it ended because it asked for more than it could get."""
    reached_time_limit: bool = False
    """Whether it was cut off: how long it would have taken is not known."""
    time_limit_seconds: float | None = None
    """Of its whole job."""
    limit_bytes: int | None = None
    """The memory limit that it ran under."""
    has_lacked_memory: bool = False
    """Whether that made it fetch the same pages again and again."""
    dropped_bytes: int = 0
    """What was resident of mapped files, which a limit does not keep."""
    memory_bytes: int | None = None
    memory_ceiling_bytes: float = 0.0
    """What it may have held at most, if what was measured is only the least; else 0."""
    is_counted_by_limit: bool = True
    """Whether a limit has counted that, so that nothing is missing."""
    outside_bytes: int = 0
    """The part of it that is not resident in the job's processes."""
    cores: float | None = None
    has_starved: bool = False
    """Whether it would have used more cores, had there been more for it."""
    gpus: int | None = None
    may_use_more_gpus: bool = False
    """Whether there is a device of which nothing is known."""
    is_gpu_use_unknown: bool = False
    """Whether there is one of which nobody knows whether it was used."""
    gpu_vendor: str = ""
    gpu_bytes: int | None = None
    """On the device where it held most."""
    is_gpu_least: bool = False
    """Whether it may have held more there: it was not known all the time, or is an estimate."""
    spike: Spike | None = None
    job: str | None = None
    """That of its scheduler: several runs may be in it, one after the other or at once."""
    run: tuple[str, ...] | None = None
    """What it has in common with the other ranks of one run; None of a run by itself."""
    rank: int | None = None
    """Of a process in a parallel job."""
    host: str = ""
    begin_seconds: float | None = None
    """Since 1970, by the clock of its host."""
    program: str = ""
    """The name of what it ran, where that is known."""
    has_samples: bool = True
    """Whether cores are those of its intervals, not of the busiest one."""

    unread_seconds: float = 0.0
    """For how long nothing was measured."""
    elsewhere: str = ""
    """Who had work done elsewhere, in a sentence: that was not measured."""

    is_cut: bool = False
    """Whether some of its time is only in a recording that is not counted."""

    @property
    def is_least(self) -> bool:
        """Whether it may need more than was seen: it did not finish, or was not measured all the time, or not all of it."""
        did_not_finish = bool(self.failure or self.ran_out_of_memory or self.elsewhere)
        return did_not_finish or self.is_cut or self.is_partly_unread

    @property
    def is_partly_unread(self) -> bool:
        """Whether so much of it was not measured that the rest does not stand for it."""
        return self.unread_seconds > UNREAD_SHARE * self.seconds

    @property
    def is_memory_doubtful(self) -> bool:
        """Whether only the least of its memory was measured, although it was measured all the time."""
        return self.has_lacked_memory or bool(self.memory_ceiling_bytes)

    @property
    def is_time_least(self) -> bool:
        """Whether it may take longer than was seen, which is known without a sampler."""
        did_not_finish = bool(self.failure or self.ran_out_of_memory) and not self.has_only_lost_its_sampler
        return did_not_finish or self.is_cut

    @property
    def has_only_lost_its_sampler(self) -> bool:
        """Whether it went on to its end, but nobody measured the rest."""
        return self.failure == SAMPLER_LOST and self.unread_seconds > 0


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
    """Of all ranks on one machine together."""
    cores: Amount | None
    """This and the following: of one rank, if the runs are of several."""
    gpus: Amount | None
    gpu_memory_bytes: Amount | None
    """Per device."""
    time_seconds: Amount | None
    time_above_seconds: float | None = None
    """The time limit that a run has reached, where all that is known is that it needs more."""
    gpu_vendor: str = ""
    spike: Spike | None = None
    notes: tuple[str, ...] = ()
    ranks_per_machine: int = 1


# ---- What one run needed.


def needs_samples(recording: RecordingData) -> bool:
    """Whether the samples of a recording say more than its totals."""
    return recording.totals.at_seconds >= _MANY_INTERVALS * recording.header.sleep_seconds


def find_need(recording: RecordingData, columns: SampleColumns | None = None) -> Need:
    """What a recording says; `columns` are its samples, without which the busiest interval counts for cores."""
    summary, peaks = summarize(recording), recording.totals.peaks
    identity = recording.header.identity
    memory, outside = _find_memory(summary, peaks, _find_tracker_bytes(recording.end))
    failure = find_failure(recording)
    cores = _find_cores(summary, columns, recording.header.allocation.cores)
    used = [gpu for gpu in summary.gpus if gpu.job_bytes.combined]
    doubt = doubt_held(used, summary.seconds)
    limit = None if summary.ram_source == "machine" else summary.ram_capacity_bytes
    has_lacked = has_lacked_memory(summary)
    if has_lacked and memory is not None:
        memory = max(memory, limit or 0)
    return Need(
        memory_ceiling_bytes=0.0 if peaks.limit_held_bytes else find_ceilings(summary).get("peak_ram", 0.0),
        seconds=summary.seconds,
        failure=failure,
        reached_time_limit=bool(failure) and is_out_of_time(recording),
        time_limit_seconds=recording.header.allocation.time_limit_seconds,
        was_refused_memory=_was_refused_memory(recording),
        ran_out_of_memory=_has_run_out(recording, summary, failure),
        limit_bytes=limit,
        has_lacked_memory=has_lacked,
        dropped_bytes=_find_dropped(summary, peaks),
        memory_bytes=memory,
        is_counted_by_limit=bool(peaks.limit_held_bytes),
        outside_bytes=outside,
        cores=cores,
        has_starved=_has_starved(summary, cores),
        gpus=_count_gpus(summary),
        may_use_more_gpus=summary.has_unread_gpus or any(gpu.may_hold_unseen for gpu in summary.gpus),
        is_gpu_use_unknown=any(map(_is_use_unknown, summary.gpus)),
        gpu_vendor=next((gpu.gpu.vendor for gpu in summary.gpus if _is_used(gpu)), ""),
        gpu_bytes=max((gpu.job_bytes.combined or 0 for gpu in used), default=None),
        is_gpu_least=doubt.basis == ESTIMATE or doubt.unheld_seconds > 0,
        spike=None if columns is None else _find_spike(summary, columns, recording.peak_moments, memory),
        unread_seconds=summary.unread_seconds,
        elsewhere=summary.elsewhere,
        job=identity.job,
        rank=identity.rank,
        host=recording.header.host,
        begin_seconds=parse_moment(recording.header.started_at),
        has_samples=columns is not None or not needs_samples(recording),
    )


def bound_by_inner(need: Need, inner: Sequence[Need]) -> Need:
    """A run of which some of the time is only in recordings that are part of it: it needs at least what those held together."""
    held = (_add_ranks(inner).memory_bytes or 0) if inner else 0
    return need._replace(memory_bytes=max(need.memory_bytes or 0, held) or None, is_cut=True)


def _has_run_out(recording: RecordingData, summary: Summary, failure: str) -> bool:
    """Whether the kernel killed a process for its memory that may be the job's: one that ends well with little left it to others."""
    is_little = is_far_below(summary.ram.combined.total_bytes, recording.header.allocation.ram_bytes)
    is_of_others = not failure and is_little and not summary.is_partly_unread
    return any(event.kind == "oom" for event in recording.events) and not is_of_others


def _was_refused_memory(recording: RecordingData) -> bool:
    exceptions = [event.text for event in recording.events if event.kind == "exception"]
    return any(is_memory_error(name) and not is_gpu_memory_error(name) for name in exceptions)


def _find_tracker_bytes(end: End | None) -> int:
    return _COMMAND_LINE_BYTES + ((end.tracker_ram_bytes if end else 0) or _SAMPLER_BYTES)


def _find_memory(summary: Summary, peaks: Peaks, tracker_bytes: int) -> tuple[int | None, int]:
    """What a limit would count, the tracker included, and how much of it is not resident in the job's processes."""
    resident, held_bytes = summary.ram.combined, peaks.limit_held_bytes
    if held_bytes:
        in_processes = max(summary.ram_ceiling_bytes or 0, resident.total_bytes)
        # A short job ends before the tracker has all that it needs.
        return max(held_bytes, tracker_bytes), max(0, held_bytes - in_processes)
    if resident.basis == UNKNOWN:
        return None, 0
    kernel = (summary.processes or 0) * _KERNEL_BYTES_PER_PROCESS + (
        summary.threads.combined or 0
    ) * _KERNEL_BYTES_PER_THREAD
    return resident.total_bytes + peaks.page_table_bytes + kernel + tracker_bytes, 0


def _find_dropped(summary: Summary, peaks: Peaks) -> int:
    return max(0, summary.ram.combined.total_bytes - peaks.limit_held_bytes) if peaks.limit_held_bytes else 0


def _find_cores(summary: Summary, columns: SampleColumns | None, allowed: float) -> float | None:
    most = summary.cpu.combined.max_percent
    busiest = None if most is None else most / 100
    usual = None
    if columns is not None:
        usual = _percentile(columns.cpu_cores.combined, columns.start_seconds, columns.end_seconds)
    cores = busiest if usual is None else usual
    mean = summary.cpu.combined.mean_percent
    if cores is not None and mean is not None and summary.is_partly_unread:
        # The CPU time of the rest is known, but not when it was spent.
        cores = max(cores, mean / 100)
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
    """The devices that the job really used: whose memory it held or, if that is not known, that it kept busy."""
    if not summary.gpus or any(map(_is_use_unknown, summary.gpus)):
        return None
    return sum(map(_is_used, summary.gpus))


def _is_used(gpu: GpuSummary) -> bool:
    return bool(gpu.job_bytes.combined or gpu.job_mean_percent)


def _is_use_unknown(gpu: GpuSummary) -> bool:
    return gpu.is_expected and gpu.basis in (UNKNOWN, ESTIMATE) and not gpu.job_mean_percent


def _find_spike(
    summary: Summary, columns: SampleColumns, moments: Sequence[PeakMoment], memory_bytes: int | None
) -> Spike | None:
    """Memory that is needed for less than a hundredth of the time."""
    ram, peak = columns.ram_bytes.combined, summary.ram.combined.total_bytes
    usual = _percentile(ram.high, columns.start_seconds, columns.end_seconds)
    if memory_bytes is None or not usual or peak < _SPIKE_FACTOR * usual:
        return None
    # Nobody knows what was held while nothing was read.
    if _measure_near_peak(columns, peak) + summary.unread_seconds > _SPIKE_SHARE * summary.seconds:
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
    """What to ask for, given one or more runs of the same job. Ranks of one run are no repeats of it."""
    runs = _join_ranks(needs)
    finished = [run for run in runs if not any(need.failure for need in run)]
    margin = _MARGIN_OF_MANY if len(finished) >= _MANY_RUNS else _MARGIN
    machines = [list(map(_add_ranks, _group_by_machine(run))) for run in runs]
    at_once = _add_at_once(machines)
    memory = _choose(
        at_once,
        lambda need: need.memory_bytes,
        lambda need, _: _size_memory_of(need, margin),
        lambda need: need.is_memory_doubtful,
    )
    gpus = _choose(
        runs,
        lambda need: need.gpus,
        lambda _, used: int(used),
        lambda need: need.may_use_more_gpus,
    )
    n_gpus = gpus.advised if gpus else 0
    cores = _choose(runs, lambda need: need.cores, lambda _, used: _size_cores(used, n_gpus))
    if cores and any(need.has_starved for need in needs):
        cores = cores._replace(is_at_least=True)
    largest = max(needs, key=lambda need: need.memory_bytes or 0, default=None)
    time = _choose_time(runs)
    return Sizing(
        runs=len(runs),
        finished_runs=len(finished),
        margin_percent=100 * margin,
        confidence=_judge(finished, memory),
        memory_bytes=memory,
        cores=cores,
        gpus=gpus,
        gpu_memory_bytes=_choose(
            runs,
            lambda need: need.gpu_bytes,
            lambda _, used: _size_memory(int(used), margin),
            lambda need: need.is_gpu_least,
        ),
        time_seconds=time,
        time_above_seconds=None if time else _find_reached_limit(runs),
        gpu_vendor=next((need.gpu_vendor for need in needs if need.gpu_vendor), ""),
        spike=largest.spike if largest else None,
        notes=(*_explain(needs, runs, largest), *_explain_at_once(machines, at_once)),
        ranks_per_machine=_count_ranks_per_machine(runs),
    )


def lack_ranks(sizing: Sizing, missing: Sequence[str]) -> Sizing:
    """The same where runs lack ranks, in words: what those need is not in it."""
    if not missing:
        return sizing
    memory = sizing.memory_bytes
    note = (
        f"Incomplete ({'; '.join(missing)}): what those ranks need, and their tasks, are not in the request."
    )
    return sizing._replace(
        memory_bytes=None if memory is None else memory._replace(is_at_least=True),
        notes=(note, *sizing.notes),
    )


def _join_ranks(needs: Sequence[Need]) -> list[list[Need]]:
    """Runs, each with all of its ranks."""
    runs: dict[object, list[Need]] = {}
    for number, need in enumerate(needs):
        runs.setdefault(number if need.run is None else need.run, []).append(need)
    return list(runs.values())


def _group_by_machine(run: Sequence[Need]) -> list[list[Need]]:
    machines: dict[str, list[Need]] = {}
    for need in run:
        machines.setdefault(need.host, []).append(need)
    return list(machines.values())


def _count_ranks_per_machine(runs: Sequence[Sequence[Need]]) -> int:
    machines = (machine for run in runs for machine in _group_by_machine(run))
    return max((len({need.rank for need in machine}) for machine in machines), default=1)


def _add_ranks(ranks: Sequence[Need]) -> Need:
    """What the ranks on one machine need together. A limit above all of them has counted all of them for each."""
    commands: dict[int | None, list[Need]] = {}
    for need in ranks:
        commands.setdefault(need.rank, []).append(need)
    # Those of one rank ran one after the other.
    single = [_join_needs(some, max) for some in commands.values()]
    are_counted = all(rank.is_counted_by_limit for rank in ranks if rank.memory_bytes is not None)
    return _join_needs(single, max if are_counted else sum)


def _join_needs(needs: Sequence[Need], join: Callable[[list[float]], float]) -> Need:
    """As one, whose memory is the largest or the sum, where it is known."""
    if len(needs) == 1:
        return needs[0]
    known = [need for need in needs if need.memory_bytes is not None]
    largest = max(known or needs, key=lambda need: need.memory_bytes or 0)
    has_ceiling = any(need.memory_ceiling_bytes for need in needs)
    ceilings = [need.memory_ceiling_bytes or need.memory_bytes or 0 for need in needs]
    return largest._replace(
        memory_bytes=int(join([need.memory_bytes or 0 for need in known])) if known else None,
        memory_ceiling_bytes=join(ceilings) if has_ceiling else 0.0,
        failure=next((need.failure for need in needs if need.failure), ""),
        ran_out_of_memory=any(need.ran_out_of_memory for need in needs),
        has_lacked_memory=any(need.has_lacked_memory for need in needs),
        unread_seconds=max(need.unread_seconds for need in needs),
        elsewhere=next((need.elsewhere for need in needs if need.elsewhere), ""),
        is_cut=any(need.is_cut for need in needs),
        begin_seconds=_find_begin(needs),
        seconds=_measure_span(needs),
    )


def _add_at_once(machines: Sequence[Sequence[Need]]) -> list[list[Need]]:
    """The needs of runs on each of their machines, each with what other steps of its job held there at the same time.

    Each step has a limit of its own, which counts nothing of the others.
    """
    needs = [need for some in machines for need in some]
    of_job: dict[tuple[str, str], list[int]] = {}
    for number, need in enumerate(needs):
        if need.job is not None and need.begin_seconds is not None:
            of_job.setdefault((need.job, need.host), []).append(number)
    whole = list(needs)
    for numbers in of_job.values():
        for number, at_once in _find_at_once(needs, numbers).items():
            whole[number] = _join_needs([needs[one] for one in at_once], sum)
    rest = iter(whole)
    return [[next(rest) for _ in some] for some in machines]


def _find_at_once(needs: Sequence[Need], numbers: Sequence[int]) -> dict[int, list[int]]:
    """With which others each of these held most: there are more only when one begins."""
    found: dict[int, list[int]] = {}
    most: dict[int, int] = {}
    running: list[int] = []
    for number in sorted(numbers, key=lambda one: needs[one].begin_seconds or 0.0):
        now = needs[number].begin_seconds or 0.0
        running = [one for one in running if now < (needs[one].begin_seconds or 0.0) + needs[one].seconds]
        running.append(number)
        held = sum(needs[one].memory_bytes or 0 for one in running)
        for one in running:
            if held > most.get(one, -1):
                most[one], found[one] = held, running
    return found


def _find_begin(ranks: Sequence[Need]) -> float | None:
    """When the first of them began; None if that of any is not known."""
    begins = [rank.begin_seconds for rank in ranks if rank.begin_seconds is not None]
    return min(begins) if len(begins) == len(ranks) else None


def _measure_span(ranks: Sequence[Need]) -> float:
    """From the first start to the last end; without their starts, as long as the longest took."""
    begin = _find_begin(ranks)
    ends = [rank.seconds + (rank.begin_seconds or 0.0) for rank in ranks]
    return max(rank.seconds for rank in ranks) if begin is None or len(ranks) == 1 else max(ends) - begin


def _choose(
    runs: Sequence[Sequence[Need]],
    get: Callable[[Need], float | None],
    size: Callable[[Need, float], int],
    is_doubtful: Callable[[Need], bool] = lambda _: False,
    is_least: Callable[[Need], bool] = lambda need: need.is_least,
) -> Amount | None:
    """The largest of all runs. It is a lower bound if a run that did not finish needs more than those that did.

    Ranks of one run may need different amounts: of one that did not finish, nobody knows whether it would have needed most.
    """
    sizes: list[tuple[int, bool]] = []
    most: list[float] = []
    for run in runs:
        known = [(need, used) for need in run if (used := get(need)) is not None and used < _MOST]
        is_open = any(map(is_least, run))
        sizes += [(size(need, used), is_open or is_doubtful(need)) for need, used in known]
        most += [max(used for _, used in known)] if known else []
    if not sizes:
        return None
    advised = max(sized for sized, _ in sizes)
    is_certain = any(sized == advised and not may_be_more for sized, may_be_more in sizes)
    return Amount(advised, max(most), min(most), is_at_least=not is_certain)


def _choose_time(runs: Sequence[Sequence[Need]]) -> Amount | None:
    """None if the longest run was cut off, or was given as much as that: that it needs more is all that is known."""
    whole = _take_spans(runs)
    if _find_cut_off([need for run in whole for need in run]) is not None:
        return None
    time = _choose(
        whole,
        lambda need: need.seconds if need.seconds > 0 else None,
        lambda _, used: _size_time(used),
        is_least=lambda need: need.is_time_least,
    )
    reached = _find_reached_limit(runs)
    return None if time is not None and reached is not None and time.advised <= reached else time


def _find_reached_limit(runs: Sequence[Sequence[Need]]) -> float | None:
    """The longest time limit that a run has reached."""
    cut_off = (need for run in _take_spans(runs) for need in run if need.reached_time_limit)
    return max((max(need.time_limit_seconds or 0.0, need.seconds) for need in cut_off), default=None)


def _take_spans(runs: Sequence[Sequence[Need]]) -> list[list[Need]]:
    """The same with the time of the whole run for each rank: they need not start at once."""
    return [[need._replace(seconds=_measure_span(run)) for need in run] for run in runs]


def _find_cut_off(needs: Sequence[Need]) -> Need | None:
    """The longest run that reached its time limit, if none that finished took longer."""
    cut_off = max(
        (need for need in needs if need.reached_time_limit), key=lambda need: need.seconds, default=None
    )
    if cut_off is None or any(need.seconds > cut_off.seconds for need in needs if not need.failure):
        return None
    return cut_off


def _size_memory_of(need: Need, margin: float) -> int:
    used = need.memory_bytes or 0
    if not need.ran_out_of_memory:
        return _size_memory(used, margin)
    reached = max(used, need.limit_bytes or 0)
    return round_up(max(reached * (1 + _MARGIN), reached + _LEAST_BYTES_AFTER_OOM), _BYTE_STEPS)


def _size_memory(used_bytes: int, margin: float) -> int:
    most_added = _MOST_ADDED if used_bytes >= _SMALL_BYTES else _MOST_ADDED_TO_SMALL
    return round_up(used_bytes * (1 + margin), _BYTE_STEPS, most_added)


def _size_cores(used: float, n_gpus: int) -> int:
    return max(1, n_gpus, math.ceil(used - _SPARE_CORES))


def _size_time(seconds: float) -> int:
    return round_up(seconds * (1 + _TIME_MARGIN), _SECOND_STEPS)


def round_up(size: float, steps: Sequence[int], most_added: float = _MOST_ADDED) -> int:
    """To a multiple of the largest step that is at most an eighth of the size, and adds at most that share of it."""
    fitting = [number for number, step in enumerate(steps) if step * _STEPS_PER_SIZE <= size]
    rounded = [math.ceil(size / steps[number]) * steps[number] for number in fitting or [0]]
    # The first size of the next step may be nearer.
    nearest = [step * _STEPS_PER_SIZE for step in steps[len(rounded) : len(rounded) + 1]]
    return min([*([one for one in rounded if one <= size * (1 + most_added)][-1:] or rounded[:1]), *nearest])


def _judge(finished: Sequence[Sequence[Need]], memory: Amount | None) -> str:
    if len(finished) < 2 or memory is None or len({need.program for run in finished for need in run}) > 1:
        return LOW
    is_alike = memory.used <= _SAME_NEED * memory.least_used
    return HIGH if len(finished) >= _MANY_RUNS and is_alike else MEDIUM


def _explain(needs: Sequence[Need], runs: Sequence[Sequence[Need]], largest: Need | None) -> Iterable[str]:
    yield from dict.fromkeys(need.elsewhere for need in needs if need.elsewhere)
    unread = [need for need in needs if need.has_only_lost_its_sampler or need.is_partly_unread]
    yield from dict.fromkeys(
        _describe_doubt(need) for need in needs if need.memory_ceiling_bytes and need not in unread
    )
    if unread:
        yield _describe_unread(max(unread, key=lambda need: need.unread_seconds))
    failures = list(
        dict.fromkeys(need.failure for need in needs if need.failure and not need.has_only_lost_its_sampler)
    )
    if failures:
        yield f"Lower bounds only, where a run did not finish ({'; '.join(failures)})."
    if any(need.ran_out_of_memory for need in needs):
        yield "A run was killed for lack of memory: how much it needs is not known."
    if all(need.gpus is None for need in needs) and any(need.is_gpu_use_unknown for need in needs):
        yield "How many GPUs it used is not known, so the request has none: add them."
    if any(need.is_gpu_least for need in needs):
        yield "What a run held on GPUs is an estimate, or was not known all the time: it may have needed more."
    if any(need.has_lacked_memory for need in needs):
        yield "A run fetched the same pages from storage again and again: with more memory it may be faster."
    elif largest and largest.memory_bytes and largest.dropped_bytes > _NOTABLE_SHARE * largest.memory_bytes:
        yield (
            f"{humanize_bytes(largest.dropped_bytes)} of mapped files were resident, too. They are not in the request, since a limit "
            "can push them out; a job that uses them again and again is then slower, and takes more time than advised."
        )
    if any(need.was_refused_memory for need in needs):
        yield "An allocation was refused: how much it asked for is not in the peak, so the need is not known."
    if cut_off := _find_cut_off([need for run in _take_spans(runs) for need in run]):
        yield (
            f"A run was cut off at its time limit after {humanize_seconds(cut_off.seconds)}: it needs more, "
            "and how much is not known."
        )
    elif not _choose_time(runs) and (reached := _find_reached_limit(runs)) is not None:
        yield f"A run reached the time limit of its job, {humanize_seconds(reached)}: ask for more than that."
    if needs and all(need.memory_bytes is None for need in needs):
        yield f"No memory is advised: {_explain_unread(needs)}."
    programs = list(dict.fromkeys(need.program for need in needs))
    if len(programs) > 1:
        yield (
            f"These are runs of {len(programs)} programs ({', '.join(programs[:_MOST_PROGRAMS])}"
            f"{', ...' if len(programs) > _MOST_PROGRAMS else ''}): the largest of any of them counts. "
            "Give those of one only."
        )
    if any(need.has_starved for need in needs):
        yield "The job waited for cores that it did not get: it may use more than it could show."
    if not all(need.has_samples for need in needs):
        yield "Cores are those of the busiest interval: the samples were not read."
    if len(needs) > len(runs):
        yield _explain_ranks(needs, runs)
    if largest and largest.memory_bytes and largest.outside_bytes > _NOTABLE_SHARE * largest.memory_bytes:
        yield (
            "Much of the memory is not in the job's processes: files in /dev/shm, kernel memory, "
            "or other processes under the same limit."
        )
    if any(need.memory_bytes is not None and not need.is_counted_by_limit for need in needs):
        yield (
            "Measured without a memory limit: what the kernel holds for the job in pipes and sockets, and files in /dev/shm "
            "that no process maps, are not in it. A run under a generous limit counts them."
        )


def _explain_ranks(needs: Sequence[Need], runs: Sequence[Sequence[Need]]) -> str:
    """Of how much of a run the request is: of one machine where all of a job was followed there."""
    parts = "machines" if all(need.rank is None for need in needs) else "ranks"
    jobs = "one job" if len(runs) == 1 else "parallel jobs"
    most = _count_ranks_per_machine(runs)
    if most == 1:
        return f"These are {parts} of {jobs}: this is the request for one of them."
    return f"These are {parts} of {jobs}: memory is for the {most} of them on one machine, the rest for each."


def _explain_at_once(machines: Sequence[Sequence[Need]], at_once: Sequence[Sequence[Need]]) -> Iterable[str]:
    """That the memory is that of several steps, if any ran at the same time."""
    if any(
        need is not whole
        for some, wholes in zip(machines, at_once, strict=True)
        for need, whole in zip(some, wholes, strict=True)
    ):
        yield "Several steps or commands of one job ran on one machine at the same time: memory is what they held there together."


def _describe_doubt(need: Need) -> str:
    if math.isinf(need.memory_ceiling_bytes):
        return "Some of a run was not measured: it may have needed more."
    return (
        "What the processes share was not read often enough to know the peak of memory: "
        f"it was at most {humanize_bytes(int(need.memory_ceiling_bytes))}."
    )


def _describe_unread(need: Need) -> str:
    return (
        f"Nothing was measured for {humanize_seconds(need.unread_seconds)} of the {humanize_seconds(need.seconds)} of a run: "
        "it may have needed more memory and more cores."
    )


def _explain_unread(needs: Sequence[Need]) -> str:
    if any(need.failure == NO_END for need in needs):
        return "the recording was cut off before the job's memory was read"
    return "the run ended before its memory was read"
