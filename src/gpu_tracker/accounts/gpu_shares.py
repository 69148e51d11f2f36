"""The job's own utilization of a device whose driver samples processes a few times a second, but not the device. Pure.

A sample names what ran at one instant, and stands for the time since the sample before. A driver has no sample of an
idle process. How often a driver samples has to be learned: time without samples is idle, or another's, once it is longer
than that; until then it is not known. Nor is the time after the driver was asked for samples of processes: a slow
driver reports the device up to a later time. A job is never busier than its device.
"""

from __future__ import annotations

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.model import GpuShares
    from .gpus import Span

# Samples closer together than this are of one instant: drivers sample at most ten times a second...
_ONE_INSTANT_SECONDS = 0.04
# ...and at least about once.
_SLOWEST_SECONDS = 1.0
_TOLERANCE = 1.5
# A sample may reach us this late.
_DELIVERY_SECONDS = 0.5
_LAST_DELIVERY_SECONDS = 0.1
# A driver keeps samples this long.
_KEPT_SECONDS = 9.0
_GAPS_TO_LEARN_FROM = 3
_GAPS_KEPT = 32
_LONGEST_LEARNING_SECONDS = 4.0


class _Waiting(NamedTuple):
    """A sample that is not counted yet."""

    at_seconds: float
    percent: float | None
    before_seconds: float
    """The reading before it came."""
    read_seconds: float
    """The reading at which it came."""
    is_late: bool
    """Whether others before it may have been dropped."""


class ShareMeter:
    """The job's share of one device; times are seconds since the start."""

    def __init__(self, at_seconds: float) -> None:
        self._percent_seconds = self._most_percent_seconds = 0.0
        self.seconds = 0.0
        """How much time the integral covers."""
        self._settled_seconds = at_seconds
        """Up to here time is counted, or will never be known."""
        self._until_seconds = self._end_seconds = at_seconds
        """Up to here the driver was asked, and the device is known."""
        self._read_seconds = self._there_seconds = at_seconds
        self._came_seconds: float | None = None
        """When the job was first there."""
        self.is_drawn = False
        """Each sample stands for a time in which the driver would have had others."""
        self._is_known = False
        """Whether any time since then, in which it was there, has been counted."""
        self._waiting: list[_Waiting] = []
        self._are_complete = False
        self._last_seconds: float | None = None
        self._gaps: list[float] = []
        self._ages: list[float] = []
        """Of the newest samples, when they were returned."""

    @property
    def percent_seconds(self) -> float:
        """The integral."""
        return min(self._percent_seconds, self._most_percent_seconds)

    def take(
        self,
        spans: Iterable[Span],
        shares: GpuShares,
        *,
        is_there: bool,
        is_alone: bool = False,  # noqa: ARG002 - of use where the device is sampled, too
    ) -> None:
        """Take the samples up to a reading, and whether the device then lists a process of the job."""
        for span in spans:
            length = span.end_seconds - span.start_seconds
            self._most_percent_seconds += length * (100.0 if span.percent is None else span.percent)
            self._end_seconds = span.end_seconds
        at_seconds = min(shares.until_seconds, self._end_seconds)
        before, self._until_seconds = self._until_seconds, at_seconds
        is_late = at_seconds - before > _KEPT_SECONDS
        if shares.instants:
            age = max(0.0, at_seconds - max(instant for instant, _ in shares.instants))
            self._ages = [*self._ages[1 - _GAPS_KEPT :], age]
        for instant, percent in shares.instants:
            self._add(_Waiting(instant, percent, self._read_seconds, at_seconds, is_late))
        self._are_complete |= shares.are_complete
        has_learned = len(self._gaps) >= _GAPS_TO_LEARN_FROM
        if has_learned or not is_there or at_seconds - self._settled_seconds > _LONGEST_LEARNING_SECONDS:
            self._settle()
        if is_there:
            self._there_seconds = at_seconds
            self._came_seconds = at_seconds if self._came_seconds is None else self._came_seconds
            if is_late and not shares.instants:
                self._settled_seconds = max(self._settled_seconds, at_seconds - _KEPT_SECONDS)
            if not self._waiting:
                limit = _TOLERANCE * self.period_seconds + _DELIVERY_SECONDS
                self._count_idle(at_seconds - limit)
        elif self._there_seconds == self._read_seconds:
            self.finish()
            self._settled_seconds = at_seconds  # at some time since the last reading it has left
        else:
            self._count_idle(at_seconds)
        self._read_seconds = at_seconds
        self._note_what_is_known()

    @property
    def is_unknown(self) -> bool:
        """Whether the device was busy while the job was there, but nothing is known of that time."""
        came = self._came_seconds
        return came is not None and not self._is_known and came < self._read_seconds

    def finish(self) -> None:
        """Count what waits; what the job did between its last sample and its end is known only if that is long."""
        self._settle()
        limit = _TOLERANCE * self.period_seconds + _LAST_DELIVERY_SECONDS
        if self._there_seconds - self._settled_seconds > limit:
            self._count_idle(self._there_seconds)
        self._note_what_is_known()

    def _note_what_is_known(self) -> None:
        if self._came_seconds is not None and self._there_seconds == self._read_seconds:
            self._is_known |= self._settled_seconds > self._came_seconds

    def _add(self, sample: _Waiting) -> None:
        last = self._last_seconds
        if last is None or sample.at_seconds - last >= _ONE_INSTANT_SECONDS:
            if last is not None:
                self._gaps = [*self._gaps[1 - _GAPS_KEPT :], sample.at_seconds - last]
            self._last_seconds = sample.at_seconds
            self._waiting.append(sample)
        elif self._waiting and sample.percent is not None:
            same = self._waiting[-1]
            self._waiting[-1] = same._replace(percent=min(100.0, (same.percent or 0.0) + sample.percent))

    @property
    def period_seconds(self) -> float:
        """How often the driver seems to sample processes: a gap without idle time in it: most are, if the job is busy at all."""
        if not self._gaps:
            return _SLOWEST_SECONDS
        return min(_SLOWEST_SECONDS, sorted(self._gaps)[len(self._gaps) // 4])

    def _settle(self) -> None:
        """Count the samples that have come."""
        period = self.period_seconds
        by_reading: dict[float, list[_Waiting]] = {}
        for sample in self._waiting:
            by_reading.setdefault(sample.read_seconds, []).append(sample)
        self._waiting = []
        for samples in by_reading.values():
            is_short = samples[0].read_seconds - samples[0].before_seconds <= period
            if is_short or (self._are_complete and not samples[0].is_late):
                for sample in samples:
                    self._count(sample, period, period, sample.at_seconds)
            else:
                # A driver may return only the newest sample of each process. Only the newest of all is then one that
                # nothing can have replaced; it stands for the others.
                newest = samples[-1]
                span = newest.at_seconds - samples[0].at_seconds
                self._count(newest, span + period, period, self._quiet_until(newest, period))

    def _count(self, sample: _Waiting, reach: float, period: float, quiet_until: float) -> None:
        gap = sample.at_seconds - self._settled_seconds
        if gap <= 0:
            return  # it came too late
        if gap <= reach + (_TOLERANCE - 1) * period:
            reach = gap
        else:
            self._count_idle(min(sample.at_seconds - reach, quiet_until))
        if sample.percent is not None:
            self._percent_seconds += sample.percent * reach
            self.seconds += reach
        self._settled_seconds = sample.at_seconds

    def _quiet_until(self, sample: _Waiting, period: float) -> float:
        """Until when there certainly was no sample, if since the reading before only the newest were returned."""
        # Samples come late: one that was not there yet when the driver was asked may be older than that.
        sure_seconds = sample.before_seconds - min(self._ages)
        is_long = sure_seconds - self._settled_seconds > _TOLERANCE * period
        return sure_seconds - period / 2 if is_long else self._settled_seconds

    def _count_idle(self, until_seconds: float) -> None:
        if until_seconds > self._settled_seconds:
            self.seconds += until_seconds - self._settled_seconds
            self._settled_seconds = until_seconds
