"""Writing a recording: whole lines, one `write` each, appended; nothing that a kill can spoil.

No locks, no renames, no rewriting: network file systems keep what they promise only for appends.
"""

from __future__ import annotations

import os
import time

from ..model import Peaks
from .schema import encode_end, encode_header, encode_mark, encode_sample

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..model import End, Header, Mark, Sample


def create(path: str) -> int:
    """Make a new file that only its owner may read, and give its descriptor."""
    directory = os.path.dirname(path)
    if directory:
        os.makedirs(directory, exist_ok=True)
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_RDWR, 0o600)


def name_in_directory(directory: str, command: Sequence[str], pid: int) -> str:
    """A name that tells when, what and which: `20260131-235959-train.py-4242.jsonl`."""
    words = [os.path.basename(word) for word in command if not word.startswith("-")]
    # For `python train.py` the script says more than the interpreter.
    word = words[1] if len(words) > 1 and words[0].startswith("python") else (words or ["job"])[0]
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in word)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return os.path.join(directory, f"{stamp}-{safe[:40] or 'job'}-{pid}.jsonl")


def create_unnamed() -> int:
    """A recording for the time being: the totals must survive the sampler even if no file was asked for."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("gpu-tracker")
    import tempfile

    fd, path = tempfile.mkstemp(prefix="gpu-tracker-")
    os.unlink(path)
    return fd


class Writer:
    """Appends lines to a descriptor. A line that cannot be written is the caller's to keep."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._written_peaks = Peaks()
        self._has_torn_line = False

    def write_header(self, header: Header) -> None:
        """The first line."""
        self._write("header", encode_header(header))

    def write_sample(self, sample: Sample) -> None:
        """A window."""
        self._write("sample", encode_sample(sample, self._written_peaks))
        self._written_peaks = sample.peaks

    def write_mark(self, mark: Mark) -> None:
        """An instant."""
        self._write("mark", encode_mark(mark))

    def write_end(self, end: End) -> None:
        """The last line."""
        self._write("end", encode_end(end))

    def is_deleted(self) -> bool:
        """Whether somebody has removed the file."""
        return os.fstat(self._fd).st_nlink == 0

    def _write(self, kind: str, data: dict[str, Any]) -> None:
        import json  # here, because the sampler must be ready before it has paid for this import

        text = json.dumps({kind: data}, separators=(",", ":"))
        line = f"\n{text}\n" if self._has_torn_line else f"{text}\n"
        content = line.encode()
        self._has_torn_line = True
        written = os.write(self._fd, content)
        if written < len(content):
            raise OSError(28, os.strerror(28))
        self._has_torn_line = False
