"""Several runs in one page: what differs between them, or the ranks of one job. Pure; no figure is computed here."""

from __future__ import annotations

from ...analysis.charts import Run, overlay
from ...analysis.measures import list_estimates, list_lower_bounds, overall_values
from ...core.figures import RUN
from ...core.text import count_of
from ...core.units import PERCENT, humanize
from ..comparison import format_cells, label_row, list_statements
from ..energy_lines import format_gpu_energy
from ..job import (
    BALANCE,
    METRICS,
    SPREAD,
    describe_host,
    list_findings,
    list_metrics,
    list_spread,
    list_totals,
    name_balance,
    show_balance,
    title_job,
)
from ..region_tables import name_region
from ..report import describe_ending
from ..runs import HEADING, list_cells, mark
from . import fragments
from .drawing import draw_charts
from .page import Page, assemble, chart_frame, name_run, section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...analysis.charts import Chart
    from ...analysis.compare import Comparison
    from ...analysis.job import Combined
    from ...analysis.runs import Runs
    from ..build import Reports
    from ..contract import View

_MOST_ROWS = 400


def show_comparison(comparison: Comparison, _view: View | None = None) -> str:
    """What changed in words, the runs over time, then all figures side by side."""
    first, *others = (group.name for group in comparison.groups)
    against = [f"{others[0]}{' and others' * (len(others) > 1)}", first] if others else [first]
    statements, figures, notes = tabulate_comparison(comparison)
    return _show(
        " against ".join(against),
        comparison.charts,
        section("What changed", statements),
        section("All figures", figures),
        section(
            "Runs",
            fragments.table(("run", "file"), comparison.files[:_MOST_ROWS]) if comparison.files else "",
        ),
        section("Notes", notes),
    )


def tabulate_comparison(comparison: Comparison) -> tuple[str, str, str]:
    """What changed in words, all figures side by side, and the notes."""
    heading = ["figure", *(f"{group.name} ({count_of(group.runs, 'run')})" for group in comparison.groups)]
    return (
        fragments.statements(list_statements(comparison)) if len(comparison.groups) > 1 else "",
        fragments.table(heading, list(_list_rows(comparison))[:_MOST_ROWS]),
        fragments.notes(comparison.notes),
    )


def _list_rows(comparison: Comparison) -> Iterator[list[str]]:
    for row in comparison.rows:
        if any(values.median is not None for values in row.groups):
            where = f"{name_region(row.subject.region)}: " if row.subject.region else ""
            yield [f"{where}{label_row(row).strip()}", *format_cells(row)]


def show_reports(reports: Reports, _view: View | None = None) -> str:
    """Runs over time and side by side, without a judgement."""
    runs = [Run(name_run(report), report.list_charts()) for report in reports.reports]
    heading = ("run", "started", *(figure.label for figure in RUN), "end")
    rows = [
        (
            run.name,
            report.header.started_at[:19].replace("T", " "),
            *_figures(
                overall_values(report.summary),
                format_gpu_energy(report.energy),
                estimates=list_estimates(report.summary),
                at_least=list_lower_bounds(report.summary, report.ending),
            ),
            describe_ending(report.ending, report.exit_code),
        )
        for run, report in zip(runs, reports.reports, strict=True)
    ]
    table = section("Runs", fragments.table_of_known(heading, rows))
    return _show(count_of(len(runs), "run"), overlay(runs), table)


def show_runs(document: Runs, _view: View | None = None) -> str:
    """Past runs as a list, then over time."""
    rows = [list_cells(run) for run in document.runs if not run.problem]
    listed = fragments.table_of_known(HEADING, rows[:_MOST_ROWS]) if rows else ""
    damaged = [run.problem for run in document.runs if run.problem]
    return _show(
        count_of(len(rows), "run"),
        document.charts,
        section("Runs", listed + fragments.count_rest(len(rows) - _MOST_ROWS, "runs")),
        section("Damaged", fragments.notes(damaged)),
    )


def _figures(
    values: Mapping[str, float | None],
    energy: str = "",
    *,
    estimates: Sequence[str],
    at_least: Sequence[str],
) -> list[str]:
    """With the energy in words, if there are any and it is known for enough of the run."""
    shown = {figure.name: mark(figure, values.get(figure.name), estimates, at_least) for figure in RUN}
    return list((shown | ({"energy": energy} if energy and shown["energy"] != "-" else {})).values())


def show_job(combined: Combined, _view: View | None = None) -> str:
    """The whole job, its hosts, then each rank."""
    totals = [(label, value) for _, label, value in list_totals(combined)]
    ranks = [
        (
            rank.name,
            rank.host,
            *_figures(rank.values, estimates=rank.estimates, at_least=rank.at_least),
            describe_ending(rank.ending, rank.exit_code),
        )
        for rank in combined.ranks[:_MOST_ROWS]
    ]
    hosts = [(host.name, *describe_host(host)) for host in combined.hosts]
    balance = [
        (name_balance(one), *show_balance(one), humanize(one.load_balance_percent, PERCENT), one.largest_rank)
        for one in combined.balance
    ]
    heading = ("rank", "host", *(figure.label for figure in RUN), "end")
    return _show(
        title_job(combined),
        combined.charts,
        section("The whole job", fragments.table(("figure", "value"), totals))
        if totals
        else section("Runs, not added up", fragments.table(SPREAD, list_spread(combined))),
        section("What was found", fragments.findings(list_findings(combined.findings)))
        if combined.findings
        else "",
        section("Balance", fragments.table(BALANCE, balance)) if balance else "",
        section("Metrics", fragments.table(METRICS, list_metrics(combined.metrics[:_MOST_ROWS])))
        if combined.metrics
        else "",
        section("Hosts", fragments.table_of_known(("host", "recordings", "RAM", "devices"), hosts))
        if hosts
        else "",
        section("Ranks", fragments.table_of_known(heading, ranks)),
        section("Notes", fragments.notes(combined.notes)),
    )


def _show(title: str, charts: Sequence[Chart], first: str, *rest: str) -> str:
    seconds = max((line.end[-1] for chart in charts for line in chart.lines if line.end), default=0.0)
    data, packed = draw_charts(charts, seconds)
    over_time = section("Over time", chart_frame() if data["charts"] else "")
    body = f"<header><h1>{fragments.text(title)}</h1></header><main>{first}{over_time}{''.join(rest)}</main>"
    return assemble(Page(title, body, data, packed))
