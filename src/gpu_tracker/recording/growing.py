"""Everything known so far about a run that is still recorded: what `load` gives of a finished one, kept up to date."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from math import nan

from ..core.calls import choose_calls
from ..core.model import RecordingData, RegionGaps, count_unread, total_up
from .figures import Key, explain, list_figures, transpose
from .follow import Follower
from .sampled import explain_together, read_figures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..core.columns import Column, SampleColumns
    from ..core.model import Call, End, Event, FrameworkMemory, MetricRow, MetricTotals, Sample, Totals
    from .follow import News, Source
    from .lazy import SampleLines
    from .sampled import Plans

_MOST_CALLS = 1000
# Counters that are read once a second tell about the rows of the last second or so.
LOOK_BACK_SECONDS = 3.0
_AT = Key("at")


class GrowingRecording:
    """The recording of one run. After each `look` it is as if it had been loaded anew, for the price of what is new.

    Of very many new samples a look returns only the last, unless each is needed.
    """

    def __init__(self, source: Source, *, needs_samples: bool = False) -> None:
        self._follower = Follower(source, reads_together=not needs_samples)
        self._plans: Plans = {}
        self._forget()

    def _forget(self) -> None:
        self._written: dict[Key, Column] = {_AT: array("d")}
        self._events: list[Event] = []
        self._by_key: dict[str, dict[Any, Any]] = {
            name: {} for name in ("regions", "processes", "frameworks", "peak_moments")
        }
        self._calls: dict[tuple[str, ...], list[Call]] = {}
        self._open_calls: dict[tuple[str, ...], tuple[Call, ...]] = {}
        self._framework_readings: list[FrameworkMemory] = []
        self._metrics: list[MetricRow] = []
        self._metric_totals: tuple[MetricTotals, ...] = ()
        self._gaps = RegionGaps()
        self._n_readings = 0
        self._n_damaged = 0
        self.last_sample: Sample | None = None
        self.end: End | None = None

    @property
    def has_begun(self) -> bool:
        """Whether it has its header; there is nothing to tell before."""
        return self._follower.header is not None

    @property
    def has_more(self) -> bool:
        """Whether the last look has not read everything."""
        return self._follower.has_more

    @property
    def is_over(self) -> bool:
        """Whether nothing will come any more: it has its end, or its writer is gone."""
        return self._follower.is_over

    @property
    def age_seconds(self) -> float:
        """How long ago the file was last written to."""
        return self._follower.age_seconds

    def look(self) -> News:
        """Take in what is new. RecordingError if the file is gone, or none of ours."""
        news = self._follower.look()
        if news.is_another_file:
            self._forget()
        self._take(news)
        return news

    def look_at_all(self) -> None:
        """Take in everything that is there."""
        self.look()
        while self.has_more:
            self.look()

    @property
    def data(self) -> RecordingData:
        """As `load` would give it, without the samples, of which `columns` tells."""
        header = self._follower.header
        if header is None:
            raise ValueError("no header yet")
        calls = [(path, choose_calls(ended)) for path, ended in self._calls.items()]
        return RecordingData(
            header=header,
            samples=(),
            events=tuple(self._events),
            end=self.end,
            totals=self._find_totals(),
            problems=self._describe_damage(),
            **{name: tuple(values.values()) for name, values in self._by_key.items()},
            framework_readings=self._framework_readings,
            metrics=self._metrics,
            metric_totals=self._metric_totals,
            calls=[call for path, ended in calls for call in (*ended, *self._open_calls.get(path, ()))],
            gaps=self._gaps,
            is_running=not self.is_over,
        )

    @property
    def open_calls(self) -> tuple[Call, ...]:
        """The calls of regions that are running now."""
        return tuple(call for calls in self._open_calls.values() for call in calls)

    @property
    def columns(self) -> SampleColumns:
        """All samples. Costs as much as the recording is long; `columns_since` does not."""
        return explain_together(self._written)

    def columns_since(self, seconds: float) -> SampleColumns:
        """The samples that ended after that moment, preceded by a few that are needed to understand them."""
        at = self._written[_AT]
        first = max(0, bisect_left(at, seconds - LOOK_BACK_SECONDS) - 1)
        return explain({key: column[first:] for key, column in self._written.items()})

    # ---- Inside.

    def _take(self, news: News) -> None:
        self._take_samples(news.samples, self._follower.sample_lines)
        self._events += news.events
        known = self._by_key
        known["regions"].update(((one.pid, one.path), one) for one in news.regions)
        known["processes"].update(((one.pid, one.first_seconds), one) for one in news.processes)
        known["frameworks"].update(((one.pid, one.framework, one.device), one) for one in news.frameworks)
        known["peak_moments"].update((one.subject, one) for one in news.peak_moments)
        self._take_calls(news)
        self._framework_readings += news.frameworks
        self._metrics += news.metrics
        self._metric_totals = news.metric_totals or self._metric_totals
        self._gaps = news.gaps or self._gaps
        self._n_damaged += news.damaged_lines
        self.end = news.end or self.end

    def _take_samples(self, samples: tuple[Sample, ...], lines: SampleLines | None) -> None:
        """The first of the samples is the last of the lines, if there are any."""
        if lines is not None:
            columns, _ = read_figures(lines, plans=self._plans)
            self._append(columns, samples[0])
            samples = samples[1:]
        if samples:
            self._append(transpose(map(list_figures, samples)), samples[-1])

    def _append(self, columns: Mapping[Key, Column], last: Sample) -> None:
        append(self._written, columns)
        self._n_readings += int(sum(columns[Key("readings")]))
        self.last_sample = last

    def _take_calls(self, news: News) -> None:
        for call in news.calls:
            known = self._calls.setdefault(call.path, [])
            known.append(call)
            if len(known) > _MOST_CALLS:
                known[:] = choose_calls(known)
        for path, calls in news.open_calls.items():
            self._calls.setdefault(path, [])
            self._open_calls[path] = calls

    def _find_totals(self) -> Totals:
        if self.end is not None:
            last_seconds = self.last_sample.at_seconds if self.last_sample else 0.0
            return count_unread(self.end.totals, self.end.reason, last_seconds)
        return total_up(self.last_sample, self._n_readings)

    def _describe_damage(self) -> tuple[str, ...]:
        if not self._n_damaged:
            return ()
        return (f"{self._n_damaged} lines of the recording are damaged and were left out.",)


def append(columns: dict[Key, Column], rows: Mapping[Key, Column]) -> None:
    """Add rows to columns; what either of them lacks is unknown there."""
    n_before, n_new = len(columns[_AT]), len(rows[_AT])
    for key in rows.keys() - columns.keys():
        columns[key] = array("d", [nan]) * n_before
    for key, column in columns.items():
        column.extend(rows.get(key) or array("d", [nan]) * n_new)
