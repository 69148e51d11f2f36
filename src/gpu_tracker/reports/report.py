"""A report as text for people: what was used, of how much, and how sure that is."""

from __future__ import annotations

from ..core.text import (
    BOLD,
    RED,
    YELLOW,
    Span,
    count_cells,
    neutralize,
    paint,
    to_ascii,
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
    from .build import Report, Reports
    from .contract import View

_ENDINGS = {
    "running": "still running",
    "stopped": "finished",
    "ended": "ended, exit code not known",
    "interrupted": "interrupted",
    "raised": "ended by an exception",
    "abandoned": "ended without stopping gpu-tracker",
    "killed": "cut off",
    "sampler lost": "finished, but its sampler was lost",
}
_MARGIN = "  "
_STYLES = {"serious": RED, "warning": YELLOW}
_MOST_NOTES = 25


def to_text(report: Report, view: View) -> str:
    """What was used, what was found, where the time went, and the notes; ends with a newline."""
    rows = [Row("time", _describe_time(report)), *list_usage(report, count_line_cells(view))]
    if report.frameworks:
        from .framework_lines import format_frameworks

        rows += [Row(*row) for row in format_frameworks(report.frameworks)]
    rows += [Row(*row) for row in format_energy(report.energy, report.carbon)]
    lines = [_paint_title(report, view), *lay_out_rows(rows, view)]
    if report.findings:
        from .finding_lines import format_findings

        lines += [line for text in format_findings(report.findings) for line in _lay_out_finding(text, view)]
    lines += [line for text in format_next_time(report.sizing) for line in lay_out(text, view)]
    if report.regions or report.metrics:
        from .region_tables import format_metrics, format_regions

        room = None if view.columns is None else view.columns - len(_MARGIN)
        tables = [*format_regions(report, room), *format_metrics(report.metrics, room)]
        lines += [_MARGIN + neutralize(line) for line in tables]
    # The row of the GPU says that there is none.
    notes = [f"note: {note}" for note in report.notes if note != NO_GPU]
    if len(notes) > _MOST_NOTES:
        notes[_MOST_NOTES:] = [f"and {len(notes) - _MOST_NOTES} more notes (the JSON report has all)"]
    lines += [line for text in (*_describe_cost(report), *notes) for line in lay_out(text, view)]
    text = "\n".join(lines) + "\n"
    return text if view.has_unicode else to_ascii(text)


def join_texts(reports: Reports, view: View) -> str:
    """Several reports, with an empty line between."""
    return "\n".join(to_text(report, view) for report in reports.reports)


def describe_ending(ending: str, code: int | None) -> str:
    """How a job ended, in a few words."""
    if code is None:
        return _ENDINGS.get(ending, ending)
    lost = ", but its sampler was lost" if ending == "sampler lost" else ""
    return f"exit code {code}{lost}" if code >= 0 else f"killed by {_name_signal(-code)}{lost}"


def _name_signal(number: int) -> str:
    from signal import Signals

    try:
        return f"{Signals(number).name} ({number})"
    except ValueError:
        return f"signal {number}"


def describe_title(report: Report) -> str:
    """What ran and how it ended, in one line."""
    command = " ".join(report.header.command) or f"process {report.header.pid}"
    if len(command) > 60:
        command = command[:57] + "..."
    hint = ""
    if report.ending in ("abandoned", "killed"):
        hint = "; figures up to the last sample"
    return f"{command}: {describe_ending(report.ending, report.exit_code)}{hint}"


def _paint_title(report: Report, view: View) -> str:
    lines = wrap(neutralize(describe_title(report)), view.columns, 2 * len(_MARGIN))
    return "\n".join(_paint(line, BOLD, view) for line in lines)


def _paint(text: str, style: str, view: View) -> str:
    return paint((Span(text, style),), count_cells(text), has_colour=view.has_colour)


def _describe_time(report: Report) -> str:
    started = report.header.started_at[:16].replace("T", " ")
    return f"{humanize_seconds(report.summary.seconds)}, from {started} on {report.header.host}"


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
