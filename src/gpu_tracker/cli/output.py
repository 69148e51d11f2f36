"""Where results go: a file, written completely or not at all, or a stream. Checked before the job starts."""

from __future__ import annotations

import errno
import os
import stat

from ..core.errors import TrackerError, UsageError
from ..reports.contract import PLOTTED, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..analysis.limits import Gate

_STREAMS = {1: "standard output", 2: "standard error"}


class Output:
    """A destination: a file, `-` for standard output, or None for the command's usual stream."""

    def __init__(self, path: str | None) -> None:
        self._fd = 1 if path == "-" else None
        self._path: str | None = None
        if path is None or path == "-":
            return
        # Follow links; but /dev/stdout is not a file to replace, whatever it leads to.
        try:
            self._path = os.path.realpath(path)
        except OSError as error:  # of a directory that is no more
            raise UsageError(f"Cannot write to {path}: {error.strerror}.") from None
        self._fd = next((fd for fd in (1, 2) if _is_same(path, fd)), None)
        if self._fd is None:
            problem = _why_not(self._path)
            if problem:
                raise UsageError(f"Cannot write to {path}: {os.strerror(problem)}.")
        _refuse_recording(path)

    @property
    def is_file(self) -> bool:
        """Whether the user named a file."""
        return self._path is not None

    def find_view(self, otherwise: int) -> View:
        """What the destination can show; `otherwise` is the descriptor to use where the user named nothing."""
        from ..live.abilities import has_colour, has_unicode, read_size

        fd = self._find_stream(otherwise)
        if fd is None:
            return View()
        return View(
            read_size(fd)[0] if os.isatty(fd) else None, has_unicode=has_unicode(), has_colour=has_colour(fd)
        )

    def refuse_binary(self, format_name: str, otherwise: int) -> None:
        """UsageError if the result is not text, but would go to a terminal."""
        fd = self._find_stream(otherwise)
        if format_name in PLOTTED and fd is not None and os.isatty(fd):
            raise UsageError(
                f"A terminal cannot show {format_name.upper()}: name a file with -o report.{format_name}."
            )

    def _find_stream(self, otherwise: int) -> int | None:
        """The descriptor to write to; None for a file."""
        if self._fd is not None:
            return self._fd
        return otherwise if self._path is None else None

    def write(self, text: str | bytes, otherwise: int) -> None:
        """Write it; `otherwise` is the descriptor to use where the user named nothing."""
        content = encode(text)
        if self._path is None or self._fd is not None:
            write_all(otherwise if self._fd is None else self._fd, content)
            return
        try:
            if os.path.exists(self._path) and not os.path.isfile(self._path):
                with open(self._path, "wb") as device:
                    device.write(content)
            else:
                _replace(self._path, content)
        except OSError as error:
            raise TrackerError(f"Cannot write to {self._path}: {error.strerror}.") from None

    def append(self, text: str | bytes, otherwise: int) -> None:
        """Write it after what is there."""
        if self._path is None or self._fd is not None:
            self.write(text, otherwise)
            return
        _refuse_recording(self._path)  # it may have become one
        try:
            with open(self._path, "ab") as file:
                file.write(encode(text))
        except OSError as error:
            raise TrackerError(f"Cannot write to {self._path}: {error.strerror}.") from None


def refuse_same(path: str | None, files: Iterable[str], what: str = "recording") -> None:
    """UsageError if the result would replace what it is made of, or what is made beside it."""
    if path is not None and any(_is_one_file(path, file) for file in files):
        raise UsageError(f"{path} is the {what} itself.")


def _is_one_file(path: str, other: str) -> bool:
    """Under whatever names; files that are still to be made have only those."""
    try:
        return os.path.realpath(path) == os.path.realpath(other) or os.path.samefile(path, other)
    except OSError:
        return False


def _refuse_recording(path: str) -> None:
    if os.path.exists(path):
        from ..recording.find import refuse_recording  # most results are new files

        refuse_recording(path)


def write_all(fd: int, text: str | bytes) -> None:
    """Write to a stream. A pipe whose reader has gone (`| head`) is no error; any other failure is."""
    content = encode(text)
    try:
        while content:
            content = content[os.write(fd, content) :]
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise TrackerError(f"Cannot write to {_STREAMS[fd]}: {error.strerror}.") from None


def say(text: str, result: str | bytes = b"") -> None:
    """Print a line to standard error, followed by a result that could not be written elsewhere."""
    from ..core.text import neutralize

    try:
        write_all(2, encode(f"gpu-tracker: {neutralize(text)}\n") + encode(result))
    except TrackerError:
        pass  # nowhere left to report it


def say_gate(gate: Gate) -> int:
    """Print what came of limits to standard error; the exit code."""
    for sentence in (*gate.tolerated, *gate.unchecked, *gate.broken):
        say(sentence)
    return gate.exit_code


def _is_same(path: str, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except OSError:
        return False


def _why_not(path: str) -> int:
    """The errno that writing there would give, or 0."""
    if os.path.isdir(path):
        return errno.EISDIR
    directory = os.path.dirname(path)
    if not os.path.isdir(directory):
        return errno.ENOTDIR if os.path.exists(directory) else errno.ENOENT
    is_new = not os.path.exists(path) or stat.S_ISREG(os.stat(path).st_mode)
    may_write = os.access(directory, os.W_OK | os.X_OK) if is_new else os.access(path, os.W_OK)
    return 0 if may_write else errno.EACCES


def encode(text: str | bytes) -> bytes:
    """The bytes to write."""
    return text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text


def _replace(path: str, content: bytes) -> None:
    from ..exports.draft import drafted

    with drafted(path, may_replace=True) as draft, open(draft, "wb") as file:
        file.write(content)
