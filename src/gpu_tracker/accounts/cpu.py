"""CPU seconds of a tree, conserved: no process is lost when it ends, none is counted twice. Pure.

The kernel adds a process's time to its parent's "reaped" counter when the parent waits for it, so own plus reaped
time over all living processes is the total, except for processes that were not reaped within the tree: their last
known time is kept here.
"""

from __future__ import annotations

from ..core.model import NO_PROCESS, ProcessReading, RootFigures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Reaped time is printed in hundredths of a second, user and system time each rounded down.
_REAPED_ERROR_SECONDS = 0.021


class CpuLedger:
    """CPU seconds since the start, of the root and of its descendants, from every reading of the tree."""

    def __init__(self, root_pid: int, root_at_start: RootFigures | None, adopter_pid: int = 0) -> None:
        self.main_seconds = 0.0
        self.descendants_seconds = 0.0
        self.discount_seconds = 0.0
        """Reaped by the root, but not the job's: processes of other trackers."""
        self._root_pid = root_pid
        self._root_at_start = root_at_start
        self._others_at_start = 0.0
        self._unreaped_seconds = 0.0
        self._adopter_pid = adopter_pid
        self._adopted_seconds = 0.0
        self._claims: dict[int, float] = {}
        self.has_lost = False
        """Whether processes have ended for which nobody has waited: of others like them that no reading has met, nothing is known."""
        self._previous: dict[int, ProcessReading] = {}

    def feed(self, readings: Iterable[ProcessReading], exact_root: RootFigures | None = None) -> None:
        """Take a reading of all living processes; those missing have ended.

        At the end, `exact_root` has the root's own and reaped time in microseconds instead of ticks, even if it has
        already ended.
        """
        current = {reading.pid: reading for reading in readings}
        root = current.get(self._root_pid) or self._previous.get(self._root_pid)
        if self._root_pid == NO_PROCESS:
            root = _never_seen(NO_PROCESS)
        if exact_root is not None:
            root = root or _never_seen(self._root_pid)
            own, reaped = self._split(exact_root, root, current)
            root = root._replace(cpu_seconds=own, reaped_cpu_seconds=reaped)
        if root is None:
            return
        if self._root_at_start is None:
            self._root_at_start = RootFigures(root.cpu_seconds, root.reaped_cpu_seconds)
        current[self._root_pid] = root
        for pid, reading in current.items():
            if pid not in self._previous and pid != self._root_pid and reading.was_running_at_start:
                self._others_at_start += _total(reading)
        self._unreaped_seconds += self._find_unreaped(current, is_last=exact_root is not None)
        self._previous = current
        adopted = self._adopted_seconds
        if exact_root is not None:
            self.has_lost |= _unless_rounding(adopted - exact_root.adopted_cpu_seconds) > 0
            adopted = max(adopted, exact_root.adopted_cpu_seconds)

        others = sum(_total(reading) for pid, reading in current.items() if pid != self._root_pid)
        descendants = (
            others
            - self._others_at_start
            + root.reaped_cpu_seconds
            - self._root_at_start.reaped_cpu_seconds
            + self._unreaped_seconds
            + adopted
        )
        own = root.cpu_seconds - self._root_at_start.own_cpu_seconds
        if exact_root is not None:
            self.main_seconds, self.descendants_seconds = own, max(0.0, descendants)
            return
        # Counters do not fall, but the rounding of reaped time could make the sum fall.
        self.main_seconds = max(self.main_seconds, own)
        self.descendants_seconds = max(self.descendants_seconds, descendants - self.discount_seconds)

    def _split(
        self, exact: RootFigures, root: ProcessReading, current: dict[int, ProcessReading]
    ) -> tuple[float, float]:
        """The root's own time and that of the children it has waited for.

        If only the sum is known, what the last reading has not met is that of those that have ended since, as far as they had used so much.
        """
        if exact.is_cpu_split:
            return exact.own_cpu_seconds, exact.reaped_cpu_seconds
        total = exact.own_cpu_seconds + exact.reaped_cpu_seconds
        ended = sum(
            _total(reading)
            for pid, reading in self._previous.items()
            if pid not in current and pid != self._root_pid
        )
        reaped = min(total, root.reaped_cpu_seconds + min(ended, max(0.0, total - _total(root))))
        return total - reaped, reaped

    def _find_unreaped(self, current: dict[int, ProcessReading], *, is_last: bool) -> float:
        """Time of ended processes, less what their next living ancestor gains by this reading or the next.

        A child may be reaped between the reading of its parent and its own: the gain then shows one reading later.
        """
        due: dict[int, float] = {}
        lost = 0.0
        for pid, reading in self._previous.items():
            if pid in current:
                continue
            ancestor = reading.parent_pid
            while ancestor in self._previous and ancestor not in current:
                ancestor = self._previous[ancestor].parent_pid
            if ancestor in current and ancestor in self._previous:
                due[ancestor] = due.get(ancestor, 0.0) + _total(reading)
            elif ancestor == self._adopter_pid:
                self._adopted_seconds += _total(reading)
            else:
                lost += _total(reading)
        claims: dict[int, float] = {}
        unclaimed = 0.0
        for pid in due.keys() | self._claims.keys():
            if pid not in current:
                continue
            old, new = self._claims.get(pid, 0.0), due.get(pid, 0.0)
            gained = current[pid].reaped_cpu_seconds - self._previous[pid].reaped_cpu_seconds
            unclaimed += _unless_rounding(old - gained)
            missing = _unless_rounding(new - max(0.0, gained - old))
            if is_last:
                unclaimed += missing
            elif missing:
                claims[pid] = missing
        self._claims = claims
        if not self._adopter_pid:
            self.has_lost |= unclaimed > 0
            return lost + unclaimed
        # Their parent has ended with them: whoever adopts orphans reaps them, and tells their time at the end.
        self._adopted_seconds += unclaimed
        return lost


def _unless_rounding(seconds: float) -> float:
    return seconds if seconds > _REAPED_ERROR_SECONDS else 0.0


def _total(reading: ProcessReading) -> float:
    return reading.cpu_seconds + reading.reaped_cpu_seconds


def _never_seen(pid: int) -> ProcessReading:
    return ProcessReading(pid, 0, "", False, 0, 0.0, 0.0, 0, 0)
