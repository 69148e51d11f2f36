"""One tracked tree, from the first look to the end line: when to read what, and when to write.

Cheap reads come often, dear ones when the budget allows, lines as seldom as keeps the file small.
"""

from __future__ import annotations

import os
import time
from importlib import import_module

from ..accounts.processes import Account
from ..accounts.sharing import is_torn
from ..core.model import End, Header, Mark, RootFigures
from ..instrument.mailbox import has_word
from ..recording.schema import VERSION
from ..sources import PROCESS_SOURCES
from ..sources.allocation import read_allocation, read_environment
from .budget import Budget, foresee_sharing_cost
from .clock import Deadlines
from .gpu_threads import GpuWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from ..core.model import Allocation, ProcessReading, ProcessTotals, Sample
    from ..recording.tracking_file import TrackingFile
    from ..recording.writer import Writer
    from ..sources import MachineSource, ProcessTreeSource
    from ..sources.allocation import MemoryLimit
    from .handle.wire import Plan, Start
    from .instruments import Inside

# Between two windows the tree is looked at this often, so that what comes and goes is met.
_LOOK_SECONDS = 0.25
_LINES_PER_RECORDING = 10_000
_FIRST_CREDIT_SECONDS = 0.05
_SPLIT_SHARE = 0.1
_MOST_PROCESSES_WRITTEN = 2000
_COST_MEMORY = 0.9
_SLOWED_DOWN = 1.5
# Many jobs are over in a moment: the first looks follow each other quickly, as long as they are cheap.
_FIRST_LOOK_SECONDS = 0.01
_EARLY_GROWTH = 0.25
_EARLY_COST_SECONDS = 0.02


class Sampler:
    """Looks at a tree, keeps its account, writes its recording."""

    def __init__(self, plan: Plan, tracker_version: str, writer: Writer) -> None:
        """Get ready: all that takes time, before the job may start."""
        self._plan = plan
        self._writer = writer
        self._tracker_version = tracker_version
        self._allocation, self._limit = read_allocation(plan.example_pid, os.environ)
        self._oom_kills_at_start = self._limit.count_oom_kills() if self._limit else 0
        self._source, self._machine = _connect(plan, self._limit)
        self.marks: list[Mark] = []
        self._unwritten_marks: list[Mark] = []
        self._is_header_written = False
        self._has_write_failed = False
        self._asked_seconds = min(plan.sleep_seconds, _LOOK_SECONDS)
        self._look_cost_seconds = 0.0
        self._early_cost_seconds = 0.0
        self._apart_cost_seconds = 0.0
        self._line_seconds = 0.0
        self._gpus = GpuWatch(
            self._asked_seconds,
            plan.max_overhead,
            plan.gpu_vendors,
            plan.gpu_uuids,
            os.environ if plan.has_our_environment else read_environment(plan.example_pid),
        )
        self.inside: Inside | None = None
        """As soon as a process of the job has something to tell."""
        self._n_processes_written = 0
        self._tracking: TrackingFile | None = None
        self._has_tracking_failed = False
        self._have_gpus_answered = False
        self._readings: tuple[ProcessReading, ...] = ()
        self._kept_marks: dict[int, int] = {}
        self._readings_with_sharing: tuple[ProcessReading, ...] | None = None

    def begin(self, start: Start) -> None:
        """The job is there: take the first look."""
        plan = self._plan
        self._start_seconds = start.at_nanoseconds / 1e9
        self._tree: ProcessTreeSource = self._source.ProcessTree(
            start.root_pid,
            is_newborn=plan.starts_the_job,
            adopter_pid=plan.owner_pid if plan.starts_the_job else 0,
            started_seconds=self._start_seconds,
        )
        self._account = Account(
            start.root_pid,
            RootFigures(*start.root_cpu_seconds) if start.root_cpu_seconds else None,
            self._machine.read(),
            plan.owner_pid if plan.starts_the_job else 0,
        )
        self._look(0.0)
        self.deadlines = Deadlines(self._start_seconds, min(self._asked_seconds, _FIRST_LOOK_SECONDS))
        self._budget = Budget(plan.max_overhead, 0.0, _FIRST_CREDIT_SECONDS)
        self.header = make_header(plan, start, self._tracker_version, self._allocation, self._source.NAME)
        if plan.tracking is not None:
            try:
                self._tracking = _open_tracking_file(plan.tracking, self.header)
            except OSError as error:
                self._say(0.0, f"The tracking file could not be written: {error.strerror}.")
        self._gpus.begin(self._start_seconds)
        self._gpus.pids = self._account.pids
        self._take_gpus()
        # From here on a kill at any moment leaves a file that can be read.
        self._write_line(0.0)

    def is_root_alive(self) -> bool:
        """Whether there is anything left to look at."""
        return self._tree.is_alive()

    def tick(self, now_seconds: float) -> None:
        """A deadline has come."""
        late = self.deadlines.strike(now_seconds)
        cost = time.process_time()
        self._apart_cost_seconds = 0.0
        self.look(now_seconds, late)
        at = now_seconds - self._start_seconds
        line = max(self._plan.sleep_seconds, at / _LINES_PER_RECORDING)
        if self._plan.full_resolution or at - self._line_seconds >= line - self._slack():
            self._write_line(at)
        # Reading what is shared has a purse of its own, and what a job logs is its own affair: no reason to look more rarely.
        self._set_interval(at, time.process_time() - cost - self._apart_cost_seconds)

    def look(self, now_seconds: float, late_seconds: float = 0.0) -> None:
        """Look at everything that is due."""
        at = now_seconds - self._start_seconds
        self._look(at, late_seconds)
        self._take_gpus()
        self._read_sharing_if_worth_it(at)
        if self._account.seconds_in_cpu_window >= self._plan.sleep_seconds - self._slack():
            self._account.take_machine(self._machine.read())
            self._account.close_cpu_window()

    def refresh(self, now_seconds: float) -> None:
        """Look at everything now, because somebody wants to know."""
        self._look(now_seconds - self._start_seconds)
        self._take_gpus()
        self._account.take_machine(self._machine.read())

    def finish(
        self, at_seconds: float, figures: RootFigures | None, reason: str, exit_code: int | None
    ) -> End:
        """The last look, the last line, the end."""
        self._look(at_seconds, 0.0, figures)
        self._gpus.look_now()
        self._take_gpus()
        self._account.take_machine(self._machine.read())
        is_short = self._account.seconds_in_cpu_window < self._plan.sleep_seconds / 2
        self._account.close_cpu_window(is_last=is_short)
        if figures is not None:
            self._account.finish(figures)
        if self._limit and self._limit.count_oom_kills() > self._oom_kills_at_start:
            self._say(
                at_seconds,
                "The kernel killed a process because the memory limit of "
                f"{self._limit.limit_bytes / 1e6:.0f} MB was reached.",
            )
        if self._plan.recording_path and self._writer.is_deleted():
            self._say(at_seconds, "The recording was deleted while it was being written.")
        self._write_line(at_seconds)
        if self._tracking is not None:
            self._write_tracking(at_seconds, self._tracking, None)
        end = End(
            reason,
            exit_code,
            self._account.totals(),
            time.process_time(),
            _read_own_peak_bytes(),
        )
        if self._is_header_written:
            try:
                self._write_marks()
                self._write_details(at_seconds, is_last=True)
                for process in self._account.list_processes():
                    self._write_process(process)
                self._writer.write_end(end)
            except OSError as error:
                self._note_write_failure(at_seconds, error)
        return end

    def discount(self, seconds: float) -> None:
        """The root has reaped that much CPU time that is another tracker's, not the job's."""
        self._account.discount(seconds)
        self._readings = ()  # so that the next look is taken in, also if nothing has run

    def totals_now(self, now_seconds: float) -> End:
        """Everything so far, in the form of an end that has not come yet."""
        self.refresh(now_seconds)
        return End("running", None, self._account.totals(), time.process_time(), 0)

    def _look(self, at_seconds: float, late_seconds: float = 0.0, exact: RootFigures | None = None) -> None:
        readings = self._tree.read()
        kept_marks = self._look_inside()
        # What has not run is not read again, so a quiet tree gives the very same readings.
        if exact is None and readings == self._readings and kept_marks == self._kept_marks:
            self._account.take_again(at_seconds, late_seconds)
        else:
            self._readings, self._kept_marks = readings, kept_marks
            self._account.take(at_seconds, readings, late_seconds, exact, kept_marks)
            self._gpus.pids = self._account.pids
        if self.inside is not None:
            self.inside.take(self._account.rss_bytes)

    def _look_inside(self) -> dict[int, int]:
        """What processes tell of themselves, if any does; the marks that they have kept."""
        place = self._plan.regions_place
        if self.inside is None and place is not None and has_word(place):
            from .instruments import Inside

            self.inside = Inside(place, self._start_seconds)
            for mark in self.marks:
                if mark.gpu is not None:
                    self.inside.add_gpu(mark.gpu)
        return {} if self.inside is None else self.inside.look()

    def _take_gpus(self) -> None:
        # Asked first: what is answered from now on is not taken in yet.
        self._have_gpus_answered = self._gpus.have_answered()
        for mark in self._gpus.take_marks():
            self.marks.append(mark)
            self._unwritten_marks.append(mark)
            if mark.gpu is not None:
                self._account.add_gpu(mark.gpu)
                if self.inside is not None:
                    self.inside.add_gpu(mark.gpu)
        for look in self._gpus.take_looks():
            moment = self._account.take_gpus(look)
            if self.inside is not None:
                self.inside.take_gpus(look, moment)

    def _read_sharing_if_worth_it(self, at_seconds: float) -> None:
        if self._readings == self._readings_with_sharing:
            return  # nobody has run since, so nobody shares more or less than then
        in_doubt = self._account.is_sharing_in_doubt()
        if not in_doubt and not self._account.is_split_unknown():
            return
        resident = sum(reading.rss_bytes for reading in self._readings)
        cost = foresee_sharing_cost(len(self._readings), resident)
        # Telling private from shared is worth less than finding a peak: it must cost little.
        price = cost if in_doubt else cost / _SPLIT_SHARE
        if not self._budget.allows(at_seconds, price):
            return
        spent = time.process_time()
        sharings = {}
        for reading in self._readings:
            sharing = self._tree.read_sharing(reading.pid)
            if sharing is not None:
                sharings[reading.pid] = sharing
        is_whole = len(sharings) == len(self._readings) and self._tree.root_pid in sharings
        if is_whole and not is_torn(self._readings, self._tree.read(), sharings):
            self._account.take_sharing(self._readings, sharings)
            self._readings_with_sharing = self._readings
        spent = time.process_time() - spent
        self._apart_cost_seconds += spent
        self._budget.spend(spent)

    def _write_line(self, at_seconds: float) -> None:
        try:
            if not self._is_header_written:
                self._writer.write_header(self.header)
                self._is_header_written = True
            self._write_marks()
            self._write_details(at_seconds)
            sample = self._account.sample()
            self._writer.write_sample(sample)
        except OSError as error:
            self._note_write_failure(at_seconds, error)
            return
        if self._tracking is not None:
            self._write_tracking(at_seconds, self._tracking, sample)
        self._account.start_window()
        self._line_seconds = at_seconds

    def _write_marks(self) -> None:
        while self._unwritten_marks:
            self._writer.write_mark(self._unwritten_marks[0])
            del self._unwritten_marks[0]

    def _write_details(self, at_seconds: float, *, is_last: bool = False) -> None:
        """Processes as they go, and what they tell of themselves: the last line of each counts."""
        for process in self._account.take_gone():
            self._write_process(process)
        if self.inside is not None:
            self._apart_cost_seconds += self.inside.write(self._writer, at_seconds, is_last=is_last)

    def _write_process(self, process: ProcessTotals) -> None:
        # A build that starts a hundred thousand compilers is not a list that anybody reads.
        self._n_processes_written += 1
        if self._n_processes_written <= _MOST_PROCESSES_WRITTEN:
            self._writer.write_process(process)

    def _write_tracking(self, at_seconds: float, file: TrackingFile, sample: Sample | None) -> None:
        """One row more, or without a sample the last ones."""
        gpus = [mark.gpu for mark in self.marks if mark.gpu is not None]
        try:
            if sample is None:
                file.close(gpus, are_all_known=self._have_gpus_answered)
            else:
                file.add(sample, gpus, are_all_known=self._have_gpus_answered)
        except OSError as error:
            if sample is None:
                self._say(at_seconds, f"The tracking file lacks its last rows: {error.strerror}.")
            elif not self._has_tracking_failed:
                self._has_tracking_failed = True
                self._say(
                    at_seconds, f"The tracking file could not be written for a while: {error.strerror}."
                )

    def _note_write_failure(self, at_seconds: float, error: OSError) -> None:
        if not self._has_write_failed:
            self._has_write_failed = True
            self._say(
                at_seconds,
                f"The recording could not be written for a while: {error.strerror}. "
                "The totals are complete all the same.",
            )

    def _say(self, at_seconds: float, text: str) -> None:
        mark = Mark(at_seconds, "note", text)
        self.marks.append(mark)
        self._unwritten_marks.append(mark)

    def _set_interval(self, at_seconds: float, cost_seconds: float) -> None:
        """Look more often at the beginning, and less often when looking costs more than it may."""
        early = _FIRST_LOOK_SECONDS + _EARLY_GROWTH * at_seconds
        self._early_cost_seconds += cost_seconds
        if early < self._asked_seconds and self._early_cost_seconds < _EARLY_COST_SECONDS:
            self.deadlines.interval_seconds = early
            return
        self._look_cost_seconds = _COST_MEMORY * self._look_cost_seconds + (1 - _COST_MEMORY) * cost_seconds
        interval = max(self._asked_seconds, self._look_cost_seconds / self._plan.max_overhead)
        was_slow = self.deadlines.interval_seconds > self._asked_seconds * _SLOWED_DOWN
        self.deadlines.interval_seconds = interval
        if interval > self._plan.sleep_seconds * _SLOWED_DOWN and not was_slow:
            self._say(
                self._line_seconds,
                f"Looking every {interval:.3g} s instead of {self._plan.sleep_seconds:.3g} s, "
                f"to stay below {self._plan.max_overhead:.1%} of one core (max_overhead).",
            )

    def _slack(self) -> float:
        return self.deadlines.interval_seconds / 2


def make_header(
    plan: Plan, start: Start, tracker_version: str, allocation: Allocation, source: str
) -> Header:
    """All that is known before anything has been measured."""
    return Header(
        VERSION,
        tracker_version,
        plan.command,
        start.root_pid,
        os.uname().nodename,
        time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        plan.sleep_seconds,
        allocation,
        source,
        plan.n_expected_cores or allocation.cores,
        plan.gpu_uuids,
    )


def _connect(plan: Plan, limit: MemoryLimit | None) -> tuple[ModuleType, MachineSource]:
    """The first process source that works here, tried on ourselves."""
    for name in (plan.source,) if plan.source else PROCESS_SOURCES:
        module = import_module(f"..sources.{name}", __package__)
        try:
            machine: MachineSource = module.Machine(limit.read_used if limit else None)
            machine.read()
            tree: ProcessTreeSource = module.ProcessTree(os.getpid(), is_newborn=True)
            is_readable = len(tree.read()) == 1
            tree.close()
        except (OSError, ValueError, IndexError):
            continue
        if is_readable:
            return module, machine
    raise OSError(f"no process source works on this {os.uname().sysname}")


def _open_tracking_file(wish: tuple[str, tuple[str, str, str]], header: Header) -> TrackingFile:
    """Imported only if asked for: a sampler starts in no time."""
    from ..recording.tracking_file import TrackingFile
    from ..recording.tracking_rows import TrackingUnits

    path, units = wish
    return TrackingFile(path, header, TrackingUnits(*units))


def _read_own_peak_bytes() -> int:
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
