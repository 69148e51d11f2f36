"""A descriptor of ours in a program that is not ours.

The program may run without standard streams, and then the next number is 0; or it may close every descriptor there
is (daemons do) and open its own under the same numbers. So ours stay clear of the first three, and are never used
or closed without a look at what they are.
"""

from __future__ import annotations

import fcntl
import os

_FIRST_BEYOND_STANDARD = 3


class Descriptor:
    """Takes a new descriptor over."""

    def __init__(self, fd: int) -> None:
        try:
            self._fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_BEYOND_STANDARD)
        finally:
            os.close(fd)
        self._identity = _identify(self._fd)

    @property
    def number(self) -> int:
        """The number, as long as it still stands for what it stood for; else -1, which no call accepts."""
        return self._fd if self._fd >= 0 and _identify(self._fd) == self._identity else -1

    def close(self) -> None:
        """Close it, unless it is somebody else's by now."""
        number, self._fd = self.number, -1
        if number >= 0:
            os.close(number)


def make_pipe() -> tuple[Descriptor, Descriptor]:
    """The reading and the writing end."""
    reading, writing = os.pipe()
    try:
        first = Descriptor(reading)
    except OSError:
        os.close(writing)
        raise
    try:
        return first, Descriptor(writing)
    except OSError:
        first.close()
        raise


def make_unnamed_file() -> Descriptor:
    """A file that nobody can find; in memory where that is possible."""
    if hasattr(os, "memfd_create"):
        return Descriptor(os.memfd_create("gpu-tracker"))
    import tempfile

    fd, path = tempfile.mkstemp(prefix="gpu-tracker-")
    os.unlink(path)
    return Descriptor(fd)


def _identify(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino
