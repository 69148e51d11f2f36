"""The tracker: start, stop, and the figures in between. One tracker makes one recording at a time."""

from __future__ import annotations

import enum
import os
import sys
import time
from _thread import allocate_lock

from ..core.config import (
    Settings,
    check,
    check_gpu_uuids,
    check_gpu_vendors,
    check_process_id,
    read_process_source,
)
from ..core.errors import TrackerError
from ..core.model import Recording, RootFigures
from ..core.version import __version__
from ..instrument.high_water import find_kept_bytes
from ..instrument.mailbox import PLACE_VARIABLE, choose_place, remove_place
from ..recording import writer
from ..recording.schema import decode_answer
from ..sampler.handle.process import (
    READY_SECONDS,
    SamplerProcess,
    reaped_cpu_seconds,
    without_child_signals,
)
from ..sampler.handle.wire import FINAL, Plan, Start
from .regions import close_place, open_place, region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Any

    from typing_extensions import Self

    from ..reports.build import Report
    from .usage import (
        ComputeTime as ComputeTime,
    )
    from .usage import (
        CPUUtilization as CPUUtilization,
    )
    from .usage import (
        GPUUtilization as GPUUtilization,
    )
    from .usage import (
        MaxGPURAM as MaxGPURAM,
    )
    from .usage import (
        MaxRAM as MaxRAM,
    )
    from .usage import (
        ProcessingUnitPercentages as ProcessingUnitPercentages,
    )
    from .usage import (
        ResourceUsage as ResourceUsage,
    )
    from .usage import (
        RSSValues as RSSValues,
    )

_LIVE_SECONDS = 2.0
_MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024


# Sentences that this process has heard already: a loop over a thousand trackers is told once.
_said: set[str] = set()


class _State(enum.Enum):
    NEW = 0
    STARTED = 1
    STOPPED = 2


class Tracker:
    """Tracks what a process and all its descendants use, between `start()` and `stop()` or in a `with` block.

    The paper's parameters come first and mean what they mean there. Ours, by keyword only: `record` writes
    a recording to that file, or into that directory; `max_overhead` is the share of one core that
    measuring may cost; `full_resolution` writes a line for every look; `gpu` says whose devices to look at
    ("nvidia", "amd", "intel", "apple", several of them, or "none"). `gpu_uuids` takes UUIDs, their beginnings,
    numbers and names. `tracking_file` (.csv or .sqlite) gets a row per window while tracking.
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
    ) -> None:
        self._settings = check(
            Settings(
                sleep_time,
                ram_unit,
                gpu_ram_unit,
                time_unit,
                n_expected_cores,
                check_gpu_uuids(gpu_uuids),
                disable_logs,
                max_overhead,
                full_resolution,
                check_gpu_vendors(gpu),
            )
        )
        self._process_source = read_process_source()
        self._root_pid = check_process_id(process_id)
        self._root_was_given = process_id is not None
        if self._root_was_given:
            _check_exists(self._root_pid)
        self.n_join_attempts = n_join_attempts
        self.join_timeout = join_timeout
        self.state = Tracker.State.NEW
        self._record = None if record is None else os.path.abspath(os.fspath(record))
        self.tracking_file = None if tracking_file is None else _check_tracking_file(os.fspath(tracking_file))
        self.recording_path: str | None = None
        self._lock = allocate_lock()
        self._sampler: SamplerProcess | None = None
        self._plan: Plan | None = None
        self._start = Start(0, 0, None)
        self._before = RootFigures(0.0, 0.0)
        self._samplers_seconds = 0.0
        self._recording: Recording | None = None
        self._regions_place: str | None = None
        self._outer_place: str | None = None
        if self._settings.gpu_uuids is not None:
            self._settings = self._settings._replace(gpu_uuids=self._resolve_gpus())

    # ---- The paper's surface.

    def start(self) -> None:
        """Begin to track, in a process of its own."""
        if self.state is Tracker.State.STARTED:
            raise RuntimeError("Cannot start tracking when tracking has already started.")
        if self._root_pid != os.getpid() and not self._root_was_given:
            self._root_pid = os.getpid()  # made before a fork, used after it
        self._recording = None
        if self.tracking_file is not None:
            _create_tracking_file(self.tracking_file)
        self.recording_path = self._regions_place = None
        try:
            self.recording_path = self._create_recording()
            self._regions_place = None if self._root_was_given else choose_place(os.environ)
            self._plan = self._make_plan()
            self._sampler = self._start_sampler(self._plan)
        except BaseException:
            self._remove_made()
            raise
        if self._regions_place is not None:
            self._outer_place = os.environ.get(PLACE_VARIABLE)
            open_place(self._regions_place, self._outer_place)
        self._samplers_seconds = reaped_cpu_seconds()
        self._before = _read_own_figures()
        self._start = Start(
            self._root_pid,
            time.monotonic_ns(),
            None if self._root_was_given else self._before[:2],
        )
        if self._sampler is not None:
            self._sampler.send("begin", *self._start)
        self.state = Tracker.State.STARTED

    def stop(self) -> None:
        """End the tracking; from now on the figures are final."""
        if self.state is Tracker.State.NEW:
            raise RuntimeError("Cannot stop tracking when tracking has not started yet.")
        if self.state is Tracker.State.STOPPED:
            raise RuntimeError("Cannot stop tracking when tracking has already stopped.")
        at_nanoseconds = time.monotonic_ns()
        if self._need_plan().owner_pid != os.getpid():
            # A forked child leaves the block: the tracking is its parent's.
            self.state = Tracker.State.STOPPED
            return
        if self._regions_place is not None:
            close_place(self._outer_place)
        samplers = reaped_cpu_seconds() - self._samplers_seconds
        after = None if self._root_was_given else _read_final_figures(self._before, samplers)
        with self._lock:
            answer = self._join(at_nanoseconds, after)
            self._recording = (
                decode_answer(*answer) if answer is not None else self._salvage(at_nanoseconds, after)
            )
            if self._sampler is not None:
                self._sampler.close()
                self._sampler.bury()
            self._remove_place()
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
        """What has been used so far; after `stop()`, altogether. None before `start()`."""
        report = self.report
        if report is None:
            return None
        from ..reports.paper import build_usage

        return build_usage(report, self._settings)

    def to_json(self) -> dict[str, Any]:
        """The same as a dictionary that JSON can hold."""
        from ..reports.paper import to_json

        return to_json(self._need_usage())

    def __str__(self) -> str:
        from ..reports.paper import render_text

        return render_text(self._need_usage())

    def __repr__(self) -> str:
        return f"State: {self.state.name}"

    # ---- Ours.

    @property
    def report(self) -> Report | None:
        """All there is to say, not only what the paper's result classes hold."""
        recording = self._recording if self.state is not Tracker.State.STARTED else self._look()
        if recording is None:
            return None
        from ..reports.build import build

        return build(recording)

    def region(self, name: str, *, exact_peak: bool = False) -> region:
        """A named stretch of what is tracked: a `with` block, or a decorator."""
        return region(name, exact_peak=exact_peak)

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be measured or went wrong, a sentence each."""
        report = self.report
        return report.notes if report else ()

    # ---- Inside.

    def _create_recording(self) -> str | None:
        if self._record is None:
            return None
        return writer.create(self._record, _own_command(), self._root_pid)

    def _remove_place(self) -> None:
        if self._regions_place is not None:
            remove_place(self._regions_place)

    def _remove_made(self) -> None:
        """Nothing has been tracked: an empty file would only be in the way of the next attempt."""
        self._remove_place()
        for made in (self.tracking_file, self.recording_path):
            if made is not None and os.path.exists(made):
                os.unlink(made)
        self.recording_path = None

    def _make_plan(self) -> Plan:
        settings = self._settings
        return Plan(
            owner_pid=os.getpid(),
            example_pid=self._root_pid,
            has_our_environment=not self._root_was_given,
            starts_the_job=False,
            command=() if self._root_was_given else _own_command(),
            sleep_seconds=float(settings.sleep_time),
            n_expected_cores=settings.n_expected_cores,
            gpu_uuids=settings.gpu_uuids,
            gpu_vendors=settings.gpu_vendors,
            max_overhead=settings.max_overhead,
            full_resolution=settings.full_resolution,
            recording_path=self.recording_path,
            regions_place=self._regions_place,
            source=self._process_source,
            tracking=None
            if self.tracking_file is None
            else (self.tracking_file, (settings.ram_unit, settings.gpu_ram_unit, settings.time_unit)),
        )

    def _start_sampler(self, plan: Plan) -> SamplerProcess | None:
        """A sampler that is ready, or none: a job is never refused because it cannot be measured."""
        with without_child_signals():
            try:
                sampler = SamplerProcess(__version__)
            except TrackerError as error:
                self._warn(f"{error} Only time and CPU will be known.")
                return None
            try:
                sampler.send("prepare", *plan)
                sampler.reap_starter()
                is_ready = sampler.wait_until_ready(READY_SECONDS)
            except BaseException:  # Ctrl-C, most likely
                sampler.close()
                raise
            if not is_ready:
                self._warn("The sampler did not come up. Only time and CPU will be known.")
        return sampler

    def _join(self, at_nanoseconds: int, after: RootFigures | None) -> tuple[Any, ...] | None:
        """Wait for the last figures, as patiently as the user asked; then end the sampler by force."""
        sampler = self._sampler
        if sampler is None:
            return None
        figures = None if after is None else tuple(after)
        sampler.send("stop", at_nanoseconds, figures, None)
        for _ in range(max(1, self.n_join_attempts)):
            answer = sampler.receive("totals", FINAL, self.join_timeout)
            if answer is not None or sampler.is_gone:
                return answer
            self._say(f"The sampler has not answered within {self.join_timeout} s. Waiting again...")
        self._say(
            f"The sampler has not answered after {self.n_join_attempts} attempts. Ending it by force..."
        )
        sampler.kill()
        return None

    def _look(self) -> Recording | None:
        """The figures at this moment, while tracking."""
        sampler = self._sampler
        if sampler is None or sampler.is_gone:
            return self._recording
        with self._lock:
            if self.state is Tracker.State.STARTED:
                request = sampler.request("totals")
                answer = sampler.receive("totals", request, _LIVE_SECONDS)
                if answer is not None:
                    self._recording = decode_answer(*answer)
            return self._recording

    def _salvage(self, at_nanoseconds: int, after: RootFigures | None) -> Recording:
        from ..accounts.recovery import Known
        from ..sampler.handle.recovery import recover

        known = None if after is None else Known(at_nanoseconds, self._before, after)
        return recover(self._sampler, self._need_plan(), self._start, known)

    def _resolve_gpus(self) -> tuple[str, ...] | None:
        """Ask a sampler which GPUs there are: no driver is ever loaded into the user's process."""
        with without_child_signals():
            sampler = SamplerProcess(__version__)
            try:
                return sampler.resolve_gpus(self._settings.gpu_uuids, self._settings.gpu_vendors)
            finally:
                sampler.reap_starter()
                sampler.close()

    def _warn(self, text: str) -> None:
        if not self._settings.disable_logs:
            self._say(text)

    def _say(self, text: str) -> None:
        if text in _said:
            return
        try:
            import logging
        except OSError:
            return  # a program without a free descriptor cannot even import
        _said.add(text)
        logging.getLogger("gpu_tracker").warning(text)

    def _need_usage(self) -> ResourceUsage:
        usage = self.resource_usage
        if usage is None:
            raise RuntimeError("Cannot display the tracker in string or JSON format before tracking starts.")
        return usage

    def _need_plan(self) -> Plan:
        if self._plan is None:
            raise RuntimeError("Tracking has not started yet.")
        return self._plan


def __getattr__(name: str) -> object:
    """The paper's classes are found here too; they are loaded only when a result is looked at."""
    # `from .tracker import Tracker` asks for `__path__` first: that must not load anything.
    if not name.startswith("_"):
        from . import usage

        if hasattr(usage, name):
            return getattr(usage, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _read_own_figures() -> RootFigures:
    """This process's own counters, finer than anybody else can read them."""
    import resource

    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return RootFigures(
        time.process_time(),
        children.ru_utime + children.ru_stime,
        largest_peak_bytes=children.ru_maxrss * _MAXRSS_BYTES,
        may_be_a_childs=True,
    )


def _read_final_figures(before: RootFigures, samplers_seconds: float) -> RootFigures:
    """The same at the end, without what is not the job's: other trackers' samplers, and old peaks."""
    import resource

    after = _read_own_figures()
    own_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_BYTES
    # A child starts with the high-water mark of whoever spawned it, so only what is above our own, also
    # before we reset it, and has grown since the start, is a child's.
    floor = max(own_peak, find_kept_bytes(), before.largest_peak_bytes or 0)
    largest = after.largest_peak_bytes or 0
    return after._replace(
        reaped_cpu_seconds=after.reaped_cpu_seconds - samplers_seconds,
        largest_peak_bytes=largest if largest > floor else None,
    )


def _check_exists(pid: int) -> None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        raise ValueError(f"There is no process with the ID {pid}.") from None
    except PermissionError:
        pass  # somebody else's, but there
    except OverflowError:
        raise ValueError(f"{pid} is not a valid process ID: it is too large.") from None


def _check_tracking_file(path: str) -> str:
    from ..recording.tracking_file import check_tracking_path

    return check_tracking_path(path)


def _create_tracking_file(path: str) -> None:
    from ..recording.tracking_file import create_tracking_file

    create_tracking_file(path)


def _own_command() -> tuple[str, ...]:
    return tuple(getattr(sys, "orig_argv", sys.argv))
