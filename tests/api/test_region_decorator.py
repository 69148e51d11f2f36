"""What a region makes of the functions that it decorates: the same functions, or a clear refusal."""

from __future__ import annotations

import asyncio
import functools
import gc
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from typing import Any

import pytest

from gpu_tracker import region


class Unspeakable:
    """Without a text."""

    def __str__(self) -> str:
        raise ValueError


class Unhashable(str):
    """A text that cannot be looked up."""

    __slots__ = ()

    def __hash__(self) -> int:
        raise ValueError

    def __str__(self) -> str:
        raise ValueError


class Tensor:
    """Large."""


@pytest.fixture
def _uncollected() -> Iterator[None]:
    """Without garbage collection, what is in a cycle stays."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_methods_may_be_decorated_in_either_order() -> None:
    """Above classmethod and staticmethod a region is what it is below."""

    class Model:
        @region("make")
        @classmethod
        def make(cls) -> type[Model]:
            return cls

        @region("double")
        @staticmethod
        def double(number: int) -> int:
            return 2 * number

    assert Model.make() is Model().make() is Model
    assert Model.double(4) == Model().double(4) == 8


@pytest.mark.parametrize(("decorated", "reason"), [
    (Tensor, "A region cannot decorate the class Tensor: decorate its methods."),
    (property(id), "A region decorates functions, not a property: put @gput.region(...) below @property."),
    (
        functools.cached_property(id),
        "A region decorates functions, not a cached_property: put @gput.region(...) below @cached_property.",
    ),
])  # fmt: skip
def test_what_is_no_function_is_refused_where_it_is_decorated(decorated: Any, reason: str) -> None:
    """Not when it is first called."""
    with pytest.raises(TypeError) as refusal:
        region("name")(decorated)
    assert str(refusal.value) == reason


def test_a_name_is_a_string_from_the_beginning() -> None:
    """Nothing of the program is called when a region is entered."""
    assert type(region(Unhashable("name")).name) is str
    assert region(Unhashable("name")).name == "name"


@pytest.mark.parametrize(
    ("name", "known"),
    [(Unspeakable(), "Unspeakable"), (Unspeakable, "Unspeakable"), (len, str(len)), (7, "7")],
)
def test_whatever_names_a_region_it_has_a_name(name: Any, known: str) -> None:
    """It is not refused in the middle of a program, also if it cannot be made a string."""
    assert region(name).name == known


def test_a_decorator_without_a_name_says_so() -> None:
    """Else it would take the function for the name."""
    with pytest.raises(TypeError, match=r"^A region needs a name: "):
        region(len_of_all)  # type: ignore[arg-type]


def len_of_all(*values: Any) -> int:
    """A function that somebody decorates."""
    return sum(map(len, values))


def test_a_generator_that_is_closed_returns_what_it_would_without_a_region() -> None:
    """A value from Python 3.13 on; one that goes on instead is refused, one that does not listen ends."""

    def returns() -> Generator[int, None, int]:
        try:
            yield 1
        except GeneratorExit:
            return 42
        return 0

    def goes_on() -> Generator[int, None, None]:
        try:
            yield 1
        except GeneratorExit:
            yield 2

    def ends() -> Generator[int, None, None]:
        yield 1

    closed: list[Any] = []
    for function in (returns, region("part")(returns), ends, region("part")(ends)):
        generator = function()
        assert next(generator) == 1
        closed.append(generator.close())
    stubborn = region("part")(goes_on)()
    next(stubborn)

    assert closed[0] == closed[1]
    assert closed[2:] == [None, None]
    with pytest.raises(RuntimeError, match="generator ignored GeneratorExit"):
        stubborn.close()


def test_an_abandoned_async_generator_is_closed_once() -> None:
    """By the event loop when that ends, which knows of one generator only."""
    errors: list[dict[str, Any]] = []
    closed: list[str] = []

    @region("stream")
    async def stream() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            closed.append("stream")

    async def abandon() -> AsyncGenerator[int, None]:
        asyncio.get_running_loop().set_exception_handler(lambda _, error: errors.append(error))
        streaming = stream()
        assert await streaming.asend(None) == 1
        return streaming

    asyncio.run(abandon())
    assert (closed, errors) == (["stream"], [])


async def cancel(tensor: Tensor) -> None:
    """Be cancelled in the middle of a coroutine."""

    @region("work")
    async def work(_: Tensor) -> None:
        await asyncio.sleep(1000)

    task = asyncio.create_task(work(tensor))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def throw(tensor: Tensor) -> None:
    """Throw into a generator."""

    @region("work")
    def work(_: Tensor) -> Generator[int, None, None]:
        yield 1

    working = work(tensor)
    next(working)
    with pytest.raises(KeyError):
        working.throw(KeyError("x"))


async def throw_asynchronously(tensor: Tensor) -> None:
    """Throw into an async generator."""

    @region("work")
    async def work(_: Tensor) -> AsyncGenerator[int, None]:
        yield 1

    working = work(tensor)
    await working.asend(None)
    with pytest.raises(KeyError):
        await working.athrow(KeyError("x"))


@pytest.mark.usefixtures("_uncollected")
@pytest.mark.parametrize("interrupt", [cancel, throw, throw_asynchronously])
def test_arguments_are_free_as_soon_as_a_call_has_ended(interrupt: Callable[[Tensor], Any]) -> None:
    """A tensor must not wait for the garbage collector."""
    tensor = Tensor()
    is_there = weakref.ref(tensor)
    asyncio.run(interrupt(tensor))
    del tensor
    assert is_there() is None
