"""Whose a rise of the high-water mark is, with a clock and a memory that the test sets."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from gpu_tracker import region
from gpu_tracker.instrument import cpu, stack as stack_module
from gpu_tracker.instrument.stack import Frame, RegionStack

MS = 1_000_000


class Job:
    """A process of ten bytes that a test moves through its regions. Memory is read at the first call, then every 20 ms."""

    def __init__(self, mailbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns, self.high_water = 1000 * MS, 10
        clocks = SimpleNamespace(
            process_time_ns=lambda: 0,
            monotonic_ns=lambda: self.now_ns,
            thread_time_ns=lambda: 0,
            clock_gettime_ns=lambda _: 0,
        )
        monkeypatch.setattr(cpu, "time", clocks)
        monkeypatch.setattr(stack_module, "monotonic_ns", lambda: self.now_ns)
        monkeypatch.setattr(stack_module, "read_own_memory", lambda: (10, self.high_water))
        monkeypatch.setattr(stack_module, "find_kept_bytes", lambda: -1)
        monkeypatch.setattr(stack_module, "_RAM_CREDIT_NS", 0)
        self.stack = RegionStack(str(mailbox))
        self.calls: list[Frame] = []

    def enter(self, name: str) -> None:
        """Begin a call."""
        call = self.stack.enter(region(name))
        assert call is not None
        self.calls.append(call)

    def leave(self) -> None:
        """End the innermost call."""
        self.stack.leave(self.calls.pop())

    def run(self, name: str, milliseconds: float, high_water: int = 0) -> None:
        """A whole call, in which the high-water mark may rise."""
        self.enter(name)
        self.wait(milliseconds)
        self.high_water = high_water or self.high_water
        self.leave()

    def wait(self, milliseconds: float) -> None:
        """Time passes."""
        self.now_ns += int(milliseconds * MS)

    def warm_up(self, *names: str) -> None:
        """Each region has an exact peak of its own, and ends at a reading; the last one is known by its mark."""
        for name in names:
            self.run(name, 30, self.high_water + 10)
            self.wait(30)

    def end(self) -> dict[str, tuple[int, int]]:
        """The exact peak of each region, and what it is at least."""
        self.stack.close()
        self.stack.let_go()
        return {one.name: (one.peak_ram_bytes, one.inside_ram_bytes) for one in self.stack._records}


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """One that has just begun."""
    return Job(tmp_path, monkeypatch)


@pytest.mark.parametrize(("pause_ms", "known"), [(0.05, (500, -1)), (0.2, (-1, 20))])
def test_a_rise_between_readings_is_of_the_region_that_was_always_inside(
    job: Job, pause_ms: float, known: tuple[int, int]
) -> None:
    """In a call that was not read at its begin; with notable pauses between the calls, nobody knows."""
    job.warm_up("part")
    for n in range(100):
        job.run("part", 40 if n == 50 else 1, 500 if n == 50 else 0)
        job.wait(pause_ms)

    assert job.end()["part"] == known


def test_a_rise_is_in_doubt_where_regions_take_turns(job: Job) -> None:
    """Of those that ran then; not of the one around them, nor of one that did not run, or whose own peak is as high."""
    job.enter("around")
    job.warm_up("before", "one", "other")
    for n in range(10):
        for name in ("one", "other"):
            job.run(name, 1, 500 if n == 5 else 0)
    job.wait(30)
    job.run("one", 30, 504)
    job.run("one", 30, 505)
    job.run("one", 1)
    job.run("last", 30, 506)
    job.leave()
    known = job.end()

    assert known["before"] == (20, -1)
    assert known["other"] == (-1, 40)
    assert known["one"] == (505, 30)
    assert known["last"] == (-1, -1)
    assert known["around"] == (506, -1)


def test_a_rise_elsewhere_is_noted_until_the_region_has_raised_the_mark_again(job: Job) -> None:
    """A peak that is as good as the mark is not exceeded by it; the time is that of the reading."""
    job.warm_up("part")
    exceeded = []
    for name, high_water in (("other", 20), ("other", 500), ("other", 600), ("part", 600), ("part", 700)):
        job.run(name, 30, high_water)
        exceeded.append((job.now_ns, job.stack._records[0].exceeded_ns))
        job.wait(30)
    (_, before), (risen_ns, noted), (_, still_noted), (_, below), (_, after) = exceeded

    assert (before, noted, still_noted, below, after) == (0, risen_ns, risen_ns, risen_ns, 0)
    assert job.end()["part"] == (700, -1)


def test_a_rise_after_the_last_reading_is_found_at_the_end(job: Job) -> None:
    """In a call that was too short to be read."""
    job.warm_up("part")
    job.run("part", 30)
    job.run("part", 1, 500)
    job.wait(1)

    assert job.end()["part"] == (-1, 20)
