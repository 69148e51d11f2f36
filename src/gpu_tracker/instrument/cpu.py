"""Whose CPU time it is: each thread's own clock, given to the region that the thread is in.

Reading it costs as much as everything else, so calls in quick succession share a reading. A thread that did not wait since the last
one has used as much CPU time in each call as time has passed in it. What it may have waited is counted as shared.

A thread that was never in a region (BLAS, OpenMP, the pools of frameworks) works for the region that runs meanwhile. If
several run, they share its time in proportion to their own; that part of their figures is counted as shared. So is a tick
per thread where a call begins: the clock of the process lacks what the threads on other CPUs have used since the kernel's last tick.
When a thread enters its first region, it has been none of these threads: what it used before is taken back, or counted as shared.
"""

from __future__ import annotations

import os
import sys
import time
from _operator import itemgetter  # what operator exports, without importing that
from _thread import _local, get_ident, get_native_id
from _weakref import ref

from ..core.calls import MOST_ENTERING_SECONDS
from ..core.system import monotonic_ns, posix
from .crowds import find_crowd
from .mishaps import is_ours
from .shared_file import (
    CPU,
    MOST_DRIVERS,
    MOST_THREADS,
    OWN_CPU,
    PROCESS_CPU,
    SHARED_CPU,
    SWITCHES,
    THREAD_WORDS,
    THREADS,
    UNKNOWN_SHARE_NS,
    count_open,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Container, Mapping
    from typing import Any

    from .stack import Frame, Record

# A hundred readings of a thread's clock in a row, then not more often than this.
_CPU_EVERY_NS = 100_000
_CPU_CREDIT_NS = 100 * _CPU_EVERY_NS
# Two clocks are never read at the same moment: a thread that has used this much less than the time that has passed did not wait.
_LEAST_WAIT_NS = 1_000
_LEAST_WAIT_SHARE = 0.02
# The time of helpers is asked for less often: all clocks are read for that.
_HELPERS_EVERY_NS = 200_000
# Two clocks are never read at the same moment: without helpers, this little is only that, and counts with what follows.
_LEAST_OWED_NS = 20_000
# What a thread weighs that shares the time of others without having used any.
_LEAST_WEIGHT_NS = 1_000
# The kernel's tick is the resolution of its coarse clock (CLOCK_MONOTONIC_COARSE, from linux/time.h).
_TICK_NS = 15_625_000 if sys.platform == "win32" else int(time.clock_getres(6) * 1e9)
# The unit in which the kernel tells when a thread was started.
_START_UNIT_NS = 1 if sys.platform == "win32" else 10**9 // os.sysconf("SC_CLK_TCK")
_UNKNOWN_AGE_NS = 1 << 62
_get_length = itemgetter(0)
# What it takes at most when code is suspended or goes on.
_MOST_SWITCHING_NS = int(MOST_ENTERING_SECONDS * 1e9)
# With more suspended regions than this, nobody can tell for whom a helper works.
_MOST_WAITING = 16


class Thread:
    """A thread that has been in a region."""

    __slots__ = (
        "around",
        "clock_id",
        "counted",
        "cpu_ns",
        "drivers",
        "due_ns",
        "frame",
        "ident",
        "outside_ns",
        "recent_ns",
        "region_word",
        "slot",
        "taken_ns",
        "tid",
        "unread",
    )

    def __init__(self, tid: int, slot: int) -> None:
        self.tid = tid
        self.ident = 0
        """Python's number of it, from its first call of ours to its end."""
        self.clock_id = name_clock(tid)
        self.slot = slot
        self.region_word = THREADS + slot * THREAD_WORDS + 1
        self.frame: Frame | None = None
        self.drivers: dict[object, Frame] = {}
        """Of code that has gone on in this thread: the call that resumed it, unless its own calls are inside that anyway."""
        self.around: Frame | None = None
        """A call of another thread that its last own one was in: what it does outside of its own may belong to that."""
        self.cpu_ns = _read_clock(self.clock_id)
        self.outside_ns = self.cpu_ns
        """What it has used since its last own call."""
        self.due_ns = self.recent_ns = 0
        self.taken_ns = monotonic_ns()
        """When its clock was read last."""
        self.unread: list[Any] = []
        """What it did since then: a call, its region, and until when it was in that; and so on."""
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
        self._due_ns = self._taken_ns = self._asked_ns = 0
        self._helped_ns: dict[int, int] = {}
        """The time of helpers that regions were given, by their number, as far as it is not in doubt."""
        self._main = self._add(os.getpid())

    def find_thread(self) -> Thread:
        """The calling thread."""
        try:
            thread: Thread = self.local.thread
        except AttributeError:
            tid = get_native_id()
            thread = self.local.thread = self._main if tid == self._main.tid else self._add(tid)
            if thread is not self._main:
                self._take_back(thread)
            thread.ident = get_ident()
            self.local.farewell = _Farewell(self, thread)
        return thread

    def charge(self, thread: Thread, now_ns: int, waiting: Collection[Frame]) -> None:
        """Give the time since the last event to the region that the calling thread is in."""
        thread.due_ns = max(now_ns - _CPU_CREDIT_NS, min(now_ns, thread.due_ns)) + _CPU_EVERY_NS
        thread.counted = count_open(now_ns - self._began_ns)
        self._take(thread, time.thread_time_ns(), now_ns)
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + _HELPERS_EVERY_NS * len(self._known)
            self._take_helpers(thread, waiting, now_ns)

    def charge_other(self, thread: Thread) -> None:
        """The same for any thread."""
        cpu_ns = _read_clock(thread.clock_id)
        if cpu_ns >= thread.cpu_ns:
            self._take(thread, cpu_ns, monotonic_ns())
        elif thread in self._known:
            self._known.remove(thread)  # it has ended

    def come_into(self, thread: Thread, around: Frame, now_ns: int, waiting: Collection[Frame]) -> None:
        """A thread enters its first call inside one of another thread: what it did before may belong to that, too."""
        if thread.around is around:
            return
        self.charge(thread, now_ns, waiting)
        thread.around = around
        self._doubt_around(thread, min(thread.outside_ns, now_ns - around.entered_ns))

    def doubt(self, number: int) -> None:
        """Nobody tells when a call of this region is suspended, so how much it lost to others is not known either."""
        place = SHARED_CPU + number
        self._words[place] = max(self._words[place], UNKNOWN_SHARE_NS)

    def doubt_around(self, frame: Frame) -> None:
        """The same for a call and those around it."""
        for step in _list_around(frame, ())[0]:
            self.doubt(step.record.number)

    def count_switch(self, thread: Thread) -> None:
        """The thread has gone on in the middle of a call, or its code is suspended: what that takes is in its figures."""
        if thread.frame is not None:
            self._words[SWITCHES + thread.frame.record.number] += 1

    def drive(self, thread: Thread, drivers: dict[object, Frame]) -> None:
        """From now on the thread runs code that these calls have resumed. The sampler knows the first of them."""
        thread.drivers = drivers
        word = thread.region_word + 2
        end = word + MOST_DRIVERS
        for driver in drivers.values():
            if word == end:
                self.doubt(driver.record.number)
            else:
                self._words[word] = driver.record.number
                word += 1
        if word < end:
            self._words[word] = 0

    def end_drive(self, thread: Thread, resumed: object) -> None:
        """Code that was resumed is suspended: what that took is also in the figures of the call that did it, and those around that."""
        driver = thread.drivers.pop(resumed)
        self.drive(thread, thread.drivers)
        for step in _list_around(driver, ())[0]:
            self._words[SHARED_CPU + step.record.number] += _MOST_SWITCHING_NS

    def switch(self, thread: Thread, frame: Frame | None) -> None:
        """From now on the thread is in this region."""
        thread.frame = frame
        self._words[thread.region_word] = 0 if frame is None else frame.record.number

    def forget(self, thread: Thread) -> None:
        """A thread ends, and calls this itself."""
        thread.ident = 0
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
        self.drive(thread, {})
        self._write_tid(thread, tid)
        self._known.append(thread)
        return thread

    def _write_tid(self, thread: Thread, tid: int) -> None:
        """The last entry is for all threads that are too many: it is nobody's."""
        self._words[thread.region_word - 1] = tid if thread.slot < MOST_THREADS else 0

    def settle(self) -> None:
        """Take the time of all threads, and forget what they did."""
        for thread in tuple(self._known):
            self.charge_other(thread)
            thread.unread = []

    def _take(self, thread: Thread, cpu_ns: int, now_ns: int) -> None:
        used = cpu_ns - thread.cpu_ns
        thread.cpu_ns = self._words[thread.region_word + 1] = cpu_ns
        self._known_ns += used
        since_ns, thread.taken_ns = thread.taken_ns, now_ns
        if thread.unread:
            unread, thread.unread = thread.unread, []
            self._settle(thread, unread, used, since_ns, now_ns)
            return
        frame = thread.frame
        if frame is None:
            thread.outside_ns += used
            self._doubt_around(thread, used)
            return
        thread.outside_ns = 0
        thread.recent_ns += used
        self._credit(frame, used, thread.drivers)

    def _settle(self, thread: Thread, unread: list[Any], used_ns: int, since_ns: int, now_ns: int) -> None:
        """Divide what a thread has used since its clock was read last among the calls that it was in.

        If it has waited, then in the longest of them: what waits takes long.
        """
        pieces: list[tuple[int, Record | None]] = []
        examples: dict[Record | None, Frame] = {}
        at_ns = since_ns
        steps = iter(unread)
        for frame, record, until_ns in zip(steps, steps, steps, strict=True):
            pieces.append((until_ns - at_ns, record))
            examples.setdefault(record, frame)
            at_ns = until_ns
        last = thread.frame
        pieces.append((now_ns - at_ns, None if last is None else last.record))
        if last is not None:
            examples.setdefault(last.record, last)
        waited_ns = now_ns - since_ns - used_ns
        has_waited = waited_ns > max(_LEAST_WAIT_NS, _LEAST_WAIT_SHARE * (now_ns - since_ns))
        parts = _divide_in_turn(sorted(pieces, key=_get_length) if has_waited else pieces, used_ns)
        thread.outside_ns = parts.get(None, 0)
        self._doubt_around(thread, thread.outside_ns)
        for record, part in parts.items():
            if record is not None:
                thread.recent_ns += part
                self._credit(examples[record], part, thread.drivers, record, unread)
        if has_waited:
            self._doubt_parts(thread, _sum(pieces), parts, examples, unread, used_ns, waited_ns)

    def _doubt_around(self, thread: Thread, cpu_ns: int) -> None:
        """What a thread has used outside of its calls may belong to the call of another one that they are in, and to those around it."""
        around = thread.around
        if around is not None and around.thread is not thread:
            for step in _list_around(around, ())[0]:
                self._words[SHARED_CPU + step.record.number] += cpu_ns

    def _doubt_parts(
        self,
        thread: Thread,
        passed: Mapping[Record | None, int],
        parts: Mapping[Record | None, int],
        examples: Mapping[Record | None, Frame],
        ended: Container[Frame],
        used_ns: int,
        waited_ns: int,
    ) -> None:
        """A region in which so much time has passed may have waited for all of the time that was waited, or not at all."""
        around: dict[Record, tuple[int, int]] = {}
        for record, part in parts.items():
            if record is not None:
                frame = examples[record]
                counted, _ = _list_counted(frame, thread.drivers, ended)
                for one in {record, *(step.record for step in counted if step is not frame)}:
                    known_ns, given_ns = around.get(one, (0, 0))
                    around[one] = known_ns + passed[record], given_ns + part
        for record, (passed_ns, given_ns) in around.items():
            least, most = max(0, passed_ns - waited_ns), min(passed_ns, used_ns)
            self._words[SHARED_CPU + record.number] += max(0, most - given_ns, given_ns - least)

    def _credit(
        self,
        frame: Frame,
        cpu_ns: int,
        drivers: Mapping[object, Frame],
        record: Record | None = None,
        ended: Container[Frame] = (),
    ) -> None:
        """Give time of its own thread to a call, or to all that share it."""
        if frame.is_crowded and frame.is_open:
            for one, part in find_crowd(frame).divide(cpu_ns):
                self._give(one, part, drivers, is_shared=False, ended=ended)
        else:
            self._give(frame, cpu_ns, drivers, is_shared=False, record=record, ended=ended)

    def _take_helpers(self, thread: Thread, waiting: Collection[Frame], now_ns: int) -> None:
        """Give the time of all other threads to the regions that run, else to the few that wait."""
        self._asked_ns = now_ns
        process_ns = time.process_time_ns()
        for other in tuple(self._known):
            if other is not thread:
                self.charge_other(other)
        # Below 0 if a thread has run between two clocks: that is made up for the next time.
        self._owed_ns += process_ns - self._process_ns - self._known_ns
        self._process_ns = self._words[PROCESS_CPU] = process_ns
        self._known_ns = 0
        if self._owed_ns < _LEAST_OWED_NS:
            return
        running = [(one.frame, one.recent_ns, one.drivers) for one in self._known if one.frame is not None]
        for one in self._known:
            one.recent_ns = 0
        among = running or [(frame, 0, {}) for frame in _find_few(waiting)]
        # As many threads seem to have run as it takes to use that much meanwhile.
        ticks_ns = max(_TICK_NS, self._owed_ns * _TICK_NS // max(1, now_ns - self._taken_ns))
        # What is suspended may have nothing to do with it.
        is_shared = len(among) > 1 or not running
        self._divide(among, 0 if is_shared else min(self._owed_ns, ticks_ns), is_shared=is_shared)
        self._owed_ns, self._taken_ns = 0, now_ns

    def _take_back(self, thread: Thread) -> None:
        """What a thread has used before its first region is no helper's: take it out of what is owed to those.

        Of one that is older than that, some may have been given away before. Then the regions that run now get too little.
        """
        earlier_ns = thread.cpu_ns
        for one in tuple(self._known):
            self.charge_other(one)
        owed_ns = self._owed_ns + time.process_time_ns() - self._process_ns - self._known_ns
        taken_ns = max(0, min(earlier_ns, owed_ns))
        self._known_ns += taken_ns
        if _read_age(thread.tid) < monotonic_ns() - self._asked_ns:
            return
        doubted_ns = min(earlier_ns, sum(self._helped_ns.values()))
        running = [_list_counted(one.frame, one.drivers)[0] for one in self._known if one.frame is not None]
        doubts = {step.record.number: min(doubted_ns, taken_ns) for steps in running for step in steps}
        for number, helped_ns in self._helped_ns.items():
            given_ns = min(doubted_ns, helped_ns)
            self._helped_ns[number] -= given_ns
            doubts[number] = max(doubts.get(number, 0), given_ns)
        for number, doubt_ns in doubts.items():
            self._words[SHARED_CPU + number] += doubt_ns

    def _divide(
        self, among: list[tuple[Frame, int, dict[object, Frame]]], earlier_ns: int, *, is_shared: bool
    ) -> None:
        whole = sum(recent_ns + _LEAST_WEIGHT_NS for _, recent_ns, _ in among)
        for frame, recent_ns, drivers in among:
            part = self._owed_ns * (recent_ns + _LEAST_WEIGHT_NS) // whole
            self._give(frame, part, drivers, is_shared=is_shared, earlier_ns=earlier_ns)
            for step in _list_counted(frame, drivers)[0]:
                number = step.record.number
                self._helped_ns[number] = self._helped_ns.get(number, 0) + part

    def _give(
        self,
        frame: Frame,
        cpu_ns: int,
        drivers: Mapping[object, Frame],
        *,
        is_shared: bool,
        earlier_ns: int = 0,
        record: Record | None = None,
        ended: Container[Frame] = (),
    ) -> None:
        """Give time to a region and those around it, also to those in which this process was forked, and those that drive its code.

        It may be of a call that has gone on as one of another region, or of calls that have ended since.

        Of calls that were entered within a tick before the last time, or after it, some of it may be earlier than they are.
        From the outermost in, its own time last: a signal handler that raises in between leaves no part larger than the whole.
        """
        words = self._words
        own = record or frame.record
        counted, around = _list_counted(frame, drivers, ended)
        while around is not None:
            words[CPU + around.number] += cpu_ns
            around = around.parent
        for step in reversed(counted):
            number = (own if step is frame else step.record).number
            words[CPU + number] += cpu_ns
            if step.is_crowded:
                words[SHARED_CPU + number] += cpu_ns
            elif earlier_ns and step.entered_ns + _TICK_NS > self._taken_ns:
                words[SHARED_CPU + number] += earlier_ns
        words[OWN_CPU + own.number] += cpu_ns
        if is_shared:
            words[SHARED_CPU + own.number] += cpu_ns


def _sum(pieces: list[tuple[int, Record | None]]) -> dict[Record | None, int]:
    """How much time has passed in each region."""
    passed: dict[Record | None, int] = {}
    for length_ns, record in pieces:
        passed[record] = passed.get(record, 0) + length_ns
    return passed


def _divide_in_turn(pieces: list[tuple[int, Record | None]], used_ns: int) -> dict[Record | None, int]:
    """What was used in each region: all the time that has passed, as long as there is some left, and what then remains in the last piece."""
    parts = dict.fromkeys([record for _, record in pieces], 0)
    for length_ns, record in pieces:
        part = min(length_ns, used_ns)
        parts[record] += part
        used_ns -= part
    parts[pieces[-1][1]] += used_ns
    return parts


def _list_counted(
    frame: Frame, drivers: Mapping[object, Frame], ended: Container[Frame] = ()
) -> tuple[list[Frame], Record | None]:
    """The calls that time in this one counts for, also some that have ended; and the region that this process was forked in.

    Those that have resumed the code that runs are around it, too. Whatever the ways to it, each region counts once.
    """
    counted, forked_in = _list_around(frame, ended)
    if drivers:
        known = {step.record for step in counted}
        for driver in drivers.values():
            around, its_forked_in = _list_around(driver, ended)
            forked_in = forked_in or its_forked_in
            for step in around:
                if step.record not in known:
                    known.add(step.record)
                    counted.append(step)
    return counted, forked_in


def _list_around(frame: Frame, ended: Container[Frame]) -> tuple[list[Frame], Record | None]:
    """Those of one call."""
    counted = []
    outermost = frame
    step: Frame | None = frame
    while step is not None and step.stack is frame.stack:
        if (step.is_open or step in ended) and not step.is_recursion:
            counted.append(step)
        outermost, step = step, step.find_next()
    return counted, None if step is None or not step.is_open else outermost.record.parent


def _find_few(waiting: Collection[Frame]) -> list[Frame]:
    """The innermost of all open regions, if they are few."""
    return [frame for frame in waiting if not frame.n_inside] if len(waiting) <= _MOST_WAITING else []


def name_clock(tid: int) -> int:
    """How Linux names the CPU clock of a thread; elsewhere its number."""
    return tid if sys.platform == "win32" else (~tid << 3) | 6


def _read_clock(clock_id: int) -> int:
    """A CPU clock in nanoseconds; -1 if its thread has ended."""
    try:
        if sys.platform == "win32":
            return posix.read_thread(clock_id).cpu_ns
        return time.clock_gettime_ns(clock_id)
    except OSError as error:
        if not is_ours(error):
            raise
        return -1


def _read_age(tid: int) -> int:
    """How long ago a thread of this process was started, in nanoseconds: up to one unit too long, and very long if that cannot be read."""
    try:
        if sys.platform == "win32":
            return posix.read_thread(name_clock(tid)).age_ns
        fd = posix.open(f"/proc/self/task/{tid}/stat", posix.O_RDONLY)
        try:
            content = posix.read(fd, 1024)
        finally:
            posix.close(fd)
        started = int(content.rpartition(b")")[2].split()[19])
    except (OSError, LookupError, ValueError) as error:
        if not is_ours(error):
            raise
        return _UNKNOWN_AGE_NS
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - started * _START_UNIT_NS
