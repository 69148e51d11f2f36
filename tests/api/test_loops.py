"""`watch` and `step` without any framework: the regions of a loop, and a loop that goes as without us."""

from __future__ import annotations

import asyncio
import copy
import gc
import itertools
import logging
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import gpu_tracker as gput


class Tracked:
    """What a tracked function has left in its recording."""

    def __init__(self, recording: gput.Recording) -> None:
        self.regions = {"/".join(region.path): region for region in recording.regions}
        self.calls = {path: region.calls for path, region in self.regions.items()}
        self.open = [path for path, region in self.regions.items() if region.open_calls]
        self.rows = [(row.step, row.values) for row in recording.metric_rows]


@pytest.fixture(autouse=True)
def _collect_garbage() -> Iterator[None]:
    """Regions inside each other know each other; with them, what they have mapped is closed."""
    yield
    gc.collect()


@pytest.fixture
def track(tmp_path: Path) -> Callable[..., Tracked]:
    """Runs a function inside a tracker."""
    numbers = itertools.count()

    def run(act: Callable[[], object]) -> Tracked:
        path = tmp_path / f"{next(numbers)}.jsonl"
        with gput.Tracker(disable_logs=True, record=path):
            act()
        return Tracked(gput.load(path))

    return run


class Stream:
    """A loader without a length, which can be asked for its batches again: like one over an iterable data set."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.n_begun = 0

    def __iter__(self) -> Iterator[int]:
        self.n_begun += 1
        yield from range(self.n)


def loop_over(loader: Any, **options: Any) -> list[Any]:
    """All batches of one time through."""
    return list(gput.watch(loader, **options))


def test_each_time_through_is_an_epoch(track: Callable[..., Tracked]) -> None:
    """With a step for each batch, and a wait for each and for the end."""
    watched = gput.watch([7, 8, 9])

    tracked = track(lambda: [list(watched) for _ in range(4)])

    assert tracked.calls == {"epoch": 4, "epoch/data_wait": 16, "epoch/step": 12}
    assert tracked.open == []


def test_the_parts_of_an_epoch_are_side_by_side(track: Callable[..., Tracked]) -> None:
    """Their times add up to no more than its own, and a region of the user is inside the step."""

    def train() -> None:
        for _ in gput.watch(range(50)):
            with gput.region("forward"):
                sum(range(2000))

    tracked = track(train)
    epoch, wait, step, forward = (
        tracked.regions[path] for path in ("epoch", "epoch/data_wait", "epoch/step", "epoch/step/forward")
    )

    assert forward.calls == 50
    assert forward.wall_seconds <= step.wall_seconds
    assert wait.wall_seconds + step.wall_seconds <= epoch.wall_seconds
    assert (
        epoch.own_wall_seconds or 0.0
    ) <= epoch.wall_seconds - wait.wall_seconds - step.wall_seconds + 1e-6


def test_the_time_in_the_loader_is_a_wait(track: Callable[..., Tracked]) -> None:
    """What a generator does between its batches, against its own stopwatch."""
    seconds = []

    def load() -> Iterator[int]:
        for number in range(5):
            began = time.monotonic()
            time.sleep(0.02)
            seconds.append(time.monotonic() - began)
            yield number

    tracked = track(lambda: loop_over(load()))

    assert sum(seconds) <= tracked.regions["epoch/data_wait"].wall_seconds
    assert tracked.regions["epoch/step"].wall_seconds < sum(seconds)


class Slow:
    """A loader that takes its time to begin, as one with many workers does, perhaps in a region of its own."""

    def __init__(self, name: str | None) -> None:
        self.name = name

    def __iter__(self) -> Iterator[int]:
        if self.name is None:
            time.sleep(0.05)
        else:
            with gput.region(self.name):
                time.sleep(0.05)
        return iter(range(3))


@pytest.mark.parametrize("around", [False, True])
def test_the_begin_of_a_loader_is_waited_for(track: Callable[..., Tracked], around: bool) -> None:
    """By a loop over it. No time is counted twice."""

    def train() -> None:
        with gput.region("around") if around else nullcontext():
            time.sleep(0.02)
            loop_over(Slow(None))

    tracked = track(train)
    path = "around/epoch" if around else "epoch"
    epoch, wait = tracked.regions[path], tracked.regions[f"{path}/data_wait"]

    assert 0.05 <= wait.wall_seconds <= epoch.wall_seconds
    assert epoch.own_wall_seconds is not None
    assert 0 <= epoch.own_wall_seconds <= epoch.wall_seconds - wait.wall_seconds + 1e-6
    if around:
        outside = tracked.regions["around"]
        assert outside.own_wall_seconds == pytest.approx(outside.wall_seconds - epoch.wall_seconds, abs=1e-6)


def test_a_loader_that_begins_in_a_region_of_its_own_is_counted_there(track: Callable[..., Tracked]) -> None:
    """And nowhere else."""

    def train() -> None:
        with gput.region("around"):
            loop_over(Slow("open files"))

    tracked = track(train)

    assert tracked.regions["around/open files"].wall_seconds >= 0.05
    assert tracked.regions["around"].own_wall_seconds == pytest.approx(
        tracked.regions["around"].wall_seconds
        - tracked.regions["around/open files"].wall_seconds
        - tracked.regions["around/epoch"].wall_seconds,
        abs=1e-6,
    )


def test_batches_and_errors_are_those_of_the_loader(track: Callable[..., Tracked]) -> None:
    """Its exception reaches the program as it is, and the epoch has ended."""
    error = KeyError("broken file")

    def load() -> Iterator[int]:
        yield 1
        raise error

    def train() -> None:
        with pytest.raises(KeyError) as caught:
            loop_over(load())
        assert caught.value is error
        with gput.region("after"):
            pass

    tracked = track(train)

    assert tracked.calls == {"epoch": 1, "epoch/data_wait": 2, "epoch/step": 1, "after": 1}
    assert tracked.open == []


def test_a_loader_that_cannot_begin_leaves_nothing_open(track: Callable[..., Tracked]) -> None:
    """Not everything can be iterated over."""

    def train() -> None:
        with pytest.raises(TypeError, match="'int' object is not iterable"):
            loop_over(5)
        with gput.region("after"):
            pass

    tracked = track(train)

    assert tracked.calls["after"] == 1
    assert tracked.open == []


@pytest.mark.parametrize("end", ["break", "raise"])
def test_a_loop_that_is_left_has_ended(track: Callable[..., Tracked], end: str) -> None:
    """At once: what follows is in no epoch."""

    def train() -> None:
        for number in gput.watch(itertools.count()):
            if number == 2:
                if end == "break":
                    break
                raise InterruptedError

    def train_twice() -> None:
        for _ in range(2):
            try:
                train()
            except InterruptedError:
                pass
            with gput.region("after"):
                pass

    tracked = track(train_twice)

    assert tracked.calls == {"epoch": 2, "epoch/data_wait": 6, "epoch/step": 6, "after": 2}
    assert tracked.open == []


@pytest.mark.parametrize("is_step_ended", [True, False])
def test_loops_inside_each_other(track: Callable[..., Tracked], is_step_ended: bool) -> None:
    """An evaluation in the middle of a training has its own name, and is not part of the step."""

    def train() -> None:
        for number in gput.watch(range(4)):
            if is_step_ended:
                gput.step(loss=number)
            if number % 2:
                loop_over(range(3), name="evaluation")

    tracked = track(train)

    assert tracked.calls == {
        "epoch": 1,
        "epoch/data_wait": 5,
        "epoch/step": 4,
        "epoch/evaluation": 2,
        "epoch/evaluation/data_wait": 8,
        "epoch/evaluation/step": 6,
    }


class Stopwatch:
    """A loader that takes its time, and knows how long that was."""

    def __init__(self, n: int, seconds: float) -> None:
        self.n, self.seconds, self.spent_seconds = n, seconds, 0.0

    def __iter__(self) -> Iterator[int]:
        for number in range(self.n):
            began = time.monotonic()
            time.sleep(self.seconds)
            self.spent_seconds += time.monotonic() - began
            yield number


def sum_of(tracked: Tracked, name: str) -> tuple[int, float]:
    """Calls and time of all regions with this name that are not inside another one of it."""
    found = [region for path, region in tracked.regions.items() if path.split("/")[-1] == name]
    return sum(region.calls for region in found), sum(region.wall_seconds for region in found)


def zip_two(first: Stopwatch, second: Stopwatch) -> None:
    """Two loaders in one loop."""
    for _ in zip(gput.watch(first), gput.watch(second, name="second"), strict=False):
        time.sleep(0.01)


def ask_a_second(first: Stopwatch, second: Stopwatch) -> None:
    """As in training with unlabelled data."""
    others = iter(gput.watch(second, name="second"))
    for _ in gput.watch(first):
        next(others)
        time.sleep(0.01)


def ask_both(first: Stopwatch, second: Stopwatch) -> None:
    """Without a `for`."""
    ones, others = iter(gput.watch(first)), iter(gput.watch(second, name="second"))
    for _ in range(first.n):
        next(ones)
        next(others)
        time.sleep(0.01)


@pytest.mark.parametrize("train", [zip_two, ask_a_second, ask_both])
@pytest.mark.parametrize("slow", [0, 1])
def test_two_loaders_in_one_round(
    track: Callable[..., Tracked], train: Callable[[Stopwatch, Stopwatch], None], slow: int
) -> None:
    """A round is one step; both are waited for, and no step is inside a wait."""
    loaders = [Stopwatch(5, 0.03 if number == slow else 0.0) for number in range(2)]

    tracked = track(lambda: train(*loaders))
    n_steps, _ = sum_of(tracked, "step")
    _, wait_seconds = sum_of(tracked, "data_wait")

    assert n_steps == 5
    assert sum(loader.spent_seconds for loader in loaders) <= wait_seconds
    assert wait_seconds <= tracked.regions["epoch"].wall_seconds - 5 * 0.01
    assert tracked.calls["epoch"] == 1
    assert not [path for path in tracked.calls if "data_wait/" in path]
    assert tracked.open == []


def test_nothing_is_waited_for_before_a_batch_is_wanted(track: Callable[..., Tracked]) -> None:
    """A loader that is made before the loop, in which it is asked, has neither an epoch nor a wait until then."""
    asked: list[float] = []

    def train() -> None:
        others = iter(gput.watch(range(10), name="second"))
        made = time.monotonic()
        time.sleep(0.05)
        asked.append(time.monotonic() - made)
        for _ in gput.watch(range(4)):
            next(others)

    began = time.monotonic()
    tracked = track(train)
    whole_seconds = time.monotonic() - began

    # A wait that begins a moment after its step, as on a busy machine, is in the step.
    in_steps = tracked.calls.pop("epoch/step/data_wait", 0)
    assert tracked.calls == {"epoch": 1, "epoch/data_wait": 5 + 4 - in_steps, "epoch/step": 4}
    assert tracked.regions["epoch"].wall_seconds <= whole_seconds - asked[0]


def take_through_a_generator(loader: Any) -> Iterator[int]:
    """One that asks for its batches."""
    return (number for number in gput.watch(loader, name="inner"))


def take_through_map(loader: Any) -> Iterator[int]:
    """Another way."""
    return map(int, gput.watch(loader, name="inner"))


@pytest.mark.parametrize("take", [take_through_a_generator, take_through_map])
def test_a_loader_made_before_the_one_that_takes_from_it_is_part_of_it(
    track: Callable[..., Tracked], take: Callable[[Any], Iterator[int]]
) -> None:
    """It was asked to begin first, but nothing was wanted from it."""
    tracked = track(lambda: loop_over(take(range(4))))

    assert tracked.calls == {"epoch": 1, "epoch/data_wait": 5, "epoch/step": 4}


def test_loops_of_several_coroutines_do_not_meet(track: Callable[..., Tracked]) -> None:
    """They take turns in one thread; a loop in the task that creates them goes on around them."""

    async def train() -> None:
        for number in gput.watch(range(20)):
            await asyncio.sleep(0)
            gput.step(loss=number)

    async def train_three() -> None:
        await asyncio.gather(*(train() for _ in range(3)))

    async def train_in_rounds() -> None:
        for _ in gput.watch(range(2), name="rounds"):
            await train_three()

    tracked = track(lambda: asyncio.run(train_three()))
    inside = track(lambda: asyncio.run(train_in_rounds()))

    assert tracked.calls == {"epoch": 3, "epoch/data_wait": 63, "epoch/step": 60}
    assert tracked.open == []
    assert len(tracked.rows) == 60
    assert inside.calls["rounds"] == 1
    assert inside.calls["rounds/step"] == 2 + 2 * 60  # a step inside a step is one of the same region
    assert sum_of(inside, "epoch")[0] == 6


def test_a_loader_that_is_asked_late_in_a_step_is_waited_for_inside_it(track: Callable[..., Tracked]) -> None:
    """The work before it stays a step, and it is still one."""
    loader = Stopwatch(6, 0.01)

    def train() -> None:
        others = iter(gput.watch(loader))
        for _ in gput.watch(range(3)):
            time.sleep(0.02)
            next(others)
            next(others)

    tracked = track(train)
    waits = tracked.regions["epoch/step/data_wait"]

    assert tracked.calls["epoch/step"] == 3
    assert waits.calls == 6
    assert loader.spent_seconds <= waits.wall_seconds
    assert tracked.regions["epoch/step"].wall_seconds >= 3 * 0.02 + loader.spent_seconds


def test_a_second_loader_after_the_step_is_waited_for_beside_it(track: Callable[..., Tracked]) -> None:
    """`step()` has ended it, and it does not begin again."""

    def train() -> None:
        others = iter(gput.watch(range(10), name="second"))
        for _ in gput.watch(range(3)):
            gput.step()
            next(others)
            with gput.region("rest"):
                pass

    tracked = track(train)

    assert (tracked.calls["epoch/step"], tracked.calls["epoch/rest"]) == (3, 3)
    assert tracked.calls["epoch/data_wait"] == 4 + 3


def test_a_second_loader_that_ends_first_ends_the_loop(track: Callable[..., Tracked]) -> None:
    """The round in which it has no batch is not a step."""
    tracked = track(lambda: list(zip(gput.watch(range(9)), gput.watch(range(4)), strict=False)))

    assert sum_of(tracked, "step")[0] == 4
    assert tracked.open == []


def test_a_second_loader_may_begin_again(track: Callable[..., Tracked]) -> None:
    """In the middle of the loop over the first, which goes on as before."""

    def train() -> None:
        others = iter(gput.watch(range(4), name="second"))
        for _ in range(2):
            for _ in gput.watch(range(6)):
                try:
                    next(others)
                except StopIteration:
                    others = iter(gput.watch(range(4), name="second"))
                    next(others)

    tracked = track(train)

    assert tracked.calls["epoch"] == 2
    assert 12 <= sum_of(tracked, "step")[0] <= 12 + 2  # what follows its begin is a step of its own
    assert tracked.open == []


def test_a_loader_that_takes_from_another_one_is_one_loader(track: Callable[..., Tracked]) -> None:
    """The inner one is part of its wait, also when both are the same kind of loop."""
    loader = Stopwatch(4, 0.01)

    def stages() -> Iterator[int]:
        for number in gput.watch(loader, name="raw"):
            time.sleep(0.01)
            yield number

    tracked = track(lambda: [loop_over(gput.watch(stages())) for _ in range(1)])

    assert tracked.calls == {"epoch": 1, "epoch/data_wait": 5, "epoch/step": 4}
    assert tracked.regions["epoch/data_wait"].wall_seconds >= loader.spent_seconds + 4 * 0.01


def test_loaders_one_after_the_other(track: Callable[..., Tracked]) -> None:
    """A chain has an epoch for each; what `cycle` repeats from memory is not waited for."""
    tracked = track(lambda: list(itertools.chain(gput.watch(range(3)), gput.watch(range(4), name="second"))))
    repeated = track(lambda: list(itertools.islice(itertools.cycle(gput.watch(range(3))), 10)))

    assert tracked.calls == {
        "epoch": 1,
        "epoch/data_wait": 4,
        "epoch/step": 3,
        "second": 1,
        "second/data_wait": 5,
        "second/step": 4,
    }
    assert repeated.calls == {"epoch": 1, "epoch/data_wait": 4, "epoch/step": 3}


def test_an_inner_loop_that_was_left_but_not_dropped_is_over(track: Callable[..., Tracked]) -> None:
    """Its iterator may have a name; the steps that follow are those of the outer loop."""

    def train() -> None:
        for number in gput.watch(range(5)):
            if number == 1:
                kept = iter(gput.watch(range(9), name="evaluation"))
                next(kept)
        del kept

    tracked = track(train)

    assert tracked.calls["epoch/step"] == 5
    assert tracked.calls["epoch/evaluation/step"] == 1


def test_a_loader_may_be_asked_in_another_thread(track: Callable[..., Tracked]) -> None:
    """As one that fetches ahead does: the loop of the main thread has its own rounds."""

    def train() -> None:
        ahead = iter(gput.watch(range(5), name="ahead"))
        thread = threading.Thread(target=list, args=(ahead,))
        thread.start()
        thread.join()
        loop_over(range(3))

    tracked = track(train)

    assert sum_of(tracked, "step")[0] == 5 + 3
    assert tracked.calls["epoch"] == 1
    assert tracked.open == []


def test_a_process_that_a_loader_forks_has_loops_of_its_own(track: Callable[..., Tracked]) -> None:
    """It does not wait for the batch that is being made."""

    def load() -> Iterator[int]:
        child = os.fork()
        if not child:
            loop_over(range(2), name="work")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        yield 1

    tracked = track(lambda: loop_over(load()))

    assert tracked.calls["epoch/data_wait/work/step"] == 2


def test_each_tracker_counts_its_own_steps(track: Callable[..., Tracked]) -> None:
    """From 1 on; one around it goes on where it was."""
    inner: list[Tracked] = []

    def train() -> None:
        gput.step(loss=1.0)

    def train_around() -> None:
        train()
        inner.append(track(train))
        train()

    outer = track(train_around)

    assert [row[0] for row in outer.rows] == [1, 2]
    assert [row[0] for row in inner[0].rows] == [1]
    assert [row[0] for row in track(train).rows] == [1]


@pytest.mark.parametrize("number", ["8", b"8", [8], object()])
def test_a_step_without_a_usable_number_is_counted(
    track: Callable[..., Tracked], caplog: pytest.LogCaptureFixture, number: Any
) -> None:
    """It is said once, and nothing is raised, then or later."""

    def train() -> None:
        gput.step(4, q=1)
        for _ in range(2):
            gput.step(number, q=1)
        gput.step(q=1)

    with caplog.at_level(logging.WARNING, "gpu_tracker"):
        tracked = track(train)

    assert [row[0] for row in tracked.rows] == [4, 5, 6, 7]
    assert caplog.text.count(f"its number is ignored: {type(number).__name__} is not a number") == 1


def test_a_step_named_like_a_value_is_ignored(
    track: Callable[..., Tracked], caplog: pytest.LogCaptureFixture
) -> None:
    """Its number comes first; the other values are logged."""
    with caplog.at_level(logging.WARNING, "gpu_tracker"):
        tracked = track(lambda: gput.step(step=5, loss=1.0))

    assert tracked.rows == [(1, {"loss": 1.0})]
    assert "step=... is ignored" in caplog.text


def test_a_step_ends_where_the_program_says(track: Callable[..., Tracked]) -> None:
    """What follows in the same round is beside it; the numbers go on through all epochs."""

    def train() -> None:
        for _ in range(2):
            for number in gput.watch([0.5, 0.25]):
                gput.step(loss=number)
                with gput.region("checkpoint"):
                    pass

    tracked = track(train)

    assert tracked.calls["epoch/step"] == tracked.calls["epoch/checkpoint"] == 4
    assert tracked.rows == [
        (number, {"loss": loss}) for number, loss in enumerate([0.5, 0.25, 0.5, 0.25], start=1)
    ]


def test_steps_are_counted_from_a_number_that_is_given(track: Callable[..., Tracked]) -> None:
    """As after a checkpoint; outside of a loop they are only counted and logged."""

    def train() -> None:
        gput.step(100, loss=3.0)
        gput.step()
        gput.step(loss=2.0)

    tracked = track(train)

    assert tracked.rows == [(100, {"loss": 3.0}), (102, {"loss": 2.0})]
    assert tracked.calls == {}


def test_what_is_no_number_does_not_end_a_training(
    track: Callable[..., Tracked], caplog: pytest.LogCaptureFixture
) -> None:
    """It is said, and the step counts."""
    with caplog.at_level(logging.WARNING, "gpu_tracker"):
        tracked = track(lambda: gput.step(7, words="many words", large=10**400))  # type: ignore[arg-type]

    assert "gput.step: words is ignored: str is not a number." in caplog.text
    assert "gput.step: large is ignored: the int is too large for a float." in caplog.text
    assert tracked.rows in ([], [(7, {})])


def test_everything_else_is_as_without_us() -> None:
    """Length, truth, attributes, copies; a loader without a length has none."""
    loader, watched = Stream(3), gput.watch([1, 2])
    stream = gput.watch(loader)

    assert len(watched) == 2
    assert not gput.watch([])
    assert stream
    assert stream.n == 3
    with pytest.raises(TypeError):
        len(stream)
    with pytest.raises(AttributeError, match="'Stream' object has no attribute 'nothing'"):
        _ = stream.nothing
    assert [list(stream) for _ in range(2)] == [[0, 1, 2], [0, 1, 2]]
    assert loader.n_begun == 2
    assert list(pickle.loads(pickle.dumps(watched))) == list(copy.deepcopy(watched)) == [1, 2]


def test_a_generator_is_used_up_once() -> None:
    """The second time through is empty, as it is without us."""
    watched = gput.watch(iter("ab"))

    assert [list(watched) for _ in range(2)] == [["a", "b"], []]


def test_an_iterator_that_has_ended_says_so_again() -> None:
    """As each must."""
    batches = iter(gput.watch([1]))

    assert iter(batches) is batches
    assert [next(batches, None) for _ in range(3)] == [1, None, None]


def test_no_batch_is_kept() -> None:
    """Memory of a batch that the program has dropped is free while the next one is made."""

    class Batch:
        pass

    made: list[weakref.ref[Batch]] = []
    alive = []

    def load() -> Iterator[Batch]:
        for _ in range(3):
            alive.append([one() is not None for one in made])
            batch = Batch()
            made.append(weakref.ref(batch))
            holder = [batch]
            del batch
            yield holder.pop()

    for batch in gput.watch(load()):
        assert isinstance(batch, Batch)
        del batch

    assert alive == [[], [False], [False, False]]


def test_loops_of_two_threads_do_not_meet(track: Callable[..., Tracked]) -> None:
    """A step of one thread does not end that of another."""
    meeting = threading.Barrier(2)
    parts: list[bool] = []

    def train(*, ends_steps: bool) -> None:
        for _ in gput.watch(range(3)):
            meeting.wait()
            if ends_steps:
                gput.step()
            meeting.wait()
            with gput.region("rest"):
                parts.append(ends_steps)
            meeting.wait()

    def train_both() -> None:
        threads = [threading.Thread(target=train, kwargs={"ends_steps": ends}) for ends in (True, False)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    tracked = track(train_both)

    assert tracked.calls["epoch/rest"] == 3
    assert tracked.calls["epoch/step/rest"] == 3
    assert tracked.calls["epoch/step"] == 6


def test_a_tracker_may_begin_and_end_in_the_middle_of_a_loop(tmp_path: Path) -> None:
    """It has the steps between."""
    path = tmp_path / "run.jsonl"
    tracker = gput.Tracker(disable_logs=True, record=path)
    seen = []
    for number in gput.watch(range(10)):
        seen.append(number)
        if number == 2:
            tracker.start()
        if number == 7:
            tracker.stop()

    calls = Tracked(gput.load(path)).calls

    assert seen == list(range(10))
    assert calls == {"data_wait": 5, "step": 4}


def test_single_steps_are_kept_as_those_of_any_region(tmp_path: Path) -> None:
    """In order, one after the other, and not more than of other regions."""
    path = tmp_path / "run.jsonl"
    with gput.Tracker(disable_logs=True, record=path):
        loop_over(range(100))
        loop_over(range(1000), name="second")
    calls = list(gput.load(path).calls)
    first = [call for call in calls if call.path == ("epoch", "step")]
    waits = [call for call in calls if call.path == ("epoch", "data_wait")]

    assert [call.number for call in first] == list(range(1, 101))
    assert [call.number for call in waits] == list(range(1, 102))
    in_turn = [call for pair in zip(waits, first, strict=False) for call in pair]
    assert all(
        (call.end_seconds or 0.0) <= following.start_seconds
        for call, following in itertools.pairwise(in_turn)
    )
    assert len([call for call in calls if call.path == ("second", "step")]) <= 160


def test_a_region_may_stay_open_from_one_step_to_the_next(track: Callable[..., Tracked]) -> None:
    """Whatever a program does in a step, the steps are counted, and so is that."""

    def train() -> None:
        inner = [gput.region("inner") for _ in range(4)]
        for number in gput.watch(range(4)):
            inner[number].__enter__()
            if number:
                inner[number - 1].__exit__(None, None, None)
        inner[-1].__exit__(None, None, None)

    tracked = track(train)

    assert sum(calls for path, calls in tracked.calls.items() if path.endswith("inner")) == 4
    assert sum(calls for path, calls in tracked.calls.items() if path.endswith("step")) == 4
    assert tracked.open == []


# In a process of its own: a descriptor that is opened when a handler raises is never closed.
INTERRUPTED = """
import signal, sys
import gpu_tracker as gput

class TimeIsUpError(Exception):
    pass

def strike(*_):
    raise TimeIsUpError

def is_stopped(seconds):
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        for _ in gput.watch(range(10**7)):
            pass
    except TimeIsUpError:
        return True
    return False

with gput.Tracker(disable_logs=True, record=sys.argv[1]):
    list(gput.watch(range(3)))  # what is opened once is opened
    signal.signal(signal.SIGALRM, strike)
    assert all(is_stopped(0.0002 + number * 1e-6) for number in range(200))
    with gput.region("after"):
        list(gput.watch(range(3)))
"""


def test_what_a_signal_handler_raises_reaches_the_program(tmp_path: Path) -> None:
    """A time limit may strike anywhere in a loop; afterwards all is as it should be."""
    path = tmp_path / "run.jsonl"
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, str(path)], capture_output=True, text=True)
    tracked = Tracked(gput.load(path))

    assert (done.returncode, done.stderr) == (0, "")
    assert tracked.calls["after/epoch/step"] == 3
    assert tracked.calls["after/epoch/data_wait"] == 4
    assert tracked.calls["epoch"] <= 201
    assert tracked.open == []


def test_a_forked_worker_goes_on_with_the_loop(track: Callable[..., Tracked]) -> None:
    """It is in the loop in which it was forked; its own steps are its own."""

    def train() -> None:
        for number in gput.watch(range(4)):
            if number == 1:
                child = os.fork()
                if not child:
                    loop_over(range(2), name="work")
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0

    tracked = track(train)

    assert tracked.calls["epoch/step"] == 4
    assert tracked.calls["epoch/work/step"] == 2
