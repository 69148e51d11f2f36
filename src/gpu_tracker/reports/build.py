"""Recording → Report: everything a format may show, computed once. Formats do no arithmetic."""

from __future__ import annotations

from ..analysis.frameworks import FrameworkSummary, summarize_frameworks
from ..analysis.regions import Metric, Region, describe_gaps, summarize_metrics, summarize_regions
from ..analysis.summary import Summary, summarize
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.model import Header, RecordingData


class Report(NamedTuple):
    """Everything that is reported about one recording."""

    header: Header
    summary: Summary
    ending: str
    """How it ended: running, stopped, ended (a process of somebody else), interrupted, raised, exited, abandoned, killed, sampler lost."""
    exit_code: int | None
    notes: tuple[str, ...]
    tracker_cpu_seconds: float | None
    tracker_ram_bytes: int | None
    regions: tuple[Region, ...] = ()
    metrics: tuple[Metric, ...] = ()
    frameworks: tuple[FrameworkSummary, ...] = ()

    def __str__(self) -> str:
        """As text."""
        from .contract import render

        return str(render(self, "text")).rstrip("\n")


class Reports(NamedTuple):
    """Several reports in one document."""

    reports: tuple[Report, ...]


def build(recording: RecordingData) -> Report:
    """Everything that is reported about a recording."""
    end = recording.end
    # Reading these may find damage, so they come before the notes.
    regions, metrics = summarize_regions(recording), summarize_metrics(recording)
    frameworks = summarize_frameworks(recording)
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
    )
