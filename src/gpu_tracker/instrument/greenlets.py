"""Greenlets (gevent, eventlet) take turns in one thread, each with a context of its own: they are followed at every switch."""

from __future__ import annotations

import sys
from _weakref import ref

from .mishaps import is_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .stack import Frame, RegionStack


def follow(stack: RegionStack, find_latest: Callable[[], Frame | None]) -> None:
    """Follow the greenlets of the calling thread from now on, if it may have any."""
    greenlet: Any = sys.modules.get("greenlet")
    if greenlet is None or not hasattr(greenlet, "settrace"):
        return  # still being imported
    trace = greenlet.gettrace()
    if isinstance(trace, _Switches) and trace.stack() is stack:
        return
    while isinstance(trace, _Switches) and trace.is_over():
        trace = trace.others
    greenlet.settrace(_Switches(stack, find_latest, trace))


def are_followed(stack: RegionStack) -> bool:
    """Whether it is known in which call the calling thread is: it has no greenlets, or all of their switches are told."""
    greenlet: Any = sys.modules.get("greenlet")
    if greenlet is None or not hasattr(greenlet, "gettrace"):
        return True
    trace = greenlet.gettrace()
    return isinstance(trace, _Switches) and trace.stack() is stack


class _Switches:
    """Called in the context of the greenlet that goes on, after whatever else listens to switches."""

    __slots__ = ("_find_latest", "_left", "others", "stack")

    def __init__(
        self,
        stack: RegionStack,
        find_latest: Callable[[], Frame | None],
        others: Callable[[str, Any], None] | None,
    ) -> None:
        self.stack = ref(stack)
        self._find_latest = find_latest
        self.others = others
        self._left: dict[int, tuple[Any, tuple[Frame | None, dict[object, Frame]]]] = {}
        """Where greenlets are that were switched out in code that can be suspended, by their identity: not in the latest of their context."""

    def __call__(self, event: str, ends: Any) -> None:
        if self.others is not None:
            self.others(event, ends)
        try:
            stack = self.stack()
            if stack is not None and not stack.is_closed:
                is_resumed = stack.is_in_resumed()
                if self._left or is_resumed:
                    self._trade(stack, *ends, is_resumed=is_resumed)
                else:
                    stack.step_into(self._find_latest())
            elif sys.modules["greenlet"].gettrace() is self:
                sys.modules["greenlet"].settrace(self.others)
        except Exception as error:  # whatever happens to us, the program goes on
            if not is_ours(error):
                raise

    def _trade(self, stack: RegionStack, before: Any, after: Any, *, is_resumed: bool) -> None:
        known = self._left.pop(id(after), None)
        place: tuple[Frame | None, dict[object, Frame]]
        place = known[1] if known is not None and known[0]() is after else (self._find_latest(), {})
        left = stack.trade(place)
        if is_resumed and not before.dead:
            self._left[id(before)] = ref(before), left

    def is_over(self) -> bool:
        """Whether its tracker has ended."""
        stack = self.stack()
        return stack is None or stack.is_closed
