"""Looks at a run through its recording, at any moment of it: now, earlier, or faster than it was."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import deque
from math import inf

from ..analysis.endings import find_deadline
from ..analysis.forecast import RECENT_POINTS, Point, describe_future, foresee_done, foresee_full
from ..core.errors import WRONG_DATA
from ..core.loops import STEP_NAMES
from ..core.model import list_gpus
from ..core.moments import Pace, parse_moment
from ..recording.growing import GrowingRecording
from ..recording.past import Past
from ..reports.build import build, is_worth_judging
from ..reports.choices import NO_CHOICES
from ..reports.report import describe_ending
from .scene import Scene, draw_steps, list_living, list_metrics, list_regions, list_series, name_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.findings.finding import Finding
    from ..analysis.forecast import Forecast
    from ..core.columns import SampleColumns
    from ..core.model import Gpu, Header, MetricRow, ProcessTotals, RegionTotals
    from ..recording.follow import News, Source

_MOST_METRIC_ROWS = 60
_STEPS_LABEL = "steps"
# What the rules cost after each key, if it is no more, is not felt.
_UNFELT_SECONDS = 0.1


class Spectator:
    """One run. `n_steps` is how many it will do, if the user says so; else its label `steps` does."""

    def __init__(self, source: Source, n_steps: float | None = None) -> None:
        self._past = Past(source)
        self._recording = GrowingRecording(self._past.source)
        self._n_steps = n_steps
        self._judge_pace = Pace(share=0.005)
        self._judge_cost_seconds = 0.0
        self._forget()

    def _forget(self) -> None:
        self._header: Header | None = None
        self._gpus: list[Gpu] = []
        self._regions: dict[tuple[int, tuple[str, ...]], RegionTotals] = {}
        self._rows: deque[MetricRow] = deque(maxlen=_MOST_METRIC_ROWS)
        self._points: list[Point] = []
        self._step_region: tuple[int, tuple[str, ...]] | None = None
        self._processes: dict[tuple[int, float], tuple[ProcessTotals | None, ProcessTotals]] = {}
        self._findings: tuple[Finding, ...] = ()
        self._full_seconds: float | None = None

    @property
    def last_seconds(self) -> float:
        """How far the run has got, as far as is known."""
        return self._past.last_seconds

    @property
    def has_begun(self) -> bool:
        """Whether there is more to tell than that there is a file."""
        return self._recording.has_begun

    def survey(self) -> None:
        """Find out how far the run has got."""
        try:
            self._past.survey()
        except OSError:
            pass  # looking at it will tell

    def look(self, moment: float | None, span_seconds: float) -> Scene:
        """The run at a moment, with the graphs of so much time before. RecordingError if it is gone."""
        self._past.until_seconds = inf if moment is None else moment
        self._take(self._recording.look())
        while self._recording.has_more:
            self._take(self._recording.look())
        is_past = moment is not None and moment < self.last_seconds
        self._judge(is_past=is_past)
        return self._describe(span_seconds, is_past=is_past)

    def _take(self, news: News) -> None:
        if news.is_another_file:
            self._forget()
            if self._judge_cost_seconds < _UNFELT_SECONDS:
                self._judge_pace = Pace(share=0.005)
        self._header = news.header or self._header
        self._gpus = [gpu for gpu in list_gpus(news.events, self._gpus) if gpu.is_visible]
        self._regions.update(((one.pid, one.path), one) for one in news.regions)
        self._rows += news.metrics
        self._take_steps(news)
        for one in news.processes:
            key = one.pid, one.first_seconds
            _, before = self._processes.get(key, (None, None))
            self._processes[key] = before, one

    def _take_steps(self, news: News) -> None:
        """What the job logs with its steps, else how often a region with such a name was called."""
        self._points += [Point(row.at_seconds, row.step) for row in news.metrics if row.step is not None]
        if not self._points or self._step_region is not None:
            self._take_step_region(news.regions)

    def _take_step_region(self, regions: Sequence[RegionTotals]) -> None:
        """The first one in the first process."""
        sample = self._recording.last_sample
        for one in regions:
            key = one.pid, one.path
            if self._step_region is None and one.path[-1] in STEP_NAMES:
                self._step_region = key
            if key == self._step_region and sample is not None:
                self._points.append(Point(sample.at_seconds, one.calls))

    def _judge(self, *, is_past: bool) -> None:
        """Ask the rules again, and how long the memory will do. That costs as much as the recording is long."""
        header = self._header
        if header is None or not self._judge_pace.is_due(time.monotonic()):
            return
        before = time.thread_time()
        data = self._recording.data
        data = data._replace(is_running=is_past or data.is_running)
        columns = self._recording.columns
        try:
            self._full_seconds = foresee_full(columns, header.allocation.ram_bytes)
            if is_worth_judging(data):
                self._findings = build(data, columns, NO_CHOICES).findings
        except WRONG_DATA:
            pass  # of a job that logs something odd; the end of the run will tell
        self._judge_cost_seconds = time.thread_time() - before
        self._judge_pace.pay(time.monotonic(), self._judge_cost_seconds)

    def _describe(self, span_seconds: float, *, is_past: bool) -> Scene:
        header, recording = self._header, self._recording
        if header is None:
            return Scene()
        sample, end = recording.last_sample, recording.end
        status = ""
        if end is not None:
            status = describe_ending(end.reason, end.exit_code)
        elif recording.is_over and not is_past:
            status = describe_ending("killed", None)
        if sample is None:
            return Scene(title=name_run(header), status=status)
        seconds = sample.at_seconds if end is None else end.totals.at_seconds
        columns = self._read_columns(seconds - span_seconds)
        return Scene(
            title=name_run(header),
            status=status,
            seconds=seconds,
            host=header.host,
            processes=sample.processes,
            threads=sample.threads,
            series=(
                *list_series(header, columns, self._gpus),
                *draw_steps(self._list_points(seconds - span_seconds), self._find_n_steps(header)),
            ),
            regions=list_regions(tuple(self._regions.values()), recording.open_calls, header.pid, seconds),
            metrics=list_metrics(self._rows),
            largest=list_living(self._processes),
            forecasts=() if status else self._foresee(header, seconds),
            findings=self._findings,
        )

    def _read_columns(self, since_seconds: float) -> SampleColumns:
        recording = self._recording
        return recording.columns if since_seconds <= 0 else recording.columns_since(since_seconds)

    def _list_points(self, since_seconds: float) -> list[Point]:
        """Those of the graph, and enough of them for a rate."""
        first = bisect_left(self._points, since_seconds, key=lambda point: point.at_seconds)
        return self._points[max(0, min(first - 1, len(self._points) - RECENT_POINTS)) :]

    def _foresee(self, header: Header, seconds: float) -> tuple[Forecast, ...]:
        done = foresee_done(self._points, self._find_n_steps(header))
        began = parse_moment(header.started_at)
        ends_at = find_deadline(header.allocation, began)
        limit = None if began is None or ends_at is None else ends_at - began - seconds
        return describe_future(self._full_seconds, done, limit)

    def _find_n_steps(self, header: Header) -> float | None:
        if self._n_steps is not None:
            return self._n_steps
        label = dict(header.identity.labels).get(_STEPS_LABEL, "")
        return float(label) if label.isdecimal() else None
