"""One recording as a row of a list, whatever is in the file."""

from __future__ import annotations

from ..analysis.runs import ListedRun, list_run
from ..core.errors import WRONG_DATA, RecordingError
from ..recording.glance import glance


def list_file(path: str) -> ListedRun:
    """Its first and last lines are read; a file that cannot be read is listed as damaged."""
    try:
        return list_run(path, glance(path))
    except WRONG_DATA:
        return ListedRun(path, f"{path} contains invalid numbers.", ending="damaged")
    except RecordingError as error:
        return ListedRun(path, str(error), ending="damaged")
