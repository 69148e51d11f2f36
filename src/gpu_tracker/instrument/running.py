"""What is to be done once a function of another program has ended, by whatever way: nobody tells when it fails.

An object among its variables goes with them. What keeps an error keeps the variables, too, so it is also asked now and then which
functions still run.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from weakref import WeakSet

from .code_flags import OPTIMIZED
from .tracebacks import list_frames, list_last_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

_NAME = "gpu_tracker_end"


class End:
    """The end of a function that runs. As long as this exists, so does its frame, and no other one has its ID."""

    __slots__ = ("__weakref__", "_act", "_frame_id", "_greenlet", "_thread")

    def __init__(self, frame: FrameType, act: Callable[[BaseException | None], None]) -> None:
        self._frame_id, self._thread, self._greenlet = id(frame), get_ident(), _find_greenlet()
        self._act: Callable[[BaseException | None], None] | None = act

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self.reach()

    def cancel(self) -> None:
        """There is nothing more to be done."""
        self._act = None

    def reach(self) -> None:
        """Do what is to be done, once, with the error that has ended the function, if it is known."""
        act, self._act = self._act, None
        if act is not None:
            act(self._find_error())

    def is_reached(self) -> bool:
        """Whether the function has ended; not if that cannot be told, as from another greenlet."""
        if self._act is None:
            return True
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - the only way to other threads
        while frame is not None and id(frame) != self._frame_id:
            frame = frame.f_back
        is_same = self._greenlet == _find_greenlet() and self._thread == get_ident()
        return frame is None and (is_same or not self._greenlet)

    def _find_error(self) -> BaseException | None:
        for error in list_last_errors():
            if any(id(frame) == self._frame_id for frame in list_frames(error.__traceback__)):
                return error
        return None


_awaited: WeakSet[End] = WeakSet()


def await_end(frame: FrameType, act: Callable[[BaseException | None], None]) -> End:
    """Do this when the function of this frame has ended: in the middle of anything, since objects go when they like.

    Only the frame may keep what is returned: take a weak reference.
    """
    end = End(frame, act)
    variables = frame.f_locals
    is_copy = frame.f_code.co_flags & OPTIMIZED and isinstance(variables, dict)
    if (
        is_copy and frame.f_trace is None
    ):  # before Python 3.13 the frame keeps the copy, and all values with it
        for name in [name for name in variables if not name.startswith(_NAME)]:
            del variables[name]
    variables[f"{_NAME}_{id(end)}"] = end
    _awaited.add(end)
    return end


def end_what_has_ended() -> bool:
    """Do what is to be done for functions that have ended by now. Whether there are others."""
    for end in [*_awaited]:
        if end.is_reached():
            _awaited.discard(end)
            end.reach()
    return bool(_awaited)


def find_outermost(package: str, frame: FrameType | None) -> FrameType | None:
    """Of the functions that call each other down to this frame, the outermost of the innermost row that belong to a package."""
    while frame is not None and not _is_of(frame, package):
        frame = frame.f_back
    while frame is not None and frame.f_back is not None and _is_of(frame.f_back, package):
        frame = frame.f_back
    return frame


def _is_of(frame: FrameType, package: str) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] == package


def _find_greenlet() -> int:
    """Which one runs in this thread; 0 without any."""
    greenlet: Any = sys.modules.get("greenlet")
    return id(greenlet.getcurrent()) if hasattr(greenlet, "getcurrent") else 0
