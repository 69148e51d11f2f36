"""What will become of a running job if it goes on like this: when its memory is full, its steps are done, its time is up. Pure."""

from __future__ import annotations

from math import isnan

from ..core.units import approximate_seconds
from ..core.values import NamedTuple
from .growth import find_growth
from .series import bin_column, cut_time, make_bins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.columns import SampleColumns

# Of a shorter time nothing follows.
_LEAST_SECONDS = 30.0
_WINDOWS, _FEWEST_WINDOWS = 40, 12
_STEP_PERCENT, _RISING_SHARE, _TOTAL_PERCENT = 0.05, 0.6, 2.0
# Nobody waits for what is further away.
_FURTHEST_SECONDS = 90 * 86400.0
# The rate of steps is that of the last ones: at first a job compiles and warms up.
RECENT_POINTS = 100


class Point(NamedTuple):
    """How many steps were done at a moment."""

    at_seconds: float
    steps: float


class Forecast(NamedTuple):
    """A sentence about the future."""

    sentence: str
    is_bad: bool = False


def foresee_full(columns: SampleColumns, capacity_bytes: float) -> float | None:
    """In how many seconds RAM reaches its limit if it goes on growing; None if it does not grow steadily."""
    start, end = columns.start_seconds, columns.end_seconds
    if not end or end[-1] - start[0] < _LEAST_SECONDS:
        return None
    seconds = end[-1] - start[0]
    bins = make_bins(cut_time(start[0], end[-1], min(_WINDOWS, len(end))), start, end)
    lows = [low for low in bin_column(bins, end, columns.ram_bytes.combined.low).low if not isnan(low)]
    if len(lows) < _FEWEST_WINDOWS:
        return None
    growth = find_growth(lows, _STEP_PERCENT, _RISING_SHARE, _TOTAL_PERCENT)
    if growth is None or growth.last_bytes >= capacity_bytes:
        return None
    left = (capacity_bytes - growth.last_bytes) / growth.slope_bytes * seconds / len(lows)
    return left if left < _FURTHEST_SECONDS else None


def find_rate(points: Sequence[Point]) -> float | None:
    """Steps per second lately; None if there are too few, or they do not advance."""
    recent = points[-RECENT_POINTS:]
    if len(recent) < 2 or recent[-1].at_seconds <= recent[0].at_seconds:
        return None
    rate = (recent[-1].steps - recent[0].steps) / (recent[-1].at_seconds - recent[0].at_seconds)
    return rate if rate > 0 else None


def foresee_done(points: Sequence[Point], n_steps: float | None) -> float | None:
    """In how many seconds all steps are done at this rate, counted from the last one."""
    rate = find_rate(points)
    if n_steps is None or rate is None:
        return None
    return max(0.0, n_steps - points[-1].steps) / rate


def describe_future(
    full_seconds: float | None, done_seconds: float | None, limit_seconds: float | None
) -> tuple[Forecast, ...]:
    """A sentence for each that is known. It is bad to run out of memory or of time before the end."""
    found = []
    if full_seconds is not None:
        is_late = done_seconds is not None and done_seconds <= full_seconds
        found.append(
            Forecast(f"memory limit in {approximate_seconds(full_seconds)} at this growth", not is_late)
        )
    if done_seconds is not None:
        found.append(Forecast(f"done in {approximate_seconds(done_seconds)} at this step rate"))
    if limit_seconds is not None:
        found.append(_describe_limit(limit_seconds, done_seconds))
    return tuple(found)


def _describe_limit(limit_seconds: float, done_seconds: float | None) -> Forecast:
    if limit_seconds <= 0:
        return Forecast(f"time limit passed {approximate_seconds(-limit_seconds)} ago", is_bad=True)
    text = f"time limit in {approximate_seconds(limit_seconds)}"
    if done_seconds is None or done_seconds <= limit_seconds:
        return Forecast(text)
    return Forecast(
        f"{text}, {approximate_seconds(done_seconds - limit_seconds)} before it is done", is_bad=True
    )
