"""GPUs are read in threads, one per vendor, so that a slow driver delays nothing else."""

from __future__ import annotations

import os
import time

from ..core.model import UNREAD, Event, name_unread
from ..core.text import count_of
from ..core.vendors import NO_GPU, VENDORS, name_vendor
from ..sources.gpu.connect import connect, describe_bug, find_vendors
from .handle.wire import GPU_PATIENCE_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeVar

    from ..core.model import Gpu, GpuReading, GpuReadings, GpuShares
    from ..sources import GpuSource

    T = TypeVar("T", float, float | None)

# Energy and memory are counted to a reading after the job has ended: nobody notices such a delay. A driver that already hangs is
# not waited for.
_LAST_READING_SECONDS = 0.25
_LONGEST_LAST_READING_SECONDS = 0.75
# A reading that takes longer is reported with the time that is missing, and so is one that takes notably longer than usual.
_SILENCE_SECONDS = 2.0
_NOTABLE_EXCESS_SECONDS = 0.2
_NOTABLE_SHARE = 0.5
_CALLS_KEPT = 12
_DISTANCES_KEPT = 8
# A reading that begins later than this was not begun in time: the machine or the sampler stood still.
_LATE_SECONDS = 0.35
# However much a reading costs, a process that uses a device must not go unseen.
_LONGEST_PAUSE_SECONDS = 2.0
_MOST_SILENCES_SAID = 5
# Readings are a little irregular.
_USUAL_GAPS = 1.5

# When to check whether a job uses a device that does not list it: reading what a process has loaded is not free.
_FIRST_CHECK_SECONDS = 0.5
_CHECK_SECONDS = 5.0
_NOTABLE_BYTES = 32 * 2**20
_MOST_PROCESSES_CHECKED = 8


def choose_pause(readings: GpuReadings, interval_seconds: float, poll_seconds: float, luck: float) -> float:
    """How long to wait after these readings, given a random number between 0 and 1.

    What a driver keeps no samples of is read at irregular intervals: a job that alternates regularly would otherwise be
    met in the same phase every time. And it is read more often, if that is cheap.
    """
    is_polled = any(
        (device.samples is None and device.utilization_percent is not None)
        or (device.energy_joules is None and device.power_watts is not None)  # its power is summed up instead
        for device in readings.devices
    )
    return min(interval_seconds, poll_seconds) * (0.5 + luck) if is_polled else interval_seconds


def find_collecting_pause(readings: GpuReadings) -> float:
    """How long to wait at most before samples are fetched that the driver would forget."""
    return min(
        (device.shares.pause_seconds for device in readings.devices if device.shares), default=float("inf")
    )


def find_excess(took_seconds: float, earlier: Sequence[float], distance_seconds: float) -> float:
    """By how much a call took longer than is usual after these, if that is notable; it is not known at first.

    Some figures are read more rarely than others, so that now and then a call takes longer than most: twice is usual.
    Beside the time between two readings, in which nothing is known either, a short delay is nothing.
    """
    if not earlier:
        return 0.0
    usual = sorted(earlier)[-2:][0]
    excess = took_seconds - usual
    is_notable = excess > max(_NOTABLE_EXCESS_SECONDS, _NOTABLE_SHARE * max(usual, distance_seconds))
    return excess if is_notable else 0.0


class Silences:
    """The times in which one driver did not answer, in few sentences: those that are close together are one."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._latest: tuple[float, float] | None = None
        """It may go on."""
        self._is_whole = True
        """Whether the driver did not answer at all in it."""
        self._texts: list[str] = []
        self._n_said = self._n_unsaid = 0
        self._unsaid_seconds = 0.0

    def add(self, from_seconds: float, until_seconds: float) -> None:
        """One more, later than the others."""
        begin = self._join(from_seconds)
        self._is_whole = begin == from_seconds
        self._latest = begin, until_seconds

    def take(self, at_seconds: float) -> list[str]:
        """Sentences since the last call, about what is over: since then the driver has answered for a while."""
        self._join(at_seconds)
        texts, self._texts = self._texts, []
        return texts

    def end(self, from_seconds: float) -> str:
        """It has not answered since then, to the end."""
        begin = self._join(from_seconds)
        self._is_whole = begin == from_seconds
        self._latest = None
        return self._describe(begin, "the end")

    def finish(self) -> list[str]:
        """What has not been said yet."""
        texts = self.take(float("inf"))
        if self._n_unsaid:
            more = count_of(self._n_unsaid, "more time")
            texts.append(
                f"The {self._label} driver did not answer {more}, {self._unsaid_seconds:.1f} s in all."
            )
        return texts

    def _join(self, at_seconds: float) -> float:
        """Since when, if it does not answer from this time on either."""
        if self._latest is None:
            return at_seconds
        begin, end = self._latest
        if at_seconds - end < _SILENCE_SECONDS:
            return min(begin, at_seconds)
        self._latest = None
        if self._n_said < _MOST_SILENCES_SAID:
            self._n_said += 1
            self._texts.append(self._describe(begin, f"{end:.1f} s"))
        else:
            self._n_unsaid += 1
            self._unsaid_seconds += end - begin
        return at_seconds

    def _describe(self, begin: float, until: str) -> str:
        since = "from the start" if begin == 0 else f"from {begin:.1f} s"
        if self._is_whole:
            return f"The {self._label} driver did not answer {since} to {until}: GPU figures of that time are missing."
        return (
            f"The {self._label} driver answered only now and then {since} to {until}: "
            "GPU figures of that time are incomplete."
        )


class GpuThreads:
    """Reads every GPU in the background; the readings are fetched from here."""

    def __init__(
        self,
        interval_seconds: float,
        max_overhead: float,
        vendors: tuple[str, ...] | None,
        named_uuids: tuple[str, ...] | None,
        environment: Mapping[str, str],
        pids: frozenset[int] = frozenset(),
        patience_seconds: float = GPU_PATIENCE_SECONDS,
    ) -> None:
        """`pids` are the processes of the job that run already: what they hold at the start is theirs."""
        self._interval_seconds = interval_seconds
        self._max_overhead = max_overhead
        self._named_uuids = named_uuids
        self._environment = environment
        self._start_seconds = time.monotonic()
        self.pids = pids
        """The processes of the job, updated by the sampler."""
        # Lists are swapped, not locked: appending and swapping are atomic in the interpreter.
        self._readings: list[tuple[str, GpuReadings]] = []
        self._events: list[tuple[float, str, str, Gpu | None]] = []
        found = find_vendors(environment) if vendors is None else vendors
        if vendors is None and not found:
            self.say(NO_GPU)
        self._vendor_threads = [_VendorThread(self, vendor) for vendor in found]
        for thread in self._vendor_threads:
            thread.wait_for_reading(self._start_seconds + patience_seconds)

    def begin(self, start_seconds: float) -> None:
        """The job begins now; of the readings so far the last of each vendor is kept, as the state before it."""
        self._start_seconds = start_seconds
        self._readings = [
            (vendor, one._replace(faults=(), unanswered_seconds=0.0, late_seconds=0.0))
            for vendor, one in dict(self._readings).items()
        ]

    def read_now(self) -> list[tuple[str, str]]:
        """Read every device once more, if that takes but a moment; the vendors that do not answer, and a note on each."""
        # One that has always been slow may be as slow again.
        usual = max((thread.longest_call_seconds for thread in self._vendor_threads), default=0.0)
        patience = max(_LAST_READING_SECONDS, min(_LONGEST_LAST_READING_SECONDS, 2 * usual))
        deadline = time.monotonic() + patience
        awake = [thread for thread in self._vendor_threads if not thread.is_stuck(patience)]
        for thread in awake:
            thread.is_last = True
            thread.wake()
        for thread in awake:
            thread.wait_for_reading(deadline)
        silent = (thread for thread in self._vendor_threads if not thread.has_read())
        return [
            (thread.vendor, thread.silences.end(self._since_start(from_seconds)))
            for thread in silent
            if (from_seconds := thread.find_silence(self._start_seconds, self._interval_seconds)) is not None
        ]

    def take_last_silences(self) -> list[str]:
        """What has not been said yet of the times in which drivers did not answer."""
        return [text for thread in self._vendor_threads for text in thread.silences.finish()]

    def list_unattributed(self) -> list[tuple[str, str]]:
        """Why what the job held is not known to the end, as events, of each vendor for which that was not said."""
        checks = [thread.attribution for thread in self._vendor_threads if thread.attribution is not None]
        reasons = (check.find_unsaid_reason() for check in checks)
        unread = [
            ("note", f"What the job used of GPUs is not known: {reason}") for reason in reasons if reason
        ]
        # The job has ended before it was certain that the driver does not list it.
        return unread + [("unattributed", check.explain()) for check in checks if check.is_open()]

    def have_answered(self) -> bool:
        """Whether every driver has been read once, or has no devices."""
        return all(thread.has_answered() for thread in self._vendor_threads)

    def take_readings(self) -> list[GpuReadings]:
        """The readings since the last call; earlier ones are dated to the start."""
        readings, self._readings = self._readings, []
        return [self._date(one)._replace(vendor=vendor) for vendor, one in readings]

    def take_events(self) -> list[Event]:
        """Devices found and notes since the last call."""
        events, self._events = self._events, []
        return [Event(self._since_start(at), kind, text, gpu) for at, kind, text, gpu in events]

    def say(self, text: str) -> None:
        """Give the user a note."""
        self._events.append((time.monotonic(), "note", text, None))

    def _date(self, readings: GpuReadings) -> GpuReadings:
        devices = tuple(map(self._date_device, readings.devices))
        faults = tuple(
            fault._replace(at_seconds=self._since_start(fault.at_seconds)) for fault in readings.faults
        )
        return readings._replace(
            at_seconds=self._since_start(readings.at_seconds), devices=devices, faults=faults
        )

    def _date_device(self, device: GpuReading) -> GpuReading:
        shares, energy_at = device.shares, device.energy_at_seconds
        return device._replace(
            # Of a counter that was read before the start, all that it has counted since is known.
            energy_at_seconds=None if energy_at is None else energy_at - self._start_seconds,
            samples=None if device.samples is None else self._date_samples(device.samples),
            shares=shares and self._date_shares(shares),
        )

    def _date_shares(self, shares: GpuShares) -> GpuShares:
        return shares._replace(
            instants=self._date_samples(shares.instants),
            until_seconds=self._since_start(shares.until_seconds),
            earlier=tuple(map(self._date_shares, shares.earlier)),
        )

    def _date_samples(self, samples: Iterable[tuple[float, T]]) -> tuple[tuple[float, T], ...]:
        """Without those from before the start."""
        dated = ((at - self._start_seconds, percent) for at, percent in samples)
        return tuple(sample for sample in dated if sample[0] > 0)

    def _since_start(self, at_seconds: float) -> float:
        return max(0.0, at_seconds - self._start_seconds)

    # ---- In the threads.

    def run_thread(self, thread: _VendorThread) -> None:
        """The work of one vendor's thread."""
        from ..core.observation import ABSENT

        source, name, missing = connect(VENDORS[thread.vendor], self._environment)
        self._note_silence(thread)
        if source is None:
            # A source that is there but broken is worth more than one that is absent.
            notable = [reason for reason in missing if reason.kind != ABSENT]
            self.say((notable or missing)[0].text)
            return
        try:
            self._read_repeatedly(thread, source)
        except Exception as error:  # noqa: BLE001 - no error here may affect the job's other figures
            self.say(describe_bug(name, error))

    def _read_repeatedly(self, thread: _VendorThread, source: GpuSource) -> None:
        attribution = thread.attribution = _AttributionCheck(source)
        last_seconds = float("-inf")
        known = self._add_gpus(source, set())
        while source.gpus or source.unopened:
            spent = time.thread_time()
            thread.is_due.clear()
            thread.begin_reading()
            if thread.is_last:
                source.expect_end()
            readings = source.read(self.pids)
            known = self._add_gpus(source, known)
            self._note_silence(thread)
            for text in thread.silences.take(self._since_start(time.monotonic())):
                self.say(text)
            # An expensive source repeats its latest readings in between; those count once.
            if readings.at_seconds > last_seconds:
                self._readings.append((thread.vendor, thread.add_delays(readings)))
                last_seconds = readings.at_seconds
                thread.note_new(last_seconds)
            for note in source.take_notes():
                self.say(note)
            thread.note_reading()
            reason = attribution.check(readings, self.pids)
            if reason:
                self._events.append((time.monotonic(), "unattributed", reason, None))
            spent = time.thread_time() - spent
            self._wait(thread, source, readings, spent)
        for note in source.take_notes():
            self.say(note)

    def _wait(
        self, thread: _VendorThread, source: GpuSource, readings: GpuReadings, spent_seconds: float
    ) -> None:
        """Until the next reading.

        If that costs too much to be in time for samples that the driver would forget, only those are fetched meanwhile, for half as much again.
        """
        step = find_collecting_pause(readings)
        pause = choose_pause(readings, self._interval_seconds, source.poll_seconds, os.urandom(1)[0] / 255)
        pause = min(pause, step)
        due_seconds = time.monotonic() + max(
            pause, min(spent_seconds / self._max_overhead, _LONGEST_PAUSE_SECONDS)
        )
        thread.due_seconds = due_seconds
        while (left := due_seconds - time.monotonic()) > step:
            if thread.is_due.wait(step):
                return
            spent = time.thread_time()
            thread.begin_call()
            source.collect()
            thread.end_call()
            self._note_silence(thread)
            step = max(step, 2 * (time.thread_time() - spent) / self._max_overhead)
        thread.is_due.wait(max(0.0, left))

    def _note_silence(self, thread: _VendorThread) -> None:
        """If the call that has just returned was long."""
        began, now = thread.began_seconds, time.monotonic()
        is_long = now - max(began, self._start_seconds) > _SILENCE_SECONDS
        if is_long or (began > self._start_seconds and thread.find_excess()):
            thread.silences.add(self._since_start(began), self._since_start(now))

    def _add_gpus(self, source: GpuSource, known: set[str]) -> set[str]:
        """Those that are new, also those that could not be opened; the names of all that are known now."""
        found = {gpu.uuid: gpu for gpu in source.gpus if not gpu.is_split}
        unread = {name_unread(gpu.vendor, gpu.ordinal): gpu for gpu in source.unopened}
        if known.issuperset(found) and known.issuperset(unread):
            return known
        from ..sources.gpu.visible import choose_visible

        visible = self._named_uuids
        if visible is None:
            visible = tuple(choose_visible((*source.gpus, *source.unopened), self._environment))
        at = time.monotonic()
        for uuid in (uuid for uuid in found if uuid not in known):
            gpu = found[uuid]._replace(is_visible=uuid in visible)
            self._events.append((at, "gpu", "", gpu))
        for name in unread.keys() - known:
            if unread[name].uuid in visible:
                self._events.append((at, UNREAD, name, None))
        return known.union(found, unread)


class _VendorThread:
    """The handle of one vendor's thread."""

    def __init__(self, owner: GpuThreads, vendor: str) -> None:
        import threading

        self.vendor = vendor
        self.is_due = threading.Event()
        self.is_last = False
        """Whether the job has ended."""
        self._has_read = threading.Event()
        self._wanted_seconds = self._read_seconds = self._new_seconds = 0.0
        self._longest_gap_seconds = self.longest_call_seconds = 0.0
        self._reading_seconds: list[float] = []
        """How long the latest readings took."""
        self._distances: list[float] = []
        """Between the latest ones that were new."""
        self.due_seconds = float("inf")
        """When the next one is."""
        self._unanswered_seconds = self._late_seconds = self._excess_seconds = 0.0
        """What the next one will say of the time before it, and what will be said of the one after."""
        self.began_seconds = time.monotonic()
        """The call that is under way, or the last one."""
        self._is_calling = True
        self.silences = Silences(name_vendor(vendor))
        self.attribution: _AttributionCheck | None = None
        self._thread = threading.Thread(target=owner.run_thread, args=(self,), daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Read now, without waiting for the interval to end."""
        self._wanted_seconds = time.monotonic()
        self._has_read.clear()
        self.is_due.set()

    def begin_reading(self) -> None:
        """The driver is asked for everything."""
        self.begin_call()
        late_seconds = self.began_seconds - self.due_seconds
        is_notable = late_seconds > max(_LATE_SECONDS, _NOTABLE_SHARE * self._usual_distance())
        self._late_seconds += late_seconds if is_notable else 0.0
        self._unanswered_seconds += self._excess_seconds
        self._excess_seconds = 0.0

    def add_delays(self, readings: GpuReadings) -> GpuReadings:
        """With the time before it in which nothing was read."""
        unanswered_seconds, late_seconds = self._unanswered_seconds, self._late_seconds
        self._unanswered_seconds = self._late_seconds = 0.0
        if not (unanswered_seconds or late_seconds):
            return readings
        return readings._replace(unanswered_seconds=unanswered_seconds, late_seconds=late_seconds)

    def find_excess(self) -> float:
        """By how much the present call takes longer than usual, if that is notable."""
        took_seconds = time.monotonic() - self.began_seconds
        return find_excess(took_seconds, self._reading_seconds, self._usual_distance())

    def _usual_distance(self) -> float:
        distances = sorted(self._distances)
        return distances[len(distances) // 2] if distances else 0.0

    def begin_call(self) -> None:
        """The driver is asked."""
        self.began_seconds = time.monotonic()
        self._is_calling = True

    def end_call(self) -> None:
        """It has answered."""
        self._excess_seconds = max(self._excess_seconds, self.find_excess())
        self._is_calling = False
        self.longest_call_seconds = max(self.longest_call_seconds, time.monotonic() - self.began_seconds)

    def note_reading(self) -> None:
        """The reading is complete."""
        self.end_call()
        took_seconds = time.monotonic() - self.began_seconds
        # In the first one everything is read: others will take as long.
        earlier = self._reading_seconds or [took_seconds]
        self._reading_seconds = [*earlier[1 - _CALLS_KEPT :], took_seconds]
        self._read_seconds = self.began_seconds
        self._has_read.set()

    def note_new(self, at_seconds: float) -> None:
        """It is a new one, of that time."""
        if self._new_seconds:
            distance_seconds = at_seconds - self._new_seconds
            self._distances = [*self._distances[1 - _DISTANCES_KEPT :], distance_seconds]
            self._longest_gap_seconds = max(self._longest_gap_seconds, distance_seconds)
        self._new_seconds = at_seconds

    def is_stuck(self, seconds: float) -> bool:
        """Whether the driver has been asked so long ago."""
        return self._is_calling and time.monotonic() - self.began_seconds > seconds

    def has_read(self) -> bool:
        """Whether a reading after the last `wake` is complete, or there is nothing to read."""
        return not self._thread.is_alive() or (
            not self._is_calling and self._read_seconds > self._wanted_seconds
        )

    def find_silence(self, start_seconds: float, interval_seconds: float) -> float | None:
        """Since when there is no reading, if that is longer than usual."""
        last_seconds = max(self._new_seconds, start_seconds)
        if self._is_calling and self.find_excess():
            return last_seconds
        # A slow driver may be asked, and answer as slowly as always.
        usual = _USUAL_GAPS * max(interval_seconds, self._longest_gap_seconds) + self.longest_call_seconds
        is_usual = self._new_seconds > start_seconds and time.monotonic() - last_seconds <= usual
        return None if is_usual else last_seconds

    def has_answered(self) -> bool:
        """Whether it has read its devices, or has none."""
        return self._read_seconds > 0 or not self._thread.is_alive()

    def wait_for_reading(self, deadline_seconds: float) -> None:
        """Until a reading after the last `wake` is complete, or the thread has ended, or the deadline has passed."""
        while not self.has_read():
            left = deadline_seconds - time.monotonic()
            if left <= 0:
                return
            self._has_read.clear()
            self._has_read.wait(min(left, 0.005))


class _AttributionCheck:
    """Checks now and then whether the job uses a device that does not list it.

    Its processes have the driver loaded and memory in use has grown, yet the device does not list them.
    """

    def __init__(self, source: GpuSource) -> None:
        self._source = source
        self._first_bytes: dict[str, int] = {}
        self._next_seconds = 0.0
        self._is_suspected = self._is_settled = self._is_said = self._had_driver = False
        self._unlisted: tuple[str, ...] = ()
        """The devices whose latest list is not believed."""

    def find_unsaid_reason(self) -> str | None:
        """Why lists are not believed in the end, unless that was said."""
        reasons = (self._source.reasons.get((uuid, "lists_processes")) for uuid in self._unlisted)
        return None if self._is_said else next(filter(None, reasons), None)

    def check(self, readings: GpuReadings, pids: frozenset[int]) -> str | None:
        """A sentence about it, once."""
        self._unlisted = tuple(
            device.uuid for device in readings.devices if not (device.lists_processes or device.has_lost_list)
        )
        has_grown = False
        for device in readings.devices:
            used = device.used_bytes or 0
            has_grown |= used > self._first_bytes.setdefault(device.uuid, used) + _NOTABLE_BYTES
        is_listed = any(process.used_bytes is not None for process in readings.processes)
        self._is_settled |= is_listed and (has_grown or self._is_suspected)
        if self._is_settled or not has_grown or readings.at_seconds < self._next_seconds:
            return None
        is_first_suspicion, self._is_suspected = not self._is_suspected, True
        from ..sources.gpu.evidence import has_driver_loaded

        self._had_driver |= any(has_driver_loaded(pid) for pid in sorted(pids)[:_MOST_PROCESSES_CHECKED])
        # A new process may be listed a moment later.
        self._next_seconds = readings.at_seconds + (
            _FIRST_CHECK_SECONDS if is_first_suspicion else _CHECK_SECONDS
        )
        if is_first_suspicion or not self._had_driver:
            return None
        self._is_settled = self._is_said = True
        return self.explain()

    def is_open(self) -> bool:
        """Whether memory has grown while the job had a driver loaded, and it was listed never since."""
        return self._is_suspected and self._had_driver and not self._is_settled

    def explain(self) -> str:
        """What is said of it."""
        from ..sources.gpu.evidence import why_not_listed

        return (
            "The job uses a GPU, but its GPU memory cannot be separated from other processes': "
            f"{why_not_listed(self._source.reasons)} "
            "The growth of the device's memory in use since the start is an estimate."
        )
