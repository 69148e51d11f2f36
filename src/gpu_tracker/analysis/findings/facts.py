"""What the rules look at, derived once: the figures of the report, and the samples after the start. Pure."""

from __future__ import annotations

from statistics import median

from ...core.loops import BETWEEN_STEPS, DATA_WAIT_NAMES, STEP_NAMES
from ...core.model import GPU_ERROR, GPU_FAULT, OOM_LIMIT, Parts
from ...core.moments import parse_moment
from ...core.units import parse_count
from ...core.values import NamedTuple
from ..endings import find_deadline, has_failed
from ..summary import is_known_enough, is_ram_least
from .spans import Spans, count_seconds, find_known, skip_until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ...core.columns import Column, GpuColumns, SampleColumns
    from ...core.model import (
        Allocation,
        Call,
        Event,
        Header,
        MetricRow,
        PeakMoment,
        ProcessTotals,
        RecordingData,
        RegionTotals,
    )
    from ..frameworks import FrameworkSummary
    from ..regions import Metric, Region
    from ..sizing import Sizing
    from ..summary import GpuSummary, Summary

_COMPLETE_SHARE = 0.9


class Reported(NamedTuple):
    """What the report says of the recording."""

    summary: Summary
    regions: tuple[Region, ...] = ()
    metrics: tuple[Metric, ...] = ()
    frameworks: tuple[FrameworkSummary, ...] = ()
    sizing: Sizing | None = None
    """What to ask for the next time."""


class GpuFacts(NamedTuple):
    """One device."""

    summary: GpuSummary
    has_job: bool = False
    frameworks: tuple[FrameworkSummary, ...] = ()
    busy_percent: Spans[float] = Spans()
    """After the start: the job's own utilization where the driver reports it, else that of the device."""
    is_busy_own: bool = False
    busy_ever_percent: Spans[float] = Spans()
    """The same from the first sample on; so are the following."""
    used_bytes: Spans[float] = Spans()
    job_bytes: Spans[float] = Spans()
    power_watts: Spans[float] = Spans()
    sm_percent: Spans[float] = Spans()
    """After the start: how many of the multiprocessors had work."""
    is_busy_complete: bool = True
    """Whether it is known in nearly all of the time after the start."""
    is_known_enough: bool = True
    """Whether its utilization is known for so much of the run that it stands for all of it."""
    is_own_known_enough: bool = True
    """The same of the job's own."""

    @property
    def label(self) -> str:
        """What it is called."""
        return self.summary.gpu.label

    @property
    def memory_bytes(self) -> int:
        """0 if not known."""
        return self.summary.gpu.memory_bytes or 0

    @property
    def mean_percent(self) -> float | None:
        """As in the report: the job's own where the driver reports it most of the time."""
        own = self.summary.job_mean_percent
        return self.summary.mean_percent if own is None or not self.is_own_known_enough else own

    @property
    def whose_busy(self) -> str:
        """Whose share of the time a sentence has, if the report shows another number for the device."""
        own, whole = self.mean_percent, self.summary.mean_percent
        is_own = own is not None and whole is not None and f"{own:.0f}" != f"{whole:.0f}"
        return f" (by this job; {whole:.0f} % by all processes)" if is_own else ""

    @property
    def busy_by(self) -> str:
        """The same of the utilization over time."""
        return " by this job" if self.is_busy_own and self.whose_busy else ""

    @property
    def is_shared(self) -> bool:
        """Whether others hold memory there, or may."""
        used, job = self.summary.used_bytes, self.summary.job_bytes.combined
        return used is None or job is None or used - job > 0.05 * self.memory_bytes


class Facts(NamedTuple):
    """One run."""

    header: Header
    reported: Reported
    ending: str
    exit_code: int | None = None
    exception: str | None = None
    """The class of the exception that ended it."""
    has_oom: bool = False
    oom_limit_bytes: int | None = None
    """The limit under which that was, if it is not the one that the job had from its start."""
    gpu_faults: tuple[Event, ...] = ()
    """What devices reported that should not have happened."""
    """The kernel has killed a process for its memory."""
    limit_used_bytes: int = 0
    """The most that was used under the job's own limit, by its neighbours in the same group, too."""
    virtual_bytes: int = 0
    """The largest address space of one process."""
    ended_at_seconds: float | None = None
    """Since 1970."""
    calls: Sequence[Call] = ()
    n_waiting: float = 1.0
    """How many processes at a time were in a loop that waits for data, on average."""
    rows: Sequence[MetricRow] = ()
    processes: Sequence[ProcessTotals] = ()
    moments: Mapping[str, PeakMoment] = {}
    gpus: tuple[GpuFacts, ...] = ()
    interval_seconds: float | None = None
    """The usual length of an interval."""
    cores: Parts[Spans[float]] = Parts(Spans(), Spans(), Spans())
    """After the start; so are the following."""
    machine_cores: Spans[float] = Spans()
    threads: Spans[float] = Spans()
    ram_bytes: Parts[Spans[float]] = Parts(Spans(), Spans(), Spans())
    ram_low_bytes: Spans[float] = Spans()
    ram_high_bytes: Spans[float] = Spans()
    """From the first sample on."""

    @property
    def summary(self) -> Summary:
        """The figures of the report."""
        return self.reported.summary

    @property
    def allocation(self) -> Allocation:
        """What the job may use."""
        return self.header.allocation

    @property
    def used_gpus(self) -> tuple[GpuFacts, ...]:
        """The devices on which the job was seen."""
        return tuple(gpu for gpu in self.gpus if gpu.has_job)

    @property
    def has_failed(self) -> bool:
        """Whether it ended otherwise than it should."""
        return has_failed(self.ending, self.exit_code)

    @property
    def ends_at_seconds(self) -> float | None:
        """When the job's time is up, since 1970; None if no limit is known."""
        ended_at = self.ended_at_seconds
        return find_deadline(self.allocation, None if ended_at is None else ended_at - self.summary.seconds)

    @property
    def is_ram_least(self) -> bool:
        """Whether the peak of RAM may have been higher while nothing was measured."""
        return is_ram_least(self.summary, self.ending)

    @property
    def busiest_gpu_percent(self) -> float:
        """Of the devices that the job used; 0 without any."""
        return max((gpu.mean_percent or 0.0 for gpu in self.used_gpus), default=0.0)

    @property
    def data_wait_share(self) -> float | None:
        """How much of the time in steps and between them went to waiting for data; None if that is not marked.

        What has not ended does not count: whoever was to go on may have failed.
        """
        waits = list(self._find_regions(DATA_WAIT_NAMES))
        if not waits:
            return None
        wait = sum(map(_find_ended_seconds, waits))
        steps = sum(map(_find_ended_seconds, self._find_regions((*STEP_NAMES, BETWEEN_STEPS))))
        inside = sum(_find_ended_seconds(one) for one in waits if set(one.path[:-1]) & set(STEP_NAMES))
        whole = steps + wait - inside if steps else self.summary.seconds * waits[0].processes
        return wait / whole if whole else None

    @property
    def data_wait_run_share(self) -> float:
        """The same of all the time of the processes that waited, as many as ran at a time.

        No more than steps have left of it: what is fetched ahead, in another thread or process, is waited for there, and holds nobody up.
        """
        waits = list(self._find_regions(DATA_WAIT_NAMES))
        whole = self.summary.seconds * self.n_waiting
        wait = sum(map(_find_ended_seconds, waits))
        steps = (
            _find_ended_seconds(step)
            - sum(_find_ended_seconds(one) for one in waits if one.path[: len(step.path)] == step.path)
            for step in self._find_regions(STEP_NAMES)
        )
        left = whole - max(steps, default=0.0)
        return max(0.0, min(wait, left)) / whole if whole else 0.0

    @property
    def first_step_seconds(self) -> float | None:
        """When the first step began, if steps are marked."""
        starts = [region.first_seconds for region in self._find_regions(STEP_NAMES)]
        return min((start for start in starts if start is not None), default=None)

    def _find_regions(self, names: Sequence[str]) -> Iterator[Region]:
        return (region for region in self.reported.regions if region.path[-1:] and region.path[-1] in names)


def _find_ended_seconds(region: Region) -> float:
    return region.calls * (region.mean_seconds or 0.0)


def _count_waiting(regions: Iterable[RegionTotals]) -> float:
    """The time from the first wait of each process to its last one, as multiples of that of all together."""
    spans: dict[int, tuple[float, float]] = {}
    for region in regions:
        if region.path and region.path[-1] in DATA_WAIT_NAMES and region.first_seconds is not None:
            first, last = spans.get(region.pid, (float("inf"), 0.0))
            spans[region.pid] = min(first, region.first_seconds), max(last, region.last_seconds or 0.0)
    if not spans:
        return 1.0
    whole = max(last for _, last in spans.values()) - min(first for first, _ in spans.values())
    return max(1.0, sum(last - first for first, last in spans.values()) / whole) if whole > 0 else 1.0


def derive(
    recording: RecordingData, reported: Reported, columns: SampleColumns | None, start_share: float = 0.05
) -> Facts:
    """Everything that the rules look at; without columns, what the totals tell."""
    end, header = recording.end, recording.header
    started = parse_moment(header.started_at)
    raised = [event.text for event in recording.events if event.kind == "exception"]
    totals = Facts(
        header=header,
        reported=reported,
        ending=end.reason if end else "killed",
        exit_code=end.exit_code if end else None,
        exception=raised[-1] if raised else None,
        has_oom=any(event.kind == "oom" for event in recording.events),
        oom_limit_bytes=_find_oom_limit(recording.events),
        gpu_faults=tuple(event for event in recording.events if event.kind in (GPU_ERROR, GPU_FAULT)),
        limit_used_bytes=max(
            recording.totals.peaks.limit_ram_bytes or 0, reported.summary.ram.combined.total_bytes
        ),
        virtual_bytes=recording.totals.peaks.virtual_bytes,
        ended_at_seconds=None if started is None else started + reported.summary.seconds,
        calls=recording.calls,
        n_waiting=_count_waiting(recording.regions),
        rows=recording.metrics,
        processes=recording.processes,
        moments={moment.subject: moment for moment in recording.peak_moments},
    )
    used = {peak.uuid for peak in recording.totals.peaks.gpus if peak.has_job}
    steady_seconds = start_share * reported.summary.seconds
    gpus = tuple(
        _derive_gpu(summary, summary.gpu.uuid in used, reported, columns, steady_seconds)
        for summary in reported.summary.gpus
    )
    totals = totals._replace(gpus=gpus)
    return _add_series(totals, columns, steady_seconds) if columns else totals


def _add_series(totals: Facts, columns: SampleColumns, steady_seconds: float) -> Facts:
    def know(column: Column) -> Spans[float]:
        return skip_until(find_known(columns.start_seconds, columns.end_seconds, column), steady_seconds)

    start, end = columns.start_seconds, columns.end_seconds
    lengths = [last - first for first, last in zip(start, end, strict=True) if first >= steady_seconds]
    return totals._replace(
        interval_seconds=median(lengths) if lengths else None,
        cores=Parts(*map(know, columns.cpu_cores)),
        machine_cores=know(columns.machine_cores),
        threads=know(columns.threads),
        ram_bytes=Parts(*(know(part.mean) for part in columns.ram_bytes)),
        ram_low_bytes=know(columns.ram_bytes.combined.low),
        ram_high_bytes=find_known(start, end, columns.ram_bytes.combined.high),
    )


def _derive_gpu(
    summary: GpuSummary,
    has_job: bool,
    reported: Reported,
    columns: SampleColumns | None,
    steady_seconds: float,
) -> GpuFacts:
    uuid = summary.gpu.uuid
    frameworks = tuple(one for one in reported.frameworks if one.memory.uuid == uuid)
    seconds = reported.summary.seconds
    facts = GpuFacts(
        summary,
        has_job,
        frameworks,
        is_known_enough=is_known_enough(summary.utilization_seconds, seconds),
        is_own_known_enough=is_known_enough(seconds - summary.job_percent_unknown_seconds, seconds),
    )
    device: GpuColumns | None = columns.gpus.get(uuid) if columns else None
    if columns is None or device is None:
        return facts
    start, end = columns.start_seconds, columns.end_seconds
    own = find_known(start, end, device.job_percent)
    whole = find_known(start, end, device.utilization_percent)
    is_own = 2 * len(own.values) >= len(whole.values)
    busy = own if is_own else whole
    steady = skip_until(busy, steady_seconds)
    return facts._replace(
        busy_percent=steady,
        is_busy_complete=count_seconds(steady)
        >= _COMPLETE_SHARE * (reported.summary.seconds - steady_seconds),
        is_busy_own=is_own,
        busy_ever_percent=busy,
        used_bytes=find_known(start, end, device.used_bytes),
        job_bytes=find_known(start, end, device.job_bytes),
        power_watts=find_known(start, end, device.power_watts),
        sm_percent=skip_until(find_known(start, end, device.sm_percent), steady_seconds),
    )


def _find_oom_limit(events: Iterable[Event]) -> int | None:
    """As it was told last; a recording from anywhere may tell anything."""
    told = [event.text for event in events if event.kind == OOM_LIMIT]
    return parse_count(told[-1]) if told else None
