"""`Tracker`: start, stop, and the figures in between. One tracker makes one recording at a time."""

from __future__ import annotations

import enum
import os
import sys
import time
from _thread import RLock

from ..core.config import (
    RECORD_VARIABLE,
    Settings,
    check,
    check_gpu_uuids,
    check_join,
    check_labels,
    check_path,
    check_process_id,
    choose_gpu_vendors,
)
from ..core.errors import StateError, UsageError
from ..core.model import Known, RootFigures, subtract_counters
from ..core.notices import warn_once
from ..instrument.high_water import find_kept_bytes
from ..instrument.running import end_what_has_ended
from ..sampler.handle import process
from ..sampler.handle.wire import GPU_PATIENCE_SECONDS, Start
from ..sources.platform import find_counters, find_peak_bytes, read_own_peak_bytes, read_own_rss_bytes
from .regions import region
from .session import Session, Wishes, check_runs, is_in_notebook, other_process, resolve_gpus, this_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import Any, TypeVar

    from typing_extensions import Self

    from ..analysis.findings.finding import Finding
    from ..analysis.intervals import Interval
    from ..core.model import RecordingData
    from ..integrations.ipython import Panel
    from ..reports.build import Report
    from ..reports.choices import Choices
    from ..sinks import Sink
    from .feeding import Feed
    from .following import Monitor
    from .session import Target
    from .usage import ResourceUsage

    _Callback = TypeVar("_Callback", bound=Callable[[Any], object] | None)


_LARGEST_PID = 2**31 - 1
_PICTURE_SECONDS = 1.0
# What drawing it may cost, and asking the rules again, as shares of the time of a core.
_MOST_DRAWING = _MOST_JUDGING = 0.01


class _State(enum.Enum):
    NEW = 0
    STARTED = 1
    STOPPED = 2


class Tracker:
    """Tracks what a process and all its descendants use, between `start()` and `stop()` or in a `with` block.

    The paper's parameters come first and mean what they mean there. Ours, by keyword only: `record` writes
    a recording to that file, or into that directory; `max_overhead` is the share of one core that
    measuring may cost; `full_resolution` writes a line for every reading; `gpu` says whose devices to read
    ("nvidia", "amd", "intel", "apple", several of them, or "none"). `gpu_uuids` takes UUIDs, their beginnings,
    numbers and names. `tracking_file` (.csv or .sqlite) gets a row per interval while tracking. `name` and
    `labels` are kept in the recording, to find the run again. `on_sample` is called with the newest `Interval`
    about `every` so many seconds (else every `sleep_time`), in a thread; if it raises, it is not called again.
    `on_finding` is called in the same way with each `Finding` that is a warning or worse, once, while the job runs.
    `live` draws the run in the output of the notebook's cell while it goes on. `sinks` are experiment trackers that get
    the figures while the job runs, about `every` so many seconds (else every second), such as `gpu_tracker.sinks.wandb(run)`.

    For programs written for gpu-tracker 5: `gpu_brand` ("nvidia" or "amd") is `gpu`, `overwrite` lets `tracking_file` replace
    a file, and `resource_usage_file` has no effect, since no temporary file is needed.
    """

    State = _State
    _gpu_patience_seconds = GPU_PATIENCE_SECONDS

    def __init__(
        self,
        sleep_time: float = 1.0,
        ram_unit: str = "gigabytes",
        gpu_ram_unit: str = "gigabytes",
        time_unit: str = "hours",
        n_expected_cores: int | None = None,
        gpu_uuids: Iterable[str] | None = None,
        disable_logs: bool = False,
        process_id: int | None = None,
        n_join_attempts: int = 5,
        join_timeout: float = 10.0,
        *,
        record: str | os.PathLike[str] | None = None,
        max_overhead: float = Settings().max_overhead,
        full_resolution: bool = False,
        gpu: str | Iterable[str] | None = None,
        tracking_file: str | os.PathLike[str] | None = None,
        name: str | None = None,
        labels: Mapping[str, object] | None = None,
        on_sample: Callable[[Interval], object] | None = None,
        on_finding: Callable[[Finding], object] | None = None,
        every: float | None = None,
        live: bool = False,
        sinks: Sink | Iterable[Sink] = (),
        gpu_brand: str | None = None,
        overwrite: bool = False,
        resource_usage_file: str | os.PathLike[str] | None = None,
    ) -> None:
        settings = check(
            Settings(
                sleep_time=sleep_time,
                ram_unit=ram_unit,
                gpu_ram_unit=gpu_ram_unit,
                time_unit=time_unit,
                n_expected_cores=n_expected_cores,
                gpu_uuids=check_gpu_uuids(gpu_uuids),
                disable_logs=disable_logs,
                max_overhead=max_overhead,
                full_resolution=full_resolution,
                gpu_vendors=choose_gpu_vendors(gpu, gpu_brand),
                name=None if name is None else str(name),
                labels=check_labels(labels),
            )
        )
        self._other_pid = None if process_id is None else _check_other(check_process_id(process_id))
        record = os.environ.get(RECORD_VARIABLE) or None if record is None else record
        self._record = None if record is None else os.path.abspath(check_path("record", record))
        self._may_replace = bool(overwrite)
        self.tracking_file = (
            None
            if tracking_file is None
            else _check_tracking_file(check_path("tracking_file", tracking_file), self._may_replace)
        )
        if resource_usage_file is not None:
            check_path("resource_usage_file", resource_usage_file)
        check_join(n_join_attempts, join_timeout)
        self._settings = resolve_gpus(settings)
        self._on_sample = _check_callback("on_sample", on_sample)
        self._on_finding = _check_callback("on_finding", on_finding)
        self._every_seconds = sleep_time if every is None else _check_every(every)
        self._feed_seconds = every
        self._is_live = live
        self._sinks = _check_sinks(sinks) if sinks else ()
        self._feeds: list[Feed] = []
        self._panel: Panel | None = None
        self._monitors: list[Monitor] = []
        self.n_join_attempts = n_join_attempts
        self.join_timeout = join_timeout
        self.state = Tracker.State.NEW
        self._session: Session | None = None
        self._before = RootFigures(0.0, 0.0)
        self._samplers_seconds = 0.0
        self._error_at_start = 0
        self._recording: RecordingData | None = None
        self._report: Report | None = None

    # ---- The paper's surface.

    def start(self) -> None:
        """Begin to track, in a process of its own."""
        if self.state is Tracker.State.STARTED:
            raise StateError("Cannot start tracking when tracking has already started.")
        end_what_has_ended()
        self._recording = self._report = None
        self._stopping = RLock()
        self._panel = self._open_panel() if self._is_live else None
        self._error_at_start = id(sys.exc_info()[1])
        wishes = Wishes(self._record, self.tracking_file, self._may_replace)
        self._session = session = Session(
            self._find_target(),
            self._settings,
            wishes,
            self._warn,
            gpu_patience_seconds=self._gpu_patience_seconds,
        )
        is_ours = self._other_pid is None
        pid = os.getpid() if self._other_pid is None else self._other_pid
        try:
            with process.without_child_signals():
                session.prepare()
                session.wait_until_ready()
            with process.reaping:
                self._samplers_seconds = process.reaped_cpu_seconds()
                self._before = _read_own_figures()
                own = (self._before[:2], read_own_rss_bytes()) if is_ours else (None, None)
                session.begin(Start(pid, time.monotonic_ns(), *own))
            self.state = Tracker.State.STARTED
        except BaseException:  # Ctrl-C, or what a signal handler raises
            session.close_mailbox()
            session.discard()
            raise
        self._monitors = list(self._start_monitors(session))
        self._feeds = list(self._start_feeds(session))

    def stop(self) -> None:
        """End the tracking; from now on the figures are final."""
        if not self._stop(sys.exc_info()[1]):
            raise StateError("Cannot stop tracking when tracking has already stopped.")

    def stop_failed(self, error: BaseException | None = None) -> None:
        """End the tracking of what an exception has ended, whichever, unless it is stopped already."""
        self._stop(error, "raised")

    def _stop(self, error: BaseException | None, reason: str | None = None) -> bool:
        """Whether it was still to be stopped. The reason is that of the error, if there is one."""
        session, at_nanoseconds, own_cpu_seconds = self._session, time.monotonic_ns(), time.process_time()
        if self.state is Tracker.State.NEW or session is None:
            raise StateError("Cannot stop tracking when tracking has not started yet.")
        if session.owner_pid != os.getpid():
            # A forked child left the block: the session is its parent's.
            was_running, self.state = self.state is Tracker.State.STARTED, Tracker.State.STOPPED
            return was_running
        callers: list[Monitor | Feed] = [*self._monitors, *self._feeds]
        is_called_back = any(caller.is_calling() for caller in callers)
        if not self._stopping.acquire(blocking=not is_called_back):
            return True  # somebody else is at it, and waits for the callback that wants the same
        try:
            if self.state is Tracker.State.STOPPED:
                return False
            reason = _name_reason(error, self._error_at_start) or reason
            self._end(session, error, reason, at_nanoseconds, own_cpu_seconds)
        finally:
            self._stopping.release()
        return True

    def _end(
        self,
        session: Session,
        error: BaseException | None,
        reason: str | None,
        at_nanoseconds: int,
        own_cpu_seconds: float,
    ) -> None:
        session.close_mailbox()
        known = self._find_known(at_nanoseconds)
        # What stopping costs is neither in the time nor in the CPU time.
        if known is not None and known.after is not None:
            known = known._replace(
                after=known.after._replace(own_cpu_seconds=own_cpu_seconds),
                exception=None if reason is None or error is None else _name_exception(type(error)),
                notes=_describe_engines(),
            )
        try:
            self._recording = session.stop(
                at_nanoseconds,
                known,
                reason=reason,
                attempts=self.n_join_attempts,
                timeout_seconds=self.join_timeout,
            )
        finally:  # only now: what waits for a callback must not be measured
            for monitor in self._monitors:
                monitor.close()
            for feed in self._feeds:
                feed.close()
        session.reap()
        self.state = Tracker.State.STOPPED
        try:
            self._tell_the_end(self._recording)
        except Exception as defect:  # noqa: BLE001 - of ours: the program goes on
            self._warn(
                f"A defect of gpu-tracker: the end is not told ({type(defect).__name__}: {defect}). "
                "What was recorded is complete."
            )

    def _tell_the_end(self, recording: RecordingData) -> None:
        for feed in self._feeds:
            feed.finish(recording)
        if self._panel is not None:
            self._panel.finish()
        for note in self.notes:
            self._warn(note)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        error = exception or sys.exc_info()[1]
        try:
            self._stop(error)
        except BaseException:  # what a signal handler raises: nobody else would stop it now
            if self.state is Tracker.State.STARTED:
                self._stop(error)
            raise

    @property
    def resource_usage(self) -> ResourceUsage | None:
        """The usage so far; after `stop()`, of the whole run. None before `start()`."""
        report = self._build_without_samples()
        if report is None:
            return None
        from ..reports.paper import build_usage

        return build_usage(report, self._settings)

    def to_json(self) -> dict[str, Any]:
        """The same as a dictionary that JSON can hold."""
        from ..reports.paper import to_plain

        return to_plain(self._need_usage())

    def __str__(self) -> str:
        from ..reports.paper import to_text

        return to_text(self._need_usage())

    def __repr__(self) -> str:
        return f"State: {self.state.name}"

    def _repr_html_(self) -> str | None:
        """In a notebook: the run so far, or as it was."""
        report = self._read_report() if self.state is Tracker.State.STARTED else self.report
        return None if report is None else report._repr_html_()

    # ---- Ours.

    @property
    def report(self) -> Report | None:
        """The full report, beyond the paper's result classes. After `stop()` it has the samples, for charts."""
        if self._recording is None or self._session is None:
            return self._build_without_samples()
        if self._report is None:
            from .reporting import report_session

            # Whoever reads a notebook looks at short cells, too.
            self._report = report_session(
                self._session,
                self._recording,
                self._find_choices(),
                is_short_too=is_in_notebook(),
            )
            self._report = self._report._replace(notes=(*self._report.notes, *self._feed_notes))
        return self._report

    @property
    def recording_path(self) -> str | None:
        """The file that is being written, or was."""
        return None if self._session is None else self._session.recording_path

    def region(self, name: str, *, exact_peak: bool = False, parallel: bool = False) -> region:
        """A named part of what is tracked: a `with` block or a decorator."""
        return region(name, exact_peak=exact_peak, parallel=parallel)

    def samples(self) -> Iterator[Interval]:
        """What is used in each interval, each once, until `stop()`. For a thread of your own; see also `on_sample`."""
        session = self._session
        source = None if session is None else session.find_source()
        if source is None:
            return
        from .following import read_intervals

        yield from read_intervals(
            source,
            self._settings.sleep_time,
            lambda: self.state is Tracker.State.STARTED and self._session is session,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be measured or went wrong, one sentence each."""
        report = self._build_without_samples()
        return (*report.notes, *self._feed_notes) if report else ()

    # ---- Inside.

    def _start_monitors(self, session: Session) -> Iterator[Monitor]:
        listeners = (self._on_sample, self._on_finding, self._panel)
        source = None if all(one is None for one in listeners) else session.find_source()
        if source is None:
            return
        from .following import Monitor, tell_findings, tell_intervals, tell_reports

        if self._on_sample is not None:
            tell = tell_intervals(source, self._on_sample)
            yield Monitor("`on_sample` is not called", tell, self._every_seconds, self._warn)
        if self._on_finding is not None:
            tell = tell_findings(source, self._on_finding, self._find_choices())
            yield Monitor(
                "`on_finding` is not called", tell, self._every_seconds, self._warn, most_share=_MOST_JUDGING
            )
        if self._panel is not None:
            tell = tell_reports(source, self._panel.show, self._find_choices())
            yield Monitor(
                "The picture is not drawn", tell, _PICTURE_SECONDS, self._warn, most_share=_MOST_DRAWING
            )

    def _start_feeds(self, session: Session) -> Iterator[Feed]:
        source = session.find_source() if self._sinks else None
        if source is None:
            return
        from .feeding import Feed

        for sink in self._sinks:
            yield Feed(sink, source, self._feed_seconds)

    @property
    def _feed_notes(self) -> list[str]:
        return [note for feed in self._feeds for note in feed.notes]

    def _open_panel(self) -> Panel | None:
        """In a notebook only; nothing that goes wrong there is the job's."""
        try:
            from ..integrations.ipython import open_panel

            return open_panel(self)
        except Exception as error:  # noqa: BLE001 - IPython's or the front end's
            self._warn(f"live: nothing is drawn: {type(error).__name__}: {error}.")
            return None

    def _find_choices(self) -> Choices:
        from ..reports.choices import Choices
        from .reporting import find_changes

        return Choices(find_changes(self._warn))

    def _read_report(self) -> Report | None:
        """The report so far, with its samples."""
        source = None if self._session is None else self._session.find_source()
        if source is None:
            return None
        from .following import ReportReader

        return ReportReader(source, self._find_choices()).look()

    def _build_without_samples(self) -> Report | None:
        """Cheap enough to be asked for again and again while the job runs."""
        recording = self._recording
        if self.state is Tracker.State.STARTED and self._session is not None:
            recording = self._session.read_so_far(self._find_known)
        if recording is None:
            return None
        from ..reports.build import build

        return build(recording)

    def _find_known(self, at_nanoseconds: int) -> Known | None:
        """What this process knows about itself."""
        if self._other_pid is not None:
            return None
        with process.reaping:
            samplers = process.reaped_cpu_seconds() - self._samplers_seconds
            after = _read_final_figures(self._before, samplers)
        return Known(at_nanoseconds, self._before, after)

    def _find_target(self) -> Target:
        return this_process() if self._other_pid is None else other_process(self._other_pid)

    def _warn(self, text: str) -> None:
        if not self._settings.disable_logs:
            warn_once(text)

    def _need_usage(self) -> ResourceUsage:
        usage = self.resource_usage
        if usage is None:
            raise StateError("Cannot display the tracker in string or JSON format before tracking starts.")
        return usage


def _read_own_figures() -> RootFigures:
    """This process's own counters, finer than they can be read from outside."""
    if sys.platform == "win32":
        return RootFigures(
            time.process_time(),
            0.0,  # the sampler adds up what it has seen of children
            own_peak_bytes=read_own_peak_bytes(),
        )
    import resource

    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return RootFigures(
        time.process_time(),
        children.ru_utime + children.ru_stime,
        largest_peak_bytes=find_peak_bytes(children),
        may_be_a_childs=True,
        own_peak_bytes=max(read_own_peak_bytes(), find_kept_bytes()),
        counters=find_counters(own, children),
    )


def _read_final_figures(before: RootFigures, samplers_seconds: float) -> RootFigures:
    """The same at the end, without other trackers' samplers and old peaks."""
    after = _read_own_figures()
    # A child starts with the high-water mark of whoever spawned it, so only what is above our own, also
    # before we reset it, and has grown since the start, is a child's.
    floor = max(after.own_peak_bytes or 0, before.largest_peak_bytes or 0)
    largest, own = after.largest_peak_bytes or 0, after.own_peak_bytes or 0
    return after._replace(
        reaped_cpu_seconds=after.reaped_cpu_seconds - samplers_seconds,
        largest_peak_bytes=largest if largest > floor else None,
        risen_peak_bytes=own if own > (before.own_peak_bytes or 0) else None,
        counters=subtract_counters(after.counters, before.counters),
    )


def _name_reason(error: BaseException | None, error_at_start: int) -> str | None:
    """Why the tracked part has ended, if an exception ended it; one from before the start did not, nor one that means an end."""
    if error is None or id(error) == error_at_start or isinstance(error, GeneratorExit):
        return None
    if isinstance(error, SystemExit) and not error.code:
        return None
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "raised"


def _name_exception(kind: type[BaseException]) -> str:
    """Its class, and that it is for lack of memory if only a base class says so."""
    names = [base.__name__ for base in kind.__mro__]
    memory = next((name for name in names if name.endswith("MemoryError")), names[0])
    return names[0] if memory == names[0] else f"{names[0]}, derived from {memory}"


def _describe_engines() -> tuple[str, ...]:
    """Which have done work that was not measured."""
    from ..instrument.engines import find_engines

    engines = find_engines(sys.modules)
    if not engines:
        return ()
    from ..analysis.elsewhere import describe_engine

    return tuple(map(describe_engine, engines))


def _check_other(pid: int) -> int:
    if pid > _LARGEST_PID:
        raise UsageError(f"{pid} is not a valid process ID: it is too large.")
    return check_runs(pid)


def _check_every(seconds: float) -> float:
    from .following import check_every

    return check_every(seconds)


def _check_callback(option: str, callback: _Callback) -> _Callback:
    if callback is not None:
        from .following import check_callback

        check_callback(option, callback)
    return callback


def _check_sinks(sinks: Sink | Iterable[Sink]) -> tuple[Sink, ...]:
    from .feeding import check_sinks

    return check_sinks(sinks)


def _check_tracking_file(path: str, may_replace: bool) -> str:
    from ..recording.tracking_file import check_tracking_path

    return check_tracking_path(path, may_replace=may_replace)
