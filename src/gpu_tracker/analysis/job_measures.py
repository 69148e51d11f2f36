"""A job of many ranks, reduced to what is compared, as if it were one run. Pure."""

from __future__ import annotations

import math

from ..core.figures import RUN
from .job import count_ranks, describe_missing
from .launches import find_runs
from .measures import OF_PROCESSES, UNKNOWN_OUTCOME, RunFigures, Subject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ..core.model import Identity, RecordingData
    from .job import Combined

# How a figure of a region is that of all ranks: the job waits for the slowest, and does the work of all.
_OF_REGIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "calls": sum,
    "cpu_time": sum,
    "mean_cores": sum,
}


def list_missing(recordings: Sequence[tuple[str, RecordingData]]) -> list[str]:
    """Of the jobs that these are ranks of: those that lack some, in words."""
    runs = find_runs(recordings)
    return describe_all_missing((runs[name], recording.header.identity) for name, recording in recordings)


def describe_all_missing(ranks: Iterable[tuple[tuple[str, ...] | None, Identity]]) -> list[str]:
    """The same of identities, each with the name of its job."""
    jobs: dict[tuple[str, ...], list[Identity]] = {}
    for job, identity in ranks:
        if job is not None:
            jobs.setdefault(job, []).append(identity)
    return [words for identities in jobs.values() for words in describe_missing(count_ranks(identities)[1])]


def join_ranks(whole: Combined, ranks: Sequence[RunFigures]) -> RunFigures:
    """One run, from the job as a whole and the figures of its ranks in their order."""
    values: dict[Subject, float | None] = {Subject(figure): whole.values[figure.name] for figure in RUN}
    ceilings: dict[Subject, float] = {}
    floors: dict[Subject, float] = {}
    estimates = _unite(rank.estimates for rank in ranks)
    (peak_ram,) = (subject for subject in values if subject.figure.name == "peak_ram")
    least, most = whole.ram_at_least_bytes, whole.ram_at_most_bytes
    if values[peak_ram] is None and most is not None and least is not None:
        # What ranks on one host share is not known, of this job as of any other: the sum is what they can be compared by.
        values[peak_ram], floors[peak_ram] = most, least
        estimates = (*estimates, "peak_ram")
    elif values[peak_ram] is None and least is not None:
        values[peak_ram], ceilings[peak_ram] = least, math.inf
    (peak_gpu_ram,) = (subject for subject in values if subject.figure.name == "peak_gpu_ram")
    if values[peak_gpu_ram] is not None and any(peak_gpu_ram in rank.ceilings for rank in ranks):
        floors[peak_gpu_ram], ceilings[peak_gpu_ram] = _bound_gpu_bytes(peak_gpu_ram, whole, ranks)
    (percent,) = (subject for subject in values if subject.figure.name == "gpu_utilization")
    if values[percent] is not None and any(percent in rank.ceilings for rank in ranks):
        floors[percent] = _find_end(percent, min, ranks, [rank.floors for rank in ranks])
        ceilings[percent] = _find_end(percent, max, ranks, [rank.ceilings for rank in ranks])
    at_least = _unite(rank.at_least for rank in ranks)
    ceilings.update((subject, math.inf) for subject in values if subject.figure.name in at_least)
    for subject in dict.fromkeys(
        subject for rank in ranks for subject in rank.values if subject not in values
    ):
        having = [rank for rank in ranks if subject in rank.values]
        _take(subject, having, values, ceilings, floors)
    began = [rank.began_seconds for rank in ranks if rank.began_seconds is not None]
    return RunFigures(
        values,
        ceilings,
        floors,
        began_seconds=min(began, default=None),
        program=", ".join(dict.fromkeys(rank.program for rank in ranks if rank.program)),
        host=", ".join(dict.fromkeys(rank.host for rank in ranks)),
        cores=sum(rank.cores for rank in ranks),
        ram_bytes=max(rank.ram_bytes for rank in ranks),
        failure=next((rank.failure for rank in ranks if rank.failure), ""),
        unmetered_seconds=max(rank.unmetered_seconds for rank in ranks),
        unutilized_seconds=max(rank.unutilized_seconds for rank in ranks),
        unheld_seconds=max(rank.unheld_seconds for rank in ranks),
        unread_seconds=max(rank.unread_seconds for rank in ranks),
        estimates=tuple(dict.fromkeys(estimates)),
        at_least=_unite([at_least, whole.at_least]),
        lacks_regions=any(rank.lacks_regions for rank in ranks),
        lacks_metrics=any(rank.lacks_metrics for rank in ranks),
        incomplete=next(iter(describe_missing(whole.job.missing_ranks)), ""),
        elsewhere=next((rank.elsewhere for rank in ranks if rank.elsewhere), ""),
        slurm_job=next((rank.slurm_job for rank in ranks if rank.slurm_job), None),
    )


def _bound_gpu_bytes(
    peak_gpu_ram: Subject, whole: Combined, ranks: Sequence[RunFigures]
) -> tuple[float, float]:
    """What all ranks held at least and at most together: no less than one of them, no more than all processes there."""
    known = [(rank, rank.values[peak_gpu_ram] or 0.0) for rank in ranks]
    least = max(rank.floors.get(peak_gpu_ram, value) for rank, value in known)
    most = sum(rank.ceilings.get(peak_gpu_ram, value) for rank, value in known)
    used = [gpu.used_bytes for host in whole.hosts for gpu in host.gpus]
    is_shared = math.isfinite(most) and None not in used
    return least, min(most, sum(size or 0 for size in used)) if is_shared else most


def _find_end(
    subject: Subject,
    choose: Callable[[list[float]], float],
    ranks: Sequence[RunFigures],
    bounds: Sequence[Mapping[Subject, float]],
) -> float:
    """The lowest or highest that any rank may have had."""
    every = [some.get(subject, rank.values[subject]) for rank, some in zip(ranks, bounds, strict=True)]
    return choose([value for value in every if value is not None])


def add_inner(whole: RunFigures, inner: Sequence[RunFigures], missing: Sequence[str]) -> RunFigures:
    """A run with what only the recordings that are part of it tell: that one failed or is missing, their regions and metrics.

    Its other figures include theirs. `missing` says in words which have none.
    """
    values, ceilings, floors = dict(whole.values), dict(whole.ceilings), dict(whole.floors)
    told = [
        subject for one in inner for subject in one.values if subject.region or subject.metric is not None
    ]
    for subject in dict.fromkeys(told):
        having = [one for one in (whole, *inner) if subject in one.values]
        _take(subject, having, values, ceilings, floors)
    failures = (one.failure for one in inner if one.failure not in ("", UNKNOWN_OUTCOME))
    return whole._replace(
        values=values,
        ceilings=ceilings,
        floors=floors,
        failure=whole.failure or next((f"a recorded part of it: {failure}" for failure in failures), ""),
        lacks_regions=any(one.lacks_regions for one in (whole, *inner)),
        lacks_metrics=any(one.lacks_metrics for one in (whole, *inner)),
        incomplete=whole.incomplete or "; ".join(missing),
    )


def doubt_rest(whole: RunFigures, inner: Sequence[RunFigures] = ()) -> RunFigures:
    """A run some of whose time is only in recordings that are not counted: there may be more of everything.

    It used at least what those did that are `inner` parts of it.
    """
    names = ("time", *OF_PROCESSES)
    own = [
        subject
        for subject in whole.values
        if subject == Subject(subject.figure) and subject.figure.name in names
    ]
    known = {
        subject: max(
            (value for value in (whole.values[subject], _add_up(subject, inner)) if value is not None),
            default=None,
        )
        for subject in own
    }
    return whole._replace(
        values={**whole.values, **known},
        ceilings={**whole.ceilings, **dict.fromkeys(own, math.inf)},
        at_least=tuple(dict.fromkeys((*whole.at_least, *names))),
    )


def doubt_regions(whole: RunFigures, paths: Collection[tuple[str, ...]]) -> RunFigures:
    """A run of which some calls of these regions may be missing."""
    least = (subject for subject in whole.values if subject.region in paths)
    return whole._replace(ceilings={**whole.ceilings, **dict.fromkeys(least, math.inf)}) if paths else whole


def _add_up(subject: Subject, inner: Sequence[RunFigures]) -> float | None:
    """What parts of a run used of something at least: CPU time adds up, of the rest one of them may have had all."""
    known = [value for one in inner if (value := one.values.get(subject)) is not None]
    if not known:
        return None
    return sum(known) if subject.figure.name == "cpu_time" else max(known)


def _take(
    subject: Subject,
    having: Sequence[RunFigures],
    values: dict[Subject, float | None],
    ceilings: dict[Subject, float],
    floors: dict[Subject, float],
) -> None:
    """Take a figure of those that have it as one."""
    found = [one.values[subject] for one in having]
    values[subject] = _join(subject, found)
    if (bounds := _bound_metric(subject, found)) is not None:
        floors[subject], ceilings[subject] = bounds
        return
    for joined, every in (
        (ceilings, [one.ceilings for one in having]),
        (floors, [one.floors for one in having]),
    ):
        ends = [some.get(subject, value) for some, value in zip(every, found, strict=True)]
        end = _join(subject, ends)
        if end is not None and any(subject in some for some in every):
            joined[subject] = end


def _bound_metric(subject: Subject, found: Sequence[float | None]) -> tuple[float, float] | None:
    """The smallest and largest value that a metric ended with, if they differ."""
    known = {value for value in found if value is not None and math.isfinite(value)}
    return (min(known), max(known)) if subject.metric is not None and len(known) > 1 else None


def _join(subject: Subject, found: Sequence[float | None]) -> float | None:
    """A metric is that of the first rank that has logged it, unless one is not a number. A figure that one rank lacks is unknown for the job."""
    known = [value for value in found if value is not None]
    if subject.metric is not None:
        return next((value for value in known if not math.isfinite(value)), found[0])
    return _OF_REGIONS.get(subject.figure.name, max)(known) if len(known) == len(found) else None


def _unite(names: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for some in names for name in some))
