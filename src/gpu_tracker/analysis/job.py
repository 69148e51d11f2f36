"""Recordings of several ranks or hosts as one job. Pure.

Memory shared between separately measured trees is not known: their sum is an upper bound, the largest of them a lower
bound. Clocks of different hosts may differ, so times are compared in steps of a second.
"""

from __future__ import annotations

import math

from ..core.figures import RUN
from ..core.model import ESTIMATE, EXACT, SAMPLED, find_peak
from ..core.moments import parse_moment
from ..core.values import NamedTuple
from .endings import find_ending
from .energy import add_joules, estimate_carbon
from .measures import list_estimates, list_lower_bounds, overall_values
from .permutation_test import median
from .summary import (
    doubt_held,
    find_missing,
    find_unmetered_seconds,
    find_unused_seconds,
    find_unutilized_seconds,
    is_known_enough,
    is_ram_least,
    summarize,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from ..core.figures import Figure
    from ..core.model import ProcessTotals, RecordingData, Sample
    from .charts import Chart
    from .energy import Carbon, CarbonFactor
    from .summary import GpuSummary

_STEP_SECONDS = 1.0
_CLOCK_SECONDS = 0.01
_MOST_STEPS = 20_000
_SHORT_SECONDS = 20.0
_MOST_NAMED = 5
# Endings that a tracker in the process, or one that was attached to it, writes.
_NOT_THE_PARENTS = ("stopped", "ended", "interrupted", "raised")


class Rank(NamedTuple):
    """One recording of the job. None is not known."""

    name: str
    host: str
    pid: int
    begin_seconds: float
    """Since the first rank began."""
    values: dict[str, float | None]
    """The figures of a whole run, by name."""
    ending: str
    exit_code: int | None
    part_of: str = ""
    """The recording that includes these processes too; this one is then in no sum."""
    estimates: tuple[str, ...] = ()
    """The names of the figures that are estimates."""
    at_least: tuple[str, ...] = ()
    """Of those that may have been more, because they are without some of the time."""


class Balance(NamedTuple):
    """One figure over all ranks."""

    figure: Figure
    smallest: float
    median: float
    largest: float
    imbalance_percent: float | None
    """How far the largest is above the mean."""
    is_at_least: bool = False
    """Whether some of them may have been more, because they are without some of the time."""


class HostGpu(NamedTuple):
    """One device, as seen by all ranks. None is not known."""

    uuid: str
    name: str
    label: str
    job_bytes: int | None
    """The peak of all ranks together, added up at the same time: an upper bound."""
    used_bytes: int | None
    mean_percent: float | None
    """From the longest recording."""
    utilization_basis: str
    energy_joules: float | None
    unutilized_seconds: float = 0.0
    """How much of the time the mean is without, if that is notable."""
    unmetered_seconds: float = 0.0
    """The same of its energy."""
    energy_basis: str = EXACT
    """By the driver's meter, or an estimate from its power."""
    unheld_seconds: float = 0.0
    """The same of what the job held: it may have been more."""
    memory_basis: str = SAMPLED
    """How that was obtained."""
    is_known_enough: bool = True
    """Whether the mean stands for the whole time."""


class Host(NamedTuple):
    """One machine and the ranks on it."""

    name: str
    ranks: int
    cpu_seconds: float
    ram_at_least_bytes: int | None
    """The largest single tree. This and the following: None if never read."""
    ram_sum_bytes: int | None
    """The peak of all trees together, as if they shared nothing."""
    ram_at_most_bytes: int | None
    """The sum, or the RAM in use on the whole machine if that is less; also None if a tree was not measured all the time."""
    system_ram_bytes: int | None
    gpus: tuple[HostGpu, ...]
    machine_joules: float | None = None
    """Energy of all its processors and their memory, by its own meters; None if not measured."""
    unmetered_seconds: float = 0.0
    """How much of the time that is without, if that is notable."""


class Combined(NamedTuple):
    """All recordings as one job."""

    values: dict[str, float | None]
    """The figures of a whole run, by name. Time is from the first start to the last end, peak GPU RAM the sum of the
    devices' peaks. Peak RAM is known only if both bounds are equal."""
    ram_at_least_bytes: int | None
    ram_at_most_bytes: int | None
    """None if that of a host is not known."""
    hosts: tuple[Host, ...]
    ranks: tuple[Rank, ...]
    balance: tuple[Balance, ...]
    notes: tuple[str, ...]
    charts: tuple[Chart, ...] = ()
    """The ranks over time, on one axis; only where they are drawn."""
    machine_joules: float | None = None
    """Energy of the processors and memory of all hosts, as a whole."""
    carbon: Carbon | None = None
    """Of the energy of GPUs, processors and memory, with a factor that the user has stated."""


class _Part(NamedTuple):
    name: str
    recording: RecordingData
    begin_seconds: float


def combine(recordings: Sequence[tuple[str, RecordingData]], factor: CarbonFactor | None = None) -> Combined:
    """Named recordings of one job as a whole."""
    parts = _align(recordings)
    outer = _find_outer(parts)
    counted = [part for part in parts if part.name not in outer]
    ranks = tuple(_describe(part, outer.get(part.name, "")) for part in parts)
    names = sorted({part.recording.header.host for part in parts})
    hosts = tuple(
        _describe_host(name, [part for part in counted if part.recording.header.host == name])
        for name in names
    )
    seconds = max(_end(part) for part in parts)
    cpu_seconds = sum(host.cpu_seconds for host in hosts)
    devices = [gpu for host in hosts for gpu in host.gpus]
    at_least = max((host.ram_at_least_bytes or 0 for host in hosts), default=0) or None
    is_bounded = not any(host.ram_at_least_bytes and host.ram_at_most_bytes is None for host in hosts)
    at_most = _add(host.ram_at_most_bytes for host in hosts) if is_bounded else None
    percents = [gpu.mean_percent for gpu in devices if gpu.mean_percent is not None]
    are_known = all(gpu.is_known_enough for gpu in devices if gpu.mean_percent is not None)
    values = {
        "time": seconds,
        "cpu_time": cpu_seconds,
        "mean_cores": cpu_seconds / seconds if seconds > 0 else None,
        "peak_ram": at_most if at_least == at_most else None,
        "peak_gpu_ram": None if _may_hold_more(counted) else _add_all([gpu.job_bytes for gpu in devices]),
        "gpu_utilization": sum(percents) / len(percents) if percents and are_known else None,
        "energy": _add(gpu.energy_joules for gpu in devices),
    }
    machine_joules = add_joules(*(host.machine_joules for host in hosts))
    return Combined(
        values=values,
        ram_at_least_bytes=at_least,
        ram_at_most_bytes=at_most,
        hosts=hosts,
        ranks=ranks,
        balance=tuple(_balance([rank for rank in ranks if not rank.part_of])),
        notes=tuple(_list_notes(parts, outer, hosts)),
        machine_joules=machine_joules,
        carbon=estimate_carbon(add_joules(values["energy"], machine_joules), factor),
    )


def _align(recordings: Sequence[tuple[str, RecordingData]]) -> list[_Part]:
    begins = [parse_moment(recording.header.started_at) for _, recording in recordings]
    known = [begin for begin in begins if begin is not None]
    first = min(known, default=0.0)
    return [
        _Part(name, recording, 0.0 if begin is None else begin - first)
        for (name, recording), begin in zip(recordings, begins, strict=True)
    ]


def _end(part: _Part) -> float:
    return part.begin_seconds + part.recording.totals.at_seconds


def _find_outer(parts: Sequence[_Part]) -> dict[str, str]:
    """Recordings whose process is in the tree of another one: workers and their launcher."""
    pids = {part.recording.header.pid for part in parts}
    # Once per recording: there may be hundreds, with thousands of processes.
    met = [
        {process.pid: process for process in part.recording.processes if process.pid in pids}
        for part in parts
    ]
    outer: dict[str, str] = {}
    for part, own in zip(parts, met, strict=True):
        header = part.recording.header
        for other, others in zip(parts, met, strict=True):
            if other is part or other.recording.header.host != header.host or other.name in outer:
                continue
            if _is_same(part, other) or _is_below(part, own.get(header.pid), other, others.get(header.pid)):
                outer[part.name] = other.name
                break
    return outer


def _is_same(part: _Part, other: _Part) -> bool:
    """Whether both are of the same process. An equal pid is not enough: each container counts from one."""
    inner, around = part.recording, other.recording
    if inner.header.pid != around.header.pid:
        return False
    if (inner.header, inner.totals) == (around.header, around.totals):
        return True  # a copy
    # Two recordings by parents are of two processes.
    was_stopped = inner.end is not None and inner.end.reason in _NOT_THE_PARENTS
    has_started = around.end is not None and around.end.exit_code is not None
    return was_stopped and has_started and _begins_in(part, other, 0.0, around.totals.at_seconds)


def _is_below(part: _Part, own: ProcessTotals | None, other: _Part, process: ProcessTotals | None) -> bool:
    """Whether it began in a process that the other one has seen below its root."""
    if process is None or process.pid == other.recording.header.pid:
        return False
    if own is not None and own.parent_pid != process.parent_pid:
        return False  # another process with the same pid in a container
    return _begins_in(part, other, process.first_seconds, process.last_seconds)


def _begins_in(part: _Part, other: _Part, first_seconds: float, last_seconds: float) -> bool:
    """Whether it began in that time of the other one: starts are known to the millisecond, processes to the interval."""
    slack = _CLOCK_SECONDS + other.recording.header.sleep_seconds
    since = part.begin_seconds - other.begin_seconds
    return first_seconds - slack <= since <= last_seconds + slack


def _describe(part: _Part, part_of: str) -> Rank:
    header, end, summary = part.recording.header, part.recording.end, summarize(part.recording)
    return Rank(
        name=part.name,
        host=header.host,
        pid=header.pid,
        begin_seconds=part.begin_seconds,
        values=overall_values(summary),
        estimates=list_estimates(summary),
        at_least=list_lower_bounds(summary, find_ending(part.recording)),
        ending=find_ending(part.recording),
        exit_code=end.exit_code if end else None,
        part_of=part_of,
    )


def _describe_host(name: str, parts: Sequence[_Part]) -> Host:
    totals = [part.recording.totals for part in parts]
    at_least = max(total.peaks.ram.combined.total_bytes for total in totals)
    summed = max(at_least, _sum_at_once([_list_ram(part) for part in parts]))
    system = max(total.peaks.system_ram_bytes for total in totals)
    # Each rank has read the same meters.
    metered = max(totals, key=lambda total: add_joules(*total.energy[:2]) or 0.0)
    at_most = max(at_least, min(summed, system)) if system else summed
    is_least = any(is_ram_least(summarize(part.recording), find_ending(part.recording)) for part in parts)
    return Host(
        name=name,
        ranks=len(parts),
        cpu_seconds=sum(total.cpu_seconds.combined for total in totals),
        ram_at_least_bytes=at_least or None,
        ram_sum_bytes=summed or None,
        ram_at_most_bytes=None if is_least else at_most or None,
        system_ram_bytes=system or None,
        gpus=tuple(_describe_gpus(parts)),
        machine_joules=add_joules(*metered.energy[:2]),
        unmetered_seconds=0.0
        if metered.energy.seconds is None
        else find_missing(metered.energy.seconds, metered.at_seconds),
    )


def _list_intervals(part: _Part) -> Iterator[tuple[float, float, Sample]]:
    """Begin, end and sample of every interval; times that go back, or beyond the end, are damage and left out."""
    at, end = 0.0, part.recording.totals.at_seconds
    for sample in part.recording.samples:
        if at - _STEP_SECONDS <= sample.at_seconds <= end + _STEP_SECONDS:
            yield part.begin_seconds + at, part.begin_seconds + sample.at_seconds, sample
            at = sample.at_seconds


def _list_ram(part: _Part) -> list[tuple[float, float, int]]:
    """Begin, end and peak of every interval. A running peak that has grown was reached in this interval."""
    intervals = []
    last, peak = part.begin_seconds, 0
    for begin, last, sample in _list_intervals(part):
        grown = sample.peaks.ram.combined.total_bytes
        intervals.append(
            (begin, last, max(int(sample.ram_bytes.combined.high or 0), grown if grown > peak else 0))
        )
        peak = grown
    total = part.recording.totals.peaks.ram.combined.total_bytes
    if total > peak:  # reached after the last sample
        intervals.append((last, _end(part), total))
    return intervals


def _list_gpu_ram(part: _Part, uuid: str) -> list[tuple[float, float, int]]:
    return [
        (begin, until, next((gpu.job_bytes or 0 for gpu in sample.gpus if gpu.uuid == uuid), 0))
        for begin, until, sample in _list_intervals(part)
    ]


def _sum_at_once(ranks: Sequence[Sequence[tuple[float, float, int]]]) -> int:
    """An upper bound of what all held at once: an interval counts in every time step it touches."""
    end = max((until for intervals in ranks for _, until, _ in intervals), default=0.0)
    step = max(_STEP_SECONDS, end / _MOST_STEPS)
    sums: dict[int, int] = {}
    for intervals in ranks:
        held: dict[int, int] = {}
        for begin, until, most in intervals:
            # Clocks of hosts may differ, so each may have been up to one second later.
            for number in range(math.floor(begin / step), math.floor((until + 1.0) / step) + 1):
                held[number] = max(most, held.get(number, 0))
        for number, most in held.items():
            sums[number] = sums.get(number, 0) + most
    return max(sums.values(), default=0)


def _may_hold_more(parts: Sequence[_Part]) -> bool:
    """Whether a rank may hold an unknown amount of a device's memory."""
    gpus = (gpu for part in parts for gpu in summarize(part.recording).gpus)
    return any(gpu.may_hold_unseen for gpu in gpus)


def _describe_gpus(parts: Sequence[_Part]) -> Iterable[HostGpu]:
    seen: dict[str, list[tuple[_Part, GpuSummary]]] = {}
    for part in parts:
        for gpu in summarize(part.recording).gpus:
            seen.setdefault(gpu.gpu.uuid, []).append((part, gpu))
    for uuid, views in sorted(seen.items(), key=lambda item: (item[1][0][1].gpu.sort_key, item[0])):
        # A device that no rank used is not the job's.
        if not any(gpu.is_expected for _, gpu in views):
            continue
        peaks = [gpu.job_bytes.combined for _, gpu in views]
        is_unknown = any(gpu.is_expected and gpu.job_bytes.combined is None for _, gpu in views)
        summed = _sum_at_once([_list_gpu_ram(part, uuid) for part, _ in views])
        doubts = [doubt_held([gpu], part.recording.totals.at_seconds) for part, gpu in views]
        part, longest = max(views, key=lambda item: item[0].recording.totals.at_seconds)
        metered, most = max(views, key=lambda item: item[1].energy_joules or 0.0)
        seconds = part.recording.totals.at_seconds
        yield HostGpu(
            uuid=uuid,
            name=longest.gpu.name,
            label=longest.gpu.label,
            job_bytes=None if is_unknown else _bound(find_peak(summed or None, None, peaks), views),
            used_bytes=_most(gpu.used_bytes for _, gpu in views),
            mean_percent=longest.mean_percent,
            utilization_basis=longest.utilization_basis,
            energy_joules=most.energy_joules,
            energy_basis=most.energy_basis,
            unmetered_seconds=0.0
            if most.energy_joules is None
            else find_unmetered_seconds(most, metered.recording.totals.at_seconds),
            unutilized_seconds=find_unutilized_seconds(longest, seconds),
            is_known_enough=is_known_enough(longest.utilization_seconds, seconds),
            unheld_seconds=max(doubt.unheld_seconds for doubt in doubts),
            memory_basis=ESTIMATE if any(doubt.basis == ESTIMATE for doubt in doubts) else SAMPLED,
        )


def _bound(summed: int | None, views: Sequence[tuple[_Part, GpuSummary]]) -> int | None:
    """All ranks held no more of a device together than all processes did, if that is known, and no less than one of them."""
    used = [gpu.used_bytes for _, gpu in views]
    is_whole = not any(
        find_unused_seconds(gpu, part.recording.totals.at_seconds) for part, gpu in views
    ) and all(used)
    if summed is None or not is_whole:
        return summed
    most: int = _most(used)
    return max([min(summed, most), *(gpu.job_bytes.combined or 0 for _, gpu in views)])


def _balance(ranks: Sequence[Rank]) -> Iterable[Balance]:
    for figure in RUN:
        values = [value for rank in ranks if (value := rank.values[figure.name]) is not None]
        if not values:
            continue
        mean = sum(values) / len(values)
        imbalance = 100 * (max(values) / mean - 1) if mean > 0 else None
        is_at_least = any(figure.name in rank.at_least for rank in ranks)
        yield Balance(figure, min(values), median(values), max(values), imbalance, is_at_least)


def _most(values: Iterable[float | None]) -> Any:
    return max((value for value in values if value is not None), default=None)


def _add_all(values: Sequence[int | None]) -> int | None:
    """The sum if all are known, and there is one."""
    return None if None in values or not values else _add(values)


def _add(values: Iterable[float | None]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _list_notes(parts: Sequence[_Part], outer: dict[str, str], hosts: Sequence[Host]) -> list[str]:
    notes = []
    if any(host.ranks > 1 for host in hosts):
        notes.append(
            "Memory shared between recordings is not known: the sum of their RAM is an upper bound, "
            "the largest of them a lower bound."
        )
    for inner, other in list(outer.items())[:_MOST_NAMED]:
        notes.append(f"{inner} is part of {other}, which includes its processes; it is in no sum.")
    if len(outer) > _MOST_NAMED:
        notes.append(f"{len(outer) - _MOST_NAMED} more are part of others in the same way.")
    cut = [part.name for part in parts if part.recording.end is None]
    if cut:
        more = f" and {len(cut) - _MOST_NAMED} more" if len(cut) > _MOST_NAMED else ""
        notes.append(f"Incomplete (killed or still running): {', '.join(cut[:_MOST_NAMED])}{more}.")
    if any(parse_moment(part.recording.header.started_at) is None for part in parts):
        notes.append("Some recordings have no start time; they are taken to have started with the first.")
    if len(parts) > 1 and max(map(_end, parts)) < _SHORT_SECONDS:
        notes.append(
            "Recordings are compared in steps of a second, so figures of so short a job are not precise."
        )
    latest, earliest_end = max(part.begin_seconds for part in parts), min(_end(part) for part in parts)
    if latest > earliest_end:
        notes.append("These did not all run at the same time.")
    return notes
