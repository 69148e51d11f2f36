"""The decorator `track`, and functions that can be suspended."""

from __future__ import annotations

import asyncio
import functools
import inspect
import types
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest

import gpu_tracker as gput
from gpu_tracker.core.errors import KindError

STOPPED = gput.Tracker.State.STOPPED


class Story:
    """What happened in which order, and the trackers."""

    def __init__(self) -> None:
        self.events: list[object] = []
        self.trackers: list[gput.Tracker] = []
        self.track = gput.track(disable_logs=True, gpu="none", then=self.finish)

    def finish(self, tracker: gput.Tracker) -> None:
        """A call has ended."""
        self.events.append("finished")
        self.trackers.append(tracker)

    @property
    def endings(self) -> list[str]:
        """How each call ended."""
        return [tracker.report.ending for tracker in self.trackers if tracker.report is not None]


@pytest.fixture
def story() -> Story:
    """A new one."""
    return Story()


def test_a_coroutine_is_tracked_until_it_returns(story: Story) -> None:
    """Not only while it is made."""

    @story.track
    async def job(number: int) -> int:
        await asyncio.sleep(0)
        story.events.append("end")
        return number

    assert inspect.iscoroutinefunction(job)
    assert asyncio.run(job(7)) == 7
    assert story.events == ["end", "finished"]


def test_calls_of_a_coroutine_may_overlap(story: Story) -> None:
    """Each has its own tracker, and they end in any order."""

    @story.track
    async def job(mine: asyncio.Event, other: asyncio.Event) -> None:
        other.set()
        await mine.wait()

    async def main() -> None:
        events = asyncio.Event(), asyncio.Event(), asyncio.Event()
        await asyncio.gather(job(events[0], events[1]), job(events[1], events[2]), job(events[2], events[0]))

    asyncio.run(main())

    assert [tracker.state for tracker in story.trackers] == [STOPPED] * 3


def test_a_cancelled_coroutine_has_raised(story: Story) -> None:
    """As any other function that raises."""
    begun = asyncio.Event()

    @story.track
    async def job() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.create_task(job())
        await begun.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())

    assert story.endings == ["raised"]


def test_a_generator_is_tracked_until_it_is_exhausted(story: Story) -> None:
    """What is sent, thrown and returned passes."""

    @story.track
    def count() -> Generator[object, object, str]:
        story.events.append((yield 1))
        try:
            yield 2
        except KeyError:
            story.events.append("caught")
        return "returned"

    def consume() -> Generator[object, object, None]:
        story.events.append((yield from count()))

    steps = consume()
    assert inspect.isgeneratorfunction(count)
    assert (next(steps), steps.send("sent")) == (1, 2)
    with pytest.raises(StopIteration):
        steps.throw(KeyError())
    assert story.events == ["sent", "caught", "finished", "returned"]


def test_closing_a_generator_is_no_failure(story: Story) -> None:
    """Its consumer needed no more; what it raises by itself is one."""

    @story.track
    def count() -> Generator[int, None, None]:
        yield 1
        raise KeyError

    steps = count()
    next(steps)
    steps.close()
    with pytest.raises(KeyError):
        list(count())

    assert story.endings == ["stopped", "raised"]


def test_a_generator_that_can_be_awaited_stays_one(story: Story) -> None:
    """`types.coroutine` has made it."""

    @story.track
    @types.coroutine
    def pause() -> Generator[None, None, int]:
        yield
        return 7

    async def main() -> int:
        return await pause()

    assert asyncio.run(main()) == 7
    assert story.events == ["finished"]


def test_an_async_generator_is_tracked_until_its_end(story: Story) -> None:
    """What is sent and thrown passes; closing it is no failure."""

    @story.track
    async def count() -> AsyncGenerator[int, object]:
        story.events.append((yield 1))
        try:
            yield 2
        except KeyError:
            yield 3

    async def main() -> None:
        steps = count()
        story.events += [await steps.asend(None), await steps.asend("sent"), await steps.athrow(KeyError())]
        with pytest.raises(StopAsyncIteration):
            await steps.asend(None)
        closed = count()
        await closed.asend(None)
        await closed.aclose()

    assert inspect.isasyncgenfunction(count)
    asyncio.run(main())
    assert story.events == ["sent", 1, 2, 3, "finished", "finished"]
    assert story.endings == ["stopped", "stopped"]


async def double(number: int) -> int:
    """Twice as much."""
    await asyncio.sleep(0)
    return 2 * number


class Doubling:
    """An object that is called like a function."""

    async def __call__(self, number: int) -> int:
        """Twice as much."""
        return await double(number)


@pytest.mark.parametrize("function", [functools.partial(functools.partial(double)), Doubling()])
@pytest.mark.parametrize("kind", ["track", "region"])
def test_what_stands_for_a_coroutine_is_one(story: Story, kind: str, function: Any) -> None:
    """A partial, or an object with `__call__`."""
    decorated = (story.track if kind == "track" else gput.region("double"))(function)

    assert inspect.iscoroutinefunction(decorated)
    assert asyncio.run(decorated(2)) == 4


def test_a_static_method_may_be_decorated_in_either_order(story: Story) -> None:
    """It is called through its class or an object."""

    class Doubler:
        above: Any = story.track(staticmethod(lambda number: 2 * number))
        below: Any = staticmethod(story.track(lambda number: 2 * number))

    assert [Doubler.above(2), Doubler().above(2), Doubler.below(2), Doubler().below(2)] == [4] * 4


def test_only_what_can_be_called_is_tracked(story: Story) -> None:
    """It is refused where it is decorated, with options too."""
    with pytest.raises(KindError, match="is invalid"):
        story.track(classmethod(double))  # type: ignore[arg-type]
