"""The regions and metrics of one run as small tables. Pure."""

from __future__ import annotations

from ..core.figures import BYTES, JOULES, NUMBER, PERCENT, SECONDS, humanize
from ..core.model import EXACT, SHARED
from ..core.text import align, shorten, shorten_middle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.regions import Metric, Region

MOST_ROWS = 15
_NAME_CELLS = 40
_AT_LEAST = "≥ "
_ABOUT = "~ "


def name_region(path: Sequence[str]) -> str:
    """The path of a region in one line, outermost first."""
    return shorten_middle("/".join(path), _NAME_CELLS)


def format_regions(regions: Sequence[Region]) -> list[str]:
    """The longest regions first, without columns that have no value."""
    if not regions:
        return []
    biggest = sorted(regions, key=lambda region: (-region.wall_seconds, region.path))[:MOST_ROWS]
    rows: list[tuple[str, ...]] = [
        ("region", "calls", "time", "per call", "CPU time", "peak RAM", "GPU RAM", "GPU busy", "energy")
    ]
    rows.extend(_region_cells(region) for region in biggest)
    known = [index for index in range(len(rows[0])) if any(row[index] != "-" for row in rows[1:])]
    lines = align([[row[index] for index in known] for row in rows])
    return [*lines, *_count_rest(len(regions) - len(biggest), "regions")]


def format_metrics(metrics: Sequence[Metric]) -> list[str]:
    """What the job logged."""
    if not metrics:
        return []
    rows: list[tuple[str, ...]] = [("metric", "logged", "last", "smallest", "mean", "largest")]
    rows.extend(_metric_cells(metric) for metric in metrics[:MOST_ROWS])
    return [*align(rows), *_count_rest(len(metrics) - MOST_ROWS, "metrics")]


def _region_cells(region: Region) -> tuple[str, ...]:
    unfinished = f" (+{region.open_calls} unfinished)" if region.open_calls else ""
    return (
        name_region(region.path),
        f"{region.calls}{unfinished}",
        humanize(region.wall_seconds, SECONDS),
        humanize(region.mean_seconds, SECONDS),
        f"{_ABOUT if region.cpu_basis == SHARED else ''}{humanize(region.cpu_seconds, SECONDS)}",
        _show_peak(region),
        humanize(region.gpu_bytes, BYTES),
        humanize(region.gpu_percent, PERCENT),
        humanize(region.energy_joules, JOULES),
    )


def _show_peak(region: Region) -> str:
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
