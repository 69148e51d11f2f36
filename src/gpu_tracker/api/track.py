"""A decorator: every call of a function is tracked, until its end."""

from __future__ import annotations

from contextlib import contextmanager

from ..core.errors import KindError
from .decorating import wrap_call
from .tracker import Tracker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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
    tracker; by default the figures are printed. A call of a coroutine, a generator or an async generator lasts
    from its first step to its end, with what the process does in between.
    """
    finish = then or print

    @contextmanager
    def track_call() -> Iterator[None]:
        tracker = Tracker(**options)
        try:
            with tracker:
                yield
        finally:
            finish(tracker)

    def decorate(wrapped: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(wrapped, staticmethod):
            return staticmethod(decorate(wrapped.__func__))
        _check(wrapped)
        Tracker(**options)  # refuse a wrong option here, not at the first call
        return wrap_call(wrapped, track_call)

    return decorate if function is None else decorate(function)


def _check(function: object) -> None:
    if not callable(function):
        raise KindError(
            f"track() of {function!r} is invalid.", "Decorate a function; options are given by name."
        )
