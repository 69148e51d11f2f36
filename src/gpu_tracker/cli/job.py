"""The tracked command: started as a shell would, signalled as if we were not there, and waited for.

The job stays in our process group and session, so the terminal, mpirun and Slurm reach it as usual; a signal that
reached only us is forwarded, one that reached the job too is not.
"""

from __future__ import annotations

import errno
import os
import sys
import time

from ..core import list_signals, signal
from ..core.errors import TrackerError
from ..core.model import RootFigures, TreeCounters, add_counters
from ..core.values import NamedTuple
from ..sampler.handle.descriptor import release
from ..sources import SAMPLER_NAME, WITNESS_NAME
from ..sources.files import read_file, read_text
from ..sources.platform import find_counters, find_peak_bytes, read_last_figures, read_own_peak_bytes
from .interrupts import raise_interrupts
from .pending import keep_pending, restore
from .witness import FIRST_QUEUED, Witness

if sys.platform == "linux":
    from _ctypes import (  # what ctypes calls, without the cost of importing all of it
        call_function,
        dlopen,
        dlsym,
    )

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from resource import struct_rusage
    from typing import NoReturn, Protocol

    from ..sources.platform import LastFigures

    class Onlooker(Protocol):
        """Somebody who draws on the terminal while the job runs."""

        def wake(self) -> None:
            """The terminal has changed, or is ours again."""

        def hide(self) -> None:
            """It will be somebody else's."""


NOT_FOUND, NOT_EXECUTABLE = 127, 126

# Everything else is blocked and waited for: a fault of our own ends us all the same, and what we
# inherited as ignored (nohup) is for the job to ignore, or not.
_UNCATCHABLE = set(list_signals("SIGKILL", "SIGSTOP"))
_LOCALE = b"LC_CTYPE"
# `timeout` signals its child and then the group, a scheduler one process after the other: to the job that is one signal.
# For how long one for us alone is held, again and again while its sender wants a core: one with a single thread, one with several...
_SHORT_MOMENT_SECONDS, _MOMENT_SECONDS = 0.0002, 0.001
# ...and one that cannot be seen; no signal longer than this.
_LONG_MOMENT_SECONDS, _LONGEST_HOLD_SECONDS = 0.02, 0.5
_N_THREADS = 17  # among the fields of a process's stat, after its name
# Those that say why a job may end: a person, a scheduler, a limit.
_TELLING = frozenset(list_signals("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGXCPU"))
# What Python ignores in itself, so that what it inherited is lost.
_IGNORED_BY_PYTHON = list_signals("SIGPIPE", "SIGXFSZ")
# Programs that start others with what they ignore themselves. Runtimes like Python and Node ignore SIGPIPE too, but not for others.
_PASSING_ON = frozenset(
    [
        "sh",
        "ash",
        "dash",
        "bash",
        "zsh",
        "ksh",
        "ksh93",
        "mksh",
        "fish",
        "busybox",
        "systemd",
        "init",
        "timeout",
        "time",
        "xargs",
        "make",
        "setsid",
    ]
)
# From linux/prctl.h.
_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36


class CannotStartError(TrackerError):
    """The command cannot be run; a shell would give this exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class NoProcessError(Exception):
    """There can be no process for the job besides this one, which can still become it."""


class Ending(NamedTuple):
    """How the job ended."""

    at_nanoseconds: int
    returncode: int
    """Negative for a signal, as Python has it."""
    figures: RootFigures | None


class _Received(NamedTuple):
    """A signal for us."""

    number: int
    is_from_kernel: bool = False
    """Whether it is known to be the kernel's: a key, a hangup, a timer."""
    sender_pid: int = 0


class _Held(NamedTuple):
    """A signal for us alone, until it is sure that it is not for the whole group."""

    received: _Received
    moment_seconds: float
    until_seconds: float
    latest_seconds: float
    sender_waits: int | None
    """How often its sender had waited for something; None if that cannot be told."""


class Job:
    """A command: about to be started, then running, then ended."""

    def __init__(self, arguments: list[str], tell: Callable[[int], object] = bool) -> None:
        """`tell` is given every signal that may end the job."""
        self._arguments = arguments
        self._tell = tell
        self._witness = Witness()
        self._inherited = _find_inherited(os.getppid())
        self._early: set[int] = set()
        self._held: dict[int, _Held] = {}
        self._onlooker: Onlooker | None = None
        self._adopted_seconds = 0.0
        self._adopted_counters: TreeCounters | None = None
        self._adopted_peak_bytes = 0
        self.outsiders: tuple[int, ...] = ()
        """Our descendants that are older than the job, and so not its own."""

    def start(self) -> None:
        """Start it. CannotStartError if that is not possible, NoProcessError if only `replace_us` is."""
        self._witness.reap_starter()
        # Orphans of the job become our children instead of init's.
        _control_process(_SET_CHILD_SUBREAPER, 1)
        self._signals: set[int] = {number for number in signal.valid_signals() if number not in _UNCATCHABLE}
        # Also of SIGCHLD: a job may run under a parent that ignores it, and then nothing could be waited for.
        self._handlers = keep_pending(self._signals)
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        raise_interrupts()  # later ones are the job's
        self._floor_bytes = read_own_peak_bytes()
        self.outsiders = _find_outsiders()
        self.pid, self.started_nanoseconds, spent_nanoseconds = self._start()
        self.before = RootFigures(spent_nanoseconds / 1e9, 0.0)
        """What the process had used when it was still a copy of us."""

    def replace_us(self) -> NoReturn:
        """Become the job, with nobody left to watch it. CannotStartError if that is not possible."""
        _control_process(_SET_CHILD_SUBREAPER, 0)
        try:
            self._exec(_find_environment())
        except OSError as error:
            raise _explain(error.errno or errno.EIO, self._arguments[0]) from None

    def wait(self, onlooker: Onlooker | None = None) -> Ending:
        """Pass signals on until the job has ended."""
        self._onlooker = onlooker
        while True:
            due = min((held.until_seconds for held in self._held.values()), default=None)
            received = _wait_for_signal(self._signals, due)
            if received is None:
                pass  # it is time to forward one
            elif received.number == signal.SIGCHLD:
                if (ending := self._look_after_children()) is not None:
                    self._witness.dismiss()
                    return ending
            else:
                if received.number == signal.SIGWINCH and onlooker is not None:
                    onlooker.wake()
                self._pass_on(received)
            self._forward_due()

    def close(self) -> None:
        """Leave no process behind."""
        self._witness.close()

    def _start(self) -> tuple[int, int, int]:
        """Fork and exec; when it became the job, and the CPU time it had used until then.

        The pipe closes at the moment of exec, or says why it failed.
        """
        release()
        try:
            waiting, telling = os.pipe()
            reading, writing = os.pipe()
            pid = os.fork()
        except OSError as error:
            raise NoProcessError(error.strerror) from None
        if pid == 0:
            os.close(telling)
            self._become(waiting, writing)
        os.close(waiting)
        os.close(writing)
        ours = signal.sigpending()
        os.close(telling)
        with os.fdopen(reading, "rb") as pipe:
            message = pipe.read()
        stamp, _, problem = message.partition(b"\n")
        if problem:
            os.waitpid(pid, 0)
            restore(self._handlers)
            self._unblock_signals()
            self.close()
            raise _explain(int(problem), self._arguments[0])
        started_nanoseconds, spent_nanoseconds, *theirs = map(int, stamp.split())
        self._early = set(ours).difference(theirs)
        return pid, started_nanoseconds, spent_nanoseconds

    def _become(self, waiting: int, pipe: int) -> None:
        """In the child. Never returns."""
        try:
            # Who kills us with SIGKILL means the job: untracked, it would have hit it.
            _control_process(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
            environment = _find_environment()
            # Our parent closes it when it has looked at its signals: one that it has and we lack came before us.
            os.read(waiting, 1)
            numbers = (time.monotonic_ns(), time.process_time_ns(), *signal.sigpending())
            os.write(pipe, b"%s\n" % " ".join(map(str, numbers)).encode())
            self._exec(environment)
        except OSError as error:
            os.write(pipe, str(error.errno).encode())
        finally:
            os._exit(NOT_FOUND)

    def _exec(self, environment: dict[bytes, bytes]) -> NoReturn:
        restore(self._handlers)
        for number in _IGNORED_BY_PYTHON:
            signal.signal(number, signal.SIG_IGN if number in self._inherited else signal.SIG_DFL)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # no handler of ours may run in the job
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        self._unblock_signals()  # what has come meanwhile may end the job here
        try:
            os.execvpe(self._arguments[0], self._arguments, environment)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # A script without its first line: any shell would run it, so do we.
            os.execve("/bin/sh", ["sh", *self._arguments], environment)

    def _unblock_signals(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _pass_on(self, received: _Received) -> None:
        """Forward a signal, unless the job has got it as a member of our group.

        One for us alone is held for a moment: its sender may be about to signal the group, and to the job both are one. Others are not
        kept waiting meanwhile, and one that is repeated is not lost.
        """
        number, sender = received.number, received.sender_pid
        earlier = self._held.pop(number, None)
        # Which of several threads has sent it is not known, and they wait for each other all the time.
        is_known = sender > 0 and _count_threads(sender) <= 1
        # Asked before the witness is: if it waits for something, all that it has sent by then has arrived there.
        is_done = number >= FIRST_QUEUED or (is_known and not _wants_to_run(sender))
        is_for_all = self._was_for_all(number, received.is_from_kernel)
        if earlier is not None and (not is_for_all or earlier.received.sender_pid != sender):
            self._forward(number)
        if is_for_all:
            self._forward_unless_reached(received)
        elif is_done:
            self._forward(number)
        else:
            now = time.monotonic()
            moment_seconds = (
                _SHORT_MOMENT_SECONDS if is_known else _MOMENT_SECONDS if sender else _LONG_MOMENT_SECONDS
            )
            waits = _count_waits(sender) if is_known else None
            self._held[number] = _Held(
                received, moment_seconds, now + moment_seconds, now + _LONGEST_HOLD_SECONDS, waits
            )

    def _forward_due(self) -> None:
        """Forward what was held for long enough."""
        now = time.monotonic()
        for number, held in tuple(self._held.items()):
            if now < held.until_seconds:
                continue
            # In this order, as above.
            may_send_more = now < held.latest_seconds and _may_send_more(held)
            if self._was_for_all(number, held.received.is_from_kernel):
                self._forward_unless_reached(held.received)
            elif may_send_more:
                self._held[number] = held._replace(until_seconds=now + held.moment_seconds)
                continue
            else:
                self._forward(number)
            del self._held[number]

    def _forward_unless_reached(self, received: _Received) -> None:
        if self._has_reached_the_job(received.is_from_kernel):
            self._note(received.number)
        else:
            self._forward(received.number)

    def _note(self, number: int) -> None:
        if number in _TELLING:
            self._tell(number)

    def _was_for_all(self, number: int, is_from_kernel: bool) -> bool:
        if number in self._early:  # it came before there was a job
            self._early.remove(number)
            self._witness.saw(number)
            return False
        if self._witness.is_lost:  # the kernel alone is known to signal whole groups
            return is_from_kernel and number != signal.SIGHUP
        is_for_all = self._witness.saw(number)
        # One that came while we asked may be in the answer.
        while is_for_all and number < FIRST_QUEUED and _take_pending(number):
            self._witness.saw(number)
        return is_for_all

    def _has_reached_the_job(self, is_from_kernel: bool) -> bool:
        """Whether a signal for our group reached the job; one that has left it is out of a terminal's reach too.

        For others it may have been a signal for us besides, so to be safe it counts as one for the job.
        """
        try:
            return is_from_kernel or os.getpgid(self.pid) == os.getpgrp()
        except ProcessLookupError:
            return True

    def _forward(self, number: int) -> None:
        self._note(number)
        try:
            os.kill(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # it has just ended, or has become somebody else (sudo)

    def _look_after_children(self) -> Ending | None:
        """Everything that one SIGCHLD may stand for: signals that are the same are merged."""
        if not hasattr(os, "waitid"):
            return self._look_after_the_job()
        while True:
            change = os.waitid(os.P_ALL, 0, os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
            if change is None:
                return None
            if change.si_code == os.CLD_STOPPED:
                os.waitid(os.P_PID, change.si_pid, os.WSTOPPED | os.WNOHANG)
                if change.si_pid == self.pid:
                    self._stop_with_the_job(change.si_status)
            elif change.si_pid == self.pid:
                return self._end()
            else:
                self._reap_orphan(change.si_pid)

    def _reap_orphans(self) -> None:
        """Those that the job has left behind with its own end: it had never waited for them."""
        try:
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                self._reap_orphan(ended.si_pid)
        except ChildProcessError:
            pass  # nobody is left

    def _look_after_the_job(self) -> Ending | None:
        """The same where no child can be looked at without being waited for: on macOS, which hands no orphans to us either.

        What the job used between being read and being waited for, if that was its end, counts as its children's: microseconds.
        """
        while True:
            at_nanoseconds, last = time.monotonic_ns(), read_last_figures(self.pid)
            pid, status, usage = os.wait4(self.pid, os.WNOHANG | os.WUNTRACED)
            if not pid:
                return None
            if not os.WIFSTOPPED(status):
                return self._describe_end(at_nanoseconds, last, status, usage)
            self._stop_with_the_job(os.WSTOPSIG(status))

    def _reap_orphan(self, pid: int) -> None:
        # What outsiders leave behind is inherited, too, and nothing tells the dead apart: then readings must do.
        is_of_the_job = not self.outsiders and not _is_ours(pid)
        _, _, usage = os.wait4(pid, 0)
        if is_of_the_job:
            self._adopted_seconds += usage.ru_utime + usage.ru_stime
            self._adopted_counters = add_counters(self._adopted_counters, find_counters(usage))
            peak = find_peak_bytes(usage)
            self._adopted_peak_bytes = max(self._adopted_peak_bytes, peak)

    def _stop_with_the_job(self, number: int) -> None:
        """The job was stopped, by Ctrl-Z or by itself: our shell must see us so, and will wake us both again.

        What stopped it tells who: SIGSTOP comes from somebody who has its number, and will continue it by its number.
        Where there is no shell with a terminal nobody would wake us then.
        """
        if number == signal.SIGSTOP and not _is_in_the_foreground():
            return
        if self._onlooker is not None:
            self._onlooker.hide()
        _stop_by(number)
        if self._onlooker is not None:
            self._onlooker.wake()

    def _end(self) -> Ending:
        """The job is a zombie: read its clock while it has one, then let it go."""
        at_nanoseconds, last = time.monotonic_ns(), read_last_figures(self.pid)
        _, status, usage = os.wait4(self.pid, 0)
        self._reap_orphans()
        return self._describe_end(at_nanoseconds, last, status, usage)

    def _describe_end(
        self, at_nanoseconds: int, last: LastFigures, status: int, usage: struct_rusage
    ) -> Ending:
        total = usage.ru_utime + usage.ru_stime
        own = total if last.own_cpu_seconds is None else min(last.own_cpu_seconds, total)
        peak = max(find_peak_bytes(usage), self._adopted_peak_bytes)
        return Ending(
            at_nanoseconds,
            os.waitstatus_to_exitcode(status),
            RootFigures(
                own,
                total - own,
                self._adopted_seconds,
                # A process starts with the high-water mark of whoever forked it.
                peak if peak > self._floor_bytes else None,
                last.has_reaped or self._adopted_peak_bytes == peak,
                counters=add_counters(self._adopted_counters, find_counters(usage)),
                is_cpu_split=last.own_cpu_seconds is not None,
                footprint_bytes=last.peak_footprint_bytes,
            ),
        )


def _control_process(option: int, value: int) -> None:
    if sys.platform == "linux":
        call_function(dlsym(dlopen(None, 0), "prctl"), (option, value, 0, 0, 0))  # type: ignore[arg-type]


def _stop_by(number: int) -> None:
    """Stop, by the signal that stopped the job: our shell tells which it was."""
    if signal.getsignal(number) is not signal.SIG_DFL:  # it would not stop us, or cannot be caught
        number = signal.SIGSTOP
    os.kill(os.getpid(), number)
    # While it is blocked, it and one that the terminal has sent us are one.
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _wait_for_signal(signals: set[int], until_seconds: float | None = None) -> _Received | None:
    """The next one; None if there is none until then."""
    seconds = None if until_seconds is None else max(0.0, until_seconds - time.monotonic())
    if hasattr(signal, "sigtimedwait"):
        info = signal.sigwaitinfo(signals) if seconds is None else signal.sigtimedwait(signals, seconds)
        return None if info is None else _Received(info.si_signo, info.si_code > 0, info.si_pid)
    if seconds is not None:
        time.sleep(seconds)
        if signal.sigpending().isdisjoint(signals):
            return None
    return _Received(signal.sigwait(signals))


def _may_send_more(held: _Held) -> bool:
    """Whether its sender may be about to signal the group: it wants to run, and has not waited for anything since."""
    sender = held.received.sender_pid
    has_waited = held.sender_waits is not None and _count_waits(sender) != held.sender_waits
    return not has_waited and _wants_to_run(sender)


def _count_waits(pid: int) -> int | None:
    """How often the first thread of a process has waited for something; None if that cannot be told, as of one that has ended."""
    try:
        return int(read_file(f"/proc/{pid}/status").partition(b"\nvoluntary_ctxt_switches:")[2].split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _wants_to_run(pid: int) -> bool:
    """Whether one of its threads does."""
    try:
        return any(_read_stat(f"{pid}/task/{tid}")[0] == b"R" for tid in os.listdir(f"/proc/{pid}/task"))
    except (OSError, IndexError):
        return False


def _count_threads(pid: int) -> int:
    """0 of one that has ended."""
    try:
        return int(_read_stat(pid)[_N_THREADS])
    except (OSError, ValueError, IndexError):
        return 0


def _take_pending(number: int) -> bool:
    """Take a signal if it has come; whether it has."""
    if number not in signal.sigpending():
        return False
    signal.sigwait({number})
    return True


def _read_stat(pid: int | str) -> list[bytes]:
    """The fields after the name, which may hold anything."""
    return read_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _find_outsiders() -> tuple[int, ...]:
    """What a shell started before it became us by `exec`. Usually there is nothing, which costs one call to learn."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass  # it had ended before
    except ChildProcessError:
        return ()
    from ..sources.processes import list_descendants

    # As the first process of a container we have also inherited our own sampler.
    return tuple(pid for pid in list_descendants(os.getpid()) if not _is_ours(pid))


def _is_in_the_foreground() -> bool:
    """Whether we run at a terminal, in front of it."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _find_environment() -> dict[bytes, bytes]:
    """What we were started with. Python gives itself a UTF-8 locale where there is none; the job must not get it."""
    environment = dict(os.environb)
    try:
        words = read_file("/proc/self/environ").split(b"\0")
    except OSError:
        return environment
    original = dict(word.split(b"=", 1) for word in words if b"=" in word)
    environment.pop(_LOCALE, None)
    if _LOCALE in original:
        environment[_LOCALE] = original[_LOCALE]
    return environment


def _find_inherited(parent: int) -> set[int]:
    """Of what Python ignores, what our parent ignores too and has passed on to us; nothing if that cannot be told.

    One that has adopted us, in another session, has not started us.
    """
    try:
        if os.getsid(0) not in (os.getpid(), os.getsid(parent)):
            return set()
        status = dict(line.split(":\t", 1) for line in read_text(f"/proc/{parent}/status").splitlines())
        ignored = int(status["SigIgn"], 16) if status["Name"] in _PASSING_ON else 0
    except (OSError, ValueError, KeyError):
        return set()
    return {number for number in _IGNORED_BY_PYTHON if ignored >> (number - 1) & 1}


def _is_ours(pid: int) -> bool:
    """A sampler of a tracker inside the job is inherited too, but is not the job's work."""
    try:
        return read_text(f"/proc/{pid}/comm").strip() in (SAMPLER_NAME, WITNESS_NAME)
    except OSError:
        return False


def _explain(number: int, command: str) -> CannotStartError:
    from ..recording.secrets import mask_text

    command = mask_text(command)
    if number == errno.ENOENT:
        hint = " Leave out the quotes, or use `sh -c`." if " " in command else ""
        return CannotStartError(f'Command not found: "{command}".{hint}', NOT_FOUND)
    return CannotStartError(f'Cannot run "{command}": {os.strerror(number)}.', NOT_EXECUTABLE)
