"""Regions in threads that all want to run: nobody waits for another one at each call."""

from __future__ import annotations

import gc
import resource
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_tracker import region
from gpu_tracker.instrument import outbox, stack as stack_module
from gpu_tracker.instrument.stack import RegionStack

CALLS = 5_000
SLOW_SECONDS = 0.01


def use(stack: RegionStack, name: str, switches: list[int]) -> None:
    """Enter and leave a region; how often this thread had to wait meanwhile."""
    one = region(name)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    for _ in range(CALLS):
        frame = stack.enter(one)
        assert frame is not None
        stack.leave(frame)
    switches.append(resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before)


def use_for(seconds: float, mailbox: Path) -> None:
    """Enter and leave a region for so long."""
    stack, one = RegionStack(str(mailbox)), region("a")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        frame = stack.enter(one)
        assert frame is not None
        stack.leave(frame)


@pytest.fixture
def _threads_run_on() -> Iterator[None]:
    """Threads stop for each other only where they wait: not every five milliseconds, which would count on a slow machine."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_threads_run_on")
def test_threads_do_not_hand_the_lock_to_each_other(tmp_path: Path) -> None:
    """A thread that is given the lock while another one runs would stop that one at its next call, and so on."""
    stack, switches = RegionStack(str(tmp_path)), list[int]()
    threads = [threading.Thread(target=use, args=(stack, name, switches)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(switches) == 3
    assert sum(switches) < 3 * CALLS / 10
    assert [record.calls for record in stack._outermost.values()] == [CALLS] * 3


def test_memory_is_read_less_often_where_that_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its system calls waits for whoever runs Python code."""
    readings = []

    def read_slowly() -> tuple[int, int]:
        readings.append(time.monotonic())
        time.sleep(SLOW_SECONDS)
        return 1, 1

    monkeypatch.setattr(stack_module, "read_own_memory", read_slowly)
    use_for(40 * SLOW_SECONDS, tmp_path)
    gc.collect()  # the file of the regions is open until they are gone

    assert len(readings) == 5


def test_trackers_are_searched_for_less_often_where_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the same reason; else a search would follow the other."""

    def search_slowly() -> bool:
        time.sleep(SLOW_SECONDS)
        return False

    monkeypatch.setattr(outbox, "_opened", set())
    monkeypatch.setattr(outbox, "search_due_ns", 0)
    monkeypatch.setattr(outbox._search, "has_changed", search_slowly)
    monkeypatch.setattr(outbox, "_n_slow_searches", 0)
    pauses = []
    for _ in range(6):
        outbox.search()
        pauses.append((outbox.search_due_ns - time.monotonic_ns()) / 1e9)

    assert [pause > 20 * SLOW_SECONDS for pause in pauses] == [*[False] * 4, True, True]
