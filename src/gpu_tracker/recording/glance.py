"""Reads only the first and last lines of a recording, or what else its totals need: quick enough to list a thousand."""

from __future__ import annotations

import os
from functools import partial
from io import BytesIO

from ..core.errors import WRONG_DATA, RecordingError
from ..core.model import SAMPLER_LOST, Event, Peaks, RecordingData
from ..core.system import posix
from .columns import shape_of
from .contradictions import find_contradictions, is_contradiction
from .lazy import decode_events, decode_line, gather_samples, parse
from .lines import LineFile, open_path, read_last_line
from .liveness import note_liveness
from .reader import read, read_header
from .schema import decode_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from ..core.model import Sample

_CHUNK_BYTES = 2**15
_BLOCK_BYTES = 2**20
_PEAKS = b',"peaks":{'
_EVENT = b'{"event":{'
_SAMPLE = b'{"sample"'
_END = b'{"end"'


def glance(path: str) -> RecordingData:
    """A recording with few of its samples or none: header, devices and totals, whose readings are not all counted."""
    try:
        with open_path(path) as file:
            try:
                return _read_ends(file, path)
            except WRONG_DATA:
                recording = read(_open_lines(path), _read_marked(path))
    except OSError as error:
        raise RecordingError(f"Cannot read {path}: {error.strerror or error}.") from None
    if len(recording.problems) and (recording.end is None or any(map(is_contradiction, recording.problems))):
        # The damaged line may have been the end, or may have held the peaks; or the end was edited.
        raise RecordingError(f"{path} is damaged: {recording.problems[0]}")
    return note_liveness(recording, path)


def _read_ends(file: BinaryIO, path: str) -> RecordingData:
    """Header, events and end. Raises one of WRONG_DATA if they are damaged, not enough, or the end is not last."""
    fd = file.fileno()
    head = posix.pread(fd, _CHUNK_BYTES, 0)
    first, *lines = head[: head.rindex(b"\n")].split(b"\n")
    header, notes = read_header(*parse(first), path)
    tail = posix.pread(fd, _CHUNK_BYTES, max(0, os.fstat(fd).st_size - _CHUNK_BYTES))
    _, last = read_last_line(fd)
    if not last.startswith(_END) or tail.count(b"\n" + _END) > 1:  # of two the first counts
        raise ValueError(last)
    end = decode_line(last, decode_end)
    if end.reason == SAMPLER_LOST and not end.totals.unread_seconds:
        raise ValueError(last)  # the last sample may tell
    events = _decode_events(lines)
    if len(head) == _CHUNK_BYTES and _may_lack_events(events, end.totals.peaks):
        events = _decode_events(line for _, line in _read_marked(path))
    events = (*(Event(0.0, "note", note) for note in notes), *events)
    recording = RecordingData(header, (), events, end, end.totals)
    if find_contradictions(recording, _decode_last_sample(tail, path)):
        raise ValueError(last)  # whoever reads more can say more
    return recording


def _decode_last_sample(tail: bytes, path: str) -> Sample | None:
    """The last sample in the end of a file, with the peaks that are there."""
    samples, _ = gather_samples(path, tail.split(b"\n"), {}, Peaks())
    return samples.last()


def _decode_events(lines: Iterable[bytes]) -> tuple[Event, ...]:
    return tuple(decode_events([line for line in lines if line.startswith(b'{"event"')]))


def _may_lack_events(events: tuple[Event, ...], peaks: Peaks) -> bool:
    """Whether later events matter: a device found late, or a note that its growth is the job's."""
    known = {event.gpu.uuid for event in events if event.gpu is not None}
    return any(
        gpu.uuid not in known or (gpu.grown_bytes and not gpu.job_bytes.combined) for gpu in peaks.gpus
    )


def _open_lines(path: str) -> LineFile:
    return LineFile(path, partial(open_path, path))


def _read_marked(path: str) -> Iterator[tuple[int, bytes]]:
    """All lines at both ends, and in between the events, the end and the samples that may matter, each with its offset."""
    size = os.path.getsize(path)
    for offset, block in _open_lines(path).read_all(_BLOCK_BYTES):
        if offset == 0 or offset + len(block) >= size - _BLOCK_BYTES:
            yield from _split(block, offset)
        else:
            yield from _choose_marked(block, offset)


def _split(block: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    for line in BytesIO(block):
        yield offset, line
        offset += len(line)


def _choose_marked(block: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    """Events, the end, of the samples with the same peaks the last, and the last of all, in order."""
    chosen = _find_last_sample(block)  # many lines of another kind may follow it
    if not chosen and _EVENT not in block and _END not in block:
        return
    lines = block.split(b"\n")
    if _PEAKS in block:
        # All at once, since every line may have peaks.
        last = dict(zip(shape_of(block).split(b"\n"), range(len(lines)), strict=True))
        chosen |= {at for shape, at in last.items() if _PEAKS in shape}
    if _EVENT in block or _END in block:
        chosen |= {at for at, line in enumerate(lines) if line.startswith((_EVENT, _END))}
    before = 0
    for at in sorted(chosen):
        offset += sum(map(len, lines[before:at])) + at - before
        before = at
        yield offset, lines[at] + b"\n"


def _find_last_sample(block: bytes) -> set[int]:
    """Which line it is, if there is one."""
    start = block.rfind(b"\n" + _SAMPLE) + 1
    return {block.count(b"\n", 0, start)} if start or block.startswith(_SAMPLE) else set()
