"""macOS: the processes of a tree from one table per reading, and what each has used from the kernel's own counters.

The kernel keeps no high-water mark of resident memory for others to read; that of the memory charged to a process stands in for it.
"""

from __future__ import annotations

import os
import time
from operator import itemgetter

from ..core.model import ProcessReading, SharingReading
from . import IGNORED_ARGUMENTS
from .platform.darwin import TableRow, Usage, read_arguments, read_table, read_task, read_usage
from .portable import Machine as Machine, open_activity as open_activity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

NAME = "darwin"

# Its number, and when it began: numbers are used again. For hundreds of rows that nobody looks at otherwise.
_identify: Callable[[TableRow], tuple[int, int, int]] = itemgetter(4, 0, 1)


class _Member:
    """A process of the tree."""

    __slots__ = ("may_be_older", "reading", "row", "seen")

    def __init__(self, row: TableRow, *, may_be_older: bool) -> None:
        self.row = row
        self.may_be_older = may_be_older
        self.reading: ProcessReading | None = None
        """None until it can be read: another user's never can."""
        self.seen: tuple[TableRow, Usage] | None = None
        """What the reading was made of."""


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
        self.has_missed = True  # what came and went is not reported
        self.has_seen_end = False
        # Nobody inherits orphans here, so that a child of this one is the root, or an outsider.
        self._adopter_pid = adopter_pid
        self._outsiders = set(outsiders)
        self._members: dict[int, _Member] = {}
        self._known: set[tuple[int, int, int]] = set()
        """What had begun by the last reading."""
        self._started_seconds = time.monotonic() if started_seconds is None else started_seconds
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
            if row is None or row[:2] != member.row[:2]:
                del self._members[pid]
            elif member.row.is_forked_copy and not row.is_forked_copy and not self._is_of_the_job(row):
                del self._members[pid]  # it has become another program
            else:
                member.row = row
        self._outsiders &= rows.keys()
        listed = set(map(_identify, rows.values()))
        new = [rows[pid] for pid, *_ in listed - self._known]
        self._known = listed
        self._admit_relatives(new, may_be_older=may_be_older)
        root = self._members.get(self.root_pid)
        self.has_seen_end |= root is not None and root.row.is_zombie

    def _admit_relatives(self, rows: list[TableRow], *, may_be_older: bool) -> None:
        # A child may come before its parent, so repeat until no process joins.
        while True:
            relatives = [row for row in rows if self._is_relative(row)]
            for row in relatives:
                self._members[row.pid] = _Member(row, may_be_older=may_be_older)
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
        """Read a process again, unless its counters show that it has not run."""
        row, usage = member.row, read_usage(member.row.pid)
        if usage is None or member.seen == (row, usage):
            return
        member.seen = row, usage
        # One that is ending may have none.
        task = None if row.is_zombie else read_task(row.pid)
        member.reading = ProcessReading(
            row.pid,
            row.parent_pid,
            row.name,
            row.is_forked_copy and row.pid != self.root_pid,
            task.n_threads if task else 0,
            usage.cpu_seconds,
            usage.reaped_cpu_seconds,
            0 if row.is_zombie else usage.rss_bytes,
            0,
            was_running_at_start=member.may_be_older and usage.started_seconds < self._started_seconds,
            page_faults=task.page_faults if task else 0,
            major_faults=task.major_faults if task else 0,
            virtual_bytes=task.virtual_bytes if task else 0,
            peak_footprint_bytes=usage.peak_footprint_bytes,
        )


def _list_by_pid() -> dict[int, TableRow]:
    return {row.pid: row for row in read_table()}
