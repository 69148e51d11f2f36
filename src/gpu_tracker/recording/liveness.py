"""Whether the run of a recording without an end goes on: its writer holds it, or it grows elsewhere."""

from __future__ import annotations

import os
import time

from ..core.errors import RecordingError
from ..core.moments import parse_moment
from .lines import open_path
from .lock import is_alive, is_held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.model import RecordingData


# Of two machines.
_CLOCKS_APART_SECONDS = 60.0


def note_liveness(recording: RecordingData, path: str) -> RecordingData:
    """The recording in this file, which knows whether its run goes on."""
    if recording.end is not None:
        return recording
    return recording._replace(is_running=_is_running(recording, path))


def is_written(path: str) -> bool:
    """Whether somebody on this machine holds the file."""
    try:
        with open_path(path) as file:
            return bool(is_held(file.fileno()))
    except OSError:
        return False


def _is_running(recording: RecordingData, path: str) -> bool:
    try:
        with open_path(path) as file:
            was_held = is_held(file.fileno())
            file_age_seconds = time.time() - os.fstat(file.fileno()).st_mtime
    except OSError:  # removed in between
        return False
    age_seconds = max(file_age_seconds, _find_lag(recording) - _CLOCKS_APART_SECONDS)
    return is_alive(was_held, recording.header.host, _find_interval(recording), age_seconds)


def _find_lag(recording: RecordingData) -> float:
    """How long ago its last sample was, by its own account: a copy of an old file is a young file."""
    started_at = parse_moment(recording.header.started_at)
    return 0.0 if started_at is None else time.time() - started_at - recording.totals.at_seconds


def _find_interval(recording: RecordingData) -> float:
    """That of a long run may be minutes; the last one shows it."""
    samples, usual = recording.samples, recording.header.sleep_seconds
    try:
        return max(usual, samples[-1].at_seconds - samples[-2].at_seconds) if len(samples) > 1 else usual
    except RecordingError:  # the last line is damaged
        return usual
