"""Whose CPU time it is: each thread's own clock, given to the region that the thread is in.

A thread that was never in a region (BLAS, OpenMP, the pools of frameworks) works for the region that runs meanwhile. If
several run, they share its time in proportion to their own; that part of their figures is counted as shared.
"""

from __future__ import annotations

import os
import time
from _thread import _local, get_native_id
from _weakref import ref

from .crowds import find_crowd
from .mishaps import is_ours
from .shared_file import (
    CPU,
    MOST_THREADS,
    OWN_CPU,
    PROCESS_CPU,
    SHARED_CPU,
    THREAD_WORDS,
    THREADS,
    count_open,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from .stack import Frame

# Reading a CPU clock costs as much as everything else: calls shorter than this share one reading.
_CPU_EVERY_NS = 50_000
# The time of helpers is asked for less often: all clocks are read for that.
_HELPERS_EVERY_NS = 200_000
# What a thread weighs that shares the time of others without having used any.
_LEAST_WEIGHT_NS = 1_000
# With more suspended regions than this, nobody can tell for whom a helper works.
_MOST_WAITING = 16


class Thread:
    """A thread that has been in a region."""

    __slots__ = (
        "clock_id",
        "counted",
        "cpu_ns",
        "due_ns",
        "frame",
        "recent_ns",
        "region_word",
        "slot",
        "tid",
    )

    def __init__(self, tid: int, slot: int) -> None:
        self.tid = tid
        self.clock_id = (~tid << 3) | 6  # how Linux names the CPU clock of a thread
        self.slot = slot
        self.region_word = THREADS + slot * THREAD_WORDS + 1
        self.frame: Frame | None = None
        self.cpu_ns = _read_clock(self.clock_id)
        self.due_ns = self.recent_ns = 0
        self.counted = 0
        """What a call adds to the column of open calls if it is entered before the clock is due again."""


class _Farewell:
    """Kept by a thread: when that ends, its last CPU time is taken."""

    __slots__ = ("_shares", "_thread")

    def __init__(self, shares: CpuShares, thread: Thread) -> None:
        # Not a cycle: with the last region everything is to be closed at once.
        self._shares = ref(shares)
        self._thread = thread

    def __del__(self) -> None:
        try:
            shares = self._shares()
            if shares is not None:
                shares.forget(self._thread)
        except Exception:  # noqa: BLE001, S110 - the interpreter may be ending
            pass


class CpuShares:
    """The CPU time of this process by region. Not thread-safe: the caller holds a lock, except where it says so."""

    def __init__(self, words: memoryview, began_ns: int) -> None:
        self._words = words
        self._began_ns = began_ns
        self._free = list(range(MOST_THREADS - 1, -1, -1))
        self._known: list[Thread] = []
        self.local = _local()
        self._known_ns = self._owed_ns = 0
        self._process_ns = words[PROCESS_CPU] = time.process_time_ns()
        self._due_ns = 0
        self._main = self._add(os.getpid())

    def find_thread(self) -> Thread:
        """The calling thread."""
        try:
            thread: Thread = self.local.thread
        except AttributeError:
            tid = get_native_id()
            thread = self.local.thread = self._main if tid == self._main.tid else self._add(tid)
            self.local.farewell = _Farewell(self, thread)
        return thread

    def charge(self, thread: Thread, now_ns: int, waiting: Collection[Frame]) -> None:
        """Give the time since the last event to the region that the calling thread is in."""
        thread.due_ns = now_ns + _CPU_EVERY_NS
        thread.counted = count_open(now_ns - self._began_ns)
        self._take(thread, time.thread_time_ns())
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + _HELPERS_EVERY_NS * len(self._known)
            self._take_helpers(thread, waiting)

    def charge_other(self, thread: Thread) -> None:
        """The same for any thread."""
        cpu_ns = _read_clock(thread.clock_id)
        if cpu_ns >= thread.cpu_ns:
            self._take(thread, cpu_ns)
        elif thread in self._known:
            self._known.remove(thread)  # it has ended

    def switch(self, thread: Thread, frame: Frame | None) -> None:
        """From now on the thread is in this region."""
        thread.frame = frame
        self._words[thread.region_word] = 0 if frame is None else frame.record.number

    def forget(self, thread: Thread) -> None:
        """A thread ends, and calls this itself."""
        if thread.tid == get_native_id():
            self.charge_other(thread)
        if thread is not self._main and thread in self._known:
            self._known.remove(thread)
            self._write_tid(thread, 0)
            if thread.slot < MOST_THREADS:
                self._free.append(thread.slot)

    def _add(self, tid: int) -> Thread:
        thread = Thread(tid, self._free.pop() if self._free else MOST_THREADS)
        self._words[thread.region_word] = 0
        self._words[thread.region_word + 1] = thread.cpu_ns
        self._write_tid(thread, tid)
        self._known.append(thread)
        return thread

    def _write_tid(self, thread: Thread, tid: int) -> None:
        """The last entry is for all threads that are too many: it is nobody's."""
        self._words[thread.region_word - 1] = tid if thread.slot < MOST_THREADS else 0

    def _take(self, thread: Thread, cpu_ns: int) -> None:
        used = cpu_ns - thread.cpu_ns
        thread.cpu_ns = self._words[thread.region_word + 1] = cpu_ns
        self._known_ns += used
        frame = thread.frame
        if frame is None:
            return
        thread.recent_ns += used
        if frame.is_crowded:
            for one, part in find_crowd(frame).divide(used):
                self._give(one, part, is_shared=False)
        else:
            self._give(frame, used, is_shared=frame.is_untold)

    def _take_helpers(self, thread: Thread, waiting: Collection[Frame]) -> None:
        """Give the time of all other threads to the regions that run, else to the few that wait."""
        process_ns = time.process_time_ns()
        for other in tuple(self._known):
            if other is not thread:
                self.charge_other(other)
        # Below 0 if a thread has run between two clocks: that is made up for the next time.
        self._owed_ns += process_ns - self._process_ns - self._known_ns
        self._process_ns = self._words[PROCESS_CPU] = process_ns
        self._known_ns = 0
        running = [(one.frame, one.recent_ns) for one in self._known if one.frame is not None]
        for one in self._known:
            one.recent_ns = 0
        if self._owed_ns > 0:
            self._divide(running or [(frame, 0) for frame in _find_few(waiting)])
            self._owed_ns = 0

    def _divide(self, among: list[tuple[Frame, int]]) -> None:
        whole = sum(recent_ns + _LEAST_WEIGHT_NS for _, recent_ns in among)
        for frame, recent_ns in among:
            part = self._owed_ns * (recent_ns + _LEAST_WEIGHT_NS) // whole
            self._give(frame, part, is_shared=len(among) > 1)

    def _give(self, frame: Frame, cpu_ns: int, *, is_shared: bool) -> None:
        """Give time to a region and those around it.

        From the outermost in, its own time last: a signal handler that raises in between leaves no part larger than the whole.
        """
        words = self._words
        counted = []
        step: Frame | None = frame
        while step is not None and step.stack is frame.stack:
            if step.is_open and not step.is_recursion:
                counted.append(step)
            step = step.find_next()
        for step in reversed(counted):
            words[CPU + step.record.number] += cpu_ns
            if step.is_crowded:
                words[SHARED_CPU + step.record.number] += cpu_ns
        words[OWN_CPU + frame.record.number] += cpu_ns
        if is_shared:
            words[SHARED_CPU + frame.record.number] += cpu_ns


def _find_few(waiting: Collection[Frame]) -> list[Frame]:
    """The innermost of all open regions, if they are few."""
    return [frame for frame in waiting if not frame.n_inside] if len(waiting) <= _MOST_WAITING else []


def _read_clock(clock_id: int) -> int:
    """A CPU clock in nanoseconds; -1 if its thread has ended."""
    try:
        return time.clock_gettime_ns(clock_id)
    except OSError as error:
        if not is_ours(error):
            raise
        return -1
