"""Regions and metrics, from inside the job: `with region("forward"):` and `log(step=3, loss=0.7)`.

Without a tracker they cost next to nothing.
"""

from __future__ import annotations

import functools
from time import monotonic_ns

from ..core.notices import warn_once
from ..instrument import outbox
from ..instrument.stack import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType
    from typing import Any, ParamSpec, TypeVar

    from typing_extensions import Self

    _Parameters = ParamSpec("_Parameters")
    _Result = TypeVar("_Result")

# From inspect, which is large to import.
_COROUTINE, _GENERATOR = 0x80, 0x20
_STEP = "step"  # no value can be called so: it is a parameter of its own


class region:  # noqa: N801 - a word of the public surface, used like a keyword
    """A named part of the job: a `with` block, or every call of a decorated function.

    The recording and the report show its calls, time, CPU, memory and GPU use. Regions may be nested, recursive, in
    threads, in coroutines and in worker processes. Without a tracker they do nothing.

    With `exact_peak` the memory peak is that of the calls themselves, however large the process was before. For that the
    kernel's high-water mark is reset at every call (Linux), so `getrusage` reports the peak since then.
    """

    __slots__ = ("exact_peak", "name")

    def __init__(self, name: str, *, exact_peak: bool = False) -> None:
        if callable(name):
            raise TypeError('A region needs a name: @gput.region("name").')
        self.name = str(name)
        self.exact_peak = exact_peak

    def __enter__(self) -> Self:
        if monotonic_ns() > outbox.search_due_ns:
            outbox.search()
        if outbox.mailboxes is not None:
            stack = outbox.stack or outbox.open_stack()
            if stack is not None:
                stack.enter(self)
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        frame = current.get()
        # A generator that was left in the middle may have put another one on top.
        while frame is not None and (frame.owner is not self or not frame.is_open):
            frame = frame.outer
        if frame is not None and frame.stack is outbox.stack and not frame.stack.is_closed:
            frame.stack.leave(frame)

    def __call__(self, function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        """Make each call of the function a call of the region."""
        name, exact_peak = self.name, self.exact_peak
        if _has_flag(function, _COROUTINE):

            @functools.wraps(function)
            async def call_coroutine(*arguments: Any, **options: Any) -> Any:
                with region(name, exact_peak=exact_peak):
                    return await function(*arguments, **options)  # type: ignore[misc]

            return call_coroutine  # type: ignore[return-value]

        if _has_flag(function, _GENERATOR):

            @functools.wraps(function)
            def call_generator(*arguments: Any, **options: Any) -> Any:
                return _call_steps(region(name, exact_peak=exact_peak), function(*arguments, **options))  # type: ignore[arg-type]

            return call_generator

        @functools.wraps(function)
        def call(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
            with region(name, exact_peak=exact_peak):
                return function(*arguments, **options)

        return call


def log(*, step: float | None = None, **values: float) -> None:
    """Record the job's own numbers (loss, accuracy...) on the same time axis as its resource use."""
    if monotonic_ns() > outbox.search_due_ns:
        outbox.search()
    if outbox.mailboxes is None:
        return
    numbers = _to_numbers(values if step is None else {**values, _STEP: step})
    metrics = outbox.open_metrics()
    if metrics is not None:
        metrics.add(numbers.pop(_STEP, None), numbers)


def _to_numbers(values: dict[str, float]) -> dict[str, float]:
    """The values that are numbers. Others are ignored with a warning: being tracked must not end a training."""
    numbers = {}
    for name, value in values.items():
        try:
            numbers[name] = float(value)
        except Exception:  # noqa: BLE001 - what a tensor or a wrapper raises is its own affair
            warn_once(f"gput.log: {name} is ignored: {type(value).__name__} is not a number.")
    return numbers


def _has_flag(function: object, flag: int) -> bool:
    return bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & flag)


def _call_steps(owner: region, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Run a generator with each step a call of the region; the time between steps is not the region's."""
    step, given = generator.send, None
    while True:
        with owner:
            try:
                made = step(given)
            except StopIteration as end:
                return end.value
        try:
            step, given = generator.send, (yield made)
        except GeneratorExit:
            generator.close()
            raise
        except BaseException as error:  # noqa: BLE001 - thrown into us, so it is thrown into it
            step, given = generator.throw, error
