"""Parallel calls that overlap in one context: nobody can tell whose code runs, so they share its CPU time evenly.

Entering, leaving and sharing cost the same however many overlap: what is shared is counted by region, and the crowd of
a call is handed on to the next one that is stacked on it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .stack import Frame, Record


class Crowd:
    """A call and those below that overlap it, by region."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: dict[Record, dict[Frame, None]] = {}

    def add(self, frame: Frame) -> None:
        """Take in a call."""
        self._calls.setdefault(frame.record, {})[frame] = None
        frame.crowds[self] = None

    def remove(self, frame: Frame) -> None:
        """A call has ended."""
        calls = self._calls.get(frame.record, {})
        calls.pop(frame, None)
        if not calls:
            self._calls.pop(frame.record, None)

    def dissolve(self) -> None:
        """Nobody is at the top of it any more."""
        for calls in self._calls.values():
            for frame in calls:
                frame.crowds.pop(self, None)

    def divide(self, cpu_ns: int) -> list[tuple[Frame, int]]:
        """The part of each region, with one of its calls."""
        whole = sum(map(len, self._calls.values()))
        return [(next(iter(calls)), cpu_ns * len(calls) // whole) for calls in self._calls.values()]


def join(frame: Frame) -> None:
    """A parallel call has begun."""
    frame.crowds = {}
    below = _find_below(frame)
    if below is not None:
        frame.crowd, below.crowd = find_crowd(below), None
        frame.crowd.add(frame)
        frame.is_crowded = below.is_crowded = True


def leave(frame: Frame) -> None:
    """A parallel call has ended."""
    for crowd in frame.crowds:
        crowd.remove(frame)
    if frame.crowd is not None:
        below = _find_below(frame)
        if below is not None and below.crowd is None:
            below.crowd = frame.crowd
        else:
            frame.crowd.dissolve()


def find_crowd(frame: Frame) -> Crowd:
    """The calls that share the time of a parallel call."""
    if frame.crowd is None:
        frame.crowd = Crowd()
        for one in _list_from(frame):
            frame.crowd.add(one)
    return frame.crowd


def _list_from(frame: Frame) -> Iterator[Frame]:
    step: Frame | None = frame
    while step is not None:
        yield step
        step = _find_below(step)


def _find_below(frame: Frame) -> Frame | None:
    """The latest open call below that overlaps this one."""
    step = frame.below
    while step is not None and step is not frame.outer and step.stack is frame.stack:
        if step.is_open and step.owner.parallel and step.outer is frame.outer:
            return step
        step = step.below
    return None
