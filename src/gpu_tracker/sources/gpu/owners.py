"""Which of the processes that a driver names are the job's, at the time of which it names them.

The sampler lists the job's processes now and then: one that began after that is found here, by its parents. And a
process ID is only as long the job's as its process lives; then it may become somebody else's.
"""

from __future__ import annotations

from ..processes import exists, read_parent

_MOST_REMEMBERED = 4096
# A sample stands for a period of the driver, which samples at least about once a second, and not quite regularly.
_LONGEST_PERIOD_SECONDS = 1.0
_TOLERANCE = 1.2
_LONGEST_ABSENT_SECONDS = 2.0


class Owners:
    """The processes of the job, and those known not to be."""

    def __init__(self, *, sees_everybody: bool) -> None:
        self._sees_everybody = sees_everybody
        """Whether a process that does not exist has ended; else it may be one of another namespace."""
        self._pids: frozenset[int] = frozenset()
        self._found: set[int] = set()
        """Processes of the job that are not yet among those."""
        self._strangers: set[int] = set()
        self._ends: dict[int, float] = {}
        self._lasts: dict[int, float] = {}
        """When they were named for the first time after that."""
        self._absent: dict[int, float] = {}
        """When one that does not exist was named first."""
        self._has_begun = False

    def update(self, pids: frozenset[int], at_seconds: float) -> None:
        """Take the processes of the job; those that are no longer among them have ended."""
        self._has_begun |= bool(pids)
        before = self._pids | self._found
        self._pids = pids
        self._found = {pid for pid in self._found - pids if exists(pid)}
        now = pids | self._found
        self._ends.update(dict.fromkeys(before - now, at_seconds))
        self._ends = {pid: end for pid, end in self._ends.items() if pid not in now}
        self._lasts = {pid: last for pid, last in self._lasts.items() if pid in self._ends}
        for known in (self._strangers, self._ends, self._absent):
            if len(known) > _MOST_REMEMBERED:
                known.clear()

    def own(
        self, pid: int, at_seconds: float, period_seconds: float = _LONGEST_PERIOD_SECONDS
    ) -> bool | None:
        """Whether it was the job's in the period up to that time; None if that cannot be told any more, or not yet.

        A slow driver that is asked before the job begins may name it before its processes are known here.
        """
        if pid in self._pids or pid in self._found or at_seconds <= self._ends.get(pid, float("-inf")):
            return True
        if pid in self._strangers:
            return False
        if not exists(pid):
            if self._is_last(pid, at_seconds, period_seconds):
                return True
            # One that ended before it was seen is named no longer than this; others are of another namespace.
            is_recent = at_seconds - self._absent.setdefault(pid, at_seconds) <= _LONGEST_ABSENT_SECONDS
            return None if self._sees_everybody and pid not in self._ends and is_recent else False
        if not self._has_begun:
            return None
        if self._descends(pid):
            self._found.add(pid)
            return True
        self._strangers.add(pid)
        return False

    def _is_last(self, pid: int, at_seconds: float, period_seconds: float) -> bool:
        """Whether this is the sample for the time in which it ended: the first one after that, if nobody has its ID."""
        end_seconds = self._ends.get(pid)
        if not self._sees_everybody or end_seconds is None:
            return False
        is_near = at_seconds - end_seconds <= min(_TOLERANCE * period_seconds, _LONGEST_PERIOD_SECONDS)
        return is_near and at_seconds == self._lasts.setdefault(pid, at_seconds)

    def _descends(self, pid: int) -> bool:
        parent = read_parent(pid)
        while parent is not None and parent > 1:
            if parent in self._pids or parent in self._found:
                return True
            parent = read_parent(parent)
        return False
