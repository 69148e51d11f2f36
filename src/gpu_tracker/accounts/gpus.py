"""GPU readings in, peaks and counters out. Pure: no driver, no clock.

If a device does not list its processes, the job's memory on it is unknown, not zero.
"""

from __future__ import annotations

from ..core.figures import MOST_WATTS
from ..core.model import (
    EXACT,
    SAMPLED,
    GpuCounters,
    GpuPeaks,
    GpuProcessPeak,
    GpuProcessReading,
    GpuReading,
    GpuSample,
    Parts,
    add_known,
    larger,
)
from ..core.units import humanize_seconds
from ..core.values import NamedTuple
from ..core.vendors import name_vendor
from .peak_moments import PeakMoments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..core.model import Gpu, GpuReadings, GpuShares
    from .gpu_shares import ShareMeter

_MOST_PROCESSES = 32
# Counters of energy are updated a few times a second, at least.
_ENERGY_DELAY_SECONDS = 1.0
# A shorter time without a list of processes is not worth a note.
_NOTABLE_GAP_SECONDS = 0.5


class Span(NamedTuple):
    """Utilization of a device; None if not known."""

    start_seconds: float
    end_seconds: float
    percent: float | None
    is_sampled: bool = True
    """If not, it is the latest value at the end."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing ran."""
        return self.is_sampled and self.percent == 0


class GpuTotals(NamedTuple):
    """Over all devices, at one reading."""

    job_bytes: Parts[int | None]
    system_bytes: int | None
    allowed_percent: float | None
    """Utilization of the devices that the job may use, summed."""
    with_job_percent: float | None
    """Of the devices that list a process of the job."""


class GpuMoment(NamedTuple):
    """The time from one reading to the next."""

    span_seconds: float
    job_bytes: int | None
    """On all devices together."""
    percent: float | None
    """Mean over the devices that the job uses; if none is known, over those that it may use."""
    energy_joules: float | None
    """Of the same devices."""


class _Held(NamedTuple):
    """The job's memory and utilization on one device; None if not known."""

    bytes: Parts[int | None]
    percent: float | None


_NOT_KNOWN = _Held(Parts(None, None, None), None)


class _JobUse:
    """The job's own utilization of one device since the start."""

    def __init__(self) -> None:
        self._percent_seconds = self._seconds = 0.0
        self._meter: ShareMeter | None = None
        self._is_unknown = self._was_unknown = False

    def take(
        self,
        since_seconds: float,
        at_seconds: float,
        spans: Sequence[Span],
        shares: GpuShares | None,
        percent: float | None,
        *,
        is_there: bool,
    ) -> None:
        """Take the driver's samples or, where it keeps none, the percentage since the last reading."""
        self._is_unknown = percent is None
        self._was_unknown |= is_there and percent is None
        if shares is None:
            self.finish()
            if percent is not None:
                self._percent_seconds += percent * (at_seconds - since_seconds)
                self._seconds += at_seconds - since_seconds
            return
        if self._meter is None:
            from .gpu_shares import ShareMeter

            self._meter = ShareMeter(since_seconds)
        self._meter.take(spans, shares, is_there=is_there)

    def finish(self) -> None:
        """The driver samples no longer."""
        if self._meter is not None:
            self._meter.finish()
            self._percent_seconds += self._meter.percent_seconds
            self._seconds += self._meter.seconds
            self._was_unknown |= self._meter.is_unknown
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


class _Device:
    """One device since the start."""

    def __init__(self, reading: GpuReading, at_seconds: float) -> None:
        self.uuid = reading.uuid
        self.at_seconds = at_seconds
        self.reading = reading
        self.held = _NOT_KNOWN
        self.first_used_bytes = reading.used_bytes
        self.counters = GpuCounters(reading.uuid)
        self.peaks = GpuPeaks(reading.uuid)
        self.pids: set[int] = set()
        self._energy_joules = reading.energy_joules
        self._energy_at_seconds = at_seconds
        self.energy_step_joules: float | None = None
        self.energy_gap_seconds = 0.0
        """How much time is left out, because the counter has jumped."""
        self.is_polled = False
        """Whether utilization is its latest value at each reading, because its driver keeps no samples."""
        self.span_seconds = 0.0
        self._utilized_seconds = at_seconds
        """Up to here utilization is counted."""
        self._use = _JobUse()
        self._was_size_unknown = False
        self.is_listing = False
        """Whether it has ever listed its processes."""
        self.unlisted_from_seconds, self.unlisted_seconds = float("inf"), 0.0
        """Since when, and how long it has not."""
        self.start_interval()

    def start_interval(self) -> None:
        """Begin a new interval, after a line was written."""
        self._interval_start = self.counters
        self._interval_used_bytes: int | None = None
        self._interval_job_bytes: int | None = None
        self._was_interval_unknown = False

    def take(self, at_seconds: float, reading: GpuReading, held: _Held, pids: Iterable[int]) -> None:
        span = self.span_seconds = max(0.0, at_seconds - self.at_seconds)
        there = set(pids)
        spans = self._cut(at_seconds, reading)
        self._use.take(self.at_seconds, at_seconds, spans, reading.shares, held.percent, is_there=bool(there))
        self._note_unknown(at_seconds, reading, held)
        for one in spans:
            self.is_polled |= not one.is_sampled and one.percent is not None
        self.counters = self._count(reading, span, spans)
        self.at_seconds, self.reading, self.held = at_seconds, reading, held
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

    def finish(self) -> None:
        """There will be no more readings."""
        self._use.finish()
        self.counters = self._with_use(self.counters)

    def lose(self) -> None:
        """From now on nothing is known."""
        self._use.lose()
        self.counters = self._with_use(self.counters)
        self._was_size_unknown = self._was_interval_unknown = True
        job_bytes = Parts(*(known or None for known in self.peaks.job_bytes))
        self.held, self.peaks = _NOT_KNOWN, self.peaks._replace(job_bytes=job_bytes)

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
        if (
            reading.has_lost_list and reading.used_bytes is not None
        ):  # else there is a note that nothing could be read
            self.unlisted_from_seconds = min(self.unlisted_from_seconds, self.at_seconds)
            self.unlisted_seconds += at_seconds - self.at_seconds

    def take_high_water(self, used_bytes: int, *, is_main: bool) -> None:
        """Take the driver's own peak of one process, which no reading can have missed."""
        known = self.peaks.job_bytes
        combined = larger(known.combined, used_bytes)
        # The peak of one process is that of the job if no other process of the job was there.
        is_exact = len(self.pids) == 1 and combined == used_bytes
        self.peaks = self.peaks._replace(
            job_bytes=Parts(
                larger(known.main, used_bytes if is_main else None),
                larger(known.descendants, None if is_main else used_bytes),
                combined,
            ),
            basis=EXACT if is_exact else self.peaks.basis,
            has_job=True,
        )

    def sample(self) -> GpuSample:
        """The interval so far."""
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
        return GpuSample(
            uuid=self.uuid,
            used_bytes=larger(self._interval_used_bytes, reading.used_bytes),
            job_bytes=None if not most and self._was_interval_unknown else most,
            utilization_percent=reading.utilization_percent if busy is None else busy,
            job_percent=now if job is None else job,
            power_watts=reading.power_watts,
            temperature_celsius=reading.temperature_celsius,
            sm_clock_mhz=reading.sm_clock_mhz,
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
        for at, percent in instants:
            if at > self._utilized_seconds:
                spans.append(Span(self._utilized_seconds, at, percent, reading.samples is not None))
                self._utilized_seconds = at
        return spans

    def _count(self, reading: GpuReading, span_seconds: float, spans: Sequence[Span]) -> GpuCounters:
        counters, at_seconds = self.counters, self.at_seconds + span_seconds
        energy, energy_seconds = counters.energy_joules, counters.energy_seconds
        if reading.energy_joules is not None:
            before = self._energy_joules
            # A counter that went back was reset with its device: the sum so far is kept.
            step = 0.0 if before is None else max(0.0, reading.energy_joules - before)
            # One that jumped was wrong before or is now: that time is not covered.
            passed = at_seconds - self._energy_at_seconds + _ENERGY_DELAY_SECONDS
            has_jumped = step > MOST_WATTS * passed
            self._energy_at_seconds = at_seconds
            self.energy_step_joules = None if has_jumped else step
            energy = (energy or 0.0) + (self.energy_step_joules or 0.0)
            if has_jumped:
                self.energy_gap_seconds += span_seconds
            else:
                energy_seconds += span_seconds
            self._energy_joules = reading.energy_joules
        busy = [(span.end_seconds - span.start_seconds, span.percent) for span in spans]
        known = [(seconds, percent) for seconds, percent in busy if percent is not None]
        limited = dict(counters.limited_seconds)
        for reason in reading.limits or ():
            limited[reason] = limited.get(reason, 0.0) + span_seconds
        counted = counters._replace(
            utilization_percent_seconds=counters.utilization_percent_seconds
            + sum(seconds * percent for seconds, percent in known),
            utilization_seconds=counters.utilization_seconds + sum(seconds for seconds, _ in known),
            energy_joules=energy,
            energy_seconds=energy_seconds,
            limited_seconds=tuple(sorted(limited.items())),
        )
        return self._with_use(counted)


class GpuAccount:
    """The running totals of the job on all devices, of all vendors."""

    def __init__(self, root_pid: int, moments: PeakMoments | None = None) -> None:
        self._root_pid = root_pid
        self._gpus: dict[str, Gpu] = {}
        self._moments = moments or PeakMoments()
        self._devices: dict[str, _Device] = {}
        self._processes: dict[tuple[str, int], GpuProcessPeak] = {}
        self._polled: set[str] = set()

    def add(self, gpu: Gpu) -> None:
        """Add a device."""
        self._gpus[gpu.uuid] = gpu

    def take(self, readings: GpuReadings, names: Mapping[int, str]) -> GpuTotals:
        """Take one reading, with the processes of the job."""
        processes: dict[str, list[GpuProcessReading]] = {}
        for process in readings.processes:
            processes.setdefault(process.uuid, []).append(process)
            self._note_process(process.uuid, process.pid, process.used_bytes, SAMPLED, names)
        for reading in readings.devices:
            device = self._devices.get(reading.uuid)
            if device is None:
                device = self._devices[reading.uuid] = _Device(reading, readings.at_seconds)
            there = processes.get(reading.uuid, [])
            held = _add_up(reading, there, self._root_pid)
            device.take(readings.at_seconds, reading, held, [process.pid for process in there])
            job_bytes = held.bytes.combined or 0
            if self._moments.is_new(reading.uuid, job_bytes):
                parts = [
                    (process.pid, names.get(process.pid, ""), process.used_bytes or 0) for process in there
                ]
                self._moments.take(reading.uuid, readings.at_seconds, job_bytes, parts)
        for high_water in readings.high_waters:
            device = self._devices.get(high_water.uuid)
            if device is not None:
                device.pids.add(high_water.pid)
                device.take_high_water(high_water.used_bytes, is_main=high_water.pid == self._root_pid)
                self._note_process(high_water.uuid, high_water.pid, high_water.used_bytes, EXACT, names)
        return self._totals()

    def describe(self, readings: GpuReadings) -> GpuMoment:
        """The time up to these readings, which must have just been taken."""
        seen = [self._devices[reading.uuid] for reading in readings.devices]
        used = [device for device in seen if device.pids] or [
            device for device in seen if self._is_visible(device)
        ]
        held = [device.held.bytes.combined for device in self._devices.values()]
        percents = [value for device in used if (value := device.reading.utilization_percent) is not None]
        energies = [device.energy_step_joules for device in used if device.energy_step_joules is not None]
        return GpuMoment(
            max((device.span_seconds for device in seen), default=0.0),
            None if None in held or not held else sum(size or 0 for size in held),
            sum(percents) / len(percents) if percents else None,
            sum(energies) if energies else None,
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

    def samples(self) -> tuple[GpuSample, ...]:
        """The interval so far, by device."""
        return tuple(device.sample() for device in self._devices.values())

    def lose(self, vendor: str) -> None:
        """The vendor's driver no longer answers."""
        for device in self._devices.values():
            gpu = self._gpus.get(device.uuid)
            if gpu is not None and gpu.vendor == vendor:
                device.lose()

    def finish(self) -> None:
        """There will be no more readings."""
        for device in self._devices.values():
            device.finish()

    def take_polled(self) -> tuple[str, ...]:
        """The devices whose utilization turned out to be polled since the last call."""
        polled = [uuid for uuid, device in self._devices.items() if device.is_polled]
        new = tuple(uuid for uuid in polled if uuid not in self._polled)
        self._polled.update(new)
        return new

    def list_gaps(self) -> tuple[str, ...]:
        """What is missing in the totals, a sentence each."""
        known = [(gpu, self._devices[uuid]) for uuid, gpu in self._gpus.items() if uuid in self._devices]
        return tuple(
            sentence
            for gpu, device in known
            for sentence in _list_gaps(f"{name_vendor(gpu.vendor)} GPU {gpu.ordinal}", device)
        )

    def start_interval(self) -> None:
        """Begin a new interval, after a line was written."""
        for device in self._devices.values():
            device.start_interval()

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

    def _is_visible(self, device: _Device) -> bool:
        gpu = self._gpus.get(device.uuid)
        return gpu is None or gpu.is_visible

    def _totals(self) -> GpuTotals:
        devices = self._devices.values()
        return GpuTotals(
            Parts(*(add_known(device.held.bytes[part] for device in devices) for part in range(3))),
            add_known(device.reading.used_bytes for device in devices if device.reading.is_part_of is None),
            add_known(_high(device.reading) for device in devices if self._is_visible(device)),
            add_known(_high(device.reading) for device in devices if device.pids),
        )


def _list_gaps(label: str, device: _Device) -> Iterator[str]:
    if device.energy_gap_seconds:
        yield (
            f"The energy counter of {label} jumped by more than any device draws: "
            f"its energy is without {humanize_seconds(device.energy_gap_seconds)} of the time."
        )
    if device.is_listing and device.unlisted_seconds > _NOTABLE_GAP_SECONDS:
        yield (
            f"{label} did not list its processes for {humanize_seconds(device.unlisted_seconds)} "
            f"from {device.unlisted_from_seconds:.1f} s on: what the job used of it then is not known."
        )


def _add_up(reading: GpuReading, processes: Sequence[GpuProcessReading], root_pid: int) -> _Held:
    """What the job holds on a device: zero without processes, unknown with a process of unknown size."""
    if not reading.lists_processes:
        return _NOT_KNOWN
    main = _add_all([process.used_bytes for process in processes if process.pid == root_pid])
    others = _add_all([process.used_bytes for process in processes if process.pid != root_pid])
    combined = None if main is None or others is None else main + others
    percent = None
    if reading.measures_processes:
        percents = [process.utilization_percent for process in processes]
        known = [value for value in percents if value is not None]
        percent = min(100.0, sum(known, 0.0)) if len(known) == len(percents) else None
    return _Held(Parts(main, others, combined), percent)


def _add_all(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _mean(integral: float, seconds: float) -> float | None:
    return integral / seconds if seconds > 0 else None


def _high(reading: GpuReading) -> float | None:
    return larger(reading.utilization_high_percent, reading.utilization_percent)
