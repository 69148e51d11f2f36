"""The calls of `posix`, `fcntl` and `resource` that this package makes, as Windows has them, or as close as it comes.

Imported on Windows only, by `core.system`.
"""

# ruff: noqa: E402
from __future__ import annotations

import sys

assert sys.platform == "win32"

import _winapi
import errno
import msvcrt
import nt
import os
import time
from nt import (
    O_APPEND as O_APPEND,
    O_CREAT as O_CREAT,
    O_EXCL as O_EXCL,
    O_RDONLY as O_RDONLY,
    O_RDWR as O_RDWR,
    O_TRUNC as O_TRUNC,
    O_WRONLY as O_WRONLY,
    close as close,
    dup as dup,
    fstat as fstat,
    getpid as getpid,
    listdir as listdir,
    lstat as lstat,
    read as read,
    stat as stat,
    unlink as unlink,
    urandom as urandom,
    utime as utime,
    write as write,
)
from typing import NamedTuple

O_CLOEXEC = O_DIRECTORY = O_NOCTTY = O_NOFOLLOW = O_NONBLOCK = 0
LOCK_SH, LOCK_EX, LOCK_NB, LOCK_UN = 1, 2, 4, 8
RLIMIT_AS = RLIMIT_FSIZE = RLIMIT_NOFILE = RLIM_INFINITY = -1
# Locked bytes cannot be read by others: this one is behind the end of every file.
_LOCKED_BYTE = 1 << 62
# From winnt.h.
_QUERY_LIMITED_THREAD, _QUERY_LIMITED_PROCESS = 0x100800, 0x1000
_PAGE_READWRITE = 4
_EPOCH_TICKS = 116_444_736_000_000_000
"""Of 100 ns, from 1601 to 1970."""


class SystemName(NamedTuple):
    """What `uname` tells."""

    sysname: str
    nodename: str
    release: str
    version: str
    machine: str


def uname() -> SystemName:
    """The names of this system and machine."""
    system = sys.getwindowsversion()
    name = os.environ.get("COMPUTERNAME", "localhost")
    release = f"{system.major}.{system.minor}"
    return SystemName(
        "Windows", name, release, str(system.build), os.environ.get("PROCESSOR_ARCHITECTURE", "")
    )


_AHEAD_NS = time.monotonic_ns() - time.perf_counter_ns()


def monotonic_ns() -> int:
    """The monotonic clock, which has steps of 16 ms before Python 3.13, carried on by one that has none."""
    return time.perf_counter_ns() + _AHEAD_NS


def open(path: str, flags: int, mode: int = 0o777) -> int:  # noqa: A001 - as posix calls it
    """Open a file whose bytes stay as they are."""
    return nt.open(path, flags | nt.O_BINARY, mode)


def pread(fd: int, n_bytes: int, offset: int) -> bytes:
    """Read from a place. The descriptor's own moves with it, so it is for descriptors that are read only like this."""
    nt.lseek(fd, offset, 0)
    return nt.read(fd, n_bytes)


def truncate(fd: int, n_bytes: int) -> None:
    """Make a file as long as that."""
    nt.ftruncate(fd, n_bytes)


def mknod(path: str, mode: int = 0o600) -> None:
    """A new file without content."""
    nt.close(open(path, nt.O_CREAT | nt.O_EXCL | nt.O_WRONLY, mode))


def geteuid() -> int:
    """What every file of Windows says of its owner."""
    return 0


def getrlimit(_limit: int) -> tuple[int, int]:
    """Nothing is limited so."""
    return RLIM_INFINITY, RLIM_INFINITY


class ThreadTimes(NamedTuple):
    """What is known of a thread."""

    cpu_ns: int
    age_ns: int


def read_thread(tid: int) -> ThreadTimes:
    """Of a thread of this process. OSError if it has ended."""
    import ctypes

    kernel32 = ctypes.windll.kernel32
    handle = kernel32.OpenThread(_QUERY_LIMITED_THREAD, False, tid)
    if not handle:
        raise OSError(errno.ESRCH, os.strerror(errno.ESRCH))
    times = (ctypes.c_uint64 * 4)()
    has_ended = not kernel32.WaitForSingleObject(handle, 0)
    kernel32.GetThreadTimes(handle, *(ctypes.byref(times, 8 * index) for index in range(4)))
    kernel32.CloseHandle(handle)
    if has_ended:
        raise OSError(errno.ESRCH, os.strerror(errno.ESRCH))
    age_ns = time.time_ns() - (times[0] - _EPOCH_TICKS) * 100
    return ThreadTimes((times[2] + times[3]) * 100, max(0, age_ns))


def read_own_memory() -> tuple[int, int]:
    """The working set of this process, and the largest so far."""
    import ctypes

    counters = (ctypes.c_size_t * 9)()
    ctypes.windll.kernel32.K32GetProcessMemoryInfo(ctypes.c_void_p(-1), counters, ctypes.sizeof(counters))
    return counters[2], counters[1]


def read_parent(pid: int) -> int:
    """The number that the parent of a process had; 0 if that is not known."""
    import ctypes

    kernel32 = ctypes.windll.kernel32
    handle = kernel32.OpenProcess(_QUERY_LIMITED_PROCESS, False, pid)
    if not handle:
        return 0
    facts = (ctypes.c_size_t * 6)()
    status = ctypes.windll.ntdll.NtQueryInformationProcess(handle, 0, facts, ctypes.sizeof(facts), None)
    kernel32.CloseHandle(handle)
    return 0 if status else facts[5]


def getppid() -> int:
    """The number that our parent had."""
    return read_parent(nt.getpid())


def hold_name(name: str) -> int:
    """Take a name that others find as long as some process holds it; the handle that does."""
    return _winapi.CreateFileMapping(-1, 0, _PAGE_READWRITE, 0, 1, name)


def is_name_held(name: str) -> bool:
    """Whether some process of this session holds it."""
    try:
        handle = _winapi.OpenFileMapping(_winapi.FILE_MAP_READ, False, name)
    except OSError:
        return False
    _winapi.CloseHandle(handle)
    return True


def setrlimit(_limit: int, _limits: tuple[int, int]) -> None:
    """There is nothing to raise."""


def flock(fd: int, operation: int) -> None:
    """Lock a file, or unlock it; of a shared lock nobody else can have another. Only without waiting."""
    position = nt.lseek(fd, 0, 1)
    nt.lseek(fd, _LOCKED_BYTE, 0)
    try:
        msvcrt.locking(fd, msvcrt.LK_UNLCK if operation & LOCK_UN else msvcrt.LK_NBLCK, 1)
    except PermissionError:
        if not operation & LOCK_UN:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
    finally:
        nt.lseek(fd, position, 0)
