"""What this process says to its tracker: the regions it is in, what it logs, what its frameworks hold.

It goes through files in a mailbox that the environment names, so it works in every process of the job, however it was
started. Without a tracker there is no mailbox, and nothing to do.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import sys
import time
from _thread import RLock

from . import high_water
from .mailbox import MAILBOX_VARIABLE, METRICS_BYTES, METRICS_SUFFIX, find_innermost, name_file, put_inside
from .stack import RegionStack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .frameworks import FrameworkWatch

_FIRST_DESCRIPTOR = 512
# Whose memory on GPUs is worth asking for.
_FRAMEWORKS = ("torch", "jax", "tensorflow")

mailboxes: str | None = os.environ.get(MAILBOX_VARIABLE) or None
"""Our tracker's, then those of the trackers around it."""
stack: RegionStack | None = None
_metrics: MetricsWriter | None = None
_watch: FrameworkWatch | None = None
_opening = RLock()


def open_mailbox(mailbox: str, outer: str | None = None) -> None:
    """A tracker in this process begins: what this process and its children say goes there from now on."""
    global mailboxes
    close_mailbox(outer)
    high_water.note_start(mailbox)
    mailboxes = os.environ[MAILBOX_VARIABLE] = put_inside(mailbox, outer)
    _watch_frameworks(mailboxes, was_running_before=True)


def close_mailbox(outer: str | None = None) -> None:
    """It has ended; a tracker around it, if there is one, takes over again."""
    global mailboxes, stack, _metrics, _watch
    _flush()
    mailboxes, stack, _metrics, _watch = outer, None, None, None
    if outer is None:
        high_water.forget_starts()
        os.environ.pop(MAILBOX_VARIABLE, None)
    else:
        os.environ[MAILBOX_VARIABLE] = outer


def open_stack() -> RegionStack | None:
    """The regions of this process; None if there is nobody to tell."""
    global stack, mailboxes
    with _opening:
        if stack is None and mailboxes is not None:
            try:
                stack = RegionStack(mailboxes)
            except (OSError, ValueError):
                mailboxes = None  # the tracker has gone, or there is no room
            else:
                _watch_frameworks(mailboxes)
        return stack


def open_metrics() -> MetricsWriter | None:
    """Where numbers go that the job logs; None if there is nobody to tell."""
    global _metrics
    if _metrics is None and mailboxes is not None:
        try:
            _metrics = MetricsWriter(find_innermost(mailboxes))
        except OSError:
            return None
        _watch_frameworks(mailboxes)
    return _metrics


class MetricsWriter:
    """Numbers that the job logs, on their way to the sampler."""

    def __init__(self, mailbox: str) -> None:
        self._mailbox = mailbox
        self._fd = self._open()
        self._n_bytes = 0
        from json import JSONEncoder

        self._encode = JSONEncoder(separators=(",", ":")).encode
        self._lock = RLock()

    def add(self, step: float | None, values: dict[str, float]) -> None:
        """One row, written at once: whoever is killed has lost nothing."""
        line = f"{self._encode((time.monotonic_ns(), step, values))}\n".encode()
        with self._lock:
            try:
                if self._n_bytes >= METRICS_BYTES:
                    os.close(self._fd)
                    self._fd = -1
                    self._fd, self._n_bytes = self._open(), 0
                self._n_bytes += os.write(self._fd, line)
            except OSError:
                pass  # no room for numbers is no reason to disturb a training

    def close(self) -> None:
        """No more rows."""
        with self._lock:
            fd, self._fd = self._fd, -1
            try:
                os.close(fd)
            except OSError:
                pass  # the job has closed everything already

    def _open(self) -> int:
        """A new file. The sampler throws away what it has read, so that no training fills the memory."""
        path = name_file(self._mailbox, METRICS_SUFFIX)
        return _move_away(os.open(path, os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_WRONLY, 0o600))


def _watch_frameworks(
    names: str, *, was_running_before: bool = False, is_being_imported: bool = False
) -> None:
    """From now on, if there is anything to watch."""
    global _watch
    if _watch is None and (is_being_imported or any(name in sys.modules for name in _FRAMEWORKS)):
        from .frameworks import FrameworkWatch, is_worth_watching

        if is_being_imported or is_worth_watching(sys.modules):
            _watch = FrameworkWatch(find_innermost(names), was_running_before=was_running_before)
            _watch.start()


class _ImportNotice:
    """Stands first in line when a module is looked for, finds nothing, and notices that a framework is wanted."""

    def find_spec(self, name: str, *_: object) -> None:
        """Always nothing: those behind will find it."""
        if name in _FRAMEWORKS:
            sys.meta_path.remove(self)
            if mailboxes is not None:
                _watch_frameworks(mailboxes, is_being_imported=True)


def expect_frameworks() -> None:
    """Watch frameworks as soon as one is imported, in a program that does not know of us."""
    if mailboxes is not None:
        sys.meta_path.insert(0, _ImportNotice())


def _forget_after_fork() -> None:
    """A forked child has a stack of its own, and a mark that begins with its birth."""
    global stack, _metrics, _watch, _opening
    stack, _metrics, _watch, _opening = None, None, None, RLock()
    high_water.forget_after_fork()


def _flush() -> None:
    """Everything that is to be said from here has been said."""
    if mailboxes is not None:
        _watch_frameworks(mailboxes)
    for written in (stack, _metrics, _watch):
        if written is not None:
            written.close()


def _move_away(fd: int) -> int:
    """The same file by a large number: a job that closes all descriptors gets the small ones again for its own files."""
    try:
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    except OSError:
        return fd  # so large a number is not allowed here
    os.close(fd)
    return moved


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
atexit.register(_flush)
