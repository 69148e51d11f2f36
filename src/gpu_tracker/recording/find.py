"""Find recordings by file, directory or pattern."""

from __future__ import annotations

import os

from ..core.errors import RecordingError, UsageError
from ..core.model import NO_PROCESS
from ..core.system import posix
from .lock import is_held
from .naming import JOB_PREFIX, SUFFIX, name_directory, name_in_job
from .schema import HEADER_START

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.model import Identity

_HEAD_BYTES = 64
_LONGEST_HEADER_BYTES = 2**20


def find_recordings(path: str) -> list[str]:
    """The recordings at a path: the file itself, those in a directory and those of its jobs, or the matches of a pattern."""
    if os.path.isdir(path):
        return [found for folder in (path, *_list_jobs(path)) for found in _find_in(folder)]
    if not os.path.exists(path) and any(letter in path for letter in "*?["):
        from glob import glob

        return [found for match in sorted(glob(path)) for found in find_recordings(match)]
    return [path]


def find_all(places: Sequence[str], job: str | None = None) -> list[str]:
    """The recordings at all of these paths, each once, or those of one job in these directories. UsageError if there are none."""
    found = [
        path for place in places for path in (find_recordings(place) if job is None else list_job(place, job))
    ]
    if not found:
        of_job = "" if job is None else f" of job {job}"
        raise UsageError(f"There is no recording{of_job} in {', '.join(places)}.")
    return list(dict.fromkeys(found))


def list_job(directory: str, job: str) -> list[str]:
    """The recordings of the job of that number or name in a directory, of all its array tasks and restarts."""
    wanted = name_directory(job)
    own = [path for path in _list_jobs(directory) if _is_of(os.path.basename(path), wanted)]
    return [found for folder in own for found in _find_in(folder)]


def _is_of(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith((f"{wanted}.", f"{wanted}_"))


def _list_jobs(directory: str) -> list[str]:
    names = (name for name in _list_names(directory) if name.startswith(JOB_PREFIX))
    paths = (os.path.join(directory, name) for name in names)
    return [path for path in paths if os.path.isdir(path)]


def _find_in(directory: str) -> list[str]:
    names = (name for name in _list_names(directory) if name.endswith(SUFFIX))
    return [found for name in names if not _is_not_a_file(found := os.path.join(directory, name))]


def _list_names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError as error:
        raise RecordingError(f"Cannot read {directory}: {error.strerror}.") from None


def _is_not_a_file(path: str) -> bool:
    """A directory or a pipe, which could block. A broken link is reported as damaged."""
    return os.path.exists(path) and not os.path.isfile(path)


def refuse_recording(path: str) -> None:
    """UsageError if a file that is about to be written is a recording: nothing ever replaces one, or adds to it."""
    if is_recording(path):
        raise UsageError(f"{path} is a recording, which is never overwritten.", "Name another file.")


def is_followed(directory: str, identity: Identity) -> bool:
    """Whether somebody on this machine records all of this job here into a directory already."""
    host, number = posix.uname().nodename, 1
    while True:
        name = name_in_job(identity, host, number)
        if name is None or not os.path.exists(path := os.path.join(directory, name)):
            return False
        if _is_written_of_whole_job(path, host):
            return True
        number += 1


def _is_written_of_whole_job(path: str, host: str) -> bool:
    from .glance import glance
    from .liveness import is_written

    try:
        header = glance(path).header if is_written(path) else None
    except RecordingError:  # one that has just begun
        return False
    return header is not None and (header.pid, header.host) == (NO_PROCESS, host)


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
    return b"".join(first_line.split()).startswith(HEADER_START) and not _has_more_than_header(path)


def _has_more_than_header(path: str) -> bool:
    """Whether the first line goes on after the header, as that of an export does. A torn one does not."""
    import json

    try:
        with open(path, "rb") as file:
            text = file.readline(_LONGEST_HEADER_BYTES).decode("utf-8", "replace")
        value = text.partition(":")[2].lstrip()
        _, end = json.JSONDecoder().raw_decode(value)
    except (OSError, ValueError, RecursionError):
        return False
    return value[end:].lstrip().startswith(",")


def name_run(path: str) -> str:
    """The last part of a path, without the suffix."""
    return os.path.basename(os.path.normpath(path)).removesuffix(SUFFIX)
