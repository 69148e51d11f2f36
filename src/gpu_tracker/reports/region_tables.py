"""The regions and metrics of one run as small tables. Pure."""

from __future__ import annotations

from ..core.model import ESTIMATE, EXACT, SAMPLED, SHARED
from ..core.text import align, find_excess, narrow, shorten, shorten_middle
from ..core.units import BYTES, JOULES, NUMBER, PERCENT, SECONDS, humanize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.regions import Metric, Region
    from .build import Report

MOST_ROWS = 15
_MOST_ROWS_ON_A_SCREEN = 8
_NAME_CELLS, _FEWEST_NAME_CELLS = 40, 8
_AT_LEAST = "≥ "
_CPU_MARKS = {SHARED: "~ ", SAMPLED: _AT_LEAST}
_REGIONS = (
    "region", "calls", "time", "share", "per call", "CPU time", "peak RAM", "GPU RAM", "GPU busy", "energy"
)  # fmt: skip
_METRICS = ("metric", "logged", "last", "smallest", "mean", "largest")
# What a narrow screen has no room for, the first one first.
_DISPENSABLE = (
    "per call", "energy", "GPU RAM", "CPU time", "GPU busy", "calls", "peak RAM", "mean", "smallest", "largest"
)  # fmt: skip


def name_region(path: Sequence[str]) -> str:
    """The path of a region in one line, outermost first."""
    return shorten_middle("/".join(path), _NAME_CELLS)


def format_regions(report: Report, columns: int | None = None) -> list[str]:
    """The longest regions first, then the time outside of all."""
    regions, seconds = report.regions, report.summary.seconds
    if not regions:
        return []
    biggest = sorted(regions, key=lambda region: (-region.wall_seconds, region.path))[: _most_rows(columns)]
    rows = [(name_region(region.path), *region_cells(region, seconds)) for region in biggest]
    if report.outside_seconds is not None:
        rows.append(outside_cells(report.outside_seconds, seconds))
    return [*_tabulate(_REGIONS, rows, columns), *_count_rest(len(regions) - len(biggest), "regions")]


def format_metrics(metrics: Sequence[Metric], columns: int | None = None) -> list[str]:
    """What the job logged."""
    if not metrics:
        return []
    shown = metrics[: _most_rows(columns)]
    rows = [_metric_cells(metric) for metric in shown]
    return [*_tabulate(_METRICS, rows, columns), *_count_rest(len(metrics) - len(shown), "metrics")]


def _most_rows(columns: int | None) -> int:
    return MOST_ROWS if columns is None else _MOST_ROWS_ON_A_SCREEN


def _tabulate(heading: Sequence[str], rows: Sequence[Sequence[str]], columns: int | None) -> list[str]:
    """Without columns that have no value, and as few of the others as there is room for."""
    known = {name for index, name in enumerate(heading) if any(row[index].strip(" -") for row in rows)}
    leaving = [name for name in _DISPENSABLE if name in known]
    while True:
        shown = [index for index, name in enumerate(heading) if name in known]
        table = [[row[index] for index in shown] for row in (heading, *rows)]
        lines = align(table)
        excess = find_excess(lines, columns)
        if not excess:
            return lines
        if not leaving:
            return align(narrow(table, 0, excess, _FEWEST_NAME_CELLS))
        known.remove(leaving.pop(0))


def region_cells(region: Region, seconds: float) -> tuple[str, ...]:
    """What a table says of a region after its name."""
    unfinished = f" (+{region.open_calls} unfinished)" if region.open_calls else ""
    return (
        f"{region.calls}{unfinished}",
        humanize(region.wall_seconds, SECONDS),
        _show_share(region.wall_seconds, seconds),
        humanize(region.mean_seconds, SECONDS),
        show_cpu(region),
        show_peak(region),
        humanize(region.gpu_bytes, BYTES),
        f"{'~ ' if region.gpu_unknown_seconds else ''}{humanize(region.gpu_percent, PERCENT)}",
        f"{'~ ' if region.energy_basis == ESTIMATE else ''}{humanize(region.energy_joules, JOULES)}",
    )


def outside_cells(outside_seconds: float, seconds: float) -> tuple[str, ...]:
    """What a table says of the time outside of all regions, its name included."""
    known = ("outside regions", "", humanize(outside_seconds, SECONDS), _show_share(outside_seconds, seconds))
    return (*known, *[""] * (len(_REGIONS) - len(known)))


def _show_share(part_seconds: float, seconds: float) -> str:
    """Of the run. Above 100 % if several processes or threads were inside at once."""
    return humanize(100 * part_seconds / seconds if seconds > 0 else None, PERCENT)


def show_cpu(region: Region) -> str:
    """CPU time part of which may be other code's is approximate; a sampled one is a lower bound."""
    return f"{_CPU_MARKS.get(region.cpu_basis, '')}{humanize(region.cpu_seconds, SECONDS)}"


def show_peak(region: Region) -> str:
    """A sampled peak is a lower bound."""
    size = humanize(region.peak_ram_bytes, BYTES)
    is_bound = region.peak_ram_bytes is not None and region.peak_ram_basis != EXACT
    return f"{_AT_LEAST}{size}" if is_bound else size


def _metric_cells(metric: Metric) -> tuple[str, ...]:
    return (
        shorten(metric.name, _NAME_CELLS),
        count_logged(metric),
        show_last(metric),
        *(humanize(value, NUMBER) for value in (metric.minimum, metric.mean, metric.maximum)),
    )


def show_last(metric: Metric) -> str:
    """A loss that ended as nan is not one that is unknown."""
    return metric.last_not_finite or humanize(metric.last, NUMBER)


def count_logged(metric: Metric) -> str:
    """How often, and how many of these were nan or inf: they are in no other figure."""
    return f"{metric.logged} ({metric.not_finite} not finite)" if metric.not_finite else str(metric.logged)


def _count_rest(count: int, what: str) -> list[str]:
    return [f"and {count} more {what} (the JSON report has all)"] if count > 0 else []
