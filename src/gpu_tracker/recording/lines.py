"""The lines of a file that may be large, damaged or hostile, read once in full and again by offset."""

from __future__ import annotations

import os
import stat

from ..core.errors import RecordingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

# Valid lines are far shorter; a longer one is skipped without being held in memory.
LONGEST_LINE_BYTES = 8 * 2**20
_BUFFER_BYTES = 2**20
_NONSENSE = b"\xff"


class LineFile:
    """A file that can be read more than once. It is not kept open: there may be many recordings."""

    def __init__(self, name: str, open_file: Callable[[], BinaryIO]) -> None:
        self.name = name
        self._open_file = open_file
        self._identity: tuple[int, int] | None = None

    def read_all(self) -> Iterator[tuple[int, bytes]]:
        """Every line with its offset, newline included. A line that is too long is replaced by an invalid one."""
        with self._open() as file:
            offset = 0
            while line := file.readline(LONGEST_LINE_BYTES):
                length = len(line)
                if length == LONGEST_LINE_BYTES and not line.endswith(b"\n"):
                    line = _NONSENSE
                    while rest := file.readline(LONGEST_LINE_BYTES):
                        length += len(rest)
                        if rest.endswith(b"\n"):
                            line += b"\n"
                            break
                yield offset, line
                offset += length

    def read_back(self, offsets: Iterable[int]) -> Iterator[bytes]:
        """The lines at these offsets."""
        with self._open() as file:
            position = 0
            for offset in offsets:
                if offset != position:
                    file.seek(offset)
                line = file.readline(LONGEST_LINE_BYTES)
                position = offset + len(line)
                yield line

    def _open(self) -> BinaryIO:
        try:
            file = self._open_file()
        except OSError as error:
            raise RecordingError(f"Cannot read {self.name}: {error.strerror or error}.") from None
        status = os.fstat(file.fileno())
        identity = status.st_dev, status.st_ino
        self._identity = self._identity or identity
        if self._identity != identity:
            file.close()
            raise RecordingError(f"{self.name} was replaced by another file after it was loaded.")
        return file


def open_path(path: str) -> BinaryIO:
    """Open a regular file; pipes and devices, which cannot be read twice or never end, are refused."""
    try:
        # Non-blocking: opening a pipe without a writer would wait forever.
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except ValueError as error:  # a null byte in the name
        raise RecordingError(f"Cannot read {path!r}: {error}.") from None
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        what = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise RecordingError(f"Cannot read {path}: it is {what}.")
    return open(fd, "rb", buffering=_BUFFER_BYTES)


def open_descriptor(fd: int) -> BinaryIO:
    """A file without a name, from its start."""
    os.lseek(fd, 0, os.SEEK_SET)
    return open(os.dup(fd), "rb", buffering=_BUFFER_BYTES)
