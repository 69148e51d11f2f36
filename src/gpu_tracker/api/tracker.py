"""`Tracker`: start, stop, and the figures in between. One tracker makes one recording at a time."""

from __future__ import annotations

import enum
import os
import sys
import time

from ..core.config import (
    Settings,
    check,
    check_gpu_uuids,
    check_gpu_vendors,
    check_labels,
    check_path,
    check_process_id,
)
from ..core.errors import StateError, UsageError
from ..core.model import Known, RootFigures, subtract_counters
from ..core.notices import warn_once
from ..instrument.high_water import find_kept_bytes
from ..sampler.handle import process
from ..sampler.handle.wire import Start
from ..sources.platform import find_counters, find_peak_bytes, read_own_peak_bytes
from ..sources.processes import exists
from .regions import region
from .session import Session, Wishes, other_process, resolve_gpus, this_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType
    from typing import Any

    from typing_extensions import Self

    from ..core.model import RecordingData
    from ..reports.build import Report
    from .session import Target
    from .usage import (
        ComputeTime as ComputeTime,
        CPUUtilization as CPUUtilization,
        GPUUtilization as GPUUtilization,
        MaxGPURAM as MaxGPURAM,
        MaxRAM as MaxRAM,
        ProcessingUnitPercentages as ProcessingUnitPercentages,
        ResourceUsage as ResourceUsage,
        RSSValues as RSSValues,
    )


_LARGEST_PID = 2**31 - 1


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
    `labels` are kept in the recording, to find the run again.
    """

    State = _State

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
                gpu_vendors=check_gpu_vendors(gpu),
                name=None if name is None else str(name),
                labels=check_labels(labels),
            )
        )
        self._other_pid = None if process_id is None else _check_exists(check_process_id(process_id))
        self._record = None if record is None else os.path.abspath(check_path("record", record))
        self.tracking_file = (
            None
            if tracking_file is None
            else _check_tracking_file(check_path("tracking_file", tracking_file))
        )
        self._settings = resolve_gpus(settings)
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
        self._recording = self._report = None
        self._error_at_start = id(sys.exc_info()[1])
        wishes = Wishes(self._record, tracking_file=self.tracking_file)
        self._session = session = Session(self._find_target(), self._settings, wishes, self._warn)
        with process.without_child_signals():
            session.prepare()
            session.wait_until_ready()
        is_ours = self._other_pid is None
        pid = os.getpid() if self._other_pid is None else self._other_pid
        with process.reaping:
            self._samplers_seconds = process.reaped_cpu_seconds()
            self._before = _read_own_figures()
            session.begin(Start(pid, time.monotonic_ns(), self._before[:2] if is_ours else None))
        self.state = Tracker.State.STARTED

    def stop(self) -> None:
        """End the tracking; from now on the figures are final."""
        if self.state is Tracker.State.NEW or self._session is None:
            raise StateError("Cannot stop tracking when tracking has not started yet.")
        if self.state is Tracker.State.STOPPED:
            raise StateError("Cannot stop tracking when tracking has already stopped.")
        at_nanoseconds, own_cpu_seconds = time.monotonic_ns(), time.process_time()
        if self._session.owner_pid != os.getpid():
            # A forked child left the block: the session is its parent's.
            self.state = Tracker.State.STOPPED
            return
        self._session.close_mailbox()
        known = self._find_known(at_nanoseconds)
        error = sys.exc_info()[1]
        reason = _name_reason(error, self._error_at_start)
        if known is not None:  # what stopping costs is neither in the time nor in the CPU time
            known = known._replace(
                after=known.after._replace(own_cpu_seconds=own_cpu_seconds),
                exception=None if reason is None else type(error).__name__,
            )
        self._recording = self._session.stop(
            at_nanoseconds,
            known,
            reason=reason,
            attempts=self.n_join_attempts,
            timeout_seconds=self.join_timeout,
        )
        self._session.reap()
        self.state = Tracker.State.STOPPED
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
        self.stop()

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

    # ---- Ours.

    @property
    def report(self) -> Report | None:
        """The full report, beyond the paper's result classes. After `stop()` it has the samples, for charts."""
        if self._recording is None or self._session is None:
            return self._build_without_samples()
        if self._report is None:
            from ..reports.build import Choices
            from .reporting import find_changes, report_session

            choices = Choices(find_changes(self._warn))
            self._report = report_session(self._session, self._recording, choices)
        return self._report

    @property
    def recording_path(self) -> str | None:
        """The file that is being written, or was."""
        return None if self._session is None else self._session.recording_path

    def region(self, name: str, *, exact_peak: bool = False, parallel: bool = False) -> region:
        """A named part of what is tracked: a `with` block or a decorator."""
        return region(name, exact_peak=exact_peak, parallel=parallel)

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be measured or went wrong, one sentence each."""
        report = self._build_without_samples()
        return report.notes if report else ()

    # ---- Inside.

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


def __getattr__(name: str) -> object:
    """The paper's classes are available here too, and loaded on first use."""
    # `from .tracker import Tracker` asks for `__path__` first: it must not load anything.
    if not name.startswith("_"):
        from . import usage

        if hasattr(usage, name):
            return getattr(usage, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _read_own_figures() -> RootFigures:
    """This process's own counters, finer than they can be read from outside."""
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
    largest = after.largest_peak_bytes or 0
    return after._replace(
        reaped_cpu_seconds=after.reaped_cpu_seconds - samplers_seconds,
        largest_peak_bytes=largest if largest > floor else None,
        counters=subtract_counters(after.counters, before.counters),
    )


def _name_reason(error: BaseException | None, error_at_start: int) -> str | None:
    """Why the tracked part has ended, if an exception ended it; one from before the start did not."""
    if error is None or id(error) == error_at_start or (isinstance(error, SystemExit) and not error.code):
        return None
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "raised"


def _check_exists(pid: int) -> int:
    if pid > _LARGEST_PID:
        raise UsageError(f"{pid} is not a valid process ID: it is too large.")
    if not exists(pid):
        raise UsageError(f"There is no process with the ID {pid}.")
    return pid


def _check_tracking_file(path: str) -> str:
    from ..recording.tracking_file import check_tracking_path

    return check_tracking_path(path)
