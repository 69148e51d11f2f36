"""Regions and metrics of a recording, combined over processes and threads. Pure."""

from __future__ import annotations

import math
from itertools import pairwise

from ..core.calls import ENTERING_SECONDS, SWITCHING_SECONDS
from ..core.model import ESTIMATE, EXACT, INTEGRATED, MOST_METRICS, SAMPLED, SHARED, MetricTotals
from ..core.units import AS_GOOD_AS, humanize_seconds
from ..core.values import NamedTuple
from .summary import find_missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Set as AbstractSet
    from typing import Any

    from ..core.columns import Column
    from ..core.model import Call, RecordingData, RegionGaps, RegionTotals


_MOST_COUNTED = 10_000  # regions that a process refuses
_UNSEEN_ENDS = ("ended", "abandoned", "tracker killed")
_NOTABLE_COST = 0.02
_LEAST_COST_SECONDS = 0.05
# From this part on, what is divided makes an estimate of energy.
_DIVIDED_SHARE = 0.1
# Drivers sample a few times a second: the last sample of a run is missing.
_LATE_SAMPLE_SECONDS = 0.25


class PeakCall(NamedTuple):
    """The call of a region that had the peak."""

    pid: int
    start_seconds: float
    number: int | None = None
    """Among the calls in its process, counted from 1 as they end; None if the call is not kept or has not ended."""
    end_seconds: float | None = None


class Region(NamedTuple):
    """One region over all processes and threads. None is not known."""

    path: tuple[str, ...]
    processes: int
    calls: int
    open_calls: int
    """Entered and never left; their time counts up to the last reading, but not in the mean and the extremes."""
    wall_seconds: float
    """Over all calls: two processes inside for a second each make two seconds."""
    mean_seconds: float | None
    min_seconds: float | None
    max_seconds: float | None
    std_seconds: float | None
    own_wall_seconds: float
    cpu_seconds: float
    own_cpu_seconds: float
    cpu_basis: str
    """Shared if part of the CPU time may be other code's, or went to entering regions; sampled, a lower bound, if a process ended inside."""
    entry_ram_bytes: int | None
    """This and the next two are of the process with the highest peak."""
    exit_ram_bytes: int | None
    peak_ram_bytes: int | None
    peak_ram_basis: str
    gpu_bytes: int | None
    """The peak of the job on all devices together."""
    gpu_percent: float | None
    energy_joules: float | None
    energy_basis: str
    """Sampled: what was drawn between two readings is divided by time. An estimate where that is more than a tenth of it, or where several
    processes were inside at once: the energy is then counted once."""
    first_seconds: float | None
    last_seconds: float | None
    peak_ram_call: PeakCall | None = None
    gpu_call: PeakCall | None = None
    """The call that had the peak of GPU memory."""
    own_cpu_basis: str = EXACT
    """Shared also if what the regions inside took off is, or if other code may have gone on unnoticed in the middle: the whole may be exact."""
    switches: int = 0
    """How often its code was suspended, or went on in the middle of a call, where that is followed."""
    gpu_unknown_seconds: float = 0.0
    """How long it was open while utilization was not known: its mean is without that time. 0 if that is not notable."""
    gpu_seconds: float = 0.0
    """How long it was open while that was known."""
    energy_least_joules: float | None = None
    """This and the next: within these bounds the energy was divided."""
    energy_most_joules: float | None = None


class Metric(NamedTuple):
    """One metric that the job logged, over the whole run."""

    name: str
    logged: int
    last: float | None
    """None if the last value was nan or inf."""
    minimum: float | None
    maximum: float | None
    mean: float | None
    not_finite: int
    """How many were nan or inf; they are in no figure."""
    last_not_finite: str = ""
    """`nan`, `inf` or `-inf` if that was the last value."""


def summarize_regions(recording: RecordingData) -> tuple[Region, ...]:
    """Every region, by first entry."""
    parts: dict[tuple[str, ...], list[RegionTotals]] = {}
    for region in recording.regions:
        parts.setdefault(region.path, []).append(region)
    calls: dict[tuple[str, ...], list[Call]] = {}
    for call in recording.calls:
        calls.setdefault(call.path, []).append(call)
    summaries = [_summarize_region(path, totals, calls.get(path, ())) for path, totals in parts.items()]
    if any(event.kind == INTEGRATED for event in recording.events):
        summaries = [
            region._replace(energy_basis=region.energy_basis if region.energy_joules is None else ESTIMATE)
            for region in summaries
        ]
    # What an open call used after the last reading is missing.
    if recording.end is None or recording.end.reason in _UNSEEN_ENDS:
        summaries = [
            region._replace(cpu_basis=SAMPLED) if region.open_calls and region.cpu_basis == EXACT else region
            for region in summaries
        ]
    doubted = {region.path[:-1] for region in summaries if region.cpu_basis == SHARED}
    return tuple(sorted((_label_own(region, doubted) for region in summaries), key=_order))


def _label_own(region: Region, doubted: AbstractSet[tuple[str, ...]]) -> Region:
    is_doubted = region.own_cpu_basis == SHARED or region.path in doubted
    return region._replace(own_cpu_basis=SHARED if is_doubted else region.cpu_basis)


def find_outside_seconds(recording: RecordingData) -> float | None:
    """How long the job was in none of its regions. None without regions, and where calls may have overlapped."""
    outermost = [region for region in recording.regions if len(region.path) == 1]
    inside = sum(region.wall_seconds for region in outermost)
    outside = recording.totals.at_seconds - inside
    is_known = len({region.pid for region in outermost}) == 1 and outside >= 0
    return outside if is_known else None


def describe_cost(regions: Sequence[Region], cpu_seconds: float) -> list[str]:
    """What entering, leaving and suspending regions took, if that is a notable part of the job's CPU time."""
    calls = sum(region.calls for region in regions)
    switches = sum(region.switches for region in regions)
    cost = calls * ENTERING_SECONDS + switches * SWITCHING_SECONDS
    if cost < max(_LEAST_COST_SECONDS, _NOTABLE_COST * cpu_seconds):
        return []
    suspended = f", and their code was suspended {switches:,} times" if switches else ""
    followed = "following that" if switches else "entering and leaving them"
    return [
        f"Regions were entered {calls:,} times{suspended}: about {humanize_seconds(cost)} of the CPU time went to {followed}. "
        "That is in the figures of the regions and of those around them; fewer, longer regions cost less."
    ]


def describe_gaps(gaps: RegionGaps) -> list[str]:
    """What is missing among the regions, in a sentence for their names and one for whole processes."""
    names = []
    if gaps.long_names:
        names.append(f"{gaps.long_names} too long, shortened to the beginning and a digest")
    if gaps.refused_regions:
        least = "at least " if gaps.refused_regions >= _MOST_COUNTED else ""
        where = f" in {gaps.refusing_processes} processes" if gaps.refusing_processes > 1 else ""
        names.append(
            f"{least}{gaps.refused_regions} too many{where}, not recorded: a process can have 1000 regions, 100 of them inside "
            "each other, so do not put a changing value into a name"
        )
    notes = [f"Names of regions: {'; '.join(names)}."] if names else []
    if gaps.unfollowed_processes:
        processes = (
            "1 process" if gaps.unfollowed_processes == 1 else f"{gaps.unfollowed_processes} processes"
        )
        notes.append(f"Regions of {processes} could not be followed: their files could not be created.")
    if gaps.lost_metrics:
        calls = "1 call" if gaps.lost_metrics == 1 else f"{gaps.lost_metrics} calls"
        notes.append(f"Metrics of {calls} of log could not be recorded: there was no room for them.")
    if gaps.refused_metrics:
        is_one = gaps.refused_metrics == 1
        numbers = "1 number was" if is_one else f"{gaps.refused_metrics:,} numbers were"
        notes.append(
            f"Names of metrics: too many, so {numbers} not recorded: a job can have {MOST_METRICS:,} metrics, "
            "so do not put a changing value into a name."
        )
    return notes


def summarize_metrics(recording: RecordingData) -> tuple[Metric, ...]:
    """Every metric, by name."""
    known: dict[str, Metric] = {}
    if any(True for _ in recording.metrics):  # most jobs log none; counting them would read all
        from .logged import collect

        metrics = collect(recording.metrics).metrics
        known.update((name, _summarize_column(name, *columns)) for name, columns in metrics.items())
    known.update((totals.name, _summarize_metric(totals)) for totals in recording.metric_totals)
    return tuple(known[name] for name in sorted(known))


def _order(region: Region) -> tuple[float, tuple[str, ...]]:
    return (math.inf if region.first_seconds is None else region.first_seconds, region.path)


def _summarize_region(path: tuple[str, ...], parts: Sequence[RegionTotals], single: Sequence[Call]) -> Region:
    calls = sum(part.calls for part in parts)
    wall = sum(part.wall_seconds for part in parts)
    finished = wall - sum(part.open_wall_seconds for part in parts)
    shortest = _least(part.shortest_seconds for part in parts)
    longest = _most(part.longest_seconds for part in parts)
    mean = _mean_seconds(finished, calls, shortest, longest)
    largest = max(parts, key=lambda part: (part.peak_ram_bytes or part.exit_ram_bytes or 0, -part.pid))
    gpu_seconds = sum(part.gpu_seconds for part in parts)
    unknown_seconds = sum(part.gpu_unknown_seconds or 0.0 for part in parts)
    energy = _energy(parts)
    fullest = max(parts, key=lambda part: (part.gpu_bytes or 0, -part.pid))
    largest, peak_call = _find_peak(largest, single)
    ram_bases = {part.peak_ram_basis for part in parts if part.calls or part.open_calls}
    cpu_bases = {part.cpu_basis for part in parts}
    return Region(
        path=path,
        # A process forked inside a region did not enter it itself.
        processes=len({part.pid for part in parts if part.calls or part.open_calls}),
        calls=calls,
        open_calls=sum(part.open_calls for part in parts),
        wall_seconds=wall,
        mean_seconds=mean,
        min_seconds=shortest,
        max_seconds=longest,
        std_seconds=_deviation(sum(part.squared_seconds for part in parts), calls, mean),
        own_wall_seconds=sum(part.own_wall_seconds for part in parts),
        cpu_seconds=sum(part.cpu_seconds for part in parts),
        own_cpu_seconds=sum(part.own_cpu_seconds for part in parts),
        cpu_basis=next((basis for basis in (SHARED, SAMPLED) if basis in cpu_bases), EXACT),
        entry_ram_bytes=largest.entry_ram_bytes,
        exit_ram_bytes=largest.exit_ram_bytes,
        peak_ram_bytes=largest.peak_ram_bytes,
        # A process of which less is known may have been the largest.
        peak_ram_basis=SAMPLED if SAMPLED in ram_bases else largest.peak_ram_basis,
        gpu_bytes=_most(part.gpu_bytes for part in parts),
        gpu_percent=sum(part.gpu_percent_seconds for part in parts) / gpu_seconds
        if gpu_seconds > 0
        else None,
        energy_joules=energy.joules,
        energy_basis=energy.basis,
        first_seconds=_least(part.first_seconds for part in parts),
        last_seconds=_most(part.last_seconds for part in parts),
        peak_ram_call=peak_call,
        gpu_call=_find_call(fullest.pid, fullest.gpu_bytes_call_seconds, single),
        own_cpu_basis=SHARED if any(part.own_cpu_basis == SHARED for part in parts) else EXACT,
        switches=sum(part.switches for part in parts),
        gpu_unknown_seconds=find_missing(gpu_seconds, gpu_seconds + unknown_seconds, _LATE_SAMPLE_SECONDS),
        gpu_seconds=gpu_seconds,
        energy_least_joules=energy.least_joules,
        energy_most_joules=energy.most_joules,
    )


def _find_peak(largest: RegionTotals, single: Sequence[Call]) -> tuple[RegionTotals, PeakCall | None]:
    """The process with the peak, and the call: a process may have seen more in one of its calls than was sampled."""
    calls = [call for call in single if call.peak_ram_bytes is not None]
    top = max(calls, key=lambda call: call.peak_ram_bytes or 0, default=None)
    known = largest.peak_ram_bytes or 0
    if top is None or ((top.peak_ram_bytes or 0) < known and largest.peak_ram_call_seconds is not None):
        return largest, _find_call(largest.pid, largest.peak_ram_call_seconds, single)
    if (top.peak_ram_bytes or 0) < known * AS_GOOD_AS:
        return largest, None  # it was in a call that was not read
    if (top.peak_ram_bytes or 0) > known:
        # That call may not have been the largest.
        basis = EXACT if largest.peak_ram_basis == top.peak_ram_basis == EXACT else SAMPLED
        largest = largest._replace(peak_ram_bytes=top.peak_ram_bytes, peak_ram_basis=basis)
    return largest, PeakCall(top.pid, top.start_seconds, top.number, top.end_seconds)


def _find_call(pid: int, start_seconds: float | None, single: Sequence[Call]) -> PeakCall | None:
    """The call that began then; what else is known of it, if it is kept."""
    if start_seconds is None:
        return None
    for call in single:
        if (call.pid, call.start_seconds) == (pid, start_seconds) and call.number:
            return PeakCall(pid, start_seconds, call.number, call.end_seconds)
    return PeakCall(pid, start_seconds)


def _mean_seconds(wall: float, calls: int, shortest: float | None, longest: float | None) -> float | None:
    """Recursive calls are counted but not timed again, so the plain mean may be below the shortest call."""
    if not calls:
        return None
    mean = wall / calls
    if shortest is None or longest is None:
        return mean
    return min(max(mean, shortest), longest)


def _deviation(squares: float, calls: int, mean: float | None) -> float | None:
    if mean is None:
        return None
    if calls == 1:
        return 0.0
    # Rounding may leave a tiny negative number.
    return math.sqrt(max(0.0, squares / calls - mean * mean))


class _Energy(NamedTuple):
    joules: float | None
    basis: str
    least_joules: float | None = None
    """This and the next: None if not known."""
    most_joules: float | None = None


def _energy(parts: Sequence[RegionTotals]) -> _Energy:
    """Each process counts all energy drawn while it was inside, so only calls at different times add up."""
    known = [part for part in parts if part.energy_joules is not None]
    if not known:
        return _Energy(None, SAMPLED)
    joules, least, most = (
        [getattr(part, figure) for part in known]
        for figure in ("energy_joules", "energy_least_joules", "energy_most_joules")
    )
    if _never_overlap(known):
        total = sum(joules)
        bounds = (None, None) if None in least or None in most else (sum(least), sum(most))
        is_divided = bounds[0] is not None and total - bounds[0] > _DIVIDED_SHARE * total
        return _Energy(total, ESTIMATE if is_divided else SAMPLED, *bounds)
    bounds = (None, None) if None in least or None in most else (max(least), sum(most))
    return _Energy(max(joules), ESTIMATE, *bounds)


def _never_overlap(parts: Sequence[RegionTotals]) -> bool:
    spans = sorted((part.first_seconds or 0.0, _end(part)) for part in parts)
    return all(before[1] <= after[0] for before, after in pairwise(spans))


def _end(part: RegionTotals) -> float:
    return math.inf if part.last_seconds is None or part.open_calls else part.last_seconds


def _summarize_column(name: str, at_seconds: Column, values: Column) -> Metric:
    # The last is by time, not by position: processes write in batches.
    newest = len(values) - 1 - at_seconds[::-1].index(max(at_seconds))
    total = sum(values)
    finite: Sequence[float] = values
    if not math.isfinite(total):
        finite = [value for value in values if math.isfinite(value)]
        total = sum(finite)
    return _summarize_metric(
        MetricTotals(
            name=name,
            logged=len(values),
            not_finite=len(values) - len(finite),
            sum=total,
            minimum=min(finite, default=None),
            maximum=max(finite, default=None),
            last=values[newest],
            last_seconds=at_seconds[newest],
        )
    )


def _summarize_metric(totals: MetricTotals) -> Metric:
    finite = totals.logged - totals.not_finite
    return Metric(
        name=totals.name,
        logged=totals.logged,
        last=totals.last if math.isfinite(totals.last) else None,
        minimum=totals.minimum,
        maximum=totals.maximum,
        mean=totals.sum / finite if finite and math.isfinite(totals.sum) else None,
        not_finite=totals.not_finite,
        last_not_finite="" if math.isfinite(totals.last) else str(float(totals.last)),
    )


def _least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _most(values: Iterable[int | None] | Iterable[float | None]) -> Any:
    return max((value for value in values if value is not None), default=None)
