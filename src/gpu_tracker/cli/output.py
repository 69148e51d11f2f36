"""Where results go: a file, written completely or not at all, or a stream. Checked before the job starts."""

from __future__ import annotations

import errno
import os
import stat

from ..core.errors import TrackerError, UsageError
from ..reports.contract import View

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

    @property
    def is_file(self) -> bool:
        """Whether the user named a file."""
        return self._path is not None

    def find_view(self, otherwise: int) -> View:
        """What the destination can show; `otherwise` is the descriptor to use where the user named nothing."""
        from ..live.abilities import has_colour, has_unicode, is_screen, read_size

        fd = otherwise if self._fd is None else self._fd
        if (self._path is not None and self._fd is None) or not is_screen(fd):
            return View(has_unicode=self._path is not None or has_unicode())
        return View(read_size(fd)[0], has_unicode(), has_colour(fd))

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
        try:
            with open(self._path, "ab") as file:
                file.write(encode(text))
        except OSError as error:
            raise TrackerError(f"Cannot write to {self._path}: {error.strerror}.") from None


def refuse_recording(path: str | None, recordings: Iterable[str]) -> None:
    """UsageError if the result would replace what it is made of."""
    if path is not None and os.path.realpath(path) in map(os.path.realpath, recordings):
        raise UsageError(f"{path} is the recording itself.")


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
