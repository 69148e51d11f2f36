"""Readings in, totals out: counters, peaks and the current interval. Pure: no I/O, no clock.

Peaks are never guessed. Between two readings they come from the kernel's high-water marks; memory shared by several
processes has a lower bound until it is read.
"""

from __future__ import annotations

from ..core.model import (
    ESTIMATE,
    EXACT,
    RAM,
    SAMPLED,
    Busiest,
    MachineEnergy,
    Parts,
    Peaks,
    ProcessTotals,
    RamPeak,
    RootFigures,
    Sample,
    Spread,
    Stalls,
    Totals,
    TreeCounters,
    add_parts,
    find_peak,
    subtract_stalls,
)
from ..core.values import NamedTuple
from .counters import CounterAccount, raise_counters
from .cpu import CpuLedger
from .energy import EnergyAccount
from .gpus import GpuAccount, GpuMoment
from .memory_limit import MemoryLimitAccount
from .peak_moments import PeakMoments
from .recovery import doubt_peaks, raise_peaks
from .sharing import NOTHING, Holding, Overlap, find_overlap, hold, hold_beside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ..core.model import (
        EnergyReading,
        Gpu,
        GpuFault,
        GpuReadings,
        MachineReading,
        ProcessActivity,
        ProcessReading,
        SharingReading,
    )

# Below this factor, unread sharing does not matter.
_NOTABLE = 1.02
_SURENESS = {ESTIMATE: 0, SAMPLED: 1, EXACT: 2}
_NO_SPIKES: Mapping[int, int] = {}


class _Meeting(NamedTuple):
    """The first reading of a process."""

    at_seconds: float
    cpu_seconds: float
    """What it had used before the job began."""
    peak_bytes: int
    """The high-water mark that it had before the job began."""


class _CpuMoment(NamedTuple):
    """CPU time since the start, at one instant."""

    at_seconds: float = 0.0
    cpu_seconds: Parts[float] = Parts(0.0, 0.0, 0.0)
    system_cpu_seconds: float = 0.0


class _Interval:
    """The readings since the last line."""

    def __init__(self) -> None:
        self.n_readings = 0
        self.late_seconds = 0.0
        self.threads = 0
        self.processes = 0
        self._n_held = 0
        self._lows = [0, 0, 0]
        self._sums = [0, 0, 0]
        self._highs = [0, 0, 0]

    def add(self, values: tuple[int, int, int]) -> None:
        self.n_readings += 1
        if not any(values):  # every process holds something: none was met
            return
        self._n_held += 1
        for index, value in enumerate(values):
            self._lows[index] = value if self._n_held == 1 else min(self._lows[index], value)
            self._sums[index] += value
            self._highs[index] = max(self._highs[index], value)

    def raise_high(self, index: int, value: int) -> None:
        self._highs[index] = max(self._highs[index], value)

    def spreads(self) -> Parts[Spread]:
        if not any(self._highs):
            return Parts(*(Spread(None, None, None),) * 3)
        if not self._n_held:
            return Parts(*map(Spread, self._highs, self._highs, self._highs))
        means = (round(total / self._n_held) for total in self._sums)
        return Parts(*map(Spread, self._lows, means, self._highs))


class Account:
    """The running totals of one tracked tree. Times are seconds since the start."""

    def __init__(
        self,
        root_pid: int,
        root: RootFigures | None,
        machine: MachineReading,
        adopter_pid: int = 0,
    ) -> None:
        self.peaks = Peaks(system_ram_bytes=machine.ram_used_bytes, limit_ram_bytes=machine.limit_used_bytes)
        self._root_pid = root_pid
        self._ledger = CpuLedger(root_pid, root, adopter_pid)
        self._machine_at_start = machine
        self._machine = machine
        self._at_seconds = 0.0
        self._n_readings = 0
        self._overlaps: dict[int, Overlap] = {}
        self._high_waters: dict[int, int] = {}
        self._reset_high_waters: dict[int, int] = {}
        self._has_mark = True
        """Whether the kernel's high-water mark of the root is read wherever the root is."""
        self.pids: frozenset[int] = frozenset()
        self._combined = self._combined_before = NOTHING
        self._held = (0, 0, 0)
        self._limit = MemoryLimitAccount()
        self._threads = self._processes = 0
        self._main_shared_bytes = 0
        self.rss_bytes: dict[int, int] = {}
        self._readings: Sequence[ProcessReading] = ()
        self._readings_before: Sequence[ProcessReading] = ()
        self._interval = _Interval()
        self._cpu_interval_start = _CpuMoment()
        self._cpu_interval_before: _CpuMoment | None = None
        self.unread_seconds = 0.0
        """For how long nothing was read although it should have been."""
        self.moments = PeakMoments()
        """Who held what at the peaks."""
        self._gpus = GpuAccount(root_pid, self.moments)
        self._activity = CounterAccount()
        self._exact_counters = TreeCounters()
        self._counters = TreeCounters()
        """The larger of both; like what is metered, it is told with every sample, but read more rarely."""
        self._stalls_at_start: Stalls | None = None
        self._stalls = Stalls()
        self._energy = EnergyAccount()
        self._metered = MachineEnergy()
        self._names: dict[int, str] = {}
        self._last_readings: dict[int, ProcessReading] = {}
        self._first_meetings: dict[int, _Meeting] = {}
        self._largest_rss_bytes: dict[int, int] = {}
        """Of processes that are older than the job: their high-water marks may be, too."""
        self._gone: list[ProcessTotals] = []

    # ---- Readings.

    def take(
        self,
        at_seconds: float,
        readings: Sequence[ProcessReading],
        late_seconds: float = 0.0,
        exact_root: RootFigures | None = None,
        reset_high_waters: Mapping[int, int] | None = None,
    ) -> None:
        """Take one reading of the tree, and the high-water marks that processes kept before resetting them."""
        self._at_seconds = at_seconds
        self._n_readings += 1
        risen = self._find_risen(reset_high_waters or {})
        self._ledger.feed(readings, exact_root)
        self._note_processes(readings)
        self.pids = frozenset(reading.pid for reading in readings)
        self._names = {reading.pid: reading.name for reading in readings}
        self._take_memory(readings)
        self._take_risen(risen, is_now=True)
        self._take_threads(readings)
        self._interval.late_seconds = max(self._interval.late_seconds, late_seconds)

    def take_root_at_start(self, rss_bytes: int) -> None:
        """What the root held when the job began, which it may have freed before the first reading."""
        self._raise_main(rss_bytes, SAMPLED)
        combined = self._beside(self._root_pid, rss_bytes)
        self._raise_combined(combined, self._combined, {self._root_pid: rss_bytes})

    def take_earlier_peaks(self, high_waters: Mapping[int, int]) -> None:
        """Take high-water marks that processes kept at any time since the start."""
        self._take_risen(self._find_risen(high_waters), is_now=False)

    def take_again(self, at_seconds: float, late_seconds: float = 0.0) -> None:
        """Take a reading identical to the last one."""
        self._at_seconds = at_seconds
        self._n_readings += 1
        interval = self._interval
        interval.add(self._held)
        interval.threads = max(interval.threads, self._threads)
        interval.processes = max(interval.processes, self._processes)
        interval.late_seconds = max(interval.late_seconds, late_seconds)

    def take_sharing(
        self,
        readings: Sequence[ProcessReading],
        sharings: Mapping[int, SharingReading],
    ) -> None:
        """Take what the processes share, all read at one moment: all of them, or examples; the root included."""
        by_pid = {reading.pid: reading for reading in readings}
        self._overlaps = {pid: find_overlap(by_pid[pid], sharing) for pid, sharing in sharings.items()}
        self._take_memory(readings, is_new_reading=False)
        self._refine_split("combined", self._combined)
        if self._root_pid in by_pid:
            self._refine_split("main", hold([by_pid.pop(self._root_pid)], self._overlaps))
        self._refine_split("descendants", hold(list(by_pid.values()), self._overlaps))

    def take_machine(self, machine: MachineReading) -> None:
        """Take one reading of the whole machine."""
        self._machine = machine
        self._raise_peaks(system_ram_bytes=machine.ram_used_bytes)
        if machine.limit_used_bytes is not None:
            self.peaks = self.peaks._replace(
                limit_ram_bytes=max(self.peaks.limit_ram_bytes or 0, machine.limit_used_bytes)
            )

    def take_limit_held(self, held_bytes: int | None) -> None:
        """Take what the memory limit counts, read just after the tree."""
        self._limit.take(held_bytes, self._combined, self.peaks.ram.combined.total_bytes)
        self.peaks = self.peaks._replace(limit_held_bytes=self._limit.most_bytes)

    def cap_limit_held(self, peak_bytes: int | None) -> None:
        """It never was more than the limit's own peak."""
        held = self.peaks.limit_held_bytes
        if held is not None and peak_bytes is not None:
            self.peaks = self.peaks._replace(limit_held_bytes=min(held, peak_bytes))

    def take_activity(self, activities: Sequence[ProcessActivity], stalls: Stalls) -> None:
        """Take what the processes have done, and how long the machine kept them waiting."""
        self._activity.feed(activities)
        self._counters = raise_counters(self._activity.counters, self._exact_counters)
        self._stalls_at_start = self._stalls_at_start or stalls
        self._stalls = subtract_stalls(stalls, self._stalls_at_start)

    def take_energy(self, at_seconds: float, readings: Sequence[EnergyReading]) -> None:
        """Take the meters of the whole machine."""
        self._energy.take(at_seconds, readings)
        self._metered = self._energy.energy

    def add_gpu(self, gpu: Gpu) -> None:
        """Add a device."""
        self._gpus.add(gpu)

    def take_gpus(self, readings: GpuReadings) -> GpuMoment:
        """Take one reading of the GPUs; returns its summary of the time since the one before."""
        gpus = self._gpus
        totals = gpus.take(readings, self._names)
        self._raise_peaks(
            system_gpu_bytes=totals.system_bytes,
            gpu_utilization_sum_percent=totals.allowed_percent,
            gpu_with_job_sum_percent=totals.with_job_percent,
        )
        self._take_gpu_peaks(totals.job_bytes)
        return gpus.describe(readings)

    def _take_gpu_peaks(self, job_bytes: Parts[int | None]) -> None:
        by_device = self._gpus.peaks
        # The high-water mark of one process on one device is a lower bound for all.
        sizes = ([peak.job_bytes[part] for peak in by_device] for part in range(3))
        most = Parts(*map(find_peak, self.peaks.gpu_bytes, job_bytes, sizes))
        self.peaks = self.peaks._replace(gpu_bytes=most, gpus=by_device, gpu_processes=self._gpus.processes)

    def finish(self, figures: RootFigures | None) -> None:
        """Take the peaks that only the root's owner or parent can know; None of a root that has ended unseen."""
        if figures is None:
            self.peaks = doubt_peaks(self.peaks)
        else:
            # When that was is not known, so it is in no sample.
            self.peaks = raise_peaks(self.peaks, figures, has_mark=self._has_mark)
            self._exact_counters = figures.counters
            self._counters = raise_counters(self._activity.counters, self._exact_counters)
        self._limit.take_peak(self.peaks.ram.combined.total_bytes)
        self.peaks = self.peaks._replace(limit_held_bytes=self._limit.most_bytes)

    def lose_gpus(self, vendor: str) -> None:
        """The vendor's driver no longer answers: what the job holds there is not known."""
        self._gpus.lose(vendor)
        self._take_gpu_peaks(Parts(None, None, None))

    def has_read_gpus(self, vendor: str) -> bool:
        """Whether the vendor's driver has ever told anything of its devices."""
        return self._gpus.has_read(vendor)

    def finish_gpus(self, *, has_ended: bool) -> None:
        """There will be no more readings of the GPUs; those after the end of a job say nothing of it."""
        self._gpus.finish(self._at_seconds, has_ended=has_ended)
        self._take_gpu_peaks(Parts(None, None, None))
        used = [peak.used_bytes for peak in self.peaks.gpus]
        self.peaks = self.peaks._replace(system_gpu_bytes=find_peak(self.peaks.system_gpu_bytes, None, used))

    def find_gpu_growth(self) -> int | None:
        """What the job holds more on all devices than before it began; None if not known."""
        return self._gpus.find_growth()

    def take_gpu_faults(self, faults: Iterable[GpuFault]) -> list[tuple[float, str, str]]:
        """What to tell of them: when, the kind of event, and a sentence."""
        return self._gpus.take_faults(faults)

    def list_gpu_faults(self) -> list[tuple[str, str]]:
        """How often they happened, in the same form."""
        return self._gpus.list_faults()

    def take_gpu_estimates(self) -> tuple[tuple[str, str], ...]:
        """What turned out to be an estimate since the last call: the kind of event, and the device."""
        return self._gpus.take_estimates()

    def list_gpu_gaps(self) -> tuple[str, ...]:
        """What is missing in the totals of the GPUs, a sentence each."""
        return self._gpus.list_gaps()

    @property
    def has_lost_children(self) -> bool:
        """Whether processes have ended of which nobody has learned what they used."""
        return self._ledger.has_lost

    def discount(self, seconds: float) -> None:
        """Exclude CPU time of another tracker that the root has reaped."""
        self._ledger.discount_seconds += seconds

    # ---- For the sampler.

    def is_sharing_in_doubt(self) -> bool:
        """Whether reading shared memory could show a new peak."""
        ceiling = self._combined.ceiling_bytes
        return (
            ceiling > self._combined.unique_bytes * _NOTABLE
            and ceiling > self.peaks.ram.combined.total_bytes * _NOTABLE
        )

    def is_split_unknown(self) -> bool:
        """Whether the root's shared memory has never been read."""
        return self._root_pid in self.pids and self._root_pid not in self._overlaps

    def take_gone(self) -> list[ProcessTotals]:
        """The processes that have ended since the last call."""
        gone, self._gone = self._gone, []
        return gone

    def list_processes(self) -> list[ProcessTotals]:
        """The living processes."""
        return [self._describe_process(reading) for reading in self._last_readings.values()]

    def list_largest(self, count: int) -> list[ProcessTotals]:
        """The living processes that hold most; the root is always among them."""
        by_size = sorted(
            self._last_readings.values(),
            key=lambda reading: (reading.pid == self._root_pid, reading.rss_bytes),
            reverse=True,
        )
        return [self._describe_process(reading) for reading in by_size[:count]]

    def close_cpu_interval(self, *, is_last: bool = False) -> None:
        """Compare the CPU time since the last call with the busiest interval so far.

        The last one may be too short for a rate of its own: then it is part of the one before.
        """
        now, start = self._look_at_cpu(), self._cpu_interval_start
        if now.at_seconds <= start.at_seconds:
            return
        if is_last and self._cpu_interval_before is not None:
            start = self._cpu_interval_before
        wall = now.at_seconds - start.at_seconds
        used = zip(now.cpu_seconds, start.cpu_seconds, strict=True)
        parts = [Busiest(after - before, wall) for after, before in used]
        system = Busiest(now.system_cpu_seconds - start.system_cpu_seconds, wall)
        busiest = tuple(map(_busier, self.peaks.busiest, parts))
        system_busiest = _busier(self.peaks.system_busiest, system)
        if (busiest, system_busiest) != (self.peaks.busiest, self.peaks.system_busiest):
            self.peaks = self.peaks._replace(busiest=Parts._make(busiest), system_busiest=system_busiest)
        self._cpu_interval_before, self._cpu_interval_start = start, now

    @property
    def seconds_in_cpu_interval(self) -> float:
        """Length of the current CPU interval so far."""
        return self._at_seconds - self._cpu_interval_start.at_seconds

    def _look_at_cpu(self) -> _CpuMoment:
        return _CpuMoment(
            self._at_seconds,
            add_parts(self._ledger.main_seconds, self._ledger.descendants_seconds),
            # An emulation of /proc may take back what it has counted.
            max(0.0, self._machine.cpu_seconds - self._machine_at_start.cpu_seconds),
        )

    def totals(self) -> Totals:
        """Everything so far."""
        cpu = self._look_at_cpu()
        return Totals(
            at_seconds=cpu.at_seconds,
            cpu_seconds=cpu.cpu_seconds,
            system_cpu_seconds=cpu.system_cpu_seconds,
            readings=self._n_readings,
            gpu_counters=self._gpus.counters,
            peaks=self.peaks,
            counters=self._counters,
            stalls=self._stalls,
            energy=self._metered,
            unread_seconds=self.unread_seconds,
        )

    def sample(self) -> Sample:
        """The interval so far. It stays open until `start_interval`, so that a failed write loses nothing."""
        cpu, interval = self._look_at_cpu(), self._interval
        return Sample(
            at_seconds=cpu.at_seconds,
            readings=interval.n_readings,
            late_seconds=interval.late_seconds,
            cpu_seconds=cpu.cpu_seconds,
            system_cpu_seconds=cpu.system_cpu_seconds,
            ram_bytes=interval.spreads(),
            system_ram_bytes=self._machine.ram_used_bytes,
            threads=interval.threads,
            processes=interval.processes,
            gpus=self._gpus.samples(cpu.at_seconds),
            gpu_counters=self._gpus.counters,
            peaks=self.peaks,
            counters=self._counters,
            stalls=self._stalls,
            energy=self._metered,
        )

    def start_interval(self) -> None:
        """Begin a new interval, after a line was written."""
        self._interval = _Interval()
        self._gpus.start_interval()

    # ---- Memory.

    def _take_memory(self, readings: Sequence[ProcessReading], *, is_new_reading: bool = True) -> None:
        root = next((reading for reading in readings if reading.pid == self._root_pid), None)
        others = [reading for reading in readings if reading.pid != self._root_pid]
        held_by_others = hold(others, self._overlaps)
        self._combined_before, self._readings_before = self._combined, self._readings
        self._readings = readings
        self.rss_bytes = {reading.pid: reading.rss_bytes for reading in readings}
        self._combined = hold(readings, self._overlaps, is_whole_tree=True)
        # A process that is ending has given its memory back, but may still be listed.
        is_alive = self._combined.unique_bytes > 0
        if is_alive:
            self._held = (
                root.rss_bytes if root else 0,
                held_by_others.unique_bytes,
                self._combined.unique_bytes,
            )
        # What nobody holds any more was held until the end.
        if is_new_reading and (is_alive or not self._interval.n_readings):
            self._interval.add(self._held)
        if root is not None:
            self._main_shared_bytes = hold([root], self._overlaps).shared_bytes
            self._raise_main(root.rss_bytes, SAMPLED)
            if root.rss_bytes:  # one that has ended has none
                self._has_mark = _find_mark(root) is not None
            spike = self._new_spike(root)
            if spike is not None:
                self._raise_main(spike, EXACT if root.peak_footprint_bytes is None else ESTIMATE)
                self._raise_combined(self._beside(root.pid, spike), self._combined, {root.pid: spike})
        held = held_by_others.unique_bytes
        self._raise_ram("descendants", held, held_by_others.shared_bytes, _find_basis(held_by_others, held))
        for reading in others:
            spike = self._new_spike(reading)
            if spike is not None:
                basis = SAMPLED if reading.peak_footprint_bytes is None else ESTIMATE
                self._raise_ram("descendants", spike, held_by_others.shared_bytes, basis)
                self._raise_combined(self._beside(reading.pid, spike), self._combined, {reading.pid: spike})
        self._raise_combined(self._combined.unique_bytes, self._combined)
        self._raise_peaks(ram_ceiling_bytes=self._combined.ceiling_bytes)

    def _find_risen(self, high_waters: Mapping[int, int]) -> dict[int, tuple[int, bool]]:
        """The marks that are higher than those kept before, and whether no reading has met them either."""
        known = self._reset_high_waters
        risen = {
            pid: (high_water, high_water > self._high_waters.get(pid, 0))
            for pid, high_water in high_waters.items()
            if high_water > known.get(pid, 0)
        }
        known.update({pid: high_water for pid, (high_water, _) in risen.items()})
        return risen

    def _take_risen(self, risen: Mapping[int, tuple[int, bool]], *, is_now: bool) -> None:
        """Take the marks that processes kept; they may have ended since.

        A mark that a reading has met is older than this interval; the others may have held less then.
        """
        for pid, (high_water, is_new) in risen.items():
            if pid == self._root_pid:
                self._raise_main(high_water, EXACT, is_now=is_now and is_new)
            else:
                self._raise_ram("descendants", high_water, self.peaks.ram.descendants.shared_bytes, SAMPLED)
            combined = self._beside(pid, high_water) if is_new else high_water
            self._raise_combined(combined, self._combined, {pid: high_water}, is_now=is_now and is_new)

    def _new_spike(self, reading: ProcessReading) -> int | None:
        """The kernel's high-water mark, if it has risen since the last reading and since the start."""
        peak = _find_mark(reading)
        if peak is None:
            return None
        known = self._high_waters.get(reading.pid, peak if reading.was_running_at_start else 0)
        self._high_waters[reading.pid] = peak
        return peak if peak > known else None

    def _beside(self, pid: int, spike: int) -> int:
        """A spike between two readings, plus what the others held at the smaller of the two."""
        known = (*self._readings, *self._readings_before)
        one = next((reading for reading in known if reading.pid == pid), None)
        now = hold_beside(one, self._readings, self._combined.unique_bytes)
        then = hold_beside(one, self._readings_before, self._combined_before.unique_bytes)
        return spike + min(now, then)

    def _raise_main(self, total: int, basis: str, *, is_now: bool = True) -> None:
        self._raise_ram("main", total, self._main_shared_bytes, basis)
        if is_now:
            self._interval.raise_high(0, total)

    def _raise_combined(
        self,
        total: int,
        holding: Holding,
        spikes: Mapping[int, int] = _NO_SPIKES,
        *,
        is_now: bool = True,
    ) -> None:
        """`spikes` are sizes of processes at the peak, where they differ from what was read now."""
        if self.pids <= {self._root_pid} and total == self.peaks.ram.main.total_bytes:
            basis = self.peaks.ram.main.basis
        else:
            basis = _find_basis(holding, total)
        self._raise_ram("combined", total, holding.shared_bytes, basis)
        if is_now:
            self._interval.raise_high(2, total)
        if self.moments.is_new(RAM, total, is_read=is_now and not spikes):
            sizes = {**self.rss_bytes, **spikes}
            held = [(pid, self._names.get(pid, ""), size) for pid, size in sizes.items()]
            self.moments.take(RAM, self._at_seconds, total, held)

    def _raise_ram(self, part: str, total: int, shared: int, basis: str) -> None:
        peak: RamPeak = getattr(self.peaks.ram, part)
        is_better = total == peak.total_bytes and _SURENESS[basis] > _SURENESS[peak.basis]
        if total > peak.total_bytes or is_better:
            shared = min(shared, total)
            self._set_ram(part, RamPeak(total, total - shared, shared, basis))

    def _refine_split(self, part: str, holding: Holding) -> None:
        """Near the peak, what was read replaces what was assumed."""
        peak: RamPeak = getattr(self.peaks.ram, part)
        if holding.unique_bytes * _NOTABLE >= peak.total_bytes and holding.shared_bytes > peak.shared_bytes:
            shared = min(holding.shared_bytes, peak.total_bytes)
            self._set_ram(part, peak._replace(private_bytes=peak.total_bytes - shared, shared_bytes=shared))

    def _set_ram(self, part: str, peak: RamPeak) -> None:
        changed: dict[str, Any] = {part: peak}
        self.peaks = self.peaks._replace(ram=self.peaks.ram._replace(**changed))

    # ---- The rest.

    def _note_processes(self, readings: Sequence[ProcessReading]) -> None:
        before, self._last_readings = self._last_readings, {reading.pid: reading for reading in readings}
        for pid in before.keys() - self._last_readings.keys():
            self._gone.append(self._describe_process(before[pid]))
            self._gpus.forget_use(pid)
            del self._first_meetings[pid]
            self._largest_rss_bytes.pop(pid, None)
        for pid in self._last_readings.keys() - before.keys():
            self._first_meetings[pid] = self._meet(self._last_readings[pid])
        for reading in readings:
            if reading.was_running_at_start:
                known = self._largest_rss_bytes.get(reading.pid, 0)
                self._largest_rss_bytes[reading.pid] = max(known, reading.rss_bytes)

    def _meet(self, reading: ProcessReading) -> _Meeting:
        if not reading.was_running_at_start:
            return _Meeting(self._at_seconds, 0.0, 0)
        return _Meeting(self._at_seconds, reading.cpu_seconds, _find_mark(reading) or 0)

    def _describe_process(self, reading: ProcessReading) -> ProcessTotals:
        """Since the job began, or the process if that was later."""
        pid, first = reading.pid, self._first_meetings[reading.pid]
        high_water = _find_mark(reading) or 0
        gpu_seconds, gpu_joules = self._gpus.find_use(pid)
        return ProcessTotals(
            pid=pid,
            parent_pid=reading.parent_pid,
            name=reading.name,
            first_seconds=first.at_seconds,
            last_seconds=self._at_seconds,
            cpu_seconds=self._ledger.main_seconds
            if pid == self._root_pid
            else max(0.0, reading.cpu_seconds - first.cpu_seconds),
            peak_ram_bytes=max(
                reading.rss_bytes,
                self._largest_rss_bytes.get(pid, 0),
                high_water if high_water > first.peak_bytes else 0,
                self._reset_high_waters.get(pid, 0),
            ),
            gpu_seconds=gpu_seconds,
            gpu_joules=gpu_joules,
        )

    def _take_threads(self, readings: Sequence[ProcessReading]) -> None:
        main = sum(reading.n_threads for reading in readings if reading.pid == self._root_pid)
        total = sum(reading.n_threads for reading in readings)
        running = sum(
            1 for reading in readings if reading.n_threads
        )  # one that has ended may not have been reaped yet
        self._threads, self._processes = total, running
        self._interval.threads = max(self._interval.threads, total)
        self._interval.processes = max(self._interval.processes, running)
        self._raise_peaks(
            virtual_bytes=max((reading.virtual_bytes for reading in readings), default=0),
            page_table_bytes=sum(reading.page_table_bytes for reading in readings),
        )
        threads = _larger_parts(self.peaks.threads, Parts(main, total - main, total))
        if threads != self.peaks.threads:
            self.peaks = self.peaks._replace(threads=threads)
        self._raise_peaks(processes=running)

    def _raise_peaks(self, **candidates: float | None) -> None:
        grown: dict[str, Any] = {
            name: value
            for name, value in candidates.items()
            if value is not None and value > (getattr(self.peaks, name) or -1)
        }
        if grown:
            self.peaks = self.peaks._replace(**grown)


def _find_mark(reading: ProcessReading) -> int | None:
    """The kernel's high-water mark of a process, of whatever it keeps one."""
    return reading.peak_footprint_bytes if reading.peak_rss_bytes is None else reading.peak_rss_bytes


def _find_basis(holding: Holding, total: int) -> str:
    """How sure a peak is that was found with what these processes are known to share."""
    doubtful = min(holding.doubtful_bytes, holding.ceiling_bytes - total)
    return ESTIMATE if doubtful > total * (_NOTABLE - 1) else SAMPLED


def _larger_parts(known: Parts[int], seen: Parts[int]) -> Parts[int]:
    return Parts(*map(max, known, seen))


def _busier(best: Busiest, candidate: Busiest) -> Busiest:
    if not best.wall_seconds:
        return candidate
    rate = candidate.cpu_seconds / candidate.wall_seconds
    return candidate if rate > best.cpu_seconds / best.wall_seconds else best
