"""Recording → Report: everything a format may show, computed once. Formats do no arithmetic."""

from __future__ import annotations

from ..analysis.frameworks import FrameworkSummary, summarize_frameworks
from ..analysis.regions import (
    Metric,
    Region,
    describe_gaps,
    find_outside_seconds,
    summarize_metrics,
    summarize_regions,
)
from ..analysis.summary import Summary, summarize
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..analysis.findings.finding import Finding
    from ..core.columns import SampleColumns
    from ..core.model import Call, Header, MetricRow, PeakMoment, RecordingData


_COLUMNS = 80
# Of a shorter run there is nothing to see over time, and reading it would take longer than the run.
SHORTEST_SECONDS = 1.0


class Report(NamedTuple):
    """Everything that is reported about one recording."""

    header: Header
    summary: Summary
    ending: str
    """How it ended: running, stopped, interrupted, raised, exited, abandoned, killed, sampler lost."""
    exit_code: int | None
    notes: tuple[str, ...]
    tracker_cpu_seconds: float | None
    tracker_ram_bytes: int | None
    regions: tuple[Region, ...] = ()
    metrics: tuple[Metric, ...] = ()
    frameworks: tuple[FrameworkSummary, ...] = ()
    peaks: tuple[PeakMoment, ...] = ()
    """Who held what at the peaks of the job and of each device."""
    findings: tuple[Finding, ...] = ()
    """Worst first."""
    columns: SampleColumns | None = None
    """The samples, for charts. Not in JSON, nor are the next two: `export` has them."""
    calls: tuple[Call, ...] = ()
    metric_rows: tuple[MetricRow, ...] = ()
    """These two only where there are samples."""
    outside_seconds: float | None = None
    """How long the job was in none of its regions; None if that is not known."""

    def plot(self, charts: Sequence[str] | None = None) -> Any:
        """A `matplotlib.figure.Figure` of the charts: cpu, ram, gpu_busy, gpu_ram, power, metrics, regions; or all."""
        from .plot import draw

        return draw(self, charts)

    def __repr__(self) -> str:
        """Short: there may be a million samples."""
        return f"<Report {' '.join(self.header.command)!r}: {self.summary.seconds:.3g} s, {self.ending}>"

    def __str__(self) -> str:
        """As text, for 80 columns."""
        from .contract import View, render

        return str(render(self, "text", View(columns=_COLUMNS))).rstrip("\n")


class Reports(NamedTuple):
    """Several reports in one document."""

    reports: tuple[Report, ...]


def build(recording: RecordingData, columns: SampleColumns | None = None) -> Report:
    """Everything that is reported about a recording; `columns` are its samples."""
    end = recording.end
    # Reading these may find damage, so they come before the notes.
    regions, metrics = summarize_regions(recording), summarize_metrics(recording)
    frameworks, peaks = summarize_frameworks(recording), tuple(recording.peak_moments)
    notes = [event.text for event in recording.events if event.kind in ("note", "unattributed")]
    notes.extend(describe_gaps(recording.gaps))
    notes.extend(recording.problems)
    if end is None:
        notes.append(
            f"The recording was cut off at {recording.totals.at_seconds:.3g} s: gpu-tracker was killed, or the disk was full."
        )
    return Report(
        header=recording.header,
        summary=summarize(recording),
        ending=end.reason if end else "killed",
        exit_code=end.exit_code if end else None,
        notes=tuple(dict.fromkeys(notes)),
        tracker_cpu_seconds=end.tracker_cpu_seconds if end else None,
        tracker_ram_bytes=end.tracker_ram_bytes if end else None,
        regions=regions,
        metrics=metrics,
        frameworks=frameworks,
        peaks=peaks,
        columns=columns,
        calls=() if columns is None else tuple(recording.calls),
        metric_rows=() if columns is None else tuple(recording.metrics),
        outside_seconds=find_outside_seconds(recording),
    )
