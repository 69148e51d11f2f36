"""Regions and metrics, from inside the job: `with region("forward"):` and `log(step=3, loss=0.7)`.

Built for the inner loop: entering and leaving costs a few microseconds, and without a tracker next to nothing. The
process's CPU time between two events belongs to the regions it is in at that time; where several threads are in regions
at once they share it evenly, so all regions together never have more than the process used.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import time
from _thread import RLock
from contextvars import ContextVar

from .board import MOST_SLOTS, NUMBERS, BoardWriter, find_numbers_offset
from .place import METRICS_SUFFIX, PLACE_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType
    from typing import Any, ParamSpec, TypeVar

    from typing_extensions import Self

    from .frameworks import FrameworkWatch

    _Parameters = ParamSpec("_Parameters")
    _Result = TypeVar("_Result")

# The clock of the process's CPU time costs as much as everything else: calls shorter than this share one reading.
_CPU_EVERY_NS = 10_000
# Reading the memory in use costs as much as the rest together: not more often than this.
_RAM_EVERY_NS = 5_000_000
# From inspect, which is large to import.
_COROUTINE, _GENERATOR = 0x80, 0x20
_STEP = "step"  # no value can be called so: it is a parameter of its own
# Whose memory on GPUs is worth asking for.
_FRAMEWORKS = ("torch", "jax", "tensorflow")


class _Record:
    """One region of this process: all calls so far."""

    __slots__ = (
        "calls",
        "cpu_ns",
        "entry_ram_bytes",
        "exit_ram_bytes",
        "first_ns",
        "inner",
        "last_ns",
        "longest_ns",
        "name",
        "number",
        "offset",
        "own_cpu_ns",
        "own_wall_ns",
        "parent",
        "peak_ram_bytes",
        "shortest_ns",
        "squared_seconds",
        "wall_ns",
    )

    def __init__(self, name: str, parent: _Record | None, number: int) -> None:
        self.name = name
        self.parent = parent
        self.number = number
        self.offset = find_numbers_offset(number)
        self.inner: dict[str, _Record] = {}
        self.calls = 0
        self.wall_ns = self.shortest_ns = self.longest_ns = 0
        self.squared_seconds = 0.0
        self.own_wall_ns = self.cpu_ns = self.own_cpu_ns = 0
        self.entry_ram_bytes = self.exit_ram_bytes = self.peak_ram_bytes = -1
        self.first_ns = self.last_ns = 0

    def find_namesake(self, name: str) -> _Record | None:
        """This region or one around it that has the name."""
        record: _Record | None = self
        while record is not None and record.name != name:
            record = record.parent
        return record


class _Frame:
    """One call of a region that has not ended."""

    __slots__ = (
        "board",
        "cpu_ns",
        "entered_ns",
        "high_water_bytes",
        "inner_cpu_ns",
        "inner_wall_ns",
        "is_open",
        "is_recursion",
        "n_inside",
        "outer",
        "owner",
        "record",
        "slot",
    )

    def __init__(self, owner: region, board: _Board, record: _Record, outer: _Frame | None) -> None:
        self.owner = owner
        self.board = board
        self.record = record
        self.outer = outer
        self.is_open = True
        self.is_recursion = False
        self.n_inside = 0
        self.slot = -1
        self.entered_ns = 0
        self.high_water_bytes = -1
        self.cpu_ns = self.inner_cpu_ns = self.inner_wall_ns = 0


_current: ContextVar[_Frame | None] = ContextVar("gpu_tracker_region", default=None)


class _Board:
    """All regions of this process, for one tracker."""

    def __init__(self, place: str) -> None:
        self._writer = BoardWriter(place)
        self._memory = self._writer.memory
        self._slots = self._writer.slots
        self._lock = RLock()  # a signal handler may enter a region while its thread is entering another
        self._outermost: dict[str, _Record] = {}
        self._free_slots = list(range(MOST_SLOTS - 1, -1, -1))
        self._innermost: list[_Frame] = []
        self._cpu_ns = time.process_time_ns()
        self._cpu_read_ns = 0
        self._ram_ns = 0
        self._is_ram_fresh = False
        self._rss_bytes = self._high_water_bytes = -1
        self._ram_fd = _open_status()
        self.is_closed = False

    def enter(self, owner: region) -> None:
        """The call of a region begins."""
        outer = _current.get()
        while outer is not None and not outer.is_open:
            outer = outer.outer
        with self._lock:
            is_inside = outer is not None and outer.board is self
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
            if not record.first_ns:
                record.first_ns = now
            if now - self._ram_ns > _RAM_EVERY_NS:
                self._read_ram(now)
            if self._is_ram_fresh:
                record.entry_ram_bytes, frame.high_water_bytes = self._rss_bytes, self._high_water_bytes
        _current.set(frame)

    def leave(self, frame: _Frame) -> None:
        """The call of a region ends, whichever way."""
        now = time.monotonic_ns()
        outer = frame.outer
        while outer is not None and not outer.is_open:
            outer = outer.outer
        with self._lock:
            self._share_cpu(now)
            frame.is_open = False
            around = outer if outer is not None and outer.board is self else None
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
        if _current.get() is frame:
            _current.set(outer)

    def _make_frame(self, owner: region, outer: _Frame | None, is_inside: bool) -> _Frame | None:
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
            if self._ram_fd >= 0:
                os.close(self._ram_fd)
                self._ram_fd = -1

    def _add_up(self, frame: _Frame, now_ns: int, around: _Frame | None) -> None:
        record = frame.record
        wall = now_ns - frame.entered_ns
        cpu = frame.cpu_ns + frame.inner_cpu_ns
        record.calls += 1
        record.own_cpu_ns += frame.cpu_ns
        if wall > frame.inner_wall_ns:
            record.own_wall_ns += wall - frame.inner_wall_ns
        if not frame.is_recursion:  # else it is a part of the call around it
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
        if now_ns - self._ram_ns > _RAM_EVERY_NS:
            self._read_ram(now_ns)
        elif self._ram_ns < frame.entered_ns:
            self._is_ram_fresh = False  # whatever this call did to the memory has not been seen
        if self._is_ram_fresh:
            self._take_ram(frame)
        self._publish(record)

    def _take_ram(self, frame: _Frame) -> None:
        """The memory at the end of a call, and its peak if the kernel's mark has risen meanwhile."""
        record = frame.record
        record.exit_ram_bytes, high_water = self._rss_bytes, self._high_water_bytes
        # Of a call that began without a reading nobody knows whether the mark rose before it.
        if 0 <= frame.high_water_bytes < high_water > record.peak_ram_bytes:
            record.peak_ram_bytes = high_water

    def _publish(self, record: _Record) -> None:
        NUMBERS.pack_into(
            self._memory,
            record.offset,
            record.calls,
            record.wall_ns,
            record.shortest_ns,
            record.longest_ns,
            record.squared_seconds,
            record.own_wall_ns,
            record.cpu_ns,
            record.own_cpu_ns,
            record.entry_ram_bytes,
            record.exit_ram_bytes,
            record.peak_ram_bytes,
            record.first_ns,
            record.last_ns,
        )

    def _share_cpu(self, now_ns: int) -> None:
        """What the process has used since the last event belongs to the regions that it was in."""
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
        """The record of a region here, made if it is new; None if there are too many."""
        known = self._outermost if around is None else around.inner
        record = known.get(name)
        if record is None:
            number = self._writer.add_region(0 if around is None else around.number, name)
            if not number:
                return None
            record = known[name] = _Record(name, around, number)
            self._publish(record)
        return record

    def _adopt(self, record: _Record) -> _Record | None:
        """A region that this process was forked in, as one of its own."""
        around = None if record.parent is None else self._adopt(record.parent)
        return self._find(around, record.name)

    def _read_ram(self, now_ns: int) -> None:
        """Resident memory of this process and the kernel's high-water mark; -1 where they cannot be read."""
        self._ram_ns = now_ns
        self._is_ram_fresh = True
        try:
            status = os.pread(self._ram_fd, 2048, 0)
        except OSError:
            return
        self._rss_bytes, self._high_water_bytes = (
            _find_kib(status, b"\nVmRSS:"),
            _find_kib(status, b"\nVmHWM:"),
        )


class region:  # noqa: N801 - a word of the public surface, used like a keyword
    """A named stretch of the job: a `with` block, or every call of a function that is decorated with it.

    Its calls, time, CPU, memory and what the GPUs did meanwhile are in the recording and the report. Regions may be
    nested, recursive, in threads, in coroutines and in worker processes. Without a tracker it does nothing.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        if callable(name):
            raise TypeError('A region needs a name: @gput.region("name").')
        self.name = str(name)

    def __enter__(self) -> Self:
        if _place is not None:
            board = _board or _open_board()
            if board is not None:
                board.enter(self)
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        frame = _current.get()
        # A generator that was left in the middle may have put another one on top.
        while frame is not None and (frame.owner is not self or not frame.is_open):
            frame = frame.outer
        if frame is not None and frame.board is _board and not frame.board.is_closed:
            frame.board.leave(frame)

    def __call__(self, function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        """The function, with each call a call of the region."""
        name = self.name
        if _has_flag(function, _COROUTINE):

            @functools.wraps(function)
            async def mark_coroutine(*arguments: Any, **options: Any) -> Any:
                with region(name):
                    return await function(*arguments, **options)  # type: ignore[misc]

            return mark_coroutine  # type: ignore[return-value]

        if _has_flag(function, _GENERATOR):

            @functools.wraps(function)
            def mark_generator(*arguments: Any, **options: Any) -> Any:
                return _mark_steps(name, function(*arguments, **options))  # type: ignore[arg-type]

            return mark_generator

        @functools.wraps(function)
        def mark(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
            with region(name):
                return function(*arguments, **options)

        return mark


class _Metrics:
    """Numbers that the job logs, on their way to the sampler."""

    def __init__(self, place: str) -> None:
        self._path = f"{place}/{os.getpid()}-{os.urandom(2).hex()}{METRICS_SUFFIX}"
        self._fd = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_WRONLY, 0o600)
        from json import JSONEncoder

        self._encode = JSONEncoder(separators=(",", ":")).encode
        self._lock = RLock()  # another thread may still log when the descriptor is somebody else's already

    def add(self, step: float | None, values: dict[str, float]) -> None:
        """One row, written at once: whoever is killed has lost nothing."""
        line = f"{self._encode((time.monotonic_ns(), step, values))}\n".encode()
        with self._lock:
            try:
                if self._fd >= 0:
                    os.write(self._fd, line)
            except OSError:
                pass  # no room for numbers is no reason to disturb a training

    def close(self) -> None:
        """No more rows."""
        with self._lock:
            os.close(self._fd)
            self._fd = -1


def log(*, step: float | None = None, **values: float) -> None:
    """Keep numbers of the job itself (loss, accuracy...) beside what it uses, on the same time axis."""
    global _metrics
    if _place is None:
        return
    numbers = _to_numbers(values if step is None else {**values, _STEP: step})
    if _metrics is None:
        try:
            _metrics = _Metrics(_place)
        except OSError:
            return
        _watch_frameworks(_place)
    _metrics.add(numbers.pop(_STEP, None), numbers)


def _to_numbers(values: dict[str, float]) -> dict[str, float]:
    """What is a number. The rest is said once and left out: a training must not end because it is watched."""
    numbers = {}
    for name, value in values.items():
        try:
            numbers[name] = float(value)
        except Exception:  # noqa: BLE001 - what a tensor or a wrapper raises is its own affair
            _complain(name, value)
    return numbers


def _complain(name: str, value: object) -> None:
    if name not in _complaints:
        _complaints.add(name)
        import logging

        kind = type(value).__name__
        logging.getLogger("gpu_tracker").warning(
            "gput.log: %s of type %s is no number and is left out.", name, kind
        )


_complaints: set[str] = set()


# ---- Where this process's board is.

_place: str | None = os.environ.get(PLACE_VARIABLE) or None
_board: _Board | None = None
_metrics: _Metrics | None = None
_watch: FrameworkWatch | None = None
_opening = RLock()


def open_place(place: str) -> None:
    """A tracker in this process begins: its regions, and those of its children, go there from now on."""
    global _place
    close_place()
    _place = place
    os.environ[PLACE_VARIABLE] = place
    _watch_frameworks(place, was_running_before=True)


def close_place(outer: str | None = None) -> None:
    """It has ended; a tracker around it, if there is one, takes over again."""
    global _place, _board, _metrics, _watch
    _flush()
    _place, _board, _metrics, _watch = outer, None, None, None
    if outer is None:
        os.environ.pop(PLACE_VARIABLE, None)
    else:
        os.environ[PLACE_VARIABLE] = outer


def _open_board() -> _Board | None:
    global _board, _place
    with _opening:
        if _board is None and _place is not None:
            try:
                _board = _Board(_place)
            except (OSError, ValueError):
                _place = None  # the tracker has gone, or there is no room
            else:
                _watch_frameworks(_place)
        return _board


def _watch_frameworks(
    place: str, *, was_running_before: bool = False, is_being_imported: bool = False
) -> None:
    """From now on, if there is anything to watch."""
    global _watch
    if _watch is None and (is_being_imported or any(name in sys.modules for name in _FRAMEWORKS)):
        from .frameworks import FrameworkWatch, is_worth_watching

        if is_being_imported or is_worth_watching(sys.modules):
            _watch = FrameworkWatch(place, was_running_before=was_running_before)
            _watch.start()


class _ImportNotice:
    """Stands first in line when a module is looked for, finds nothing, and notices that a framework is wanted."""

    def find_spec(self, name: str, *_: object) -> None:
        """Always nothing: those behind will find it."""
        if name in _FRAMEWORKS:
            sys.meta_path.remove(self)
            if _place is not None:
                _watch_frameworks(_place, is_being_imported=True)


def expect_frameworks() -> None:
    """Watch frameworks as soon as one is imported, in a program that does not know of us."""
    if _place is not None:
        sys.meta_path.insert(0, _ImportNotice())


def _forget_after_fork() -> None:
    """A forked child has a board of its own."""
    global _board, _metrics, _watch, _opening
    _board, _metrics, _watch, _opening = None, None, None, RLock()


def _flush() -> None:
    """Everything that is to be said from here has been said."""
    if _place is not None:
        _watch_frameworks(_place)
    for written in (_board, _metrics, _watch):
        if written is not None:
            written.close()


def _find_kib(status: bytes, field: bytes) -> int:
    start = status.find(field)
    return -1 if start < 0 else int(status[start + len(field) :].split(maxsplit=1)[0]) * 1024


def _open_status() -> int:
    try:
        return os.open("/proc/self/status", os.O_RDONLY)
    except OSError:
        return -1


def _has_flag(function: object, flag: int) -> bool:
    return bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & flag)


def _mark_steps(name: str, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """A generator, each step of it a call of the region: what is done between two of them is not its work."""
    step, given = generator.send, None
    while True:
        with region(name):
            try:
                made = step(given)
            except StopIteration as end:
                return end.value
        try:
            step, given = generator.send, (yield made)
        except GeneratorExit:
            generator.close()
            raise
        except BaseException as error:  # noqa: BLE001 - thrown into us, so it is thrown into it
            step, given = generator.throw, error


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
atexit.register(_flush)
