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
from .tasks import find_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

    from .stack import Frame

_CONTEXTLIB = ("contextlib.py", "<frozen contextlib>")
_WITH = ("BEFORE_WITH", "SETUP_WITH")  # of Python 3.11 to 3.13, and of 3.10
_MOST_BLOCKS = 10_000

blocks: dict[tuple[int, int], CodeType] = {}
"""`with` blocks in code that cannot be suspended, by its identity and the place in it: what they begin ends before that is left."""


class _Callback(_local):
    """The callback of an event loop that a thread runs."""

    stacks: tuple[RegionStack, ...] = ()
    """Those that follow it."""
    outside: tuple[tuple[RegionStack, Frame | None], ...] = ()
    """Of the others, the call that the thread was in before: the callback had begun before they could follow it."""


_callback = _Callback()
_followed: tuple[RegionStack, ...] = ()
"""Those of all trackers whose regions are in coroutines."""
_run: Callable[[Any], None] | None = None  # asyncio's own, once we have taken its place


def enter_from(stack: RegionStack, owner: Any, caller: FrameType) -> None:
    """Begin a call of a region in code that may be suspended, or is called by such code and may end before the region."""
    user = _find_user(caller)
    code = None if _is_block(user) else _find_suspendable(user)
    if code is None:
        stack.enter(owner)
    else:
        _enter_from(stack, owner, code)


def _enter_from(stack: RegionStack, owner: Any, caller: FrameType) -> None:
    flags = caller.f_code.co_flags
    is_generator = bool(flags & (GENERATOR | ASYNC_GENERATOR))
    is_untold = is_generator or (bool(flags & COROUTINE) and not _follow_event_loop(stack))
    if not is_untold and stack not in _callback.stacks:
        _note_outside(stack)
    is_told = is_untold and yields.follow(caller.f_code)
    generator = caller if is_generator or is_told else None
    is_untold = is_untold and not is_told
    stack.enter(owner, (generator, is_untold) if generator is not None or is_untold else None)


def enter_in_task(stack: RegionStack, owner: Any) -> Frame | None:
    """The same where the code itself is not known, but may be run by a task, or be called by a coroutine that anybody sends on."""
    if not (find_task() and _follow_event_loop(stack)):
        return stack.enter(owner, (None, True) if _is_in_coroutine() else None)
    if stack not in _callback.stacks:
        _note_outside(stack)
    return stack.enter(owner)


def _is_in_coroutine() -> bool:
    code: FrameType | None = sys._getframe(1)  # noqa: SLF001 - it is there in CPython and PyPy
    while code is not None and not code.f_code.co_flags & (COROUTINE | ASYNC_GENERATOR):
        code = code.f_back
    return code is not None


def _find_suspendable(frame: FrameType) -> FrameType | None:
    """The code itself, or the nearest that has called it. A module, or a cell of a notebook, is nobody's part."""
    code: FrameType | None = frame
    while code is not None and not code.f_code.co_flags & SUSPENDABLE:
        code = None if code.f_code.co_name == "<module>" else code.f_back
    return code


def _is_block(frame: FrameType) -> bool:
    """Whether a `with` statement is carried out, in code that cannot be suspended in the middle of it."""
    code, place = frame.f_code, frame.f_lasti
    if code.co_flags & SUSPENDABLE or place < 0:
        return False
    if blocks.get((id(code), place)) is code:
        return True
    from opcode import opname

    if opname[code.co_code[place]] not in _WITH:
        return False
    if len(blocks) < _MOST_BLOCKS:
        blocks[id(code), place] = code
    return True


def _note_outside(stack: RegionStack) -> None:
    if all(noted is not stack for noted, _ in _callback.outside):
        _callback.outside = (*_callback.outside, (stack, stack.begin_callback(current.get(), _callback)))


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
    if stack in _followed:
        return _is_ours()
    if "asyncio" not in sys.modules or sys.is_finalizing():
        return False
    from asyncio.events import Handle

    # If another tool has put its own there meanwhile, that calls ours.
    if _run is None or Handle._run is _run:  # noqa: SLF001 - there is no other place to listen at
        _run = Handle._run  # noqa: SLF001
        Handle._run = _run_followed  # type: ignore[method-assign,assignment] # noqa: SLF001
    _followed = (*_followed, stack)
    return _is_ours()


def _is_ours() -> bool:
    from asyncio import BaseEventLoop
    from asyncio.events import _get_running_loop

    loop = _get_running_loop()
    # A task factory may run the begin of a task in the middle of the code that creates it.
    return isinstance(loop, BaseEventLoop) and loop.get_task_factory() is None


def _run_followed(handle: Any) -> None:
    """Run one callback of the event loop in the regions of its context."""
    run = _run
    assert run is not None
    stacks = tuple([stack for stack in _followed if not stack.is_closed])
    if not stacks:
        run(handle)
        return
    befores: list[tuple[RegionStack, Frame | None]] = []
    outer_stacks, _callback.stacks = _callback.stacks, stacks
    try:
        _go_outside(stacks)
        frame = handle._context.get(current)  # noqa: SLF001
        befores.extend((stack, stack.begin_callback(frame, handle)) for stack in stacks)
    except Exception as error:  # whatever happens to us, the program goes on
        if not is_ours(error):
            raise
    try:
        run(handle)
    finally:
        _callback.stacks = outer_stacks
        try:
            _go_outside(_followed)
            for stack, before in befores:
                stack.end_callback(before, handle)
        except Exception as error:
            if not is_ours(error):
                raise


def _go_outside(stacks: tuple[RegionStack, ...]) -> None:
    """The callback that some of them could not follow has ended."""
    noted, _callback.outside = _callback.outside, ()
    for stack, frame in noted:
        if stack in stacks:
            stack.end_callback(frame, _callback)


def forget() -> None:
    """The regions of a tracker have ended: without any, asyncio is as it was."""
    global _followed
    _followed = tuple([stack for stack in _followed if not stack.is_closed])
    yields.forget()
    events = sys.modules.get("asyncio.events")
    if _followed or events is None or _run is None:
        return
    if events.Handle._run is _run_followed:  # noqa: SLF001
        events.Handle._run = _run  # noqa: SLF001
