"""One act of tracking: prepare a sampler, begin, stop, recover what a lost one left, clean up.

`Tracker`, `run`, `-e` and `attach` differ only in what they track and where the result goes. A job is never refused
because it cannot be measured.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import allocate_lock

from ..core.config import list_process_sources
from ..core.errors import RecordingError, StateError
from ..core.values import NamedTuple
from ..instrument.mailbox import MAILBOX_VARIABLE, choose_mailbox, hold_mailbox, put_inside, remove_mailbox
from ..recording.secrets import mask_labels, mask_secrets, mask_text
from ..sampler.handle.process import READY_SECONDS, SamplerProcess, start_sampler, without_child_signals
from ..sampler.handle.wire import FINAL, Plan, Start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.config import Settings
    from ..core.model import Known, RecordingData
    from ..sampler.handle.recovery import Recovery

_ANSWER_SECONDS = 10.0
_LIVE_SECONDS = 2.0


class Target(NamedTuple):
    """What to track."""

    pid: int
    """The process itself, or the one that will start it."""
    command: tuple[str, ...]
    is_ours: bool
    """It has this process's environment, and its processes find our mailbox."""
    is_started_by_us: bool = False
    """A command that this process is about to start."""


def this_process() -> Target:
    """The program that imported us."""
    return Target(os.getpid(), tuple(getattr(sys, "orig_argv", sys.argv)), is_ours=True)


def new_command(command: Sequence[str]) -> Target:
    """A command that is not running yet."""
    return Target(os.getpid(), tuple(command), is_ours=True, is_started_by_us=True)


def other_process(pid: int) -> Target:
    """A process that runs already, and is not touched."""
    from ..sources.processes import read_command

    return Target(pid, read_command(pid) or (), is_ours=False)


class Wishes(NamedTuple):
    """What to keep besides the result."""

    record: str | None = None
    """A file for the recording, or a directory to put one in."""
    tracking_file: str | None = None


class Session:
    """From `prepare` to `stop`. `say` receives notes for the user."""

    def __init__(
        self,
        target: Target,
        settings: Settings,
        wishes: Wishes,
        say: Callable[[str], None],
        sampler: SamplerProcess | None = None,
    ) -> None:
        self._target = target
        self._settings = settings
        self._wishes = wishes
        self._say = say
        self._sampler = sampler
        self._lock = allocate_lock()
        self._plan: Plan | None = None
        self._start = Start(target.pid, 0, None)
        self._mailbox: str | None = None
        self._outer_mailboxes: str | None = None
        """What the environment said before ours was announced in it."""
        self._made: list[str] = []
        self._failures: list[str] = []
        self._latest: RecordingData | None = None
        self._written: bytes | None = None
        self.recording_path: str | None = None

    @property
    def owner_pid(self) -> int:
        """The process that prepared it; processes forked since have no part in it."""
        return self._need_plan().owner_pid

    @property
    def replies_fd(self) -> int:
        """Becomes readable when the tracked process has ended; -1 without a sampler."""
        return -1 if self._sampler is None else self._sampler.replies_fd

    def prepare(self) -> None:
        """Create the files and tell a sampler what to do. Leaves nothing behind if it raises."""
        try:
            tracking = self._make_tracking_file()
            self.recording_path = self._make_recording()
            if self._target.is_ours:
                self._mailbox = choose_mailbox(os.environ)
            self._plan = self._make_plan(tracking)
            self._sampler = self._sampler or start_sampler(self._failures.append)
            if self._sampler is not None:
                self._sampler.send("prepare", self._plan)
        except BaseException:
            self.discard()
            raise

    def wait_until_ready(self) -> bool:
        """Wait for the sampler; whether there is one. Leaves nothing behind if it raises."""
        try:
            is_ready = self._sampler is not None and self._wait_for(self._sampler)
        except BaseException:  # Ctrl-C, most likely
            self.discard()
            raise
        if self._mailbox is not None:
            self._announce(self._mailbox)
            if self._sampler is not None:
                try:
                    self._sampler.hold(hold_mailbox(self._mailbox))
                except OSError:
                    pass  # there is none, and nothing to hold
        return is_ready

    def begin(self, start: Start) -> None:
        """The job begins."""
        self._start = start
        for failure in self._failures:
            self._say(failure)  # only now is it sure what is reported without a sampler
        if self._sampler is not None:
            self._sampler.send("begin", start)

    def read_so_far(self, find_known: Callable[[int], Known | None]) -> RecordingData | None:
        """The figures now, or the latest known; without a sampler, what can be recovered and what the caller knows."""
        with self._lock:
            sampler = self._sampler
            if sampler is not None and not sampler.is_gone:
                answer = sampler.receive("totals", sampler.request("totals"), _LIVE_SECONDS)
                if answer is not None:
                    (self._latest,) = answer
                    return self._latest
            if sampler is not None and not sampler.is_gone:
                return self._latest
            now = time.monotonic_ns()
            recording = self._recover(now, find_known(now)).recording
            return recording._replace(end=recording.end and recording.end._replace(reason="running"))

    def close_mailbox(self) -> None:
        """Send this process's regions and metrics to the surrounding tracker again, if there is one."""
        if self._mailbox is not None and not self._target.is_started_by_us:
            from ..instrument.outbox import close_mailbox

            close_mailbox(self._mailbox)

    def stop(
        self,
        at_nanoseconds: int,
        known: Known | None,
        *,
        reason: str | None = None,
        attempts: int = 1,
        timeout_seconds: float = _ANSWER_SECONDS,
    ) -> RecordingData:
        """The final figures: the sampler's, or the best that can be recovered without it."""
        reason = reason or ("exited" if known and known.exit_code is not None else "stopped")
        with self._lock:
            recording = self._ask_for_the_end(at_nanoseconds, known, reason, attempts, timeout_seconds)
            if recording is None:
                recovery = self._recover(at_nanoseconds, known)
                recording = recovery.recording
                if self._sampler is None or self._sampler.has_ended():
                    recovery.write()
            if self._sampler is not None:
                self._written = self._keep_written(self._sampler)
                self._sampler.close()
            self._remove_mailbox()
            self._forget_unwritten_recording()
        return recording

    def read_samples(self, recording: RecordingData) -> RecordingData:
        """The recording that `stop` gave, with what the sampler has only written: samples and metrics."""
        from ..recording.reader import load, load_bytes

        if recording.samples:
            return recording  # what was recovered has them
        try:
            if self._written:
                written = load_bytes(self._written)
            elif self.recording_path is not None:
                written = load(self.recording_path)
            else:
                return recording
        except RecordingError:
            return recording
        return recording._replace(
            samples=written.samples, metrics=written.metrics, processes=written.processes
        )

    def _keep_written(self, sampler: SamplerProcess) -> bytes | None:
        """A recording without a name, before its descriptor is closed; to decode it would keep the program waiting."""
        if self.recording_path is not None:
            return None
        fd = sampler.unnamed_recording_fd
        try:
            return os.pread(fd, os.fstat(fd).st_size, 0)
        except OSError:
            return None  # the program has closed our descriptors

    def _forget_unwritten_recording(self) -> None:
        """A file that has not got a single line is no recording, and one that was deleted is none any more."""
        if self.recording_path is not None:
            try:
                if not os.stat(self.recording_path).st_size:
                    os.unlink(self.recording_path)
                    self.recording_path = None
            except OSError:
                self.recording_path = None

    def reap(self) -> None:
        """Wait for the sampler's process to end, if it is our child."""
        if self._sampler is not None:
            self._sampler.reap()

    def discard(self) -> None:
        """Nothing was tracked: remove the empty files, which would be in the way of the next attempt."""
        if self._sampler is not None:
            self._sampler.close()
        self._remove_mailbox()
        if self._outer_mailboxes:
            os.environ[MAILBOX_VARIABLE] = self._outer_mailboxes
        elif self._outer_mailboxes is not None:
            os.environ.pop(MAILBOX_VARIABLE, None)
        for path in self._made:
            if os.path.exists(path):
                os.unlink(path)
        self.recording_path = None

    # ---- Preparing.

    def _make_recording(self) -> str | None:
        place = self._wishes.record
        if place is None:
            return None
        from ..recording.create import create

        try:
            path = create(place, mask_secrets(self._target.command), self._target.pid)
        except RecordingError as error:
            self._say(f"{error} The run is not recorded.")
            return None
        self._made.append(path)
        return path

    def _make_tracking_file(self) -> tuple[str, tuple[str, str, str]] | None:
        path, settings = self._wishes.tracking_file, self._settings
        if path is None:
            return None
        from ..recording.tracking_file import check_tracking_path, create_tracking_file

        path = check_tracking_path(path)
        create_tracking_file(path)
        self._made.append(path)
        return path, (settings.ram_unit, settings.gpu_ram_unit, settings.time_unit)

    def _make_plan(self, tracking: tuple[str, tuple[str, str, str]] | None) -> Plan:
        target, settings = self._target, self._settings
        return Plan(
            owner_pid=os.getpid(),
            example_pid=target.pid,
            has_our_environment=target.is_ours,
            starts_the_job=target.is_started_by_us,
            command=mask_secrets(target.command),
            sleep_seconds=float(settings.sleep_time),
            n_expected_cores=settings.n_expected_cores,
            gpu_uuids=settings.gpu_uuids,
            gpu_vendors=settings.gpu_vendors,
            max_overhead=settings.max_overhead,
            full_resolution=settings.full_resolution,
            sources=list_process_sources(),
            name=None if settings.name is None else mask_text(settings.name),
            labels=mask_labels(settings.labels),
            recording_path=self.recording_path,
            mailbox=self._mailbox,
            tracking=tracking,
        )

    def _wait_for(self, sampler: SamplerProcess) -> bool:
        is_ready = sampler.wait_until_ready(READY_SECONDS)
        if not is_ready:
            self._failures.append("The sampler failed to start; only time and CPU will be reported.")
        if sampler.refusal:
            self._say(
                f"Cannot write a recording to {self.recording_path}: {sampler.refusal}. The run is not recorded."
            )
            self.recording_path, self._plan = None, self._need_plan()._replace(recording_path=None)
        return is_ready

    def _announce(self, mailbox: str) -> None:
        """Direct the regions and metrics of this process, or of the command it starts, to the mailbox."""
        if self._target.is_started_by_us:
            self._outer_mailboxes = os.environ.get(MAILBOX_VARIABLE, "")
            os.environ[MAILBOX_VARIABLE] = put_inside(mailbox, self._outer_mailboxes or None)
            return
        from ..instrument.outbox import open_mailbox

        open_mailbox(mailbox)

    # ---- Stopping.

    def _ask_for_the_end(
        self, at_nanoseconds: int, known: Known | None, reason: str, attempts: int, timeout_seconds: float
    ) -> RecordingData | None:
        """Wait for the last figures as long as the user allows; then kill the sampler."""
        sampler = self._sampler
        if sampler is None:
            return None
        after, exit_code, exception = (None, None, None) if known is None else known[2:]
        sampler.send("stop", at_nanoseconds, after, exit_code, reason, exception)
        sampler.wake()
        for attempt in range(max(1, attempts)):
            if attempt:
                self._say(f"The sampler has not answered within {timeout_seconds:g} s. Waiting again...")
            answer = sampler.receive("totals", FINAL, timeout_seconds)
            if answer is not None:
                recording: RecordingData
                (recording,) = answer
                return recording
            if sampler.is_gone:
                return None
        self._say("The sampler did not answer and was killed.")
        sampler.kill()
        return None

    def _recover(self, at_nanoseconds: int, known: Known | None) -> Recovery:
        from ..sampler.handle.recovery import Recovery

        return Recovery(self._sampler, self._need_plan(), self._start, at_nanoseconds, known)

    def _remove_mailbox(self) -> None:
        if self._mailbox is not None:
            remove_mailbox(self._mailbox)

    def _need_plan(self) -> Plan:
        if self._plan is None:
            raise StateError("Tracking has not started yet.")
        return self._plan


def resolve_gpus(settings: Settings, sampler: SamplerProcess | None = None) -> Settings:
    """The settings, with the GPUs that the user named as UUIDs. ValueError if there are GPUs, but none of that name.

    A sampler looks them up: no driver is ever loaded into the user's process.
    """
    if settings.gpu_uuids is None:
        return settings
    if sampler is not None:
        return settings._replace(gpu_uuids=sampler.resolve_gpus(settings.gpu_uuids, settings.gpu_vendors))
    with without_child_signals():
        sampler = SamplerProcess()
        try:
            return resolve_gpus(settings, sampler)
        finally:
            sampler.reap_starter()
            sampler.close()
