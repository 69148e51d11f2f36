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
MOST_INNER_NAMED = 5
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
    doubted_regions: tuple[str, ...] = ()
    """Those of its regions of which some calls may be missing, by path."""


class Cut(NamedTuple):
    """What a recording is part of, although that is without some of its time."""

    other: str
    is_of_job: bool
    """Whether that follows all of the job, and is not of the same process."""


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
    """Recordings whose process is in the tree of another one, or in a job that another one follows: workers and their launcher."""
    pids = {(part.recording.header.host, part.recording.header.pid) for part in parts}
    # By host and process, once per recording: there may be thousands, with thousands of processes.
    met: dict[tuple[str, int], list[tuple[Part, ProcessTotals | None]]] = {}
    following: dict[str, list[Part]] = {}
    for part in parts:
        header = part.recording.header
        seen: dict[int, ProcessTotals | None] = {header.pid: None}
        seen.update((process.pid, process) for process in part.recording.processes)
        for pid, process in seen.items():
            if (header.host, pid) in pids:
                met.setdefault((header.host, pid), []).append((part, process))
        if is_of_whole_job(header):
            following.setdefault(header.host, []).append(part)
    outer: dict[str, str] = {}
    for part in parts:
        header = part.recording.header
        others = met[header.host, header.pid]
        own = next(process for other, process in others if other is part)
        around = [
            other
            for other, process in others
            if other is not part
            and find_outermost(other.name, outer) != part.name
            and (_is_same(part, other) or _is_smaller(part, other) or _is_below(part, own, other, process))
        ]
        followers = [other for other in following.get(header.host, ()) if _is_followed(part, other)]
        # What is in the tree of a rank is in that first, and only then in the job.
        trees = [other for other in around if not is_of_whole_job(other.recording.header)]
        closest = sorted(trees or around, key=lambda other: other.name in outer)
        most = max(followers, key=lambda other: _measure_overlap(part, other), default=None)
        if (found := next(iter(closest), most)) is not None:
            outer[part.name] = found.name
    return outer


def find_cut(parts: Sequence[Part], outer: Mapping[str, str]) -> dict[str, Cut]:
    """Recordings that are part of another, or of the same process, but overlap with it only in part."""
    by_name = {part.name: part for part in parts}
    found: dict[str, Cut] = {}
    for name, around in outer.items():
        part, other = by_name[name], by_name[around]
        is_of_job = is_of_whole_job(other.recording.header)
        # Who follows a job sees its processes when it takes a sample.
        slack = other.recording.header.sleep_seconds if is_of_job else 0.0
        if (is_of_job or _overlap_as_one(part, other)) and not _is_within(part, other, slack):
            found[name] = Cut(around, is_of_job)
    return found


def list_within(outer: Mapping[str, str], cut: Mapping[str, Cut]) -> dict[str, list[str]]:
    """Of each recording that is without some of the time of others: these, if they are not of the same process."""
    within: dict[str, list[str]] = {one.other: [] for one in cut.values()}
    for name, around in outer.items():
        if around in within and (name not in cut or cut[name].is_of_job):
            within[around].append(name)
    return within


class Counted(NamedTuple):
    """The recordings that are part of no other."""

    recordings: list[tuple[str, RecordingData]]
    within: dict[str, list[tuple[str, RecordingData]]]
    """Those that are without some of the time, each with what else is known of it."""
    notes: list[str]
    """A sentence about each of the others."""


def leave_out_inner(recordings: Sequence[tuple[str, RecordingData]]) -> Counted:
    """Those that count. A program that tracks itself may be tracked, too."""
    every, copies = leave_out_copies(recordings)
    parts = align(every)
    outer = find_outer(parts)
    cut = find_cut(parts, outer)
    by_name = dict(every)
    within = {name: [(one, by_name[one]) for one in some] for name, some in list_within(outer, cut).items()}
    counted = [one for one in every if one[0] not in outer]
    return Counted(counted, within, [*copies, *describe_inner(outer, cut)])


def describe_inner(outer: Mapping[str, str], cut: Mapping[str, Cut]) -> list[str]:
    """A sentence about each recording that is part of another, or overlaps with it; of many, about a few."""
    named = [
        describe_cut(name, cut[name])
        if name in cut
        else f"Counted once: {name} is part of {other}, which includes its processes."
        for name, other in list(outer.items())[:MOST_INNER_NAMED]
    ]
    more = len(outer) - len(named)
    return [*named, *([f"Counted once: {more} more are part of others in the same way."] if more > 0 else [])]


def describe_cut(name: str, cut: Cut) -> str:
    """That a recording is not counted, although it has some time that the other has not."""
    if cut.is_of_job:
        return (
            f"{cut.other} follows the job of which {name} is a part, but not all of the time of that: only {cut.other} is counted, "
            "so what the job used is at least that."
        )
    return (
        f"{name} and {cut.other} are of the same process and overlap in part: only {cut.other} is counted, "
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
    is_here = (own.boot_id, own.pid_namespace) == (others.boot_id, others.pid_namespace)
    return is_one and is_here and _measure_overlap(part, other) > _CLOCK_SECONDS


def _measure_overlap(part: Part, other: Part) -> float:
    """For how long both were there; negative if they never were."""
    return min(find_end(part), find_end(other)) - max(part.begin_seconds, other.begin_seconds)


def _is_within(part: Part, other: Part, slack_seconds: float = 0.0) -> bool:
    """Whether all of its time is in that of the other one."""
    slack = slack_seconds + _CLOCK_SECONDS
    return part.begin_seconds >= other.begin_seconds - slack and find_end(part) <= find_end(other) + slack


def _is_followed(part: Part, other: Part) -> bool:
    """Whether it is of a process on the machine on which the other one follows all of its job, which may have begun later."""
    header, around = part.recording.header, other.recording.header
    own, others = header.identity, around.identity
    is_same_job = (own.job, own.restart or 0) == (others.job, others.restart or 0)
    is_here = own.boot_id == others.boot_id and (own.node or others.node) == (others.node or own.node)
    is_at_once = _measure_overlap(part, other) > _CLOCK_SECONDS
    return header.pid != NO_PROCESS and is_same_job and is_here and is_at_once


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
