"""Runs that are never added up: the tasks of an array, several jobs, and attempts of one. Pure."""

from __future__ import annotations

import math

from ..core.figures import RUN
from ..core.text import join_some
from ..core.values import NamedTuple
from .job_end import COMPLETED, ENDED, RUNNING
from .launches import identify_runs
from .permutation_test import median

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..core.figures import Figure
    from ..core.model import RecordingData

_HIGH = 0.95
_MOST_NAMED = 20
# What runs are called that have no job, task, restart, attempt or launch.
_WITHOUT = ("no job", "no task", "first attempt", "first attempt", "outside of steps")


class Task(NamedTuple):
    """One of several runs."""

    name: str
    values: Mapping[str, float | None]
    """The figures of a whole run, by name; of the RAM of several ranks, the upper bound."""
    ranks: int
    exit_code: int | None
    """Of the rank that ended worst; None if that is not known."""
    state: str = ""
    """How it ended, as far as its recordings tell."""

    @property
    def has_ended_badly(self) -> bool:
        """Whether it was killed, was told to end or has failed."""
        return self.state not in (COMPLETED, ENDED, RUNNING)


class Spread(NamedTuple):
    """One figure over all tasks."""

    figure: Figure
    smallest: float
    median: float
    high: float
    """At most a twentieth of the tasks had more."""
    largest: float
    largest_task: str


def split_tasks(
    recordings: Sequence[tuple[str, RecordingData]],
) -> dict[str, list[tuple[str, RecordingData]]]:
    """The recordings of each run, by its name. Of one run, or where nothing is known of that, there is one entry."""
    groups: dict[tuple[str, ...], list[tuple[str, RecordingData]]] = {}
    runs = identify_runs(recordings)
    for name, recording in recordings:
        groups.setdefault(runs[name], []).append((name, recording))
    varying = [len(set(column)) > 1 for column in zip(*groups, strict=True)]
    return {
        _name(key, varying): some for key, some in sorted(groups.items(), key=lambda item: _order(item[0]))
    }


def _name(key: Sequence[str], varying: Sequence[bool]) -> str:
    """By what distinguishes it."""
    parts = (part or rest for part, rest, varies in zip(key, _WITHOUT, varying, strict=True) if varies)
    return ", ".join(dict.fromkeys(parts))


def _order(key: Sequence[str]) -> list[tuple[int, str]]:
    """Numbers by their size."""
    numbers = (part.rpartition(" ")[2] for part in key)
    return [
        (int(number) if number.isdecimal() else -1, part) for number, part in zip(numbers, key, strict=True)
    ]


def find_worst_code(codes: Iterable[int | None]) -> int | None:
    """The exit code of a run of many ranks: one that is not 0, or unknown, if there is any."""
    found = list(codes)
    return next((code for code in found if code), None if None in found else 0)


def describe_endings(tasks: Sequence[Task]) -> list[str]:
    """Which of them ended badly, and how, those first of which there are most; of many, some are named."""
    names: dict[str, list[str]] = {}
    for task in tasks:
        if task.has_ended_badly:
            names.setdefault(task.state, []).append(task.name)
    return [
        f"{state}: {join_some(names[state], _MOST_NAMED)}."
        for state in sorted(names, key=lambda state: (-len(names[state]), state))
    ]


def spread_tasks(tasks: Sequence[Task]) -> Iterator[Spread]:
    """How much tasks need: what to request for all of them."""
    for figure in RUN:
        known = [(value, task.name) for task in tasks if (value := task.values[figure.name]) is not None]
        if known:
            ordered = sorted(value for value, _ in known)
            largest, name = max(known, key=lambda one: one[0])
            high = ordered[math.ceil(_HIGH * len(ordered)) - 1]
            yield Spread(figure, ordered[0], median(ordered), high, largest, name)
