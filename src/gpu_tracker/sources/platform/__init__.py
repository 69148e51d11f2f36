"""System calls of an operating system: exact peaks, CPU clocks of other processes, exit notification.

What only one system has is in a module of its own, which is imported there only.
"""

from __future__ import annotations

import os
import sys
import time

from ...core import signal
from ...core.model import TreeCounters
from ...core.units import parse_kib_field
from ...core.values import NamedTuple
from ..files import read_file

if sys.platform == "win32":
    from . import windows

TYPE_CHECKING = False
if TYPE_CHECKING:
    import select
    from resource import struct_rusage

_IS_DARWIN: bool = sys.platform == "darwin"
_MAXRSS_BYTES = 1 if _IS_DARWIN else 1024
_CPU_CLOCK_OF_A_PROCESS = 2
_BLOCK_BYTES = 512
READABLE = 1
"""What to register with a poll: POLLIN, on every system."""
_CHUNK_BYTES = 1 << 16
# From linux/pidfd.h: the request, the bit that asks for the exit, the size of the answer and where the code is in it.
_PIDFD_GET_INFO = 0xC040FF0B
_PIDFD_INFO_EXIT = 1 << 3
_PIDFD_INFO_BYTES = 64
_PIDFD_EXIT_CODE = slice(60, 64)
# The fields of /proc/PID/stat after the name.
_STATE, _CHILDREN_FAULTS, _THREADS, _EXIT_CODE = 0, 8, 17, 49


class LastFigures(NamedTuple):
    """What the kernel knows of a process while it is, even if it has ended and nobody has waited for it yet."""

    own_cpu_seconds: float | None = None
    """Without its children; None where the kernel does not report it."""
    has_reaped: bool = True
    """Whether it may have waited for a child."""
    peak_footprint_bytes: int | None = None
    """The most it was charged with, where the kernel counts that instead of its resident set."""


def find_peak_bytes(usage: struct_rusage) -> int:
    """The peak resident set of a resource usage."""
    return usage.ru_maxrss * _MAXRSS_BYTES


def find_counters(*usages: struct_rusage) -> TreeCounters:
    """I/O, faults and switches of resource usages together. Only Linux counts bytes, in blocks of one size."""
    is_linux = sys.platform == "linux"
    return TreeCounters(
        read_bytes=sum(usage.ru_inblock for usage in usages) * _BLOCK_BYTES if is_linux else None,
        written_bytes=sum(usage.ru_oublock for usage in usages) * _BLOCK_BYTES if is_linux else None,
        major_faults=sum(usage.ru_majflt for usage in usages),
        switches=sum(usage.ru_nvcsw + usage.ru_nivcsw for usage in usages),
    )


def read_own_rss_bytes() -> int | None:
    """The resident set of this process, where the kernel reports it."""
    if sys.platform == "win32":
        return windows.read_own_memory()[0]
    if _IS_DARWIN:
        from . import darwin

        usage = darwin.read_usage(os.getpid())
        return None if usage is None else usage.rss_bytes
    return _read_own_status(b"\nVmRSS:")


def read_own_peak_bytes() -> int:
    """The kernel's peak resident set of this process."""
    if sys.platform == "win32":
        return windows.read_own_memory()[1]
    peak_bytes = _read_own_status(b"\nVmHWM:")
    if peak_bytes is not None:
        return peak_bytes
    import resource

    # This goes on counting from what the process was before it became this program.
    return find_peak_bytes(resource.getrusage(resource.RUSAGE_SELF))


def _read_own_status(field: bytes) -> int | None:
    try:
        return parse_kib_field(read_file("/proc/self/status"), field)
    except OSError:
        return None


def read_cpu_clock(pid: int) -> float | None:
    """CPU seconds of another process, with nanosecond resolution; None where the kernel has no such clock."""
    if _IS_DARWIN:
        from . import darwin

        usage = darwin.read_usage(pid)
        return None if usage is None else usage.cpu_seconds
    try:
        return time.clock_gettime_ns((~pid << 3) | _CPU_CLOCK_OF_A_PROCESS) / 1e9
    except OSError:
        return None


def read_last_figures(pid: int) -> LastFigures:
    """Of a child, before it is waited for."""
    if _IS_DARWIN:
        from . import darwin

        usage = darwin.read_usage(pid)
        return (
            LastFigures()
            if usage is None
            else LastFigures(usage.cpu_seconds, usage.has_reaped, usage.peak_footprint_bytes or None)
        )
    return LastFigures(read_cpu_clock(pid), _has_reaped(pid))


def _has_reaped(pid: int) -> bool:
    """Whether it ever waited for a child: page faults of children are counted then."""
    try:
        return int(read_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()[_CHILDREN_FAULTS]) > 0
    except (OSError, ValueError, IndexError):
        return True


def take_name(name: str) -> None:
    """Be called so in `ps` and by other trackers, where the system has such names."""
    if sys.platform == "win32":
        return
    try:
        with open("/proc/self/comm", "wb", buffering=0) as file:
            file.write(name.encode())
    except OSError:
        pass


def read_exit_code(pid: int, exit_fd: int) -> int | None:
    """How a process that is not our child has ended, negative for a signal; None where the kernel does not say.

    It says so until the parent has learned it, or on kernels since 6.15 after that.
    """
    if sys.platform == "win32":
        return windows.read_exit_code(exit_fd) if exit_fd >= 0 else None
    status = _read_status_of_zombie(f"/proc/{pid}")
    if status is None:
        status = _read_status_of_reaped(exit_fd)
    return None if status is None else os.waitstatus_to_exitcode(status)


def _read_status_of_zombie(directory: str) -> int | None:
    try:
        fields = read_file(f"{directory}/stat").rpartition(b")")[2].split()
        if fields[_STATE] != b"Z" or int(fields[_THREADS]) > 1:
            return None  # other threads may outlive the first one
        os.readlink(f"{directory}/ns/user")  # without the right to read this, the code is always 0
        return int(fields[_EXIT_CODE])
    except (OSError, ValueError, IndexError):
        return None


def _read_status_of_reaped(exit_fd: int) -> int | None:
    import fcntl

    request = _PIDFD_INFO_EXIT.to_bytes(8, sys.byteorder).ljust(_PIDFD_INFO_BYTES, b"\0")
    try:
        answer = fcntl.ioctl(exit_fd, _PIDFD_GET_INFO, request)
    except (OSError, ValueError):
        return None  # an older kernel, or no descriptor
    if not int.from_bytes(answer[:8], sys.byteorder) & _PIDFD_INFO_EXIT:
        return None
    return int.from_bytes(answer[_PIDFD_EXIT_CODE], sys.byteorder)


def has_ended_children() -> bool:
    """Whether a child of ours has ended, and waits to be waited for."""
    if not hasattr(os, "waitid"):
        from . import darwin

        return darwin.has_ended_children()
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False


def make_poll() -> select.poll:
    """What waits for several pipes and exits at once."""
    if sys.platform == "win32":
        return windows.Poll()
    import select

    return select.poll()


def is_ready(fd: int, seconds: float) -> bool:
    """Whether there is something to read, or a process has ended, within that time."""
    poll = make_poll()
    poll.register(fd, READABLE)
    return bool(poll.poll(seconds * 1000))


def has_other_end(fd: int) -> bool:
    """Whether the other end of a pipe that we read is still open."""
    if sys.platform == "win32":
        return windows.has_other_end(fd)
    import select

    poll = select.poll()
    poll.register(fd, select.POLLIN)  # asked for nothing, macOS does not report a hangup either
    return not any(events & select.POLLHUP for _, events in poll.poll(0))


def read_pipe(fd: int) -> bytes:
    """What has come through a pipe; nothing once its other end is closed."""
    if sys.platform == "win32":
        return windows.read_pipe(fd)
    return os.read(fd, _CHUNK_BYTES)


def write_pipe(fd: int, message: bytes) -> None:
    """Write all of it. OSError if nobody is there to read it."""
    if sys.platform == "win32":
        windows.write_pipe(fd, message)
        return
    while message:
        message = message[os.write(fd, message) :]


def end_process(pid: int) -> None:
    """End a process at once, if there is one."""
    try:
        if sys.platform == "win32":
            windows.terminate(pid)
        else:
            os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # it has ended


def is_child(pid: int) -> bool:
    """Whether a process, running or ended, is our child."""
    if sys.platform == "win32":
        return False  # nobody waits for children there
    if not hasattr(os, "waitid"):
        from . import darwin

        return any(row.pid == pid and row.parent_pid == os.getpid() for row in darwin.read_table())
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def await_end_of_child(pid: int) -> None:
    """Wait until a child has ended, without forgetting it. ChildProcessError if that shows already that it is none."""
    if not hasattr(os, "waitid"):
        from . import darwin

        darwin.wait_until_ended(pid)
    else:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def await_end(pid: int, seconds: float) -> bool:
    """Whether a process of anybody has ended, or ends in that time; where the kernel gives no notice, whether it has."""
    if sys.platform == "win32":
        return windows.wait_until_ended(pid, seconds)
    if _IS_DARWIN:
        from . import darwin

        return darwin.wait_until_ended(pid, seconds)
    from ..processes import exists

    return not exists(pid)


def open_exit(pid: int) -> int:
    """A descriptor that becomes readable when the process ends; -1 where the kernel has none."""
    if sys.platform == "win32":
        return windows.open_exit(pid)
    if _IS_DARWIN:
        from . import darwin

        try:
            return darwin.open_exit(pid)
        except OSError:
            return -1
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1
