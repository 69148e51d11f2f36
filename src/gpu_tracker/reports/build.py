"""Recording → Report: everything a format may show, computed once. Formats do no arithmetic."""

from __future__ import annotations

from ..analysis.frameworks import FrameworkSummary, summarize_frameworks
from ..analysis.regions import Metric, Region, describe_gaps, summarize_metrics, summarize_regions
from ..analysis.summary import Summary, summarize
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from ..analysis.charts import Chart, Logged
    from ..analysis.findings.finding import Finding
    from ..core.columns import SampleColumns
    from ..core.model import Call, Header, PeakMoment, RecordingData


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
    """The samples, for charts. This and the next two are not in JSON: `export` has them."""
    logged: tuple[Logged, ...] = ()
    """The metrics over time."""
    calls: tuple[Call, ...] = ()
    """Single calls of regions."""

    def __str__(self) -> str:
        """As text."""
        from .contract import render

        return str(render(self, "text")).rstrip("\n")

    def list_charts(self) -> tuple[Chart, ...]:
        """What can be drawn of the run; nothing without its samples."""
        if self.columns is None:
            return ()
        from ..analysis.charts import make_charts

        peaks = {moment.subject: (moment.at_seconds, float(moment.size_bytes)) for moment in self.peaks}
        return make_charts(self.summary, self.columns, peaks, self.logged)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file in the format of its suffix: a page (`.html`), a text, JSON."""
        from ..api.saving import save

        save(self, path)


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
        logged=() if columns is None else _collect_logged(recording),
        calls=() if columns is None else tuple(recording.calls),
    )


def _collect_logged(recording: RecordingData) -> tuple[Logged, ...]:
    from ..analysis.charts import collect_logged  # only for charts

    return collect_logged(recording.metrics)
