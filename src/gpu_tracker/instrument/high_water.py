"""The memory of this process, as the kernel tells it: what is resident, and the most that ever was.

The kernel keeps one high-water high_water per process. A region that wants its own peak resets it; what it said before is kept
here, for whoever needs to know how large the process ever was.
"""

from __future__ import annotations

import os

_STATUS_PATH = "/proc/self/status"
_CLEAR_PATH = "/proc/self/clear_refs"

_kept_bytes = -1
# The high_water when the tracker of a mailbox began: what is not above it may be older than the tracking.
_floors: dict[str, int] = {}


def read_own_memory() -> tuple[int, int]:
    """Resident bytes and the high-water high_water; -1 where they cannot be read."""
    # Nothing is kept open: the job may close any descriptor and use its number for a file of its own.
    try:
        fd = os.open(_STATUS_PATH, os.O_RDONLY)
        try:
            status = os.read(fd, 2048)
        finally:
            os.close(fd)
    except OSError:
        return -1, -1
    return _find_kib(status, b"\nVmRSS:"), _find_kib(status, b"\nVmHWM:")


def reset_high_water() -> bool:
    """Set the high_water to what is resident now; whether it could be done."""
    try:
        fd = os.open(_CLEAR_PATH, os.O_WRONLY)
        try:
            os.write(fd, b"5")
        finally:
            os.close(fd)
    except OSError:
        return False
    _floors.clear()  # from now on the high_water is younger than any tracker
    return True


def keep_high_water(high_water_bytes: int) -> None:
    """Remember a high_water that is about to be reset."""
    global _kept_bytes
    _kept_bytes = max(_kept_bytes, high_water_bytes)


def find_kept_bytes() -> int:
    """The largest high_water that was kept; -1 if it was never reset."""
    return _kept_bytes


def note_start(mailbox: str) -> None:
    """A tracker begins."""
    _floors[mailbox] = read_own_memory()[1]


def is_since_start(mailbox: str, high_water_bytes: int) -> bool:
    """Whether a high_water was certainly reached after the tracker of that mailbox began."""
    return high_water_bytes > _floors.get(mailbox, 0)


def forget_starts() -> None:
    """There is no tracker any more."""
    _floors.clear()


def forget_after_fork() -> None:
    """A forked child's high_water begins with its birth."""
    global _kept_bytes
    _kept_bytes = -1
    _floors.clear()


def _find_kib(status: bytes, field: bytes) -> int:
    start = status.find(field)
    return -1 if start < 0 else int(status[start + len(field) :].split(maxsplit=1)[0]) * 1024
