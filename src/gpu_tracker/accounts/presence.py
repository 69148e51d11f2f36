"""When the job was in its regions: what is read of devices later is divided by it. Pure.

Regions are read now and then, and count how long they were open since. Where in between that was is known of those that were entered or left
once; of others it may have been anywhere.
"""

from __future__ import annotations

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..instrument.shared_file import Numbers

    Path = tuple[str, ...]
    Key = tuple[int, Path]

# Devices that are read again after a long time need long turns, but no fine ones.
_MOST_STRETCHES = 2000
_FEWEST_TURNS = 4


class Inside(NamedTuple):
    """What a region has counted so far."""

    calls: int
    """Entered and left."""
    open_calls: int
    wall_seconds: float
    """Open calls included."""
    first_seconds: float
    last_seconds: float
    """When it was left last."""


def count_inside(numbers: Numbers, since_start: Callable[[int], float | None]) -> Inside:
    """Of the counters of a region."""
    return Inside(
        numbers.calls,
        numbers.open_calls,
        (numbers.wall_ns + numbers.open_wall_ns) / 1e9,
        since_start(numbers.first_ns) or 0.0,
        since_start(numbers.last_ns) or 0.0,
    )


class _Stretch(NamedTuple):
    """For how long a region was open in a time."""

    start_seconds: float
    end_seconds: float
    seconds: float

    def find_overlap(self, start_seconds: float, end_seconds: float) -> float:
        overlap = min(end_seconds, self.end_seconds) - max(start_seconds, self.start_seconds)
        return max(0.0, overlap) * self.seconds / (self.end_seconds - self.start_seconds)


class _Turn(NamedTuple):
    """The time from one reading to the next."""

    start_seconds: float
    end_seconds: float
    stretches: dict[Key, _Stretch]


class Presence:
    """How long each region was open, at any time since the start."""

    def __init__(self) -> None:
        self.at_seconds = 0.0
        """Up to here it is known."""
        self._known: dict[Key, Inside] = {}
        self._ended: list[tuple[Key, Inside, Inside | None]] = []
        self._turns: list[_Turn] = []
        self._n_stretches = 0

    def end(self, key: Key, kept_as: Key, inside: Inside) -> None:
        """A process has ended, with this count of a region, which is kept under another name if there are too many."""
        self._ended.append((kept_as, inside, self._known.pop(key, None)))

    def take(
        self, at_seconds: float, inside: Mapping[Key, Inside], around: Iterable[Key]
    ) -> dict[Key, float]:
        """Take the regions that were open since the last reading, and those around them that others have entered.

        Returns how long each was open since then.
        """
        counted = [(key, now, self._known.get(key)) for key, now in inside.items()]
        stretches: dict[Key, _Stretch] = {}
        for key, now, before in (*self._ended, *counted):
            found = _place(before, now, self.at_seconds, at_seconds)
            if found is not None:
                stretches[key] = _join(stretches.get(key), found)
        if at_seconds > self.at_seconds:
            whole = _Stretch(self.at_seconds, at_seconds, at_seconds - self.at_seconds)
            stretches.update((key, whole) for key in around if key not in stretches)
        self._ended = []
        self._known.update((key, _advance(before, now)) for key, now, before in counted)
        if stretches:
            self._turns.append(_Turn(self.at_seconds, at_seconds, stretches))
            self._n_stretches += len(stretches)
        self.at_seconds = at_seconds
        if self._n_stretches > _MOST_STRETCHES and len(self._turns) > _FEWEST_TURNS:
            self._thin()
        return {key: stretch.seconds for key, stretch in stretches.items()}

    def find(self, start_seconds: float, end_seconds: float) -> dict[Key, float]:
        """How long each region was open in this time."""
        found: dict[Key, float] = {}
        for turn in reversed(self._turns):
            if turn.end_seconds <= start_seconds:
                break
            for key, stretch in turn.stretches.items():
                seconds = stretch.find_overlap(start_seconds, end_seconds)
                if seconds:
                    found[key] = found.get(key, 0.0) + seconds
        return found

    def _thin(self) -> None:
        """Keep the older half in pairs."""
        half = len(self._turns) // 2
        older = self._turns[:half]
        self._turns[:half] = [_merge(older[n : n + 2]) for n in range(0, half, 2)]
        self._n_stretches = sum(len(turn.stretches) for turn in self._turns)


def _place(before: Inside | None, now: Inside, start_seconds: float, end_seconds: float) -> _Stretch | None:
    """Where between two readings a region was open."""
    known = before or Inside(0, 0, 0.0, now.first_seconds, now.first_seconds)
    begin = start_seconds if known.open_calls else max(start_seconds, now.first_seconds)
    end = end_seconds if now.open_calls else min(end_seconds, now.last_seconds)
    seconds = min(now.wall_seconds - known.wall_seconds, end - begin)
    if seconds <= 0:
        return None
    n_entered = now.calls + now.open_calls - known.calls - known.open_calls
    if not known.open_calls and n_entered == 1:
        begin = end - seconds
    return _Stretch(begin, end, seconds)


def _advance(before: Inside | None, now: Inside) -> Inside:
    """A call that ends while it is read may be missing for a moment: what was counted already is not counted again."""
    return now if before is None else now._replace(wall_seconds=max(before.wall_seconds, now.wall_seconds))


def _join(one: _Stretch | None, other: _Stretch) -> _Stretch:
    if one is None:
        return other
    start, end = min(one.start_seconds, other.start_seconds), max(one.end_seconds, other.end_seconds)
    return _Stretch(start, end, min(end - start, one.seconds + other.seconds))


def _merge(turns: Sequence[_Turn]) -> _Turn:
    stretches: dict[Key, _Stretch] = {}
    for turn in turns:
        for key, stretch in turn.stretches.items():
            stretches[key] = _join(stretches.get(key), stretch)
    return _Turn(turns[0].start_seconds, turns[-1].end_seconds, stretches)
