"""A file that appears whole or not at all, whatever ends us in between."""

from __future__ import annotations

import os
import signal
import stat
from contextlib import contextmanager

from ..core.errors import TrackerError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import NoReturn

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class _EndedError(BaseException):
    """A signal wants us to end; nobody but us may catch it."""


@contextmanager
def drafted(path: str, *, may_replace: bool) -> Iterator[str]:
    """The path of a new empty file beside `path`, which takes its place if all goes well."""
    place = os.path.realpath(path)
    # A name that nobody can foresee, and never through a link that somebody else has put there.
    draft = f"{place}.{os.urandom(8).hex()}.tmp"
    with _ended_by_signals():
        try:
            mode = _create(draft, place, path, may_replace)
            yield draft
            _refuse_existing(place, path, may_replace)
            if mode is not None:
                os.chmod(draft, mode)
            os.replace(draft, place)
        except OSError as error:
            raise TrackerError(f"Cannot write to {path}: {error.strerror or error}.") from None
        finally:
            if os.path.exists(draft):
                os.unlink(draft)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end us as ever, but tidily. One that is ignored or handled already stays so."""
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
    # A session that ends sends both: the second must not disturb the tidying up after the first.
    for other in _SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise _EndedError(number)


def _create(draft: str, place: str, path: str, may_replace: bool) -> int | None:
    """Make the draft; who may do what with the file that it will replace, if there is one."""
    try:
        _refuse_existing(place, path, may_replace)
        mode = stat.S_IMODE(os.stat(place).st_mode) & 0o777 if os.path.exists(place) else None
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if mode is None else 0o600))
    except OSError as error:
        raise UsageError(f"Cannot write to {path}: {error.strerror}.") from None
    return mode


def _refuse_existing(place: str, path: str, may_replace: bool) -> None:
    if os.path.isdir(place):
        raise UsageError(f"Cannot write to {path}: it is a directory.")
    if os.path.exists(place) and not os.path.isfile(place):
        raise UsageError(f"Cannot write to {path}: it is no ordinary file.")
    if os.path.exists(place) and not may_replace:
        raise UsageError(f"{path} exists already.", "Use --overwrite to replace it.")
