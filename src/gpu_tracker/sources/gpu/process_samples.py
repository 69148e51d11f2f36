"""The driver's samples of processes: which of them ran at an instant, and how much. Pure.

A sample is (pid, microseconds, percent). The buffer also holds old samples, and sometimes invalid ones.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

# About a second is shown; the slowest drivers sample once in that time.
WINDOW_US = 1_500_000


class SampleWindow:
    """The newest samples of one device."""

    def __init__(self, start_us: int) -> None:
        self.newest_us = start_us
        self.are_complete = False
        """Whether the driver has returned several samples of one process, not only the newest."""
        self._instants: dict[int, dict[int, int | None]] = {}

    def take(self, samples: Iterable[tuple[int, int, int]], now_us: int) -> dict[int, dict[int, int | None]]:
        """Take what has been sampled since; the percent of each process, by instant, None if invalid."""
        new: dict[int, dict[int, int | None]] = {}
        pids = set()
        for pid, at_us, percent in sorted(samples, key=lambda sample: sample[1]):
            if at_us > self.newest_us:
                new.setdefault(at_us, {})[pid] = percent if percent <= 100 else None
                self.are_complete |= pid in pids
                pids.add(pid)
        self.newest_us = max([self.newest_us, *new])
        known = {**self._instants, **new}
        self._instants = {at_us: named for at_us, named in known.items() if at_us > now_us - WINDOW_US}
        return new

    def names_any(self, pids: Container[int]) -> bool:
        """Whether one of these was seen to run."""
        return any(pid in pids for named in self._instants.values() for pid in named)

    def percent_of(self, pid: int) -> float | None:
        """Mean over the window: zero without any sample, None with invalid ones only."""
        values = [named[pid] for named in self._instants.values() if pid in named]
        valid = [value for value in values if value is not None]
        if values and not valid:
            return None
        return sum(valid) / len(self._instants) if valid else 0.0


def find_share(named: Mapping[int, int | None], is_ours: Callable[[int], bool]) -> float | None:
    """Percent of our processes at one instant; None if all of theirs are invalid."""
    values = [percent for pid, percent in named.items() if is_ours(pid)]
    valid = [percent for percent in values if percent is not None]
    return min(100.0, float(sum(valid))) if valid or not values else None
