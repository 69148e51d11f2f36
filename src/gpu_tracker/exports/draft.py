"""A file that appears complete or not at all, even if this process is killed."""

from __future__ import annotations

import os
import signal
import stat
from contextlib import contextmanager

from ..core import list_signals
from ..core.errors import TrackerError, UsageError
from ..recording.find import refuse_recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import NoReturn

_SIGNALS = list_signals("SIGTERM", "SIGHUP")


class _EndedError(BaseException):
    """Raised by a signal, and caught only in this module."""


@contextmanager
def drafted(path: str, *, may_replace: bool, mode: int | None = None) -> Iterator[str]:
    """The path of a new empty file beside `path`, which replaces it on success.

    A file that is replaced keeps its permissions; a new one has this mode, or what the umask leaves.
    """
    target = os.path.realpath(path)
    # An unpredictable name, so that another user cannot prepare a link there.
    draft = f"{target}.{os.urandom(8).hex()}.tmp"
    with _ended_by_signals():
        try:
            mode = _create(draft, target, path, may_replace, mode)
            yield draft
            _refuse_existing(target, path, may_replace)
            if mode is not None:
                os.chmod(draft, mode)
            os.replace(draft, target)
        except OSError as error:
            raise TrackerError(f"Cannot write to {path}: {error.strerror or error}.") from None
        finally:
            if os.path.exists(draft):
                os.unlink(draft)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Clean up before SIGTERM or SIGHUP ends this process; signals already ignored or handled are left alone."""
    numbers = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, _end)
    try:
        yield
    except _EndedError as end:
        (number,) = end.args
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        raise
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    # A closing session sends both: the second must not interrupt the cleanup.
    for other in _SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise _EndedError(number)


def _create(draft: str, target: str, path: str, may_replace: bool, mode: int | None) -> int | None:
    """Create the draft; returns the mode that it will have: of the file that it replaces, or else as given."""
    try:
        _refuse_existing(target, path, may_replace)
        if os.path.exists(target):
            mode = read_mode(target)
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if mode is None else 0o600))
    except OSError as error:
        raise UsageError(f"Cannot write to {path}: {error.strerror}.") from None
    return mode


def read_mode(path: str) -> int:
    """Who may read and write a file."""
    return stat.S_IMODE(os.stat(path).st_mode) & 0o777


def _refuse_existing(target: str, path: str, may_replace: bool) -> None:
    if os.path.isdir(target):
        raise UsageError(f"Cannot write to {path}: it is a directory.")
    if os.path.exists(target) and not os.path.isfile(target):
        raise UsageError(f"Cannot write to {path}: it is not a regular file.")
    if os.path.exists(target) and not may_replace:
        raise UsageError(f"{path} already exists.", "Use --overwrite to replace it.")
    refuse_recording(path)
