"""Documents as Markdown, for pull requests, tickets, summaries of CI and language models. Pure.

Short, with figures under the names that they have in JSON. Names from outside are code: nothing in code is a link, a
mention, HTML or a picture.
"""

from __future__ import annotations

import re

from ..analysis.measures import overall_values
from ..core.blocks import draw_line
from ..core.figures import RUN, TIME, humanize
from ..core.text import count_of, neutralize, shorten, shorten_middle
from ..core.vendors import NO_GPU
from .region_tables import show_peak
from .report import describe_ending, describe_title
from .usage_lines import list_usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..analysis.compare import Comparison, Row
    from ..analysis.findings.finding import Finding
    from ..analysis.job import Combined
    from ..analysis.regions import Region
    from ..analysis.runs import Runs
    from .build import Report, Reports
    from .contract import View
    from .rows import Picture

_LINE_CELLS = 24
_NAME_CELLS = 60
_SENTENCE_CELLS = 400
_MOST_FINDINGS, _MOST_REGIONS, _MOST_METRICS, _MOST_NOTES, _MOST_USAGE = 5, 6, 4, 3, 14
_MOST_ROWS = 50
_ACTIVE = re.compile(r"([\\`*_\[\]<>|~#@&])")


def to_markdown(report: Report, _view: View | None = None) -> str:
    """At most sixty lines."""
    values = overall_values(report.summary)
    known = [(f"`{figure.name}`", humanize(values[figure.name], figure.unit)) for figure in RUN]
    lines = [
        f"### {write_code(describe_title(report), 2 * _NAME_CELLS)}",
        "",
        *_table(("figure", "value"), [row for row in known if row[1] != "-"]),
        "",
        *_table(("resource", "used", "over time"), list(_list_usage(report))[:_MOST_USAGE]),
        *_list_findings(report.findings),
        *_list_regions(report),
        *_list_metrics(report),
        *_list_notes(report.notes),
    ]
    return "\n".join(lines) + "\n"


def join_markdown(reports: Reports, _view: View | None = None) -> str:
    """Several reports, with an empty line between."""
    return "\n".join(map(to_markdown, reports.reports))


def compare_to_markdown(comparison: Comparison, _view: View | None = None) -> str:
    """Medians of the figures of whole runs, of notable regions and of metrics; changes beyond noise are bold."""
    names = [write_code(group.name) for group in comparison.groups]
    rows = [("runs", *(str(group.runs) for group in comparison.groups))]
    shown = [row for row in comparison.rows if any(values.median is not None for values in row.groups)]
    shown = [row for row in shown if not row.subject.region or _is_notable(row)]
    rows += [_compare_row(row) for row in shown[: _MOST_ROWS - 10]]
    left = len(shown) - (_MOST_ROWS - 10)
    return _join(
        _table(("figure", *names), rows),
        [f"and {count_of(left, 'more figure')}"] if left > 0 else [],
        _list_notes(comparison.notes),
    )


def combine_to_markdown(combined: Combined, _view: View | None = None) -> str:
    """The totals, and the balance between ranks."""
    title = f"### {count_of(len(combined.ranks), 'recording')} on {count_of(len(combined.hosts), 'host')}"
    totals = [(f"`{figure.name}`", humanize(combined.values[figure.name], figure.unit)) for figure in RUN]
    balance = [
        (
            f"`{one.figure.name}`",
            *(humanize(value, one.figure.unit) for value in (one.smallest, one.median, one.largest)),
        )
        for one in combined.balance
    ]
    hosts = [
        (
            write_code(host.name),
            str(host.ranks),
            humanize(host.ram_at_most_bytes, "bytes"),
            str(len(host.gpus)),
        )
        for host in combined.hosts[: _MOST_ROWS - 30]
    ]
    return _join(
        [title, ""],
        _table(("figure", "value"), [row for row in totals if row[1] != "-"]),
        ["", *_table(("per recording", "smallest", "median", "largest"), balance)] if balance else [],
        ["", *_table(("host", "recordings", "RAM, upper bound", "GPUs"), hosts)],
        _list_notes(combined.notes),
    )


def list_to_markdown(document: Runs, _view: View | None = None) -> str:
    """One row per run."""
    figures = [figure for figure in RUN if figure.name in ("peak_ram", "peak_gpu_ram", "mean_cores")]
    rows = [
        (
            write_code(run.started_at[:16].replace("T", " ")),
            humanize(run.values.get(TIME.name), TIME.unit),
            write_text(run.problem or describe_ending(run.ending, run.exit_code)),
            *(humanize(run.values.get(figure.name), figure.unit) for figure in figures),
            write_code(run.name or " ".join(run.command)),
            write_code(run.path),
        )
        for run in document.runs[:_MOST_ROWS]
    ]
    left = len(document.runs) - _MOST_ROWS
    return _join(
        _table(("when", TIME.label, "end", *(figure.label for figure in figures), "command", "file"), rows),
        [f"and {count_of(left, 'more run')}"] if left > 0 else [],
    )


def write_code(text: str, cells: int = _NAME_CELLS) -> str:
    """Text from outside as code, which a table cannot tear apart either."""
    text = shorten_middle(text, cells).replace("|", "¦").strip()
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}" if text else "-"


def write_text(text: str) -> str:
    """A sentence, in which names from outside may be: nothing in it is Markdown, HTML or a link."""
    escaped = _ACTIVE.sub(r"\\\1", shorten(text, _SENTENCE_CELLS))
    return escaped.replace("://", ":&#47;/").replace("www.", "www&#46;")


def _join(*parts: Iterable[str]) -> str:
    return "\n".join(line for part in parts for line in part) + "\n"


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_row(heading), _row(["---"] * len(heading)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _list_usage(report: Report) -> Iterable[tuple[str, str, str]]:
    for row in list_usage(report, _LINE_CELLS):
        text = f"{row.text} {row.after or ''}".strip()
        yield row.label, write_text(text), _draw(row.picture)


def _draw(picture: Picture | None) -> str:
    return "" if picture is None else f"`{draw_line(picture.values, picture.top, has_unicode=True)}`"


def _list_findings(findings: Sequence[Finding]) -> list[str]:
    lines = [_write_finding(finding) for finding in findings[:_MOST_FINDINGS]]
    left = len(findings) - _MOST_FINDINGS
    if left > 0:
        lines.append(f"- and {count_of(left, 'more finding')} (`-f json` has all)")
    return ["", "**Findings**", "", *lines] if lines else []


def _write_finding(finding: Finding) -> str:
    evidence = ", ".join(f"{neutralize(name)}={value:.6g}" for name, value in finding.evidence)
    proof = f" Evidence: {write_code(evidence, _SENTENCE_CELLS)}." if evidence else ""
    sentence = write_text(f"{finding.sentence} {finding.advice}".strip())
    return f"- **{write_text(finding.severity)}** {write_code(finding.rule)} ({write_text(finding.confidence)}): {sentence}{proof}"


def _list_regions(report: Report) -> list[str]:
    longest = sorted(report.regions, key=lambda region: (-region.wall_seconds, region.path))[:_MOST_REGIONS]
    rows = [_write_region(region, report.summary.seconds) for region in longest]
    if report.outside_seconds is not None:
        rows.append(
            ("outside regions", "", *_write_time(report.outside_seconds, report.summary.seconds), "", "")
        )
    if not rows:
        return []
    left = len(report.regions) - len(longest)
    more = [f"and {count_of(left, 'more region')}"] if left > 0 else []
    return ["", *_table(("region", "calls", "time", "share", "CPU time", "peak RAM"), rows), *more]


def _write_region(region: Region, seconds: float) -> tuple[str, ...]:
    return (
        write_code("/".join(region.path)),
        str(region.calls),
        *_write_time(region.wall_seconds, seconds),
        humanize(region.cpu_seconds, "seconds"),
        show_peak(region),
    )


def _write_time(part_seconds: float, seconds: float) -> tuple[str, str]:
    share = 100 * part_seconds / seconds if seconds else None
    return humanize(part_seconds, "seconds"), humanize(share, "percent")


def _list_metrics(report: Report) -> list[str]:
    rows = [
        (
            write_code(metric.name),
            str(metric.logged),
            *(humanize(value, "number") for value in (metric.last, metric.minimum, metric.maximum)),
        )
        for metric in report.metrics[:_MOST_METRICS]
    ]
    return ["", *_table(("metric", "logged", "last", "smallest", "largest"), rows)] if rows else []


def _list_notes(notes: Sequence[str]) -> list[str]:
    shown = [note for note in notes if note != NO_GPU]
    lines = [f"- note: {write_text(note)}" for note in shown[:_MOST_NOTES]]
    left = len(shown) - _MOST_NOTES
    return ["", *lines, *([f"- and {count_of(left, 'more note')}"] if left > 0 else [])] if lines else []


def _is_notable(row: Row) -> bool:
    return any(change.is_notable for change in row.changes)


def _compare_row(row: Row) -> tuple[str, ...]:
    subject = row.subject
    name = f"`{subject.figure.name}`" if subject.metric is None else write_code(subject.metric)
    where = f" of {write_code('/'.join(subject.region))}" if subject.region else ""
    cells = []
    for values, change in zip(row.groups, (None, *row.changes), strict=True):
        text = humanize(values.median, subject.figure.unit)
        if change is not None and change.ratio is not None:
            text += f" ({change.ratio:.2f}x)"
        cells.append(f"**{text}**" if change is not None and change.is_notable else text)
    return name + where, *cells
