"""Charts of several runs on one time axis, read from their recordings."""

from __future__ import annotations

from ..analysis.charts import Run, overlay
from ..core.errors import RecordingError
from ..core.moments import parse_moment
from ..recording.reader import load
from .reporting import report_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..analysis.charts import Chart
    from ..core.model import RecordingData

# More would be neither readable nor quick.
_MOST_RUNS = 64


def draw_runs(named: Iterable[tuple[str, str]]) -> tuple[Chart, ...]:
    """Runs by name and path, all beginning at zero; what cannot be read is left out."""
    runs = []
    for name, path in list(named)[:_MOST_RUNS]:
        try:
            runs.append(Run(name, report_on(load(path)).list_charts()))
        except RecordingError:
            continue
    return overlay(runs)


def draw_ranks(recordings: Sequence[tuple[str, RecordingData]]) -> tuple[Chart, ...]:
    """Ranks by name, each beginning when it began."""
    begins = [parse_moment(recording.header.started_at) or 0.0 for _, recording in recordings]
    first = min(begins, default=0.0)
    shown = zip(recordings[:_MOST_RUNS], begins, strict=False)
    return overlay(
        [Run(name, report_on(recording).list_charts(), begin - first) for (name, recording), begin in shown]
    )
