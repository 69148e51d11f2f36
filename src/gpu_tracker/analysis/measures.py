"""The figures of a recording that are compared, listed and checked against limits. Pure."""

from __future__ import annotations

import math
from types import MappingProxyType

from ..core.figures import LAST_METRIC, REGION, RUN, Figure
from ..core.model import ESTIMATE, EXACT, SAMPLED
from ..core.moments import parse_moment
from ..core.values import NamedTuple
from .endings import describe_cut_off, find_ending
from .regions import summarize_metrics, summarize_regions
from .summary import (
    doubt_held,
    find_unlisted_seconds,
    find_unmetered_seconds,
    find_unutilized_seconds,
    is_known_enough,
    is_ram_least,
    is_read_enough,
    percent_of,
    summarize,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.model import RecordingData
    from .regions import Region
    from .summary import GpuSummary, Summary

UNKNOWN_OUTCOME = "exit code not known"
NO_END = "no end: killed, or still running"
# What is measured of processes and of the devices they use: of work that others did, nothing.
OF_PROCESSES = ("cpu_time", "mean_cores", "peak_ram", "peak_gpu_ram", "energy")


class Subject(NamedTuple):
    """What a number is about: the whole run, a region (by path), or the last value of a metric (by name)."""

    figure: Figure
    region: tuple[str, ...] = ()
    metric: str | None = None


class SlurmJob(NamedTuple):
    """What tells a job from others of the same number."""

    job: str
    name: str | None
    began_seconds: float | None
    """When it was there, since 1970."""


class RunFigures(NamedTuple):
    """One recording, reduced to what is compared. An unknown figure is None; a metric may be nan."""

    values: dict[Subject, float | None]
    ceilings: Mapping[Subject, float] = MappingProxyType({})
    """What a figure may have been at most, where its value may be less."""
    floors: Mapping[Subject, float] = MappingProxyType({})
    """What it was at least, where its value may be more."""
    host: str = ""
    program: str = ""
    """The name of what it ran, where that is known."""
    began_seconds: float | None = None
    """Since 1970, by the clock of its host."""
    cores: float = 0.0
    ram_bytes: int = 0
    failure: str = ""
    """Why it is no successful run: it failed, was killed, has no end or nobody knows."""
    unmetered_seconds: float = 0.0
    """How much of its time the energy is without, if that is notable."""
    unutilized_seconds: float = 0.0
    """The same of GPU utilization."""
    unheld_seconds: float = 0.0
    """The same of peak GPU RAM."""
    unread_seconds: float = 0.0
    """The same of peak RAM, if it may have been higher then."""
    estimates: tuple[str, ...] = ()
    """The names of the figures of the whole run that are estimates, or means over a part of it."""
    at_least: tuple[str, ...] = ()
    """Of those that may have been more, because they are without some of the time."""
    lacks_regions: bool = False
    """Whether some of its regions, or those of some of its processes, could not be recorded."""
    lacks_metrics: bool = False
    """The same of metrics."""
    incomplete: str = ""
    """Which parts of a job have no recording, so that its figures are without them."""
    elsewhere: str = ""
    """Who had work done elsewhere, in a sentence, so that its figures are without that."""
    slurm_job: SlurmJob | None = None
    """Of which it is, if only Slurm knows how it ended."""


def measure(recording: RecordingData) -> RunFigures:
    """The figures of one recording."""
    header = recording.header
    values: dict[Subject, float | None] = {}
    summary = summarize(recording)
    at_least = list_lower_bounds(summary, find_ending(recording))
    whole, ceilings = overall_values(summary), find_ceilings(summary)
    floors: dict[str, float] = {}
    if (held := _bound_gpu_bytes(summary)) is not None:
        floors["peak_gpu_ram"], ceilings["peak_gpu_ram"] = held
    ceilings.update((name, math.inf) for name in at_least)
    if (bounds := _bound_gpu_percent(summary)) is not None:
        floors["gpu_utilization"], ceilings["gpu_utilization"] = bounds
    for figure in RUN:
        values[Subject(figure)] = whole[figure.name]
    most = {Subject(figure): ceilings[figure.name] for figure in RUN if figure.name in ceilings}
    least = {Subject(figure): floors[figure.name] for figure in RUN if figure.name in floors}
    for region in summarize_regions(recording):
        of_region = _region_values(region)
        most_of_region = (
            dict.fromkeys(OF_PROCESSES, math.inf)
            if summary.elsewhere
            else _find_region_ceilings(region, whole, ceilings)
        )
        # An estimate may be anything.
        least_of_region = {name: 0.0 for name in most_of_region if name in floors}
        _bound_divided(region, least_of_region, most_of_region)
        for figure in REGION:
            subject = Subject(figure, region.path)
            values[subject] = of_region[figure.name]
            if figure.name in most_of_region:
                most[subject] = most_of_region[figure.name]
            if figure.name in least_of_region:
                least[subject] = least_of_region[figure.name]
    for metric in summarize_metrics(recording):
        values[Subject(LAST_METRIC, metric=metric.name)] = math.nan if metric.last is None else metric.last
    return RunFigures(
        values,
        ceilings=most,
        floors=least,
        host=header.host,
        began_seconds=parse_moment(header.started_at),
        cores=header.allocation.cores,
        ram_bytes=header.allocation.ram_bytes,
        failure=find_failure(recording),
        unmetered_seconds=max(
            (find_unmetered_seconds(gpu, summary.seconds) for gpu in _list_metered(summary)), default=0.0
        ),
        unutilized_seconds=find_most_unutilized_seconds(summary),
        unheld_seconds=_find_unheld_seconds(summary),
        unread_seconds=summary.unread_seconds if "peak_ram" in at_least else 0.0,
        at_least=at_least,
        estimates=list_estimates(summary),
        lacks_regions=bool(recording.gaps.unfollowed_processes or recording.gaps.refused_regions),
        lacks_metrics=bool(recording.gaps.lost_metrics or recording.gaps.refused_metrics),
        elsewhere=summary.elsewhere,
        slurm_job=find_slurm_job(recording),
    )


def find_failure(recording: RecordingData) -> str:
    """Why a run is no successful one; empty if it is."""
    end = recording.end
    if end is None:
        return NO_END
    if end.exit_code:
        return f"exit code {end.exit_code}" if end.exit_code > 0 else f"killed by signal {-end.exit_code}"
    if end.reason in ("ended", "exited"):
        return UNKNOWN_OUTCOME if end.exit_code is None else describe_cut_off(recording)
    return describe_cut_off(recording) if end.reason == "stopped" else str(end.reason)


def find_slurm_job(recording: RecordingData) -> SlurmJob | None:
    """The job that Slurm has to be asked about: nobody has seen the exit code of what ended well by its own account."""
    identity, end = recording.header.identity, recording.end
    if identity.scheduler != "slurm" or identity.job is None or end is None or end.reason != "stopped":
        return None
    return SlurmJob(identity.job, identity.job_name, parse_moment(recording.header.started_at))


def overall_values(summary: Summary) -> dict[str, float | None]:
    """The figures of a whole run, by name. One that ended before its first reading has no time: it was not 0."""
    values = {
        "time": None if summary.is_unread else summary.seconds,
        "cpu_time": None if summary.is_unread else summary.cpu.combined.seconds,
        "mean_cores": _to_cores(summary.cpu.combined.mean_percent),
        "peak_ram": summary.ram.combined.total_bytes or None,
        "peak_gpu_ram": _peak_gpu_bytes(summary),
        "gpu_utilization": _gpu_percent(summary),
        "energy": _energy(summary),
    }
    return {name: _known(value) for name, value in values.items()}


def list_estimates(summary: Summary) -> tuple[str, ...]:
    """The names of the figures of a whole run that are estimates, or means over a part of it."""
    return (
        *(["peak_ram"] if summary.ram.combined.basis == ESTIMATE else []),
        *(["peak_gpu_ram"] if doubt_held(summary.gpus, summary.seconds).basis == ESTIMATE else []),
        *(["gpu_utilization"] if find_most_unutilized_seconds(summary) else []),
    )


def find_most_unutilized_seconds(summary: Summary) -> float:
    """How much of the time the utilization of a device is without, of those that count; 0 if that is not notable."""
    known = [gpu for gpu in summary.gpus if gpu.is_expected and gpu.mean_percent is not None]
    return max((find_unutilized_seconds(gpu, summary.seconds) for gpu in known), default=0.0)


def list_lower_bounds(summary: Summary, ending: str) -> tuple[str, ...]:
    """The names of those that may have been more, because they are without some of the time, or of the work."""
    if summary.elsewhere:
        values = overall_values(summary)
        return tuple(name for name in OF_PROCESSES if values[name] is not None)
    return (
        *(["cpu_time", "mean_cores"] if summary.is_cpu_least else []),
        *(["peak_ram"] if is_ram_least(summary, ending) else []),
        *(["peak_gpu_ram"] if _find_unheld_seconds(summary) else []),
        *(
            ["energy"]
            if any(find_unmetered_seconds(gpu, summary.seconds) for gpu in _list_metered(summary))
            else []
        ),
    )


def _find_unheld_seconds(summary: Summary) -> float:
    doubt = doubt_held(
        (gpu for gpu in summary.gpus if gpu.may_be_used and gpu.basis != EXACT), summary.seconds
    )
    return 0.0 if _peak_gpu_bytes(summary) is None else doubt.unheld_seconds


def find_ceilings(summary: Summary) -> dict[str, float]:
    """By name, what figures may have been at most of which only a part was measured, or shared memory not often enough."""
    peak, ceiling = summary.ram.combined, summary.ram_ceiling_bytes
    unbounded = dict.fromkeys(("cpu_time", "mean_cores"), math.inf) if summary.is_cpu_least else {}
    if not is_read_enough(summary.seconds - summary.unread_seconds, summary.seconds):
        return {**unbounded, "peak_ram": math.inf, "peak_gpu_ram": math.inf}
    if summary.has_lost_children or summary.is_end_unseen or summary.has_begun_late:
        unbounded["peak_ram"] = math.inf
    return {
        **({"peak_ram": ceiling} if peak.basis == ESTIMATE and ceiling else {}),
        **unbounded,
        **({} if _is_gpu_ram_known(summary) else {"peak_gpu_ram": math.inf}),
    }


def _peak_gpu_bytes(summary: Summary) -> int | None:
    """The peak on all devices together; with estimates, the sum of the peaks: whoever shows that says so."""
    if summary.has_unread_gpus or not any(gpu.basis == ESTIMATE for gpu in summary.gpus):
        return summary.gpu_bytes.combined
    if any(gpu.may_hold_unseen for gpu in summary.gpus):
        return None
    return sum(gpu.job_bytes.combined or 0 for gpu in summary.gpus if gpu.may_be_used)


def _bound_gpu_bytes(summary: Summary) -> tuple[float, float] | None:
    """What the job held on all devices at least and at most, if some of it is not told; None if it is, or nothing is known.

    What others give back hides what the job takes, so that memory need not grow by it; but all processes together held no less.
    """
    gpus = [gpu for gpu in summary.gpus if gpu.may_be_used]
    is_told = not any(_is_held_unlisted(gpu, summary.seconds) for gpu in gpus)
    if is_told or _peak_gpu_bytes(summary) is None:
        return None
    return summary.gpu_bytes.combined or 0.0, sum(_find_most_held(gpu, summary.seconds) for gpu in gpus)


def _find_most_held(gpu: GpuSummary, seconds: float) -> float:
    if not _is_held_unlisted(gpu, seconds):
        return gpu.job_bytes.combined or 0.0
    return math.inf if gpu.used_bytes is None else gpu.used_bytes


def _is_held_unlisted(gpu: GpuSummary, seconds: float) -> bool:
    """Whether the job may have held more than what is known of it: its driver does not list processes, or did not for a while."""
    is_partly_listed = gpu.may_have_been_unlisted or find_unlisted_seconds(gpu, seconds) > 0
    return gpu.basis == ESTIMATE or (gpu.basis != EXACT and is_partly_listed)


def _is_gpu_ram_known(summary: Summary) -> bool:
    """Whether its peak is that of most of the run, on every device that the job may use."""
    return all(
        gpu.basis == EXACT or is_read_enough(summary.seconds - gpu.job_bytes_unknown_seconds, summary.seconds)
        for gpu in summary.gpus
        if gpu.may_be_used
    )


def _to_cores(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def _known(value: float | None) -> float | None:
    """A file may contain nan, which does not compare."""
    return value if value is not None and math.isfinite(value) else None


def _gpu_percent(summary: Summary) -> float | None:
    """None if a device did not report it for most of the time."""
    known = [gpu for gpu in summary.gpus if gpu.is_expected and gpu.mean_percent is not None]
    is_enough = all(is_known_enough(gpu.utilization_seconds, summary.seconds) for gpu in known)
    if summary.has_unread_gpus or not is_enough:
        return None
    return sum(gpu.mean_percent or 0.0 for gpu in known) / len(known) if known else None


def _bound_gpu_percent(summary: Summary) -> tuple[float, float] | None:
    """What the utilization was at least and at most if it is not known all the time; None if it is, or is not known at all."""
    known = [gpu for gpu in summary.gpus if gpu.is_expected and gpu.mean_percent is not None]
    missing = [find_unutilized_seconds(gpu, summary.seconds) / summary.seconds for gpu in known]
    if not any(missing):
        return None
    least = [(gpu.mean_percent or 0.0) * (1 - share) for gpu, share in zip(known, missing, strict=True)]
    return sum(least) / len(known), (sum(least) + 100 * sum(missing)) / len(known)


def _energy(summary: Summary) -> float | None:
    known = _list_metered(summary)
    is_enough = all(is_read_enough(gpu.energy_seconds, summary.seconds) for gpu in known)
    is_whole = len(known) == sum(gpu.is_expected for gpu in summary.gpus)
    if summary.has_unread_gpus or not is_enough or not is_whole:
        return None
    return sum(gpu.energy_joules or 0.0 for gpu in known) if known else None


def _list_metered(summary: Summary) -> list[GpuSummary]:
    return [gpu for gpu in summary.gpus if gpu.is_expected and gpu.energy_joules is not None]


def _find_region_ceilings(
    region: Region, whole: Mapping[str, float | None], ceilings: Mapping[str, float]
) -> dict[str, float]:
    """What a region may have used at most, where what was measured of it may be less: no more than the whole run."""
    found = dict.fromkeys(("cpu_time", "mean_cores"), math.inf) if region.cpu_basis == SAMPLED else {}
    if region.peak_ram_bytes is not None and region.peak_ram_basis != EXACT:
        found["peak_ram"] = ceilings.get("peak_ram", whole["peak_ram"] or math.inf)
    if region.gpu_bytes is not None and "peak_gpu_ram" in ceilings:
        found["peak_gpu_ram"] = ceilings["peak_gpu_ram"]
    if region.energy_joules is not None and "energy" in ceilings:
        found["energy"] = ceilings["energy"]
    return found


def _bound_divided(region: Region, least: dict[str, float], most: dict[str, float]) -> None:
    """Bound what of the devices' figures belongs to a region: nobody knows when between two readings energy was drawn."""
    if region.energy_least_joules is not None and region.energy_most_joules is not None:
        least["energy"] = region.energy_least_joules
        most["energy"] = max(region.energy_most_joules, most.get("energy", 0.0))
    if region.gpu_percent is not None and region.gpu_unknown_seconds:
        seconds = region.gpu_seconds + region.gpu_unknown_seconds
        least["gpu_utilization"] = region.gpu_percent * region.gpu_seconds / seconds
        most["gpu_utilization"] = least["gpu_utilization"] + 100 * region.gpu_unknown_seconds / seconds


def _region_values(region: Region) -> dict[str, float | None]:
    """A region in which no process was read has no time."""
    has_time = bool(region.calls or region.wall_seconds)
    values = {
        "time": region.wall_seconds if has_time else None,
        "calls": region.calls,
        "time_per_call": region.mean_seconds,
        "cpu_time": region.cpu_seconds if has_time else None,
        "mean_cores": _to_cores(percent_of(region.cpu_seconds, region.wall_seconds, math.inf)),
        "peak_ram": region.peak_ram_bytes,
        "peak_gpu_ram": region.gpu_bytes,
        "gpu_utilization": None if region.gpu_unknown_seconds > region.gpu_seconds else region.gpu_percent,
        "energy": region.energy_joules,
    }
    return {name: _known(value) for name, value in values.items()}
