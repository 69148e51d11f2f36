"""Frames that a traceback keeps, and what is in them."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import AsyncIterator, Awaitable, Generator, Iterator
from typing import Any

import pytest

from gpu_tracker.instrument.tracebacks import clear_frames, list_last_errors


class Thing:
    """Something whose end can be seen."""


def fail(seen: list[Any]) -> None:
    """With a local variable that nobody needs afterwards."""
    thing = Thing()
    seen.append(weakref.ref(thing))
    raise ValueError("no")


def catch(seen: list[Any]) -> BaseException:
    """The error, with its traceback."""
    try:
        fail(seen)
    except ValueError as error:
        return error
    raise AssertionError


def test_variables_of_ended_frames_are_forgotten() -> None:
    """The frame that runs stays, and so does the traceback."""
    seen: list[Any] = []
    error = catch(seen)
    kept = Thing()

    assert seen[0]() is not None
    assert clear_frames([error]) == 2
    assert seen[0]() is None
    assert error.__traceback__ is not None
    assert kept is not None


def test_what_is_no_traceback_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may set what the interpreter keeps for a debugger."""
    monkeypatch.setattr(sys, "last_traceback", "none", raising=False)

    assert clear_frames([]) == 0


def test_a_copy_of_the_variables_is_forgotten_too() -> None:
    """Whoever formats a traceback with its values, as IPython does, leaves one in each frame."""
    seen: list[Any] = []
    error = catch(seen)
    assert error.__traceback__ is not None
    assert error.__traceback__.tb_next is not None
    assert "thing" in error.__traceback__.tb_next.tb_frame.f_locals
    clear_frames([error])

    assert seen[0]() is None


def test_errors_behind_an_error_are_cleared_too() -> None:
    """Causes, contexts, members of groups; a circle is no problem."""
    seen: list[Any] = []
    cause, context, member = (catch(seen) for _ in range(3))
    error = RuntimeError()
    error.__cause__, error.__context__ = cause, context
    context.__context__ = error
    error.exceptions = (member, "no error")  # type: ignore[attr-defined]
    clear_frames([error])

    assert [one() for one in seen] == [None] * 3


def test_the_errors_that_the_interpreter_keeps_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a traceback without its error."""
    seen: list[Any] = []
    error = catch(seen)
    for name in ("last_exc", "last_value", "last_traceback"):
        monkeypatch.delattr(sys, name, raising=False)
    assert list_last_errors() == []
    monkeypatch.setattr(sys, "last_value", error, raising=False)
    monkeypatch.setattr(sys, "last_traceback", error.__traceback__, raising=False)

    assert list_last_errors() == [error]
    assert clear_frames([]) == 2
    assert seen[0]() is None


class Pause:
    """Something to await."""

    def __await__(self) -> Generator[None, None, None]:
        """Once."""
        yield


def go_on_after_an_error(caught: list[BaseException]) -> Iterator[str]:
    """A generator that has caught an error, and waits."""
    thing = "kept"
    try:
        fail([])
    except ValueError as error:
        caught.append(error)
    yield thing
    yield thing


async def await_after_an_error(caught: list[BaseException]) -> str:
    """A coroutine that does the same."""
    thing = "kept"
    try:
        fail([])
    except ValueError as error:
        caught.append(error)
    await Pause()
    return thing


async def stream_after_an_error(caught: list[BaseException]) -> AsyncIterator[str]:
    """So does an asynchronous generator."""
    thing = await await_after_an_error(caught)
    yield thing


def test_generators_and_coroutines_that_wait_go_on() -> None:
    """Clearing their frames would end them, and take a queue's worker out of a server."""
    caught: list[BaseException] = []
    generator = go_on_after_an_error(caught)
    next(generator)
    coroutine = await_after_an_error(caught)
    coroutine.send(None)
    stream = stream_after_an_error(caught)
    asking = stream.__anext__()
    asking.send(None)  # type: ignore[attr-defined] # what a loop does
    clear_frames(caught)

    assert next(generator) == "kept"
    for waiting in (coroutine, asking):
        with pytest.raises(StopIteration, match="kept"):
            waiting.send(None)  # type: ignore[attr-defined]


async def fail_later(seen: list[Any]) -> None:
    """With a variable, in two frames that are suspended for a while."""
    thing = Thing()
    seen.append(weakref.ref(thing))
    await pass_on(seen)


async def pass_on(seen: list[Any]) -> None:
    """The inner one."""
    await Pause()
    fail(seen)


def catch_later(awaited: Awaitable[None]) -> BaseException:
    """The error of a coroutine that has ended."""
    steps = awaited.__await__()
    next(steps)
    try:
        next(steps)
    except ValueError as error:
        return error
    raise AssertionError


def test_variables_of_ended_coroutines_are_forgotten() -> None:
    """As those of functions; not if nobody can tell whether they have ended."""
    seen: list[Any] = []
    error = catch_later(fail_later(seen))
    gc.freeze()
    try:
        clear_frames([error])
        assert seen[0]() is not None
    finally:
        gc.unfreeze()
    clear_frames([error])

    assert [one() for one in seen] == [None, None]
