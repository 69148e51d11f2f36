"""The job's own utilization of a device whose driver samples the device, too. Pure.

Processes are sampled at instants of their own, which need not be those of the device. Each such sample names what ran,
and stands for the time since the one before, whoever that named.

A sample may be the mean of that time. Then it is worth its percent times its period, whenever in it the job worked, and
is distributed over the device's samples in proportion to their work. Or it may be that of one instant, which shows if
samples are more than their device did in the period. Then the device's samples bound it: in none of them has the job
worked more than its device. Either way, how often the driver samples need not be known, and may change.

A driver may name only one of those that ran since its sample before: chance has chosen which. That one then stands for all that the
device did, whatever the sample says of its own part.

Nobody is named at an instant at which nothing runs. Where processes are evidently sampled at the instants of the device,
such an instant is one at which the job was idle, even if the device was partly busy since the one before.

A driver may return only the newest sample of each process. If it was not asked for longer than it takes from one sample to the next,
only the period of the last one is known, or as long a time without one: not even that the job was idle counts before, or idle times would
be known more often than busy ones.

If the job has the device to itself, what the device did tells all of it: of times whose samples were dropped, or are chosen by chance.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from itertools import pairwise, takewhile

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..core.model import GpuShares
    from .gpus import Span

# Samples closer together than this are of one instant: drivers sample at most ten times a second.
_ONE_INSTANT_SECONDS = 0.04
# A sample is recent if it is no older than that many periods.
_RECENT = 1.1
# A process and its device are sampled at the same instant if they are dated no further apart.
_SAME_INSTANT_SECONDS = 0.02
_MOST_ELSEWHERE = 0.1
# An instant at which nobody is named, though the device was as busy as at those at which somebody is, was none.
_AS_BUSY = 0.95
_MOST_UNNAMED = 0.25
# A sample of a process comes no later: drivers sample at least about once a second, and deliver a little late.
_LONGEST_SECONDS = 2.0
_DELIVERY_SECONDS = 0.5
# Between samples that are further apart than usual, the job was idle.
_LONG = 2.2
_GAPS_KEPT = 15
_GAPS_TO_LEARN_FROM = 3
# A period that differs by this factor is another one.
_CHANGED = 1.2
# A period is that long, and no longer than a second. A sample of the device is much shorter up to this part of it.
_TOLERANCE = 1.5
_LONGEST_PERIOD_SECONDS = 1.0
_MUCH_SHORTER = 0.4
# Means fit their periods if they are on average no further from what the device did in them.
_MOST_MISFIT = 0.2
_LEAST_JUDGED = 3
# Samples are whole percents, of the device and of its processes.
_ROUNDING_PERCENT = 1.5
_JUDGED_KEPT = 20
# Whoever keeps a device this busy would have been named.
_FULL_PERCENT = 99.0
# A driver keeps samples this long.
_KEPT_SECONDS = 9.0


class _Named(NamedTuple):
    """A sample of processes: what the job used since the one before; None if that is not known."""

    start_seconds: float
    end_seconds: float
    percent: float | None
    hidden_seconds: float
    """Others since then may have been dropped."""
    before: tuple[float, float | None]
    """Until when the sample before still says it, and what that is; later the job was idle."""
    reach_seconds: float
    """Until then."""
    own_seconds: float
    """If it is the mean of a period: what it says is known since then."""
    mean_seconds: float
    """When that period began."""
    alone_seconds: float
    """For how long it stands, if others in between were dropped; else 0."""
    is_first: bool
    """Then how long that was is not known: we may have begun in the middle of it."""
    device_percent: float = 0.0
    """The device's mean over it."""

    def cut(self, span: Span, *, is_full: bool, are_means: bool) -> list[tuple[float, float | None]]:
        """For how long of this time the job used how much; a device that was fully busy was used by somebody."""
        pieces: list[tuple[float, float, float | None]]
        if are_means and self.percent is not None:
            pieces = [
                (self.start_seconds, self.own_seconds, self._extend(self.percent, span, is_full=is_full)),
                (self.own_seconds, self.end_seconds, self._distribute(self.percent, span)),
            ]
        elif is_full:
            pieces = [(self.start_seconds, self.end_seconds, self.percent)]
        else:
            before_seconds, before = self.before
            pieces = [
                (self.start_seconds, before_seconds, before),
                (before_seconds, self.reach_seconds, 0.0),
                (self.reach_seconds, self.end_seconds, self.percent),
            ]
        parts = (
            (min(end, span.end_seconds) - max(start, span.start_seconds), percent)
            for start, end, percent in pieces
        )
        return [part for part in parts if part[0] > 0]

    def _distribute(self, percent: float, span: Span) -> float:
        """The part of this mean that is due to one of the device's samples: in proportion to its work."""
        if span.percent is None or not self.device_percent:
            return percent
        scale = percent / self.device_percent
        return span.percent * (min(1.0, scale) if self.is_first else scale)

    def _extend(self, percent: float, span: Span, *, is_full: bool) -> float:
        """What it says of the time before its period, in which nobody was named: the same share of the device's work."""
        own_seconds = self.end_seconds - self.own_seconds
        # A longer sample of the device may be of work before or after that time.
        if span.length_seconds <= _MUCH_SHORTER * own_seconds:
            return min(self._distribute(percent, span), span.percent or 0.0)
        return percent if is_full else 0.0

    def covers(self, at_seconds: float) -> bool:
        """Whether it was taken at this instant, or stands for one that was dropped."""
        start_seconds = min(self.hidden_seconds, self.end_seconds - _SAME_INSTANT_SECONDS)
        return start_seconds < at_seconds <= self.end_seconds + _SAME_INSTANT_SECONDS


class TickMeter:
    """The job's share of one device; times are seconds since the start."""

    def __init__(self, at_seconds: float) -> None:
        self._percent_seconds = self._most_percent_seconds = 0.0
        self.seconds = 0.0
        """How much time the integral covers."""
        self.is_drawn = False
        """Whether it is made of instants, of a device that others use, too: chance has chosen them."""
        self._begin_seconds = at_seconds
        self._until_seconds = self._read_seconds = self._named_seconds = at_seconds
        self._came_seconds: float | None = None
        self._is_known = self._are_complete = self._has_named = self._are_together = self._was_there = False
        self._names_one = False
        self._waiting: list[Span] = []
        """Samples of the device that are not counted yet."""
        self._spans: list[Span] = []
        self._named: list[_Named] = []
        """Those that are recent, to compare them."""
        self._gaps: list[float] = []
        self._period_seconds = float("inf")
        """Of the driver's samples of processes."""
        self._judged_seconds = at_seconds
        """Up to here samples of processes were compared with what their device did."""
        self._unknown: list[tuple[float, float]] = []
        """Recent times of which samples of processes were dropped."""
        self._exceed: list[bool] = []
        """Whether the latest ones are more than their device can have done in a period."""

    @property
    def percent_seconds(self) -> float:
        """The integral; a job is never busier than its device."""
        return min(self._percent_seconds, self._most_percent_seconds)

    @property
    def period_seconds(self) -> float:
        """How often the driver seems to sample processes; 0 if that is not known yet."""
        return self._period_seconds if math.isfinite(self._period_seconds) else 0.0

    @property
    def is_unknown(self) -> bool:
        """Whether the device was busy while the job was there, but nothing is known of that time."""
        came = self._came_seconds
        return came is not None and not self._is_known and came < self._read_seconds

    def take(
        self, spans: Sequence[Span], shares: GpuShares, *, is_there: bool, is_alone: bool = False
    ) -> None:
        """Take the samples up to a reading, and whether the device then lists a process of the job, and only such."""
        known_spans = self._spans or spans
        have_dropped = [self._hear(one, known_spans, is_there=is_there) for one in (*shares.earlier, shares)]
        kept_seconds = shares.until_seconds - _KEPT_SECONDS
        # Of the time before we began, nothing is known.
        begun = (
            span._replace(
                start_seconds=max(self._begin_seconds, span.start_seconds),
                is_all_ours=is_alone,
                may_lack_names=any(have_dropped),
            )
            for span in spans
            if span.end_seconds > self._begin_seconds
        )
        kept = [span for span in begun if span.end_seconds >= kept_seconds]
        self._waiting += kept
        self._spans += [span for span in kept if span.percent is not None]
        self._read_seconds = kept[-1].end_seconds if kept else self._read_seconds
        self._are_together = self._compare_instants()
        self._judge(self._read_seconds)
        self._settle(_LONGEST_SECONDS)
        self._spans = [span for span in self._spans if span.end_seconds >= kept_seconds]
        self._named = [named for named in self._named if named.end_seconds >= kept_seconds]
        self._unknown = [one for one in self._unknown if one[1] >= kept_seconds - _KEPT_SECONDS]
        if is_there and self._came_seconds is None:
            self._came_seconds = self._read_seconds

    def _hear(self, shares: GpuShares, spans: Sequence[Span], *, is_there: bool) -> bool:
        """What the driver said when it was asked for samples of processes; whether it may have dropped some before."""
        self._are_complete |= shares.are_complete
        self._names_one = shares.names_one
        before_seconds, until_seconds = self._until_seconds, shares.until_seconds
        least_seconds = self._find_least_seconds(spans, until_seconds)
        # A job that is not there has no samples that could have been dropped.
        may_run = is_there or self._was_there or any(percent for _, percent in shares.instants)
        has_dropped = may_run and until_seconds - before_seconds > least_seconds
        self._was_there = is_there
        self._add_named(shares.instants, least_seconds if has_dropped else 0.0)
        self._until_seconds = max(before_seconds, until_seconds)
        if has_dropped:
            first = self._find_known_seconds(before_seconds, least_seconds)
            last = self._find_known_seconds(until_seconds, least_seconds) - least_seconds
            self._unknown.append((first, last))
        return has_dropped

    def finish(self) -> None:
        """Count what waits up to the last sample of a process; what the job did after it is not known."""
        if self._named_seconds > self._read_seconds:
            from .gpus import Span

            self._waiting.append(Span(self._read_seconds, self._named_seconds, None))
        self._judge(self._named_seconds)
        # Samples that name nobody would be missing among the last instants.
        self._settle(_DELIVERY_SECONDS if self._are_together else _LONGEST_SECONDS)
        for span in self._waiting:
            self._count(span, is_over=False)
        self._waiting = []

    def _find_least_seconds(self, spans: Sequence[Span], until_seconds: float) -> float:
        """From one sample of processes to the next, at least; infinite if none can have been dropped since the driver was last asked."""
        lengths = sorted(span.length_seconds for span in spans[-_GAPS_KEPT:])
        if self._are_complete or not lengths:
            return float("inf")
        usual = self._find_usual_seconds()
        # If every time that it was asked there was a new one, there may have been more.
        is_telling = math.isfinite(usual) and usual > _TOLERANCE * (until_seconds - self._until_seconds)
        return usual if is_telling else min(usual, lengths[len(lengths) // 2])

    def _find_known_seconds(self, asked_seconds: float, least_seconds: float) -> float:
        """Up to when samples tell what the job did, at a time at which the driver was asked: to the newest, if there is a recent one."""
        ends = (named.end_seconds for named in reversed(self._named) if named.end_seconds <= asked_seconds)
        newest = next(ends, 0.0)
        return newest if newest > asked_seconds - _RECENT * least_seconds else asked_seconds

    def _find_part(self) -> float:
        """Which part of what the device does is the job's, which has it to itself.

        Means are compared with what the device did in their periods, if those fit: its own samples may be of shorter ones, and the
        busiest of them is busier than any longer one. Else the largest recent samples of both are compared. Samples that name only one of
        its processes tell no part.
        """
        if self._names_one:
            return 1.0
        judged = [one for one in self._named if one.percent and one.device_percent and not one.is_first]
        job, device = sum(one.percent or 0.0 for one in judged), sum(one.device_percent for one in judged)
        misfit = sum(abs((one.percent or 0.0) * device - one.device_percent * job) for one in judged)
        if len(judged) >= _LEAST_JUDGED and misfit > _MOST_MISFIT * job * device:
            job, device = self._find_busiest()
        return min(1.0, job / device) if device and job else 1.0

    def _find_busiest(self) -> tuple[float, float]:
        """The largest recent samples of the job and of its device."""
        seen = (span.percent or 0.0 for span in self._spans if not self._is_unknown(span.end_seconds))
        job = max((named.percent or 0.0 for named in self._named), default=0.0)
        return job, max(seen, default=0.0)

    def _is_unknown(self, at_seconds: float) -> bool:
        return any(first < at_seconds <= last for first, last in self._unknown)

    def _add_named(self, instants: Iterable[tuple[float, float | None]], alone_seconds: float) -> None:
        """Each stands for the time since the one before; for that much only, if others in between were dropped."""
        merged = _merge(one for one in instants if one[0] > self._named_seconds)
        known = [at_seconds for at_seconds, _ in merged]
        if self._has_named:
            known.insert(0, self._named_seconds)
        self._gaps = [*self._gaps, *(later - earlier for earlier, later in pairwise(known))][-_GAPS_KEPT:]
        for at_seconds, percent in merged if self._are_complete else merged[-1:]:
            self._named.append(self._begin(at_seconds, percent, alone_seconds))
            self._named_seconds = at_seconds
            self._has_named = True

    def _begin(self, at_seconds: float, percent: float | None, alone_seconds: float) -> _Named:
        start_seconds, usual = self._named_seconds, self._find_usual_seconds()
        hidden_seconds = at_seconds if self._are_complete else self._until_seconds
        before, reach_seconds = (start_seconds, percent), start_seconds
        gap_seconds = at_seconds - start_seconds
        if (
            self._named
            and self._is_shared
            and gap_seconds > _TOLERANCE * (period := self._find_shortest_seconds())
        ):
            side = period / 2
            reach_seconds = at_seconds - side
            before = start_seconds + side, self._named[-1].percent
        elif gap_seconds > _LONG * usual:
            # It stands for the time around it, up to where samples of the device, if they are closer, say that it ended.
            side = max(usual / 2, usual - self._spans[-1].length_seconds / 2) if self._spans else usual / 2
            reach_seconds = max(start_seconds, min(hidden_seconds, at_seconds - side))
            before = min(start_seconds + side, reach_seconds), self._named[-1].percent
        named = _Named(
            start_seconds,
            at_seconds,
            percent,
            hidden_seconds,
            before,
            reach_seconds,
            own_seconds=start_seconds,
            mean_seconds=start_seconds,
            alone_seconds=alone_seconds,
            is_first=not self._named,
        )
        return _date_period(named, self._period_seconds)

    @property
    def _is_shared(self) -> bool:
        """Whether others were named recently."""
        return any(named.percent == 0 for named in self._named)

    def _find_shortest_seconds(self) -> float:
        """A gap in which no sample is missing, unless the job and all others are hardly ever there; infinite if that is not known."""
        gaps = sorted(self._gaps)
        return gaps[len(gaps) // 8] if len(gaps) >= _GAPS_TO_LEARN_FROM else float("inf")

    @property
    def _are_means(self) -> bool:
        """Whether samples of processes may be means of their periods: then none is more than its device did."""
        return sum(self._exceed) <= _MOST_ELSEWHERE * len(self._exceed)

    def _judge(self, until_seconds: float) -> None:
        """Compare new samples of processes with what is now known of their device; all of them, if their period was not known."""
        self._learn_period()
        first = bisect_right([named.end_seconds for named in self._named], self._judged_seconds)
        for place, named in enumerate(self._named[first:], first):
            if named.end_seconds > until_seconds:
                break
            self._judged_seconds = named.end_seconds
            overlaps = self._find_overlaps(named)
            seconds = sum(overlap for overlap, _ in overlaps)
            work = sum(overlap * (span.percent or 0.0) for overlap, span in overlaps)
            self._named[place] = named._replace(device_percent=work / seconds if seconds else 0.0)
            if named.percent and seconds and not named.is_first:
                length = named.end_seconds - named.mean_seconds
                most = 100.0 * (length - seconds) + sum(
                    min(100.0 * overlap, span.length_seconds * (span.percent or 0.0))
                    for overlap, span in overlaps
                )
                exceeds = (named.percent - _ROUNDING_PERCENT) * length > most
                self._exceed = [*self._exceed, exceeds][-_JUDGED_KEPT:]

    def _find_overlaps(self, named: _Named) -> list[tuple[float, Span]]:
        """The device's samples in the period of one of its processes, and how long they are in it."""
        recent = takewhile(lambda span: span.end_seconds > named.mean_seconds, reversed(self._spans))
        overlaps = (
            (min(span.end_seconds, named.end_seconds) - max(span.start_seconds, named.mean_seconds), span)
            for span in recent
        )
        return [overlap for overlap in overlaps if overlap[0] > 0]

    def _find_usual_seconds(self) -> float:
        """How far apart recent samples of processes are."""
        gaps = sorted(
            named.end_seconds - named.start_seconds
            for named in self._named[-_GAPS_KEPT:]
            if not named.is_first
        )
        return gaps[len(gaps) // 2] if gaps else float("inf")

    def _learn_period(self) -> None:
        """How long the driver's period seems to be: idle ones have no sample, so that it is one of the shorter gaps."""
        if len(self._gaps) < _GAPS_TO_LEARN_FROM:
            return
        period = sorted(self._gaps)[len(self._gaps) // 4]
        if period / _CHANGED <= self._period_seconds <= period * _CHANGED:
            return
        self._period_seconds = period
        self._named = [_date_period(named, period) for named in self._named]
        self._exceed, self._judged_seconds = [], self._begin_seconds

    def _compare_instants(self) -> bool:
        """Whether processes are sampled at the instants of their device, as far as the recent ones tell."""
        ends = [span.end_seconds for span in self._spans]
        places = [_find_nearest(ends, named.end_seconds) for named in self._named]
        together = {place for place in places if place is not None}
        percents = sorted(self._spans[place].percent or 0.0 for place in together)
        if not percents or places.count(None) > _MOST_ELSEWHERE * len(places):
            return False
        as_busy = _AS_BUSY * percents[len(percents) // 2]
        busy = [
            end
            for place, end in enumerate(ends)
            if (self._spans[place].percent or 0.0) >= as_busy and place not in together
        ]
        return self._count_unnamed(busy) <= _MOST_UNNAMED * len(percents)

    def _count_unnamed(self, instants: Iterable[float]) -> int:
        """Of these instants, those at which certainly nobody was named."""
        ends = [named.end_seconds for named in self._named]
        nexts = ((at, bisect_left(ends, at)) for at in instants)
        return sum(at <= self._named[place].hidden_seconds for at, place in nexts if place < len(ends))

    def _settle(self, patience_seconds: float) -> None:
        """Count the samples of the device in which nobody will be named any more."""
        # A busy device that has never named anybody says nothing of the job.
        patience_seconds = patience_seconds if self._has_named else _KEPT_SECONDS
        due = [span for span in self._waiting if self._is_due(span, self._until_seconds - patience_seconds)]
        self._waiting = [span for span in self._waiting if span not in due]
        for span in due:
            self._count(span, is_over=True)

    def _is_due(self, span: Span, sure_seconds: float) -> bool:
        return (
            span.is_too_old
            or span.percent == 0
            or span.end_seconds <= max(self._judged_seconds, sure_seconds)
        )

    def _count(self, span: Span, *, is_over: bool) -> None:
        if span.is_too_old or (span.percent and not self._has_named):
            return
        most = 100.0 if span.percent is None else span.percent
        known: list[tuple[float, float]] = []
        if span.percent is not None and self._tells_all(span):
            known = [(span.length_seconds, span.percent * self._find_part())]
        else:
            for one in self._leave_out_unknown(span):
                named, rest_seconds = self._measure(
                    one, is_full=span.percent is not None and most >= _FULL_PERCENT
                )
                known += named
                if is_over and most < _FULL_PERCENT:
                    known.append((rest_seconds, 0.0))
        seconds = sum(length for length, _ in known)
        used = sum(length * percent for length, percent in known)
        self.seconds += seconds
        self._most_percent_seconds += most * seconds
        # One instant may be busier than the time that it stands for; only the mean of many is not. Where others share the device, it may
        # be less busy just as well: to leave out only what is too much would make the mean too small.
        are_sums = self._are_together or self._are_means
        self.is_drawn |= self._is_shared and (self._names_one or not are_sums) and used > 0
        self._percent_seconds += used if are_sums or self._is_shared else min(used, most * seconds)
        came = self._came_seconds
        self._is_known |= came is not None and seconds > 0 and span.end_seconds > came

    def _tells_all(self, span: Span) -> bool:
        """Whether the device itself tells what the job did then: more than samples of which some are missing, or chosen by chance."""
        return span.is_all_ours and (span.may_lack_names or (not self._is_shared and self._are_chosen()))

    def _are_chosen(self) -> bool:
        """Whether samples name one of the job's workers, or instants of bursts that are shorter than any sample of the device."""
        job, device = self._find_busiest()
        return self._names_one or (not self._are_means and job > device + _ROUNDING_PERCENT)

    def _leave_out_unknown(self, span: Span) -> list[Span]:
        """The parts of a sample of the device in which samples of processes were not dropped."""
        if self._are_together:
            # Only the instant at its end counts.
            return [] if self._is_unknown(span.end_seconds) else [span]
        parts, start_seconds = [], span.start_seconds
        for first, last in self._unknown:
            if first < span.end_seconds and last > start_seconds:
                parts.append(
                    span._replace(start_seconds=start_seconds, end_seconds=max(start_seconds, first))
                )
                start_seconds = max(start_seconds, last)
        rest = span._replace(start_seconds=min(start_seconds, span.end_seconds))
        return [part for part in (*parts, rest) if part.length_seconds > 0]

    def _credit(self, named: _Named) -> float | None:
        """The job's percent in the period of a sample: all that the device did, if only one of those that ran is named."""
        stands_for_all = self._names_one and self._are_means and named.percent and named.device_percent
        return named.device_percent if stands_for_all else named.percent

    def _measure(self, span: Span, *, is_full: bool) -> tuple[list[tuple[float, float]], float]:
        """For how long the job used how much, and the time in which nobody was named."""
        start_seconds = span.start_seconds - _SAME_INSTANT_SECONDS
        recent = takewhile(lambda one: one.end_seconds > start_seconds, reversed(self._named))
        near = [one._replace(percent=self._credit(one)) for one in recent]
        if self._are_together:
            named = [one.percent for one in near if one.covers(span.end_seconds)][:1]
            parts = [(span.length_seconds, percent) for percent in named]
        else:
            parts = [
                part for one in near for part in one.cut(span, is_full=is_full, are_means=self._are_means)
            ]
        rest_seconds = span.length_seconds - sum(length for length, _ in parts)
        return [(length, percent) for length, percent in parts if percent is not None], rest_seconds


def _date_period(named: _Named, period_seconds: float) -> _Named:
    """With the period that it is the mean of, if samples have that period."""
    start, at = named.start_seconds, named.end_seconds
    period = min(period_seconds, _LONGEST_PERIOD_SECONDS)
    own = mean = start
    if not named.is_first and at - start > _TOLERANCE * period:
        mean = max(start, at - period)
        own = min(mean, max(start, named.hidden_seconds))
    if named.alone_seconds:
        known_seconds = period if math.isfinite(period_seconds) else 0.0
        own = max(start, at - max(known_seconds, named.alone_seconds))
    return named._replace(own_seconds=own, mean_seconds=mean)


def _merge(instants: Iterable[tuple[float, float | None]]) -> list[tuple[float, float | None]]:
    """Samples of one instant are added; invalid ones say nothing."""
    merged: list[tuple[float, float | None]] = []
    for at_seconds, percent in instants:
        if merged and at_seconds - merged[-1][0] < _ONE_INSTANT_SECONDS:
            first_seconds, before = merged[-1]
            known = [value for value in (before, percent) if value is not None]
            merged[-1] = first_seconds, min(100.0, sum(known)) if known else None
        else:
            merged.append((at_seconds, percent))
    return merged


def _find_nearest(instants: Sequence[float], at_seconds: float) -> int | None:
    """The place of the first of these instants that is the same."""
    place = bisect_left(instants, at_seconds - _SAME_INSTANT_SECONDS)
    is_found = place < len(instants) and instants[place] <= at_seconds + _SAME_INSTANT_SECONDS
    return place if is_found else None
