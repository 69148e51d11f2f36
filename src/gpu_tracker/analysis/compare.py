"""Runs, or groups of repeated runs, side by side: what differs, by how much, and whether that is more than noise. Pure.

With repeats, a figure has *changed* if the medians differ by more than `NOTABLE` and by more than its resolution, and a
rank test gives p ≤ `CHANCE`. If there are too few runs to reach that, it has *perhaps* changed if the groups do not
overlap and p ≤ `CHANCE_PERHAPS`; more repeats are then asked for. One run each says nothing about noise: only
differences above `NOTABLE_ALONE` are reported, marked as such.
"""

from __future__ import annotations

import math

from ..core.figures import REGION, RUN, TIME
from ..core.values import NamedTuple
from .measures import Subject
from .rank_test import chance_of, least_chance, median, runs_needed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .limits import Verdict
    from .measures import RunFigures

NOTABLE = 0.02
NOTABLE_ALONE = 0.10
CHANCE = 0.05
CHANCE_PERHAPS = 0.34

CHANGED = "changed"
PERHAPS = "perhaps"
ALONE = "one run each"
NOISE = "within noise"
UNKNOWN = "not known"
APPEARED = "only in this group"
GONE = "not in this group"


class Values(NamedTuple):
    """One figure in one group. Without values it is not known, or there is none of that name."""

    runs: int = 0
    """How many runs of the group have such a region or metric."""
    values: tuple[float, ...] = ()
    """Of the runs where it is known, smallest first."""
    median: float | None = None
    low: float | None = None
    high: float | None = None
    not_numbers: int = 0
    """How many of them ended with a metric of nan or inf."""


class Change(NamedTuple):
    """One figure of one group against the same figure of the baseline."""

    verdict: str
    ratio: float | None = None
    """None where a ratio makes no sense: to zero, or with negative values."""
    share: float | None = None
    """The difference as a share of the absolute value in the baseline."""
    chance: float | None = None
    """The p value: how likely noise alone is to do this; None with one run each."""


class Row(NamedTuple):
    """One figure in all groups."""

    subject: Subject
    groups: tuple[Values, ...]
    changes: tuple[Change, ...]
    """Of every group but the baseline."""


class Group(NamedTuple):
    """A name and a number of runs."""

    name: str
    runs: int


class Comparison(NamedTuple):
    """Groups side by side; the first is the baseline."""

    groups: tuple[Group, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    verdicts: tuple[Verdict, ...] = ()
    """The results of the limits it was checked against."""


def compare(groups: Sequence[tuple[str, Sequence[RunFigures]]]) -> Comparison:
    """All figures of all groups, including those that only some groups have."""
    rows = []
    for subject in _list_figures([runs for _, runs in groups]):
        values = tuple(_collect(subject, runs) for _, runs in groups)
        rows.append(Row(subject, values, tuple(_judge(subject, values[0], other) for other in values[1:])))
    return Comparison(
        tuple(Group(name, len(runs)) for name, runs in groups),
        tuple(rows),
        (*_list_broken(groups, rows), *_list_notes(groups)),
    )


def _list_figures(groups: Sequence[Sequence[RunFigures]]) -> list[Subject]:
    """The whole run, then regions by their time in the first group that has them, then metrics by name.

    The order of the repeats does not matter.
    """
    regions: dict[tuple[str, ...], float] = {}
    metrics: set[Subject] = set()
    for runs in groups:
        times: dict[tuple[str, ...], list[float]] = {}
        for run in runs:
            for subject, value in run.values.items():
                if subject.metric is not None:
                    metrics.add(subject)
                elif subject.region and subject.figure == TIME:
                    times.setdefault(subject.region, []).append(value or 0.0)
        for path, values in times.items():
            regions.setdefault(path, median(values))
    paths = sorted(regions, key=lambda path: (-regions[path], path))
    return [
        *(Subject(figure) for figure in RUN),
        *(Subject(figure, path) for path in paths for figure in REGION),
        *sorted(metrics, key=lambda subject: subject.metric or ""),
    ]


def _collect(subject: Subject, runs: Sequence[RunFigures]) -> Values:
    found = [run.values[subject] for run in runs if subject in run.values]
    known = [value for value in found if value is not None]
    values = sorted(value for value in known if math.isfinite(value))
    not_numbers = len(known) - len(values)
    if not values:
        return Values(len(found), not_numbers=not_numbers)
    return Values(len(found), tuple(values), median(values), values[0], values[-1], not_numbers)


def _judge(subject: Subject, first: Values, other: Values) -> Change:
    if bool(first.runs) != bool(other.runs):
        return Change(APPEARED if other.runs else GONE)
    if first.median is None or other.median is None:
        return Change(UNKNOWN)
    ratio = _find_ratio(other.median, first.median)
    share = _divide(other.median - first.median, abs(first.median))
    is_alone = len(first.values) == len(other.values) == 1
    chance = None if is_alone else chance_of(first.values, other.values)
    difference = abs(other.median - first.median)
    notable = NOTABLE_ALONE if is_alone else NOTABLE
    if difference <= max(subject.figure.resolution, notable * abs(first.median)):
        return Change(NOISE, ratio, share, chance)
    if chance is None:
        return Change(ALONE, ratio, share)
    if chance <= CHANCE:
        return Change(CHANGED, ratio, share, chance)
    can_show = least_chance(len(first.values), len(other.values)) <= CHANCE
    is_perhaps = not can_show and chance <= CHANCE_PERHAPS and _do_not_overlap(first, other)
    return Change(PERHAPS if is_perhaps else NOISE, ratio, share, chance)


def _do_not_overlap(first: Values, other: Values) -> bool:
    return first.values[-1] < other.values[0] or other.values[-1] < first.values[0]


def _find_ratio(value: float, to: float) -> float | None:
    if value < 0 or to < 0:
        return None
    return 1.0 if value == to else _divide(value, to)


def _divide(value: float, by: float) -> float | None:
    ratio = value / by if by else math.inf
    return ratio if math.isfinite(ratio) else None


def _list_broken(groups: Sequence[tuple[str, Sequence[RunFigures]]], rows: Sequence[Row]) -> list[str]:
    """Metrics that have become nan or inf are in no median, so they need a note."""
    return [
        f"The last {row.subject.metric} is nan or inf in {values.not_numbers} of {values.runs} runs of {name}."
        for row in rows
        for (name, _), values in zip(groups, row.groups, strict=True)
        if values.not_numbers
    ]


def _list_notes(groups: Sequence[tuple[str, Sequence[RunFigures]]]) -> list[str]:
    """What to know before trusting the figures."""
    notes = []
    for name, runs in groups:
        failed = sum(run.exit_code not in (None, 0) for run in runs)
        cut = sum(not run.is_complete for run in runs)
        if failed:
            notes.append(f"{failed} of {len(runs)} runs of {name} failed (exit code not 0).")
        if cut:
            notes.append(f"{cut} of {len(runs)} runs of {name} are incomplete: killed, or still running.")
    every_run = [run for _, runs in groups for run in runs]
    if len({run.host for run in every_run}) > 1:
        notes.append("The runs were not all on the same host.")
    if len({(run.cores, run.ram_bytes) for run in every_run}) > 1:
        notes.append("The runs did not all have the same cores and RAM.")
    return [*notes, *_list_lacking(groups)]


def _list_lacking(groups: Sequence[tuple[str, Sequence[RunFigures]]]) -> list[str]:
    """Where there are too few repeats to show a change."""
    if len(groups) < 2:
        return []
    (first, of_first), *others = groups
    lacking = [(name, len(runs)) for name, runs in others if least_chance(len(of_first), len(runs)) > CHANCE]
    needed = runs_needed(CHANCE)
    if lacking and all(count == len(of_first) == 1 for _, count in lacking):
        return [f"One run each: differences may be noise. Use {needed} or more runs per group."]
    return [
        f"Too few runs to rule out noise: {name} has {count}, {first} {len(of_first)}. Use {needed} or more runs per group."
        for name, count in lacking
    ]


def list_changes(comparison: Comparison, position: int) -> Mapping[str, tuple[Row, ...]]:
    """The rows of one group (1 is the second) by verdict."""
    found: dict[str, list[Row]] = {}
    for row in comparison.rows:
        found.setdefault(row.changes[position - 1].verdict, []).append(row)
    return {verdict: tuple(rows) for verdict, rows in found.items()}
