"""Linux: all processes of a scheduler's job on this machine, whoever started them."""

from __future__ import annotations

import os
import time

from ..core.model import NO_PROCESS
from ..core.system import posix
from .allocation import read_environment
from .files import read_text
from .identity import find_identity, is_of_job
from .processes import list_pids
from .procfs import TICKS_PER_SECOND, ProcessTree, is_forked_copy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..core.model import Identity

# What the scheduler itself runs in the job's group.
_OF_THE_SCHEDULER = frozenset({"slurmstepd"})
# A job seldom takes longer from one step to the next.
PAUSE_SECONDS = 10.0
# So long a process may take from its fork to the end of its exec on a busy machine.
_DOUBT_SECONDS = 1.0


def identify(pid: int, *, proc: str = "/proc") -> Identity:
    """The job, node and rank of a process, as far as this user may know it."""
    try:
        groups = read_text(f"{proc}/{pid}/cgroup")
    except OSError:
        groups = ""
    return find_identity(read_environment(pid, proc=proc), groups, posix.uname().nodename)


def list_of_job(job: str, *, proc: str = "/proc") -> list[int]:
    """The processes of a job that run here now."""
    return [
        pid
        for pid in sorted(list_pids(proc))
        if _read_name(pid, proc) not in _OF_THE_SCHEDULER and is_of_job(identify(pid, proc=proc), job)
    ]


def _read_name(pid: int, proc: str) -> str:
    try:
        return read_text(f"{proc}/{pid}/comm").strip()
    except OSError:
        return ""


class JobProcesses(ProcessTree):
    """The processes of a job, none of which is the main one. They come and go with its steps; for a while there may be none.

    `outsiders` are of the job, but not measured: they measure it.
    """

    def __init__(
        self,
        job: str,
        *,
        started_seconds: float | None = None,
        outsiders: Iterable[int] = (),
        proc: str = "/proc",
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._job = job
        self._now = now
        self._is_inside = is_of_job(identify(os.getpid(), proc=proc), job)
        self._last_seen_seconds = now()
        self._doubted: dict[int, float] = {}
        """Until when processes are looked at again that are none of the job's yet, but may become something else at once."""
        super().__init__(NO_PROCESS, started_seconds=started_seconds, outsiders=outsiders, proc=proc)

    def is_alive(self) -> bool:
        """Whether the job may still start processes here. One that we are part of ends us."""
        if self._members:
            self._last_seen_seconds = self._now()
        return self._is_inside or self._now() - self._last_seen_seconds < PAUSE_SECONDS

    def find_earlier_seconds(self) -> float:
        """For how long the oldest of its processes had run when tracking began."""
        ages = (member.start_tick for member in self._members.values() if member.reading.was_running_at_start)
        return (self._first_tick - min(ages, default=self._first_tick)) / TICKS_PER_SECOND

    def find_pause(self) -> float | None:
        """When a process was last seen, if none runs now. Where we are part of the job, it goes on."""
        return None if self._is_inside or self._members else self._last_seen_seconds

    def _admit_relatives(self, pids: Iterable[int], *, at_start: bool) -> None:
        for pid in pids:
            stat = None if pid in self._members or pid in self._outsiders else self._try_stat(pid)
            if stat is None:
                self.has_missed |= pid not in self._members and pid not in self._outsiders
                continue
            # Until its exec a process is a copy of who started it: it may become one of the job, even if that is the scheduler.
            is_copy = is_forked_copy(stat)
            if stat[0] in _OF_THE_SCHEDULER:
                self._undecided.update([pid] * is_copy)
            elif is_of_job(identify(pid, proc=self._proc), self._job):
                self._admit(pid, stat, at_start=at_start)
            elif (is_copy or self._is_amid_exec(pid)) and self._is_in_doubt(pid):
                self._undecided.add(pid)
        self._doubted = {pid: until for pid, until in self._doubted.items() if pid in self._undecided}

    def _is_amid_exec(self, pid: int) -> bool:
        """Whether it has neither arguments nor variables yet, which would tell whose it is."""
        return self._is_of_the_job(pid) is None

    def _is_in_doubt(self, pid: int) -> bool:
        return self._now() <= self._doubted.setdefault(pid, self._now() + _DOUBT_SECONDS)
