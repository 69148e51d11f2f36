"""Runs, or groups of repeated runs, side by side: what differs, by how much, and whether that is more than noise. Pure.

With repeats, a figure has changed if the medians differ by more than `NOTABLE` and by more than what can be told apart, and a
rank test says that chance would do this less than once in twenty times. Too few runs cannot show that, however they came
out: then it has *perhaps* changed, if no run of one group lies within the other, and more repeats are asked for. With one
run each there is no noise to compare with, and only differences above `NOTABLE_ALONE` are told, as what they are.
"""

from __future__ import annotations

import math

from ..values import NamedTuple
from .figures import OVERALL, REGION, Figure
from .ranks import chance_of, least_chance, median, runs_needed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .figures import RunFigures

NOTABLE = 0.02
NOTABLE_ALONE = 0.10
CHANCE = 0.05

CHANGED = "changed"
PERHAPS = "perhaps"
ALONE = "one run each"
NOISE = "within noise"
UNKNOWN = "not known"
APPEARED = "only in this group"
GONE = "not in this group"


class Values(NamedTuple):
    """One figure in one group. No value at all: not known, or nothing of that name there."""

    is_there: bool
    """Whether any run of the group has such a region or metric."""
    values: tuple[float, ...] = ()
    """Of the runs where it is known, smallest first."""
    median: float | None = None
    low: float | None = None
    high: float | None = None


class Change(NamedTuple):
    """One figure of one group against the same figure of the first group."""

    verdict: str
    ratio: float | None = None
    chance: float | None = None
    """That noise alone would do this; None with fewer than two runs in both."""


class Row(NamedTuple):
    """One figure in all groups."""

    figure: Figure
    groups: tuple[Values, ...]
    changes: tuple[Change, ...]
    """Of every group but the first."""


class Group(NamedTuple):
    """A name and how many runs it has."""

    name: str
    runs: int


class Comparison(NamedTuple):
    """Groups side by side; the first is what the others are measured against."""

    groups: tuple[Group, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def compare(groups: Sequence[tuple[str, Sequence[RunFigures]]]) -> Comparison:
    """All figures of all groups; what only some of them have is there too."""
    rows = []
    for figure in _list_figures([runs for _, runs in groups]):
        values = tuple(_collect(figure, runs) for _, runs in groups)
        rows.append(Row(figure, values, tuple(_judge(figure, values[0], other) for other in values[1:])))
    return Comparison(
        tuple(Group(name, len(runs)) for name, runs in groups),
        tuple(rows),
        tuple(_list_notes(groups)),
    )


def _list_figures(groups: Sequence[Sequence[RunFigures]]) -> list[Figure]:
    """The whole run first, then regions by their time in the first group that has them, then metrics by name.

    Nothing here depends on the order of the repeats.
    """
    regions: dict[tuple[str, ...], float] = {}
    metrics: set[Figure] = set()
    for runs in groups:
        times: dict[tuple[str, ...], list[float]] = {}
        for run in runs:
            for figure, value in run.values.items():
                if figure.metric:
                    metrics.add(figure)
                elif figure.region and figure.quantity == REGION[0]:
                    times.setdefault(figure.region, []).append(value or 0.0)
        for path, values in times.items():
            regions.setdefault(path, median(values))
    paths = sorted(regions, key=lambda path: (-regions[path], path))
    return [
        *(Figure(quantity) for quantity in OVERALL),
        *(Figure(quantity, path) for path in paths for quantity in REGION),
        *sorted(metrics, key=lambda figure: figure.metric),
    ]


def _collect(figure: Figure, runs: Sequence[RunFigures]) -> Values:
    found = [run.values[figure] for run in runs if figure in run.values]
    values = sorted(value for value in found if value is not None)
    if not values:
        return Values(bool(found))
    return Values(True, tuple(values), median(values), values[0], values[-1])


def _judge(figure: Figure, first: Values, other: Values) -> Change:
    if first.is_there != other.is_there:
        return Change(APPEARED if other.is_there else GONE)
    if first.median is None or other.median is None:
        return Change(UNKNOWN)
    ratio = _divide(other.median, first.median)
    is_alone = len(first.values) == len(other.values) == 1
    chance = None if is_alone else chance_of(first.values, other.values)
    difference = abs(other.median - first.median)
    share = NOTABLE_ALONE if is_alone else NOTABLE
    if difference <= max(figure.quantity.resolution, share * abs(first.median)):
        return Change(NOISE, ratio, chance)
    if chance is None:
        return Change(ALONE, ratio)
    if chance <= CHANCE:
        return Change(CHANGED, ratio, chance)
    can_tell = least_chance(len(first.values), len(other.values)) <= CHANCE
    return Change(PERHAPS if not can_tell and _are_apart(first, other) else NOISE, ratio, chance)


def _are_apart(first: Values, other: Values) -> bool:
    return first.values[-1] < other.values[0] or other.values[-1] < first.values[0]


def _divide(value: float, by: float) -> float | None:
    """None where there is nothing to be a multiple of."""
    if by == 0:
        return 1.0 if value == 0 else None
    ratio = value / by
    return ratio if math.isfinite(ratio) else None


def _list_notes(groups: Sequence[tuple[str, Sequence[RunFigures]]]) -> list[str]:
    """What the reader must know before believing the figures."""
    notes = []
    for name, runs in groups:
        failed = sum(run.exit_code not in (None, 0) for run in runs)
        cut = sum(not run.is_complete for run in runs)
        if failed:
            notes.append(f"{failed} of {len(runs)} runs of {name} failed (exit code not 0).")
        if cut:
            notes.append(f"{cut} of {len(runs)} runs of {name} have no end: killed, or still running.")
    everybody = [run for _, runs in groups for run in runs]
    if len({run.host for run in everybody}) > 1:
        notes.append("Not all runs were on the same host.")
    if len({(run.cores, run.ram_bytes) for run in everybody}) > 1:
        notes.append("Not all runs could use the same cores and RAM.")
    fewest = min((len(runs) for _, runs in groups), default=0)
    needed = runs_needed(CHANCE)
    if len(groups) > 1 and 1 < fewest < needed:
        notes.append(f"{needed} runs of each are needed to tell a change from chance; there are {fewest}.")
    elif len(groups) > 1 and fewest == 1:
        notes.append(
            f"Without repeats nothing can be told from noise; {needed} runs of each would be enough."
        )
    return notes


def list_changes(comparison: Comparison, place: int) -> Mapping[str, tuple[Row, ...]]:
    """The rows of one group (1 is the second) by verdict."""
    found: dict[str, list[Row]] = {}
    for row in comparison.rows:
        found.setdefault(row.changes[place - 1].verdict, []).append(row)
    return {verdict: tuple(rows) for verdict, rows in found.items()}
