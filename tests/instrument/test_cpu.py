"""CPU time given to regions."""

from __future__ import annotations

import gc
import time
from collections import defaultdict
from pathlib import Path
from threading import Event, Thread, get_native_id
from types import SimpleNamespace

import pytest

from gpu_tracker import region
from gpu_tracker.instrument import cpu, stack as stack_module
from gpu_tracker.instrument.shared_file import CPU, OWN_CPU, SHARED_CPU
from gpu_tracker.instrument.stack import Frame, RegionStack


class TimeLimitError(Exception):
    """As a signal handler raises it."""


def interrupt(_: Frame) -> None:
    """Raise where the calls around a call are looked for."""
    raise TimeLimitError


def burn_interrupted(mailbox: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The CPU time of two nested regions, and of the inner one alone, whose counting was interrupted."""
    stack = RegionStack(str(mailbox))
    outer, inner = stack.enter(region("epoch")), stack.enter(region("load"))
    assert outer is not None
    assert inner is not None
    end = time.thread_time() + 0.01
    while time.thread_time() < end:
        pass
    with monkeypatch.context() as patched:
        patched.setattr(Frame, "find_next", interrupt)
        with pytest.raises(TimeLimitError):
            stack.leave(inner)
    stack.leave(inner)
    stack.leave(outer)
    return [stack._writer.words[word] for word in (CPU + 1, CPU + 2, OWN_CPU + 2)]


def test_no_part_is_larger_than_the_whole_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal handler may raise wherever something is called, also in the middle of counting."""
    outer, inner, own = burn_interrupted(tmp_path, monkeypatch)
    gc.collect()  # regions inside each other know each other, and the file is open until they are gone

    assert own <= inner <= outer


def nest_calls(
    mailbox: Path, monkeypatch: pytest.MonkeyPatch, call_ms: int, helpers: int
) -> tuple[list[int], list[int]]:
    """The CPU time of a region, of one with ten calls inside it and of one inside that, and what is shared of each."""
    now_ms = 0
    clocks = SimpleNamespace(
        process_time_ns=lambda: now_ms * helpers * 10**6,
        monotonic_ns=lambda: now_ms * 10**6,
        thread_time_ns=lambda: 0,
        clock_gettime_ns=lambda _: 0,
    )
    monkeypatch.setattr(cpu, "time", clocks)
    monkeypatch.setattr(cpu, "_TICK_NS", 4 * 10**6)
    for module in (cpu, stack_module):
        monkeypatch.setattr(module, "monotonic_ns", lambda: now_ms * 10**6)
    stack = RegionStack(str(mailbox))
    now_ms = 1000
    job = stack.enter(region("job"))
    assert job is not None
    now_ms += 1000
    for _ in range(10):
        outer, inner = stack.enter(region("step")), stack.enter(region("work"))
        assert outer is not None
        assert inner is not None
        now_ms += call_ms
        stack.leave(inner)
        stack.leave(outer)
        now_ms += 1000
    stack.leave(job)
    words = stack._writer.words
    used, shared = ([words[column + n] // 10**6 for n in (1, 2, 3)] for column in (CPU, SHARED_CPU))
    return used, shared


@pytest.mark.parametrize(
    ("call_ms", "helpers", "shared_ms"), [(1, 1, 1), (10, 1, 4), (10, 8, 32), (1000, 1, 4), (1000, 0, 0)]
)
def test_a_tick_of_each_helper_may_be_older_than_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call_ms: int, helpers: int, shared_ms: int
) -> None:
    """The clock of the process lacks what its threads use between two ticks; a long call around many is not more doubtful."""
    used, shared = nest_calls(tmp_path, monkeypatch, call_ms, helpers)
    gc.collect()

    assert used == [helpers * (11 * 1000 + 10 * call_ms), *[10 * call_ms * helpers] * 2]
    assert shared == [4 * helpers, *[10 * shared_ms] * 2]


def work_before_the_first_region(
    mailbox: Path, monkeypatch: pytest.MonkeyPatch, looks: int, age_ms: int
) -> tuple[list[int], list[int]]:
    """The CPU time of the regions of two threads, and what is shared of each; one worked before its region, while the other's was read."""
    now_ms, used_ms = 1000, defaultdict[int, int](int)
    clocks = SimpleNamespace(
        process_time_ns=lambda: sum(used_ms.values()) * 10**6,
        monotonic_ns=lambda: now_ms * 10**6,
        thread_time_ns=lambda: used_ms[get_native_id()] * 10**6,
        clock_gettime_ns=lambda clock_id: used_ms[~(clock_id >> 3)] * 10**6,
    )
    monkeypatch.setattr(cpu, "time", clocks)
    monkeypatch.setattr(cpu, "_TICK_NS", 0)
    monkeypatch.setattr(cpu, "_read_age", lambda _: age_ms * 10**6)
    for module in (cpu, stack_module):
        monkeypatch.setattr(module, "monotonic_ns", lambda: now_ms * 10**6)
    stack = RegionStack(str(mailbox))
    may_work, has_worked = Event(), Event()

    def burn(milliseconds: int) -> None:
        nonlocal now_ms
        now_ms += milliseconds
        used_ms[get_native_id()] += milliseconds

    def work() -> None:
        for _ in range(4):
            may_work.wait()
            may_work.clear()
            burn(100)
            has_worked.set()
        may_work.wait()
        frame = stack.enter(region("late"))
        assert frame is not None
        burn(100)
        stack.leave(frame)

    worker = Thread(target=work)
    worker.start()
    early = stack.enter(region("early"))
    assert early is not None
    burn(50)
    for n in range(4):
        may_work.set()
        has_worked.wait()
        has_worked.clear()
        if n < looks:
            frame = stack.enter(region("look"))
            assert frame is not None
            stack.leave(frame)
    may_work.set()
    worker.join()
    stack.leave(early)
    words = stack._writer.words
    names = {record.name: record.number for record in stack._outermost.values()}
    used, shared = (
        [words[column + names[name]] // 10**6 for name in ("early", "late")] for column in (CPU, SHARED_CPU)
    )
    return used, shared


@pytest.mark.parametrize(
    ("looks", "age_ms", "given_ms", "shared_ms"),
    [(0, 460, 0, 0), (1, 460, 100, 100), (4, 460, 400, 400), (1, 299, 100, 0)],
)
def test_what_a_thread_did_before_its_first_region_is_no_helpers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int, age_ms: int, given_ms: int, shared_ms: int
) -> None:
    """Except for what another region had been given before: that is in doubt, unless the thread was started later."""
    used, shared = work_before_the_first_region(tmp_path, monkeypatch, looks, age_ms)
    gc.collect()

    assert used == [50 + given_ms, 100]
    assert shared == [shared_ms, 0]


def test_the_age_of_a_thread_is_known() -> None:
    """Of one that has just been started, less than a second; of one that there is not, it is as long as can be."""
    ages: list[int] = []
    thread = Thread(target=lambda: ages.append(cpu._read_age(get_native_id())))
    thread.start()
    thread.join()

    assert 0 <= ages[0] < 10**9 < cpu._read_age(0)
