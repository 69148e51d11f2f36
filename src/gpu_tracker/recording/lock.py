"""Whoever writes a recording holds its lock, which ends with the process: readers can tell whether it is still there."""

from __future__ import annotations

import time

from ..core.moments import longest_silence
from ..core.system import fcntl, posix

# A reader that holds it may be kept from running on a busy machine; without the lock, a run looks abandoned to others.
_ATTEMPTS = 250
_PAUSE_SECONDS = 0.001


def hold(fd: int) -> None:
    """Hold the lock until the descriptor is closed; where the file system has none, readers go by the file's age."""
    for _ in range(_ATTEMPTS):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_SECONDS)  # a reader holds it for the blink of an eye
            continue
        except OSError:
            pass
        return


def is_held(fd: int) -> bool | None:
    """Whether somebody writes this file; None where there are no locks."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_UN)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def is_alive(was_held: bool | None, host: str, interval_seconds: float, age_seconds: float) -> bool:
    """Whether a run without an end goes on: its writer holds the file, or else it was written to not long ago."""
    # Another machine's lock may not be seen here.
    if was_held or (was_held is not None and host == posix.uname().nodename):
        return was_held
    return age_seconds <= longest_silence(interval_seconds)
