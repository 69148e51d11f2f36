"""macOS: the processes of a tree from one table per reading, and what each has used from the kernel's own counters.

The kernel keeps no high-water mark of resident memory for others to read; that of the memory charged to a process stands in for it.
"""

from __future__ import annotations

import os
import time

from ..core.model import ProcessReading, SharingReading
from . import IGNORED_ARGUMENTS
from .platform.darwin import TableRow, read_arguments, read_table, read_task, read_usage
from .portable import Machine as Machine, open_activity as open_activity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NAME = "darwin"


class _Member:
    """A process of the tree."""

    __slots__ = ("at_start", "reading", "row")

    def __init__(self, row: TableRow, *, at_start: bool) -> None:
        self.row = row
        self.at_start = at_start
        self.reading: ProcessReading | None = None
        """None until it can be read: another user's never can."""


class ProcessTree:
    """A process and all its descendants; orphans too, if a reading has met them before."""

    def __init__(
        self,
        root_pid: int,
        *,
        is_newborn: bool = False,
        adopter_pid: int = 0,
        started_seconds: float | None = None,
        outsiders: Iterable[int] = (),
    ) -> None:
        self.root_pid = root_pid
        self.has_missed = True  # nobody tells of what came and went
        self.has_seen_end = False
        # Nobody inherits orphans here, so that a child of this one is the root, or an outsider.
        self._adopter_pid = adopter_pid
        self._outsiders = set(outsiders)
        self._members: dict[int, _Member] = {}
        self._known: dict[int, float] = {}
        now = time.monotonic()
        self._started_seconds = time.time() - now + (now if started_seconds is None else started_seconds)
        self._follow(_list_by_pid(), may_be_older=not is_newborn)

    def is_alive(self) -> bool:
        """Whether the root still runs; a zombie does not count."""
        root = self._members.get(self.root_pid)
        return root is not None and not root.row.is_zombie

    def find_pause(self) -> float | None:
        """A tree ends with its root."""
        return None

    def read(self) -> tuple[ProcessReading, ...]:
        """Read every living process of the tree."""
        self._follow(_list_by_pid(), may_be_older=False)
        for member in self._members.values():
            self._refresh(member)
        return tuple(member.reading for member in self._members.values() if member.reading is not None)

    def read_sharing(self, _pid: int) -> SharingReading | None:
        """Reading it would stop the process."""
        return None

    def close(self) -> None:
        """Forget all processes."""
        self._members.clear()

    def _follow(self, rows: Mapping[int, TableRow], *, may_be_older: bool) -> None:
        """Drop what has ended, and take in what is new."""
        for pid, member in tuple(self._members.items()):
            row = rows.get(pid)
            if row is None or row.started_seconds != member.row.started_seconds:
                del self._members[pid]
            elif member.row.is_forked_copy and not row.is_forked_copy and not self._is_of_the_job(row):
                del self._members[pid]  # it has become another program
            else:
                member.row = row
        self._admit_relatives(
            [row for row in rows.values() if self._known.get(row.pid) != row.started_seconds],
            may_be_older=may_be_older,
        )
        self._known = {row.pid: row.started_seconds for row in rows.values()}
        root = self._members.get(self.root_pid)
        self.has_seen_end |= root is not None and root.row.is_zombie

    def _admit_relatives(self, rows: list[TableRow], *, may_be_older: bool) -> None:
        # A child may come before its parent, so repeat until no process joins.
        while True:
            relatives = [row for row in rows if self._is_relative(row)]
            for row in relatives:
                at_start = may_be_older and row.started_seconds < self._started_seconds
                self._members[row.pid] = _Member(row, at_start=at_start)
            if not relatives:
                return
            rows = [row for row in rows if row.pid not in self._members]

    def _is_relative(self, row: TableRow) -> bool:
        if row.pid == self.root_pid:
            return True
        is_childs = row.parent_pid in self._members or row.parent_pid == self._adopter_pid != 0
        return is_childs and not row.is_zombie and row.pid not in self._outsiders and self._is_of_the_job(row)

    def _is_of_the_job(self, row: TableRow) -> bool:
        if row.pid == self.root_pid:
            return True
        arguments = read_arguments(row.pid) or ()
        is_ours = any(ignored in word for word in arguments for ignored in IGNORED_ARGUMENTS)
        return not is_ours and row.pid != os.getpid()

    def _refresh(self, member: _Member) -> None:
        """Read a process again; what it is only asked for if it has run is as it was if it has not."""
        row, old = member.row, member.reading
        usage = read_usage(row.pid)
        if usage is None:
            return
        task = None if row.is_zombie or (old and old.cpu_seconds == usage.cpu_seconds) else read_task(row.pid)
        reading = ProcessReading(
            row.pid,
            row.parent_pid,
            row.name,
            row.is_forked_copy and row.pid != self.root_pid,
            1,
            usage.cpu_seconds,
            usage.reaped_cpu_seconds,
            0 if row.is_zombie else usage.rss_bytes,
            0,
            was_running_at_start=member.at_start,
            peak_footprint_bytes=usage.peak_footprint_bytes,
        )
        if row.is_zombie:
            reading = reading._replace(n_threads=0)
        elif task is not None:
            reading = reading._replace(
                n_threads=task.n_threads,
                page_faults=task.page_faults,
                major_faults=task.major_faults,
                virtual_bytes=task.virtual_bytes,
            )
        elif old is not None:
            reading = reading._replace(
                n_threads=old.n_threads,
                page_faults=old.page_faults,
                major_faults=old.major_faults,
                virtual_bytes=old.virtual_bytes,
            )
        member.reading = reading


def _list_by_pid() -> dict[int, TableRow]:
    return {row.pid: row for row in read_table()}
