"""Creates the file of a recording."""

from __future__ import annotations

import errno
import os
import time

from ..core.errors import RecordingError, UsageError
from ..core.model import Identity
from ..core.system import posix
from .naming import SUFFIX, name_in_job, name_recording
from .secrets import mask_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def create(place: str, command: Sequence[str], pid: int, identity: Identity | None = None) -> str:
    """Create a file that only its owner may read: `place` if it has the suffix, else a new name in that directory.

    A part of a job is named by what it is of it.

    UsageError if the user named a file that exists; RecordingError if nothing can be written there.
    """
    path = place
    try:
        path = os.path.abspath(place)
        if not path.endswith(SUFFIX):
            return _create_new_in(path, command, pid, identity or Identity())
        _make_directory(os.path.dirname(path))
        _create(path)
    except FileExistsError:
        raise UsageError(f"{path} already exists.", "A recording never overwrites another.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecordingError(f"Cannot write a recording to {mask_text(path)}: {reason}.") from None
    return path


def _create_new_in(directory: str, command: Sequence[str], pid: int, identity: Identity) -> str:
    """The first free name: equal pids and equal seconds happen, in containers and on the nodes of a cluster."""
    stamp, host = time.strftime("%Y%m%d-%H%M%S"), posix.uname().nodename
    number = 1
    while True:
        name = name_in_job(identity, host, number) or name_recording(command, pid, stamp, number)
        path = os.path.join(directory, name)
        _make_directory(os.path.dirname(path))
        try:
            _create(path)
        except FileExistsError:
            number += 1
        else:
            return path


def _make_directory(path: str) -> None:
    """Somebody else may make it at the same moment."""
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
    except RecursionError:  # one for each part of the path
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG)) from None


def _create(path: str) -> None:
    flags = posix.O_CREAT | posix.O_EXCL | posix.O_APPEND | posix.O_WRONLY
    # No handler of a signal can raise before it is closed again.
    tuple(map(os.close, map(posix.open, (path,), (flags,), (0o600,))))
