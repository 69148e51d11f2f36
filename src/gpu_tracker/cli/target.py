"""Which run is meant by a process, a file, a directory, or a job's ID or name."""

from __future__ import annotations

import os

from ..analysis.endings import find_ending
from ..core.errors import WRONG_DATA, RecordingError, UsageError
from ..core.moments import parse_moment
from ..core.values import NamedTuple
from ..recording.find import find_recordings
from ..recording.glance import glance
from ..recording.naming import SUFFIX
from .track import DEFAULT_DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.model import Header


class Candidate(NamedTuple):
    """A recording that may be meant."""

    path: str
    header: Header
    is_running: bool
    started_seconds: float


def find_runs(target: str | None) -> list[str]:
    """The recordings that are meant, the first one most: those of running jobs, else all; the newest first."""
    if target is None or os.path.isdir(target):
        return _choose_in(target or DEFAULT_DIRECTORY)
    if os.path.exists(target) or os.sep in target or target.endswith(SUFFIX):
        return [target]
    if target.isdecimal() and os.path.exists(f"/proc/{target}"):
        return _find_by_pid(int(target))
    return _find_by_job(target)


def _choose_in(directory: str) -> list[str]:
    if not os.path.isdir(directory):
        raise UsageError(f"There are no recordings in {directory}.", "Name a file, a directory or a process.")
    found = _order(_glance_at(find_recordings(directory)))
    if not found:
        raise UsageError(f"There is no recording in {directory}.")
    running = [one.path for one in found if one.is_running]
    return running or [one.path for one in found]


def _find_by_pid(pid: int) -> list[str]:
    family = _list_ancestors(pid)
    paths = [*_list_open_recordings(), *_list_default()]
    found = [one for one in _glance_at(dict.fromkeys(paths)) if one.is_running and one.header.pid in family]
    if not found:
        raise UsageError(f"Process {pid} is not tracked.", f"`gpu-tracker attach {pid}` does that.")
    found.sort(key=lambda one: family.index(one.header.pid))  # the process itself, else the nearest above it
    return [found[0].path]


def _find_by_job(name: str) -> list[str]:
    found = [
        one
        for one in _order(_glance_at(_list_default()))
        if name in (one.header.identity.job, one.header.identity.name)
    ]
    if not found:
        raise UsageError(
            f"There is no file, process or job {name!r}.",
            f"Jobs are looked for by ID and name in {DEFAULT_DIRECTORY}.",
        )
    running = [one.path for one in found if one.is_running]
    return running or [one.path for one in found]


def _list_default() -> list[str]:
    return find_recordings(DEFAULT_DIRECTORY) if os.path.isdir(DEFAULT_DIRECTORY) else []


def _glance_at(paths: Iterable[str]) -> list[Candidate]:
    """Those that can be read."""
    found = []
    for path in paths:
        try:
            recording = glance(path)
        except (*WRONG_DATA, RecordingError):
            continue
        began = parse_moment(recording.header.started_at) or 0.0
        found.append(Candidate(path, recording.header, find_ending(recording) == "running", began))
    return found


def _order(found: Iterable[Candidate]) -> list[Candidate]:
    return sorted(found, key=lambda one: (one.started_seconds, one.path), reverse=True)


def _list_ancestors(pid: int) -> list[int]:
    """The process, and those above it."""
    family = []
    while pid > 1 and pid not in family:
        family.append(pid)
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return family


def _list_open_recordings() -> list[str]:
    """Recordings that processes of this user are writing: a tracker keeps its file open."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        folder = f"/proc/{pid}/fd"
        try:
            links = [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)]
        except OSError:
            continue  # of somebody else, or it has ended
        found += [link for link in links if link.endswith(SUFFIX) and os.path.isfile(link)]
    return found
