"""What this process reports to its tracker: its regions, its metrics, its framework memory.

They are written to files in a mailbox that is named in the environment, so this works in every process of the job,
however it was started. Without a tracker there is no mailbox, and nothing is written.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import sys
import time
from _thread import RLock

from . import high_water, suspension
from .mailbox import MAILBOX_VARIABLE, METRICS_BYTES, METRICS_SUFFIX, find_innermost, name_file, put_inside
from .stack import RegionStack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .frameworks import FrameworkWatch

_FIRST_DESCRIPTOR = 512
# Modules whose GPU memory is read.
_FRAMEWORKS = ("torch", "jax", "tensorflow")

mailboxes: str | None = os.environ.get(MAILBOX_VARIABLE) or None
"""Our tracker's, then those of the trackers around it."""
stack: RegionStack | None = None
_outer_stacks: dict[str, RegionStack] = {}
"""The regions of trackers around ours; those that are open there go on."""
_metrics: MetricsWriter | None = None
_watch: FrameworkWatch | None = None
_opening = RLock()


def open_mailbox(mailbox: str, outer: str | None = None) -> None:
    """Begin a tracker in this process: it and its children report there from now on."""
    global mailboxes, stack
    if outer is not None and stack is not None:
        _outer_stacks[outer], stack = stack, None
    _flush()
    _forget()
    high_water.note_start(mailbox)
    mailboxes = os.environ[MAILBOX_VARIABLE] = put_inside(mailbox, outer)
    _watch_frameworks(mailboxes, was_running_before=True)


def close_mailbox(outer: str | None = None) -> None:
    """End that tracker; a tracker around it, if any, takes over again."""
    global mailboxes, stack
    _flush()
    _forget()
    mailboxes = outer
    stack = None if outer is None else _outer_stacks.pop(outer, None)
    if outer is None:
        high_water.forget_starts()
        os.environ.pop(MAILBOX_VARIABLE, None)
    else:
        os.environ[MAILBOX_VARIABLE] = outer


def _forget() -> None:
    """Begin without regions and metrics."""
    global stack, _metrics, _watch
    stack, _metrics, _watch = None, None, None
    suspension.forget()


def open_stack() -> RegionStack | None:
    """The regions of this process; None without a tracker."""
    global stack, mailboxes
    with _opening:
        if stack is None and mailboxes is not None:
            try:
                stack = RegionStack(mailboxes)
            except (OSError, ValueError):
                mailboxes = None  # the tracker has ended, or the disk is full
            else:
                _watch_frameworks(mailboxes)
        return stack


def open_metrics() -> MetricsWriter | None:
    """The writer of this process's metrics; None without a tracker."""
    global _metrics
    if _metrics is None and mailboxes is not None:
        try:
            _metrics = MetricsWriter(find_innermost(mailboxes))
        except OSError:
            return None
        _watch_frameworks(mailboxes)
    return _metrics


class MetricsWriter:
    """Writes the job's metrics for the sampler."""

    def __init__(self, mailbox: str) -> None:
        self._mailbox = mailbox
        self._fd = self._open()
        self._n_bytes = 0
        from json import JSONEncoder

        self._encode = JSONEncoder(separators=(",", ":")).encode
        self._lock = RLock()

    def add(self, step: float | None, values: dict[str, float]) -> None:
        """Write one row immediately, so that a kill loses nothing."""
        line = f"{self._encode((time.monotonic_ns(), step, values))}\n".encode()
        with self._lock:
            try:
                if self._n_bytes >= METRICS_BYTES:
                    os.close(self._fd)
                    self._fd = -1
                    self._fd, self._n_bytes = self._open(), 0
                self._n_bytes += os.write(self._fd, line)
            except OSError:
                pass  # a full disk must not disturb the job

    def close(self) -> None:
        """No more rows."""
        with self._lock:
            fd, self._fd = self._fd, -1
            try:
                os.close(fd)
            except OSError:
                pass  # the job has closed it

    def _open(self) -> int:
        """A new file. The sampler removes files that it has read, so that metrics do not fill the memory."""
        path = name_file(self._mailbox, METRICS_SUFFIX)
        return _move_away(os.open(path, os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_WRONLY, 0o600))


def _watch_frameworks(
    names: str, *, was_running_before: bool = False, is_being_imported: bool = False
) -> None:
    """Start watching, if a framework is loaded."""
    global _watch
    if _watch is None and (is_being_imported or any(name in sys.modules for name in _FRAMEWORKS)):
        from .frameworks import FrameworkWatch, is_worth_watching

        if is_being_imported or is_worth_watching(sys.modules):
            _watch = FrameworkWatch(find_innermost(names), was_running_before=was_running_before)
            _watch.start()


class _ImportNotice:
    """An import finder that finds nothing, but notices when a framework is imported."""

    def find_spec(self, name: str, *_: object) -> None:
        """Always None: the regular finders follow."""
        if name in _FRAMEWORKS:
            sys.meta_path.remove(self)
            if mailboxes is not None:
                _watch_frameworks(mailboxes, is_being_imported=True)


def expect_frameworks() -> None:
    """Watch frameworks once one is imported, in a program that does not import gpu_tracker."""
    if mailboxes is not None:
        sys.meta_path.insert(0, _ImportNotice())


def _forget_after_fork() -> None:
    """A forked child begins with no regions, metrics or high-water mark."""
    global _opening
    for parents in (stack, *_outer_stacks.values()):
        if parents is not None:
            parents.is_closed = True
    _outer_stacks.clear()
    _forget()
    _opening = RLock()
    high_water.forget_after_fork()


def _flush() -> None:
    """Write everything that is pending, and close."""
    if mailboxes is not None:
        _watch_frameworks(mailboxes)
    for written in (stack, _metrics, _watch):
        if written is not None:
            written.close()


def _move_away(fd: int) -> int:
    """Move a descriptor to a large number: a job that closes all descriptors reuses the small ones."""
    try:
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    except OSError:
        return fd  # above the limit
    os.close(fd)
    return moved


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
atexit.register(_flush)
