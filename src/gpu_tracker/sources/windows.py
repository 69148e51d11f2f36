"""Windows: the processes of a tree from one table per reading, and the ended ones from handles that were kept of them.

The system keeps the largest working set of each process, so that no peak is missed of one that was met.
"""

# ruff: noqa: E402
from __future__ import annotations

import sys

assert sys.platform == "win32"

import os
import time

from ..core.model import ProcessActivity, ProcessReading, SharingReading, Stalls
from . import IGNORED_ARGUMENTS
from .platform import windows
from .portable import Machine as Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .platform.windows import TableRow

NAME = "windows"

# What gives a console program its window, in no hand of the job.
_CONSOLE_HOST = "conhost.exe"
_EPOCH_SECONDS, _TICKS_PER_SECOND = 11_644_473_600, 10_000_000
_activities: dict[int, ProcessActivity] = {}


class _Member:
    """A process of the tree."""

    __slots__ = ("handle", "reading", "row")

    def __init__(self, row: TableRow, *, was_running_at_start: bool) -> None:
        self.row = row
        # By it a process is known after its end; of another user there is none.
        self.handle = windows.open_exit(row.pid)
        self.reading = self._read(row, was_running_at_start=was_running_at_start)

    def follow(self, row: TableRow) -> None:
        """Take its present figures."""
        self.row = row
        self.reading = self._read(row, was_running_at_start=self.reading.was_running_at_start)

    def read_end(self) -> ProcessReading | None:
        """Its last figures, if they are known after its end."""
        if self.handle < 0:
            return None
        cpu_seconds, peak_bytes = windows.read_times(self.handle), windows.read_peak_bytes(self.handle)
        if cpu_seconds is None:
            return None
        peak_bytes = max(peak_bytes or 0, self.row.peak_rss_bytes)
        return self.reading._replace(cpu_seconds=cpu_seconds, rss_bytes=0, peak_rss_bytes=peak_bytes)

    def close(self) -> None:
        """Forget it."""
        if self.handle >= 0:
            windows.close_handle(self.handle)

    def _read(self, row: TableRow, *, was_running_at_start: bool) -> ProcessReading:
        return ProcessReading(
            row.pid,
            row.parent_pid,
            row.name.removesuffix(".exe"),
            is_forked_copy=False,
            n_threads=row.n_threads,
            cpu_seconds=row.cpu_seconds,
            reaped_cpu_seconds=0.0,
            rss_bytes=row.rss_bytes,
            file_bytes=0,
            peak_rss_bytes=row.peak_rss_bytes,
            was_running_at_start=was_running_at_start,
            page_faults=row.page_faults,
            major_faults=row.major_faults,
            virtual_bytes=row.virtual_bytes,
        )


class ProcessTree:
    """A process and all its descendants; orphans too, since a process keeps the number of its parent."""

    def __init__(
        self,
        root_pid: int,
        *,
        is_newborn: bool = False,
        adopter_pid: int = 0,  # noqa: ARG002 - nobody inherits orphans
        started_seconds: float | None = None,
        outsiders: Iterable[int] = (),
    ) -> None:
        self.root_pid = root_pid
        self.has_missed = True  # what came and went is not reported
        self.has_seen_end = False
        self._outsiders = set(outsiders)
        self._members: dict[int, _Member] = {}
        self._ancestors: dict[int, int] = {}
        """When processes of the tree began that have ended: their children may be met later."""
        self._strangers: set[tuple[int, int]] = set()
        """What is not of the tree, and will not be."""
        elapsed = 0.0 if started_seconds is None else time.monotonic() - started_seconds
        self._started_ticks = int((time.time() - elapsed + _EPOCH_SECONDS) * _TICKS_PER_SECOND)
        self._may_be_older = not is_newborn
        self._follow()
        self._may_be_older = False

    def is_alive(self) -> bool:
        """Whether the root still runs."""
        root = self._members.get(self.root_pid)
        if root is None:
            return False
        return root.handle < 0 or not windows.is_ready(root.handle, 0)

    def find_pause(self) -> float | None:
        """A tree ends with its root."""
        return None

    def read(self) -> tuple[ProcessReading, ...]:
        """Read every process of the tree, for a last time those that have ended since."""
        ended = self._follow()
        return (*(member.reading for member in self._members.values()), *ended)

    def read_sharing(self, pid: int) -> SharingReading | None:  # noqa: ARG002 - Windows does not report it
        """What processes share is not known."""
        return None

    def close(self) -> None:
        """Forget all processes."""
        for member in self._members.values():
            member.close()
        self._members.clear()

    def _follow(self) -> list[ProcessReading]:
        """Take in what has begun since the last reading, and read what was there; the last readings of what has ended."""
        table = windows.read_table()
        rows = {row.pid: row for row in table}
        ended = [self._drop(pid) for pid in self._find_ended(rows)]
        for pid, member in self._members.items():
            member.follow(rows[pid])
        self._outsiders &= rows.keys()
        self._strangers &= {(row.pid, row.started_ticks) for row in table}
        new = [
            row
            for row in table
            if row.pid not in self._members and (row.pid, row.started_ticks) not in self._strangers
        ]
        for pid in self._ancestors.keys() & rows.keys():
            del self._ancestors[pid]  # its number is another's by now, and so are children of it
        self._admit_relatives(new)
        _activities.update((pid, _describe(member)) for pid, member in self._members.items())
        return [reading for reading in ended if reading is not None]

    def _find_ended(self, rows: Mapping[int, TableRow]) -> list[int]:
        """Also those whose number is another's by now."""
        return [
            pid
            for pid, member in self._members.items()
            if pid not in rows or rows[pid].started_ticks != member.row.started_ticks
        ]

    def _drop(self, pid: int) -> ProcessReading | None:
        member = self._members.pop(pid)
        self._ancestors[pid] = member.row.started_ticks
        reading = member.read_end()
        self.has_seen_end |= pid == self.root_pid and reading is not None
        member.close()
        _activities.pop(pid, None)
        return reading

    def _admit_relatives(self, rows: list[TableRow]) -> None:
        # A child may come before its parent, so repeat until no process joins.
        while relatives := [row for row in rows if self._is_relative(row)]:
            for row in relatives:
                was_running = self._may_be_older and row.started_ticks < self._started_ticks
                self._members[row.pid] = _Member(row, was_running_at_start=was_running)
            rows = [row for row in rows if row.pid not in self._members]
        self._strangers.update((row.pid, row.started_ticks) for row in rows)

    def _is_relative(self, row: TableRow) -> bool:
        """Whether it belongs to the tree. A parent that is younger only has the number of the one that started it."""
        if row.pid == self.root_pid:
            return not self._ancestors
        parent = self._members.get(row.parent_pid)
        began = self._ancestors.get(row.parent_pid) if parent is None else parent.row.started_ticks
        if began is None or began > row.started_ticks or row.pid in self._outsiders:
            return False
        return row.name != _CONSOLE_HOST and row.pid != os.getpid() and not _is_ours(row.pid)


def _is_ours(pid: int) -> bool:
    """Whether it is a sampler, which is not of the job."""
    arguments = windows.read_arguments(pid) or ""
    return any(ignored in arguments for ignored in IGNORED_ARGUMENTS)


def _describe(member: _Member) -> ProcessActivity:
    row = member.row
    return ProcessActivity(
        row.pid, member.reading.was_running_at_start, row.read_bytes, row.written_bytes, row.major_faults
    )


class Activity:
    """I/O and waits for storage, which came with the table of the latest reading."""

    def read(self, readings: Sequence[ProcessReading]) -> tuple[ProcessActivity, ...]:
        """Those of these processes."""
        return tuple(_activities.get(one.pid) or ProcessActivity(one.pid) for one in readings)

    def read_stalls(self) -> Stalls:
        """Only Linux counts them."""
        return Stalls()


def open_activity(_pid: int) -> Activity:
    """What the processes of a tree do besides computing."""
    return Activity()
