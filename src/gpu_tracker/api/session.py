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
from ..core.errors import RecordingError, StateError, UsageError
from ..core.system import posix
from ..core.values import NamedTuple
from ..instrument.mailbox import MAILBOX_VARIABLE, choose_mailbox, hold_mailbox, put_inside, remove_mailbox
from ..recording.secrets import mask_labels, mask_secrets, mask_text
from ..sampler.handle.process import (
    CRASH_HINT,
    READY_SECONDS,
    WITHOUT_A_SAMPLER,
    SamplerProcess,
    start_sampler,
    without_child_signals,
)
from ..sampler.handle.wire import FINAL, GPU_PATIENCE_SECONDS, Plan, Start
from ..sources.files import read_text
from ..sources.identity import find_identity, leave_out_rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.config import Settings
    from ..core.model import Identity, Known, RecordingData
    from ..recording.follow import Content, Source
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
    job: str | None = None
    """All processes of this job on this machine; the process above is one of them."""


def is_in_notebook() -> bool:
    """Whether a kernel runs this program: one may import ipykernel without."""
    if "ipykernel" not in sys.modules:
        return False
    from ..integrations.ipython import find_shell

    return find_shell() is not None


def this_process() -> Target:
    """The program that imported us; in a notebook, the cell that runs."""
    command = None
    if is_in_notebook():
        from ..integrations.ipython import name_cell

        command = name_cell()
    return Target(os.getpid(), command or tuple(getattr(sys, "orig_argv", sys.argv)), is_ours=True)


def new_command(command: Sequence[str]) -> Target:
    """A command that is not running yet."""
    return Target(os.getpid(), tuple(command), is_ours=True, is_started_by_us=True)


def other_process(pid: int) -> Target:
    """A process that runs already, and is not touched."""
    from ..sources.processes import read_command

    return Target(pid, read_command(pid) or (), is_ours=False)


def whole_job(job: str) -> Target:
    """All processes of a scheduler's job on this machine. UsageError if there are none, and we are not of it either."""
    from ..sources.job_processes import list_of_job

    running, ours = list_of_job(job), os.getpid()
    if not running:
        raise UsageError(f"Job {job} has no process on this machine that you may see.")
    # Others may end at any moment.
    return Target(ours if ours in running else running[0], (), is_ours=False, job=job)


def check_runs(pid: int) -> int:
    """The ID of a process that runs already. UsageError if there is none."""
    from ..sources.processes import exists, find_process

    if not exists(pid):
        raise UsageError(f"There is no process with the ID {pid}.")
    process = find_process(pid)
    if process != pid:
        raise UsageError(f"{pid} is a thread of process {process}.", "Track the process instead.")
    return pid


def find_own_identity() -> Identity:
    """Which part of which job this process is."""
    try:
        groups = read_text("/proc/self/cgroup")
    except OSError:
        groups = ""
    return find_identity(os.environ, groups, posix.uname().nodename)


def identify_target(target: Target) -> Identity:
    """Which part of which job that is which is tracked; of a whole job, all of it on this machine."""
    if target.job is None:
        return find_own_identity()
    from ..sources.job_processes import identify

    return leave_out_rank(identify(target.pid))


class Wishes(NamedTuple):
    """What to keep besides the result."""

    record: str | None = None
    """A file for the recording, or a directory to put one in."""
    tracking_file: str | None = None
    overwrite: bool = False
    """Whether the tracking file may replace another."""


class Session:
    """From `prepare` to `stop`. `say` receives notes for the user."""

    def __init__(
        self,
        target: Target,
        settings: Settings,
        wishes: Wishes,
        say: Callable[[str], None],
        sampler: SamplerProcess | None = None,
        gpu_patience_seconds: float = GPU_PATIENCE_SECONDS,
    ) -> None:
        self._target = target
        self._gpu_patience_seconds = gpu_patience_seconds
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
        self._made: dict[str, tuple[int, int]] = {}
        """The files, by which they are known again: the job may rename them, and give their names to others."""
        self._replaced: dict[str, str] = {}
        """Where the files are that ours replace, until it is certain that the job runs."""
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
            if self._target.job is None:
                self._mailbox = choose_mailbox(os.environ, 0 if self._target.is_ours else self._target.pid)
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
            if self._target.is_ours:
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
        self._drop_replaced()
        for failure in self._failures:
            self._say(failure)  # only now is it sure what is reported without a sampler
        if self._sampler is not None:
            self._sampler.send("begin", start)

    def note_signal(self, number: int) -> None:
        """A signal has reached the job, which may end it."""
        if self._sampler is not None:
            self._sampler.send("signal", time.monotonic_ns(), number)

    def find_source(self) -> Source | None:
        """Where the recording can be followed while it is written, and read to its end afterwards; None without a sampler."""
        from ..recording.follow import Source, follow_path, read_unnamed

        sampler = self._sampler
        if sampler is None:
            return None
        if self.recording_path is not None:
            return follow_path(self.recording_path)

        def read(offset: int) -> Content:
            with self._lock:  # nobody closes the descriptor meanwhile
                kept = sampler.unnamed_recording_fd if self._written is None else self._written
                return read_unnamed(kept, offset)

        return Source("the recording", read)

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
        if self._mailbox is not None and self._target.is_ours and not self._target.is_started_by_us:
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
        """The recording that `stop` gave, with what the sampler has only written: samples, metrics and processes."""
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
            samples=written.samples,
            metrics=written.metrics,
            processes=written.processes,
            framework_readings=written.framework_readings,
        )

    def _keep_written(self, sampler: SamplerProcess) -> bytes | None:
        """A recording without a name, before its descriptor is closed; to decode it would keep the program waiting."""
        if self.recording_path is not None:
            return None
        fd = sampler.unnamed_recording_fd
        try:
            return posix.pread(fd, os.fstat(fd).st_size, 0)
        except OSError:
            return None  # the program has closed our descriptors

    def _forget_unwritten_recording(self) -> None:
        """A file that has not got a single line is no recording, and one that was deleted or renamed is none any more."""
        path = self.recording_path
        if path is not None:
            status = self._find_made(path)
            if status is None or not status.st_size:
                self._unmake(path)
                self.recording_path = None

    def _find_made(self, path: str) -> os.stat_result | None:
        """A file that we have made, if it still has that name."""
        try:
            status = os.lstat(path)
        except OSError:
            return None
        return status if _identify(status) == self._made[path] else None

    def _unmake(self, path: str) -> None:
        try:
            if self._find_made(path) is not None:
                os.unlink(path)
        except OSError:
            pass  # somebody else has removed it, or nobody may

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
            self._unmake(path)
        self._restore_replaced()
        self.recording_path = None

    # ---- Preparing.

    def _make_recording(self) -> str | None:
        place = self._wishes.record
        if place is None:
            return None
        from ..recording.create import create

        try:
            identity = identify_target(self._target)
            path = create(place, mask_secrets(self._target.command), self._target.pid, identity)
        except RecordingError as error:
            self._say(f"{error} The run is not recorded.")
            return None
        self._made[path] = _identify(os.lstat(path))
        return path

    def _make_tracking_file(self) -> tuple[str, tuple[str, str, str]] | None:
        path, settings = self._wishes.tracking_file, self._settings
        if path is None:
            return None
        from ..recording.tracking_file import check_tracking_path, create_tracking_file, set_aside

        path = check_tracking_path(path, may_replace=self._wishes.overwrite)
        aside = set_aside(path) if self._wishes.overwrite else None
        if aside is not None:
            self._replaced[path] = aside
        create_tracking_file(path)
        self._made[path] = _identify(os.lstat(path))
        return path, (settings.ram_unit, settings.gpu_ram_unit, settings.time_unit)

    def _drop_replaced(self) -> None:
        for aside in self._replaced.values():
            try:
                os.unlink(aside)
            except OSError as error:
                self._say(f"Cannot remove {aside}: {error.strerror}.")
        self._replaced.clear()

    def _restore_replaced(self) -> None:
        for path, aside in self._replaced.items():
            try:
                if os.path.lexists(path):
                    self._say(f"{path} was replaced by another program. The old one is {aside}.")
                else:
                    os.rename(aside, path)
            except OSError as error:
                self._say(f"Cannot rename {aside} to {path} again: {error.strerror}.")
        self._replaced.clear()

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
            gpu_patience_seconds=self._gpu_patience_seconds,
            job=target.job,
        )

    def _wait_for(self, sampler: SamplerProcess) -> bool:
        is_ready = sampler.wait_until_ready(READY_SECONDS)
        if not is_ready:
            hint = f" {CRASH_HINT}" if sampler.is_gone else ""
            self._failures.append(f"The sampler failed to start; {WITHOUT_A_SAMPLER}.{hint}")
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
        after, exit_code, exception, notes = (None, None, None, ()) if known is None else known[2:]
        sampler.send("stop", at_nanoseconds, after, exit_code, reason, exception, notes)
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


def _identify(status: os.stat_result) -> tuple[int, int]:
    """The file itself, whatever its name."""
    return status.st_dev, status.st_ino


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
