"""Where the ticks of an axis are, and what they say. Pure."""

from __future__ import annotations

from math import floor, log10

from ..core.units import WATTS, humanize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_STEPS_SECONDS = (
    *(number * scale for scale in (0.001, 0.01, 0.1) for number in (1, 2, 5)),
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
)  # fmt: skip
_DAY_SECONDS = 86400
_MOST_TICKS = 9
_MOST_VALUES = 4
_UNITS = ((_DAY_SECONDS, "d"), (3600, "h"), (60, "min"))


def list_times(seconds: float) -> list[float]:
    """Round moments from 0 to the end, at most nine steps apart."""
    step: float = next((step for step in _STEPS_SECONDS if step * _MOST_TICKS >= seconds), 0.0)
    if not step:
        step = _DAY_SECONDS * _round_up(seconds / _DAY_SECONDS / _MOST_TICKS)
    return [number * step for number in range(floor(seconds / step * (1 + 1e-9)) + 1)]


def list_values(bottom: float, top: float) -> list[float]:
    """Round values of an axis."""
    if top <= bottom:
        return [bottom]
    step = _round_up((top - bottom) / _MOST_VALUES)
    first = -floor(-bottom / step)
    return [number * step for number in range(first, floor(top / step * (1 + 1e-9)) + 1)]


def _round_up(number: float) -> float:
    """The next of 1, 2, 5, 10, 20..."""
    power: float = 10.0 ** floor(log10(number))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= number * (1 - 1e-9))


def name_times(moments: Sequence[float]) -> list[str]:
    """All in one unit, the largest in which they are whole numbers: `0 min`, `30 min`, `60 min`."""
    length, unit = next(
        (one for one in _UNITS if moments[-1] and all(moment % one[0] == 0 for moment in moments)), (1, "s")
    )
    return [f"{moment / length:g} {unit}" for moment in moments]


def name_value(value: float, unit: str) -> str:
    """A value beside its axis or its point."""
    return f"{value:.0f} W" if unit == WATTS else humanize(value, unit)
