"""What the rules look at, derived once: the figures of the report, and the samples after the start. Pure."""

from __future__ import annotations

from statistics import median

from ...core.model import Parts
from ...core.moments import parse_moment
from ...core.values import NamedTuple
from ..endings import has_failed
from .spans import Spans, find_known, skip_until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...core.columns import Column, GpuColumns, SampleColumns
    from ...core.model import Allocation, Call, Header, MetricRow, PeakMoment, ProcessTotals, RecordingData
    from ..frameworks import FrameworkSummary
    from ..regions import Metric, Region
    from ..summary import GpuSummary, Summary

_DATA_WAIT = ("data_wait", "data-wait", "wait_for_data", "waiting_for_data")
_STEP = ("step", "train_step", "training_step", "batch")


class Reported(NamedTuple):
    """What the report says of the recording."""

    summary: Summary
    regions: tuple[Region, ...] = ()
    metrics: tuple[Metric, ...] = ()
    frameworks: tuple[FrameworkSummary, ...] = ()


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
    sm_percent: float | None = None
    """How many of the multiprocessors had work; no source reports it yet."""

    @property
    def ordinal(self) -> int:
        """Its number in the vendor's own tool."""
        return self.summary.gpu.ordinal

    @property
    def memory_bytes(self) -> int:
        """0 if not known."""
        return self.summary.gpu.memory_bytes or 0

    @property
    def mean_percent(self) -> float | None:
        """As in the report: the job's own where the driver reports it."""
        own = self.summary.job_mean_percent
        return self.summary.mean_percent if own is None else own

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
    """The kernel has killed a process for its memory."""
    limit_used_bytes: int = 0
    """The most that was used under the job's own limit, by its neighbours in the same group, too."""
    virtual_bytes: int = 0
    """The largest address space of one process."""
    ended_at_seconds: float | None = None
    """Since 1970."""
    calls: Sequence[Call] = ()
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
    def busiest_gpu_percent(self) -> float:
        """Of the devices that the job used; 0 without any."""
        return max((gpu.mean_percent or 0.0 for gpu in self.used_gpus), default=0.0)

    @property
    def data_wait_share(self) -> float | None:
        """How much of the time in steps went to waiting for data; None if that is not marked."""
        waits = list(self._find_regions(_DATA_WAIT))
        if not waits:
            return None
        wait = sum(region.wall_seconds for region in waits)
        steps = sum(region.wall_seconds for region in self._find_regions(_STEP))
        inside = sum(region.wall_seconds for region in waits if set(region.path[:-1]) & set(_STEP))
        whole = steps + wait - inside if steps else self.summary.seconds * waits[0].processes
        return wait / whole if whole else None

    @property
    def first_step_seconds(self) -> float | None:
        """When the first step began, if steps are marked."""
        starts = [region.first_seconds for region in self._find_regions(_STEP)]
        return min((start for start in starts if start is not None), default=None)

    def _find_regions(self, names: Sequence[str]) -> Iterator[Region]:
        return (region for region in self.reported.regions if region.path[-1:] and region.path[-1] in names)


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
        limit_used_bytes=max(
            recording.totals.peaks.limit_ram_bytes or 0, reported.summary.ram.combined.total_bytes
        ),
        virtual_bytes=recording.totals.peaks.virtual_bytes,
        ended_at_seconds=None if started is None else started + reported.summary.seconds,
        calls=recording.calls,
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
    facts = GpuFacts(summary, has_job, frameworks)
    device: GpuColumns | None = columns.gpus.get(uuid) if columns else None
    if columns is None or device is None:
        return facts
    start, end = columns.start_seconds, columns.end_seconds
    own = find_known(start, end, device.job_percent)
    whole = find_known(start, end, device.utilization_percent)
    is_own = 2 * len(own.values) >= len(whole.values)
    busy = own if is_own else whole
    return facts._replace(
        busy_percent=skip_until(busy, steady_seconds),
        is_busy_own=is_own,
        busy_ever_percent=busy,
        used_bytes=find_known(start, end, device.used_bytes),
        job_bytes=find_known(start, end, device.job_bytes),
        power_watts=find_known(start, end, device.power_watts),
    )
