"""Regions and metrics, from inside the job: `with region("forward"):` and `log(step=3, loss=0.7)`.

Without a tracker they cost next to nothing. With one, they are told to its sampler through files in a place that the
environment names; so they work in every process of the job, however it was started.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import os
import sys
import time
from _thread import RLock

from ..instrument import high_water as own_memory
from ..instrument.mailbox import (
    METRICS_BYTES,
    METRICS_SUFFIX,
    PLACE_VARIABLE,
    find_innermost,
    name_file,
    put_inside,
)
from ..instrument.stack import Board, current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType
    from typing import Any, ParamSpec, TypeVar

    from typing_extensions import Self

    from ..instrument.frameworks import FrameworkWatch

    _Parameters = ParamSpec("_Parameters")
    _Result = TypeVar("_Result")

# From inspect, which is large to import.
_COROUTINE, _GENERATOR = 0x80, 0x20
_FIRST_DESCRIPTOR = 512
_STEP = "step"  # no value can be called so: it is a parameter of its own
# Whose memory on GPUs is worth asking for.
_FRAMEWORKS = ("torch", "jax", "tensorflow")


class region:  # noqa: N801 - a word of the public surface, used like a keyword
    """A named stretch of the job: a `with` block, or every call of a function that is decorated with it.

    Its calls, time, CPU, memory and what the GPUs did meanwhile are in the recording and the report. Regions may be
    nested, recursive, in threads, in coroutines and in worker processes. Without a tracker it does nothing.

    With `exact_peak` the peak of memory is that of the calls themselves, however large the process was before. For that
    the kernel's high-water mark is reset at every call (Linux), so `getrusage` tells the peak since then.
    """

    __slots__ = ("exact_peak", "name")

    def __init__(self, name: str, *, exact_peak: bool = False) -> None:
        if callable(name):
            raise TypeError('A region needs a name: @gput.region("name").')
        self.name = str(name)
        self.exact_peak = exact_peak

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
        frame = current.get()
        # A generator that was left in the middle may have put another one on top.
        while frame is not None and (frame.owner is not self or not frame.is_open):
            frame = frame.outer
        if frame is not None and frame.board is _board and not frame.board.is_closed:
            frame.board.leave(frame)

    def __call__(self, function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        """The function, with each call a call of the region."""
        name, exact_peak = self.name, self.exact_peak
        if _has_flag(function, _COROUTINE):

            @functools.wraps(function)
            async def mark_coroutine(*arguments: Any, **options: Any) -> Any:
                with region(name, exact_peak=exact_peak):
                    return await function(*arguments, **options)  # type: ignore[misc]

            return mark_coroutine  # type: ignore[return-value]

        if _has_flag(function, _GENERATOR):

            @functools.wraps(function)
            def mark_generator(*arguments: Any, **options: Any) -> Any:
                return _mark_steps(region(name, exact_peak=exact_peak), function(*arguments, **options))  # type: ignore[arg-type]

            return mark_generator

        @functools.wraps(function)
        def mark(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
            with region(name, exact_peak=exact_peak):
                return function(*arguments, **options)

        return mark


class _Metrics:
    """Numbers that the job logs, on their way to the sampler."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._fd = self._open()
        self._n_bytes = 0
        from json import JSONEncoder

        self._encode = JSONEncoder(separators=(",", ":")).encode
        self._lock = RLock()

    def add(self, step: float | None, values: dict[str, float]) -> None:
        """One row, written at once: whoever is killed has lost nothing."""
        line = f"{self._encode((time.monotonic_ns(), step, values))}\n".encode()
        with self._lock:
            try:
                if self._n_bytes >= METRICS_BYTES:
                    os.close(self._fd)
                    self._fd = -1
                    self._fd, self._n_bytes = self._open(), 0
                self._n_bytes += os.write(self._fd, line)
            except OSError:
                pass  # no room for numbers is no reason to disturb a training

    def close(self) -> None:
        """No more rows."""
        with self._lock:
            fd, self._fd = self._fd, -1
            try:
                os.close(fd)
            except OSError:
                pass  # the job has closed everything already

    def _open(self) -> int:
        """A new file. The sampler throws away what it has read, so that no training fills the memory."""
        path = name_file(self._place, METRICS_SUFFIX)
        return _move_away(os.open(path, os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_WRONLY, 0o600))


def log(*, step: float | None = None, **values: float) -> None:
    """Keep numbers of the job itself (loss, accuracy...) beside what it uses, on the same time axis."""
    global _metrics
    if _place is None:
        return
    numbers = _to_numbers(values if step is None else {**values, _STEP: step})
    if _metrics is None:
        try:
            _metrics = _Metrics(find_innermost(_place))
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
_board: Board | None = None
_metrics: _Metrics | None = None
_watch: FrameworkWatch | None = None
_opening = RLock()


def open_place(place: str, outer: str | None = None) -> None:
    """A tracker in this process begins: its regions, and those of its children, go there from now on."""
    global _place
    close_place(outer)
    own_memory.note_start(place)
    _place = os.environ[PLACE_VARIABLE] = put_inside(place, outer)
    _watch_frameworks(_place, was_running_before=True)


def close_place(outer: str | None = None) -> None:
    """It has ended; a tracker around it, if there is one, takes over again."""
    global _place, _board, _metrics, _watch
    _flush()
    _place, _board, _metrics, _watch = outer, None, None, None
    if outer is None:
        own_memory.forget_starts()
        os.environ.pop(PLACE_VARIABLE, None)
    else:
        os.environ[PLACE_VARIABLE] = outer


def _open_board() -> Board | None:
    global _board, _place
    with _opening:
        if _board is None and _place is not None:
            try:
                _board = Board(_place)
            except (OSError, ValueError):
                _place = None  # the tracker has gone, or there is no room
            else:
                _watch_frameworks(_place)
        return _board


def _watch_frameworks(
    places: str, *, was_running_before: bool = False, is_being_imported: bool = False
) -> None:
    """From now on, if there is anything to watch."""
    global _watch
    if _watch is None and (is_being_imported or any(name in sys.modules for name in _FRAMEWORKS)):
        from ..instrument.frameworks import FrameworkWatch, is_worth_watching

        if is_being_imported or is_worth_watching(sys.modules):
            _watch = FrameworkWatch(find_innermost(places), was_running_before=was_running_before)
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
    """A forked child has a board of its own, and a mark that begins with its birth."""
    global _board, _metrics, _watch, _opening
    _board, _metrics, _watch, _opening = None, None, None, RLock()
    own_memory.forget_after_fork()


def _flush() -> None:
    """Everything that is to be said from here has been said."""
    if _place is not None:
        _watch_frameworks(_place)
    for written in (_board, _metrics, _watch):
        if written is not None:
            written.close()


def _move_away(fd: int) -> int:
    """The same file by a large number: a job that closes all descriptors gets the small ones again for its own files."""
    try:
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    except OSError:
        return fd  # so large a number is not allowed here
    os.close(fd)
    return moved


def _has_flag(function: object, flag: int) -> bool:
    return bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & flag)


def _mark_steps(marked: region, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """A generator, each step of it a call of the region: what is done between two of them is not its work."""
    step, given = generator.send, None
    while True:
        with marked:
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
