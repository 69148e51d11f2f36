"""A file that appears whole or not at all."""

from __future__ import annotations

import os
from contextlib import contextmanager

from ..errors import TrackerError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def drafted(path: str, *, may_replace: bool) -> Iterator[str]:
    """The path of a new empty file beside `path`, which takes its place if all goes well."""
    place = os.path.realpath(path)
    draft = f"{place}.{os.getpid()}.tmp"
    try:
        _refuse_existing(place, path, may_replace)
        # Never through a link that somebody else has put there.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        raise UsageError(f"Cannot write to {path}: {error.strerror}.") from None
    try:
        yield draft
        _refuse_existing(place, path, may_replace)
        os.replace(draft, place)
    except OSError as error:
        raise TrackerError(f"Cannot write to {path}: {error.strerror or error}.") from None
    finally:
        if os.path.exists(draft):
            os.unlink(draft)


def _refuse_existing(place: str, path: str, may_replace: bool) -> None:
    if os.path.isdir(place):
        raise UsageError(f"Cannot write to {path}: it is a directory.")
    if os.path.exists(place) and not os.path.isfile(place):
        raise UsageError(f"Cannot write to {path}: it is no ordinary file.")
    if os.path.exists(place) and not may_replace:
        raise UsageError(f"{path} exists already.", "Use --overwrite to replace it.")
