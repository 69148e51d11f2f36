"""Where recordings are: files, directories of them, patterns."""

from __future__ import annotations

import os

from ..core.errors import RecordingError
from .naming import SUFFIX


def find_recordings(place: str) -> list[str]:
    """The recordings that a place means, by name: a file is itself, a directory is what lies in it."""
    if os.path.isdir(place):
        try:
            names = sorted(name for name in os.listdir(place) if name.endswith(SUFFIX))
        except OSError as error:
            raise RecordingError(f"Cannot read {place}: {error.strerror}.") from None
        return [path for name in names if not _is_something_else(path := os.path.join(place, name))]
    if not os.path.exists(place) and any(letter in place for letter in "*?["):
        from glob import glob

        return [path for found in sorted(glob(place)) for path in find_recordings(found)]
    return [place]


def _is_something_else(path: str) -> bool:
    """A directory or, worse, a pipe, which would keep us waiting; a link to nowhere is a damaged file."""
    return os.path.exists(path) and not os.path.isfile(path)


def name_place(place: str) -> str:
    """The last part of it, without the suffix."""
    return os.path.basename(os.path.normpath(place)).removesuffix(SUFFIX)
