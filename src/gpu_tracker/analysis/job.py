"""Recordings of several ranks or hosts as one job. Pure."""

from __future__ import annotations

from ..core.figures import RUN
from ..core.model import NO_PROCESS
from ..core.moments import parse_moment
from ..core.text import count_of, join_some
from ..core.values import NamedTuple
from .balance import balance_ranks, balance_regions, describe_delay, spread_metrics
from .copies import leave_out_copies
from .endings import KILLED
from .energy import add_joules, estimate_carbon
from .findings.finding import POSSIBLE, WHY_IT_DIED
from .hosts import describe_host, list_unread_gpus, may_hold_more
from .job_end import describe_end, has_died, judge_state, name_state, tells_why
from .job_findings import join_findings
from .measures import OF_PROCESSES
from .ranks import (
    align,
    describe_cut,
    describe_rank,
    find_cut,
    find_end,
    find_outer,
    group_by_host,
    is_of_whole_job,
    list_within,
    list_worst,
    name_rank,
)
from .tasks import Task, describe_endings, find_worst_code, split_tasks, spread_tasks
from .united_regions import unite_regions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..core.columns import HeldColumns
    from ..core.model import Identity, RecordingData
    from .balance import Balance, MetricSpread
    from .charts import Chart
    from .energy import Carbon, CarbonFactor
    from .findings.finding import Finding
    from .hosts import Host
    from .job_findings import JobFinding
    from .ranks import Cut, Part, Rank
    from .tasks import Spread

_SHORT_SECONDS = 20.0
_MOST_NAMED = 5
_MOST_LISTED = 100_000
_OF_CPU = ("cpu_time", "mean_cores")
# Judging a rank takes its samples, and a hundred times as long as adding it up.
MOST_JUDGED = 10


class Job(NamedTuple):
    """What the recordings say of the job that they are of. None is not known."""

    scheduler: str | None = None
    jobs: tuple[str, ...] = ()
    """More than one if the recordings are of several."""
    name: str | None = None
    nodes: int | None = None
    ranks: int | None = None
    """How many there should be."""
    missing_ranks: tuple[int, ...] = ()
    """Those of which there is no recording."""
    array: str | None = None
    """The array of which they are tasks."""
    state: str | None = None
    """How it ended, by its scheduler if that was asked, else as far as the recordings tell; None of several runs."""


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
    job: Job = Job()
    machine_joules: float | None = None
    """Energy of the processors and memory of all hosts, as a whole."""
    carbon: Carbon | None = None
    """Of the energy of GPUs, processors and memory, with a factor that the user has stated."""
    tasks: tuple[Task, ...] = ()
    """Runs that are never added up: the tasks of an array, jobs, attempts. Then there are no sums, hosts or balance above."""
    spread: tuple[Spread, ...] = ()
    """How much those needed."""
    metrics: tuple[MetricSpread, ...] = ()
    """What the ranks logged last."""
    findings: tuple[JobFinding, ...] = ()
    """What was found in the ranks that were judged, worst first."""
    at_least: tuple[str, ...] = ()
    """The names of the figures that may have been more, because they are without some of the time."""


def combine(
    recordings: Sequence[tuple[str, RecordingData]],
    read_held: Callable[[RecordingData], HeldColumns],
    factor: CarbonFactor | None = None,
    skipped: Sequence[str] = (),
    state: str | None = None,
    judge: Callable[[RecordingData], Sequence[Finding]] = lambda _: (),
) -> Combined:
    """Named recordings of one job as a whole, with sentences about those that could not be read. `state` is the scheduler's word for it.

    What each held is read when it is added up: together it may be too much. Of many ranks only the worst are judged.
    """
    every, copies = leave_out_copies(recordings)
    skipped = (*skipped, *copies)
    tasks = split_tasks(every)
    if len(tasks) > 1:
        return _combine_tasks(tasks, read_held, skipped, state)
    whole, ends = _combine_one(every, read_held, factor, skipped, state, judge)
    return whole._replace(notes=(*ends, *whole.notes))


def _combine_one(
    recordings: Sequence[tuple[str, RecordingData]],
    read_held: Callable[[RecordingData], HeldColumns],
    factor: CarbonFactor | None = None,
    skipped: Sequence[str] = (),
    state: str | None = None,
    judge: Callable[[RecordingData], Sequence[Finding]] = lambda _: (),
) -> tuple[Combined, list[str]]:
    """Those of one run, and what is to be said first: how it ended."""
    parts = align(recordings)
    outer = find_outer(parts)
    cut = find_cut(parts, outer)
    counted = [part for part in parts if part.name not in outer]
    ended = _list_ended(parts, outer)
    ranks = tuple(_describe_ranks(parts, outer, cut))
    names = sorted({part.recording.header.host for part in parts})
    by_name = {part.name: part for part in parts}
    within = {name: [by_name[one] for one in some] for name, some in list_within(outer, cut).items()}
    hosts = tuple(
        describe_host(name, on_host, read_held, within) for name, on_host in group_by_host(counted, names)
    )
    seconds = max(find_end(part) for part in parts)
    cpu_seconds = sum(host.cpu_seconds for host in hosts)
    devices = [gpu for host in hosts for gpu in host.gpus]
    at_least = max((host.ram_at_least_bytes or 0 for host in hosts), default=0) or None
    is_bounded = not any(host.ram_at_least_bytes and host.ram_at_most_bytes is None for host in hosts)
    at_most = _add(host.ram_at_most_bytes for host in hosts) if is_bounded else None
    percents = [gpu.mean_percent for gpu in devices if gpu.mean_percent is not None]
    unread = list_unread_gpus(counted)
    are_known = not unread and all(gpu.is_known_enough for gpu in devices if gpu.mean_percent is not None)
    is_unread = all(part.summary.is_unread for part in parts)
    values = {
        "time": None if is_unread else seconds,
        "cpu_time": None if is_unread else cpu_seconds,
        "mean_cores": cpu_seconds / seconds if seconds > 0 else None,
        "peak_ram": at_most if at_least == at_most else None,
        "peak_gpu_ram": None if may_hold_more(counted) else _add_all([gpu.job_bytes for gpu in devices]),
        "gpu_utilization": sum(percents) / len(percents) if percents and are_known else None,
        "energy": None if unread else _add(gpu.energy_joules for gpu in devices),
    }
    machine_joules = add_joules(*(host.machine_joules for host in hosts))
    weighed = _list_weighed(parts, outer)
    own = [rank for rank in ranks if rank.name in weighed]
    # What a tracker within a rank has of its regions is that rank's; metrics are those of the innermost recording.
    balance = (*balance_ranks(own), *balance_regions(ranks))
    judged = [
        (rank.label, _leave_out_guesses(judge(by_name[rank.name].recording), state))
        for rank in list_worst(own, MOST_JUDGED)
    ]
    job = _describe_job(parts)._replace(state=judge_state(state, ended))
    is_lacking = bool(job.missing_ranks) and not _are_followed(parts, job.nodes)
    whole = Combined(
        values=values,
        ram_at_least_bytes=at_least,
        ram_at_most_bytes=at_most,
        hosts=_mark_least(hosts, ranks, is_lacking=is_lacking),
        ranks=ranks,
        balance=balance,
        notes=(
            *_describe_unread_gpus(unread),
            *describe_delay(balance, seconds),
            *dict.fromkeys(part.summary.elsewhere for part in counted if part.summary.elsewhere),
            *skipped,
            *_list_notes(parts, outer, cut, hosts),
        ),
        job=job,
        machine_joules=machine_joules,
        carbon=estimate_carbon(add_joules(values["energy"], machine_joules), factor),
        metrics=tuple(spread_metrics(ranks)),
        findings=join_findings(judged),
        at_least=_list_least(values, ranks, is_lacking=bool(cut) or is_lacking),
    )
    return whole, describe_end(ended, hosts)


def _describe_ranks(
    parts: Sequence[Part], outer: Mapping[str, str], cut: Mapping[str, Cut]
) -> Iterator[Rank]:
    """Each with all of its regions, and as a lower bound if it is without some of the time."""
    united = unite_regions(parts, outer)
    are_cut = {one.other for one in cut.values()}
    for part in parts:
        whole = part._replace(recording=united.recordings.get(part.name, part.recording))
        rank = describe_rank(whole, outer.get(part.name, ""))
        doubted = united.doubted.get(part.name, ())
        yield rank._replace(
            at_least=_list_all_least(rank) if part.name in are_cut else rank.at_least,
            doubted_regions=tuple(sorted("/".join(path) for path in doubted)),
        )


def _list_all_least(rank: Rank) -> tuple[str, ...]:
    """All that it may have used more of while another tracker of it was there."""
    return tuple(name for name in ("time", *OF_PROCESSES) if rank.values[name] is not None)


def _list_ended(parts: Sequence[Part], outer: Mapping[str, str]) -> list[Part]:
    """The recordings to judge its end by. Whoever starts ranks may not tell that one has failed; who follows a whole job never tells."""
    around = {part.name for part in parts if is_of_whole_job(part.recording.header)}
    return [
        part
        for part in parts
        if part.name not in outer
        or has_died(part)
        or (part.name not in around and outer[part.name] in around)
    ]


def _list_weighed(parts: Sequence[Part], outer: Mapping[str, str]) -> frozenset[str]:
    """The recordings to compare: the ranks, not whoever has started them, and what is part of no other where none is a rank."""
    ranked = {part.name for part in parts if part.recording.header.identity.rank is not None}
    if ranked:
        return frozenset(name for name in ranked if outer.get(name) not in ranked)
    return frozenset(part.name for part in parts if part.name not in outer)


def _leave_out_guesses(findings: Sequence[Finding], state: str | None) -> Sequence[Finding]:
    """Where the scheduler has told why it ended the job, nobody needs to ask who sent the signal."""
    if not tells_why(state):
        return findings
    return [one for one in findings if (one.rule, one.confidence) != (WHY_IT_DIED, POSSIBLE)]


def _are_followed(parts: Sequence[Part], nodes: int | None) -> bool:
    """Whether somebody has measured all of the job on each of its machines, ranks without a recording included."""
    hosts = {part.recording.header.host for part in parts}
    followed = {part.recording.header.host for part in parts if is_of_whole_job(part.recording.header)}
    return hosts == followed and len(followed) >= (nodes or 0)


def _list_least(
    values: Mapping[str, float | None], ranks: Sequence[Rank], *, is_lacking: bool
) -> tuple[str, ...]:
    """The figures that are lower bounds: those of any rank that counts or, if there is more of which nothing counts, of all."""
    counted = [rank for rank in ranks if not rank.part_of]
    least = {name for rank in counted for name in rank.at_least}
    if any(rank.ending == KILLED for rank in counted):
        least.update(_OF_CPU)  # until its last sample
    return tuple(name for name in OF_PROCESSES if values[name] is not None and (is_lacking or name in least))


def _mark_least(hosts: Sequence[Host], ranks: Sequence[Rank], *, is_lacking: bool) -> tuple[Host, ...]:
    """Machines on which more CPU time may have been used. Where a rank ran of which there is no recording nobody knows."""
    there = {
        rank.host
        for rank in ranks
        if not rank.part_of and (rank.ending == KILLED or "cpu_time" in rank.at_least)
    }
    return tuple(host._replace(is_cpu_least=is_lacking or host.name in there) for host in hosts)


def _combine_tasks(
    tasks: Mapping[str, Sequence[tuple[str, RecordingData]]],
    read_held: Callable[[RecordingData], HeldColumns],
    skipped: Sequence[str],
    state: str | None,
) -> Combined:
    """Each on its own."""
    combined = {name: _combine_one(some, read_held) for name, some in tasks.items()}
    wholes = {name: whole for name, (whole, _) in combined.items()}
    described = tuple(_describe_task(name, whole) for name, whole in wholes.items())
    ranks = tuple(rank for whole in wholes.values() for rank in whole.ranks)
    own = {
        name: (
            *describe_missing(whole.job.missing_ranks),
            *ends,
            *describe_delay(whole.balance, whole.values["time"] or 0.0),
        )
        for name, (whole, ends) in combined.items()
    }
    telling = [f"{name}: {note}" for name, some in own.items() for note in some]
    others = dict.fromkeys(
        note for name, whole in wholes.items() for note in whole.notes if note not in own[name]
    )
    more = len(telling) - _MOST_NAMED
    job = _describe_job(align([one for some in tasks.values() for one in some]))
    return Combined(
        values=dict.fromkeys(figure.name for figure in RUN),
        ram_at_least_bytes=None,
        ram_at_most_bytes=None,
        hosts=(),
        ranks=ranks,
        balance=(),
        notes=(
            *skipped,
            *describe_endings(described),
            *telling[:_MOST_NAMED],
            *([f"{count_of(more, 'more note')} on single runs: combine one of them."] if more > 0 else []),
            *others,
        ),
        # Of several lives of one job the scheduler tells how the last one ended.
        job=job._replace(ranks=None, missing_ranks=(), state=None if state is None else name_state(state)),
        tasks=described,
        spread=tuple(spread_tasks(described)),
    )


def _describe_task(name: str, whole: Combined) -> Task:
    ram = whole.values["peak_ram"]
    return Task(
        name,
        {**whole.values, "peak_ram": whole.ram_at_most_bytes if ram is None else ram},
        len(whole.ranks),
        find_worst_code(_list_codes(whole.ranks)),
        whole.job.state or "",
    )


def _list_codes(ranks: Sequence[Rank]) -> list[int | None]:
    """Those of processes; None of a whole job, if that is all there is."""
    return [rank.exit_code for rank in ranks if rank.pid != NO_PROCESS] or [None]


def _describe_unread_gpus(parts: Sequence[Part]) -> list[str]:
    """Sums over all devices would be without them."""
    names = join_some([name_rank(part) for part in parts], _MOST_NAMED)
    return [f"GPUs could not be measured by {names}: their sums are not known."] if parts else []


def count_ranks(identities: Sequence[Identity]) -> tuple[int | None, tuple[int, ...]]:
    """How many ranks there should be, and those of which there is no recording; of several jobs or attempts nobody knows.

    Where nobody tells how many there are, there are at least all below the last one that is known.
    """
    known = {one.rank for one in identities if one.rank is not None}
    sizes = {one.ranks for one in identities if one.ranks is not None}
    is_one = len(sizes) <= 1 and len({one.job for one in identities if one.job is not None}) <= 1
    size = sizes.pop() if is_one and sizes else None
    least = (max(known, default=-1) + 1 if size is None else size) if is_one else 0
    return size, tuple(rank for rank in range(min(least, _MOST_LISTED)) if rank not in known)


def _describe_job(parts: Sequence[Part]) -> Job:
    identities = [part.recording.header.identity for part in parts]
    size, missing = count_ranks(identities)
    jobs = tuple(sorted({f"{one.job}" for one in identities if one.job is not None}))
    return Job(
        scheduler=_find_same(one.scheduler for one in identities),
        jobs=jobs,
        name=_find_same(one.job_name for one in identities),
        nodes=_find_same(one.nodes for one in identities),
        ranks=size,
        missing_ranks=missing,
        array=_find_same(one.array_job for one in identities),
    )


def describe_missing(ranks: Sequence[int]) -> list[str]:
    """Which ranks have no recording, if there are any."""
    return [f"no recording of rank {join_some([str(rank) for rank in ranks], _MOST_NAMED)}"] if ranks else []


def _find_same(values: Iterable[Any]) -> Any:
    """What all have in common."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _add_all(values: Sequence[int | None]) -> int | None:
    """The sum if all are known, and there is one."""
    return None if None in values or not values else _add(values)


def _add(values: Iterable[float | None]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _list_notes(
    parts: Sequence[Part], outer: Mapping[str, str], cut: Mapping[str, Cut], hosts: Sequence[Host]
) -> list[str]:
    notes = []
    if any(host.ranks > 1 for host in hosts):
        notes.append(
            "Memory shared between recordings is not known: the sum of their RAM is an upper bound, "
            "the largest of them a lower bound."
        )
    for inner, other in list(outer.items())[:_MOST_NAMED]:
        notes.append(
            describe_cut(inner, cut[inner])
            if inner in cut
            else f"{inner} is part of {other}, which includes its processes; it is in no sum."
        )
    if len(outer) > _MOST_NAMED:
        notes.append(f"{len(outer) - _MOST_NAMED} more are part of others in the same way.")
    unfinished = {
        part.name: is_of_whole_job(part.recording.header) for part in parts if part.recording.end is None
    }
    incomplete = [name for name, is_followed in unfinished.items() if not is_followed]
    followed = [name for name, is_followed in unfinished.items() if is_followed and name not in outer]
    if incomplete:
        notes.append(f"Incomplete (killed or still running): {join_some(incomplete, _MOST_NAMED)}.")
    if followed:
        notes.append(f"Without what came after the last sample: {join_some(followed, _MOST_NAMED)}.")
    if any(parse_moment(part.recording.header.started_at) is None for part in parts):
        notes.append("Some recordings have no start time; they are taken to have started with the first.")
    if len(parts) > 1 and max(map(find_end, parts)) < _SHORT_SECONDS:
        notes.append(
            "Recordings are compared in steps of a second, so figures of so short a job are not precise."
        )
    latest, earliest_end = max(part.begin_seconds for part in parts), min(find_end(part) for part in parts)
    if latest > earliest_end:
        notes.append("These did not all run at the same time.")
    return notes
