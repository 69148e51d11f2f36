"""Run system commands for their output. None outlives us, however we end.

A command that hangs in a driver would not notice that we ended, so a small shell beside it does, and kills it.
(PR_SET_PDEATHSIG would need code between fork and exec, and fires when the starting *thread* ends.)
"""

from __future__ import annotations

import os
import time

from ..core.values import NamedTuple
from . import IGNORED_ARGUMENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_SHELL = "/bin/sh"
# The shell closes its own copy of the output, so that the output ends when the program ends.
_WATCHED = '"$@" </dev/null & exec >/dev/null 2>&1; read -r _; kill -9 $!; wait $!'
_CHUNK_BYTES = 1 << 16
_MOST_BYTES = 1 << 22  # more than any table; the program is out of control
_LONGEST_WAIT_SECONDS = 1.0
_END_SECONDS = 2.0
_NAP_SECONDS = 0.002


class Answer(NamedTuple):
    """The output of a program."""

    text: str | None
    """None: it did not end in time."""
    status: int | None
    """As in a shell: 128 + the number of a signal. None: unknown."""
    cpu_seconds: float
    errors: str = ""
    """What it printed on standard error."""


def run(
    commands: Sequence[Sequence[str]], patience_seconds: float, grace_seconds: float | None = None
) -> list[Answer]:
    """Run these in parallel and return their output; after the first has ended, the others have the grace period."""
    import select

    running: list[_Command] = []
    try:
        for arguments in commands:
            running.append(_Command(arguments))  # noqa: PERF401 - if one fails, those started before must be ended
        waiting = running
        while waiting and patience_seconds > 0:
            if grace_seconds is not None and len(waiting) < len(running):
                patience_seconds, grace_seconds = min(patience_seconds, grace_seconds), None
            poll = select.poll()
            for command in waiting:
                for fd in command.list_open():
                    poll.register(fd, select.POLLIN)
            began = time.monotonic()
            poll.poll(1000 * min(patience_seconds, _LONGEST_WAIT_SECONDS))
            # A paused container freezes us together with them: that time does not count.
            patience_seconds -= min(time.monotonic() - began, _LONGEST_WAIT_SECONDS)
            waiting = [command for command in waiting if not command.has_ended()]
    finally:
        for command in running:
            command.stop()
        deadline = time.monotonic() + _END_SECONDS
        answers = [command.wait(deadline) for command in running]
    return answers


class _Command:
    """A running program and its output so far."""

    def __init__(self, arguments: Sequence[str]) -> None:
        import signal

        self._output, self._errors = _Pipe(), _Pipe()
        watched, self._lifeline_fd = os.pipe()
        try:
            self._shell_pid = os.posix_spawn(
                _SHELL,
                # This name marks it as the tracker's in the process tree.
                [_SHELL, "-c", _WATCHED, IGNORED_ARGUMENTS[0], *arguments],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, watched, 0),
                    (os.POSIX_SPAWN_DUP2, self._output.theirs, 1),
                    (os.POSIX_SPAWN_DUP2, self._errors.theirs, 2),
                ],
                # Its own process group: Ctrl-C in a terminal is meant for the job.
                setpgroup=0,
                setsigmask=[],
                # Python ignores the first two, our parent may ignore the last, and exec does not reset them.
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD],
            )
        except OSError:
            self._output.close()
            self._errors.close()
            os.close(self._lifeline_fd)
            raise
        finally:
            os.close(self._output.theirs)
            os.close(self._errors.theirs)
            os.close(watched)

    def list_open(self) -> list[int]:
        """What to wait for."""
        return [pipe.ours for pipe in (self._output, self._errors) if not pipe.has_ended]

    def has_ended(self) -> bool:
        """Read what has arrived; whether the output is complete, or too long."""
        self._errors.read()
        self._output.read()
        return self._output.has_ended

    def stop(self) -> None:
        """Kill it if it still runs."""
        os.close(self._lifeline_fd)
        self._errors.read()
        self._output.close()
        self._errors.close()

    def wait(self, deadline: float) -> Answer:
        """Wait until it is reaped."""
        text = self._output.decode() if self._output.has_ended else None
        errors = self._errors.decode()
        try:
            while True:
                pid, status, usage = os.wait4(self._shell_pid, os.WNOHANG)
                if pid:
                    cpu_seconds = usage.ru_utime + usage.ru_stime
                    return Answer(text, os.waitstatus_to_exitcode(status), cpu_seconds, errors)
                if time.monotonic() > deadline:
                    break
                time.sleep(_NAP_SECONDS)
            # Stuck in a driver, it cannot be killed; its shell need not wait for it.
            import signal

            os.killpg(self._shell_pid, signal.SIGKILL)
            os.waitpid(self._shell_pid, 0)
        except ChildProcessError:
            pass  # already reaped elsewhere
        return Answer(text, None, 0.0, errors)


class _Pipe:
    """What a program prints, as it arrives."""

    def __init__(self) -> None:
        self.ours, self.theirs = os.pipe()
        os.set_blocking(self.ours, False)
        self._printed = b""
        self.has_ended = False

    def read(self) -> None:
        """Read what has arrived."""
        while not self.has_ended:
            try:
                piece = os.read(self.ours, _CHUNK_BYTES)
            except BlockingIOError:
                break
            self._printed += piece
            self.has_ended = not piece or len(self._printed) >= _MOST_BYTES

    def decode(self) -> str:
        return self._printed.decode("utf-8", "replace")

    def close(self) -> None:
        """Read no more."""
        os.close(self.ours)
