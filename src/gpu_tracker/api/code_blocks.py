"""`SubTracker` and `sub_track`, gpu-tracker 5's names for regions. They also write its sub-tracking file.

New programs use `region`, which needs no file. Nothing that happens to the file is raised into the program.
"""

from __future__ import annotations

import os
from _thread import RLock
from sys import _getframe
from time import time

from ..core.config import check_path
from ..core.errors import KindError
from ..core.notices import warn_once
from ..core.sub_tracking import BEGIN, END, BlockEvent
from ..instrument.mishaps import is_ours
from ..recording.sub_tracking import append_events, create_block_file
from ..recording.tracking_file import check_tracking_name
from .decorating import wrap_call
from .regions import region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, ParamSpec, TypeVar

    from typing_extensions import Self

    _Parameters = ParamSpec("_Parameters")
    _Result = TypeVar("_Result")

# Rows that cannot be written now (a full disk, a locked database) are written with a later one. Beyond this, none are.
_MOST_HELD = 1000


class _BlockFile:
    """A sub-tracking file that this process, or one that it was forked from, has begun."""

    def __init__(self, path: str, may_replace: bool) -> None:
        self._path = path
        self._may_replace = may_replace
        self._has_begun = False
        self._is_given_up = False
        self._held: list[BlockEvent] = []
        self._lock = RLock()

    def free(self) -> None:
        """In a forked process nobody holds it: whoever did is not there."""
        self._lock = RLock()

    def add(self, name: str, position: int) -> None:
        """Write a row, or keep it for later. Does not raise what is not the program's."""
        if self._is_given_up:
            return
        self._held.append(BlockEvent(os.getpid(), name, position, time()))
        try:
            with self._lock:  # threads may begin their first block together
                self._begin()
                self._write()
        except RecursionError:
            pass  # it is written with the next one
        except Exception as error:
            if not is_ours(error):
                raise
            self._bear(error)

    def flush(self) -> None:
        """The last chance to write what could not be written, when the program ends."""
        try:
            self._write()
        except OSError as error:
            self._give_up(f"{len(self._held)} rows are lost: {error.strerror or error}")

    def _begin(self) -> None:
        if not self._has_begun:
            create_block_file(self._path, may_replace=self._may_replace)
            self._has_begun = True

    def _write(self) -> None:
        """In whichever thread: each row is taken by one of them."""
        taken: list[BlockEvent] = []
        try:
            while self._held:
                taken.append(self._held.pop(0))
            if taken:
                append_events(self._path, taken)
        except BaseException:
            self._held[:0] = taken
            raise

    def _bear(self, error: Exception) -> None:
        if isinstance(error, FileExistsError):
            self._give_up("it already exists; set overwrite=True to replace it, or choose another name")
        elif not self._has_begun or len(self._held) >= _MOST_HELD:
            self._give_up(getattr(error, "strerror", None) or str(error))
        elif len(self._held) == 1:
            import atexit

            atexit.register(self.flush)

    def _give_up(self, reason: str) -> None:
        self._is_given_up = True
        self._held.clear()
        warn_once(f"Code blocks are not written to {self._path}: {reason}. The report still has them.")


_files: dict[str, _BlockFile] = {}


def _free_after_fork() -> None:
    for file in _files.values():
        file.free()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_after_fork)


def _find_file(path: str, may_replace: bool) -> _BlockFile:
    """The same for all that name it; only the first of them may replace what was there before."""
    try:
        path = os.path.abspath(path)
    except OSError:
        pass  # the current directory is gone: the first row will say so
    return _files.setdefault(path, _BlockFile(path, may_replace))


class SubTracker(region):
    """A code block of gpu-tracker 5: a region that also writes when it begins and ends to `sub_tracking_file`.

    The file (.csv or .sqlite; by default the process ID with `.csv`) is for `gpu-tracker sub-track analyze`, beside the tracking
    file. The name is that of the region; by default the file and `code_block_attribute`, or the line.
    """

    __slots__ = ("_file", "process_id", "sub_tracking_file")

    _depth = 2

    def __init__(
        self,
        code_block_name: str | None = None,
        code_block_attribute: str | None = None,
        sub_tracking_file: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> None:
        if code_block_name is None:
            caller = _getframe(1)
            code_block_name = _name_block(
                caller.f_code.co_filename,
                caller.f_lineno if code_block_attribute is None else code_block_attribute,
            )
        super().__init__(code_block_name)
        self.process_id = os.getpid()
        self.sub_tracking_file = _choose_path(sub_tracking_file)
        self._file = _find_file(self.sub_tracking_file, overwrite)

    @property
    def code_block_name(self) -> str:
        """The name of the region."""
        return self.name

    def __enter__(self) -> Self:
        self._file.add(self.name, BEGIN)
        return super().__enter__()

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        super().__exit__(exception_type, exception, traceback)
        self._file.add(self.name, END)


def sub_track(
    code_block_name: str | None = None,
    code_block_attribute: str | None = None,
    sub_tracking_file: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """Decorate a function so that each call is a code block; the arguments are those of `SubTracker`.

    The default name is the file and `code_block_attribute`, or the name of the function. A call of a coroutine or a generator
    lasts from its first step to its end.
    """
    if callable(code_block_name):
        raise KindError("sub_track needs parentheses: @gput.sub_track().")
    _choose_path(sub_tracking_file)  # refuse a wrong name here, not at the first call

    def decorate(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        name = code_block_name
        if name is None:
            attribute = code_block_attribute or getattr(function, "__name__", type(function).__name__)
            name = _name_block(_getframe(1).f_code.co_filename, attribute)
        decorated: Callable[_Parameters, _Result] = _decorate(function, name, sub_tracking_file, overwrite)
        return decorated

    return decorate


def _decorate(function: Any, name: str, path: str | os.PathLike[str] | None, may_replace: bool) -> Any:
    if isinstance(function, classmethod | staticmethod):
        return type(function)(_decorate(function.__func__, name, path, may_replace))
    block = region(name)
    return wrap_call(block(function), lambda: _Call(block.name, _find_file(_choose_path(path), may_replace)))


class _Call:
    """One call of a decorated function, as the file has it."""

    __slots__ = ("_file", "_name")

    def __init__(self, name: str, file: _BlockFile) -> None:
        self._name = name
        self._file = file

    def __enter__(self) -> None:
        self._file.add(self._name, BEGIN)

    def __exit__(self, *_: object) -> None:
        self._file.add(self._name, END)


def _choose_path(path: str | os.PathLike[str] | None) -> str:
    if path is None:
        return f"{os.getpid()}.csv"
    path = check_path("sub_tracking_file", path)
    check_tracking_name(path)
    return path


def _name_block(file: str, attribute: object) -> str:
    try:
        file = os.path.relpath(file)
    except (OSError, ValueError):
        pass  # the current directory is gone
    return f"{file}:{attribute}"
