"""Runs a program of ours as if on macOS: `as_macos.py LIBRARY gpu-tracker run ...`, or `as_macos.py LIBRARY MODULE ...`.

In this process and in its samplers, which get the same by their first line: names that XNU lacks are gone, so is /proc; a signal that
would be ignored is dropped even where it is blocked; `poll` reports a hang-up only to those who ask for something; there is kqueue, and
the library answers as libSystem. Ours need not know of it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import posix
import resource
import runpy
import select
import selectors  # noqa: F401 - before there is a kqueue to select
import signal
import subprocess  # noqa: F401 - before the platform changes
import sys
import tempfile  # noqa: F401
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

_core_signal: Any = sys.modules["_signal"]

_MISSING = {
    "os": (
        *("P_ALL", "P_PID", "P_PIDFD", "WEXITED", "WNOWAIT", "WSTOPPED", "CLD_STOPPED", "waitid")[
            : 8 if sys.version_info < (3, 13) else 0
        ],
        *("eventfd", "memfd_create", "pidfd_open", "pipe2", "posix_fadvise", "prlimit"),
        *("sched_getaffinity", "sched_setaffinity"),
    ),
    "posix": (),
    "resource": ("RUSAGE_THREAD", "prlimit"),
    "signal": ("pidfd_send_signal", "sigtimedwait", "sigwaitinfo"),
    "_signal": ("pidfd_send_signal", "sigtimedwait", "sigwaitinfo"),
    "time": ("CLOCK_BOOTTIME", "pthread_getcpuclockid"),
}
_HIDDEN = ("/proc", "/sys", "/dev/shm")
_IGNORED_BY_DEFAULT = {signal.SIGCHLD, signal.SIGURG, signal.SIGIO, signal.SIGWINCH}


def imitate(library: str) -> None:
    """From now on this process is on macOS."""
    import psutil  # noqa: F401 - it would ask for its own part for macOS

    pidfd_open = os.pidfd_open
    for module, names in _MISSING.items():
        for name in names:
            if hasattr(sys.modules[module], name):
                delattr(sys.modules[module], name)
    _hide_files()
    _drop_ignored_signals()
    _count_peaks_in_bytes()
    _refuse_clocks_of_others()
    Poll.real, select.poll = select.poll, Poll  # type: ignore[assignment, misc]
    _add_kqueue(pidfd_open)
    load = ctypes.CDLL
    ctypes.CDLL = lambda name, *rest, **options: load(name or library, *rest, **options)  # type: ignore[assignment, misc]
    sys.platform = "darwin"


def _hide_files() -> None:
    for name in ("access", "open", "stat", "lstat", "listdir", "mkdir", "readlink", "statvfs"):
        hidden = _hide(getattr(posix, name))
        setattr(posix, name, hidden)
        setattr(os, name, hidden)


def _hide(call: Callable[..., Any]) -> Callable[..., Any]:
    def hidden(path: Any = ".", *rest: Any, **options: Any) -> Any:
        is_ours = not str(sys._getframe(1).f_globals.get("__name__")).startswith("psutil")
        if is_ours and isinstance(path, (str, bytes)) and os.fsdecode(path).startswith(_HIDDEN):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return call(path, *rest, **options)

    return hidden


def _drop_ignored_signals() -> None:
    wait, pending = _core_signal.sigwait, _core_signal.sigpending

    def is_dropped(number: int) -> bool:
        handler = _core_signal.getsignal(number)
        is_ignored = handler == signal.SIG_DFL and number in _IGNORED_BY_DEFAULT
        return bool(handler == signal.SIG_IGN) or is_ignored

    def sigwait(numbers: Iterable[int]) -> int:
        while is_dropped(number := int(wait(numbers))):
            pass
        return number

    def sigpending() -> set[int]:
        return {number for number in pending() if not is_dropped(number)}

    _core_signal.sigwait = signal.sigwait = sigwait  # type: ignore[assignment]
    _core_signal.sigpending = signal.sigpending = sigpending


def _count_peaks_in_bytes() -> None:
    def convert(usage: resource.struct_rusage) -> resource.struct_rusage:
        fields = list(usage)
        fields[2] *= 1024
        return resource.struct_rusage(fields)

    read, wait = resource.getrusage, os.wait4
    resource.getrusage = lambda who: convert(read(who))

    def wait4(pid: int, options: int) -> tuple[int, int, resource.struct_rusage]:
        ended, status, usage = wait(pid, options)
        return ended, status, convert(usage)

    os.wait4 = wait4


def _refuse_clocks_of_others() -> None:
    read = time.clock_gettime_ns

    def clock_gettime_ns(clock: int) -> int:
        if clock < 0:
            raise OSError(errno.EINVAL, "Invalid argument")
        return read(clock)

    time.clock_gettime_ns = clock_gettime_ns


class Poll:
    """Who asks for nothing is told nothing."""

    real: Callable[[], Any]

    def __init__(self) -> None:
        self._poll = Poll.real()
        self._indifferent: set[int] = set()

    def register(self, fd: Any, events: int = select.POLLIN) -> None:
        """Ask for these."""
        if not events:
            self._indifferent.add(fd)
        self._poll.register(fd, events)

    def unregister(self, fd: Any) -> None:
        """Ask no more."""
        self._poll.unregister(fd)

    def poll(self, milliseconds: float | None = None) -> list[tuple[int, int]]:
        """What has come."""
        return [told for told in self._poll.poll(milliseconds) if told[0] not in self._indifferent]


class Event(NamedTuple):
    """`select.kevent`, as far as ends of processes need it."""

    ident: int
    filter: int
    flags: int
    fflags: int


def _add_kqueue(pidfd_open: Callable[[int], int]) -> None:
    class Queue:
        """A kqueue for one process; like there, none can be made for one that has ended."""

        _fd = -1

        def control(
            self, changes: list[Event] | None, most: int, seconds: float | None = None
        ) -> list[Event]:
            for event in changes or ():
                assert (event.filter, event.flags, event.fflags) == (-5, 0x11, 0x80000000)
                self._fd = pidfd_open(event.ident)
                if self._has_ended(0):
                    raise ProcessLookupError(errno.ESRCH, "No such process")
            return [Event(0, -5, 0, 0x80000000)] if most and self._has_ended(seconds) else []

        def _has_ended(self, seconds: float | None) -> bool:
            poll = Poll.real()
            poll.register(self._fd, select.POLLIN)
            return bool(poll.poll(None if seconds is None else 1000 * seconds))

        def fileno(self) -> int:
            return self._fd

        def close(self) -> None:
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)

    module: Any = select
    module.kqueue, module.kevent = Queue, Event
    # From sys/event.h.
    module.KQ_FILTER_PROC, module.KQ_NOTE_EXIT = -5, 0x80000000
    module.KQ_EV_ADD, module.KQ_EV_ONESHOT = 0x1, 0x10


def _imitate_in_samplers(library: str) -> None:
    from gpu_tracker.sampler.handle import process

    first = (
        "import runpy, sys; sys.path += sys.argv[1:]; "
        f"runpy.run_path({__file__!r})['imitate']({library!r}); del sys.path[-len(sys.argv[1:]):]; "
    )
    process._BOOT = first + process._BOOT


def main() -> None:
    """Become the program."""
    library, program = sys.argv[1:3]
    del sys.argv[:2]
    imitate(library)
    _imitate_in_samplers(library)
    if program == "gpu-tracker":
        from gpu_tracker.cli import main as run

        run()
    runpy.run_module(program, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
