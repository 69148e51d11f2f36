"""CPU time given to regions."""

from __future__ import annotations

import gc
import time
from pathlib import Path
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
    monkeypatch.setattr(stack_module, "monotonic_ns", lambda: now_ms * 10**6)
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
