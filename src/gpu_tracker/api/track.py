"""A decorator: every call of a function is tracked."""

from __future__ import annotations

import functools

from ..core.errors import KindError
from .tracker import Tracker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec, TypeVar, overload

    _Parameters = ParamSpec("_Parameters")
    _Result = TypeVar("_Result")
    _Function = Callable[_Parameters, _Result]

if TYPE_CHECKING:

    @overload
    def track(function: _Function[_Parameters, _Result], /) -> _Function[_Parameters, _Result]: ...

    @overload
    def track(
        *, then: Callable[[Tracker], object] | None = None, **options: Any
    ) -> Callable[[_Function[_Parameters, _Result]], _Function[_Parameters, _Result]]: ...


def track(function: Any = None, /, *, then: Callable[[Tracker], object] | None = None, **options: Any) -> Any:
    """Decorate a function so that every call is tracked: `@track` or `@track(sleep_time=0.1)`.

    Options are those of `Tracker`. After each call, including one that raised, `then` is called with the
    tracker; by default the figures are printed.
    """
    finish = then or print
    if function is not None and not callable(function):
        raise KindError(
            f"track() of {function!r} is invalid.", "Decorate a function; options are given by name."
        )

    def decorate(wrapped: Callable[..., Any]) -> Callable[..., Any]:
        Tracker(**options)  # refuse a wrong option here, not at the first call

        @functools.wraps(wrapped)
        def call(*arguments: Any, **keywords: Any) -> Any:
            tracker = Tracker(**options)
            try:
                with tracker:
                    return wrapped(*arguments, **keywords)
            finally:
                finish(tracker)

        return call

    return decorate if function is None else decorate(function)
