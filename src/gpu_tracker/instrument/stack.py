"""The regions of this process while they run: which are open, and their counters so far.

Built for inner loops: entering and leaving costs a few microseconds. Regions are left in any order, in any thread.
"""

from __future__ import annotations

import os
from _operator import attrgetter  # what operator exports, without importing that
from _thread import RLock, get_ident
from contextvars import ContextVar
from time import sleep

from ..core.system import monotonic_ns
from . import crowds, greenlets, yields
from .call_file import CallFileWriter, RegionCalls
from .cpu import CpuShares
from .high_water import find_kept_bytes, is_since_start, keep_high_water, read_own_memory, reset_high_water
from .locks import replace_if_lost
from .mishaps import is_ours
from .rises import RAM_FRESH_NS, attribute
from .shared_file import (
    FINISHED,
    NOTHING_FOLLOWS_NS,
    NUMBERS,
    OPEN,
    RAM_READ,
    TIMES,
    SharedFileWriter,
    count_open,
    find_numbers_offset,
)
from .tasks import find_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Protocol, TypeAlias

    from .cpu import Thread
    from .crowds import Crowd

    class Region(Protocol):
        """A region, as the user's object has it."""

        name: str
        exact_peak: bool
        parallel: bool
        is_run_by_others: bool
        """Whether other threads do its work, so that nobody knows whose CPU time that of the process is."""
        is_frequent: bool
        """Whether it is a part of a loop, whose steps may all be longer than a reading of memory is rare."""

    Suspension: TypeAlias = tuple[FrameType | None, bool]
    """Of code that may be suspended: that of a generator, if that is known; and whether nobody tells when it is suspended."""


# Reading memory costs more than the rest together: a hundred times in a row, then not more often than this.
_RAM_EVERY_NS = 20_000_000
_RAM_CREDIT_NS = 100 * _RAM_EVERY_NS
# In a loop that goes from part to part, whose steps may all be longer than those 20 ms.
_RAM_IN_LOOP_EVERY_NS = 500_000_000
_RARER_NS = _RAM_IN_LOOP_EVERY_NS - _RAM_EVERY_NS

# While others run Python code, each system call waits for them. After some readings of ours that took long, the next one follows
# after so many times as long; one alone may have waited for a core.
SLOW_NS = 4_000_000
MOST_SLOW = 5
SLOW_PAUSE = 50
# Who has the lock usually needs it for microseconds, and to go on.
_LOCK_PAUSE_SECONDS = 1e-5
_LONGEST_LOCK_PAUSE_SECONDS = 1e-4
_LOCK_WAIT_SECONDS = 0.05

# Of code that is not suspended itself, while other code may be.
_UNSUSPENDED: Suspension = (None, False)
_get_numbers = attrgetter(*FINISHED)
_pack_times = TIMES.pack_into


class Record:
    """One region of this process: all finished calls so far."""

    __slots__ = (
        "inner",
        "n_recursive",
        "name",
        "number",
        "offset",
        "open_word",
        "parent",
        "paused_ns",
        "single_calls",
        *FINISHED,
    )

    def __init__(
        self, name: str, parent: Record | None, number: int, single_calls: RegionCalls | None
    ) -> None:
        self.name = name
        self.parent = parent
        self.number = number
        self.offset = find_numbers_offset(number)
        self.open_word = OPEN + number
        self.single_calls = single_calls
        self.inner: dict[str, Record] = {}
        self.n_recursive = 0
        """The open calls that are inside another one."""
        self.calls = self.exact_calls = self.has_own_doubts = self.exceeded_ns = 0
        self.wall_ns = self.shortest_ns = self.longest_ns = 0
        self.squared_seconds = 0.0
        self.own_wall_ns = 0
        self.entry_ram_bytes = self.exit_ram_bytes = self.peak_ram_bytes = self.inside_ram_bytes = -1
        self.first_ns = self.last_ns = 0
        self.paused_ns = 0
        """When a call last began after a time without one."""

    def find_namesake(self, name: str) -> Record | None:
        """This region or one around it with this name."""
        record: Record | None = self
        while record is not None and record.name != name:
            record = record.parent
        return record


class Frame:
    """A call of a region. Attributes that are seldom read are set only when they change: that is what making one costs."""

    __slots__ = (
        "__dict__",
        "below",
        "can_rest",
        "counted",
        "entered_ns",
        "is_open",
        "is_recursion",
        "n_inside",
        "outer",
        "own_ns",
        "owner",
        "peak_ram_bytes",
        "place",
        "record",
        "stack",
        "thread",
    )

    is_resting = False
    rests_in_task = 0
    rests_in: Frame | None = None
    entered_in: Frame | None = None
    """The call that the thread was in before this one, where that is not the latest in this context: in code that has been resumed."""
    resumed_above: tuple[Frame | None] | None = None
    """The latest call of the context in which its code goes on."""
    came_from: Frame | None = None
    """The call that the thread was in before this one, where the context does not know it."""
    generator: FrameType | None = None
    is_untold = False
    """Whether nobody tells when the code is suspended."""
    is_beside_untold = False
    """Whether such code may go on in the middle of this call, in a call that is not around it."""
    is_crowded = False
    """Whether another parallel call was open at the same time in this context."""
    crowd: Crowd | None = None
    crowds: dict[Crowd, None]
    """Those that a parallel call is in: its own, and those of calls above it."""
    counted_in: Frame | None = None
    """Of a recursive call: the nearest one around it that is none."""
    is_peak_exact = False

    def __init__(
        self,
        owner: Region,
        stack: RegionStack,
        record: Record,
        outer: Frame | None,
        below: Frame | None,
        thread: Thread,
        now_ns: int,
    ) -> None:
        self.owner = owner
        self.stack = stack
        self.record = record
        self.outer = outer
        """The call around this one."""
        self.below = below
        """The call that was the latest in this context: that one, or one of a generator that is suspended."""
        self.thread = thread
        self.is_open = True
        self.is_recursion = self.can_rest = False
        """It can rest if other code may run in the middle of it: that of a generator or coroutine."""
        self.entered_ns = now_ns
        self.own_ns = -now_ns
        """Outside of the calls inside; while there are none, less the time since which it is so."""
        self.n_inside = self.counted = 0
        self.place = self.peak_ram_bytes = -1

    def is_suspended(self) -> bool:
        """Whether other code runs in the middle of this call."""
        return self.is_resting or (self.generator is not None and self.generator.f_back is None)

    def is_around(self) -> bool:
        """Whether the code that runs now is inside this call: its own, or that of a task which was created inside."""
        return not self.is_suspended() or self.rests_in_task not in (0, find_task())

    def find_next(self) -> Frame | None:
        """The next call around this one, without those that do not count because they are recursive."""
        return self.counted_in if self.is_recursion and self.is_open else self.outer


current: ContextVar[Frame | None] = ContextVar("gpu_tracker_region", default=None)
"""The latest call in this context."""


def find_open(frame: Frame | None) -> Frame | None:
    """The call itself, or the nearest open one below."""
    while frame is not None and not frame.is_open:
        frame = frame.below
    return frame


def _put_away(frame: Frame) -> None:
    """End a call that nobody counts any more."""
    frame.is_open = False
    if frame.generator is not None:
        yields.remove(frame, frame.generator)
        frame.generator = None
    if current.get() is frame:
        current.set(find_open(frame.below))


def _find_running(frame: Frame | None) -> Frame | None:
    """The nearest open call whose code runs now, or goes on without a word."""
    while frame is not None and not (frame.is_open and (frame.is_untold or not frame.is_suspended())):
        frame = frame.below
    return frame


def _find_latest_running() -> Frame | None:
    """The call whose code goes on in this context."""
    return _find_running(current.get())


def _is_beside_untold(below: Frame | None) -> bool:
    """Whether the code of a call below may go on unnoticed; each knows of those below itself."""
    return below is not None and (below.is_beside_untold or (below.is_untold and below.is_suspended()))


def _find_back_from(frame: Frame, back: Frame | None) -> Frame | None:
    """The call that a thread goes back to when it leaves one whose code may have gone on elsewhere than it began."""
    before = frame if frame.generator is None else yields.find_before(frame, frame.generator)
    if before is not frame:
        return _find_running(before)
    if frame.entered_in is not None:
        return _find_running(frame.entered_in)
    return back or _find_running(frame.came_from)


def _is_inside(frame: Frame | None, around: Frame) -> bool:
    """Whether a call is inside another one, or is that one."""
    while frame is not None and frame is not around:
        frame = frame.outer
    return frame is not None


def _is_below(frame: Frame, latest: Frame | None) -> bool:
    """Whether a context knows a call: it is the latest one there, or below that."""
    while latest is not None and latest is not frame:
        latest = latest.below
    return latest is not None


def _find_driver(thread: Thread) -> Frame | None:
    """The call in whose middle a thread runs code that is in none."""
    return next((driver for driver in reversed(thread.drivers.values()) if driver.is_open), None)


def _find_resumed(top: Frame | None, outer: Frame | None) -> Frame | None:
    """The call around a new one in code that was resumed: what its consumer has entered since is the latest of its context, but not inside."""
    if top is None or top is outer or not top.is_open or not top.can_rest or top.is_untold:
        return outer
    return outer if top.is_suspended() or _is_inside(outer, top) else top


def _find_enclosing(frame: Frame | None, mailbox: str) -> Frame | None:
    """The nearest open call that the code that runs now is inside, of this tracker: of this process or the one it was forked from."""
    while frame is not None and not (frame.is_open and frame.stack.mailbox == mailbox and frame.is_around()):
        frame = frame.below
    return frame


def _find_around(outer: Frame | None) -> Frame | None:
    while outer is not None and not outer.is_open:
        outer = outer.outer
    return outer


def _find_counted(outer: Frame | None) -> Frame | None:
    """The nearest call around a recursive one that is none."""
    around = _find_around(outer)
    return around.counted_in if around is not None and around.is_recursion else around


def _is_open_around(record: Record, outer: Frame | None) -> bool:
    """Whether a call is inside one of the same region."""
    while outer is not None:
        if outer.record is record and outer.is_open:
            return True
        outer = outer.find_next()
    return False


class RegionStack:
    """All regions of this process, for one tracker."""

    def __init__(self, mailboxes: str) -> None:
        mailbox, *self._outer_mailboxes = mailboxes.split(os.pathsep)
        self.mailbox = mailbox
        """That of its tracker."""
        self._writer = SharedFileWriter(mailbox)
        self._keepers = {mailbox: self._writer}
        self._memory = self._writer.memory
        self._calls = _open_call_file(self._writer.path)
        self._words = self._writer.words
        self._lock = RLock()
        self.is_busy = self._lock._is_owned  # type: ignore[attr-defined] # noqa: SLF001 - as Condition asks it
        """Whether the calling thread is amid a change of its regions."""
        self.late: list[Frame] = []
        self._outermost: dict[str, Record] = {}
        self._open: dict[Frame, None] = {}
        self._parallel: dict[Region, dict[Frame, None]] = {}
        """Of the open calls, the parallel ones."""
        self._untold: dict[Frame, None] = {}
        """Those of generators of which nobody tells when they are suspended."""
        self._began_ns = self._writer.began_ns
        self._cpu = CpuShares(self._words, self._began_ns)
        self._local = self._cpu.local
        self._ram_due_ns = self._ram_stale_ns = self._ram_read_ns = self._n_slow_readings = 0
        self._rss_bytes = self._high_water_bytes_now = self._high_water_bytes = -1
        self._records: list[Record] = []
        self._exact_peaks: dict[Frame, int] = {}
        self.is_closed = False

    def enter(self, owner: Region, suspension: Suspension | None = None) -> Frame | None:
        """Begin a call of a region; None if there are too many regions, or if a signal handler has interrupted us here.

        Without parameters by name: calling a function that has some takes longer.
        """
        if self.is_busy():
            return None
        below = current.get()
        if below is not None and not below.is_open:
            below = find_open(below)
        outer = below
        if outer is not None and (outer.can_rest or outer.stack is not self):
            outer = _find_enclosing(outer, self.mailbox)
            suspension = suspension or _UNSUSPENDED
            is_skipping = outer is not below
        else:
            is_skipping = False
        frame = None
        lock = self._lock
        try:
            if not lock.acquire(False):  # not `with`, which costs three times as much
                lock = self._wait_for_lock()
            try:
                thread = self._local.thread
            except AttributeError:
                thread = self._cpu.find_thread()
            inside = thread.frame
            if is_skipping:
                self._doubt_skipped(below, outer, thread)
            is_elsewhere = inside is not outer and self._is_elsewhere(thread, below, outer)
            # Code that goes on in another thread has none of its calls in the context of that.
            is_driven = thread.drivers or (below is None and inside is not None and inside.can_rest)
            if is_driven:
                outer = _find_resumed(inside, outer)
            if owner.parallel or (outer is not None and (outer.owner.parallel or outer.stack is not self)):
                outer, record = self._find_beside(owner, outer)
            else:
                known = self._outermost if outer is None else outer.record.inner
                record = known.get(owner.name) or self._find(
                    None if outer is None else outer.record, owner.name
                )
            if record is None:
                lock.release()
                return None
            words = self._words
            now = monotonic_ns()
            if now >= thread.due_ns:
                self._cpu.charge(thread, now, self._open)
                greenlets.follow(self, _find_latest_running)
            else:
                inside = thread.frame
                thread.unread += inside, inside and inside.record, now
            frame = Frame(owner, self, record, outer, below, thread, now)
            self._open[frame] = None
            if outer is not None and outer.stack is self:
                if not outer.n_inside:
                    outer.own_ns += now
                outer.n_inside += 1
            place = record.open_word
            already = words[place]
            if already and _is_open_around(record, outer):
                self._note_recursion(frame)
            else:
                frame.counted = counted = thread.counted
                words[place] = already + counted
                single = record.single_calls
                if single is not None:
                    if not already:
                        frame.place = 0
                        single.open[0] = now
                    elif single.free:
                        frame.place = place = single.free[-1]
                        del single.free[-1]  # what calls nothing cannot be interrupted
                        single.open[place] = now
            if now - record.last_ns > RAM_FRESH_NS:
                self._begin_after_pause(record, now)
            if is_driven:
                frame.can_rest, frame.entered_in = True, thread.frame
            if suspension is not None or owner.parallel:
                self._note_others(frame, suspension)
            if is_elsewhere:
                frame.can_rest, frame.came_from = True, inside
            thread.frame = frame
            words[thread.region_word] = record.number
            if owner.exact_peak:
                self._begin_exactly(frame, now)
            elif now > self._ram_due_ns and (not owner.is_frequent or now > self._ram_stale_ns + _RARER_NS):
                self._read_ram(now)
            if now < self._ram_stale_ns:
                record.entry_ram_bytes = frame.peak_ram_bytes = self._rss_bytes
                self._publish(record)
            # Before the lock is free: where garbage is collected in the middle of this, what a finalizer enters would tear it apart
            # (in Python up to 3.11).
            current.set(frame)
            lock.release()
        except BaseException:
            if frame is not None and current.get() is frame:
                current.set(below)
            try:
                lock.release()
            except RuntimeError:
                pass  # it was not taken yet, or given back already
            if frame is not None:
                self.late.append(frame)
            raise
        if self.late:
            self._leave_late()
        return frame

    def leave(self, frame: Frame) -> None:
        """End a call of a region, from any thread.

        An exception from outside, which interrupts us where something is called, leaves the call open or ends it.
        """
        if self.is_closed:
            _put_away(frame)
            return
        if self.is_busy():
            self.late.append(frame)  # a signal handler or the garbage collector has interrupted us here
            return
        lock = self._lock
        try:
            if not lock.acquire(False):
                lock = self._wait_for_lock()
            if not frame.is_open:
                lock.release()
                return
            now = monotonic_ns()
            thread = frame.thread
            try:
                calling = self._local.thread
            except AttributeError:
                calling = self._cpu.find_thread()
            inside, around = calling.frame, frame.outer
            # Where calls are not left in their order, the calls around another change between two readings of the clock.
            if now >= calling.due_ns or inside is not frame or (around is not None and not around.is_open):
                self._cpu.charge(calling, now, self._open)
            else:
                calling.unread += inside, inside.record, now
            if thread is not calling:
                self._cpu.charge_other(thread)
            if around is not None and not around.is_open:
                around = frame.outer = _find_around(around)  # else ended calls would keep each other
            below = frame.below
            if below is not None and (below.can_rest or not below.is_open):
                back = _find_running(below)
                below = frame.below = find_open(below)
            else:
                back = below
            if frame.can_rest:
                back = _find_back_from(frame, back)
                if calling.drivers or thread.drivers:
                    self._end_drive(frame, calling, now)
            if back is not None and back.stack is not self:
                back = self._skip_others(back)
            del self._open[frame]
            # From here on nothing is called until it is counted.
            frame.is_open = False
            n_inside = frame.n_inside
            if not n_inside:
                frame.own_ns += now
            if around is not None and around.stack is self:
                around.n_inside += n_inside - 1
                if not around.n_inside:
                    around.own_ns -= now
            words = self._words
            if thread.frame is frame:
                if back is None and thread.drivers:
                    back = _find_driver(thread)
                if back is None or back.stack is not self or back.thread is not thread:
                    thread.frame = None
                    thread.around = around
                    words[thread.region_word] = 0
                else:
                    thread.frame = back
                    words[thread.region_word] = back.record.number
            record = frame.record
            record.calls = calls = record.calls + 1
            record.own_wall_ns += frame.own_ns
            record.last_ns = now
            wall = now - frame.entered_ns
            single = record.single_calls
            place = frame.place
            if not frame.is_recursion:  # else it is part of the call around it
                record.wall_ns += wall
                seconds = wall * 1e-9
                record.squared_seconds += seconds * seconds
                if wall > record.longest_ns:  # noqa: PLR1730 - max() is called
                    record.longest_ns = wall
                if wall < record.shortest_ns or not record.shortest_ns:
                    record.shortest_ns = wall
                words[record.open_word] -= frame.counted
                if place >= 0:
                    single.open[place] = 0  # type: ignore[union-attr]
            else:
                record.n_recursive -= 1
                frame.counted_in = None
            try:
                if place > 0:
                    single.free.append(place)  # type: ignore[union-attr]
                if (
                    n_inside
                    or frame.can_rest
                    or now > self._ram_due_ns
                    or now < self._ram_stale_ns
                    or self._exact_peaks
                    or self._parallel
                ):
                    self._complete(frame, now)
                _pack_times(
                    self._memory,
                    record.offset,
                    calls,
                    record.wall_ns,
                    record.shortest_ns,
                    record.longest_ns,
                    record.squared_seconds,
                    record.own_wall_ns,
                    now,
                )
                if single is not None:
                    peak = frame.peak_ram_bytes
                    if frame.is_recursion:
                        single.due += 1
                    elif calls >= single.due or wall > single.floor_ns or peak > single.floor_bytes:
                        single.keep(calls, frame.entered_ns, now, peak, frame.is_peak_exact)
            except BaseException:
                self._publish(record)
                raise
            if current.get() is frame:
                current.set(below)
            lock.release()
        except BaseException:
            try:
                lock.release()
            except RuntimeError:
                pass
            raise
        if self.late:
            self._leave_late()

    def move(self, frame: Frame, owner: Region, now: int, *, is_renamed: bool = False) -> Frame | None:
        """End a call and begin one of another region in its place, as a loop does twice in every step; returns that one.

        In a usual loop this costs half of leaving and entering. Neither region is parallel or has an exact peak. A call that is renamed does
        not end: it has been one of the other region from its begin on. What is unusual keeps its name.
        """
        if self.is_busy():
            return frame if is_renamed else self._leave_and_enter(frame, owner)
        lock = self._lock
        try:
            if not lock.acquire(False):
                return frame if is_renamed else self._leave_and_enter(frame, owner)
            words, thread, outer, before = self._words, frame.thread, frame.outer, frame.record
            known = self._outermost if outer is None else outer.record.inner
            record = known.get(owner.name) or self._find(None if outer is None else outer.record, owner.name)
            if (
                record is None
                or words[record.open_word]
                or not frame.is_open
                or frame.n_inside
                or frame.is_recursion
                or frame.can_rest
                or frame.place > 0
                or thread.frame is not frame
                or thread.ident != get_ident()
                or (
                    outer is not None
                    and (not outer.is_open or outer.stack is not self or outer.owner.parallel)
                )
                or self.late
                or self.is_closed
                or not (is_renamed or self._ram_stale_ns <= now < self._ram_stale_ns + _RAM_IN_LOOP_EVERY_NS)
            ):
                lock.release()
                return frame if is_renamed else self._leave_and_enter(frame, owner)
            if now >= thread.due_ns:
                self._cpu.charge(thread, now, self._open)
                greenlets.follow(self, _find_latest_running)
            else:
                thread.unread += frame, before, now
            # From here on nothing is called until the one is counted and the other has begun.
            began, peak, is_exact = frame.entered_ns, frame.peak_ram_bytes, frame.is_peak_exact
            single, calls, wall = before.single_calls, 0, now - began
            words[before.open_word] -= frame.counted
            if not frame.place:
                single.open[0] = 0  # type: ignore[union-attr]
            if not is_renamed:
                before.calls = calls = before.calls + 1
                before.own_wall_ns += frame.own_ns + now
                before.last_ns = now
                before.wall_ns += wall
                seconds = wall * 1e-9
                before.squared_seconds += seconds * seconds
                if wall > before.longest_ns:  # noqa: PLR1730 - max() is called
                    before.longest_ns = wall
                if wall < before.shortest_ns or not before.shortest_ns:
                    before.shortest_ns = wall
                frame.entered_ns, frame.own_ns, frame.counted = now, -now, thread.counted
                if peak >= 0:
                    frame.peak_ram_bytes = -1
                    frame.is_peak_exact = False
            frame.owner, frame.record = owner, record
            words[record.open_word] = frame.counted
            if record.single_calls is None:
                frame.place = -1
            else:
                frame.place = 0
                record.single_calls.open[0] = frame.entered_ns
            words[thread.region_word] = record.number
            try:
                if frame.entered_ns - record.last_ns > RAM_FRESH_NS:
                    self._begin_after_pause(record, frame.entered_ns)
                if calls:
                    _pack_times(
                        self._memory,
                        before.offset,
                        calls,
                        before.wall_ns,
                        before.shortest_ns,
                        before.longest_ns,
                        before.squared_seconds,
                        before.own_wall_ns,
                        now,
                    )
                    if single is not None and (
                        calls >= single.due or wall > single.floor_ns or peak > single.floor_bytes
                    ):
                        single.keep(calls, began, now, peak, is_exact)
            except BaseException:
                self._publish(before)
                raise
            lock.release()
        except BaseException:
            try:
                lock.release()
            except RuntimeError:
                pass
            raise
        return frame

    def _leave_and_enter(self, frame: Frame, owner: Region) -> Frame | None:
        self.leave(frame)
        return self.enter(owner)

    def backdate(self, frames: Sequence[Frame], since_ns: int) -> None:
        """Calls inside each other, the outermost first, have begun earlier: since then nothing was in the call around them."""
        with self._find_lock():
            for frame in frames:
                record, single, around = frame.record, frame.record.single_calls, frame.outer
                frame.own_ns += frame.entered_ns - since_ns
                if around is not None and around.stack is self and around.n_inside == 1:
                    around.own_ns -= frame.entered_ns - since_ns
                if record.first_ns == frame.entered_ns:
                    record.first_ns = since_ns
                    self._publish(record)
                if single is not None and frame.place >= 0:
                    single.open[frame.place] = since_ns
                frame.entered_ns = since_ns

    def abandon(self, owner: Region, since_ns: int) -> None:
        """End the calls of a region that this thread has begun since then: it was interrupted at that."""
        thread = self._cpu.find_thread()
        for frame in tuple(self._open):
            if frame.owner is owner and frame.entered_ns >= since_ns and frame.thread is thread:
                self.end(frame)

    def end(self, frame: Frame) -> None:
        """End a call whose leaving was interrupted."""
        self.late.append(frame)
        try:
            self._leave_late()
        except Exception as error:
            if not is_ours(error):
                raise

    def _leave_late(self) -> None:
        """End the calls that could not be ended in the middle of something else, unless this is still in the middle of it."""
        while self.late and not self.is_busy():
            frame = self.late[-1]
            self.leave(frame)
            if frame in self.late:
                self.late.remove(frame)

    def rest(self, frame: Frame, before: Frame | None, task: int = 0) -> None:
        """The code of a call is suspended, with its task; the calling thread is again in the call that it was in before."""
        if self.is_closed:
            return  # in a forked process, another thread of its parent may have the lock
        with self._find_lock():
            thread = self._cpu.find_thread()
            self._cpu.charge(thread, monotonic_ns(), self._open)
            self._cpu.count_switch(thread)
            if frame in thread.drivers:
                self._cpu.end_drive(thread, frame)
            frame.can_rest = frame.is_resting = True
            frame.rests_in, frame.rests_in_task = thread.frame, task
            if before is frame:
                before = self._find_back(frame, thread)
            self._cpu.switch(thread, before if before is not None and before.is_open else None)

    def resume(self, frame: Frame) -> Frame | None:
        """The code of a call goes on in the calling thread; returns the call that this was in."""
        if self.is_closed:
            return None
        with self._find_lock():
            frame.is_resting, frame.rests_in_task = False, 0
            target, frame.rests_in = find_open(frame.rests_in or frame), None
            before = self._switch(target)
            if target is not None:
                target.resumed_above = (current.get(),)
            if before is not None and target is not None and not _is_inside(before, frame):
                self._drive(target, before, frame)
            return before

    def step_into(self, frame: Frame | None) -> Frame | None:
        """The calling thread goes on with code that is in this call, of whichever tracker; returns the call that it was in."""
        frame = self._find_own(frame)
        with self._find_lock():
            before = self._switch(frame)
            self._cpu.count_switch(self._cpu.find_thread())
            return before

    def begin_callback(self, frame: Frame | None, callback: object) -> Frame | None:
        """The same for code that an event loop calls in the middle of the call that the thread is in."""
        frame = self._find_own(frame)
        with self._find_lock():
            thread = self._cpu.find_thread()
            before = self._switch(frame or thread.frame)
            if before is not None:
                self._drive(frame, before, callback)
            self._cpu.count_switch(thread)
            return before

    def end_callback(self, before: Frame | None, callback: object) -> None:
        """It has ended; the thread goes on in the call that it was in before."""
        before = self._find_own(before)
        with self._find_lock():
            thread = self._cpu.find_thread()
            if callback in thread.drivers:
                self._cpu.charge(thread, monotonic_ns(), self._open)
                self._cpu.end_drive(thread, callback)
            self._switch(before)

    def is_in_resumed(self) -> bool:
        """Whether the calling thread runs code that can be suspended, of a call or of who has resumed it."""
        thread = self._cpu.find_thread()
        return bool(thread.drivers) or (thread.frame is not None and thread.frame.can_rest)

    def trade(
        self, place: tuple[Frame | None, dict[object, Frame]]
    ) -> tuple[Frame | None, dict[object, Frame]]:
        """The calling thread goes on elsewhere, in this call and resumed by these; returns where it was."""
        with self._find_lock():
            thread = self._cpu.find_thread()
            self._cpu.charge(thread, monotonic_ns(), self._open)
            before, drivers = thread.frame, thread.drivers
            self._cpu.drive(thread, place[1])
            self._switch(self._find_own(place[0]))
            self._cpu.count_switch(thread)
            return before, drivers

    def find_call(self, owner: Region) -> Frame | None:
        """The latest open call of a region, wherever it was entered."""
        for frame in reversed(tuple(self._open)):
            if frame.owner is owner:
                return frame
        return None

    def find_only_call(self, owner: Region) -> Frame | None:
        """The open call of a parallel region, if there is but one."""
        calls = self._parallel.get(owner, ())
        return next(iter(calls)) if len(calls) == 1 else None

    def _find_lock(self) -> RLock:
        """The lock, which can be waited for."""
        lock = replace_if_lost(self._lock)
        if lock is not self._lock:
            self._lock = lock
            self.is_busy = lock._is_owned  # type: ignore[attr-defined] # noqa: SLF001
        return lock

    def _wait_for_lock(self) -> RLock:
        """Take the lock, which another thread has.

        Not at once by waiting for it: whoever does gets it while others run, who then all wait at each of their calls. But nobody tries
        for long in vain.
        """
        pause_seconds = 0.0
        while not (lock := self._find_lock()).acquire(False):
            if pause_seconds < _LONGEST_LOCK_PAUSE_SECONDS:
                sleep(pause_seconds)
                pause_seconds += _LOCK_PAUSE_SECONDS
            elif lock.acquire(True, _LOCK_WAIT_SECONDS):
                break
        return lock

    def _switch(self, frame: Frame | None) -> Frame | None:
        thread = self._cpu.find_thread()
        before = thread.frame
        if before is not frame:
            self._cpu.charge(thread, monotonic_ns(), self._open)
            self._cpu.switch(thread, frame)
            if frame is not None:
                frame.thread = thread
        return before

    def _find_own(self, frame: Frame | None) -> Frame | None:
        """The call itself, or the nearest open one below that is of this tracker."""
        while frame is not None and not (frame.is_open and frame.stack is self):
            frame = frame.below
        return frame

    def _drive(self, frame: Frame | None, driver: Frame, resumed: object) -> None:
        """Code goes on in a call, and in the middle of another one: both count its time, until it is suspended."""
        if not _is_inside(frame, driver):
            thread = self._cpu.find_thread()
            thread.drivers[resumed] = driver
            self._cpu.drive(thread, thread.drivers)

    def _is_elsewhere(self, thread: Thread, below: Frame | None, outer: Frame | None) -> bool:
        """Whether code runs in a context that does not know the call its thread is in: how much of its time is that call's, nobody tells."""
        inside = thread.frame
        if inside is None:
            if outer is not None and outer.stack is self and outer.thread is not thread:
                self._cpu.come_into(thread, outer, monotonic_ns(), self._open)
            return False
        if (
            not inside.is_open
            or _is_below(inside, below)
            or inside in thread.drivers.values()
            or (inside.resumed_above is not None and find_open(inside.resumed_above[0]) is below)
            or not greenlets.are_followed(self)
        ):
            return False
        self._cpu.doubt_around(inside)
        return True

    def doubt(self, frame: Frame) -> None:
        """Other code may run in the middle of this call, and nobody tells when."""
        self._cpu.doubt(frame.record.number)

    def _doubt_skipped(self, below: Frame | None, outer: Frame | None, thread: Thread) -> None:
        """Code in another thread knows calls that are suspended now: it may have been begun inside of them, or by their consumer."""
        while below is not None and below is not outer:
            if below.is_open and below.stack is self and below.thread is not thread and below.is_suspended():
                self._cpu.doubt_around(below)
            below = below.below

    def _end_drive(self, frame: Frame, calling: Thread, now_ns: int) -> None:
        """A call that was resumed ends: its code is now in the one that has done that."""
        for thread in {calling, frame.thread}:
            if frame in thread.drivers:
                if thread is calling:
                    self._cpu.charge(thread, now_ns, self._open)
                self._cpu.end_drive(thread, frame)

    def _skip_others(self, frame: Frame | None) -> Frame | None:
        """Of calls that run, the nearest one of this tracker: one that has ended may have left open calls."""
        while frame is not None and frame.stack is not self:
            frame = _find_running(frame.below)
        return frame

    def _find_back(self, frame: Frame, thread: Thread) -> Frame | None:
        """The call in which a thread goes on after this one."""
        back = self._skip_others(_find_running(frame.entered_in or frame.below))
        return back if back is not None and back.stack is self and back.thread is thread else None

    def _find_beside(self, owner: Region, outer: Frame | None) -> tuple[Frame | None, Record | None]:
        """The call around a new one and its record: nothing is nested in a parallel region."""
        while owner.parallel and outer is not None and outer.owner.parallel:
            outer = outer.outer
        nesting = outer
        while nesting is not None and nesting.owner.parallel:
            nesting = nesting.outer
        if nesting is None:
            return outer, self._find(None, owner.name)
        around = nesting.record if nesting.stack is self else self._adopt(nesting.record)
        return outer, None if around is None else self._find(around, owner.name)

    def _begin_after_pause(self, record: Record, now_ns: int) -> None:
        """A region begins to run, for the first time or again."""
        record.paused_ns = now_ns
        if not record.first_ns:
            record.first_ns = now_ns
            self._publish(record)

    def _note_others(self, frame: Frame, suspension: Suspension | None) -> None:
        """What else may run while a call is open."""
        if suspension is not None:
            frame.generator, frame.is_untold = suspension
        if frame.is_untold or frame.owner.is_run_by_others:
            self._cpu.doubt(frame.record.number)
        if _is_beside_untold(frame.below):
            frame.can_rest = frame.is_beside_untold = True
            self._doubt_own(frame.record)
        if frame.generator is not None:
            frame.can_rest = True
            yields.add(frame, frame.generator)
            if frame.is_untold:
                self._untold[frame] = None
        if frame.owner.parallel:
            self._parallel.setdefault(frame.owner, {})[frame] = None
            crowds.join(frame)

    def _doubt_own(self, record: Record) -> None:
        if not record.has_own_doubts:
            record.has_own_doubts = 1
            self._publish(record)

    def _doubt_outlived(self, frame: Frame) -> None:
        """A call has ended while untold code inside it goes on: that is now taken for what the code around the call does."""
        if frame.outer is not None and frame.outer.stack is self:
            self._doubt_own(frame.outer.record)

    def _note_recursion(self, frame: Frame) -> None:
        frame.is_recursion = True
        frame.record.n_recursive += 1
        frame.counted_in = _find_counted(frame.outer)

    def _forget_parallel(self, frame: Frame) -> None:
        calls = self._parallel.get(frame.owner, {})
        calls.pop(frame, None)
        if not calls:
            self._parallel.pop(frame.owner, None)
        crowds.leave(frame)

    def _promote(self, record: Record, now_ns: int) -> None:
        """The outermost call of a region was left before the recursive ones inside: they go on counting."""
        # In the order of their begin, so that those around come first.
        for frame in [frame for frame in self._open if frame.is_recursion]:
            if frame.record is record and not _is_open_around(record, frame.outer):
                record.n_recursive -= 1
                frame.is_recursion, frame.counted_in = False, None
                frame.entered_ns = now_ns
                frame.counted = count_open(now_ns - self._began_ns)
                self._words[record.open_word] += frame.counted
            else:
                frame.counted_in = _find_counted(frame.outer)

    def close(self) -> None:
        """No more regions here."""
        self.settle(is_last=True)

    def let_go(self) -> None:
        """In a forked process: nothing of its parent's is left, before the program uses the numbers of its descriptors again."""
        self.is_closed = True
        for mapped in (*self._keepers.values(), self._calls):
            if mapped is not None:
                mapped.let_go()

    def settle(self, *, is_last: bool = False) -> None:
        """Count everything up to now."""
        self._leave_late()
        with self._find_lock():
            self.is_closed = is_last
            now = monotonic_ns()
            self._cpu.charge(self._cpu.find_thread(), now, self._open)
            self._cpu.settle()
            self._read_ram(now)
            if find_kept_bytes() >= 0:
                self._keep_high_water()
            if is_last:
                self._words[RAM_READ] = NOTHING_FOLLOWS_NS

    def _complete(self, frame: Frame, now_ns: int) -> None:
        """What else there may be to an ended call: recursive ones inside, and its memory."""
        if frame.generator is not None:
            yields.remove(frame, frame.generator)
            frame.generator = None
        if frame.can_rest:
            # Else ended calls would keep each other, or themselves.
            frame.entered_in = frame.rests_in = frame.came_from = frame.resumed_above = None
        if frame.owner.parallel:
            self._forget_parallel(frame)
        if frame.is_untold:
            self._untold.pop(frame, None)
        if frame.n_inside and any(_is_inside(one, frame) for one in self._untold):
            self._doubt_outlived(frame)
        if frame.n_inside and frame.record.n_recursive and not frame.is_recursion:
            self._promote(frame.record, now_ns)
        if frame in self._exact_peaks:
            self._end_exactly(frame, now_ns)
        elif now_ns > self._ram_due_ns and (
            not frame.owner.is_frequent or now_ns > self._ram_stale_ns + _RARER_NS
        ):
            self._read_ram(now_ns, frame)
        if now_ns < self._ram_stale_ns:
            frame.record.exit_ram_bytes = self._rss_bytes
            frame.peak_ram_bytes = max(frame.peak_ram_bytes, self._rss_bytes)
            self._publish(frame.record)

    def _begin_exactly(self, frame: Frame, now_ns: int) -> None:
        """Reset the kernel's high-water mark for this call; if that fails, it has no exact peak."""
        self._read_ram(now_ns)
        self._keep_high_water()
        if self._high_water_bytes_now >= 0 and reset_high_water():
            self._exact_peaks[frame] = self._rss_bytes

    def _end_exactly(self, frame: Frame, now_ns: int) -> None:
        """The high-water mark is the peak of this call, and a lower bound for the calls around it."""
        self._read_ram(now_ns, frame)
        self._keep_high_water()
        peak = self._exact_peaks.pop(frame)
        if self._high_water_bytes_now < 0:
            return
        frame.record.exact_calls += 1
        frame.is_peak_exact = True
        step: Frame | None = frame
        while step is not None and step.stack is self:
            if step.is_open or step is frame:
                step.record.inside_ram_bytes = max(step.record.inside_ram_bytes, peak)
                step.peak_ram_bytes = max(step.peak_ram_bytes, peak)
            step = step.find_next()

    def _keep_high_water(self) -> None:
        """Pass the high-water mark on to the calls with exact peaks, and to all trackers."""
        high_water = self._high_water_bytes_now
        keep_high_water(high_water)
        for frame, peak in self._exact_peaks.items():
            self._exact_peaks[frame] = max(peak, high_water)
        while self._outer_mailboxes:
            mailbox = self._outer_mailboxes.pop()
            try:
                self._keepers[mailbox] = SharedFileWriter(mailbox)
            except (OSError, ValueError) as error:
                if not is_ours(error):
                    raise
                continue  # that tracker has ended, or the disk is full
        for mailbox, writer in self._keepers.items():
            if is_since_start(mailbox, high_water):
                writer.keep_high_water(high_water)

    def _publish(self, record: Record) -> None:
        NUMBERS.pack_into(self._memory, record.offset, *_get_numbers(record))

    def _find(self, around: Record | None, name: str) -> Record | None:
        """The record of a region, created if it is new; None if there are too many. Inside itself it is the same."""
        known = self._outermost if around is None else around.inner
        record = known.get(name)
        if record is None and around is not None:
            record = around.find_namesake(name)
            if record is not None:
                known[name] = record
        if record is None:
            number = self._writer.add_region(0 if around is None else around.number, name)
            if not number:
                return None
            single_calls = None if self._calls is None else self._calls.add_region(number)
            record = known[name] = Record(name, around, number, single_calls)
            self._records.append(record)
            self._publish(record)
        return record

    def _adopt(self, record: Record) -> Record | None:
        """The record of a region that was open when this process was forked."""
        around = None if record.parent is None else self._adopt(record.parent)
        return self._find(around, record.name)

    def _read_ram(self, now_ns: int, left: Frame | None = None) -> None:
        """Read resident memory and the kernel's high-water mark, at the end of a call or elsewhere; -1 if they cannot be read."""
        self._ram_stale_ns = now_ns + RAM_FRESH_NS
        self._rss_bytes, self._high_water_bytes_now = read_own_memory()
        took_ns = monotonic_ns() - now_ns
        self._n_slow_readings = self._n_slow_readings + 1 if took_ns > SLOW_NS else 0
        if self._n_slow_readings < MOST_SLOW:
            self._ram_due_ns = max(self._ram_due_ns, now_ns - _RAM_CREDIT_NS) + _RAM_EVERY_NS
        else:
            self._ram_due_ns = now_ns + SLOW_PAUSE * took_ns
        # As it would be if it had never been reset.
        high_water = max(self._high_water_bytes_now, find_kept_bytes())
        if 0 <= self._high_water_bytes < high_water:
            calls = self._open if left is None else (*self._open, left)
            for record in attribute(self._records, calls, high_water, self._ram_read_ns, now_ns):
                self._publish(record)
        self._high_water_bytes, self._ram_read_ns = high_water, now_ns
        self._words[RAM_READ] = now_ns


def _open_call_file(regions_path: str) -> CallFileWriter | None:
    try:
        return CallFileWriter(regions_path)
    except OSError as error:
        if not is_ours(error):
            raise
        return None  # the disk is full: only the totals are kept
