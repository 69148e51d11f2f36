"""Regions, metrics and framework memory that processes of the job report. Loaded when the first one does."""

from __future__ import annotations

import time
from math import inf

from ..accounts.calls import CallAccount
from ..accounts.frameworks import FrameworkAccount
from ..accounts.metrics import KnownNames, tally, thin
from ..accounts.regions import RegionAccount
from ..core.model import EXACT, RegionGaps
from ..recording.schema import split_metrics
from .mailbox_reader import MailboxReader
from .pace import Pace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from ..accounts.gpus import GpuMoment
    from ..core.model import Call, FrameworkMemory, Gpu, GpuReadings, MetricRow, MetricTotals, RegionTotals
    from ..instrument.shared_file import Numbers
    from ..recording.writer import Writer

_DETAILS_GROWTH_BYTES = _METRICS_GROWTH_BYTES = 4e5
# All metrics are kept until they have taken this much.
_MOST_METRICS_BYTES = 10_000_000
# On a full disk, until there is room again.
_MOST_UNWRITTEN_METRICS = 10_000
# Calls are read rarely: not more often than this, and at most a thousandth of the time is spent on them.
_CALLS_SECONDS = 1.0
_CALLS_LINES = 50
_CALLS_SHARE = 0.001
# What a job logs may take longer to read than is good for readings: the rest waits for the next turn.
_TURN_SECONDS = 0.2
_BATCH_BYTES = 2**20


class Instruments:
    """The files in the mailbox, and their accounts."""

    def __init__(self, mailbox: str, start_seconds: float) -> None:
        self._mailbox = MailboxReader(mailbox, start_seconds)
        self._start_seconds = start_seconds
        self._regions = RegionAccount()
        self._calls = CallAccount()
        self._ended: list[tuple[tuple[int, tuple[str, ...]], Numbers, int]] = []
        """The regions of processes that had ended when the mailbox was read last."""
        self._has_gpus = False
        self._present_ns = 1
        """When it was read last which regions are open."""
        self._written_gaps = RegionGaps()
        self._calls_read_seconds = 0.0
        self._calls_due_seconds = _CALLS_SECONDS
        self._frameworks = FrameworkAccount()
        self._unwritten_metrics: list[MetricRow] = []
        self._metric_names = KnownNames()
        self._metrics_bytes = 0
        self.thinned_seconds: float | None = None
        """Since when only the most telling of what was logged is kept."""
        self._metrics_pace = Pace(_METRICS_GROWTH_BYTES)
        self._details_pace = Pace(_DETAILS_GROWTH_BYTES)
        self.metric_totals: dict[str, MetricTotals] = {}
        self.n_metric_rows = 0
        self.metrics_cost_seconds = 0.0

    def close(self) -> None:
        """Let go of the files of the job's processes."""
        self._mailbox.close()

    def find_new(self) -> dict[int, int]:
        """Find new files and ended processes; the high-water marks that processes kept before resetting them."""
        self._mailbox.find_new()
        self._ended = self._mailbox.take_ended()
        for ended in self._ended:
            self._regions.retire(*ended, self._mailbox.since_start)
        calls = self._mailbox.take_calls_of_ended()
        self._calls.take(call for call in calls if call.number)
        self._calls.take_left_open(call for call in calls if not call.number)
        return self._mailbox.read_high_waters()

    def take(self, at_seconds: float, rss_bytes: Mapping[int, int]) -> None:
        """Take the memory of the processes at this reading."""
        self._regions.take(self._mailbox.read_active(), rss_bytes, self._mailbox.find_start)
        for peak in self._regions.list_new_peaks():
            self._calls.take_peak(*peak)
        for note in self._mailbox.take_framework_notes():
            self._frameworks.take(note)
        if self._has_gpus:
            self._take_presence(at_seconds)

    def _take_presence(self, at_seconds: float) -> None:
        """When regions were open, for what devices say later of that time."""
        now_ns = int((self._start_seconds + at_seconds) * 1e9)
        present = self._mailbox.read_present(self._present_ns, now_ns)
        self._regions.take_presence(at_seconds, present, self._mailbox.since_start)
        self._present_ns = now_ns

    def add_gpu(self, gpu: Gpu) -> None:
        """Add a device."""
        self._frameworks.add_gpu(gpu)

    def take_gpus(self, readings: GpuReadings, moment: GpuMoment) -> None:
        """Take one reading of the GPUs, and its summary of the time since the one before."""
        self._has_gpus = True
        self._regions.take_gpus(moment)
        self._frameworks.take_gpus(readings)

    def finish_gpus(self) -> None:
        """There will be no more readings of the GPUs."""
        self._regions.finish()

    def write(self, writer: Writer, at_seconds: float, *, is_last: bool, keep_all: bool = False) -> float:
        """Write metrics, and regions and frameworks at growing intervals. Returns the CPU time that the metrics took."""
        began = time.process_time()
        self._write_metrics(writer, at_seconds, is_last=is_last, keep_all=keep_all)
        spent = time.process_time() - began
        self.metrics_cost_seconds += spent
        if is_last or self._details_pace.is_due(at_seconds):
            before_bytes = self._metrics_bytes
            for memory in self._frameworks.take_changed():
                writer.write_framework(memory)
            for region in self._regions.take_changed(self.list_regions()):
                writer.write_region(region)
            gaps = self.read_gaps()
            if gaps != self._written_gaps:
                writer.write_gaps(gaps)
                self._written_gaps = gaps
            self._details_pace.note(at_seconds, writer.written_bytes - before_bytes)
        if is_last or at_seconds >= self._calls_due_seconds:
            spent += self._write_calls(writer, at_seconds, is_last=is_last)
        return spent

    def find_exact_peaks(self) -> dict[int, int]:
        """By pid, the largest exact peak of a region: the job's own cannot be smaller."""
        peaks: dict[int, int] = {}
        for region in self.list_regions():
            if region.peak_ram_basis == EXACT:
                peaks[region.pid] = max(peaks.get(region.pid, 0), region.peak_ram_bytes or 0)
        return peaks

    def list_regions(self) -> list[RegionTotals]:
        """All regions of the job so far."""
        return self._regions.combine(self._mailbox.read_all(), self._mailbox.since_start)

    def read_gaps(self) -> RegionGaps:
        """What is missing among the regions and metrics so far."""
        return self._mailbox.read_gaps()._replace(refused_metrics=self._metric_names.n_refused)

    def list_open(self, since_seconds: float, read_pids: Container[int]) -> list[tuple[str, ...]]:
        """The paths of the regions that were open during the last reading, which began then and met these processes.

        The mailbox is read after the processes: a region may have been left in between, and a process ended.
        """
        since_ns = int(since_seconds * 1e9)
        ended = [
            path
            for (pid, path), numbers, open_calls in self._ended
            if numbers.last_ns >= since_ns or (open_calls and pid in read_pids)
        ]
        return [*self._regions.list_open(), *self._mailbox.list_left(since_ns), *ended]

    def list_calls(self) -> list[Call]:
        """The calls that are kept, and all open ones."""
        self._calls.take(self._mailbox.take_calls())
        self._calls.take_open(self._mailbox.read_open())
        return self._calls.list_calls()

    def list_frameworks(self) -> list[FrameworkMemory]:
        """Framework memory on the GPUs so far."""
        return self._frameworks.list_memory()

    def _write_calls(self, writer: Writer, at_seconds: float, *, is_last: bool) -> float:
        """Write the calls kept since the last time. Of open ones only the long: those open then, except at the end."""
        began = time.process_time()
        since = at_seconds if is_last else self._calls_read_seconds
        self._calls.take(self._mailbox.take_calls())
        self._calls.take_open(call for call in self._mailbox.read_open() if call.start_seconds < since)
        for path, calls in self._calls.list_changed():
            writer.write_calls(path, calls)
            self._calls.note_written(path)
        spent = time.process_time() - began
        self._calls_read_seconds = at_seconds
        wait = max(_CALLS_SECONDS, at_seconds / _CALLS_LINES, spent / _CALLS_SHARE)
        self._calls_due_seconds = at_seconds + wait
        return spent

    def _write_metrics(self, writer: Writer, at_seconds: float, *, is_last: bool, keep_all: bool) -> None:
        """Write what was logged: all of it while that is little, then the most telling values at growing intervals."""
        until = inf if is_last else time.monotonic() + _TURN_SECONDS
        most_bytes = inf if keep_all else _MOST_METRICS_BYTES
        has_more = True  # at first what could not be written the last time
        while has_more:
            if self.thinned_seconds is None:
                self._put_metrics(writer, most_bytes)
            if self._unwritten_metrics:
                self._thin_metrics()
            has_more = time.monotonic() < until and self._take_metrics()
        if self._unwritten_metrics and (is_last or self._metrics_pace.is_due(at_seconds)):
            before_bytes = writer.written_bytes
            writer.write_metric_totals(self.metric_totals.values())
            self._put_metrics(writer)
            self._metrics_pace.note(at_seconds, writer.written_bytes - before_bytes)

    def keep_metrics(self, *, is_last: bool) -> None:
        """Count what was logged although it cannot be written now; of much the most telling values are kept."""
        until = inf if is_last else time.monotonic() + _TURN_SECONDS
        while time.monotonic() < until and self._take_metrics():
            if len(self._unwritten_metrics) > _MOST_UNWRITTEN_METRICS:
                self._thin_metrics()

    def _thin_metrics(self) -> None:
        if self.thinned_seconds is None:
            self.thinned_seconds = self._unwritten_metrics[0].at_seconds
        self._unwritten_metrics = thin(self._unwritten_metrics)

    def _take_metrics(self) -> bool:
        """Take some of what was logged; whether there was any."""
        rows = self._mailbox.take_metrics(_BATCH_BYTES)
        known = self._metric_names.choose(rows)
        tally(self.metric_totals, known)
        self.n_metric_rows += len(rows)
        self._unwritten_metrics += known
        return bool(rows)

    def _put_metrics(self, writer: Writer, most_bytes: float = inf) -> None:
        """Write until metrics take so much. What cannot be written is written first the next time."""
        others_bytes = writer.written_bytes - self._metrics_bytes
        n_written = 0
        try:
            for rows in split_metrics(self._unwritten_metrics):
                if self._metrics_bytes >= most_bytes:
                    break
                writer.write_metrics(rows)
                n_written += len(rows)
                self._metrics_bytes = writer.written_bytes - others_bytes
        finally:
            del self._unwritten_metrics[:n_written]
