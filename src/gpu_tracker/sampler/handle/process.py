"""The tracker's handle on its sampler: start it, and exchange messages with it.

Nothing here raises because the sampler is slow, stopped or dead; return values say so.
"""

from __future__ import annotations

import os
import sys
import time
from _functools import partial  # type: ignore[import-not-found] # what functools exports, without importing that
from _thread import allocate_lock

from ...core import list_signals, signal
from ...core.errors import TrackerError, UsageError
from ...sources.platform import (
    await_end,
    await_end_of_child,
    end_process,
    has_ended_children,
    is_child,
    is_ready,
    open_exit,
    read_cpu_clock,
    read_pipe,
    write_pipe,
)
from .wire import Inbox, pack

if sys.platform == "win32":
    from .windows import Handle as Descriptor, make_pipe, make_unnamed_file, start as start_apart
else:
    from .descriptor import Descriptor, make_pipe, make_unnamed_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_PACKAGE_PARENT = os.path.abspath(__file__).rsplit(os.sep, 4)[0]
READY_SECONDS = 20.0
_END_SECONDS = 1.0
_RECORDING_FD, _REPLIES_FD = 3, 4
# -I -S: no environment, user site or .pth files of the job; the paths are arguments and come after the
# standard library, so that no file of the job can shadow it.
# It first becomes an orphan: a program that waits for all its children must not wait for the sampler.
_BOOT = (
    "import gc, posix, sys; gc.disable(); posix.fork() and posix._exit(0); sys.path += sys.argv[1:]; "
    "from gpu_tracker.sampler.child import main; main()"
)
# Keyboard and terminal signals are meant for the job, and so is a SIGTERM to the process group: the sampler
# ends a moment after the job, when the last figures are written.
_NOT_FOR_THE_SAMPLER = list_signals("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGTSTP", "SIGUSR1", "SIGUSR2")

_open_handles: set[SamplerProcess] = set()
_is_fork_hook_set = False
_reaped_cpu_seconds = 0.0
reaping = allocate_lock()
"""Held while a process of ours is waited for: whoever wants to know what the job's children have used must not read in between."""


def reaped_cpu_seconds() -> float:
    """CPU time of this process's samplers, which the kernel counts among its children's. Call it holding `reaping`."""
    return _reaped_cpu_seconds


# Nothing else can end it without a word.
CRASH_HINT = (
    "Unless someone killed it, the library of a GPU driver crashed: reinstall that driver. "
    "`gpu-tracker run --gpu none` measures everything but GPUs."
)
# Where there is no GPU, and so no driver.
KILL_HINT = "Someone killed it, or the system did for want of memory."
# What the owner's or parent's own `getrusage` tells at the end.
WITHOUT_A_SAMPLER = "only time, CPU and the peak memory of the largest process will be reported"


class without_child_signals:  # noqa: N801 - used like a keyword
    """Hide samplers started in this context from the program's own SIGCHLD handler.

    A signal mask would not do: it applies to one thread, and the kernel would choose another. A class, because
    importing contextlib costs more.
    """

    def __enter__(self) -> None:
        self._handler = None
        if sys.platform == "win32":
            return  # it has no such signal
        handler = signal.getsignal(signal.SIGCHLD)
        self._handler = handler if callable(handler) and _set_child_handler(signal.SIG_DFL) else None

    def __exit__(self, *_: object) -> None:
        if self._handler is not None and sys.platform != "win32":
            _set_child_handler(self._handler)
            if has_ended_children():
                os.kill(os.getpid(), signal.SIGCHLD)  # a child of the program has ended meanwhile


def _set_child_handler(handler: Any) -> bool:
    try:
        signal.signal(signal.SIGCHLD, handler)
    except ValueError:
        return False  # allowed in the main thread only
    return True


class SamplerProcess:
    """A running sampler. `pid` is 0 until it has reported it."""

    def __init__(self) -> None:
        self.pid = 0
        self.is_gone = False
        self.failure = ""
        self.refusal = ""
        """Why it cannot write to the file of the recording; it works all the same."""
        self._pidfd: Descriptor | None = None
        self._inbox = Inbox()
        self._unread: list[tuple[str, tuple[Any, ...]]] = []
        self._requests = 0
        self._descriptors: list[Descriptor] = []
        self._starters: list[int] = []
        """The short-lived process that starts the sampler, until it is reaped."""
        theirs: list[Descriptor] = []
        try:
            self._unnamed_recording = make_unnamed_file()
            self._descriptors.append(self._unnamed_recording)
            commands_in, self._commands = make_pipe()
            theirs.append(commands_in)
            self._descriptors.append(self._commands)
            self._replies, replies_out = make_pipe()
            theirs.append(replies_out)
            self._descriptors.append(self._replies)
            started = _spawn(commands_in.number, replies_out.number, self._unnamed_recording)
            if sys.platform == "win32":
                self._take_pid(*started)
            else:
                self._starters.extend(started)
            _open_handles.add(self)
            _close_handles_in_forks()
        except OSError as error:
            self.close()
            raise TrackerError(f"The sampler could not be started: {error.strerror}.") from None
        except BaseException:  # Ctrl-C, most likely: nobody else knows of it yet
            self.close()
            raise
        finally:
            for descriptor in theirs:
                descriptor.close()

    def wait_until_ready(self, timeout_seconds: float) -> bool:
        """Wait until the sampler is ready; whether it is."""
        self.reap_starter()
        message = self._receive("ready", time.monotonic() + timeout_seconds)
        if message is not None:
            (self.refusal,) = message
        return message is not None

    def _take_pid(self, pid: int) -> None:
        self.pid = pid
        try:
            self._pidfd = Descriptor(open_exit(pid) if sys.platform == "win32" else os.pidfd_open(pid))
        except (AttributeError, OSError):
            self._pidfd = None  # the pid is used instead
        else:
            self._descriptors.append(self._pidfd)

    def hold(self, fd: int) -> None:
        """Keep a descriptor open as long as the pipes; forked workers must not have it either."""
        self._descriptors.append(Descriptor(fd))

    def reap_starter(self) -> None:
        """Reap the short-lived process that started the sampler.

        In a threaded program its end may be signalled to any thread; while the main thread waits here, no handler
        of the program can run and reap it first.
        """
        for pid in tuple(self._starters):
            _wait_for(pid)
            self._starters.clear()  # only now: whoever is interrupted meanwhile comes again when it is closed

    def send(self, word: str, *values: Any) -> bool:
        """Send a message; whether the sampler still runs."""
        if not self.is_gone:
            self.is_gone = not write_quietly(self._commands.number, pack(word, *values))
        return not self.is_gone

    def request(self, word: str, *values: Any) -> int:
        """Send a message that requires an answer; returns its number for `receive`."""
        self._requests += 1
        self.send(word, self._requests, *values)
        return self._requests

    def receive(self, word: str, request: int, timeout_seconds: float) -> tuple[Any, ...] | None:
        """The answer to a request, or None if it does not arrive in time. Older answers are dropped."""
        deadline = time.monotonic() + timeout_seconds
        while (message := self._receive(word, deadline)) is not None:
            if message[0] == request:
                return message[1:]
        return None

    def resolve_gpus(
        self, names: tuple[str, ...] | None, vendors: tuple[str, ...] | None
    ) -> tuple[str, ...] | None:
        """UUIDs of the devices that a user named; raises ValueError if there are devices, but none of that name."""
        if names is None:
            return None
        answer = self.receive("resolved", self.request("resolve", names, vendors), READY_SECONDS)
        if answer is None:
            return names  # a slow driver is no reason to refuse a job
        uuids, problem = answer
        if problem:
            raise UsageError(problem)
        return tuple(uuids)

    @property
    def replies_fd(self) -> int:
        """A descriptor to poll."""
        return self._replies.number

    @property
    def unnamed_recording_fd(self) -> int:
        """The recording that has no path."""
        return self._unnamed_recording.number

    def kill(self) -> None:
        """Kill it."""
        if sys.platform == "win32":
            end_process(self.pid)
        else:
            self._signal(signal.SIGKILL)
        self.failure = "it did not answer"
        self.is_gone = True

    def wake(self) -> None:
        """Continue it, if somebody has stopped it."""
        if sys.platform != "win32":
            self._signal(signal.SIGCONT)

    def has_ended(self) -> bool:
        """Whether it writes nothing any more; waits a moment for one that was killed."""
        if not self.pid:
            return self.is_gone
        if self._pidfd is None or self._pidfd.number < 0:
            return await_end(self.pid, _END_SECONDS)
        return is_ready(self._pidfd.number, _END_SECONDS)

    def close(self) -> None:
        """Close all descriptors, which also ends the sampler."""
        _open_handles.discard(self)
        for descriptor in self._descriptors:
            descriptor.close()
        self.is_gone = True
        self.reap_starter()
        if sys.platform == "win32" and self.pid:
            await_end(self.pid, _END_SECONDS)  # what it has open cannot be removed

    @property
    def is_child(self) -> bool:
        """Whether it is our child: as process 1 we inherit every orphan."""
        return is_child(self.pid)

    def reap(self) -> None:
        """Reap an ended sampler, if there was one and it is our child."""
        if self.pid and self.is_child:
            _wait_for(self.pid)

    def _signal(self, number: int) -> None:
        """By descriptor, because its pid may have been reused."""
        try:
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd.number, number)
            elif self.pid and not self.is_gone:
                os.kill(self.pid, number)
        except OSError:
            pass  # already ended

    def _receive(self, word: str, deadline: float) -> tuple[Any, ...] | None:
        while True:
            while self._unread:
                received, values = self._unread.pop(0)
                if received == word:
                    return values
                if received == "failed":
                    self.is_gone = True
                    (self.failure,) = values
                elif received == "started" and not self.pid:
                    self._take_pid(*values)
            wait = deadline - time.monotonic()
            if self.is_gone and wait > 0:
                wait = 0.0
            replies = self._replies.number
            if replies < 0:
                self.is_gone = True
                return None
            if not is_ready(replies, max(0.0, wait)):
                return None
            chunk = read_pipe(replies)
            if not chunk:
                self.is_gone = True
                return None
            self._unread.extend(self._inbox.feed(chunk))


def start_sampler(say: Callable[[str], None]) -> SamplerProcess | None:
    """A starting sampler, or None after a note to the user."""
    try:
        return SamplerProcess()
    except TrackerError as error:
        say(f"{error} O{WITHOUT_A_SAMPLER[1:]}.")
        return None


def find_python() -> str:
    """A Python interpreter for the sampler; `sys.executable` may be a program that embeds Python."""
    binaries = sys.base_prefix if sys.platform == "win32" else os.path.join(sys.base_prefix, "bin")
    candidates = (
        sys.executable,
        getattr(sys, "_base_executable", ""),
        os.path.join(binaries, f"python{sys.version_info.major}.{sys.version_info.minor}"),
        os.path.join(binaries, "python3"),
    )
    for candidate in candidates:
        is_python = os.path.basename(candidate or "").startswith(("python", "pypy"))
        if is_python and os.access(candidate, os.X_OK):
            return candidate
    raise TrackerError(
        "No Python interpreter was found for the sampler.",
        f"sys.executable is {sys.executable!r}.",
    )


def _spawn(commands: int, replies: int, recording: Descriptor) -> Iterable[int]:
    """Start the interpreter with posix_spawn, which does not copy the caller's page tables, when its pid is asked for.

    Where a list takes it from here, no handler of a signal can raise in between, and no process gets lost.
    """
    python = find_python()
    paths = [_PACKAGE_PARENT]
    paths += [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    if sys.platform == "win32":
        return (start_apart(python, paths, commands, replies, recording.path),)
    arguments = [python, "-I", "-S", "-c", _BOOT, *paths]
    # Preloaded libraries (allocators, I/O tracers that write a file per process) are meant for the job.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    start = partial(
        os.posix_spawn,
        # In this order none overwrites one that is still needed, because ours are all 3 or above. Drivers have been
        # seen to print, so that the standard output is not for replies.
        file_actions=[
            (os.POSIX_SPAWN_DUP2, commands, 0),
            (os.POSIX_SPAWN_DUP2, replies, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, recording.number, _RECORDING_FD),
            (os.POSIX_SPAWN_DUP2, 1, _REPLIES_FD),
            (os.POSIX_SPAWN_DUP2, 2, 1),
        ],
        setsid=True,
        setsigmask=_NOT_FOR_THE_SAMPLER,
    )
    return map(start, (python,), (arguments,), (environment,))


def _wait_for(pid: int) -> None:
    """Wait for a process of ours. Every sampler is told what it used before that counts as used by the job's children."""
    global _reaped_cpu_seconds
    try:
        await_end_of_child(pid)
        with reaping:
            announced = _read_cpu_seconds(pid)
            _discount(announced)
            _, _, usage = os.wait4(pid, 0)
            seconds = usage.ru_utime + usage.ru_stime
            _reaped_cpu_seconds += seconds
            _discount(seconds - announced)
    except ChildProcessError:
        pass  # the program ignores its children, or has reaped them all


def _read_cpu_seconds(pid: int) -> float:
    """CPU time of a zombie, in whole microseconds as `wait4` will report it."""
    return int(1e6 * (read_cpu_clock(pid) or 0.0)) / 1e6  # without the clock it is reported a moment late


def _discount(seconds: float) -> None:
    if seconds:
        for handle in tuple(_open_handles):
            handle.send("discount", seconds)


def write_quietly(fd: int, message: bytes) -> bool:
    """Write without raising SIGPIPE, which would be fatal in a program that has restored its default action."""
    if sys.platform == "win32":
        try:
            write_pipe(fd, message)
        except OSError:
            return False
        return True
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPIPE])
    try:
        while message:
            message = message[os.write(fd, message) :]
    except OSError:
        if signal.SIGPIPE in signal.sigpending():
            signal.sigwait([signal.SIGPIPE])
        return False
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return True


def _close_handles_in_forks() -> None:
    """Forked workers must not hold the pipes, or the sampler could not see the program's end."""
    global _is_fork_hook_set
    if not _is_fork_hook_set and hasattr(os, "register_at_fork"):
        _is_fork_hook_set = True
        os.register_at_fork(after_in_child=_close_all)


def _close_all() -> None:
    global reaping
    reaping = allocate_lock()  # whoever held it is not in this process
    for handle in tuple(_open_handles):
        handle.close()
