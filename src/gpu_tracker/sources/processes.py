"""Facts about any process, such as those on a GPU: its user, command, memory and CPU time."""

from __future__ import annotations

import os
import sys
import time

from ..core import signal
from ..core.observation import Holder
from .files import read_file

_LONGEST_COMMAND_BYTES = 4096


def read_holder(pid: int, *, proc: str = "/proc") -> Holder:
    """What this user may read of a process; of one that has ended, or is in another namespace, only its pid."""
    if not os.path.isdir(f"{proc}/self"):
        return _read_portable(pid)
    from .procfs import parse_stat, parse_statm

    directory = f"{proc}/{pid}"
    try:
        _, _, _, _, cpu_seconds, *_ = parse_stat(read_file(f"{directory}/stat"))
        rss_bytes, *_ = parse_statm(read_file(f"{directory}/statm"))
        user = name_user(os.stat(directory).st_uid)
    except (OSError, ValueError, IndexError):
        return Holder(pid)
    return Holder(pid, user, _read_command(directory), rss_bytes, cpu_seconds)


def exists(pid: int) -> bool:
    """Whether there is such a process, of any user."""
    if pid <= 0:
        return False  # the kernel would take it for a process group
    if sys.platform == "win32":
        from .platform import windows

        return windows.exists(pid)
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # another user's
    return True


def ignores_children(pid: int, *, proc: str = "/proc") -> bool:
    """Whether a process ignores SIGCHLD: the kernel then waits for its children itself, and forgets what they used."""
    if sys.platform == "win32":
        return False
    try:
        ignored = read_file(f"{proc}/{pid}/status").partition(b"\nSigIgn:")[2].split(maxsplit=1)[0]
        return bool(int(ignored, 16) >> (signal.SIGCHLD - 1) & 1)
    except (OSError, ValueError, IndexError):
        return False  # it has ended, or is hidden


def find_process(thread: int, *, proc: str = "/proc") -> int:
    """The process of a thread; of a process, or where that cannot be read, the same."""
    try:
        for line in read_file(f"{proc}/{thread}/status").splitlines():
            name, _, value = line.partition(b":")
            if name == b"Tgid":
                return int(value)
    except (OSError, ValueError):
        pass  # it has ended, or is hidden
    return thread


def read_parent(pid: int, *, proc: str = "/proc") -> int | None:
    """Its parent; None if it cannot be read, as of one that has ended."""
    from .procfs import parse_stat

    try:
        _, _, parent, *_ = parse_stat(read_file(f"{proc}/{pid}/stat"))
    except (OSError, ValueError, IndexError):
        return None
    return parent


def read_start(pid: int, *, proc: str = "/proc") -> float | None:
    """When it began, by the wall clock; None if it cannot be read, as of one that has ended."""
    from .procfs import count_seconds, parse_stat

    try:
        *_, tick, _, _ = parse_stat(read_file(f"{proc}/{pid}/stat"))
    except (OSError, ValueError, IndexError):
        return None
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + count_seconds(tick)


def list_descendants(pid: int, *, proc: str = "/proc") -> frozenset[int]:
    """Its children, and theirs."""
    if not os.path.isdir(f"{proc}/self"):
        import psutil

        return frozenset(child.pid for child in psutil.Process(pid).children(recursive=True))
    parents = {other: read_parent(other, proc=proc) for other in list_pids(proc)}
    family, newest = {pid}, {pid}
    while newest:
        newest = {other for other, parent in parents.items() if parent in newest} - family
        family |= newest
    return frozenset(family - {pid})


def list_pids(proc: str = "/proc") -> frozenset[int]:
    """All processes in our PID namespace."""
    try:
        return frozenset(int(name) for name in os.listdir(proc) if name.isdecimal())
    except OSError:
        return frozenset()


def read_command(pid: int, *, proc: str = "/proc") -> tuple[str, ...] | None:
    """Its arguments, or its name if it has none; None if this user may not read them."""
    return read_holder(pid, proc=proc).command


def parse_command(cmdline: bytes) -> tuple[str, ...]:
    """The arguments of `/proc/PID/cmdline`; programs that overwrite them with a title pad it with zeros."""
    return tuple(cmdline.rstrip(b"\0").decode("utf-8", "replace").split("\0"))


def name_user(uid: int) -> str:
    """The login name, or the number of an unknown user."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _read_command(directory: str) -> tuple[str, ...] | None:
    """Its arguments; kernel threads and processes that are ending have only a name."""
    for file in ("cmdline", "comm"):
        try:
            content = read_file(f"{directory}/{file}")[:_LONGEST_COMMAND_BYTES]
        except OSError:
            return None
        if content:
            return parse_command(content.rstrip(b"\n") if file == "comm" else content)
    return None


def _read_portable(pid: int) -> Holder:
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            times = process.cpu_times()
            return Holder(
                pid,
                process.username(),
                tuple(process.cmdline()),
                process.memory_info().rss,
                times.user + times.system,
            )
    except psutil.Error:
        return Holder(pid)
