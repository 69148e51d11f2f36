"""The regions and metrics of one run as small tables. Pure."""

from __future__ import annotations

from ..core.figures import BYTES, JOULES, NUMBER, PERCENT, SECONDS, humanize
from ..core.model import EXACT, SHARED
from ..core.text import align, count_cells, shorten, shorten_middle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.regions import Metric, Region
    from .build import Report

MOST_ROWS = 15
_MOST_ROWS_ON_A_SCREEN = 8
_NAME_CELLS = 40
_AT_LEAST = "≥ "
_ABOUT = "~ "
_REGIONS = (
    "region", "calls", "time", "share", "per call", "CPU time", "peak RAM", "GPU RAM", "GPU busy", "energy"
)  # fmt: skip
_METRICS = ("metric", "logged", "last", "smallest", "mean", "largest")
# What a narrow screen has no room for, the first one first.
_DISPENSABLE = (
    "per call", "energy", "GPU RAM", "CPU time", "GPU busy", "calls", "peak RAM", "mean", "smallest", "largest", "logged"
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
    rows = [_region_cells(region, seconds) for region in biggest]
    if report.outside_seconds is not None:
        rows.append(_outside_cells(report.outside_seconds, seconds))
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
        lines = align([[row[index] for index in shown] for row in (heading, *rows)])
        if columns is None or not leaving or max(map(count_cells, lines)) <= columns:
            return lines
        known.remove(leaving.pop(0))


def _region_cells(region: Region, seconds: float) -> tuple[str, ...]:
    unfinished = f" (+{region.open_calls} unfinished)" if region.open_calls else ""
    return (
        name_region(region.path),
        f"{region.calls}{unfinished}",
        humanize(region.wall_seconds, SECONDS),
        _show_share(region.wall_seconds, seconds),
        humanize(region.mean_seconds, SECONDS),
        f"{_ABOUT if region.cpu_basis == SHARED else ''}{humanize(region.cpu_seconds, SECONDS)}",
        show_peak(region),
        humanize(region.gpu_bytes, BYTES),
        humanize(region.gpu_percent, PERCENT),
        humanize(region.energy_joules, JOULES),
    )


def _outside_cells(outside_seconds: float, seconds: float) -> tuple[str, ...]:
    known = ("outside regions", "", humanize(outside_seconds, SECONDS), _show_share(outside_seconds, seconds))
    return (*known, *[""] * (len(_REGIONS) - len(known)))


def _show_share(part_seconds: float, seconds: float) -> str:
    """Of the run. Above 100 % if several processes or threads were inside at once."""
    return humanize(100 * part_seconds / seconds if seconds else None, PERCENT)


def show_peak(region: Region) -> str:
    """A sampled peak is a lower bound."""
    size = humanize(region.peak_ram_bytes, BYTES)
    is_bound = region.peak_ram_bytes is not None and region.peak_ram_basis != EXACT
    return f"{_AT_LEAST}{size}" if is_bound else size


def _metric_cells(metric: Metric) -> tuple[str, ...]:
    return (
        shorten(metric.name, _NAME_CELLS),
        str(metric.logged),
        *(humanize(value, NUMBER) for value in (metric.last, metric.minimum, metric.mean, metric.maximum)),
    )


def _count_rest(count: int, what: str) -> list[str]:
    return [f"and {count} more {what} (the JSON report has all)"] if count > 0 else []
