"""Find recordings by file, directory or pattern."""

from __future__ import annotations

import os

from ..core.errors import RecordingError, UsageError
from .lock import is_held
from .naming import SUFFIX
from .schema import HEADER_START

_HEAD_BYTES = 64


def find_recordings(path: str) -> list[str]:
    """The recordings at a path: the file itself, those in a directory, or the matches of a pattern."""
    if os.path.isdir(path):
        try:
            names = sorted(name for name in os.listdir(path) if name.endswith(SUFFIX))
        except OSError as error:
            raise RecordingError(f"Cannot read {path}: {error.strerror}.") from None
        return [found for name in names if not _is_not_a_file(found := os.path.join(path, name))]
    if not os.path.exists(path) and any(letter in path for letter in "*?["):
        from glob import glob

        return [found for match in sorted(glob(path)) for found in find_recordings(match)]
    return [path]


def _is_not_a_file(path: str) -> bool:
    """A directory or a pipe, which could block. A broken link is reported as damaged."""
    return os.path.exists(path) and not os.path.isfile(path)


def refuse_recording(path: str) -> None:
    """UsageError if a file that is about to be written is a recording: nothing ever replaces one, or adds to it."""
    if is_recording(path):
        raise UsageError(f"{path} is a recording, which is never overwritten.", "Name another file.")


def is_recording(path: str) -> bool:
    """Whether a file has the header of a recording, even a torn one, or is about to get it."""
    if not os.path.isfile(path):
        return False  # a pipe could block
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
            if not head:  # one that has just begun, if its writer holds it
                return bool(is_held(file.fileno()))
    except OSError:
        return False
    # On one line: a report as JSON has a header too, on many.
    first_line = head.lstrip().partition(b"\n")[0]
    return b"".join(first_line.split()).startswith(HEADER_START)


def name_run(path: str) -> str:
    """The last part of a path, without the suffix."""
    return os.path.basename(os.path.normpath(path)).removesuffix(SUFFIX)
