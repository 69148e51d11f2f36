"""Reads only the first and last lines of a recording: enough to list a thousand of them quickly."""

from __future__ import annotations

import os

from ..core.errors import WRONG_DATA, RecordingError
from ..core.model import Event, RecordingData
from .lazy import decode_line, parse
from .lines import LONGEST_LINE_BYTES, open_path
from .reader import load, read_header
from .schema import decode_end, decode_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from ..core.model import Peaks

_CHUNK_BYTES = 2**15


def glance(path: str) -> RecordingData:
    """A recording without its samples: header, devices and totals. One without a proper end is read in full."""
    try:
        with open_path(path) as file:
            try:
                return _read_ends(file, path)
            except WRONG_DATA:
                for _ in _walk(file, path):
                    pass  # raises if a line is too long, which the reader would read to its end
    except OSError as error:
        raise RecordingError(f"Cannot read {path}: {error.strerror or error}.") from None
    recording = load(path)
    if recording.end is None and len(recording.problems):
        # The damaged line may have been the end, or may have held the peaks.
        raise RecordingError(f"{path} is damaged: {recording.problems[0]}")
    return recording


def _read_ends(file: BinaryIO, path: str) -> RecordingData:
    """Header, events and end. Raises one of WRONG_DATA if they are damaged or the end is not last."""
    fd = file.fileno()
    head = os.pread(fd, _CHUNK_BYTES, 0)
    first, *lines = head[: head.rindex(b"\n")].split(b"\n")
    header, notes = read_header(*parse(first), path)
    last = _read_last_line(fd)
    if not last.startswith(b'{"end"'):
        raise ValueError(last)
    end = decode_line(last, decode_end)
    events = _decode_events(lines)
    if len(head) == _CHUNK_BYTES and _may_lack_events(events, end.totals.peaks):
        events = _decode_events(_walk(file, path))
    events = (*(Event(0.0, "note", note) for note in notes), *events)
    return RecordingData(header, (), events, end, end.totals)


def _decode_events(lines: Iterable[bytes]) -> tuple[Event, ...]:
    return tuple(decode_line(line, decode_event) for line in lines if line.startswith(b'{"event"'))


def _may_lack_events(events: tuple[Event, ...], peaks: Peaks) -> bool:
    """Whether later events matter: a device found late, or a note that its growth is the job's."""
    known = {event.gpu.uuid for event in events if event.gpu is not None}
    return any(
        gpu.uuid not in known or (gpu.grown_bytes and not gpu.job_bytes.combined) for gpu in peaks.gpus
    )


def _read_last_line(fd: int) -> bytes:
    """The last line, or nothing if it is too long to be valid."""
    size = os.fstat(fd).st_size
    length = _CHUNK_BYTES
    while length <= LONGEST_LINE_BYTES:
        start = max(0, size - length)
        tail = os.pread(fd, size - start, start)
        before = tail.rfind(b"\n", 0, -1)
        if before >= 0 or start == 0:
            return tail[before + 1 :]
        length *= 4
    return b""


def _walk(file: BinaryIO, path: str) -> Iterator[bytes]:
    """All lines; raises if one is too long to be valid, as in a sparse file."""
    file.seek(0)
    while line := file.readline(LONGEST_LINE_BYTES):
        if len(line) == LONGEST_LINE_BYTES and not line.endswith(b"\n"):
            raise RecordingError(f"{path} is damaged: a line is longer than {len(line) >> 20} MiB.")
        yield line
