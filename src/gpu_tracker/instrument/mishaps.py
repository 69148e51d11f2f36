"""Whose an exception is that comes up while a region is entered or left: ours goes no further, the program's must."""

from __future__ import annotations

import os
import struct
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_OUR_KINDS = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RuntimeError,
    ImportError,
    MemoryError,
    SystemError,
    BufferError,
    struct.error,
)


def is_ours(error: BaseException) -> bool:
    """Whether our own code has failed, rather than a signal handler that has interrupted it (a time limit, say).

    What the program has put beneath our calls (an audit hook, a fake) fails for us, too.
    """
    frames = _list_frames(error)
    if not frames or not isinstance(error, _OUR_KINDS):
        return False  # as another thread may set it, at any point of our code
    return _is_our_code(frames[-1]) or not (isinstance(error, TimeoutError) or _is_interrupted(frames))


def is_of_called(error: BaseException) -> bool:
    """Whether what our code has called with a value of the program has failed, with an error of any kind."""
    frames = _list_frames(error)
    if _is_our_code(frames[-1]):
        # It is not written in Python. A warning is an error if the user wants that.
        return isinstance(error, (*_OUR_KINDS, ArithmeticError, Warning))
    return not _is_interrupted(frames)


def _list_frames(error: BaseException) -> list[FrameType]:
    """From the code that has caught an error to the code that has raised it."""
    frames = []
    traceback = error.__traceback__
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    return frames


def _is_our_code(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_OUR_PLACES)


def _is_interrupted(frames: list[FrameType]) -> bool:
    """Whether a signal handler or a trace function is among them: both are given the frame that they interrupt."""
    return any(_has_local(inner, outer) for outer, inner in pairwise(frames))


def _has_local(frame: FrameType, wanted: FrameType) -> bool:
    """Also among the arguments that have no name."""
    return any(
        value is wanted or (type(value) is tuple and any(part is wanted for part in value))
        for value in frame.f_locals.values()
    )


# No handler is frozen, but the machinery of imports is.
_OUR_PLACES = (
    f"{os.path.dirname(os.path.dirname(is_ours.__code__.co_filename))}{os.sep}",
    "<frozen ",
)
