"""The driver's samples of processes: which of them ran at an instant, and how much. Pure.

A sample is (pid, microseconds, percent). The buffer also holds old samples, and sometimes invalid ones.
"""

from __future__ import annotations

from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

# About a second is shown; the slowest drivers sample once in that time.
WINDOW_US = 1_500_000
# A sample that is dated later than this is invalid.
_AHEAD_US = 1_000_000
# A driver that is read after this part of its period has no more than one new sample.
_PART_OF_PERIOD = 0.6
_SHORTEST_PAUSE_SECONDS = 0.05
_GAPS_KEPT = 15
# Samples closer together than this are of one instant.
_ONE_INSTANT_US = 40_000


class SampleWindow:
    """The newest samples of one device."""

    def __init__(self, start_us: int) -> None:
        self.newest_us = start_us
        self.are_complete = False
        """Whether the driver has returned several samples of one process, not only the newest."""
        self._instants: dict[int, dict[int, int | None]] = {}
        self._sums: dict[int, int] = {}
        """Of each process, over all instants that have a valid percent of it."""
        self._counts: dict[int, int] = {}
        """How many those are."""
        self._invalid: dict[int, int] = {}
        self._last_ran: tuple[int, int] | None = None
        """The process that was named last, and when."""
        self._has_named_others = self._has_named_several = False

    @property
    def names_one(self) -> bool:
        """Whether it has named several processes, but never two at one instant."""
        return self._has_named_others and not self._has_named_several

    def take(self, samples: Iterable[tuple[int, int, int]], now_us: int) -> dict[int, dict[int, int | None]]:
        """Take what has been sampled since; the percent of each process, by instant, None if invalid."""
        new: dict[int, dict[int, int | None]] = {}
        pids = set()
        for pid, at_us, percent in sorted(samples, key=lambda sample: sample[1]):
            if self.newest_us < at_us <= now_us + _AHEAD_US:
                new.setdefault(at_us, {})[pid] = percent if percent <= 100 else None
                self.are_complete |= pid in pids
                pids.add(pid)
                if 0 < percent <= 100:
                    self._note_ran(pid, at_us)
        self.newest_us = max([self.newest_us, *new])
        self._instants.update(new)
        for named in new.values():
            self._add(named, 1)
        for at_us in [at_us for at_us in self._instants if at_us <= now_us - WINDOW_US]:
            self._add(self._instants.pop(at_us), -1)
        return new

    def _note_ran(self, pid: int, at_us: int) -> None:
        last_pid, last_us = self._last_ran or (pid, at_us)
        if pid != last_pid:
            self._has_named_others = True
            self._has_named_several |= at_us - last_us < _ONE_INSTANT_US
        self._last_ran = pid, at_us

    def _add(self, named: Mapping[int, int | None], sign: int) -> None:
        sums, counts = self._sums, self._counts
        for pid, percent in named.items():
            if percent is None:
                self._invalid[pid] = self._invalid.get(pid, 0) + sign
            else:
                sums[pid] = sums.get(pid, 0) + sign * percent
                counts[pid] = count = counts.get(pid, 0) + sign
                if not count:
                    del sums[pid], counts[pid]

    def names_any(self, pids: Container[int]) -> bool:
        """Whether one of these was seen to run."""
        return any(pid in pids for named in self._instants.values() for pid in named)

    def find_percents(self, pids: Iterable[int]) -> dict[int, float | None]:
        """Of each process the mean over the window: zero without any sample, None with invalid ones only."""
        sums, n_instants = self._sums, len(self._instants)
        return {
            pid: sums[pid] / n_instants if pid in sums else None if self._invalid.get(pid) else 0.0
            for pid in pids
        }


def limit_percents(
    percents: Mapping[int, float | None], busy_percent: float | None
) -> Mapping[int, float | None]:
    """What each process used, together no more than the device was busy.

    A driver samples processes only while they run, and some keep only the newest sample: the mean of what names them is too much.
    """
    whole = sum(percent for percent in percents.values() if percent is not None)
    if busy_percent is None or whole <= busy_percent:
        return percents
    return {
        pid: None if percent is None else percent * busy_percent / whole for pid, percent in percents.items()
    }


def find_share(named: Iterable[tuple[int | None, bool | None]]) -> float | None:
    """Percent of our processes at one instant, from that of each and whether it is ours; None if that is not known."""
    known = [entry for entry in named if entry[0] != 0]
    valid = [percent for percent, is_ours in known if is_ours and percent is not None]
    is_doubtful = any(percent is not None and is_ours is None for percent, is_ours in known)
    if valid and not is_doubtful:
        return min(100.0, float(sum(valid)))
    return None if any(is_ours is not False for _, is_ours in known) else 0.0


class SamplePeriod:
    """How often the driver samples a device."""

    def __init__(self) -> None:
        self._gaps_us: list[int] = []
        self._newest_us: int | None = None

    def take(self, stamps: Iterable[int]) -> None:
        """Take the stamps of samples that follow each other."""
        ordered = sorted(stamps)
        if not ordered:
            return
        if self._newest_us is not None and self._newest_us < ordered[0]:
            ordered.insert(0, self._newest_us)
        self._newest_us = ordered[-1]
        gaps = [later - earlier for earlier, later in pairwise(ordered)]
        self._gaps_us = [*self._gaps_us, *gaps][-_GAPS_KEPT:]

    @property
    def usual_seconds(self) -> float:
        """The usual distance of two samples; infinite while there are none."""
        return sorted(self._gaps_us)[len(self._gaps_us) // 2] / 1e6 if self._gaps_us else float("inf")

    @property
    def pause_seconds(self) -> float:
        """The longest pause between readings that each find no more than one sample."""
        return max(_SHORTEST_PAUSE_SECONDS, self.usual_seconds * _PART_OF_PERIOD)
