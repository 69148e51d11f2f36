"""Reports with the samples of their recording, for charts and findings."""

from __future__ import annotations

from ..core.errors import RecordingError
from ..reports.build import SHORTEST_SECONDS, build

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.model import RecordingData
    from ..reports.build import Report
    from .session import Session


def build_whole(recording: RecordingData) -> Report:
    """The report of a recording that has its samples."""
    from ..recording.sampled import read_columns

    try:
        return build(recording, read_columns(recording))
    except RecordingError:  # the file has gone since
        return build(recording)


def build_with_samples(session: Session, recording: RecordingData, *, is_short_too: bool = False) -> Report:
    """The report of a session that has stopped."""
    if recording.totals.at_seconds < SHORTEST_SECONDS and not is_short_too:
        return build(recording)
    return build_whole(session.read_samples(recording))
