"""Documents as Markdown, for pull requests, tickets, summaries of CI and language models. Pure.

Short, with figures under the names that they have in JSON. Names from outside are code: nothing in code is a link, a
mention, HTML or a picture.
"""

from __future__ import annotations

import re

from ..analysis.compare import CANNOT_TELL, CHANGED
from ..analysis.measures import (
    find_most_unutilized_seconds,
    list_estimates,
    list_lower_bounds,
    overall_values,
)
from ..core.blocks import draw_line
from ..core.figures import RUN, TIME
from ..core.text import count_of, join_command, neutralize, shorten, shorten_middle
from ..core.units import humanize
from ..core.vendors import NO_GPU
from .comparison import show_median
from .energy_lines import format_energy, format_gpu_energy
from .job import (
    METRICS,
    SPREAD,
    list_findings,
    list_metrics,
    list_spread,
    list_totals,
    name_balance,
    show_balance,
    title_job,
)
from .region_tables import count_logged, show_cpu, show_last, show_peak
from .report import describe_ending, describe_title
from .runs import mark
from .sizing_lines import format_basis, format_choice, format_lead, format_slurm
from .usage_lines import list_unknown, list_usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..analysis.compare import Comparison, Row
    from ..analysis.findings.finding import Finding
    from ..analysis.job import Combined
    from ..analysis.regions import Region
    from ..analysis.runs import Runs
    from ..analysis.sizing import Sizing
    from .build import Report, Reports
    from .contract import View
    from .rows import Picture

_LINE_CELLS = 24
_NAME_CELLS = 60
_SENTENCE_CELLS = 400
_MOST_FINDINGS, _MOST_REGIONS, _MOST_METRICS, _MOST_NOTES, _MOST_USAGE = 5, 6, 4, 3, 12
_MOST_ROWS, _MOST_CHANGES, _MOST_HOSTS = 50, 40, 20
_SIGNS = {CHANGED: "**bold**: beyond noise", CANNOT_TELL: "?: cannot tell, too few runs"}
_ACTIVE = re.compile(r"([\\`*_\[\]<>|~#@&])")


def to_markdown(report: Report, view: View) -> str:
    """At most sixty lines."""
    chosen = _list_chosen(report)
    usage = list(_list_usage(report, view))
    lines = [
        f"### {write_code(describe_title(report), 2 * _NAME_CELLS)}",
        "",
        *_table(("figure", "value"), [*_list_figures(report), *chosen]),
        "",
        *_cut_table(("resource", "used", "over time"), usage, _MOST_USAGE - len(chosen), "row"),
        *_list_findings(report.findings),
        *_list_regions(report),
        *_list_metrics(report),
        *_list_notes(report.notes),
    ]
    return "\n".join(lines) + "\n"


def _list_figures(report: Report) -> list[tuple[str, str]]:
    """Those of the whole run that are known."""
    values = overall_values(report.summary)
    marks = list_estimates(report.summary), list_lower_bounds(report.summary, report.ending)
    shown = {figure.name: mark(figure, values[figure.name], *marks) for figure in RUN}
    shown["energy"] = format_gpu_energy(report.energy)
    for text in list_unknown(find_most_unutilized_seconds(report.summary)):
        shown["gpu_utilization"] += f" ({text})"
    return [(f"`{name}`", shown[name]) for name in shown if values[name] is not None]


def _list_chosen(report: Report) -> list[tuple[str, str]]:
    """What to ask for the next time, and what the user has asked for with factors and prices."""
    carbon = format_energy(report.energy, report.carbon)[1:]
    machine = [] if report.machine is None else [("machine", format_choice(report.machine))]
    chosen = [(label, write_text(words)) for label, words in (*carbon, *machine)]
    return [*_list_request(report.sizing, report.header.identity.ranks), *chosen]


def _list_request(sizing: Sizing | None, ranks: int | None) -> list[tuple[str, str]]:
    request = "" if sizing is None else format_slurm(sizing)
    if sizing is None or not request:
        return []
    words = f"{write_code(request, _SENTENCE_CELLS)} ({format_basis(sizing, ranks)})"
    return [(format_lead(sizing, ranks), words)]


def join_markdown(reports: Reports, view: View) -> str:
    """Several reports, with an empty line between."""
    return "\n".join(to_markdown(report, view) for report in reports.reports)


def compare_to_markdown(comparison: Comparison, _view: View | None = None) -> str:
    """Medians of the figures of whole runs, of notable regions and of metrics, with their ratios to the first."""
    names = [write_code(group.name) for group in comparison.groups]
    rows = [("runs", *(str(group.runs) for group in comparison.groups))]
    shown = [row for row in comparison.rows if any(values.median is not None for values in row.groups)]
    shown = [row for row in shown if not row.subject.region or _is_notable(row)]
    rows += map(_compare_row, shown)
    verdicts = {change.verdict for row in shown for change in row.changes if change.is_notable}
    signs = [words for verdict, words in _SIGNS.items() if verdict in verdicts]
    return _join(
        _cut_table(("figure", *names), rows, 1 + _MOST_CHANGES, "figure"),
        ["", "; ".join(signs)] if signs else [],
        _list_notes(comparison.notes),
    )


def combine_to_markdown(combined: Combined, _view: View | None = None) -> str:
    """The totals, and the balance between ranks."""
    title = f"### {write_text(title_job(combined))}"
    totals = [
        (f"`{name}`" if name else label, write_text(value)) for name, label, value in list_totals(combined)
    ]
    balance = [
        (
            write_text(name_balance(one)) if one.region else f"`{one.figure.name}`",
            *show_balance(one),
            write_text(one.largest_rank),
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
        for host in combined.hosts
    ]
    metrics = [tuple(map(write_text, row)) for row in list_metrics(combined.metrics)]
    return _join(
        [title, ""],
        _table(SPREAD, [tuple(map(write_text, row)) for row in list_spread(combined)])
        if combined.tasks
        else _table(("figure", "value"), totals),
        ["", *_table(("per recording", "smallest", "median", "largest", "largest is"), balance)]
        if balance
        else [],
        ["", *_cut_table(METRICS, metrics, _MOST_METRICS, "metric")] if metrics else [],
        ["", *_cut_table(("host", "recordings", "RAM, upper bound", "GPUs"), hosts, _MOST_HOSTS, "host")]
        if hosts
        else [],
        _list_findings(list_findings(combined.findings)),
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
            *(mark(figure, run.values.get(figure.name), run.estimates, run.at_least) for figure in figures),
            write_code(run.name or join_command(run.command)),
            write_code(run.path),
        )
        for run in document.runs
    ]
    heading = ("when", TIME.label, "end", *(figure.label for figure in figures), "command", "file")
    return _join(_cut_table(heading, rows, _MOST_ROWS, "run"))


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


def _cut_table(heading: Sequence[str], rows: Sequence[Sequence[str]], most: int, what: str) -> list[str]:
    """The first rows, and how many more there are: as a row, because a line below a table would become one."""
    left = len(rows) - most
    more = [(f"and {count_of(left, f'more {what}')}", *[""] * (len(heading) - 1))] if left > 0 else []
    return _table(heading, [*rows[:most], *more])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _list_usage(report: Report, view: View) -> Iterable[tuple[str, str, str]]:
    for row in list_usage(report, _LINE_CELLS):
        text = f"{row.text} {row.after or ''}".strip()
        yield row.label, write_text(text), _draw(row.picture, view)


def _draw(picture: Picture | None, view: View) -> str:
    if picture is None:
        return ""
    return f"`{draw_line(picture.values, picture.top, has_unicode=view.has_unicode)}`"


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
    if not report.regions:
        return []
    longest = sorted(report.regions, key=lambda region: (-region.wall_seconds, region.path))
    rows = [_write_region(region, report.summary.seconds) for region in longest]
    heading = ("region", "calls", "time", "share", "CPU time", "peak RAM")
    lines = ["", *_cut_table(heading, rows, _MOST_REGIONS, "region")]
    if report.outside_seconds is not None:
        times = _write_time(report.outside_seconds, report.summary.seconds)
        lines.append(_row(("outside regions", "", *times, "", "")))
    return lines


def _write_region(region: Region, seconds: float) -> tuple[str, ...]:
    return (
        write_code("/".join(region.path)),
        str(region.calls),
        *_write_time(region.wall_seconds, seconds),
        show_cpu(region),
        show_peak(region),
    )


def _write_time(part_seconds: float, seconds: float) -> tuple[str, str]:
    share = 100 * part_seconds / seconds if seconds else None
    return humanize(part_seconds, "seconds"), humanize(share, "percent")


def _list_metrics(report: Report) -> list[str]:
    rows = [
        (
            write_code(metric.name),
            count_logged(metric),
            show_last(metric),
            *(humanize(value, "number") for value in (metric.minimum, metric.maximum)),
        )
        for metric in report.metrics
    ]
    heading = ("metric", "logged", "last", "smallest", "largest")
    return ["", *_cut_table(heading, rows, _MOST_METRICS, "metric")] if rows else []


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
        text = show_median(values, subject.figure.unit)
        if change is not None and change.ratio is not None:
            text += f" ({change.ratio:.2f}x)"
        verdict = change.verdict if change is not None and change.is_notable else ""
        cells.append(f"**{text}**" if verdict == CHANGED else f"{text} ?" if verdict == CANNOT_TELL else text)
    return name + where, *cells
