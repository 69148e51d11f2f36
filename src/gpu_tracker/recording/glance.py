"""What a recording says in its first and last lines: enough to list a thousand of them in a moment."""

from __future__ import annotations

import json
import os

from ..errors import RecordingError
from ..model import Peaks, Recording, Totals
from .reader import load
from .schema import VERSION, decode_end, decode_header, decode_mark, decode_peaks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from ..model import Header, Mark

_CHUNK_BYTES = 2**15
_WRONG_DATA = (KeyError, TypeError, ValueError, IndexError, AttributeError)


def glance(path: str) -> Recording:
    """A recording without its samples: header, devices and totals."""
    try:
        with open(path, "rb") as file:
            head = file.read(_CHUNK_BYTES).splitlines(keepends=True)
            header, marks = _read_head(head)
            end = _read_last_line(file)
            if end.startswith(b'{"end"'):
                closing = decode_end(json.loads(end)["end"])
                return Recording(header, (), marks, closing, closing.totals)
            return Recording(header, (), marks, None, _scan(file))
    except OSError as error:
        raise RecordingError(f"Cannot read {path}: {error.strerror or error}.") from None
    except _WRONG_DATA:
        return load(path)  # which forgives what can be forgiven, and says what is wrong with the rest


def _read_head(lines: list[bytes]) -> tuple[Header, tuple[Mark, ...]]:
    header = json.loads(lines[0])["header"]
    if header["version"] != VERSION:
        raise ValueError(header)
    marks = [line for line in lines if line.startswith(b'{"mark"') and _looks_whole(line)]
    return decode_header(header), tuple(decode_mark(json.loads(line)["mark"]) for line in marks)


def _looks_whole(line: bytes) -> bool:
    """A torn line may look so too; then it cannot be parsed, and the file is left to the reader."""
    return line.rstrip().endswith(b"}}")


def _read_last_line(file: BinaryIO) -> bytes:
    """The last line, however long."""
    size = file.seek(0, os.SEEK_END)
    length = _CHUNK_BYTES
    while True:
        start = max(0, size - length)
        file.seek(start)
        tail = file.read(size - start)
        before = tail.rfind(b"\n", 0, len(tail) - 1)
        if before >= 0 or start == 0:
            return tail[before + 1 :]
        length *= 4


def _scan(file: BinaryIO) -> Totals:
    """Without an end: the counters of the last sample, and the peaks of all. Only lines with something new are parsed."""
    peaks = Peaks()
    last: bytes = b""
    looks = 0
    file.seek(0)
    for line in file:
        if not line.startswith(b'{"sample"') or not _looks_whole(line):
            continue
        last = line
        looks += 1
        if b'"peaks"' in line:
            peaks = decode_peaks(json.loads(line)["sample"]["peaks"], peaks)
    if not last:
        return Totals()
    sample: dict[str, Any] = json.loads(last)["sample"]
    main, descendants, system = map(float, sample["cpu"])
    return Totals(float(sample["at"]), main, descendants, system, looks, (), peaks)
