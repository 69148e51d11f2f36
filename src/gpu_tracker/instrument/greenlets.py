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


class _Switches:
    """Called in the context of the greenlet that goes on, after whatever else listens to switches."""

    __slots__ = ("_find_latest", "others", "stack")

    def __init__(
        self,
        stack: RegionStack,
        find_latest: Callable[[], Frame | None],
        others: Callable[[str, Any], None] | None,
    ) -> None:
        self.stack = ref(stack)
        self._find_latest = find_latest
        self.others = others

    def __call__(self, event: str, ends: Any) -> None:
        if self.others is not None:
            self.others(event, ends)
        try:
            stack = self.stack()
            if stack is not None and not stack.is_closed:
                stack.step_into(self._find_latest())
            elif sys.modules["greenlet"].gettrace() is self:
                sys.modules["greenlet"].settrace(self.others)
        except Exception as error:  # whatever happens to us, the program goes on
            if not is_ours(error):
                raise

    def is_over(self) -> bool:
        """Whether its tracker has ended."""
        stack = self.stack()
        return stack is None or stack.is_closed
