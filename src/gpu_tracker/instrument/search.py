"""Finds the trackers around a process that is older than they are, and so has not inherited their mailboxes.

Only a tracker that runs, of the same user, whose process is this one or one of its ancestors counts, or that is attached to one of them. While no tracker begins or
ends, a search costs a system call for each directory in which mailboxes may be.
"""

from __future__ import annotations

import os
import sys
import time

from ..core.system import posix
from .mailbox import (
    UNFINISHED_SUFFIX,
    find_namespace,
    find_writer,
    is_alive,
    is_attached,
    is_private,
    list_places,
)
from .mishaps import is_ours

_MOST_ANCESTORS = 1000
# Changes closer together than this may have the same time.
_CLOCK_NS = 50_000_000


class Search:
    """Remembers what it has seen."""

    def __init__(self) -> None:
        self._places = list_places(os.environ)
        self._seen: list[tuple[int, int] | None] = [None] * len(self._places)

    def has_changed(self) -> bool:
        """Whether a tracker may have begun or ended since the last time."""
        before, self._seen = self._seen, [_stamp(place) for place in self._places]
        return self._seen != before

    def forget(self) -> None:
        """Whatever there is, it counts as a change."""
        self._seen = []

    def find(self, pid: int = 0) -> list[str]:
        """The mailboxes of the trackers around this or another process, innermost first; those that only look on are last."""
        here = find_namespace()
        found = []
        ancestors: dict[int, int] | None = None
        for place in self._places:
            for name in posix.listdir(place) if is_private(place) else ():
                if name.endswith(UNFINISHED_SUFFIX):
                    continue  # asking whether it is locked could be in the way of locking it
                try:
                    tracked_pid, namespace = find_writer(name)
                except ValueError as error:
                    if not is_ours(error):
                        raise
                    continue  # not a mailbox
                ancestors = ancestors or _find_ancestors(pid or posix.getpid())
                if namespace == here and tracked_pid in ancestors and is_alive(f"{place}/{name}"):
                    # Of the trackers of one process the newest is innermost.
                    order = not is_attached(name), -ancestors[tracked_pid], name.rpartition("-")[2]
                    found.append((order, f"{place}/{name}"))
        return [path for _, path in sorted(found, reverse=True)]


def _stamp(place: str) -> tuple[int, int] | None:
    """What changes with the content of a directory; None if it does not exist."""
    try:
        status = posix.stat(place)
    except OSError as error:
        if not is_ours(error):
            raise
        return None
    is_settled = time.time_ns() - status.st_mtime_ns > _CLOCK_NS
    return status.st_ino, status.st_mtime_ns if is_settled else -time.monotonic_ns()


def _find_ancestors(pid: int) -> dict[int, int]:
    """A process and those above it, each with its distance."""
    ancestors: dict[int, int] = {}
    own_pid = posix.getpid()
    while pid > 0 and pid not in ancestors and len(ancestors) < _MOST_ANCESTORS:
        ancestors[pid] = len(ancestors)
        pid = posix.getppid() if pid == own_pid else _read_parent(pid)
    return ancestors


def _read_parent(pid: int) -> int:
    """0 if it cannot be read, or there are no such files."""
    if sys.platform == "win32":
        return posix.read_parent(pid)
    try:
        fd = posix.open(f"/proc/{pid}/stat", posix.O_RDONLY)
        try:
            # The name may contain anything, so count from its end.
            return int(posix.read(fd, 1024).rpartition(b")")[2].split()[1])
        finally:
            posix.close(fd)
    except (OSError, ValueError, IndexError) as error:
        if not is_ours(error):
            raise
        return 0
