"""Regions and metrics, from inside the job: `with region("forward"):` and `log(step=3, loss=0.7)`.

Without a tracker they cost next to nothing.
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from sys import _getframe, is_finalizing  # the first is there in CPython and PyPy
from types import FunctionType, coroutine

from ..core.notices import warn_once
from ..core.system import monotonic_ns
from ..instrument import outbox
from ..instrument.code_flags import ASYNC_GENERATOR, COROUTINE, GENERATOR, ITERABLE_COROUTINE
from ..instrument.mishaps import is_of_called, is_ours
from ..instrument.stack import RegionStack, current, find_open
from ..instrument.suspension import blocks, enter_from
from ..instrument.tasks import find_task
from .decorating import has_flag, wrap_async_generator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from types import TracebackType
    from typing import Any, ParamSpec, TypeAlias, TypeVar

    from typing_extensions import Self

    from ..instrument.stack import Frame

    _Parameters = ParamSpec("_Parameters")
    _Result = TypeVar("_Result")
    _Driven: TypeAlias = tuple[Any, Callable[[], Frame | None], Callable[[Frame | None], None]]
    """A generator or coroutine, and what begins and ends each of its steps."""

_EXHAUSTED = MemoryError, SystemError  # Python may lose an error for which it has no memory
_STEP = "step"  # no value can be called so: it is a parameter of its own
_NOT_A_NUMBER = float("nan")
_MOST_KNOWN_NAMES = 1000
_known_names: set[str] = set()
"""Under which numbers were logged in this process."""


class region:  # noqa: N801 - a word of the public surface, used like a keyword
    """A named part of the job: a `with` block, or every call of a decorated function.

    The recording and the report show its calls, time, CPU, memory and GPU use. Regions may be nested, recursive, in
    threads, in coroutines and in worker processes. Without a tracker they do nothing.

    With `exact_peak` the memory peak is that of the calls themselves, however large the process was before. For that the
    kernel's high-water mark is reset at every call (Linux), so `getrusage` reports the peak since then.

    Nothing is nested in a `parallel` region: calls that overlap, as in an event loop, stand beside each other.
    """

    __slots__ = ("exact_peak", "name", "parallel")
    is_frequent = is_run_by_others = False

    _depth = 1
    """How many frames above `__enter__` the code is that uses the region: a class made from this one may add some."""

    _is_over = staticmethod(is_finalizing)
    """Kept here, because when the interpreter ends, objects that are deleted last find no names in modules any more."""

    def __init__(self, name: str, *, exact_peak: bool = False, parallel: bool = False) -> None:
        self.name = name if type(name) is str else _to_name(name)
        self.exact_peak = exact_peak
        self.parallel = parallel

    def __enter__(self) -> Self:
        now = 0
        try:
            now = monotonic_ns()
            if now > outbox.search_due_ns:
                outbox.search()
            if outbox.mailboxes is not None:
                stack = outbox.stack or outbox.open_stack()
                if stack is not None:
                    caller = _getframe(self._depth)
                    code = caller.f_code
                    if (id(code), caller.f_lasti) in blocks:
                        stack.enter(self)
                    else:
                        enter_from(stack, self, caller)
        except RecursionError:
            pass  # whatever happens to us, the program goes on; nothing can be called here
        except BaseException as error:
            if not (self._is_over() or _is_mishap(error, self, now)):
                raise
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        frame = None
        try:
            top = current.get()
            if top is None and outbox.mailboxes is None:
                return
            if top is None or top.owner is not self or not top.is_open or top.can_rest:
                frame = _find_call(self)
            else:
                frame = top
            if frame is not None:
                frame.stack.leave(frame)
        except RecursionError:
            if frame is not None:
                frame.stack.late.append(frame)  # it is ended with the next one
        except BaseException as error:
            if not (self._is_over() or is_mishap_of(error, frame or _find_call(self))):
                raise

    def __call__(self, function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        """Make each call of the function a call of the region."""
        wrapped: Any = function
        if isinstance(wrapped, classmethod | staticmethod):
            return type(wrapped)(self(wrapped.__func__))  # type: ignore[return-value]
        _check(wrapped)
        if has_flag(function, COROUTINE):

            @functools.wraps(function)
            async def call_coroutine(*arguments: Any, **options: Any) -> Any:
                return await _Steps(self, wrapped(*arguments, **options))

            return call_coroutine  # type: ignore[return-value]

        if has_flag(function, ITERABLE_COROUTINE):

            @coroutine
            @functools.wraps(function)
            def call_awaitable(*arguments: Any, **options: Any) -> Any:
                return (yield from _Steps(self, wrapped(*arguments, **options)).__await__())

            return call_awaitable  # type: ignore[return-value]

        if has_flag(function, GENERATOR):

            def start(*arguments: Any, **options: Any) -> _Driven:
                # Each step is a call; the time between steps is not the region's.
                return wrapped(*arguments, **options), functools.partial(enter, self), leave

            return functools.wraps(function)(_make_driver(start))  # type: ignore[return-value]

        if has_flag(function, ASYNC_GENERATOR):
            return wrap_async_generator(wrapped, nullcontext, functools.partial(_Steps, self))

        begin, end = enter, leave  # kept as `_is_over` is

        @functools.wraps(function)
        def call(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
            frame = begin(self)
            try:
                try:
                    return function(*arguments, **options)
                finally:
                    end(frame)
            except BaseException:
                if frame is not None and frame.is_open:
                    end(frame)  # a signal handler has raised when it was about to begin
                raise

        return call


def log(numbers: Mapping[str, float] | None = None, /, *, step: float | None = None, **values: float) -> None:
    """Record the job's own numbers (loss, accuracy...) on the same time axis as its resource use: by name, or as a dictionary."""
    log_for("log", step, values if numbers is None else _merge(numbers, values))


def log_for(who: str, step: float | None, values: dict[str, float]) -> None:
    """The same, for a function that warnings are to name."""
    try:
        if monotonic_ns() > outbox.search_due_ns:
            outbox.search()
        if outbox.mailboxes is None and outbox.given_up is None:
            return
        numbers = _to_numbers(who, values if step is None else {**values, _STEP: step})
        metrics = outbox.open_metrics()
        if metrics is not None:
            metrics.add(numbers.pop(_STEP, None), numbers)
    except _EXHAUSTED:
        pass  # no signal handler raises these
    except Exception as error:
        if not is_ours(error):
            raise


def _merge(numbers: Mapping[str, float], values: dict[str, float]) -> dict[str, float]:
    """Both together. What is no dictionary is ignored with a warning."""
    try:
        return {**{str(name): value for name, value in numbers.items()}, **values}
    except Exception as error:
        if not is_of_called(error):
            raise
        warn_once(
            f"gput.log: {type(numbers).__name__} is ignored: use gput.log(loss=0.5) or gput.log({{'loss': 0.5}})."
        )
        return values


def _to_numbers(who: str, values: dict[str, float]) -> dict[str, float]:
    """The values that are numbers. Others are ignored with a warning: being tracked must not end a training.

    In place of an earlier number there is nan: that number is no longer the last one.
    """
    numbers = {}
    for name, value in values.items():
        try:
            numbers[name] = value if type(value) is float else _to_number(value)
        except Exception as error:
            if not is_of_called(error):
                raise
            was_number = name != _STEP and name in _known_names
            if was_number:
                numbers[name] = _NOT_A_NUMBER
            # What a tensor or a wrapper raises is its own affair.
            outcome = "logged as nan" if was_number else "ignored"
            warn_once(f"gput.{who}: {name} is {outcome}: {_explain(value, error)}.")
    if len(_known_names) < _MOST_KNOWN_NAMES:
        _known_names.update(numbers)
    return numbers


def _explain(value: object, error: Exception) -> str:
    if isinstance(error, OverflowError):
        return f"the {type(value).__name__} is too large for a float"
    return f"{type(value).__name__} is not a number"


def _to_number(value: Any) -> float:
    """Through `item` where there is one: PyTorch and NumPy warn of a plain conversion, though not of this one."""
    if isinstance(value, str | bytes | bytearray):
        raise TypeError  # which `float` would read
    if hasattr(type(value), "item"):
        is_masked = hasattr(type(value), "mask") and bool(value.mask)
        value = float("nan") if is_masked else value.item()
    return float(value)


def to_step(number: Any) -> float | None:
    """The number of a step; None, with a warning, if it is none."""
    try:
        return number if type(number) in (int, float) else _to_number(number)
    except Exception as error:
        if not is_of_called(error):
            raise
        warn_once(f"gput.step: its number is ignored: {_explain(number, error)}.")
        return None


def _to_name(name: object) -> str:
    """A string of no class of the program. Of what cannot tell its name, the name of its class."""
    if isinstance(name, type):
        return name.__name__
    if isinstance(name, FunctionType):
        raise TypeError('A region needs a name: @gput.region("name").')
    try:
        return str.__str__(name) if isinstance(name, str) else str.__str__(str(name))
    except Exception as error:
        if not is_of_called(error):
            raise
        return type(name).__name__


def _check(function: object) -> None:
    """Refuse what cannot be called as a function, where it is decorated."""
    if isinstance(function, type):
        raise TypeError(f"A region cannot decorate the class {function.__name__}: decorate its methods.")
    if not callable(function):
        kind = type(function).__name__
        raise TypeError(f"A region decorates functions, not a {kind}: put @gput.region(...) below @{kind}.")


def enter(
    owner: region,
    is_over: Callable[[], bool] = is_finalizing,
    begin: Callable[[RegionStack, region], Frame | None] = RegionStack.enter,
) -> Frame | None:
    """Begin a call; None without a tracker. Whatever happens, the program goes on."""
    now = 0
    try:
        now = monotonic_ns()
        if now > outbox.search_due_ns:
            outbox.search()
        if outbox.mailboxes is None:
            return None
        stack = outbox.stack or outbox.open_stack()
        return None if stack is None else begin(stack, owner)
    except RecursionError:
        return None
    except BaseException as error:
        if not (is_over() or _is_mishap(error, owner, now)):
            raise
        return None


def leave(frame: Frame | None, is_over: Callable[[], bool] = is_finalizing) -> None:
    """End a call."""
    try:
        if frame is not None:
            frame.stack.leave(frame)
    except RecursionError:
        if frame is not None:
            frame.stack.late.append(frame)
    except BaseException as error:
        if not (is_over() or is_mishap_of(error, frame)):
            raise


def _is_mishap(error: BaseException, owner: region, since_ns: int) -> bool:
    """Whether entering has failed by our own fault; if it was begun, it is undone."""
    try:
        if since_ns and outbox.stack is not None:
            outbox.stack.abandon(owner, since_ns)
    except _EXHAUSTED:
        pass
    return is_ours(error)


def is_mishap_of(error: BaseException, frame: Frame | None) -> bool:
    """Whether leaving has failed by our own fault; the call is ended all the same."""
    try:
        if frame is not None:
            frame.stack.end(frame)
    except _EXHAUSTED:
        pass
    return is_ours(error)


def _find_call(owner: region) -> Frame | None:
    """The call of a region that this code ends: the latest of this context, else the latest of all."""
    stack = outbox.stack
    if owner.parallel and stack is not None:
        frame = stack.find_only_call(owner)
        if frame is not None:
            return frame
    frame = find_open(current.get())
    while frame is not None and (frame.owner is not owner or frame.is_suspended()):
        frame = find_open(frame.below)
    return frame if frame is not None or stack is None else stack.find_call(owner)


class _Steps:
    """An awaitable as one call of a region, which is off the clock while it waits."""

    __slots__ = ("_awaited", "_owner")

    def __init__(self, owner: region, awaited: Any) -> None:
        self._owner = owner
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, Any]:
        frame = enter(self._owner)
        try:
            return (
                yield from _drive_coroutine(
                    self._awaited, functools.partial(_resume, frame), functools.partial(_rest, frame)
                )
            )
        finally:
            leave(frame)


def _make_driver(start: Callable[..., _Driven]) -> Callable[..., Generator[Any, Any, Any]]:
    """A generator function that runs what it starts: a generator or coroutine, each of whose steps begins and ends, also the one that closes it.

    It is what the program drives: `yield from` would lose what a generator returns when it is closed (from Python 3.13 on).
    """

    def drive(*arguments: Any, **options: Any) -> Generator[Any, Any, Any]:
        driven, begin, end = start(*arguments, **options)
        step, given = driven.send, None
        while True:
            frame = begin()
            try:
                made = step(given)
            except StopIteration as stop:
                return stop.value
            finally:
                given = None  # an error would keep this code, and that the function's arguments
                end(frame)
            try:
                step, given = driven.send, (yield made)
            except BaseException as error:  # noqa: BLE001 - thrown into us, so it is thrown into it
                step, given = driven.throw, error

    return drive


_drive_coroutine = _make_driver(lambda coroutine, resume, rest: (coroutine, resume, rest))


def _resume(frame: Frame | None) -> Frame | None:
    try:
        return None if frame is None else frame.stack.resume(frame)
    except Exception as error:
        if not is_ours(error):
            raise
        return None


def _rest(frame: Frame | None, before: Frame | None) -> None:
    try:
        if frame is not None:
            frame.stack.rest(frame, before, find_task())
    except Exception as error:
        if not is_ours(error):
            raise
