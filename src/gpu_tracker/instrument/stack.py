"""The regions of this process while they run: which are open, and their counters so far.

Built for inner loops: entering and leaving costs a few microseconds. CPU time of the process between two events belongs
to the regions that are open then; if several threads are in regions they share it evenly, so all regions together never
have more than the process used.
"""

from __future__ import annotations

import os
import time
from _operator import attrgetter  # what operator exports, without importing that
from _thread import RLock
from contextvars import ContextVar

from .call_file import CallFileWriter, RegionCalls
from .high_water import find_kept_bytes, is_since_start, keep_high_water, read_own_memory, reset_high_water
from .shared_file import MOST_SLOTS, NUMBERS, Numbers, SharedFileWriter, find_numbers_offset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Region(Protocol):
        """A region, as the user's object has it."""

        name: str
        exact_peak: bool


# Reading the CPU clock costs as much as everything else: calls shorter than this share one reading.
_CPU_EVERY_NS = 10_000
# Reading memory costs more than the rest together: a hundred times in a row, then not more often than this.
_RAM_EVERY_NS = 5_000_000
_RAM_CREDIT_NS = 100 * _RAM_EVERY_NS
# No notable amount of memory can be allocated in this time.
_RAM_FRESH_NS = 100_000

_get_numbers = attrgetter(*Numbers._fields)


class _Record:
    """One region of this process: all calls so far."""

    __slots__ = ("inner", "name", "number", "offset", "parent", "single_calls", *Numbers._fields)

    def __init__(
        self, name: str, parent: _Record | None, number: int, single_calls: RegionCalls | None
    ) -> None:
        self.name = name
        self.parent = parent
        self.number = number
        self.offset = find_numbers_offset(number)
        self.single_calls = single_calls
        self.inner: dict[str, _Record] = {}
        self.calls = self.exact_calls = 0
        self.wall_ns = self.shortest_ns = self.longest_ns = 0
        self.squared_seconds = 0.0
        self.own_wall_ns = self.cpu_ns = self.own_cpu_ns = 0
        self.entry_ram_bytes = self.exit_ram_bytes = self.peak_ram_bytes = self.inside_ram_bytes = -1
        self.first_ns = self.last_ns = 0

    def find_namesake(self, name: str) -> _Record | None:
        """This region or one around it with this name."""
        record: _Record | None = self
        while record is not None and record.name != name:
            record = record.parent
        return record


class _Frame:
    """An open call of a region."""

    __slots__ = (
        "cpu_ns",
        "entered_ns",
        "high_water_bytes",
        "inner_cpu_ns",
        "inner_wall_ns",
        "is_open",
        "is_peak_exact",
        "is_recursion",
        "n_inside",
        "outer",
        "owner",
        "peak_ram_bytes",
        "place",
        "record",
        "slot",
        "stack",
    )

    def __init__(self, owner: Region, stack: RegionStack, record: _Record, outer: _Frame | None) -> None:
        self.owner = owner
        self.stack = stack
        self.record = record
        self.outer = outer
        self.is_open = True
        self.is_recursion = False
        self.n_inside = 0
        self.slot = -1
        self.entered_ns = 0
        self.high_water_bytes = self.peak_ram_bytes = self.place = -1
        self.is_peak_exact = False
        self.cpu_ns = self.inner_cpu_ns = self.inner_wall_ns = 0


current: ContextVar[_Frame | None] = ContextVar("gpu_tracker_region", default=None)


class RegionStack:
    """All regions of this process, for one tracker."""

    def __init__(self, mailboxes: str) -> None:
        mailbox, *self._outer_mailboxes = mailboxes.split(os.pathsep)
        self._writer = SharedFileWriter(mailbox)
        self._keepers = {mailbox: self._writer}
        self._memory = self._writer.memory
        self._calls = _open_call_file(self._writer.path)
        self._slots = self._writer.slots
        self._lock = RLock()  # a signal handler may enter a region while its thread is entering another
        self._outermost: dict[str, _Record] = {}
        self._free_slots = list(range(MOST_SLOTS - 1, -1, -1))
        self._innermost: list[_Frame] = []
        self._cpu_ns = time.process_time_ns()
        self._cpu_read_ns = 0
        self._ram_ns = self._ram_due_ns = 0
        self._rss_bytes = self._high_water_bytes_now = self._high_water_bytes = -1
        self._exact_peaks: dict[_Frame, int] = {}
        self.is_closed = False

    def enter(self, owner: Region) -> None:
        """Begin a call of a region."""
        outer = current.get()
        while outer is not None and not outer.is_open:
            outer = outer.outer
        with self._lock:
            is_inside = outer is not None and outer.stack is self
            frame = self._make_frame(owner, outer, is_inside)
            if frame is None:
                return
            now = time.monotonic_ns()
            self._share_cpu(now)
            innermost = self._innermost
            if is_inside:
                outer.n_inside += 1  # type: ignore[union-attr]
            if is_inside and innermost[-1] is outer:
                innermost[-1] = frame
            else:
                if outer in innermost:
                    innermost.remove(outer)
                innermost.append(frame)
            record = frame.record
            if frame.slot >= 0:
                self._slots[frame.slot] = record.number
            frame.entered_ns = now
            single = record.single_calls
            if single is not None and single.free and not frame.is_recursion:
                frame.place = place = single.free.pop()
                single.open[place] = now
            if not record.first_ns:
                record.first_ns = now
            if owner.exact_peak:
                self._begin_exactly(frame, now)
            elif now > self._ram_due_ns:
                self._read_ram(now)
            if now - self._ram_ns < _RAM_FRESH_NS:
                record.entry_ram_bytes = frame.peak_ram_bytes = self._rss_bytes
                frame.high_water_bytes = self._high_water_bytes
        current.set(frame)

    def leave(self, frame: _Frame) -> None:
        """End a call of a region."""
        now = time.monotonic_ns()
        outer = frame.outer
        while outer is not None and not outer.is_open:
            outer = outer.outer
        with self._lock:
            self._share_cpu(now)
            frame.is_open = False
            around = outer if outer is not None and outer.stack is self else None
            innermost = self._innermost
            if around is None:
                innermost.remove(frame)
            else:
                around.n_inside -= 1
                if frame.n_inside == 0 and around.n_inside == 0:
                    innermost[innermost.index(frame)] = around
                elif frame in innermost:
                    innermost.remove(frame)
            if frame.slot >= 0:
                self._slots[frame.slot] = 0 if around is None else around.record.number
                if around is None:
                    self._free_slots.append(frame.slot)
            self._add_up(frame, now, around)
        if current.get() is frame:
            current.set(outer)

    def _make_frame(self, owner: Region, outer: _Frame | None, is_inside: bool) -> _Frame | None:
        """A new call; None if there are too many regions."""
        name = owner.name
        if outer is None:
            record = self._find(None, name)
        else:
            around = outer.record if is_inside else self._adopt(outer.record)
            record = None if around is None else around.find_namesake(name)
            if record is not None and is_inside:
                frame = _Frame(owner, self, record, outer)
                frame.is_recursion = True
                frame.slot = outer.slot
                return frame
            record = self._find(around, name)
        if record is None:
            return None
        frame = _Frame(owner, self, record, outer)
        if is_inside:
            frame.slot = outer.slot  # type: ignore[union-attr]
        else:
            frame.slot = self._free_slots.pop() if self._free_slots else -1
        return frame

    def close(self) -> None:
        """No more regions here."""
        with self._lock:
            self.is_closed = True
            if find_kept_bytes() >= 0:
                self._read_ram(time.monotonic_ns())
                self._keep_high_water()

    def _add_up(self, frame: _Frame, now_ns: int, around: _Frame | None) -> None:
        record = frame.record
        wall = now_ns - frame.entered_ns
        cpu = frame.cpu_ns + frame.inner_cpu_ns
        record.calls += 1
        record.own_cpu_ns += frame.cpu_ns
        if wall > frame.inner_wall_ns:
            record.own_wall_ns += wall - frame.inner_wall_ns
        if not frame.is_recursion:  # else it is part of the call around it
            record.wall_ns += wall
            record.cpu_ns += cpu
            record.squared_seconds += wall * wall * 1e-18
            record.longest_ns = max(record.longest_ns, wall)
            if wall < record.shortest_ns or not record.shortest_ns:
                record.shortest_ns = wall
        if around is not None:
            around.inner_cpu_ns += cpu
            around.inner_wall_ns += wall
        record.last_ns = now_ns
        if frame in self._exact_peaks:
            self._end_exactly(frame, now_ns)
        elif now_ns > self._ram_due_ns:
            self._read_ram(now_ns)
        if now_ns - self._ram_ns < _RAM_FRESH_NS:
            self._take_ram(frame)
        single = record.single_calls
        if single is not None:
            place = frame.place
            if place >= 0:
                single.open[place] = 0
                single.free.append(place)
            if frame.is_recursion:
                single.due += 1
            elif (
                record.calls >= single.due
                or wall > single.floor_ns
                or frame.peak_ram_bytes > single.floor_bytes
            ):
                single.keep(record.calls, frame.entered_ns, now_ns, frame.peak_ram_bytes, frame.is_peak_exact)
        self._publish(record)

    def _take_ram(self, frame: _Frame) -> None:
        """Memory at the end of a call, and its peak if the kernel's high-water mark has risen."""
        record = frame.record
        record.exit_ram_bytes, high_water = self._rss_bytes, self._high_water_bytes
        # Without a reading at its begin, the rise may have been before the call.
        if 0 <= frame.high_water_bytes < high_water:
            frame.peak_ram_bytes, frame.is_peak_exact = high_water, True
            record.peak_ram_bytes = max(record.peak_ram_bytes, high_water)
        elif self._rss_bytes > frame.peak_ram_bytes:
            frame.peak_ram_bytes = self._rss_bytes

    def _begin_exactly(self, frame: _Frame, now_ns: int) -> None:
        """Reset the kernel's high-water mark for this call; if that fails, it has no exact peak."""
        self._read_ram(now_ns)
        self._keep_high_water()
        if self._high_water_bytes_now >= 0 and reset_high_water():
            self._exact_peaks[frame] = self._rss_bytes

    def _end_exactly(self, frame: _Frame, now_ns: int) -> None:
        """The high-water mark is the peak of this call, and a lower bound for the calls around it."""
        self._read_ram(now_ns)
        self._keep_high_water()
        peak = self._exact_peaks.pop(frame)
        if self._high_water_bytes_now < 0:
            return
        frame.record.exact_calls += 1
        frame.is_peak_exact = True
        step: _Frame | None = frame
        while step is not None and step.stack is self:
            if step.is_open or step is frame:
                step.record.inside_ram_bytes = max(step.record.inside_ram_bytes, peak)
                step.peak_ram_bytes = max(step.peak_ram_bytes, peak)
            step = step.outer

    def _keep_high_water(self) -> None:
        """Pass the high-water mark on to the calls with exact peaks, and to all trackers."""
        high_water = self._high_water_bytes_now
        keep_high_water(high_water)
        # A copy, because a signal handler may enter a region meanwhile.
        for frame, peak in tuple(self._exact_peaks.items()):
            self._exact_peaks[frame] = max(peak, high_water)
        while self._outer_mailboxes:
            mailbox = self._outer_mailboxes.pop()
            try:
                self._keepers[mailbox] = SharedFileWriter(mailbox)
            except (OSError, ValueError):
                continue  # that tracker has ended, or the disk is full
        for mailbox, writer in self._keepers.items():
            if is_since_start(mailbox, high_water):
                writer.keep_high_water(high_water)

    def _publish(self, record: _Record) -> None:
        NUMBERS.pack_into(self._memory, record.offset, *_get_numbers(record))

    def _share_cpu(self, now_ns: int) -> None:
        """Attribute the CPU time since the last event to the open regions."""
        if now_ns - self._cpu_read_ns < _CPU_EVERY_NS:
            return
        self._cpu_read_ns = now_ns
        cpu = time.process_time_ns()
        innermost = self._innermost
        if innermost:
            if len(innermost) == 1:
                innermost[0].cpu_ns += cpu - self._cpu_ns
            else:
                share = (cpu - self._cpu_ns) // len(innermost)
                for frame in innermost:
                    frame.cpu_ns += share
        self._cpu_ns = cpu

    def _find(self, around: _Record | None, name: str) -> _Record | None:
        """The record of a region, created if it is new; None if there are too many."""
        known = self._outermost if around is None else around.inner
        record = known.get(name)
        if record is None:
            number = self._writer.add_region(0 if around is None else around.number, name)
            if not number:
                return None
            single_calls = None if self._calls is None else self._calls.add_region(number)
            record = known[name] = _Record(name, around, number, single_calls)
            self._publish(record)
        return record

    def _adopt(self, record: _Record) -> _Record | None:
        """The record of a region that was open when this process was forked."""
        around = None if record.parent is None else self._adopt(record.parent)
        return self._find(around, record.name)

    def _read_ram(self, now_ns: int) -> None:
        """Read resident memory and the kernel's high-water mark; -1 if they cannot be read."""
        self._ram_ns = now_ns
        self._ram_due_ns = max(self._ram_due_ns, now_ns - _RAM_CREDIT_NS) + _RAM_EVERY_NS
        self._rss_bytes, self._high_water_bytes_now = read_own_memory()
        # As it would be if it had never been reset.
        self._high_water_bytes = max(self._high_water_bytes_now, find_kept_bytes())


def _open_call_file(regions_path: str) -> CallFileWriter | None:
    try:
        return CallFileWriter(regions_path)
    except OSError:
        return None  # the disk is full: only the totals are kept
