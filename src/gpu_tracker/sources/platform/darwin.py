"""macOS: what its kernel tells of processes (libproc, sysctl) and of their ends (kqueue).

Bytes of a structure → a value is pure, by the offsets of the system's headers. Imported on macOS only: ctypes is slow to import.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import select
from struct import Struct

from ...core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    ReadableBuffer: TypeAlias = bytes | ctypes.Array[ctypes.c_char]

# sys/sysctl.h: struct kinfo_proc, 648 bytes. Start, flags, state, pid, name, parent.
_TABLE_ROW = Struct("=qi 20x i B 3x i 199x 17s 300x i 84x")
_EXECUTED, _ZOMBIE = 0x4000, 5  # P_EXEC and SZOMB of sys/proc.h
# sys/resource.h: struct rusage_info_v4, 296 bytes. User and system time, resident size, start; the same times of the children, and
# how long they lived; the largest footprint.
_USAGE = Struct("=16x QQ 32x Q 8x Q 8x QQ 24x Q 96x Q 48x")
# sys/proc_info.h: struct proc_taskinfo, 96 bytes. Address space, page faults, of them from storage, switches, threads.
_TASK = Struct("=Q 44x ii 20x ii 8x")
_RUSAGE_INFO_V4, _PROC_PIDTASKINFO = 4, 4
_CTL_KERN, _KERN_PROC, _KERN_PROC_ALL, _KERN_PROCARGS2 = 1, 14, 0, 49
_UsageBuffer = ctypes.c_char * _USAGE.size
# What may begin between asking how long the table is and reading it.
_SPARE_ROWS = 32
_MOST_ARGUMENT_BYTES = 1 << 20  # KERN_ARGMAX


class TableRow(NamedTuple):
    """A process in the kernel's table, as it is there: there are hundreds in each, and most are nobody's of ours."""

    seconds: int
    microseconds: int
    """When it began, by the wall clock: that tells it from another of the same number, and no more."""
    flags: int
    state: int
    pid: int
    raw_name: bytes
    parent_pid: int

    @property
    def name(self) -> str:
        """Of its program, the first letters."""
        return self.raw_name.partition(b"\0")[0].decode("utf-8", "replace")

    @property
    def is_zombie(self) -> bool:
        """Whether it has ended, and nobody has waited for it."""
        return self.state == _ZOMBIE

    @property
    def is_forked_copy(self) -> bool:
        """Whether it has not called exec."""
        return not self.flags & _EXECUTED


class Usage(NamedTuple):
    """What a process has used, also if it has ended and nobody has waited for it yet."""

    cpu_seconds: float
    reaped_cpu_seconds: float
    has_reaped: bool
    """Whether it has waited for any child."""
    rss_bytes: int
    peak_footprint_bytes: int
    """The most it was charged with: compressed memory counts, unchanged files do not. That is not its resident set."""
    started_seconds: float
    """By the monotonic clock."""


class Task(NamedTuple):
    """What else is known of a process that runs."""

    virtual_bytes: int
    page_faults: int
    major_faults: int
    switches: int
    n_threads: int


def parse_table(table: bytes) -> list[TableRow]:
    """The rows of KERN_PROC_ALL."""
    whole = len(table) - len(table) % _TABLE_ROW.size
    return list(map(TableRow._make, _TABLE_ROW.iter_unpack(memoryview(table)[:whole])))


def parse_usage(usage: ReadableBuffer, seconds_per_tick: float) -> Usage:
    """What `proc_pid_rusage` tells. Its times are in ticks of the machine's own clock."""
    user, system, rss, start, child_user, child_system, child_elapsed, footprint = _USAGE.unpack_from(usage)
    own_seconds, reaped_seconds = (
        (user + system) * seconds_per_tick,
        (child_user + child_system) * seconds_per_tick,
    )
    return Usage._make(
        (own_seconds, reaped_seconds, child_elapsed > 0, rss, footprint, start * seconds_per_tick)
    )


def parse_task(task: bytes) -> Task:
    """What `proc_pidinfo` tells."""
    return Task(*_TASK.unpack_from(task))


def parse_arguments(content: bytes) -> tuple[str, ...]:
    """The arguments of KERN_PROCARGS2: after their number, the path of the program and its padding."""
    count = int.from_bytes(content[:4], "little")
    _, _, rest = content[4:].partition(b"\0")
    return tuple(word.decode("utf-8", "replace") for word in rest.lstrip(b"\0").split(b"\0", count)[:count])


@functools.cache
def _load_system() -> ctypes.CDLL:
    """The functions that every program has. OSError on another system."""
    if os.name == "posix":
        system = ctypes.CDLL(None, use_errno=True)
        if hasattr(system, "proc_pid_rusage"):
            return system
    raise OSError(errno.ENOSYS, "this system has no libproc")


@functools.cache
def _find_seconds_per_tick() -> float:
    ratio = (ctypes.c_uint32 * 2)()
    _load_system().mach_timebase_info(ratio)
    numerator, denominator = ratio
    return numerator / denominator / 1e9


def read_usage(pid: int) -> Usage | None:
    """What a process has used; None if it is gone, or of another user."""
    buffer = _UsageBuffer()
    if _load_system().proc_pid_rusage(pid, _RUSAGE_INFO_V4, buffer):
        return None
    return parse_usage(buffer, _find_seconds_per_tick())


def read_task(pid: int) -> Task | None:
    """What else is known of a process; None if it has ended, or is of another user."""
    buffer = ctypes.create_string_buffer(_TASK.size)
    size = _load_system().proc_pidinfo(pid, _PROC_PIDTASKINFO, ctypes.c_uint64(0), buffer, _TASK.size)
    return parse_task(buffer.raw) if size == _TASK.size else None


def read_table() -> list[TableRow]:
    """All processes. OSError if the kernel does not list them."""
    name = (_CTL_KERN, _KERN_PROC, _KERN_PROC_ALL)
    while True:
        room = _ask_size(name) + _SPARE_ROWS * _TABLE_ROW.size
        try:
            return parse_table(_read_sysctl(name, room))
        except OSError as error:
            if error.errno != errno.ENOMEM:  # it has grown meanwhile
                raise


def read_arguments(pid: int) -> tuple[str, ...] | None:
    """The arguments of a process; None if it has ended, or is of another user."""
    try:
        return parse_arguments(_read_sysctl((_CTL_KERN, _KERN_PROCARGS2, pid), _MOST_ARGUMENT_BYTES))
    except OSError:
        return None


def _ask_size(name: tuple[int, ...]) -> int:
    size = ctypes.c_size_t(0)
    _call_sysctl(name, None, size)
    return size.value


def _read_sysctl(name: tuple[int, ...], room: int) -> bytes:
    buffer = ctypes.create_string_buffer(room)
    size = ctypes.c_size_t(room)
    _call_sysctl(name, buffer, size)
    return ctypes.string_at(buffer, size.value)


def _call_sysctl(name: tuple[int, ...], buffer: Any, size: ctypes.c_size_t) -> None:
    numbers = (ctypes.c_int * len(name))(*name)
    if _load_system().sysctl(numbers, len(name), buffer, ctypes.byref(size), None, ctypes.c_size_t(0)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def has_ended_children() -> bool:
    """Whether a child of ours waits to be waited for."""
    ours = os.getpid()
    return any(row.is_zombie and row.parent_pid == ours for row in read_table())


# By number, because select has a kqueue only where the system has.
_queues: dict[int, Any] = {}


def open_exit(pid: int) -> int:
    """A descriptor that becomes readable when the process ends. ProcessLookupError if it has ended."""
    queue = _watch(pid)
    number: int = queue.fileno()
    _queues[number] = queue  # which closes it when it is forgotten
    return number


def wait_until_ended(pid: int, seconds: float | None = None) -> bool:
    """Wait until a process has ended, whether or not somebody waits for it; False if it has not in that time."""
    try:
        queue = _watch(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(queue.control(None, 1, seconds))
    finally:
        queue.close()


def _watch(pid: int) -> Any:
    kqueue: Any = select
    queue = kqueue.kqueue()
    try:
        exit_of_it = kqueue.kevent(
            pid, kqueue.KQ_FILTER_PROC, kqueue.KQ_EV_ADD | kqueue.KQ_EV_ONESHOT, kqueue.KQ_NOTE_EXIT
        )
        queue.control([exit_of_it], 0)
    except OSError:
        queue.close()
        raise
    return queue
