"""Locks that nobody waits for in vain.

When the interpreter ends, it stops the threads that still run wherever they are; what they hold is never given back. Objects
that are deleted after that may still use regions. For the same reason no module is loaded then: a thread may have been
stopped in the middle of that, and its lock is Python's own.
"""

from __future__ import annotations

from _thread import RLock
from sys import is_finalizing


def replace_if_lost(lock: RLock) -> RLock:
    """The lock, or a new one if the interpreter ends: no other thread runs any more, but a stopped one may hold it.

    It may even if nobody has it now: a thread that waits for it takes it as soon as it is free, and stops then.
    """
    return RLock() if is_finalizing() else lock
