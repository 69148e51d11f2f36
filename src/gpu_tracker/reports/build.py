"""Recording → Report: everything a format may show, computed once. Formats do no arithmetic."""

from __future__ import annotations

from bisect import bisect_right

from ..analysis.elsewhere import describe_elsewhere
from ..analysis.endings import describe_signals, find_ending, has_failed
from ..analysis.energy import Carbon, Energy, estimate_carbon, summarize_energy
from ..analysis.frameworks import FrameworkSummary, summarize_frameworks
from ..analysis.regions import (
    Metric,
    Region,
    describe_cost,
    describe_gaps,
    find_outside_seconds,
    summarize_metrics,
    summarize_regions,
)
from ..analysis.sizing import Sizing, advise, find_need
from ..analysis.summary import Summary, summarize
from ..core.model import EARLIER, GPU_ERROR, GPU_FAULT, UNREAPED, UNSEEN_END, UNWRITTEN
from ..core.text import count_of
from ..core.units import humanize_seconds
from ..core.values import NamedTuple
from .choices import NO_CHOICES, Choices

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import Any

    from ..analysis.charts import Chart, Logged
    from ..analysis.findings.finding import Finding
    from ..analysis.findings.judge import Changes
    from ..analysis.findings.rule import Rule
    from ..analysis.held_memory import HeldMemory
    from ..analysis.prices import Choice, Machine
    from ..core.columns import SampleColumns
    from ..core.model import Call, Header, PeakMoment, RecordingData


_NOTES = ("note", "unattributed", "oom", EARLIER, UNREAPED, UNSEEN_END, UNWRITTEN, GPU_ERROR, GPU_FAULT)
_FEWEST_READINGS = 30
_COLUMNS = 80
# A sample may be taken while the job is stopped.
_CLOCK_SECONDS = 1.0
# Of a shorter run there is nothing to see over time, and reading it would take longer than the run.
SHORTEST_SECONDS = 1.0


class Report(NamedTuple):
    """Everything that is reported about one recording."""

    header: Header
    summary: Summary
    ending: str
    """How it ended: running, stopped, ended (a process of somebody else), interrupted, raised, exited, abandoned, tracker killed, killed, sampler lost."""
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
    unjudged: tuple[tuple[str, str], ...] = ()
    """The rules that could not judge this run, and why; none if it was too short for all of them."""
    sizing: Sizing | None = None
    """What to ask for the next time."""
    machine: Choice | None = None
    """The cheapest one for it, with prices that the user has stated."""
    energy: Energy | None = None
    carbon: Carbon | None = None
    """With a factor that the user has stated."""
    columns: SampleColumns | None = None
    """The samples, for charts. This and the next three are not in JSON: `export` has them."""
    logged: tuple[Logged, ...] = ()
    """The metrics over time."""
    calls: tuple[Call, ...] = ()
    """Single calls of regions."""
    held: tuple[HeldMemory, ...] = ()
    """What frameworks held on devices over time."""
    outside_seconds: float | None = None
    """How long the job was in none of its regions; None if that is not known."""

    def plot(self, charts: str | Sequence[str] | None = None) -> Any:
        """A `matplotlib.figure.Figure` of the charts: cpu, ram, gpu_busy, gpu_ram, gpu_parts, power, metrics, regions; or all."""
        from .plot import draw

        return draw(self, charts)

    def __repr__(self) -> str:
        """Short: there may be a million samples."""
        name = self.header.identity.name or " ".join(self.header.command)
        return f"<Report {name!r}: {self.summary.seconds:.3g} s, {self.ending}>"

    def __str__(self) -> str:
        """As text, for 80 columns. A defect of ours must not end the program that prints it."""
        from ..core.system import prints_any_letter
        from .contract import View, render

        try:
            view = View(columns=_COLUMNS, has_unicode=prints_any_letter())
            return str(render(self, "text", view)).rstrip("\n")
        except Exception as error:  # noqa: BLE001
            return f"{self!r}\n{_describe_defect(error)}"

    def _repr_html_(self) -> str:
        """In a notebook: a picture, and the text to be opened below it."""
        from .notebook import show_report, show_text

        try:
            return show_report(self)
        except Exception as error:  # noqa: BLE001
            return show_text(f"{self!r}\n{_describe_defect(error)}")

    def list_charts(self) -> tuple[Chart, ...]:
        """What can be drawn of the run; nothing without its samples."""
        if self.columns is None:
            return ()
        from ..analysis.charts import make_charts

        peaks = {moment.subject: (moment.at_seconds, float(moment.size_bytes)) for moment in self.peaks}
        return make_charts(self.summary, self.columns, peaks, self.logged, self.held)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file in the format of its suffix: a page (`.html`), a text, JSON."""
        from ..api.saving import save

        save(self, path)


def _describe_defect(error: Exception) -> str:
    return (
        f"A defect of gpu-tracker: this report cannot be shown ({type(error).__name__}: {error}). "
        "Its fields and its recording are complete."
    )


class Reports(NamedTuple):
    """Several reports in one document."""

    reports: tuple[Report, ...]


def build(
    recording: RecordingData, columns: SampleColumns | None = None, choices: Choices = NO_CHOICES
) -> Report:
    """Everything that is reported about a recording; `columns` are its samples."""
    recording = _check_places(recording)
    end, energy = recording.end, summarize_energy(recording)
    # Reading these may find damage, so they come before the notes.
    regions, metrics = summarize_regions(recording), summarize_metrics(recording)
    frameworks, peaks = summarize_frameworks(recording), tuple(recording.peak_moments)
    notes = [event.text for event in recording.events if event.kind in _NOTES]
    notes.extend(describe_signals(recording.events))
    notes.extend(describe_gaps(recording.gaps))
    notes.extend(describe_elsewhere(recording))
    notes.extend(describe_cost(regions, recording.totals.cpu_seconds.combined))
    notes.extend(recording.problems)
    notes.extend(_describe_oddities(columns, recording.totals.at_seconds))
    if end is None and not recording.is_running:
        notes.append(
            f"The recording was cut off at {humanize_seconds(recording.totals.at_seconds)}: gpu-tracker was killed, or the disk was full."
        )
    sizing = advise([find_need(recording, columns)])
    report = Report(
        header=recording.header,
        summary=summarize(recording),
        ending=find_ending(recording),
        exit_code=end.exit_code if end else None,
        notes=tuple(dict.fromkeys(notes)),
        tracker_cpu_seconds=end.tracker_cpu_seconds if end else None,
        tracker_ram_bytes=end.tracker_ram_bytes if end else None,
        regions=regions,
        metrics=metrics,
        frameworks=frameworks,
        peaks=peaks,
        energy=energy,
        carbon=estimate_carbon(energy.total_joules, choices.factor),
        sizing=sizing,
        machine=_choose_machine(choices.machines, sizing),
        columns=columns,
        logged=() if columns is None else _collect_logged(recording),
        calls=() if columns is None else tuple(recording.calls),
        held=() if columns is None else _collect_held(recording),
        outside_seconds=find_outside_seconds(recording),
    )
    return _judge(report, recording, choices.changes)


def _check_places(recording: RecordingData) -> RecordingData:
    """Most jobs have no regions: nothing is imported for them."""
    if not recording.regions or not recording.peak_moments:
        return recording
    from ..analysis.peaks import drop_contradicted

    return recording._replace(peak_moments=drop_contradicted(recording.peak_moments, recording.regions))


def _describe_oddities(columns: SampleColumns | None, end_seconds: float) -> list[str]:
    """What no sampler writes, in one sentence."""
    if columns is None:
        return []
    late = len(columns.end_seconds) - bisect_right(columns.end_seconds, end_seconds + _CLOCK_SECONDS)
    oddities = [
        f"{count_of(number, 'sample')} {what}"
        for number, what in (
            (columns.impossible_samples, "with impossible values (left out of charts and findings)"),
            (columns.disordered_samples, "out of order (sorted)"),
            (late, "later than its end (means and totals cover different periods)"),
        )
        if number
    ]
    return [f"{', '.join(oddities)}: the file was edited, or the clock changed."] if oddities else []


def _choose_machine(machines: tuple[Machine, ...], sizing: Sizing) -> Choice | None:
    if not machines:
        return None
    from ..analysis.prices import choose_machine  # seldom asked for

    return choose_machine(machines, sizing)


def is_worth_judging(recording: RecordingData) -> bool:
    """Whether it has enough readings for more than the question why it died."""
    return recording.totals.readings >= _FEWEST_READINGS


def _judge(report: Report, recording: RecordingData, changes: Changes | None) -> Report:
    """The report with its findings."""
    rules = _find_rules(report, recording)
    if not rules:
        return report
    from ..analysis.findings.facts import Reported, derive
    from ..analysis.findings.judge import Changes, find_start_share, judge

    changes = changes or Changes()
    reported = Reported(report.summary, report.regions, report.metrics, report.frameworks, report.sizing)
    facts = derive(recording, reported, report.columns, find_start_share(changes))
    findings, unjudged = judge(facts, rules, changes)
    return report._replace(findings=findings, unjudged=unjudged)


def _find_rules(report: Report, recording: RecordingData) -> tuple[Rule, ...]:
    """Most jobs are short and end well: nothing is imported for them."""
    if is_worth_judging(recording):
        from ..analysis.findings import table

        return tuple(rule for rule in table.RULES if not (rule.needs_the_end and recording.is_running))
    rules: tuple[Rule, ...] = ()
    kinds = {event.kind for event in recording.events}
    if has_failed(report.ending, report.exit_code) or "oom" in kinds:
        from ..analysis.findings import ending

        rules += ending.RULES
    if not kinds.isdisjoint((GPU_ERROR, GPU_FAULT)):
        from ..analysis.findings import gpu

        rules += (gpu.FAULTS,)
    return rules


def _collect_held(recording: RecordingData) -> tuple[HeldMemory, ...]:
    from ..analysis.held_memory import collect_held  # only for charts

    return collect_held(recording.framework_readings)


def _collect_logged(recording: RecordingData) -> tuple[Logged, ...]:
    from ..analysis.charts import collect_logged  # only for charts

    return collect_logged(recording.metrics)
