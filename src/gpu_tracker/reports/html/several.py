"""Several runs in one page: what differs between them, or the ranks of one job. Pure; no figure is computed here."""

from __future__ import annotations

from ...analysis.charts import Run, overlay
from ...analysis.measures import overall_values
from ...core.figures import RUN, humanize
from ...core.text import count_of
from ..comparison import format_cells, label_row, list_statements
from ..job import describe_host, title_job
from ..region_tables import name_region
from ..report import describe_ending
from . import fragments
from .drawing import draw_charts
from .page import assemble, chart_frame, section, title_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...analysis.charts import Chart
    from ...analysis.compare import Comparison
    from ...analysis.job import Combined
    from ..build import Reports
    from ..contract import View

_MOST_ROWS = 400


def show_comparison(comparison: Comparison, _view: View | None = None) -> str:
    """What changed in words, the runs over time, then all figures side by side."""
    names = [group.name for group in comparison.groups]
    heading = ["figure", *(f"{group.name} ({count_of(group.runs, 'run')})" for group in comparison.groups)]
    statements = fragments.statements(list_statements(comparison)) if len(names) > 1 else ""
    return _show(
        f"{' against '.join(names[:2])}{' and others' * (len(names) > 2)}",
        comparison.charts,
        section("What changed", statements),
        section("All figures", fragments.table(heading, list(_list_rows(comparison))[:_MOST_ROWS])),
        section("Notes", fragments.notes(comparison.notes)),
    )


def _list_rows(comparison: Comparison) -> Iterator[list[str]]:
    for row in comparison.rows:
        if any(values.median is not None for values in row.groups):
            where = f"{name_region(row.subject.region)}: " if row.subject.region else ""
            yield [f"{where}{label_row(row).strip()}", *format_cells(row)]


def show_reports(reports: Reports, _view: View | None = None) -> str:
    """Runs over time and side by side, without a judgement."""
    runs = [Run(title_run(report), report.list_charts()) for report in reports.reports]
    heading = ("run", "started", *(figure.label for figure in RUN), "end")
    rows = [
        (
            run.name,
            report.header.started_at[:19].replace("T", " "),
            *_figures(overall_values(report.summary)),
            describe_ending(report.ending, report.exit_code),
        )
        for run, report in zip(runs, reports.reports, strict=True)
    ]
    table = section("Runs", fragments.table_of_known(heading, rows))
    return _show(count_of(len(runs), "run"), overlay(runs), table)


def _figures(values: Mapping[str, float | None]) -> list[str]:
    return [humanize(values.get(figure.name), figure.unit) for figure in RUN]


def show_job(combined: Combined, _view: View | None = None) -> str:
    """The whole job, its hosts, then each rank."""
    totals = [
        (figure.label, humanize(value, figure.unit))
        for figure in RUN
        if (value := combined.values[figure.name]) is not None
    ]
    ranks = [
        (
            rank.name,
            rank.host,
            *_figures(rank.values),
            describe_ending(rank.ending, rank.exit_code),
        )
        for rank in combined.ranks[:_MOST_ROWS]
    ]
    hosts = [(host.name, *describe_host(host)) for host in combined.hosts]
    heading = ("rank", "host", *(figure.label for figure in RUN), "end")
    return _show(
        title_job(combined),
        combined.charts,
        section("The whole job", fragments.table(("figure", "value"), totals)),
        section("Hosts", fragments.table_of_known(("host", "recordings", "RAM", "devices"), hosts)),
        section("Ranks", fragments.table_of_known(heading, ranks)),
        section("Notes", fragments.notes(combined.notes)),
    )


def _show(title: str, charts: Sequence[Chart], first: str, *rest: str) -> str:
    seconds = max((line.end[-1] for chart in charts for line in chart.lines if line.end), default=0.0)
    data, packed = draw_charts(charts, seconds)
    over_time = section("Over time", chart_frame() if data["charts"] else "")
    body = f"<header><h1>{fragments.text(title)}</h1></header><main>{first}{over_time}{''.join(rest)}</main>"
    return assemble(title, body, data, packed)
