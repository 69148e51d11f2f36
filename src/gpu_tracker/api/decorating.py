"""What decorators of functions that can be suspended share."""

from __future__ import annotations

import functools
from sys import get_asyncgen_hooks, set_asyncgen_hooks
from types import coroutine

from ..instrument.code_flags import ASYNC_GENERATOR, COROUTINE, GENERATOR, ITERABLE_COROUTINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any


def has_flag(function: object, flag: int) -> bool:
    """Whether calling it runs code of that kind; of a partial or an object with `__call__`, the code behind it."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return bool(getattr(code, "co_flags", 0) & flag)


def wrap_call(
    function: Callable[..., Any], open_call: Callable[[], AbstractContextManager[object]]
) -> Callable[..., Any]:
    """A function of the same kind, whose calls are within `open_call()`, each until its end."""
    if has_flag(function, COROUTINE):

        @functools.wraps(function)
        async def call_coroutine(*arguments: Any, **keywords: Any) -> Any:
            with open_call():
                return await function(*arguments, **keywords)

        return call_coroutine

    if has_flag(function, GENERATOR):

        @functools.wraps(function)
        def call_generator(*arguments: Any, **keywords: Any) -> Any:
            with open_call():
                return (yield from function(*arguments, **keywords))

        return coroutine(call_generator) if has_flag(function, ITERABLE_COROUTINE) else call_generator

    if has_flag(function, ASYNC_GENERATOR):
        return wrap_async_generator(function, open_call, _await_as_it_is)

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        with open_call():
            return function(*arguments, **keywords)

    return call


def wrap_async_generator(
    function: Callable[..., Any],
    open_call: Callable[[], AbstractContextManager[object]],
    await_step: Callable[[Any], Any],
) -> Callable[..., Any]:
    """The same async generator: each call of it within `open_call()`, each step awaited through `await_step`."""

    @functools.wraps(function)
    async def call_async_generator(*arguments: Any, **options: Any) -> Any:
        with open_call():
            generator = function(*arguments, **options)
            step = _begin_hidden(generator)
            while True:
                try:
                    made = await await_step(step)
                except StopAsyncIteration:
                    return
                try:
                    step = generator.asend((yield made))
                except GeneratorExit:
                    await await_step(generator.aclose())
                    raise
                except BaseException as error:  # noqa: BLE001 - thrown into us, so it is thrown into it
                    step = _throw(generator, error)

    return call_async_generator


def _begin_hidden(generator: Any) -> Any:
    """The first step of an async generator that the event loop does not close: the one around it does."""
    hooks = get_asyncgen_hooks()
    set_asyncgen_hooks(None, None)
    try:
        return generator.asend(None)
    finally:
        set_asyncgen_hooks(*hooks)


async def _throw(generator: Any, error: BaseException) -> Any:
    """Throw into an async generator. Nothing keeps the error: it would keep our code, and that the function's arguments."""
    try:
        return await generator.athrow(error)
    finally:
        del error


def _await_as_it_is(step: Any) -> Any:
    return step
