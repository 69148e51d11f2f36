"""The kernel's figures of this process's memory: resident now, and the high-water mark.

There is one high-water mark per process. A region with an exact peak resets it; its earlier value is kept here, so
that the peak of the whole process is not lost.
"""

from __future__ import annotations

import sys

from ..core.system import posix
from ..core.units import parse_kib_field
from .mishaps import is_ours

_STATUS_PATH = "/proc/self/status"
_CLEAR_PATH = "/proc/self/clear_refs"

_kept_bytes = -1
# The high-water mark when the tracker of a mailbox began: one not above it may be older than the tracking.
_floors: dict[str, int] = {}


def read_own_memory() -> tuple[int, int]:
    """Resident bytes and the high-water mark; -1 if they cannot be read."""
    if sys.platform == "win32":
        return posix.read_own_memory()
    # Nothing is kept open, because the job may close any descriptor and reuse its number.
    try:
        fd = posix.open(_STATUS_PATH, posix.O_RDONLY)
        try:
            status = posix.read(fd, 2048)
        finally:
            posix.close(fd)
    except OSError as error:
        if not is_ours(error):
            raise
        return -1, -1
    sizes = (parse_kib_field(status, field) for field in (b"\nVmRSS:", b"\nVmHWM:"))
    resident, high_water = (-1 if size is None else size for size in sizes)
    return resident, high_water


def reset_high_water() -> bool:
    """Reset the high-water mark to what is resident now; whether that worked."""
    if sys.platform == "win32":
        return False
    try:
        fd = posix.open(_CLEAR_PATH, posix.O_WRONLY)
        try:
            posix.write(fd, b"5")
        finally:
            posix.close(fd)
    except OSError as error:
        if not is_ours(error):
            raise
        return False
    _floors.clear()  # from now on the high-water mark is newer than any tracker
    return True


def keep_high_water(high_water_bytes: int) -> None:
    """Remember a high-water mark that is about to be reset."""
    global _kept_bytes
    _kept_bytes = max(_kept_bytes, high_water_bytes)


def find_kept_bytes() -> int:
    """The largest high-water mark kept; -1 if it was never reset."""
    return _kept_bytes


def note_start(mailbox: str) -> None:
    """Note that a tracker begins."""
    _floors[mailbox] = read_own_memory()[1]


def is_since_start(mailbox: str, high_water_bytes: int) -> bool:
    """Whether a high-water mark was certainly reached after the tracker of that mailbox began."""
    return high_water_bytes > _floors.get(mailbox, 0)


def forget_starts() -> None:
    """Forget all trackers."""
    _floors.clear()


def forget_after_fork() -> None:
    """A forked child has a new high-water mark."""
    global _kept_bytes
    _kept_bytes = -1
    _floors.clear()
