"""Our descriptors in the user's program.

The program may run without standard streams, so that the next number is 0; or it may close all descriptors (daemons
do) and reuse their numbers. So ours avoid the first three, and are checked before they are used or closed.
"""

from __future__ import annotations

import os

from ...core.system import fcntl

_FIRST_BEYOND_STANDARD = 3
_NEEDED_FOR_A_JOB = 3

_reserved: list[int] = []


class _Closed:
    """What is left of a descriptor of ours: what a signal handler raises while Python calls `__del__` would be lost."""

    _fd = -1
    _identity: tuple[int, int] | None = None

    def __init__(self, fd: int) -> None:
        try:
            self._fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_BEYOND_STANDARD)
        finally:
            os.close(fd)
        self._identity = _identify(self._fd)

    @property
    def number(self) -> int:
        """The number if it still refers to the same file; else -1, which no call accepts."""
        return self._fd if self._fd >= 0 and _identify(self._fd) == self._identity else -1

    def close(self) -> None:
        """Close it, unless its number was reused."""
        # Without an identity a signal handler has raised when it was to be taken: nobody else has had the number since.
        number, self._fd = self._fd if self._identity is None else self.number, -1
        if number >= 0:
            os.close(number)
        self.__class__ = _Closed


class Descriptor(_Closed):
    """Takes ownership of a new descriptor. One that nobody has closed, because a signal handler raised, is closed when it is dropped."""

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # noqa: BLE001, S110 - the interpreter may be ending
            pass


def reserve() -> None:
    """Keep a few for starting the job: where they are scarce, measuring comes second."""
    try:
        while len(_reserved) <= _NEEDED_FOR_A_JOB:
            _reserved.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass  # there are no more
    if _reserved:
        os.close(_reserved.pop())  # to read our own modules


def release() -> None:
    """Give them back."""
    while _reserved:
        os.close(_reserved.pop())


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
    """A file without a name; in memory where possible."""
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
