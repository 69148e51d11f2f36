"""Frames that the last traceback keeps, with all that their variables hold: after an error, often the whole model."""

from __future__ import annotations

import gc
import sys
from types import AsyncGeneratorType, CoroutineType, GeneratorType, TracebackType

from .code_flags import SUSPENDABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

_SUSPENDABLE_TYPES = (AsyncGeneratorType, CoroutineType, GeneratorType)


def list_last_errors() -> list[BaseException]:
    """What the interpreter keeps for a debugger, after an error that nobody caught."""
    kept = (getattr(sys, name, None) for name in ("last_exc", "last_value"))
    return [error for error in kept if isinstance(error, BaseException)]


def clear_frames(errors: Iterable[BaseException]) -> int:
    """Forget the variables in the frames of these errors, and of those behind them. How many frames.

    Those that run stay, and those of generators and coroutines that wait to be continued: one that has caught an error goes on.
    """
    last = getattr(sys, "last_traceback", None)  # anybody may set it to anything
    tracebacks = [
        last if isinstance(last, TracebackType) else None,
        *(error.__traceback__ for error in _list_chain(errors)),
    ]
    frames = {id(frame): frame for traceback in tracebacks for frame in list_frames(traceback)}
    return sum(map(_clear, frames.values()))


def _list_chain(errors: Iterable[BaseException]) -> list[BaseException]:
    """With causes, contexts and members of groups, each once."""
    waiting, found = list(errors), {}
    while waiting:
        error = waiting.pop()
        if id(error) not in found:
            found[id(error)] = error
            behind = (error.__cause__, error.__context__, *getattr(error, "exceptions", ()))
            waiting += [one for one in behind if isinstance(one, BaseException)]
    return list(found.values())


def list_frames(traceback: TracebackType | None) -> Iterator[FrameType]:
    """The outermost first."""
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


def _clear(frame: FrameType) -> bool:
    if _may_go_on(frame):
        return False
    try:
        frame.clear()
    except RuntimeError:
        return False  # it runs
    _ = frame.f_locals  # before Python 3.13: whoever has read this has left a copy, which this renews
    return True


def _may_go_on(frame: FrameType) -> bool:
    """Whether a generator or coroutine waits in this frame: before Python 3.13, clearing it would end that one.

    It holds its frame until it ends. Only what the collector has been told to leave alone is not found.
    """
    if not frame.f_code.co_flags & SUSPENDABLE:
        return False
    return gc.get_freeze_count() > 0 or any(
        isinstance(one, _SUSPENDABLE_TYPES) for one in gc.get_referrers(frame)
    )
