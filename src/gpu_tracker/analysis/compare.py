"""Runs, or groups of repeated runs, side by side: what differs, by how much, and whether that is more than noise. Pure.

With repeats, a figure has *changed* if the medians differ by more than `NOTABLE` and by more than its resolution, and a
permutation test over all figures of all groups gives p ≤ `CHANCE`. With too few runs to reach that, nothing can be
told; differences above `NOTABLE_IN_FEW` are worth repeating the runs.
"""

from __future__ import annotations

import math

from ..core.figures import REGION, RUN, TIME
from ..core.units import humanize_seconds
from ..core.values import NamedTuple
from .measures import UNKNOWN_OUTCOME, Subject
from .permutation_test import can_show, chances_of, median, runs_needed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .charts import Chart
    from .limits import Verdict
    from .measures import RunFigures

NOTABLE = 0.02
NOTABLE_IN_FEW = 0.10
CHANCE = 0.03

_MOST_PROGRAMS = 4

CHANGED = "changed"
CANNOT_TELL = "cannot tell"
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
    ceiling: float | None = None
    """What the median may have been at most; None if it is not only the least."""
    floor: float | None = None
    """What it was at least; None if it may not have been less."""
    is_at_least: bool = False
    """Whether one of them may have been more, because it is without some of the time."""


class Change(NamedTuple):
    """One figure of one group against the same figure of the baseline."""

    verdict: str
    ratio: float | None = None
    """None where a ratio makes no sense: to zero, or with negative values."""
    share: float | None = None
    """The difference as a share of the absolute value in the baseline."""
    chance: float | None = None
    """The p value: how likely noise alone makes any figure of the comparison differ as much. None if it was not tested:
    too few runs, or all of them nearly equal."""
    is_notable: bool = False
    """Whether the medians differ by more than the resolution and 2 %; 10 % with too few runs."""


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
    failures: tuple[str, ...] = ()
    """Why runs did not succeed, one for each that did not: it failed, was killed, has no end or nobody knows."""
    unreadable: int = 0
    """How many more recordings of it cannot be read."""
    lacking_regions: int = 0
    """How many runs have regions that could not be recorded."""
    lacking_metrics: int = 0
    incomplete: tuple[str, ...] = ()
    """What there is no recording of, one for each run that lacks some."""
    elsewhere: tuple[str, ...] = ()
    """Who had work done elsewhere, in a sentence for each such run."""


class Comparison(NamedTuple):
    """Groups side by side; the first is the baseline."""

    groups: tuple[Group, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    verdicts: tuple[Verdict, ...] = ()
    """The results of the limits it was checked against."""
    charts: tuple[Chart, ...] = ()
    """The runs over time, on one axis; only where they are drawn."""
    files: tuple[tuple[str, str], ...] = ()
    """Every run, named as in the charts, and its file; where they were read from files."""


def compare(groups: Sequence[tuple[str, Sequence[RunFigures]]]) -> Comparison:
    """All figures of all groups, including those that only some groups have."""
    subjects = _list_figures([runs for _, runs in groups])
    collected = [tuple(_collect(subject, runs) for _, runs in groups) for subject in subjects]
    chances = [_find_chances(subjects, groups[0][1], runs, len(groups) - 1) for _, runs in groups[1:]]
    rows = []
    for subject, values in zip(subjects, collected, strict=True):
        changes = (
            _judge(subject, values[0], other, found.get(subject), CHANCE / len(chances))
            for other, found in zip(values[1:], chances, strict=True)
        )
        rows.append(Row(subject, values, tuple(changes)))
    return Comparison(
        tuple(_describe_group(name, runs) for name, runs in groups),
        tuple(rows),
        (*_list_broken(groups, rows), *_list_one_after_the_other(groups, rows), *_list_notes(groups)),
    )


def _describe_group(name: str, runs: Sequence[RunFigures]) -> Group:
    return Group(
        name,
        len(runs),
        _list_failures(runs),
        lacking_regions=sum(run.lacks_regions for run in runs),
        lacking_metrics=sum(run.lacks_metrics for run in runs),
        incomplete=tuple(run.incomplete for run in runs if run.incomplete),
        elsewhere=tuple(run.elsewhere for run in runs if run.elsewhere),
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
    return Values(
        len(found),
        tuple(values),
        median(values),
        values[0],
        values[-1],
        not_numbers,
        _find_bound(subject, runs, [run.ceilings for run in runs]),
        _find_bound(subject, runs, [run.floors for run in runs]),
        is_at_least=any(_is_at_least(subject, run) for run in runs),
    )


def _is_at_least(subject: Subject, run: RunFigures) -> bool:
    if subject.region:
        return run.ceilings.get(subject, -math.inf) > (run.values.get(subject) or 0.0)
    return subject == Subject(subject.figure) and subject.figure.name in run.at_least


def _find_bound(
    subject: Subject, runs: Sequence[RunFigures], bounds: Sequence[Mapping[Subject, float]]
) -> float | None:
    """The median of what the runs were at most, or at least; None if that is what was measured."""
    if not any(subject in some for some in bounds):
        return None
    every = [some.get(subject, run.values.get(subject)) for run, some in zip(runs, bounds, strict=True)]
    return median([bound for bound in every if bound is not None and not math.isnan(bound)])


def _find_chances(
    subjects: Sequence[Subject], first: Sequence[RunFigures], other: Sequence[RunFigures], groups: int
) -> dict[Subject, float]:
    """The p values of one group, each for all figures and groups of the comparison."""
    if not can_show(len(first), len(other), CHANCE / groups):
        return {}
    rows = {subject: [_find_number(run, subject) for run in (*first, *other)] for subject in subjects}
    tested = {subject: row for subject, row in rows.items() if _may_differ(subject, row)}
    chances = chances_of(list(tested.values()), len(first))
    return {subject: min(1.0, groups * chance) for subject, chance in zip(tested, chances, strict=True)}


def _find_number(run: RunFigures, subject: Subject) -> float | None:
    value = run.values.get(subject)
    return value if value is not None and math.isfinite(value) else None


def _may_differ(subject: Subject, row: Sequence[float | None]) -> bool:
    """Whether any division of these runs has a notable difference; where none has, there is nothing to test."""
    known = [value for value in row if value is not None]
    least = min(map(abs, known), default=0.0)
    return bool(known) and max(known) - min(known) > max(subject.figure.resolution, NOTABLE * least)


def _judge(subject: Subject, first: Values, other: Values, chance: float | None, needed: float) -> Change:
    if bool(first.runs) != bool(other.runs):
        return Change(APPEARED if other.runs else GONE)
    if first.median is None or other.median is None:
        return Change(UNKNOWN)
    ratio = _find_ratio(other.median, first.median)
    share = _divide(other.median - first.median, abs(first.median))
    can_tell = can_show(len(first.values), len(other.values), needed)
    notable = (NOTABLE if can_tell else NOTABLE_IN_FEW) * abs(first.median)
    is_notable = abs(other.median - first.median) > max(subject.figure.resolution, notable)
    if not can_tell:
        return Change(CANNOT_TELL, ratio, share, None, is_notable)
    has_changed = is_notable and chance is not None and chance <= CHANCE
    return Change(CHANGED if has_changed else NOISE, ratio, share, chance, is_notable)


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


def _list_one_after_the_other(
    groups: Sequence[tuple[str, Sequence[RunFigures]]], rows: Sequence[Row]
) -> list[str]:
    """Groups that differ, and were not run in turns with the baseline: the machine may have changed meanwhile."""
    (first, before), *others = groups
    return [
        f"The runs of {first} and {name} were not interleaved: a machine that got warmer or busier in between looks like a change."
        for index, (name, runs) in enumerate(others)
        if any(row.changes[index].verdict == CHANGED for row in rows) and _are_apart(before, runs)
    ]


def _are_apart(first: Sequence[RunFigures], other: Sequence[RunFigures]) -> bool:
    """Whether all runs of one group began before all of the other; those of which that is not known may have."""
    begins = [[run.began_seconds for run in runs if run.began_seconds is not None] for runs in (first, other)]
    return all(begins) and (max(begins[0]) < min(begins[1]) or max(begins[1]) < min(begins[0]))


def _list_notes(groups: Sequence[tuple[str, Sequence[RunFigures]]]) -> list[str]:
    """What to know before trusting the figures."""
    notes = [describe_failures(name, failures) for name, runs in groups if (failures := _list_failures(runs))]
    notes += [
        describe_incomplete(name, lacking)
        for name, runs in groups
        if (lacking := [run.incomplete for run in runs if run.incomplete])
    ]
    notes += [
        f"{name}: {sentence}"
        for name, runs in groups
        for sentence in dict.fromkeys(run.elsewhere for run in runs if run.elsewhere)
    ]
    for name, runs in groups:
        programs = list(dict.fromkeys(run.program for run in runs if run.program))
        if len(programs) > 1:
            notes.append(
                f"The runs of {name} are of {len(programs)} programs ({', '.join(programs[:_MOST_PROGRAMS])}), not repeats of one."
            )
    every_run = [run for _, runs in groups for run in runs]
    if len({run.host for run in every_run}) > 1:
        notes.append("The runs were not all on the same host.")
    if len({(run.cores, run.ram_bytes) for run in every_run}) > 1:
        notes.append("The runs did not all have the same cores and RAM.")
    return [
        *notes,
        *_list_gaps(groups),
        *_list_unmetered(groups),
        *_list_unread(groups),
        *_list_unheld(groups),
        *_list_unutilized(groups),
        *_list_lacking(groups),
    ]


def _list_gaps(groups: Sequence[tuple[str, Sequence[RunFigures]]]) -> list[str]:
    """Groups of which regions or metrics are missing."""
    lacking = [
        (name, what, sum(lacks), len(runs))
        for name, runs in groups
        for what, lacks in (
            ("regions", [run.lacks_regions for run in runs]),
            ("metrics", [run.lacks_metrics for run in runs]),
        )
    ]
    return [
        f"Some {what} are missing in {count} of {of} runs of {name}: they could not be recorded."
        for name, what, count, of in lacking
        if count
    ]


def _list_unmetered(groups: Sequence[tuple[str, Sequence[RunFigures]]]) -> list[str]:
    """Groups whose energy is not that of all their time."""
    longest = [(name, max((run.unmetered_seconds for run in runs), default=0.0)) for name, runs in groups]
    return [
        f"The energy of {name} is without up to {humanize_seconds(seconds)} of the time of a run."
        for name, seconds in longest
        if seconds
    ]


def _list_unread(groups: Sequence[tuple[str, Sequence[RunFigures]]]) -> list[str]:
    """Groups of which RAM was not measured all the time."""
    longest = [(name, max((run.unread_seconds for run in runs), default=0.0)) for name, runs in groups]
    return [
        f"The peak RAM of {name} is without up to {humanize_seconds(seconds)} of the time of a run: it may have been more."
        for name, seconds in longest
        if seconds
    ]


def _list_unheld(groups: Sequence[tuple[str, Sequence[RunFigures]]]) -> list[str]:
    """Groups of which GPU memory is not measured as usual."""
    notes = []
    for name, runs in groups:
        if any("peak_gpu_ram" in run.estimates for run in runs):
            notes.append(f"The peak GPU RAM of {name} is an estimate.")
        seconds = max((run.unheld_seconds for run in runs), default=0.0)
        if seconds:
            notes.append(
                f"The peak GPU RAM of {name} is without up to {humanize_seconds(seconds)} of the time of a run: "
                "it may have been more."
            )
    return notes


def _list_unutilized(groups: Sequence[tuple[str, Sequence[RunFigures]]]) -> list[str]:
    """Groups whose GPU utilization is not that of all their time."""
    longest = [(name, max((run.unutilized_seconds for run in runs), default=0.0)) for name, runs in groups]
    return [
        f"The GPU utilization of {name} is without up to {humanize_seconds(seconds)} of the time of a run."
        for name, seconds in longest
        if seconds
    ]


def _list_failures(runs: Sequence[RunFigures]) -> tuple[str, ...]:
    return tuple(sorted(run.failure for run in runs if run.failure))


def describe_failures(name: str, failures: Sequence[str]) -> str:
    """A sentence about the runs of a group that did not succeed."""
    runs = "1 run" if len(failures) == 1 else f"{len(failures)} runs"
    what = "may have failed" if set(failures) == {UNKNOWN_OUTCOME} else "did not succeed"
    return f"{runs} of {name} {what} ({', '.join(dict.fromkeys(failures))})."


def describe_incomplete(name: str, incomplete: Sequence[str]) -> str:
    """A sentence about the runs of a group of which there is not every recording."""
    runs = "1 run" if len(incomplete) == 1 else f"{len(incomplete)} runs"
    what = "; ".join(dict.fromkeys(incomplete))
    verb = "is" if len(incomplete) == 1 else "are"
    return f"{runs} of {name} {verb} incomplete ({what}): the figures are without that."


def _list_lacking(groups: Sequence[tuple[str, Sequence[RunFigures]]]) -> list[str]:
    """Where there are too few repeats to show a change."""
    if len(groups) < 2:
        return []
    (first, of_first), *others = groups
    chance = CHANCE / len(others)
    lacking = [(name, len(runs)) for name, runs in others if not can_show(len(of_first), len(runs), chance)]
    needed = runs_needed(chance)
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
