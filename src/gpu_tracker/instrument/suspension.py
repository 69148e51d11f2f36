"""Which regions can be suspended: those in generators and coroutines. Their code waits while other code runs.

Coroutines under asyncio are followed: its event loop runs one callback after the other, each in its own context. Others
(`with` in a generator, other event loops) are followed where Python tells when code is suspended, else they are untold.
"""

from __future__ import annotations

import sys
from _thread import _local

from . import yields
from .code_flags import ASYNC_GENERATOR, COROUTINE, GENERATOR, SUSPENDABLE
from .mishaps import is_ours
from .stack import RegionStack, current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from .stack import Frame

_CONTEXTLIB = ("contextlib.py", "<frozen contextlib>")
EXIT_STACK = "enter_context"


class _Callback(_local):
    """The callback of an event loop that a thread runs."""

    is_followed = False
    outside: tuple[RegionStack, Frame | None] | None = None
    """The call that the thread was in before a callback that had begun before it could be followed."""


_callback = _Callback()
_followed: RegionStack | None = None
_run: Callable[[Any], None] | None = None  # asyncio's own, once we have taken its place


def enter_from(stack: RegionStack, owner: Any, caller: FrameType) -> None:
    """Begin a call of a region in code that may be suspended."""
    caller = _find_user(caller)
    flags = caller.f_code.co_flags
    is_generator = bool(flags & (GENERATOR | ASYNC_GENERATOR))
    is_untold = is_generator or (bool(flags & COROUTINE) and not _follow_event_loop(stack))
    if not is_untold and not _callback.is_followed and _callback.outside is None:
        _callback.outside = stack, stack.find_inside()
    is_told = is_untold and yields.follow(caller.f_code)
    stack.enter(owner, caller if is_generator or is_told else None, is_untold=is_untold and not is_told)


def _find_user(frame: FrameType) -> FrameType:
    """Who uses a context manager that contextlib has made from a generator; else the code itself."""
    while frame.f_back is not None:
        is_wrapped = frame.f_code.co_flags & SUSPENDABLE and _is_contextlib(frame.f_back)
        if not is_wrapped and not _is_contextlib(frame):
            break
        frame = frame.f_back
    return frame


def _is_contextlib(frame: FrameType) -> bool:
    return frame.f_code.co_filename.endswith(_CONTEXTLIB)


def _follow_event_loop(stack: RegionStack) -> bool:
    """Follow asyncio from now on; False if another event loop runs the code, or tasks are not begun by the loop."""
    global _followed, _run
    if _followed is stack:
        return _is_ours()
    if "asyncio" not in sys.modules or sys.is_finalizing():
        return False
    from asyncio.events import Handle

    # If another tool has put its own there meanwhile, that calls ours.
    if _run is None or Handle._run is _run:  # noqa: SLF001 - there is no other place to listen at
        _run = Handle._run  # noqa: SLF001
        Handle._run = _run_followed  # type: ignore[method-assign,assignment] # noqa: SLF001
    _followed = stack
    return _is_ours()


def _is_ours() -> bool:
    from asyncio import BaseEventLoop
    from asyncio.events import _get_running_loop

    loop = _get_running_loop()
    # A task factory may run the begin of a task in the middle of the code that creates it.
    return isinstance(loop, BaseEventLoop) and loop.get_task_factory() is None


def _run_followed(handle: Any) -> None:
    """Run one callback of the event loop in the region of its context."""
    stack, run = _followed, _run
    assert run is not None
    if stack is None or stack.is_closed:
        run(handle)
        return
    before = None
    was_followed, _callback.is_followed = _callback.is_followed, True
    try:
        if _callback.outside is not None:
            (its_stack, frame), _callback.outside = _callback.outside, None
            if its_stack is stack:
                stack.step_into(frame)
        before = stack.step_into(handle._context.get(current))  # noqa: SLF001
    except Exception as error:  # whatever happens to us, the program goes on
        if not is_ours(error):
            raise
    try:
        run(handle)
    finally:
        _callback.is_followed = was_followed
        try:
            stack.step_into(before)
        except Exception as error:
            if not is_ours(error):
                raise


def forget() -> None:
    """There are no regions any more: asyncio is as it was."""
    global _followed
    _followed = None
    yields.forget()
    events = sys.modules.get("asyncio.events")
    if events is not None and _run is not None and events.Handle._run is _run_followed:  # noqa: SLF001
        events.Handle._run = _run  # noqa: SLF001
