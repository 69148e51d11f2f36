"""The jobs of a directory that run now, for whoever asks again and again."""

from __future__ import annotations

import os
import time

from ..core.errors import WRONG_DATA, RecordingError
from ..recording.find import find_recordings, name_run
from ..recording.follow import follow_path
from ..recording.lines import open_path, read_last_line
from .prometheus import RunNow
from .reader import PublishedReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# The longest interval of a run of a year is an hour.
_SILENCE_SECONDS = 2 * 3600.0


class RunningRuns:
    """Reads the recordings of running jobs; each scrape costs what was written since the last one."""

    def __init__(self) -> None:
        self._readers: dict[str, PublishedReader] = {}

    def look(self, paths: Mapping[str, str]) -> list[RunNow]:
        """Those that run, of recordings by name. One that cannot be read is left out."""
        self._readers = {
            path: self._readers.get(path) or PublishedReader(follow_path(path)) for path in paths.values()
        }
        found = [_read_run(name, self._readers[path]) for name, path in paths.items()]
        return [run for run in found if run is not None]


def _read_run(name: str, reader: PublishedReader) -> RunNow | None:
    try:
        reader.look(1)
        while reader.has_more:
            reader.look(1)
    except (RecordingError, *WRONG_DATA):
        return None
    if reader.is_over or reader.header is None or reader.last is None:
        return None
    return RunNow(name, reader.header, reader.last, dict(reader.metrics))


def find_running(directory: str) -> dict[str, str]:
    """The recordings of a directory that may still be written to, by name."""
    now = time.time()
    return {name_run(path): path for path in find_recordings(directory) if _may_run(path, now)}


def _may_run(path: str, now: float) -> bool:
    try:
        with open_path(path) as file:
            if now - os.fstat(file.fileno()).st_mtime > _SILENCE_SECONDS:
                return False
            return not read_last_line(file.fileno())[1].startswith(b'{"end"')
    except (OSError, RecordingError):
        return False
