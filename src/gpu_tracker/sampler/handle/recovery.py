"""Recovery after the sampler was lost: its recording is read back and completed."""

from __future__ import annotations

import os

from ...accounts.recovery import complete
from ...core.errors import RecordingError
from ...core.model import RecordingData, Totals
from ...recording.reader import load, load_descriptor
from ...sources.allocation import read_allocation
from ..header import make_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...core.model import Known
    from .process import SamplerProcess
    from .wire import Plan, Start


def recover(
    sampler: SamplerProcess | None, plan: Plan, start: Start, known: Known | None = None
) -> RecordingData:
    """The recording so far, completed with what the caller knows; if there is none, only the latter."""
    try:
        recording = _read_back(sampler, plan)
    except RecordingError:
        allocation, _ = read_allocation(os.getpid(), os.environ)
        header = make_header(plan, start, allocation, "none", os.environ)
        recording = RecordingData(header, (), (), None, Totals())
    return complete(recording, start.at_nanoseconds, known, sampler.failure if sampler else "")


def _read_back(sampler: SamplerProcess | None, plan: Plan) -> RecordingData:
    if plan.recording_path:
        return load(plan.recording_path)
    if sampler is None:
        raise RecordingError("Nothing was recorded.")
    return load_descriptor(sampler.unnamed_recording_fd)
