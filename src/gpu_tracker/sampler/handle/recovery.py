"""Recovery after the sampler was lost: its recording is read back and completed, also in its file."""

from __future__ import annotations

import os

from ...accounts.recovery import complete, merge_regions, skip_known
from ...core.errors import RecordingError
from ...core.model import RecordingData, Totals
from ...core.system import posix
from ...core.vendors import NO_GPU
from ...recording.reader import load, load_descriptor
from ...recording.schema import split_metrics
from ...sources.allocation import read_allocation
from ..header import make_header
from .process import CRASH_HINT, KILL_HINT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...core.model import Known, MetricRow, RegionTotals
    from ...recording.writer import Writer
    from .process import SamplerProcess
    from .wire import Plan, Start


class Recovery:
    """The recording so far, completed with what the caller knows and what processes of the job have left."""

    def __init__(
        self,
        sampler: SamplerProcess | None,
        plan: Plan,
        start: Start,
        at_nanoseconds: int,
        known: Known | None,
    ) -> None:
        self._is_begun = True
        try:
            written = _read_back(sampler, plan)
        except RecordingError:
            self._is_begun = False
            allocation, _ = read_allocation(os.getpid(), os.environ)
            header = make_header(plan, start, allocation, "none", os.environ)
            written = RecordingData(header, (), (), None, Totals())
        # Without its tracker it has written an end of its own.
        self._path = plan.recording_path if written.end is None else None
        regions, metrics = _read_mailbox(plan.mailbox, start)
        self._regions = merge_regions(written.regions, regions)
        self._metrics = skip_known(written.metrics, metrics)
        failure = sampler.failure if sampler else "it was not started"
        has_no_gpu = any(event.text == NO_GPU for event in written.events)
        hint = "" if failure else KILL_HINT if has_no_gpu else CRASH_HINT
        completed = complete(written, start.at_nanoseconds, at_nanoseconds, known, failure, hint)
        self._notes = completed.events[len(written.events) :]
        self.recording = completed._replace(
            regions=self._regions,
            metrics=(*written.metrics, *self._metrics) if self._metrics else written.metrics,
        )

    def write(self) -> None:
        """Append what was recovered, and an end. The sampler must have ended: there is one writer."""
        if self._path is None:
            return
        from ...recording.writer import Writer

        try:
            fd = posix.open(self._path, posix.O_APPEND | posix.O_WRONLY)
        except OSError:
            return  # deleted
        try:
            self._write_to(Writer(fd, may_follow_torn_line=self._is_begun))
        except OSError:
            pass  # the disk is full; the figures are the caller's all the same
        finally:
            os.close(fd)

    def _write_to(self, writer: Writer) -> None:
        if not self._is_begun:
            writer.write_header(self.recording.header)
        for event in self._notes:
            writer.write_event(event)
        for region in self._regions:
            writer.write_region(region)
        for rows in split_metrics(self._metrics):
            writer.write_metrics(rows)
        if self.recording.end is not None:
            writer.write_end(self.recording.end)


def _read_back(sampler: SamplerProcess | None, plan: Plan) -> RecordingData:
    if plan.recording_path:
        return load(plan.recording_path)
    if sampler is None:
        raise RecordingError("Nothing was recorded.")
    return load_descriptor(sampler.unnamed_recording_fd)


def _read_mailbox(mailbox: str | None, start: Start) -> tuple[list[RegionTotals], list[MetricRow]]:
    """What is there now, without removing anything: it may be read again."""
    if mailbox is None or not os.path.isdir(mailbox):
        return [], []
    from ...accounts.regions import RegionAccount
    from ..mailbox_reader import MailboxReader

    reader = MailboxReader(mailbox, start.at_nanoseconds / 1e9)
    reader.find_new()
    account = RegionAccount()
    account.take(reader.read_active(), {})
    return account.combine(reader.read_all(), reader.since_start), reader.take_metrics()
