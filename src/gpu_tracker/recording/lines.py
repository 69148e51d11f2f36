"""The lines of a file that may be large, damaged or hostile, read once in full and again by offset."""

from __future__ import annotations

import os
import stat
from io import BytesIO
from itertools import repeat

from ..core.errors import RecordingError
from ..core.system import posix
from .lock import is_held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import BinaryIO

# Valid lines are far shorter; a longer one is skipped without being held in memory.
LONGEST_LINE_BYTES = 8 * 2**20
_BUFFER_BYTES = 2**20
# Little enough to stay in the processor's cache.
_BLOCK_BYTES = 2**16
_CHUNK_BYTES = 2**15
_MOST_BYTES_AT_ONCE = 64 * 2**20
_NONSENSE = b"\xff"
# A recording takes tens of megabytes, in full resolution perhaps a gigabyte; anything can claim to be larger.
_LARGEST_BYTES = 4 * 2**30


class LineFile:
    """A file that can be read more than once. It is not kept open: there may be many recordings."""

    def __init__(self, name: str, open_file: Callable[[], BinaryIO]) -> None:
        self.name = name
        self._open_file = open_file
        self._identity: tuple[int, int] | None = None

    def read_all(self, block_bytes: int = _BLOCK_BYTES) -> Iterator[tuple[int, bytes]]:
        """All lines, many together, with the offset of the first. One that is too long is replaced by an invalid one."""
        with self._open() as file:
            offset = 0
            while block := file.read(block_bytes):
                last = block.rfind(b"\n") + 1
                room = LONGEST_LINE_BYTES - (len(block) - last)
                rest = file.readline(room)
                if len(rest) < room or rest.endswith(b"\n"):
                    yield offset, block + rest
                    offset += len(block) + len(rest)
                    continue
                if last:
                    yield offset, block[:last]
                    offset += last
                elif offset == 0:
                    yield offset, _NONSENSE  # enough to refuse the file
                length, has_end = _skip_line(file, offset)
                yield offset, _NONSENSE + b"\n" * has_end
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

    def read_last(self) -> tuple[int, bytes]:
        """The last line with its offset; nothing if it is too long to be valid."""
        with self._open() as file:
            return read_last_line(file.fileno())

    def read_together(self, offsets: Sequence[int]) -> list[bytes]:
        """The same, at once if they are close together."""
        first, n_bytes = offsets[0], offsets[-1] - offsets[0]
        if n_bytes <= _MOST_BYTES_AT_ONCE:
            with self._open() as file:
                file.seek(first)
                content, last = file.read(n_bytes), file.readline(LONGEST_LINE_BYTES)
            starts = [offset - first for offset in offsets[:-1]]
            ends = list(map(content.find, repeat(b"\n"), starts))
            if -1 not in ends:
                spans = map(slice, starts, map((1).__add__, ends))
                return [*map(content.__getitem__, spans), last]
        return list(self.read_back(offsets))

    def is_written(self) -> bool:
        """Whether somebody on this machine writes it now."""
        with self._open() as file:
            return bool(is_held(file.fileno()))

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


class LineBytes(LineFile):
    """The same of a file that has been read into memory."""

    def __init__(self, name: str, content: bytes) -> None:
        super().__init__(name, lambda: BytesIO(content))

    def is_written(self) -> bool:
        """Not what is in memory."""
        return False

    def _open(self) -> BinaryIO:
        return self._open_file()


def _skip_line(file: BinaryIO, offset: int) -> tuple[int, bool]:
    """Go to the end of the line that began there: its length, and whether it has an end. Holes are not read."""
    fd, position = file.fileno(), file.tell()
    raw_position = os.lseek(fd, 0, os.SEEK_CUR)
    end = 0
    while not end:
        try:
            position = os.lseek(fd, position, getattr(os, "SEEK_DATA", os.SEEK_SET))
        except OSError:  # no more data
            position = os.lseek(fd, 0, os.SEEK_END)
        block = posix.pread(fd, _BUFFER_BYTES, position)
        end = block.find(b"\n") + 1
        position += end or len(block)
        if not block:
            break
    os.lseek(fd, raw_position, os.SEEK_SET)  # where the buffer expects it
    file.seek(position)
    return position - offset, bool(end)


def read_last_line(fd: int) -> tuple[int, bytes]:
    """The last line with its offset; nothing if it is too long to be valid."""
    size = os.fstat(fd).st_size
    length = _CHUNK_BYTES
    while length <= LONGEST_LINE_BYTES:
        start = max(0, size - length)
        tail = posix.pread(fd, size - start, start)
        before = tail.rfind(b"\n", 0, -1)
        if before >= 0 or start == 0:
            return start + before + 1, tail[before + 1 :]
        length *= 4
    return size, b""


def open_path(path: str) -> BinaryIO:
    """Open a regular file; pipes and devices, which cannot be read twice or never end, are refused."""
    try:
        # Non-blocking: opening a pipe without a writer would wait forever.
        fd = posix.open(path, posix.O_RDONLY | posix.O_NONBLOCK)
    except ValueError as error:  # a null byte in the name
        raise RecordingError(f"Cannot read {path!r}: {error}.") from None
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_BYTES:
        os.close(fd)
        raise RecordingError(f"Cannot read {path}: it is {_explain_refusal(status)}.")
    return open(fd, "rb", buffering=_BUFFER_BYTES)


def _explain_refusal(status: os.stat_result) -> str:
    if stat.S_ISREG(status.st_mode):
        return f"too large for a recording ({status.st_size / 2**30:.0f} GiB, at most {_LARGEST_BYTES >> 30})"
    return "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"


def open_descriptor(fd: int) -> BinaryIO:
    """A file without a name, from its start."""
    os.lseek(fd, 0, os.SEEK_SET)
    return open(os.dup(fd), "rb", buffering=_BUFFER_BYTES)
