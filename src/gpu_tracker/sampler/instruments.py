"""Regions, metrics and framework memory that processes of the job report. Loaded when the first one does."""

from __future__ import annotations

import time

from ..accounts.frameworks import FrameworkAccount
from ..accounts.metrics import tally
from ..accounts.regions import RegionAccount
from .mailbox_reader import MailboxReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..accounts.gpus import GpuMoment
    from ..core.model import FrameworkMemory, Gpu, GpuReadings, MetricRow, MetricTotals, RegionTotals
    from ..recording.writer import Writer

_REGION_LINES = 200
_METRICS_PER_LINE = 1000


class Instruments:
    """The files in the mailbox, and their accounts."""

    def __init__(self, mailbox: str, start_seconds: float) -> None:
        self._mailbox = MailboxReader(mailbox, start_seconds)
        self._regions = RegionAccount()
        self._frameworks = FrameworkAccount()
        self._unwritten_metrics: list[MetricRow] = []
        self._regions_seconds = 0.0
        self.metric_totals: dict[str, MetricTotals] = {}

    def find_new(self) -> dict[int, int]:
        """Find new files and ended processes; the high-water marks that processes kept before resetting them."""
        self._mailbox.find_new()
        for ended in self._mailbox.take_ended():
            self._regions.retire(*ended)
        return self._mailbox.read_high_waters()

    def take(self, rss_bytes: Mapping[int, int]) -> None:
        """Take the memory of the processes at this reading."""
        self._regions.take(self._mailbox.read_active(), rss_bytes)
        for note in self._mailbox.take_framework_notes():
            self._frameworks.take(note)

    def add_gpu(self, gpu: Gpu) -> None:
        """Add a device."""
        self._frameworks.add_gpu(gpu)

    def take_gpus(self, readings: GpuReadings, moment: GpuMoment) -> None:
        """Take one reading of the GPUs, and its summary of the time since the one before."""
        self._regions.take_gpus(moment)
        self._frameworks.take_gpus(readings)

    def write(self, writer: Writer, at_seconds: float, *, is_last: bool) -> float:
        """Write all metrics, and regions at growing intervals. Returns the CPU time that the metrics took."""
        for memory in self._frameworks.take_changed():
            writer.write_framework(memory)
        began = time.process_time()
        while self._write_metrics(writer) and is_last:
            pass  # there may be more than is read at once
        spent = time.process_time() - began
        if is_last or at_seconds - self._regions_seconds >= at_seconds / _REGION_LINES:
            self._regions_seconds = at_seconds
            for region in self._regions.take_changed(self.list_regions()):
                writer.write_region(region)
        return spent

    def list_regions(self) -> list[RegionTotals]:
        """All regions of the job so far."""
        return self._regions.combine(self._mailbox.read_all(), self._mailbox.since_start)

    def list_frameworks(self) -> list[FrameworkMemory]:
        """Framework memory on the GPUs so far."""
        return self._frameworks.list_memory()

    def _write_metrics(self, writer: Writer) -> bool:
        """Write some of what was logged; whether there was any. What fails is written first the next time."""
        if not self._unwritten_metrics:
            self._unwritten_metrics = self._mailbox.take_metrics()
            tally(self.metric_totals, self._unwritten_metrics)
        has_any = bool(self._unwritten_metrics)
        while self._unwritten_metrics:
            writer.write_metrics(self._unwritten_metrics[:_METRICS_PER_LINE])
            del self._unwritten_metrics[:_METRICS_PER_LINE]
        return has_any
