"""When the code of a call is suspended and goes on, as Python 3.12 and later tell it (`sys.monitoring`).

Only code that has entered a region is asked about, so nothing else pays; each of its steps costs about six microseconds.
"""

from __future__ import annotations

import sys

from .code_flags import COROUTINE
from .mishaps import is_ours
from .tasks import find_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

    from .stack import Frame

_NAME = "gpu-tracker"
_TOOLS = (4, 3)  # those that no kind of tool has a right to

_monitoring: Any = getattr(sys, "monitoring", None)
_tool: int | None = None
_codes: dict[int, CodeType] = {}
"""Those that are asked about, by their identity: comparing them costs too much."""
_calls: dict[FrameType, dict[Frame, Frame | None]] = {}
"""The open calls of suspendable code, each with the call that its thread was in before the code went on; first itself."""


def follow(code: CodeType) -> bool:
    """Whether it is told from now on when this code is suspended."""
    if id(code) in _codes:
        return True
    if _monitoring is None or not _take_tool():
        return False
    _codes[id(code)] = code
    _monitoring.set_local_events(_tool, code, _monitoring.events.PY_YIELD | _monitoring.events.PY_RESUME)
    return True


def add(frame: Frame, code: FrameType) -> None:
    """A call has begun in code that may be suspended."""
    _calls.setdefault(code, {})[frame] = frame


def remove(frame: Frame, code: FrameType) -> None:
    """It has ended."""
    calls = _calls.get(code, {})
    calls.pop(frame, None)
    if not calls:
        _calls.pop(code, None)


def find_before(frame: Frame, code: FrameType) -> Frame | None:
    """The call that the thread was in before the code of this one went on; itself if it has not been suspended."""
    return _calls.get(code, {}).get(frame, frame)


def forget() -> None:
    """Ask no more, unless there are still calls of a tracker around."""
    global _tool
    if _tool is None or _calls:
        return
    for code in _codes.values():
        _monitoring.set_local_events(_tool, code, 0)
    _codes.clear()
    _monitoring.set_events(_tool, 0)
    for event in _CALLBACKS:
        _monitoring.register_callback(_tool, getattr(_monitoring.events, event), None)
    _monitoring.free_tool_id(_tool)
    _tool = None


def _take_tool() -> bool:
    """Whether one of the few places for tools is ours."""
    global _tool
    if _tool is None:
        _tool = next((tool for tool in _TOOLS if _monitoring.get_tool(tool) is None), None)
        if _tool is None:
            return False
        _monitoring.use_tool_id(_tool, _NAME)
        for event, callback in _CALLBACKS.items():
            _monitoring.register_callback(_tool, getattr(_monitoring.events, event), callback)
        _monitoring.set_events(
            _tool, _monitoring.events.PY_THROW
        )  # rare, and it cannot be asked of single code
    return True


def _take_yield(code: CodeType, *_: object) -> None:
    calls = _calls.get(sys._getframe(1))  # noqa: SLF001 - it is there in CPython
    if calls is not None:
        # What other tasks do between the steps of a generator is not inside of it.
        _suspend(calls, find_task() if code.co_flags & COROUTINE else 0)


def _take_resume(*_: object) -> None:
    calls = _calls.get(sys._getframe(1))  # noqa: SLF001
    if calls is not None:
        _go_on(calls)


def _take_throw(*_: object) -> None:
    """Of generators that delegate to each other, only the innermost is told; those around it go on, too."""
    running: list[dict[Frame, Frame | None]] = []
    code: FrameType | None = sys._getframe(1)  # noqa: SLF001
    while code is not None:
        if (calls := _calls.get(code)) is not None:
            running.append(calls)
        code = code.f_back
    for calls in reversed(running):
        _go_on(calls)


def _suspend(calls: dict[Frame, Frame | None], task: int) -> None:
    try:
        for frame, before in reversed(calls.items()):
            if not frame.is_resting and not frame.stack.is_closed:
                frame.stack.rest(frame, before, task)
    except Exception as error:  # whatever happens to us, the program goes on
        if not is_ours(error):
            raise


def _go_on(calls: dict[Frame, Frame | None]) -> None:
    try:
        for frame in calls:
            if frame.is_resting and not frame.stack.is_closed:
                calls[frame] = frame.stack.resume(frame)
    except Exception as error:
        if not is_ours(error):
            raise


_CALLBACKS = {"PY_YIELD": _take_yield, "PY_RESUME": _take_resume, "PY_THROW": _take_throw}
