"""One tracked tree, from the first reading to the end line: when to read what, and when to write.

Cheap reads are frequent, expensive ones happen when the budget allows, and lines are rare to keep the file small.
"""

from __future__ import annotations

import errno
import math
import os
import time

from ..accounts.processes import Account
from ..accounts.sharing import choose_examples, hold_the_same, is_settled, is_torn
from ..core.model import (
    EARLIER,
    NO_PROCESS,
    OOM_GROUP,
    OOM_LIMIT,
    SIGNAL,
    UNMETERED,
    UNREAD,
    UNREAPED,
    UNSEEN_END,
    UNWRITTEN,
    End,
    Event,
    RecordingData,
    RegionGaps,
    RootFigures,
    list_gpus,
)
from ..instrument.mailbox import has_word, is_attached
from ..recording.writer import Writer
from ..sources.platform import read_own_peak_bytes
from ..sources.processes import ignores_children
from .budget import Budget, describe_cost_of_metrics, describe_thinning, estimate_sharing_cost
from .clock import Deadlines
from .header import make_header
from .pace import Pace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.model import ProcessReading, ProcessTotals, Sample
    from ..recording.tracking_file import TrackingFile
    from ..sources import ActivitySource, ProcessTreeSource
    from .handle.wire import Start
    from .instruments import Instruments
    from .prepare import Prepared

_SAMPLES_GROWTH_BYTES = 2e6
_FIRST_CREDIT_SECONDS = 0.05
_SPLIT_SHARE = 0.1
_UNSETTLED_PRICE = 2
_MOST_PROCESSES_WRITTEN = 2000
# Living processes are for those who watch a running job, and are left of one that is killed.
_MOST_LIVING_WRITTEN = 8
_LIVING_SECONDS = 5.0
_LIVING_GROWTH_BYTES = 1e5
# From two intervals on a reading is missing. A short gap is an ordinary delay, or somebody has stopped us for a moment: many are told together.
_GAP_SECONDS = 0.5
_GAP_INTERVALS = 2
_LONG_GAP_SECONDS = 2.0
_LONG_GAP_INTERVALS = 5
_NOTABLE_GAPS = 0.01
_GROUPS_SECONDS = 1.0
_COST_MEMORY = 0.9
_SLOWED_DOWN = 1.5
# Many jobs are short: the first intervals are short, too, as long as reading is cheap.
_FIRST_INTERVAL_SECONDS = 0.01
_EARLY_GROWTH = 0.25
_EARLY_COST_SECONDS = 0.02
# What processes do besides computing is dearer to read, and changes less.
_ACTIVITY_SECONDS = 1.0
_MOST_PARENTS_LOOKED_AT = 8
_MOST_SIGNALS = 16
# A whole job is seldom met at its very first instant.
_NOTABLE_EARLIER_CPU_SECONDS = 0.1
_NOTABLE_EARLIER_SECONDS = 10.0
_UNREADABLE = (
    "This user may not read the process, so that nothing is known of what it uses: track it as the user that runs it, or as "
    "administrator."
)


class Sampler:
    """Reads a tree, keeps its account, writes its recording."""

    def __init__(self, prepared: Prepared, start: Start, hear_discounts: Callable[[], float] = float) -> None:
        """The job has begun: take the first reading. `hear_discounts` returns what `discount` has not been given yet."""
        self._prepared = prepared
        self._hear_discounts = hear_discounts
        plan = self._plan = prepared.plan
        self._writer = Writer(prepared.recording_fd)
        self._machine = prepared.machine
        self._gpus = prepared.gpus
        self.events: list[Event] = []
        self._unwritten_events: list[Event] = []
        self._is_header_written = False
        self._has_write_failed = False
        self._has_slowed_down = False
        self._asked_seconds = prepared.interval_seconds
        self._reading_cost_seconds = 0.0
        self._early_cost_seconds = 0.0
        self._apart_cost_seconds = 0.0
        self._line_seconds = 0.0
        self._pace = Pace(_SAMPLES_GROWTH_BYTES)
        self.instruments: Instruments | None = None
        """None until a process of the job writes to the mailbox."""
        self._activity: ActivitySource | None = None
        """None until the job has lasted for a second."""
        self._activity_due_seconds = _ACTIVITY_SECONDS
        self._n_processes_written = 0
        self._living_pace = Pace(_LIVING_GROWTH_BYTES)
        self._living_due_seconds = _LIVING_SECONDS
        self._has_tracking_failed = self._has_unreaped = False
        self._have_gpus_answered = False
        self._readings: tuple[ProcessReading, ...] = ()
        self._read_seconds = 0.0
        self._short_gaps_seconds = 0.0
        self._is_memory_settled = False
        self._has_paused = False
        """Nothing of a whole job runs: it has ended, or is between two steps."""
        self._groups_due_seconds = 0.0
        self._readings_of_groups: tuple[ProcessReading, ...] | None = None
        self._reset_high_waters: dict[int, int] = {}
        self._examples_due_seconds = 0.0
        self._readings_with_sharing: tuple[ProcessReading, ...] | None = None
        self._start_seconds = start.at_nanoseconds / 1e9
        self._earlier_seconds = 0.0
        """For how long a whole job had run here before."""
        adopter_pid = plan.owner_pid if plan.starts_the_job else 0
        self._tree = self._open_tree(start, adopter_pid)
        before = start.root_cpu_seconds and RootFigures(*start.root_cpu_seconds)
        self._account = Account(start.root_pid, before, self._machine.read(), adopter_pid)
        self.deadlines = Deadlines(self._start_seconds, min(self._asked_seconds, _FIRST_INTERVAL_SECONDS))
        self._read_tree(0.0)
        self._note_unreadable()
        if start.root_rss_bytes is not None:
            self._account.take_root_at_start(start.root_rss_bytes)
        self._read_energy(0.0)
        self._budget = Budget(plan.max_overhead, 0.0, _FIRST_CREDIT_SECONDS)
        self.header = make_header(
            plan, start, prepared.allocation, prepared.source.NAME, prepared.environment
        )
        self._tracking = self._open_tracking_file()
        self._gpus.begin(self._start_seconds)
        self._gpus.pids = self._account.pids
        self._take_gpus()
        if prepared.energy is None:
            self._say(0.0, prepared.energy_reason, UNMETERED)
        if plan.job is not None:
            self._note_what_ran_before()  # trackers in its processes record their regions
        elif plan.mailbox is None:
            self._say(0.0, "Regions and metrics cannot be followed: no directory for them could be created.")
        elif not plan.has_our_environment:
            self._look_for_other_trackers(start.root_pid)
        # From here on a kill leaves a readable recording.
        self._write_line(0.0)
        if not plan.starts_the_job:  # it has done something before
            self._read_activity(0.0)

    def _open_tree(self, start: Start, adopter_pid: int) -> ProcessTreeSource:
        if self._plan.job is not None:
            from ..sources.job_processes import JobProcesses

            tree = JobProcesses(
                self._plan.job, outsiders=start.outsiders, started_seconds=self._start_seconds
            )
            self._earlier_seconds = tree.find_earlier_seconds()
            return tree
        tree_of_root: ProcessTreeSource = self._prepared.source.ProcessTree(
            start.root_pid,
            is_newborn=self._plan.starts_the_job,
            adopter_pid=adopter_pid,
            outsiders=start.outsiders,
            started_seconds=self._start_seconds,
        )
        return tree_of_root

    def _note_what_ran_before(self) -> None:
        """What processes of a job used before we came is not in its figures, nor what those used that had ended."""
        earlier = sum(
            reading.cpu_seconds + reading.reaped_cpu_seconds
            for reading in self._readings
            if reading.was_running_at_start
        )
        if earlier >= _NOTABLE_EARLIER_CPU_SECONDS or self._earlier_seconds >= _NOTABLE_EARLIER_SECONDS:
            text = (
                f"The job had run here for {self._earlier_seconds:.1f} s before its tracker began: the {earlier:.2f} s of CPU time that its "
                "processes had used by then, and all of those that had ended, is not in the figures."
            )
            self._say(0.0, text, EARLIER)

    def _note_unreadable(self) -> None:
        """Of a process that was there before; one that we start may come a moment later."""
        plan = self._plan
        if not self._readings and not plan.starts_the_job and plan.job is None and self._tree.is_alive():
            self._say(0.0, _UNREADABLE)

    def _look_for_other_trackers(self, root_pid: int) -> None:
        """A process reports its regions to one tracker: to that which it runs under, if there is one."""
        from ..instrument.search import Search

        if any(not is_attached(mailbox) for mailbox in Search().find(root_pid)):
            self._say(
                0.0, "Regions and metrics of this process are recorded by the tracker that it runs under."
            )

    def is_root_alive(self) -> bool:
        """Whether the root still runs."""
        return self._tree.is_alive()

    def find_pause(self) -> float | None:
        """Since when nothing of a whole job has run; None if something does, and of a single process."""
        return self._tree.find_pause()

    def tick(self, now_seconds: float) -> None:
        """Take a reading at a deadline, and write a line if it is due."""
        late = self.deadlines.strike(now_seconds)
        cost = time.process_time()
        self._apart_cost_seconds = 0.0
        self.read(now_seconds, late)
        if self._has_paused:
            return
        at = now_seconds - self._start_seconds
        line = max(self._plan.sleep_seconds, self._pace.interval_seconds(at))
        if self._plan.full_resolution or at - self._line_seconds >= line - self._slack():
            self._write_line(at)
        # Reading shared memory has its own budget, and metrics cost what the job logs: neither makes samples rarer.
        self._set_interval(at, time.process_time() - cost - self._apart_cost_seconds)

    def read(self, now_seconds: float, late_seconds: float = 0.0) -> None:
        """Read everything that is due."""
        at = now_seconds - self._start_seconds
        self._read_tree(at, late_seconds)
        if self._has_paused:
            return
        self._take_gpus()
        self._read_sharing_if_worth_it(at)
        self._note_open_regions()
        self._look_at_groups(at)
        if at >= self._activity_due_seconds - self._slack():
            self._read_activity(at)
            self._read_energy(at)
        if self._account.seconds_in_cpu_interval >= self._plan.sleep_seconds - self._slack():
            self._account.take_machine(self._machine.read())
            self._account.close_cpu_interval()

    def finish(
        self,
        at_seconds: float,
        figures: RootFigures | None,
        reason: str,
        exit_code: int | None,
        exception: str | None = None,
        notes: tuple[str, ...] = (),
    ) -> End:
        """The last reading, the last line, the end."""
        self._read_tree(at_seconds, 0.0, figures, is_last=True)
        self._note_lost_children(at_seconds)
        self._note_short_gaps(at_seconds)
        if not self._has_paused:
            self._read_meters(at_seconds)
        has_ended = not self.is_root_alive()
        silences = self._gpus.read_now()
        self._take_gpus(at_seconds if self._has_paused else math.inf)
        for vendor, text in silences:
            self._say(at_seconds, text)
            self._account.lose_gpus(vendor)
            if not self._account.has_read_gpus(vendor):
                self._say(at_seconds, vendor, UNREAD)
        self._account.finish_gpus(has_ended=has_ended)
        if self.instruments is not None:
            self.instruments.finish_gpus()
        for text in (
            *self._gpus.take_last_silences(),
            *self._account.list_gpu_gaps(),
        ):
            self._say(at_seconds, text)
        for kind, text in self._gpus.list_unattributed():
            self._say(at_seconds, text, kind)
        for kind, text in self._account.list_gpu_faults():
            self._say(at_seconds, text, kind)
        self._note_open_regions()
        is_short = self._account.seconds_in_cpu_interval < self._plan.sleep_seconds / 2
        self._account.close_cpu_interval(is_last=is_short)
        if figures is not None or not self.is_root_alive():
            self._account.finish(figures)
        if figures is None and has_ended and self._plan.job is None and not self._tree.has_seen_end:
            self._say(
                at_seconds,
                "The process was gone before it could be read a last time: the CPU time is a lower bound, without what it used after the last "
                "reading.",
                UNSEEN_END,
            )
        if self._prepared.limit is not None:
            self._account.cap_limit_held(self._prepared.limit.read_peak())
        if (limit := self._prepared.oom.find_reached()) is not None:
            self._say(
                at_seconds,
                "Out of memory: the kernel killed a process because the memory limit of "
                f"{limit.limit_bytes / 1e6:.0f} MB was reached.",
                "oom",
            )
            if self._prepared.limit is None or limit.limit_bytes != self._prepared.limit.limit_bytes:
                self._say(at_seconds, str(limit.limit_bytes), OOM_LIMIT)
            if (group := self._prepared.oom.find_group()) is not None:
                self._say(at_seconds, group, OOM_GROUP)
        if exception is not None:
            self._say(at_seconds, exception, "exception")
        for text in notes:
            self._say(at_seconds, text)
        if self._plan.mailbox is not None and not os.path.isdir(self._plan.mailbox):
            self._say(
                at_seconds,
                "The directory for regions and metrics was deleted while the job ran: what was not read by then is missing.",
            )
        if self._plan.recording_path and self._writer.is_deleted():
            self._say(at_seconds, "The recording was deleted while it was being written.")
        elif self._plan.recording_path and self._writer.is_cut():
            self._say(
                at_seconds,
                "The recording was truncated while it was being written: lines are missing. The totals are complete.",
                UNWRITTEN,
            )
        self._write_line(at_seconds)
        if self._tracking is not None:
            self._write_tracking(at_seconds, self._tracking, None)
        end = End(
            reason=reason,
            exit_code=exit_code,
            totals=self._account.totals(),
            tracker_cpu_seconds=time.process_time(),
            tracker_ram_bytes=read_own_peak_bytes(),
            gpu_growth_bytes=self._account.find_gpu_growth(),
        )
        if self._is_header_written:
            try:
                self._write_events()
                self._write_details(at_seconds, is_last=True)
                end = end._replace(
                    tracker_cpu_seconds=time.process_time(), tracker_ram_bytes=read_own_peak_bytes()
                )
                self._note_metrics(at_seconds)
                self._write_events()
                for process in self._account.list_processes():
                    self._write_process(process)
                self._writer.write_end(end)
            except OSError as error:
                self._note_write_failure(at_seconds, error, is_last=True)
        elif self.instruments is not None:
            self.instruments.keep_metrics(is_last=True)
        return end

    def discount(self, seconds: float) -> None:
        """Exclude CPU time of another tracker that the root has reaped."""
        self._account.discount(seconds)
        self._readings = ()  # so that the next reading counts even if nothing has run

    def note_signal(self, now_seconds: float, number: int) -> None:
        """Write it down at once: a scheduler that ends the job soon ends us with it. Of a storm, the first ones."""
        if sum(event.kind == SIGNAL for event in self.events) < _MOST_SIGNALS:
            self._say(max(0.0, now_seconds - self._start_seconds), str(number), SIGNAL)
            try:
                self._write_events()
            except OSError:
                pass  # the next line tries again

    def totals_now(self, now_seconds: float) -> End:
        """All totals up to now, as a provisional end."""
        self._read_tree(now_seconds - self._start_seconds)
        self._take_gpus()
        self._note_open_regions()
        self._account.take_machine(self._machine.read())
        return End("running", None, self._account.totals(), time.process_time(), 0)

    def describe(self, end: End) -> RecordingData:
        """Everything so far, without the samples."""
        instruments = self.instruments
        return RecordingData(
            header=self.header,
            samples=(),
            events=tuple(self.events),
            end=end,
            totals=end.totals,
            regions=tuple(instruments.list_regions()) if instruments else (),
            frameworks=tuple(instruments.list_frameworks()) if instruments else (),
            calls=tuple(instruments.list_calls()) if instruments else (),
            gaps=instruments.read_gaps() if instruments else RegionGaps(),
            peak_moments=self._account.moments.list_latest(),
            metric_totals=tuple(instruments.metric_totals.values()) if instruments else (),
        )

    def _read_tree(
        self,
        at_seconds: float,
        late_seconds: float = 0.0,
        exact: RootFigures | None = None,
        *,
        is_last: bool = False,
    ) -> None:
        self._note_gap(at_seconds)
        readings = self._tree.read()
        if not is_last and self._notice_pause(at_seconds):
            return
        # Only now: CPU time that was announced before it was reaped cannot be in the readings without being known here.
        discount = self._hear_discounts()
        if discount:
            self.discount(discount)
        reset_high_waters = self._read_mailbox()
        # A process that has not run is not read again, so an idle tree gives identical readings.
        if exact is None and readings == self._readings and reset_high_waters == self._reset_high_waters:
            self._is_memory_settled = True
            self._account.take_again(at_seconds, late_seconds)
        else:
            elapsed = at_seconds - self._read_seconds
            self._is_memory_settled = is_settled(self._readings, readings, elapsed)
            self._readings, self._reset_high_waters = readings, reset_high_waters
            self._account.take(at_seconds, readings, late_seconds, exact, reset_high_waters)
            if self._prepared.limit is not None:
                self._account.take_limit_held(self._prepared.limit.read_held())
            self._gpus.pids = self._account.pids
        self._read_seconds = at_seconds
        if self.instruments is not None:
            self.instruments.take(at_seconds, self._account.rss_bytes)
            if is_last:
                self._account.take_earlier_peaks(self.instruments.find_exact_peaks())

    def _notice_pause(self, at_seconds: float) -> bool:
        """Whether nothing runs that can be measured. Nothing more is taken then: what comes after the end is not the job's."""
        had_paused = self._has_paused
        self._has_paused = bool(self._readings) and self._tree.find_pause() is not None
        if self._has_paused:
            self._read_seconds = at_seconds  # nothing was missed
            if not had_paused:
                self._read_meters(at_seconds)
        return self._has_paused

    def _read_meters(self, at_seconds: float) -> None:
        """What counts for the whole machine, or for all that the job has done, once more before the end."""
        if self._activity is not None:
            self._read_activity(at_seconds)
        self._read_energy(at_seconds)
        self._account.take_machine(self._machine.read())

    def _read_activity(self, at_seconds: float) -> None:
        if self._activity is None:
            self._activity = self._prepared.source.open_activity(self._plan.example_pid)
        activity: ActivitySource = self._activity
        self._account.take_activity(activity.read(self._readings), activity.read_stalls())
        self._activity_due_seconds = at_seconds + max(_ACTIVITY_SECONDS, self.deadlines.interval_seconds)

    def _read_energy(self, at_seconds: float) -> None:
        """The meters of the whole machine."""
        if self._prepared.energy is not None:
            self._account.take_energy(at_seconds, self._prepared.energy.read())

    def _note_open_regions(self) -> None:
        """They were open at the peaks of this reading."""
        moments = self._account.moments
        if moments.has_new():
            began_seconds = self._start_seconds + self._read_seconds
            instruments = self.instruments
            moments.add_regions(
                instruments.list_open(began_seconds, self._account.pids) if instruments else ()
            )

    def _note_gap(self, at_seconds: float) -> None:
        """Count the time in which nothing was read though it was due: somebody stopped us, or the machine was too busy."""
        usual, gap = self.deadlines.interval_seconds, at_seconds - self._read_seconds
        if gap <= max(_GAP_SECONDS, _GAP_INTERVALS * usual):
            return
        self._account.unread_seconds += gap
        if gap > max(_LONG_GAP_SECONDS, _LONG_GAP_INTERVALS * usual):
            self._say(
                at_seconds,
                f"Nothing was measured from {self._read_seconds:.3g} s to {at_seconds:.3g} s: the sampler did not run.",
            )
        else:
            self._short_gaps_seconds += gap

    def _note_short_gaps(self, at_seconds: float) -> None:
        if self._short_gaps_seconds > _NOTABLE_GAPS * at_seconds:
            self._say(
                at_seconds,
                f"Nothing was measured for {self._short_gaps_seconds:.3g} s in all: now and then the sampler did not run.",
            )

    def _read_mailbox(self) -> dict[int, int]:
        """The high-water marks that processes have kept; opens the mailbox at its first message."""
        mailbox = self._plan.mailbox
        if self.instruments is None and mailbox is not None and has_word(mailbox):
            from .instruments import Instruments

            self.instruments = Instruments(mailbox, self._start_seconds)
            for event in self.events:
                if event.gpu is not None:
                    self.instruments.add_gpu(event.gpu)
        return {} if self.instruments is None else self.instruments.find_new()

    def _take_gpus(self, until_seconds: float = math.inf) -> None:
        # Before the readings are taken: a later answer is not among them.
        self._have_gpus_answered = self._gpus.have_answered()
        for event in self._gpus.take_events():
            self.events.append(event)
            self._unwritten_events.append(event)
            if event.gpu is not None:
                self._account.add_gpu(event.gpu)
                if self.instruments is not None:
                    self.instruments.add_gpu(event.gpu)
        for readings in self._gpus.take_readings():
            if readings.at_seconds > until_seconds:
                continue
            moment = self._account.take_gpus(readings)
            for kind, uuid in self._account.take_gpu_estimates():
                self._say(readings.at_seconds, uuid, kind)
            for at_seconds, kind, text in self._account.take_gpu_faults(readings.faults):
                self._say(at_seconds, text, kind)
            if self.instruments is not None:
                self.instruments.take_gpus(readings, moment)

    def _read_sharing_if_worth_it(self, at_seconds: float) -> None:
        known = self._readings_with_sharing
        if known is not None and (known is self._readings or hold_the_same(known, self._readings)):
            self._readings_with_sharing = self._readings
            return
        in_doubt = self._account.is_sharing_in_doubt()
        if not in_doubt and not self._account.is_split_unknown():
            return
        resident = sum(reading.rss_bytes for reading in self._readings)
        cost = estimate_sharing_cost(len(self._readings), resident)
        if not in_doubt:
            # Separating private from shared memory is worth less than finding a peak: it must cost little.
            price = cost / _SPLIT_SHARE
        else:
            # What is read while memory changes is soon wrong: enough must be left to read it again afterwards.
            price = cost if self._is_memory_settled else cost * _UNSETTLED_PRICE
        chosen: Sequence[ProcessReading] = self._readings
        if not self._budget.allows(at_seconds, price):
            chosen = self._choose_examples(at_seconds) if in_doubt else ()
        if chosen:
            self._read_sharing(chosen)

    def _choose_examples(self, at_seconds: float) -> Sequence[ProcessReading]:
        """A few of many processes, if they can be paid; half of what is earned is saved for reading all."""
        chosen = choose_examples(self._readings, self._tree.root_pid)
        cost = estimate_sharing_cost(len(chosen), sum(reading.rss_bytes for reading in chosen))
        if at_seconds < self._examples_due_seconds or not self._budget.allows(at_seconds, cost):
            return ()
        self._examples_due_seconds = at_seconds + 2 * cost / self._plan.max_overhead
        return chosen

    def _read_sharing(self, chosen: Sequence[ProcessReading]) -> None:
        spent = time.process_time()
        sharings = {}
        for reading in chosen:
            sharing = self._tree.read_sharing(reading.pid)
            if sharing is not None:
                sharings[reading.pid] = sharing
        has_root = self._tree.root_pid in (NO_PROCESS, *sharings)
        is_whole = len(sharings) == len(chosen) and has_root
        if is_whole and not is_torn(chosen, self._tree.read(), sharings):
            self._account.take_sharing(self._readings, sharings)
            self._readings_with_sharing = self._readings
        spent = time.process_time() - spent
        self._apart_cost_seconds += spent
        self._budget.spend(spent)

    def _look_at_groups(self, at_seconds: float) -> None:
        """The root may enter a group with a memory limit, and the largest process is who would be killed in it."""
        if at_seconds < self._groups_due_seconds:
            return
        if at_seconds > _GROUPS_SECONDS:
            self._groups_due_seconds = at_seconds + _GROUPS_SECONDS
        elif self._readings is self._readings_of_groups:
            return  # before that whenever something has run: many jobs are short
        self._readings_of_groups = self._readings
        largest = max(self._readings, key=lambda reading: reading.rss_bytes, default=None)
        for pid in {self._tree.root_pid, largest.pid if largest else self._tree.root_pid}:
            self._prepared.oom.look_at(pid)
        self._look_at_parents(at_seconds)

    def _look_at_parents(self, at_seconds: float) -> None:
        """One that ignores its children costs the account of what they used, of those too that no reading has met."""
        if self._has_unreaped:
            return
        names = {reading.pid: reading.name for reading in self._readings}
        parents = [reading.parent_pid for reading in self._readings if reading.parent_pid in names]
        others = names if self._tree.has_missed else ()
        for pid in list(dict.fromkeys((*parents, *others)))[:_MOST_PARENTS_LOOKED_AT]:
            if ignores_children(pid):
                self._has_unreaped = True
                text = (
                    f"Process {pid} ({names[pid]}) ignores SIGCHLD, so the kernel keeps no account of its children when they "
                    "end: CPU time and peak RAM are lower bounds."
                )
                self._say(at_seconds, text, UNREAPED)
                return

    def _note_lost_children(self, at_seconds: float) -> None:
        if self._account.has_lost_children and not self._has_unreaped:
            text = (
                "Processes of the job have ended for which nobody has waited, so the kernel keeps no account of them: CPU time and peak RAM "
                "are lower bounds."
            )
            self._say(at_seconds, text, UNREAPED)

    def _open_tracking_file(self) -> TrackingFile | None:
        """Imported only if needed, to keep the sampler's start fast."""
        if self._plan.tracking is None:
            return None
        from ..recording.tracking_file import TrackingFile
        from ..recording.tracking_rows import TrackingUnits

        path, units = self._plan.tracking
        try:
            return TrackingFile(path, self.header, TrackingUnits(*units))
        except OSError as error:
            self._say(0.0, f"The tracking file could not be written: {error.strerror}.", UNWRITTEN)
            return None

    def _write_line(self, at_seconds: float) -> None:
        try:
            if not self._is_header_written:
                self._writer.write_header(self.header)
                self._is_header_written = True
            self._write_events()
            self._write_details(at_seconds)
            sample = self._account.sample()
            if (
                sample.at_seconds < self._line_seconds
            ):  # the job has ended just before the reading that was written last
                sample = sample._replace(at_seconds=self._line_seconds)
            before_bytes = self._writer.written_bytes
            self._writer.write_sample(sample)
        except OSError as error:
            self._note_write_failure(at_seconds, error)
            return
        if self._tracking is not None:
            self._write_tracking(at_seconds, self._tracking, sample)
        self._account.start_interval()
        self._pace.note(at_seconds, self._writer.written_bytes - before_bytes)
        self._line_seconds = at_seconds

    def _write_events(self) -> None:
        while self._unwritten_events:
            self._writer.write_event(self._unwritten_events[0])
            del self._unwritten_events[0]

    def _write_details(self, at_seconds: float, *, is_last: bool = False) -> None:
        """Processes, and what they report; the last line of each counts."""
        for process in self._account.take_gone():
            self._write_process(process)
        if not is_last:
            self._write_living(at_seconds)
        for moment in self._account.moments.list_unwritten(is_last=is_last):
            self._writer.write_peak_moment(moment)
            self._account.moments.note_written(moment)
        if self.instruments is not None:
            self._apart_cost_seconds += self.instruments.write(
                self._writer, at_seconds, is_last=is_last, keep_all=self._plan.full_resolution
            )

    def _write_process(self, process: ProcessTotals) -> None:
        # A build may start a hundred thousand compilers; such a list is of no use.
        self._n_processes_written += 1
        if self._n_processes_written <= _MOST_PROCESSES_WRITTEN:
            self._writer.write_process(process)

    def _write_living(self, at_seconds: float) -> None:
        """The largest processes, now and then; each will have another line when it ends."""
        if at_seconds < self._living_due_seconds:
            return
        before_bytes = self._writer.written_bytes
        for process in self._account.list_largest(_MOST_LIVING_WRITTEN):
            self._writer.write_process(process)
        self._living_pace.note(at_seconds, self._writer.written_bytes - before_bytes)
        self._living_due_seconds = at_seconds + max(
            _LIVING_SECONDS, self._living_pace.interval_seconds(at_seconds)
        )

    def _write_tracking(self, at_seconds: float, file: TrackingFile, sample: Sample | None) -> None:
        """Write one more row, or without a sample the last ones."""
        gpus = list_gpus(self.events)
        try:
            if sample is None:
                file.close(gpus, are_all_known=self._have_gpus_answered)
            else:
                file.add(sample, gpus, are_all_known=self._have_gpus_answered)
        except OSError as error:
            if sample is None:
                text = f"The last rows of the tracking file are missing: {error.strerror}."
                self._say(at_seconds, text, UNWRITTEN)
            elif not self._has_tracking_failed:
                self._has_tracking_failed = True
                text = f"The tracking file could not be written for a while: {error.strerror}."
                self._say(at_seconds, text, UNWRITTEN)

    def _note_write_failure(self, at_seconds: float, error: OSError, *, is_last: bool = False) -> None:
        if self.instruments is not None:
            self.instruments.keep_metrics(is_last=is_last)
        if not self._has_write_failed:
            self._has_write_failed = True
            is_limited = error.errno == errno.EFBIG
            reason = "the file size limit (ulimit -f) is reached" if is_limited else error.strerror
            what = "the recording could not be written" if self._plan.recording_path else "no reading is kept"
            self._say(
                at_seconds, f"At {at_seconds:.3g} s {what}: {reason}. The totals are complete.", UNWRITTEN
            )

    def _say(self, at_seconds: float, text: str, kind: str = "note") -> None:
        event = Event(at_seconds, kind, text)
        self.events.append(event)
        self._unwritten_events.append(event)

    def _set_interval(self, at_seconds: float, cost_seconds: float) -> None:
        """Use short intervals at the beginning, and longer ones when a reading costs more than allowed."""
        early = _FIRST_INTERVAL_SECONDS + _EARLY_GROWTH * at_seconds
        self._early_cost_seconds += cost_seconds
        if early < self._asked_seconds and self._early_cost_seconds < _EARLY_COST_SECONDS:
            self.deadlines.interval_seconds = early
            return
        self._reading_cost_seconds = (
            _COST_MEMORY * self._reading_cost_seconds + (1 - _COST_MEMORY) * cost_seconds
        )
        interval = max(self._asked_seconds, self._reading_cost_seconds / self._plan.max_overhead)
        self.deadlines.interval_seconds = interval
        if interval > self._plan.sleep_seconds * _SLOWED_DOWN and not self._has_slowed_down:
            self._has_slowed_down = True
            self._say(
                self._line_seconds,
                f"Sampling every {interval:.3g} s instead of {self._plan.sleep_seconds:.3g} s, "
                f"to stay below {self._plan.max_overhead:.1%} of one core (max_overhead).",
            )

    def _note_metrics(self, at_seconds: float) -> None:
        """What the job logs is all read, so it may cost more than readings may; it is not all kept."""
        instruments, share = self.instruments, self._plan.max_overhead
        if instruments is not None:
            cost, n_rows = instruments.metrics_cost_seconds, instruments.n_metric_rows
            note = describe_cost_of_metrics(cost, n_rows, at_seconds, share)
            if note:
                self._say(at_seconds, note)
            if self._plan.recording_path and instruments.thinned_seconds is not None:
                self._say(at_seconds, describe_thinning(instruments.thinned_seconds))

    def _slack(self) -> float:
        return self.deadlines.interval_seconds / 2
