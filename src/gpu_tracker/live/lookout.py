"""Looks at a running job through its recording, again and again."""

from __future__ import annotations

import time
from collections import deque

from ..analysis.findings.finding import choose_new
from ..analysis.intervals import read_interval
from ..core.errors import WRONG_DATA
from ..core.model import list_gpus
from ..core.moments import Pace
from ..recording.growing import GrowingRecording
from ..reports.build import build, is_worth_judging
from .glimpse import MOST_INTERVALS, Glimpse, name_metrics, name_region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..analysis.findings.finding import Finding
    from ..analysis.intervals import Interval
    from ..core.model import Gpu, Header, MetricRow
    from ..recording.follow import News, Source
    from ..reports.choices import Choices


class Lookout:
    """What is known about the job. `tell` hears of each rule once that finds something bad."""

    def __init__(self, source: Source, choices: Choices, tell: Callable[[Finding], object] | None) -> None:
        self._recording = GrowingRecording(source, needs_samples=True)
        self._choices = choices
        self._tell = tell
        self._told: frozenset[str] = frozenset()
        self._began = time.monotonic()
        self._header: Header | None = None
        self._gpus: list[Gpu] = []
        self._intervals: deque[Interval] = deque(maxlen=MOST_INTERVALS)
        self._n_calls: dict[tuple[int, tuple[str, ...]], int] = {}
        self._metrics: MetricRow | None = None
        self._findings: tuple[Finding, ...] = ()
        self._pace = Pace()

    def look(self) -> Glimpse:
        """What it does now. RecordingError if the recording is gone."""
        self._take(self._recording.look())
        while self._recording.has_more:
            self._take(self._recording.look())
        self._judge()
        header = self._header
        glimpse = Glimpse(time.monotonic() - self._began, findings=self._findings)
        if header is None:
            return glimpse
        return glimpse._replace(
            cores=header.n_expected_cores,
            ram_bytes=header.allocation.ram_bytes,
            intervals=tuple(self._intervals),
            region=name_region(self._recording.open_calls, self._n_calls, header.pid),
            metrics=name_metrics(self._metrics),
        )

    def _take(self, news: News) -> None:
        self._header = news.header or self._header
        self._gpus = [gpu for gpu in list_gpus(news.events, self._gpus) if gpu.is_visible]
        self._n_calls.update(((one.pid, one.path), one.calls) for one in news.regions)
        self._metrics = news.metrics[-1] if news.metrics else self._metrics
        samples = news.samples[-MOST_INTERVALS:]
        if samples:
            columns = self._recording.columns_since(samples[0].at_seconds)
            self._intervals += [read_interval(columns, self._gpus, row) for row in range(-len(samples), 0)]

    def _judge(self) -> None:
        """Ask the rules again. That costs as much as the recording is long; one that has lost its writer tells nothing new."""
        if self._header is None or self._recording.is_over or not self._pace.is_due(time.monotonic()):
            return
        before = time.thread_time()
        data = self._recording.data
        if is_worth_judging(data):
            try:
                self._findings = build(data, self._recording.columns, self._choices).findings
            except WRONG_DATA:
                pass  # of a job that logs something odd; the end of the run will tell
        self._pace.pay(time.monotonic(), time.thread_time() - before)
        for finding in choose_new(self._findings, self._told):
            self._told |= {finding.rule}
            if self._tell is not None:
                self._tell(finding)
