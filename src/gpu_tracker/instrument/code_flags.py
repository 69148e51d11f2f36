"""What kind of code it is, as `co_flags` says it. From inspect, which is large to import."""

from __future__ import annotations

OPTIMIZED = 0x1  # its variables are not in a dictionary
GENERATOR, COROUTINE, ITERABLE_COROUTINE, ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200
SUSPENDABLE = GENERATOR | COROUTINE | ASYNC_GENERATOR
