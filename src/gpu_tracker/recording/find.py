"""Find recordings by file, directory or pattern."""

from __future__ import annotations

import os

from ..core.errors import RecordingError
from .naming import SUFFIX


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


def name_run(path: str) -> str:
    """The last part of a path, without the suffix."""
    return os.path.basename(os.path.normpath(path)).removesuffix(SUFFIX)
