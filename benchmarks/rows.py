"""Results of a measure: a row of figures, a goal, and whether it was reached. Pure."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Goal:
    """Bounds for the median of our own figures."""

    low: float | None = None
    high: float | None = None

    def is_reached_by(self, value: float) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


@dataclass(frozen=True)
class Row:
    """One measure: all values, by tool, and of the bare job."""

    measure: str
    unit: str
    goal: Goal | None = None
    decimals: int = 1
    values: dict[str, list[float]] = field(default_factory=dict)
    bare: list[float] = field(default_factory=list)
    is_count: bool = False
    """Whether the values are 1 for success and 0 for failure."""
    widest_noise: float | None = None
    """The widest interquartile range of the bare values that allows a verdict."""

    def add(self, tool: str | None, value: float) -> None:
        """Add a value; no tool is the bare job."""
        (self.bare if tool is None else self.values.setdefault(tool, [])).append(value)


@dataclass(frozen=True)
class Spread:
    """Median and quartiles; with few values, median and range."""

    median: float
    low: float
    high: float


MISSED = "MISSED"
_ENOUGH_FOR_QUARTILES = 4


def spread(values: list[float]) -> Spread:
    """The spread of at least one value."""
    if len(values) < _ENOUGH_FOR_QUARTILES:
        return Spread(statistics.median(values), min(values), max(values))
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


def verdict(row: Row, tool: str) -> str:
    """The verdict in a word or two."""
    values = row.values.get(tool)
    if row.goal is None or not values:
        return "-"
    if row.widest_noise is not None and row.bare:
        noise = spread(row.bare)
        if noise.high - noise.low > row.widest_noise:
            return "too noisy"
    center = statistics.fmean(values) if row.is_count else statistics.median(values)
    return "pass" if row.goal.is_reached_by(center) else MISSED
