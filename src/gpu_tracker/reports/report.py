"""A report as text for people: what was used, of how much, and how sure that is."""

from __future__ import annotations

from ..core.signals import name_signal
from ..core.text import (
    BOLD,
    RED,
    YELLOW,
    Span,
    count_cells,
    join_command,
    neutralize,
    paint,
    shorten,
    wrap,
)
from ..core.units import humanize_bytes, humanize_seconds
from ..core.vendors import NO_GPU
from .energy_lines import format_energy
from .rows import Row, count_line_cells, lay_out, lay_out_rows
from .sizing_lines import format_next_time
from .usage_lines import list_usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .build import Report, Reports
    from .contract import View

_ENDINGS = {
    "running": "still running",
    "stopped": "finished",
    "ended": "ended, exit code not known",
    "interrupted": "interrupted",
    "raised": "ended by an exception",
    "abandoned": "ended without stopping its tracker",
    "tracker killed": "gpu-tracker was killed",
    "killed": "cut off",
    "sampler lost": "finished, but its sampler was lost",
}
_MARGIN = "  "
_STYLES = {"serious": RED, "warning": YELLOW}
_MOST_NOTES = 25
# A recording from anywhere may have any text; no host and no note of ours is as long.
_HOST_CELLS, _NOTE_CELLS = 64, 600


def to_text(report: Report, view: View) -> str:
    """The worst that was found, what was used, what else was found, where the time went, and the notes; ends with a newline."""
    rows = [Row("time", _describe_time(report)), *list_usage(report, count_line_cells(view))]
    if report.frameworks:
        from .framework_lines import format_frameworks

        rows += [Row(*row) for row in format_frameworks(report.frameworks)]
    if report.summary.has_rates:
        rows += [Row(*row) for row in format_energy(report.energy, report.carbon)]
    title, used = _lay_out_title(report, view), lay_out_rows(rows, view)
    next_time = _lay_out_all(
        format_next_time(report.sizing, report.machine, report.header.identity.ranks), view
    )
    last = _lay_out_all([*_describe_cost(report), *_list_notes(report)], view)
    first, others = _lay_out_findings(report, view)
    lines = [*title, *first, *used, *others, *next_time, *_lay_out_tables(report, view), *last]
    return "\n".join(lines) + "\n"


def _lay_out_findings(report: Report, view: View) -> tuple[list[str], list[str]]:
    """What must be read before any figure, and the rest."""
    if not report.findings:
        return [], []
    from .finding_lines import format_findings, split_findings

    first, others = (
        [line for text in format_findings(findings) for line in _lay_out_finding(text, view)]
        for findings in split_findings(report.findings)
    )
    return first, others


def _lay_out_tables(report: Report, view: View) -> list[str]:
    if not report.regions and not report.metrics:
        return []
    from .region_tables import format_metrics, format_regions

    room = None if view.columns is None else view.columns - len(_MARGIN)
    return _lay_out_all([*format_regions(report, room), *format_metrics(report.metrics, room)], view)


def _list_notes(report: Report) -> list[str]:
    # The row of the GPU says that there is none.
    notes = [f"note: {shorten(note, _NOTE_CELLS)}" for note in report.notes if note != NO_GPU]
    if len(notes) > _MOST_NOTES:
        notes[_MOST_NOTES:] = [f"and {len(notes) - _MOST_NOTES} more notes (the JSON report has all)"]
    return notes


def _lay_out_all(texts: Iterable[str], view: View) -> list[str]:
    return [line for text in texts for line in lay_out(text, view)]


def join_texts(reports: Reports, view: View) -> str:
    """Several reports, with an empty line between."""
    return "\n".join(to_text(report, view) for report in reports.reports)


def describe_ending(ending: str, code: int | None) -> str:
    """How a job ended, in a few words."""
    if code is None:
        return _ENDINGS.get(ending, ending)
    lost = ", but its sampler was lost" if ending == "sampler lost" else ""
    return f"exit code {code}{lost}" if code >= 0 else f"killed by {name_signal(-code)}{lost}"


def find_title(report: Report) -> str:
    """What the user calls the run, else what ran."""
    return (
        report.header.identity.name or join_command(report.header.command) or f"process {report.header.pid}"
    )


def describe_title(report: Report) -> str:
    """The name of the run, or what ran, and how it ended, in one line."""
    title = find_title(report)
    if len(title) > 60:
        title = title[:57] + "..."
    hint = ""
    if report.ending in ("abandoned", "tracker killed", "killed"):
        hint = "; figures up to the last sample"
    return f"{title}: {describe_ending(report.ending, report.exit_code)}{hint}"


def _lay_out_title(report: Report, view: View) -> list[str]:
    lines = wrap(neutralize(describe_title(report)), view.columns, 2 * len(_MARGIN))
    return [_paint(line, BOLD, view) for line in lines]


def _paint(text: str, style: str, view: View) -> str:
    return paint((Span(text, style),), count_cells(text), has_colour=view.has_colour)


def _describe_time(report: Report) -> str:
    started = report.header.started_at[:16].replace("T", " ")
    length = "-" if report.summary.is_unread else humanize_seconds(report.summary.seconds)
    return f"{length}, from {started} on {shorten(report.header.host, _HOST_CELLS)}"


def _describe_cost(report: Report) -> list[str]:
    if report.tracker_cpu_seconds is None or not report.tracker_ram_bytes:
        return []
    ram = humanize_bytes(report.tracker_ram_bytes)
    return [f"tracker's own cost: {report.tracker_cpu_seconds:.2f} s CPU, {ram} (excluded)"]


def _lay_out_finding(text: str, view: View) -> list[str]:
    """The word before the sentence says what its colour says."""
    first, *others = lay_out(text, view)
    word = text.partition(":")[0]
    return [first.replace(word, _paint(word, _STYLES[word], view), 1) if word in _STYLES else first, *others]
