"""The recordings of a job: when each began, which are part of others, and what each rank used. Pure."""

from __future__ import annotations

from heapq import nsmallest
from types import MappingProxyType

from ..core.model import NO_PROCESS
from ..core.moments import parse_moment
from ..core.values import NamedTuple
from .copies import leave_out_copies
from .endings import KILLED, find_ending
from .measures import list_estimates, list_lower_bounds, overall_values
from .regions import summarize_metrics, summarize_regions
from .summary import summarize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..core.model import Header, ProcessTotals, RecordingData
    from .summary import Summary

_CLOCK_SECONDS = 0.01
# Endings that a tracker in the process, or one that was attached to it, writes.
_ENDED = "ended"
_NOT_THE_PARENTS = ("stopped", _ENDED, "interrupted", "raised")


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
    label: str = ""
    """Its rank in the job and its host, or the name of its recording."""
    region_seconds: Mapping[str, float] = MappingProxyType({})
    """The time in each of its regions, by path."""
    metrics: Mapping[str, float] = MappingProxyType({})
    """The last value of each of its metrics, which may be nan or infinite."""


class Part(NamedTuple):
    """One recording, on the time axis of the job."""

    name: str
    recording: RecordingData
    begin_seconds: float
    summary: Summary


def align(recordings: Sequence[tuple[str, RecordingData]]) -> list[Part]:
    """On one time axis, which begins with the first of them."""
    begins = [parse_moment(recording.header.started_at) for _, recording in recordings]
    known = [begin for begin in begins if begin is not None]
    first = min(known, default=0.0)
    return [
        Part(name, recording, 0.0 if begin is None else begin - first, summarize(recording))
        for (name, recording), begin in zip(recordings, begins, strict=True)
    ]


def is_of_whole_job(header: Header) -> bool:
    """Whether it is of all of a job on one machine, whoever started it, so that nobody told how that ended."""
    return header.pid == NO_PROCESS and header.identity.job is not None


def find_end(part: Part) -> float:
    """When it ended, in seconds since the first began."""
    return part.begin_seconds + part.recording.totals.at_seconds


def find_outer(parts: Sequence[Part]) -> dict[str, str]:
    """Recordings whose process is in the tree of another one: workers and their launcher."""
    pids = {(part.recording.header.host, part.recording.header.pid) for part in parts}
    # By host and process, once per recording: there may be thousands, with thousands of processes.
    met: dict[tuple[str, int], list[tuple[Part, ProcessTotals | None]]] = {}
    for part in parts:
        header = part.recording.header
        seen: dict[int, ProcessTotals | None] = {header.pid: None}
        seen.update((process.pid, process) for process in part.recording.processes)
        for pid, process in seen.items():
            if (header.host, pid) in pids:
                met.setdefault((header.host, pid), []).append((part, process))
    outer: dict[str, str] = {}
    for part in parts:
        header = part.recording.header
        others = met[header.host, header.pid]
        own = next(process for other, process in others if other is part)
        for other, process in others:
            if other is part or other.name in outer:
                continue
            if _is_same(part, other) or _is_smaller(part, other) or _is_below(part, own, other, process):
                outer[part.name] = other.name
                break
    return outer


def find_cut(parts: Sequence[Part], outer: Mapping[str, str]) -> dict[str, str]:
    """Recordings that are no part of another, but overlap with it, and the other one, which is without some of their time."""
    by_name = {part.name: part for part in parts}
    pairs = ((by_name[name], by_name[other]) for name, other in outer.items())
    return {
        part.name: other.name
        for part, other in pairs
        if _overlap_as_one(part, other) and not _is_within(part, other)
    }


def leave_out_inner(
    recordings: Sequence[tuple[str, RecordingData]],
) -> tuple[list[tuple[str, RecordingData]], frozenset[str], list[str]]:
    """Those that are part of no other, which of them are without some of the time, and a sentence about each that is left out.

    A program that tracks itself may be tracked, too.
    """
    every, copies = leave_out_copies(recordings)
    parts = align(every)
    outer = find_outer(parts)
    cut = find_cut(parts, outer)
    counted = [one for one in every if one[0] not in outer]
    return counted, frozenset(cut.values()), [*copies, *describe_inner(outer, cut)]


def describe_inner(outer: Mapping[str, str], cut: Mapping[str, str]) -> list[str]:
    """A sentence about each recording that is part of another, or overlaps with it."""
    return [
        describe_cut(name, other)
        if name in cut
        else f"Counted once: {name} is part of {other}, which includes its processes."
        for name, other in outer.items()
    ]


def describe_cut(name: str, other: str) -> str:
    """That a recording is not counted, although it has some time that the other has not."""
    return (
        f"{name} and {other} are of the same process and overlap in part: only {other} is counted, "
        "so what the process used is at least that."
    )


def find_outermost(name: str, outer: Mapping[str, str]) -> str:
    """The recording that includes this one and is part of no other; itself if it is part of none."""
    seen = {name}
    while (around := outer.get(name)) is not None and around not in seen:
        seen.add(name := around)
    return name


def group_by_host(parts: Sequence[Part], names: Iterable[str]) -> Iterable[tuple[str, list[Part]]]:
    """Those of each host; some may have none."""
    groups: dict[str, list[Part]] = {name: [] for name in names}
    for part in parts:
        groups[part.recording.header.host].append(part)
    return groups.items()


def _is_same(part: Part, other: Part) -> bool:
    """Whether both are of the same process. An equal pid is not enough: each container counts from one."""
    inner, around = part.recording, other.recording
    if inner.header.pid != around.header.pid:
        return False
    if inner.header.pid == NO_PROCESS:  # two of all of a job on this machine
        own, others = inner.header.identity, around.header.identity
        is_same_job = (own.job, own.restart) == (others.job, others.restart)
        return is_same_job and _begins_in(part, other, 0.0, around.totals.at_seconds)
    # Two recordings by parents are of two processes.
    was_stopped = inner.end is not None and inner.end.reason in _NOT_THE_PARENTS
    has_started = around.end is not None and around.end.exit_code is not None
    return was_stopped and has_started and _begins_in(part, other, 0.0, around.totals.at_seconds)


def _is_smaller(part: Part, other: Part) -> bool:
    """Whether two trackers of one process were there at the same time, and this one has seen less of it."""
    if not _overlap_as_one(part, other):
        return False
    if _is_within(part, other) or _is_within(other, part):
        return _is_within(part, other)
    return _order_by_cpu(part) < _order_by_cpu(other)


def _order_by_cpu(part: Part) -> tuple[float, float, str]:
    totals = part.recording.totals
    return totals.cpu_seconds.combined, totals.at_seconds, part.name


def _overlap_as_one(part: Part, other: Part) -> bool:
    """Whether both are of one process and overlap. A machine and its boot are known, and containers count on their own."""
    header, around = part.recording.header, other.recording.header
    own, others = header.identity, around.identity
    is_one = header.pid == around.pid != NO_PROCESS and own.boot_id is not None
    seconds = min(find_end(part), find_end(other)) - max(part.begin_seconds, other.begin_seconds)
    is_here = (own.boot_id, own.pid_namespace) == (others.boot_id, others.pid_namespace)
    return is_one and is_here and seconds > _CLOCK_SECONDS


def _is_within(part: Part, other: Part) -> bool:
    """Whether all of its time is in that of the other one."""
    return (
        part.begin_seconds >= other.begin_seconds - _CLOCK_SECONDS
        and find_end(part) <= find_end(other) + _CLOCK_SECONDS
    )


def _is_below(part: Part, own: ProcessTotals | None, other: Part, process: ProcessTotals | None) -> bool:
    """Whether it began in a process that the other one has seen below its root."""
    if process is None or process.pid == other.recording.header.pid:
        return False
    if own is not None and own.parent_pid != process.parent_pid:
        return False  # another process with the same pid in a container
    return _begins_in(part, other, process.first_seconds, process.last_seconds)


def _begins_in(part: Part, other: Part, first_seconds: float, last_seconds: float) -> bool:
    """Whether it began in that time of the other one: starts are known to the millisecond, processes to the interval."""
    slack = _CLOCK_SECONDS + other.recording.header.sleep_seconds
    since = part.begin_seconds - other.begin_seconds
    return first_seconds - slack <= since <= last_seconds + slack


def describe_rank(part: Part, part_of: str) -> Rank:
    """What it used, and which other recording it is part of."""
    header, end, summary = part.recording.header, part.recording.end, part.summary
    ending = find_ending(part.recording)
    return Rank(
        name=part.name,
        host=header.host,
        pid=header.pid,
        begin_seconds=part.begin_seconds,
        values=overall_values(summary),
        estimates=list_estimates(summary),
        at_least=list_lower_bounds(summary, ending),
        # The scheduler ends its tracker with the job, whether all went well or not.
        ending=_ENDED if ending == KILLED and is_of_whole_job(header) else ending,
        exit_code=end.exit_code if end else None,
        part_of=part_of,
        label=name_rank(part),
        region_seconds={
            "/".join(region.path): region.wall_seconds for region in summarize_regions(part.recording)
        },
        metrics={
            metric.name: metric.last if metric.last is not None else float(metric.last_not_finite)
            for metric in summarize_metrics(part.recording)
            if metric.last is not None or metric.last_not_finite
        },
    )


def list_worst(ranks: Sequence[Rank], most: int) -> Sequence[Rank]:
    """All of a few; of many, those that did not end well, then those that took longest."""
    if len(ranks) <= most:
        return ranks
    return nsmallest(
        most, ranks, key=lambda rank: (_may_have_ended_well(rank), -(rank.values["time"] or 0.0))
    )


def _may_have_ended_well(rank: Rank) -> bool:
    """Also of a whole job, of which nobody knows."""
    return rank.exit_code == 0 or rank.pid == NO_PROCESS


def name_rank(part: Part) -> str:
    """Its rank in the job and its host, or the name of its recording."""
    header = part.recording.header
    rank = header.identity.rank
    return part.name if rank is None else f"rank {rank} on {header.identity.node or header.host}"
