"""GPU readings in, peaks and counters out. Pure: no driver, no clock.

If a device does not list its processes, the job's memory on it is unknown, not zero.
"""

from __future__ import annotations

from ..core.figures import MOST_WATTS
from ..core.model import (
    DRAWN,
    EXACT,
    INTEGRATED,
    LINKS,
    POLLED,
    SAMPLED,
    Activity,
    GpuCounters,
    GpuPeaks,
    GpuProcessPeak,
    GpuProcessReading,
    GpuReading,
    GpuSample,
    Parts,
    Traffic,
    add_known,
    add_sizes,
    average_activity,
    find_activity,
    larger,
)
from ..core.units import humanize_seconds
from ..core.values import NamedTuple
from ..core.vendors import name_vendor
from .gpu_lists import ListCheck
from .gpu_lives import Lives
from .peak_moments import PeakMoments
from .recovery import add_gap, add_unknown, doubt_empty, doubt_idle_counters, doubt_idle_peaks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ..core.model import Gpu, GpuFault, GpuHighWater, GpuReadings, GpuShares
    from .gpu_faults import FaultAccount
    from .gpu_shares import ShareMeter
    from .gpu_ticks import TickMeter

_MOST_PROCESSES = 32
# For a moment a device may draw more than its limit.
_MOST_OF_LIMIT = 2.0
# A counter that does not move for longer has stopped, if that much is drawn: counters are updated once a second, at least.
_LONGEST_STILL_SECONDS = 1.2
_LEAST_WATTS = 1.0
# A counter that then moves by this share of what was drawn meanwhile has gone on counting unseen.
_LEAST_CAUGHT_UP = 0.5
# Counters of energy are updated once a second, at least; most of them ten times.
_LONGEST_ENERGY_DELAY_SECONDS = 1.0
_ENERGY_DELAY_SECONDS = 0.1
# A shorter time without a figure is not worth a note, nor is one at the end in which links were not counted.
_NOTABLE_GAP_SECONDS = 0.2
_NOTABLE_UNTOLD_SECONDS = 0.5
# How long a reading counts if it is the only one; else it depends on how far apart they usually are.
_FIRST_READING_SECONDS = 1.0
_GAPS_KEPT = 8
_TOLERANCE = 1.5
# A healthy driver answers in less.
_ANSWER_SECONDS = 0.5
# Of a run, this much may be missing in all because the machine was busy, a little at a time.
_NOTABLE_STALLS = 0.01
# No driver samples less often...
_LONGEST_SAMPLE_SECONDS = 2.0
# ...so of a longer time without samples, the first one afterwards says no more than this.
_SAMPLE_SECONDS = 1.0


class Span(NamedTuple):
    """Utilization of a device; None if not known."""

    start_seconds: float
    end_seconds: float
    percent: float | None
    is_sampled: bool = True
    """If not, it is the latest value at the end."""
    is_too_old: bool = False
    """Whether nothing was read for so long that nothing is known of it."""
    is_all_ours: bool = False
    """Whether the job had the device to itself."""
    may_lack_names: bool = False
    """Whether samples of its processes may have been dropped."""

    @property
    def length_seconds(self) -> float:
        """How long it lasted."""
        return self.end_seconds - self.start_seconds


class GpuTotals(NamedTuple):
    """Over all devices, at one reading."""

    job_bytes: Parts[int | None]
    system_bytes: int | None
    allowed_percent: float | None
    """Utilization of the devices that the job may use, summed."""
    with_job_percent: float | None
    """Of the devices that list a process of the job."""


class Drawn(NamedTuple):
    """Energy of a device, and the time in which it was drawn."""

    joules: float
    start_seconds: float
    end_seconds: float


class GpuMoment(NamedTuple):
    """What is new of the devices that the job uses; if none is known, of those that it may use."""

    job_bytes: int | None
    """On all devices together."""
    n_devices: int = 0
    """How many these are, those included that were not read now."""
    spans: tuple[Span, ...] = ()
    """Their utilization, as far as it is known."""
    drawn: tuple[Drawn, ...] = ()


class _Held(NamedTuple):
    """The job's memory and utilization on one device; None if not known."""

    bytes: Parts[int | None]
    percent: float | None


_MISSED = "The job was too short for a reading of the GPUs: what it used of them is not known."
_NO_ACTIVITY = ((0.0, 0.0),) * len(Activity._fields)
_NOT_KNOWN = _Held(Parts(None, None, None), None)


class _Gap(NamedTuple):
    """Since when a figure was missing, and for how long altogether."""

    from_seconds: float = 0.0
    seconds: float = 0.0

    def add(self, from_seconds: float, until_seconds: float) -> _Gap:
        """With one more time in which it was missing."""
        return _Gap(
            self.from_seconds if self.seconds else from_seconds, self.seconds + until_seconds - from_seconds
        )

    @property
    def is_notable(self) -> bool:
        return self.seconds > _NOTABLE_GAP_SECONDS

    def __str__(self) -> str:
        return f"for {humanize_seconds(self.seconds)} from {self.from_seconds:.1f} s on"


class _JobUse:
    """The job's own utilization of one device since the start."""

    def __init__(self) -> None:
        self._percent_seconds = self._seconds = 0.0
        self._meter: ShareMeter | TickMeter | None = None
        self._has_ticks = False
        """Whether the driver samples the device, too."""
        self._is_unknown = self._was_unknown = False
        self._was_drawn = False
        self._lives = Lives()

    @property
    def is_drawn(self) -> bool:
        """Whether it is the mean of instants, which chance may have chosen well or badly."""
        meter = self._meter
        return self._was_drawn or (
            meter is not None and (meter.is_drawn or self._lives.are_short(meter.period_seconds))
        )

    def take(
        self,
        since_seconds: float,
        at_seconds: float,
        spans: Sequence[Span],
        shares: GpuShares | None,
        percent: float | None,
        *,
        there: Collection[int],
        has_ticks: bool,
        is_alone: bool,
        has_others: bool,
    ) -> None:
        """Take the driver's samples or, where it keeps none, the percentage since the last reading.

        `is_alone`: all that the device did since then was done for the job.
        """
        is_there = bool(there)
        self._lives.take(at_seconds, there, has_others=has_others)
        self._is_unknown = percent is None
        self._was_unknown |= is_there and percent is None
        if shares is None:
            self.finish()
            if percent is not None:
                self._percent_seconds += percent * (at_seconds - since_seconds)
                self._seconds += at_seconds - since_seconds
            return
        if has_ticks != self._has_ticks:
            self.finish()
        self._has_ticks = has_ticks
        if self._meter is None:
            self._meter = _begin_meter(since_seconds, has_ticks=has_ticks)
        self._meter.take(spans, shares, is_there=is_there, is_alone=is_alone)

    def finish(self) -> None:
        """The driver samples no longer."""
        if self._meter is not None:
            self._meter.finish()
            self._percent_seconds += self._meter.percent_seconds
            self._seconds += self._meter.seconds
            self._was_unknown |= self._meter.is_unknown
            self._was_drawn = self.is_drawn
            self._meter = None

    def lose(self) -> None:
        """From now on it is not known."""
        self.finish()
        self._was_unknown = True

    def total(self) -> tuple[float, float]:
        """The integral, and the time that it covers: none if the job was idle only while it was not there."""
        integral, seconds = self._percent_seconds, self._seconds
        is_unknown = self._is_unknown or self._was_unknown
        if self._meter is not None:
            integral, seconds = integral + self._meter.percent_seconds, seconds + self._meter.seconds
            is_unknown |= self._meter.is_unknown
        return integral, 0.0 if is_unknown and not integral else seconds


def _begin_meter(at_seconds: float, *, has_ticks: bool) -> ShareMeter | TickMeter:
    if has_ticks:
        from .gpu_ticks import TickMeter

        return TickMeter(at_seconds)
    from .gpu_shares import ShareMeter

    return ShareMeter(at_seconds)


class _Device:
    """One device since the start."""

    def __init__(
        self,
        reading: GpuReading,
        at_seconds: float,
        *,
        is_late: bool = False,
        power_limit_watts: float | None = None,
    ) -> None:
        """`is_late`: others of the same driver were read before."""
        self.uuid = reading.uuid
        self._most_watts = _MOST_OF_LIMIT * power_limit_watts if power_limit_watts else MOST_WATTS
        self.late_seconds = at_seconds if is_late else 0.0
        self.at_seconds = self.found_seconds = at_seconds
        self.reading = reading
        self.held = _NOT_KNOWN
        self.held_before: int | None = None
        """By the job, before it began."""
        self.is_ever_held_known = self._is_ever_used_known = False
        self.first_used_bytes = reading.used_bytes
        # What is found late may have been there for a while.
        self.counters = GpuCounters(
            reading.uuid,
            job_bytes_unknown_seconds=at_seconds,
            used_bytes_unknown_seconds=at_seconds,
            job_bytes_gap_seconds=self.late_seconds,
            used_bytes_gap_seconds=self.late_seconds,
            utilization_gap_seconds=self.late_seconds,
        )
        self.peaks = GpuPeaks(reading.uuid)
        self.pids: set[int] = set()
        self.lists = ListCheck()
        self.divided_seconds = 0.0
        """How much of the job's use was divided among its processes."""
        self._was_there = False
        """Whether it listed a process of the job at the last reading."""
        self._energy_joules = reading.energy_joules
        self._energy_at_seconds = _date_energy(reading, at_seconds)
        self._energy_changed_seconds = self._energy_at_seconds - _LONGEST_ENERGY_DELAY_SECONDS
        """When the counter moved last: some are updated once a second, with all that was used meanwhile."""
        self.spans: Sequence[Span] = ()
        """Utilization since the reading before."""
        self.drawn: Drawn | None = None
        """Energy that was not told yet: it was drawn since the counter moved before, however long ago that was read."""
        self._drawn_seconds = max(0.0, self._energy_at_seconds)
        self.energy_gap_seconds = 0.0
        """How much time is left out, because the counter has jumped or begun again."""
        self.is_energy_integrated = False
        """Whether energy is the sum of its power over time, because its driver has no counter, or one that stood still."""
        self.energy_still = self.energy_silent = _Gap()
        """When it stood still although power was drawn, and while power could not be read either."""
        self._still_seconds = self._still_joules = self._stood_in_joules = 0.0
        """Of the present stretch: how long it is, what was drawn in it, and what of that is counted."""
        self._silent_seconds = 0.0
        """For how long it stands still at present while power cannot be read either."""
        self.is_polled = False
        """Whether utilization is its latest value at each reading, because its driver keeps no samples."""
        self._utilized_seconds = at_seconds
        """Up to here utilization is counted."""
        self._slept_seconds = 0.0
        """Up to here nothing was read because it slept."""
        self._read_seconds = self._sampled_seconds = float("inf")
        """When it was first read and first reported its utilization, after the start."""
        self.is_missed = False
        """Whether the job ended before that."""
        self._use = _JobUse()
        self._was_size_unknown = False
        self.is_listing = False
        """Whether it has ever listed its processes."""
        self.unlisted = self.unutilized = self.unattributed = self.unread = _Gap()
        """When it has not, when its utilization, and the job's own, was missing, and when everything was."""
        self._was_attributed = False
        self._traffic_seconds = [0.0] * len(Traffic._fields)
        """How long what went each way through its links was counted."""
        self.untold_links: tuple[str, ...] = ()
        self.untold_seconds = 0.0
        """Links that were not counted all the time, and for how long."""
        self._distances: list[float] = []
        """Between the latest readings."""
        self._delay_seconds = self._stalled_seconds = 0.0
        """For how long nothing was read before the present reading, and in all only because nobody ran who reads."""
        self._is_cut_off = False
        """Whether its driver answered no longer at the end."""
        self.start_interval()

    def start_interval(self) -> None:
        """Begin a new interval, after a line was written."""
        self._interval_start = self.counters
        self._interval_used_bytes: int | None = None
        self._interval_job_bytes: int | None = None
        self._was_interval_unknown = self._is_interval_read = False

    def take(
        self,
        at_seconds: float,
        reading: GpuReading,
        held: _Held,
        pids: Iterable[int],
        *,
        unanswered_seconds: float = 0.0,
        late_seconds: float = 0.0,
    ) -> None:
        """Take a reading, and for how long nothing was read before: the driver did not answer, or nobody read."""
        span = max(0.0, at_seconds - self.at_seconds)
        self._delay_seconds = min(span, max(unanswered_seconds, late_seconds))
        there = set(pids)
        has_others = reading.has_others or self.reading.has_others
        spans = self._cut(at_seconds, reading)
        unread_seconds = self._find_unread(at_seconds)
        self.spans = spans
        if span:
            self._distances = [*self._distances[1 - _GAPS_KEPT :], span]
        self._use.take(
            self.at_seconds,
            at_seconds,
            spans,
            reading.shares,
            held.percent,
            there=there,
            has_ticks=reading.samples is not None,
            is_alone=bool(there or self._was_there) and not has_others,
            has_others=has_others,
        )
        self._was_there = bool(there)
        for place, moved in enumerate(reading.traffic):
            self._traffic_seconds[place] += 0.0 if moved is None else reading.activity_seconds
        self._note_unknown(at_seconds, reading, held)
        for one in spans:
            self.is_polled |= not one.is_sampled and one.percent is not None
        is_stall = late_seconds > 0 and not unanswered_seconds
        self._stalled_seconds += unread_seconds if is_stall else 0.0
        # What stalls have cost is known in the end.
        missed = unread_seconds, 0.0 if is_stall else unread_seconds
        self.counters = self._add_unknown(
            self._count(reading, span, spans),
            missed if held.bytes.combined is not None else (span, span),
            missed if reading.used_bytes is not None else (span, span),
            spans,
        )
        self._note_first(at_seconds, spans)
        self.at_seconds, self.reading, self.held = at_seconds, reading, held
        if not at_seconds:
            self.held_before = held.bytes.combined
        self.is_ever_held_known |= held.bytes.combined is not None
        self._is_ever_used_known |= reading.used_bytes is not None
        self._is_interval_read = True
        self.pids.update(there)
        self._interval_used_bytes = larger(self._interval_used_bytes, reading.used_bytes)
        self._interval_job_bytes = larger(self._interval_job_bytes, held.bytes.combined)
        peaks = self.peaks
        grown = None
        if reading.used_bytes is not None and self.first_used_bytes is not None:
            grown = max(0, reading.used_bytes - self.first_used_bytes)
        is_new_peak = (held.bytes.combined or 0) > (peaks.job_bytes.combined or 0)
        self.peaks = GpuPeaks(
            uuid=self.uuid,
            used_bytes=larger(peaks.used_bytes, reading.used_bytes),
            job_bytes=Parts(*map(self._raise, peaks.job_bytes, held.bytes)),
            basis=SAMPLED if is_new_peak else peaks.basis,
            utilization_percent=larger(peaks.utilization_percent, _high(reading)),
            grown_bytes=larger(peaks.grown_bytes, grown),
            power_watts=larger(peaks.power_watts, reading.power_watts),
            temperature_celsius=larger(peaks.temperature_celsius, reading.temperature_celsius),
            has_job=bool(self.pids),
        )

    @property
    def is_use_drawn(self) -> bool:
        """Whether the job's own utilization is the mean of instants."""
        return self._use.is_drawn

    def _add_unknown(
        self,
        counters: GpuCounters,
        of_job: tuple[float, float],
        of_all: tuple[float, float],
        spans: Iterable[Span],
    ) -> GpuCounters:
        """With the time in which the job's memory, and that of all, was not known, and how much of it is a gap if it ever was."""
        unutilized_seconds = sum(span.length_seconds for span in spans if span.percent is None)
        is_ever_utilized = self._sampled_seconds < float("inf")
        return counters._replace(
            job_bytes_unknown_seconds=counters.job_bytes_unknown_seconds + of_job[0],
            used_bytes_unknown_seconds=counters.used_bytes_unknown_seconds + of_all[0],
            job_bytes_gap_seconds=counters.job_bytes_gap_seconds
            + (of_job[1] if self.is_ever_held_known else 0.0),
            used_bytes_gap_seconds=counters.used_bytes_gap_seconds
            + (of_all[1] if self._is_ever_used_known else 0.0),
            utilization_gap_seconds=counters.utilization_gap_seconds
            + (unutilized_seconds if is_ever_utilized else 0.0),
        )

    def miss(self, at_seconds: float) -> None:
        """It was not among the devices that were read."""
        nothing = GpuReading(self.uuid, lists_processes=False, has_lost_list=True)
        self.take(at_seconds, nothing, _NOT_KNOWN, ())

    def sleep(self, at_seconds: float) -> None:
        """It was not read, because that would have woken it: nothing changes while it sleeps."""
        self._slept_seconds = at_seconds

    def finish(self, end_seconds: float, *, has_ended: bool) -> None:
        """There will be no more readings; those after the end of a job say nothing of it."""
        self._use.finish()
        self._delay_seconds = 0.0
        unread_seconds = self._find_unread(end_seconds, is_last=True)
        self.counters = add_unknown(self._with_use(self.counters), unread_seconds)
        if self._stalled_seconds > _NOTABLE_STALLS * end_seconds:
            self.counters = add_gap(self.counters, self._stalled_seconds)
        if self._is_cut_off and self._sampled_seconds < float("inf"):
            gap_seconds = self.counters.utilization_gap_seconds + max(
                0.0, end_seconds - self._utilized_seconds
            )
            self.counters = self.counters._replace(utilization_gap_seconds=gap_seconds)
        self._doubt_traffic(end_seconds - self.late_seconds)
        last_seconds = end_seconds if has_ended else float("inf")
        self.is_missed = self.is_listing and self._read_seconds > last_seconds
        if self._sampled_seconds > last_seconds:
            self.counters = doubt_idle_counters(self.counters)
            self.peaks = self.peaks._replace(utilization_percent=self.peaks.utilization_percent or None)
        if self.is_missed or self.counters.used_bytes_unknown_seconds > end_seconds / 2:
            self.peaks = doubt_empty(self.peaks)

    def _doubt_traffic(self, seconds: float) -> None:
        """A total that lacks some time is a lower bound; nothing in it is then no total."""
        traffic = self.counters.traffic
        missing = [
            0.0 if moved is None else seconds - known
            for moved, known in zip(traffic, self._traffic_seconds, strict=False)
        ]
        untold = [place for place, gap in enumerate(missing) if gap > _NOTABLE_UNTOLD_SECONDS]
        self.untold_links = tuple(dict.fromkeys(LINKS[place // 2] for place in untold))
        self.untold_seconds = max((missing[place] for place in untold), default=0.0)
        kept = tuple(None if place in untold and not moved else moved for place, moved in enumerate(traffic))
        self.counters = self.counters._replace(traffic=kept)

    def _note_first(self, at_seconds: float, spans: Sequence[Span]) -> None:
        if at_seconds > 0:
            self._read_seconds = min(self._read_seconds, at_seconds)
        known = [span.end_seconds for span in spans if span.percent is not None]
        self._sampled_seconds = min([self._sampled_seconds, *known])

    def lose(self) -> None:
        """From now on nothing is known."""
        self._is_cut_off = True
        self._use.lose()
        self.counters = doubt_idle_counters(self._with_use(self.counters))
        self._was_size_unknown = self._was_interval_unknown = True
        self.held, self.reading = _NOT_KNOWN, GpuReading(self.uuid)
        self.peaks = doubt_idle_peaks(self.peaks)

    def _raise(self, known: int | None, seen: int | None) -> int | None:
        """The larger one. If the job has held an unknown amount, zero is only what it held at other times."""
        most = larger(known, seen)
        return None if not most and (seen is None or self._was_size_unknown) else most

    def _note_unknown(self, at_seconds: float, reading: GpuReading, held: _Held) -> None:
        self._was_interval_unknown |= held.bytes.combined is None
        # A list that is only doubted, because nothing in it is ours, was right if something is later.
        if reading.lists_processes or reading.has_lost_list:
            self._was_size_unknown |= held.bytes.combined is None
        self.is_listing |= reading.lists_processes
        if reading.has_lost_list and _high(reading) is None and reading.used_bytes is None:
            self.unread = self.unread.add(self.at_seconds, at_seconds)
            return
        if reading.has_lost_list:
            self.unlisted = self.unlisted.add(self.at_seconds, at_seconds)
        elif held.percent is None and self._was_attributed:
            self.unattributed = self.unattributed.add(self.at_seconds, at_seconds)
        self._was_attributed |= held.percent is not None
        if reading.samples is None and reading.utilization_percent is None:
            self.unutilized = self.unutilized.add(self.at_seconds, at_seconds)

    def take_high_water(self, used_bytes: int, *, is_main: bool) -> None:
        """Take the driver's own peak of one process, which no reading can have missed."""
        known = self.peaks.job_bytes
        self.peaks = self.peaks._replace(
            job_bytes=Parts(
                larger(known.main, used_bytes if is_main else None),
                larger(known.descendants, None if is_main else used_bytes),
                larger(known.combined, used_bytes),
            ),
            has_job=True,
        )

    def confirm(self, high_water: GpuHighWater) -> None:
        """The driver said so in the end. The peak of one process is that of the job if no other process of the job was there."""
        is_alone = high_water.are_all_known and self.pids == {high_water.pid}
        if is_alone and self.peaks.job_bytes.combined == high_water.used_bytes:
            self.peaks = self.peaks._replace(basis=EXACT)

    def sample(self, at_seconds: float) -> GpuSample:
        """The interval so far; unknown if it has no reading, and one is overdue."""
        if not self._is_interval_read and at_seconds - self.at_seconds > self._most_seconds():
            return GpuSample(self.uuid)
        counters, start, reading = self.counters, self._interval_start, self.reading
        busy = _mean(
            counters.utilization_percent_seconds - start.utilization_percent_seconds,
            counters.utilization_seconds - start.utilization_seconds,
        )
        job = _mean(
            counters.job_percent_seconds - start.job_percent_seconds, counters.job_seconds - start.job_seconds
        )
        # A driver that samples processes has said nothing yet of one without samples.
        now = self.held.percent if reading.shares is None else self.held.percent or None
        most = larger(self._interval_job_bytes, self.held.bytes.combined)
        active = average_activity(_subtract_activity(counters.activity, start.activity))
        return GpuSample(
            uuid=self.uuid,
            used_bytes=larger(self._interval_used_bytes, reading.used_bytes),
            job_bytes=None if not most and self._was_interval_unknown else most,
            utilization_percent=reading.utilization_percent if busy is None else busy,
            job_percent=now if job is None else job,
            power_watts=reading.power_watts,
            temperature_celsius=reading.temperature_celsius,
            sm_clock_mhz=reading.sm_clock_mhz,
            **{
                figure: getattr(reading, figure) if mean is None else mean
                for figure, mean in active._asdict().items()
            },
        )

    def _with_use(self, counters: GpuCounters) -> GpuCounters:
        percent_seconds, seconds = self._use.total()
        return counters._replace(job_percent_seconds=percent_seconds, job_seconds=seconds)

    def _cut(self, at_seconds: float, reading: GpuReading) -> list[Span]:
        """The time since the last sample of the device or, where its driver keeps none, since the last reading."""
        if reading.samples is None:
            instants: Sequence[tuple[float, float | None]] = [(at_seconds, reading.utilization_percent)]
        else:
            instants = reading.samples
        spans = []
        is_sampled = reading.samples is not None
        for at, percent in instants:
            if at > self._utilized_seconds:
                known_seconds = max(self._utilized_seconds, at - self._find_reach(at, is_sampled=is_sampled))
                if known_seconds > self._utilized_seconds:
                    spans.append(
                        Span(self._utilized_seconds, known_seconds, None, is_sampled, is_too_old=True)
                    )
                spans.append(Span(known_seconds, at, percent, is_sampled))
                self._utilized_seconds = at
        return spans

    def _find_reach(self, at_seconds: float, *, is_sampled: bool) -> float:
        """How far back a value says something: after a time without readings or samples, not over all of it."""
        passed = at_seconds - self._utilized_seconds
        if is_sampled:
            return passed if passed <= _LONGEST_SAMPLE_SECONDS else _SAMPLE_SECONDS
        return self._limit_reach(passed)

    def _limit_reach(self, passed_seconds: float) -> float:
        is_too_long = self._distances and passed_seconds > self._most_seconds()
        reach_seconds = self._usual_seconds() if is_too_long else passed_seconds
        return max(0.0, min(reach_seconds, passed_seconds - self._delay_seconds))

    def _find_unread(self, at_seconds: float, *, is_last: bool = False) -> float:
        """How long nothing was read before this reading, or before an end without one, beyond what is usual."""
        passed = max(0.0, at_seconds - max(self.at_seconds, self._slept_seconds))
        reach = 0.0 if is_last and self._is_cut_off else self._limit_reach(passed)
        return passed if is_last and reach < passed else passed - reach

    def _most_seconds(self) -> float:
        """When a reading is too old to be the latest."""
        return _TOLERANCE * self._usual_seconds() + _ANSWER_SECONDS

    def _usual_seconds(self) -> float:
        """How far apart readings are, a few long waits apart."""
        distances = sorted(self._distances)
        return distances[len(distances) // 2] if distances else _FIRST_READING_SECONDS

    def _count(self, reading: GpuReading, span_seconds: float, spans: Sequence[Span]) -> GpuCounters:
        energy_at_seconds = _date_energy(reading, self.at_seconds + span_seconds)
        energy, energy_seconds = self._count_energy(reading, energy_at_seconds)
        known = [(span.length_seconds, span.percent) for span in spans if span.percent is not None]
        known_seconds = sum(seconds for seconds, _ in known)
        limited = dict(self.counters.limited_seconds)
        for reason in reading.limits or ():
            # Of the same time as utilization, so that it is a share of that.
            limited[reason] = limited.get(reason, 0.0) + known_seconds
        counters = self.counters
        active = _count_activity(counters.activity, find_activity(reading), reading.activity_seconds)
        counted = counters._replace(
            utilization_percent_seconds=counters.utilization_percent_seconds
            + sum(seconds * percent for seconds, percent in known),
            utilization_seconds=counters.utilization_seconds + known_seconds,
            energy_joules=energy,
            energy_seconds=energy_seconds,
            limited_seconds=tuple(sorted(limited.items())),
            activity=active,
            traffic=_add_traffic(counters.traffic, reading.traffic),
        )
        return self._with_use(counted)

    def _count_energy(self, reading: GpuReading, at_seconds: float) -> tuple[float | None, float]:
        """The sum, and the time that it covers: energy drawn while the counter could not be read is in it."""
        total, seconds = self.counters.energy_joules, self.counters.energy_seconds
        self.drawn = None
        now, before = reading.energy_joules, self._energy_joules
        if now is None and before is None:
            return self._integrate_power(reading, at_seconds)
        # A counter that once counted and says 0 could not be read; if it has begun again, the next reading shows it.
        if now is None or (now == 0 and before):
            return total, seconds
        passed = 0.0 if before is None else at_seconds - self._energy_at_seconds
        step = 0.0 if before is None else now - before
        self._energy_joules, self._energy_at_seconds = now, at_seconds
        # One that went back has begun again, and one that jumped was wrong before or is now.
        collected = at_seconds - self._energy_changed_seconds + _ENERGY_DELAY_SECONDS
        if step:
            self._energy_changed_seconds = at_seconds
        if not 0 <= step <= self._most_watts * collected:
            self.energy_gap_seconds += passed
            self._drawn_seconds = at_seconds
            return total, seconds
        counted = self._replace_still(reading, step, passed, at_seconds)
        if step or counted:
            self.drawn = Drawn(counted, self._drawn_seconds, at_seconds)
            self._drawn_seconds = at_seconds
        # One that has never moved says nothing: it may stand still for ever.
        silent_seconds = self._find_silent(reading, step, passed)
        if silent_seconds:
            self.energy_silent = self.energy_silent.add(max(0.0, at_seconds - silent_seconds), at_seconds)
        return (
            total if total is None and not counted else (total or 0.0) + counted
        ), seconds + passed - silent_seconds

    def _find_silent(self, reading: GpuReading, step: float, passed: float) -> float:
        """How much time is no longer taken for known: nothing says whether a counter that stands still for long still counts."""
        if step or self.reading.power_watts is not None or reading.power_watts is not None:
            self._silent_seconds = 0.0
            return 0.0
        was_long = self._silent_seconds > _LONGEST_STILL_SECONDS
        self._silent_seconds += passed
        if self._silent_seconds <= _LONGEST_STILL_SECONDS:
            return 0.0
        return passed if was_long else self._silent_seconds

    def _replace_still(self, reading: GpuReading, step: float, passed: float, at_seconds: float) -> float:
        """What to count: the counter's step; while it stands still for long although power is drawn, that power over time instead."""
        if step:
            # It may have caught up, if it says more than of the time since the last reading.
            has_caught_up = step > _LEAST_CAUGHT_UP * self._stood_in_joules
            counted = max(0.0, step - self._stood_in_joules) if has_caught_up else step
            self._still_seconds = self._still_joules = self._stood_in_joules = 0.0
            return counted
        before, now = self.reading.power_watts, reading.power_watts
        if before is not None and now is not None:
            self._still_seconds += passed
            self._still_joules += passed * (before + now) / 2
        if (
            self._still_seconds <= _LONGEST_STILL_SECONDS
            or self._still_joules < self._still_seconds * _LEAST_WATTS
        ):
            return 0.0
        counted = self._still_joules - self._stood_in_joules
        new_seconds = passed if self._stood_in_joules else self._still_seconds
        self.energy_still = self.energy_still.add(max(0.0, at_seconds - new_seconds), at_seconds)
        self._stood_in_joules = self._still_joules
        self.is_energy_integrated = True
        return counted

    def _integrate_power(self, reading: GpuReading, at_seconds: float) -> tuple[float | None, float]:
        """The same where there is no counter: between two readings, the mean of both."""
        total, seconds = self.counters.energy_joules, self.counters.energy_seconds
        passed, before, now = at_seconds - self.at_seconds, self.reading.power_watts, reading.power_watts
        if before is None or now is None or passed <= 0 or self._limit_reach(passed) < passed:
            return total, seconds
        self.is_energy_integrated = True
        self.drawn = Drawn(passed * (before + now) / 2, self.at_seconds, at_seconds)
        return (total or 0.0) + self.drawn.joules, seconds + passed


class GpuAccount:
    """The running totals of the job on all devices, of all vendors."""

    def __init__(self, root_pid: int, moments: PeakMoments | None = None) -> None:
        self._root_pid = root_pid
        self._gpus: dict[str, Gpu] = {}
        self._moments = moments or PeakMoments()
        self._devices: dict[str, _Device] = {}
        self._processes: dict[tuple[str, int], GpuProcessPeak] = {}
        self._uses: dict[int, dict[str, float]] = {}
        """Of each process that is still there: how many seconds it kept each device busy."""
        self._accounted: dict[tuple[str, int], tuple[float, GpuHighWater]] = {}
        """Of each process the driver's latest account, and when it was read."""
        self._estimates: set[tuple[str, str]] = set()
        self._faults: FaultAccount | None = None

    def add(self, gpu: Gpu) -> None:
        """Add a device."""
        self._gpus[gpu.uuid] = gpu

    def take_faults(self, faults: Iterable[GpuFault]) -> list[tuple[float, str, str]]:
        """Those of devices of the job: when, the kind of event and its sentence, of each that is new."""
        known = [(self._gpus.get(fault.uuid), fault) for fault in faults]
        if not known:
            return []
        from .gpu_faults import FaultAccount  # most devices have none

        self._faults = account = self._faults or FaultAccount()
        told = (
            (fault.at_seconds, account.take(gpu.place, fault))
            for gpu, fault in known
            if gpu and self._is_of_the_job(gpu)
        )
        return [(at_seconds, *event) for at_seconds, event in told if event is not None]

    def _is_of_the_job(self, gpu: Gpu) -> bool:
        """Whether the job may use it, or has done so."""
        device = self._devices.get(gpu.uuid)
        return gpu.is_visible or (device is not None and bool(device.pids))

    def list_faults(self) -> list[tuple[str, str]]:
        """How often they happened, in the same form."""
        return [] if self._faults is None else list(self._faults.list_totals())

    def take(self, readings: GpuReadings, names: Mapping[int, str]) -> GpuTotals:
        """Take one reading, with the processes of the job."""
        processes: dict[str, list[GpuProcessReading]] = {}
        for process in readings.processes:
            processes.setdefault(process.uuid, []).append(process)
            self._note_process(process.uuid, process.pid, process.used_bytes, SAMPLED, names)
        for reading in readings.devices:
            self._take_device(readings, reading, processes.get(reading.uuid, []), names)
        read = {reading.uuid for reading in readings.devices}
        unread = [device for device in self._list_devices(readings.vendor) if device.uuid not in read]
        for device in unread:
            if device.uuid in readings.asleep:
                device.sleep(readings.at_seconds)
            else:
                device.miss(readings.at_seconds)
        for high_water in readings.high_waters:
            known = self._devices.get(high_water.uuid)
            if known is not None:
                self._accounted[high_water.uuid, high_water.pid] = readings.at_seconds, high_water
                known.pids.add(high_water.pid)
                known.take_high_water(high_water.used_bytes, is_main=high_water.pid == self._root_pid)
                self._note_process(high_water.uuid, high_water.pid, high_water.used_bytes, SAMPLED, names)
        return self._totals()

    def _take_device(
        self,
        readings: GpuReadings,
        reading: GpuReading,
        there: Sequence[GpuProcessReading],
        names: Mapping[int, str],
    ) -> None:
        device = self._devices.get(reading.uuid)
        if device is None:
            others = self._list_devices(readings.vendor)
            is_late = any(other.found_seconds < readings.at_seconds for other in others)
            gpu = self._gpus.get(reading.uuid)
            device = _Device(
                reading,
                readings.at_seconds,
                is_late=is_late,
                power_limit_watts=gpu and gpu.power_limit_watts,
            )
            self._devices[reading.uuid] = device
        sizes = {process.pid: process.used_bytes for process in there}
        if device.lists.is_lost(reading, sizes, names):
            reading = reading._replace(lists_processes=False, has_lost_list=True)
        held = _add_up(reading, there, self._root_pid)
        device.take(
            readings.at_seconds,
            reading,
            held,
            sizes,
            unanswered_seconds=readings.unanswered_seconds,
            late_seconds=readings.late_seconds,
        )
        self._add_uses(device, there)
        job_bytes = held.bytes.combined or 0
        if self._moments.is_new(reading.uuid, job_bytes):
            parts = [(process.pid, names.get(process.pid, ""), process.used_bytes or 0) for process in there]
            self._moments.take(reading.uuid, readings.at_seconds, job_bytes, parts)

    def describe(self, readings: GpuReadings) -> GpuMoment:
        """What is new in these readings, which must have just been taken."""
        devices = self._devices.values()
        used = [device for device in devices if device.pids] or [
            device for device in devices if self._is_visible(device)
        ]
        read = {reading.uuid for reading in readings.devices}
        seen = [device for device in used if device.uuid in read]
        held = [device.held.bytes.combined for device in devices]
        return GpuMoment(
            None if None in held or not held else sum(size or 0 for size in held),
            len(used),
            tuple(span for device in seen for span in device.spans if span.percent is not None),
            tuple(device.drawn for device in seen if device.drawn is not None),
        )

    @property
    def peaks(self) -> tuple[GpuPeaks, ...]:
        """By device."""
        return tuple(device.peaks for device in self._devices.values())

    @property
    def counters(self) -> tuple[GpuCounters, ...]:
        """By device."""
        return tuple(device.counters for device in self._devices.values())

    @property
    def processes(self) -> tuple[GpuProcessPeak, ...]:
        """The largest peaks by process."""
        largest = sorted(self._processes.values(), key=lambda peak: -(peak.used_bytes or 0))
        return tuple(largest[:_MOST_PROCESSES])

    def samples(self, at_seconds: float) -> tuple[GpuSample, ...]:
        """The interval so far, by device."""
        return tuple(device.sample(at_seconds) for device in self._devices.values())

    def lose(self, vendor: str) -> None:
        """The vendor's driver no longer answers."""
        for device in self._list_devices(vendor):
            device.lose()

    def has_read(self, vendor: str) -> bool:
        """Whether the vendor's driver has ever told anything of its devices."""
        return bool(self._list_devices(vendor))

    def finish(self, end_seconds: float, *, has_ended: bool) -> None:
        """There will be no more readings; those after the end of a job say nothing of it.

        What the driver's own accounts said before the end may have grown since.
        """
        for device in self._devices.values():
            device.finish(end_seconds, has_ended=has_ended)
        for at_seconds, high_water in self._accounted.values():
            if at_seconds >= end_seconds:
                self._devices[high_water.uuid].confirm(high_water)
                self._note_process(high_water.uuid, high_water.pid, high_water.used_bytes, EXACT, {})

    def find_growth(self) -> int | None:
        """What the job holds more on all devices than before it began; None if it is not known on a device that ever told."""
        ends = [
            (device.held_before, device.held.bytes.combined)
            for device in self._devices.values()
            if device.is_ever_held_known
        ]
        known = [last - first for first, last in ends if first is not None and last is not None]
        return sum(known) if ends and len(known) == len(ends) else None

    def take_estimates(self) -> tuple[tuple[str, str], ...]:
        """What turned out to be an estimate since the last call: the kind of event, and the device."""
        kinds = [
            (kind, device.uuid)
            for device in self._devices.values()
            for kind, is_so in (
                (POLLED, device.is_polled),
                (INTEGRATED, device.is_energy_integrated),
                (DRAWN, device.is_use_drawn),
            )
            if is_so
        ]
        new = tuple(estimate for estimate in kinds if estimate not in self._estimates)
        self._estimates.update(new)
        return new

    def list_gaps(self) -> tuple[str, ...]:
        """What is missing in the totals, a sentence each."""
        known = [(gpu, self._devices[uuid]) for uuid, gpu in self._gpus.items() if uuid in self._devices]
        missed = [_MISSED] if any(device.is_missed and not device.pids for _, device in known) else []
        gaps = [
            sentence
            for gpu, device in known
            for sentence in _list_gaps(f"{name_vendor(gpu.vendor)} GPU {gpu.place}", device)
        ]
        return (*missed, *gaps)

    def start_interval(self) -> None:
        """Begin a new interval, after a line was written."""
        for device in self._devices.values():
            device.start_interval()

    def find_use(self, pid: int) -> tuple[float | None, float | None]:
        """How long a process kept devices busy, and its share of their energy; None if no driver has told."""
        told = self._uses.get(pid, {})
        used = {uuid: seconds for uuid, seconds in told.items() if self._devices[uuid].counters.job_seconds}
        if not used:
            return None, None
        energies = ((seconds, self._devices[uuid].counters) for uuid, seconds in used.items())
        joules = [
            seconds * counted.energy_joules * 100 / counted.utilization_percent_seconds
            for seconds, counted in energies
            if counted.energy_joules is not None and counted.utilization_percent_seconds
        ]
        return sum(used.values()), sum(joules) if joules else None

    def forget_use(self, pid: int) -> None:
        """The process has ended."""
        self._uses.pop(pid, None)

    def _add_uses(self, device: _Device, processes: Sequence[GpuProcessReading]) -> None:
        """Divide what the job has used since it was divided last, as the driver tells its processes apart now."""
        told = [(process.pid, process.utilization_percent) for process in processes]
        shares = {pid: percent for pid, percent in told if percent is not None}
        whole = sum(shares.values())
        for pid in shares:
            self._uses.setdefault(pid, {}).setdefault(device.uuid, 0.0)
        if not whole:
            return
        used = device.counters.job_percent_seconds / 100
        for pid, percent in shares.items():
            self._uses[pid][device.uuid] += max(0.0, used - device.divided_seconds) * percent / whole
        device.divided_seconds = used

    def _note_process(
        self, uuid: str, pid: int, used_bytes: int | None, basis: str, names: Mapping[int, str]
    ) -> None:
        key = (uuid, pid)
        known = self._processes.get(key)
        name = names.get(pid) or (known.name if known else "")
        if known is None or (used_bytes or 0) > (known.used_bytes or 0):
            self._processes[key] = GpuProcessPeak(uuid, pid, name, used_bytes, basis)
        elif basis == EXACT and used_bytes == known.used_bytes:
            self._processes[key] = known._replace(basis=EXACT)
        if len(self._processes) > 2 * _MOST_PROCESSES:
            self._processes = {(peak.uuid, peak.pid): peak for peak in self.processes}

    def _list_devices(self, vendor: str) -> list[_Device]:
        return [
            self._devices[uuid]
            for uuid, gpu in self._gpus.items()
            if uuid in self._devices and gpu.vendor == vendor
        ]

    def _is_visible(self, device: _Device) -> bool:
        gpu = self._gpus.get(device.uuid)
        return gpu is None or gpu.is_visible

    def _has_own_memory(self, device: _Device) -> bool:
        gpu = self._gpus.get(device.uuid)
        return gpu is None or gpu.shares_memory_with is None

    def _totals(self) -> GpuTotals:
        devices = self._devices.values()
        return GpuTotals(
            Parts(*(add_known(device.held.bytes[part] for device in devices) for part in range(3))),
            add_known(device.reading.used_bytes for device in devices if self._has_own_memory(device)),
            add_known(_high(device.reading) for device in devices if self._is_visible(device)),
            add_known(_high(device.reading) for device in devices if device.pids),
        )


def _list_gaps(label: str, device: _Device) -> Iterator[str]:
    if device.energy_gap_seconds:
        yield (
            f"The energy counter of {label} jumped by more than the device can draw, or began again: "
            f"its energy is without {humanize_seconds(device.energy_gap_seconds)} of the time."
        )
    if device.energy_still.seconds:
        yield (
            f"The energy counter of {label} stood still {device.energy_still} although the device drew "
            "power: its energy in that time is estimated from power."
        )
    if device.energy_silent.seconds:
        yield (
            f"The energy counter of {label} stood still {device.energy_silent} while its power could not be "
            "read: its energy is without that time."
        )
    if device.untold_links:
        yield (
            f"{label} did not count what went through {' and '.join(device.untold_links)} "
            f"for {humanize_seconds(device.untold_seconds)}: it was at least as much as is reported."
        )
    if device.late_seconds > _NOTABLE_GAP_SECONDS:
        yield f"{label} was found only at {device.late_seconds:.1f} s: what was used of it before is not known."
    if device.unread.is_notable:
        yield f"{label} could not be read {device.unread}: its figures of that time are missing."
    if device.is_listing and device.unlisted.is_notable:
        yield (
            f"{label} did not list its processes {device.unlisted}: what the job used of it then is not known."
        )
    if device.counters.job_seconds and device.unattributed.is_notable:
        yield (
            f"{label} did not report utilization by process {device.unattributed}: "
            "the mean of the job's own is without that time."
        )
    if device.counters.utilization_seconds and device.unutilized.is_notable:
        yield f"{label} did not report its utilization {device.unutilized}: means are without that time."


def _date_energy(reading: GpuReading, at_seconds: float) -> float:
    return at_seconds if reading.energy_at_seconds is None else reading.energy_at_seconds


def _add_up(reading: GpuReading, processes: Sequence[GpuProcessReading], root_pid: int) -> _Held:
    """What the job holds on a device: zero without processes, unknown with a process of unknown size."""
    if not reading.lists_processes:
        return _NOT_KNOWN
    main = add_sizes(process.used_bytes for process in processes if process.pid == root_pid)
    others = add_sizes(process.used_bytes for process in processes if process.pid != root_pid)
    combined = None if main is None or others is None else main + others
    percent = None
    if reading.measures_processes:
        percents = [process.utilization_percent for process in processes]
        known = [value for value in percents if value is not None]
        percent = min(100.0, sum(known, 0.0)) if len(known) == len(percents) else None
    return _Held(Parts(main, others, combined), percent)


def _count_activity(
    counted: Sequence[tuple[float, float]], means: Activity, seconds: float
) -> tuple[tuple[float, float], ...]:
    """The integrals with what is new; none as long as nothing was measured."""
    if not seconds or means == Activity():
        return tuple(counted)
    return tuple(
        before if mean is None else (before[0] + mean * seconds, before[1] + seconds)
        for before, mean in zip(counted or _NO_ACTIVITY, means, strict=True)
    )


def _add_traffic(counted: Sequence[int | None], moved: Traffic) -> tuple[int | None, ...]:
    """The counters with what is new; none as long as nothing was measured."""
    if moved == Traffic():
        return tuple(counted)
    return tuple(
        before if new is None else (before or 0) + new
        for before, new in zip(counted or Traffic(), moved, strict=True)
    )


def _subtract_activity(
    after: Sequence[tuple[float, float]], before: Sequence[tuple[float, float]]
) -> tuple[tuple[float, float], ...]:
    pairs = zip(after, before or _NO_ACTIVITY, strict=False)
    return tuple((last[0] - first[0], last[1] - first[1]) for last, first in pairs)


def _mean(integral: float, seconds: float) -> float | None:
    return integral / seconds if seconds > 0 else None


def _high(reading: GpuReading) -> float | None:
    return larger(reading.utilization_high_percent, reading.utilization_percent)
