"""What a job does now and has done lately, for the views that follow it. Pure."""

from __future__ import annotations

from math import nan

from ..core.text import neutralize
from ..core.units import humanize_number
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..analysis.findings.finding import Finding
    from ..analysis.intervals import Interval
    from ..core.model import Call, MetricRow

    Path = tuple[str, ...]

# As many intervals as a small picture has room for.
MOST_INTERVALS = 40
_MOST_METRICS = 2


class Glimpse(NamedTuple):
    """One look at a running job."""

    seconds: float
    """Since it began."""
    cores: float = 0.0
    """How many it may use; 0 if that is not known yet."""
    ram_bytes: int = 0
    """The same of memory."""
    intervals: tuple[Interval, ...] = ()
    """The last ones, oldest first."""
    region: str = ""
    metrics: str = ""
    findings: tuple[Finding, ...] = ()
    """Worst first."""

    @property
    def now(self) -> Interval | None:
        """The newest interval."""
        return self.intervals[-1] if self.intervals else None

    @property
    def busy_cores(self) -> tuple[float, ...]:
        """Over time; nan where nothing is known."""
        return tuple(nan if one.cpu_cores is None else one.cpu_cores for one in self.intervals)

    @property
    def held_bytes(self) -> tuple[float, ...]:
        """RAM over time; nan where nothing is known."""
        return tuple(nan if one.ram_bytes is None else one.ram_bytes for one in self.intervals)


def name_region(calls: Sequence[Call], n_ended: Mapping[tuple[int, Path], int], main_pid: int) -> str:
    """The region that was entered last, rather of the main process; how many times the outermost was entered tells how far it is."""
    if not calls:
        return ""
    call = max(calls, key=lambda call: (call.pid == main_pid, call.start_seconds, len(call.path)))
    first, *rest = map(neutralize, call.path)
    ended = n_ended.get((call.pid, call.path[:1]), 0)
    return "/".join([f"{first} {ended + 1}" if ended else first, *rest])


def name_metrics(row: MetricRow | None) -> str:
    """The metrics that were logged last."""
    if row is None:
        return ""
    values = list(row.values.items())[:_MOST_METRICS]
    return "  ".join(f"{neutralize(name)} {humanize_number(value)}" for name, value in values)
