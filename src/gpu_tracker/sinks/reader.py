"""A recording as it grows, in the figures that sinks get. Remembers only what it needs to understand the next sample."""

from __future__ import annotations

from math import isfinite

from ..analysis.intervals import read_interval
from ..analysis.published import Published, make_point, publish, share_out_logged, share_out_steps
from ..core.model import list_gpus
from ..core.moments import parse_moment
from ..recording.figures import explain, list_figures, transpose
from ..recording.follow import Follower
from ..recording.growing import LOOK_BACK_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..analysis.intervals import Interval
    from ..analysis.published import Point
    from ..core.model import Gpu, Header, MetricRow, Sample
    from ..recording.follow import News, Source


class IntervalReader:
    """The intervals of a recording as they come."""

    def __init__(self, source: Source) -> None:
        self.follower = Follower(source)
        self.gpus: tuple[Gpu, ...] = ()
        self._recent: list[Sample] = []

    def look(self) -> list[Interval]:
        """The new ones."""
        return self.read(self.follower.look())

    def read(self, news: News, most: int | None = None) -> list[Interval]:
        """Those of what the follower has found, or the last so many of them."""
        if news.is_another_file:
            self._recent, self.gpus = [], ()
        self.gpus = list_gpus(news.events, self.gpus)
        if not news.samples:
            return []
        recent = [*self._recent, *news.samples]
        columns = explain(transpose(map(list_figures, recent)))
        since = recent[-1].at_seconds - LOOK_BACK_SECONDS
        self._recent = [sample for sample in recent[:-1] if sample.at_seconds >= since] + recent[-1:]
        n_read = len(news.samples[:most])
        return [read_interval(columns, self.gpus, row) for row in range(-n_read, 0)]


class PublishedReader:
    """What is published about a run, as it comes."""

    def __init__(self, source: Source) -> None:
        self._intervals = IntervalReader(source)
        self._steps: list[tuple[float, float]] = []
        self._logged: list[MetricRow] = []
        self.last: Published | None = None
        self.metrics: dict[str, float] = {}
        """The last value of each, in the order in which they first came."""

    @property
    def header(self) -> Header | None:
        """None before there is one."""
        return self._intervals.follower.header

    @property
    def is_over(self) -> bool:
        """Whether nothing will come any more."""
        follower = self._intervals.follower
        return follower.is_over and not follower.has_more

    @property
    def has_more(self) -> bool:
        """Whether the last look has not read everything."""
        return self._intervals.follower.has_more

    def look(self, most: int | None = None) -> list[Published]:
        """The new ones, or the last so many of them. RecordingError if the file is gone, or none of ours."""
        news = self._intervals.follower.look()
        if news.is_another_file:
            self._steps, self._logged, self.last, self.metrics = [], [], None, {}
        for row in news.metrics:
            self._take(row)
        samples = {sample.at_seconds: sample for sample in news.samples}
        intervals = [
            interval
            for interval in self._intervals.read(news, most)
            if interval.end_seconds in samples  # a sample that cannot be true has no interval
        ]
        ends = [interval.end_seconds for interval in intervals]
        logged, self._logged = share_out_logged(self._logged, ends)
        steps, self._steps = share_out_steps(self._steps, ends)
        found = [
            publish(interval, samples[interval.end_seconds], self._intervals.gpus)._replace(
                step=step, metrics=metrics
            )
            for interval, step, metrics in zip(intervals, steps, logged, strict=True)
        ]
        self.last = found[-1] if found else self.last
        return found

    def take_rest(self) -> list[Published]:
        """What was logged after the last interval, once the run is over."""
        if not self._logged:
            return []
        seconds = max(row.at_seconds for row in self._logged)
        (values,), self._logged = share_out_logged(self._logged, [seconds])
        return [Published(seconds, {}, metrics=values)]

    def look_for_point(self) -> Point | None:
        """The newest, as a sink gets it; None if there is no new one."""
        found = self.look(1)
        began_at = None if self.header is None else parse_moment(self.header.started_at)
        return make_point(found[-1], began_at) if found and began_at is not None else None

    def _take(self, row: MetricRow) -> None:
        if row.step is not None and isfinite(row.step):
            self._steps.append((row.at_seconds, row.step))
        self._logged.append(row)
        self.metrics.update(row.values)
