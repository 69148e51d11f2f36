"""Programs of the system that are run for what they print. None outlives us, however we end.

A program that hangs in a driver would not notice our end. So each has a small shell beside it that notices, and
kills it. (The kernel's own PR_SET_PDEATHSIG would need code between fork and exec, and strikes when the
starting *thread* ends.)
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
# The shell keeps nothing of the program's output open, so that the end of the output is the end of the program.
_WATCHED = '"$@" </dev/null & exec >/dev/null 2>&1; read -r _; kill -9 $!; wait $!'
_CHUNK_BYTES = 1 << 16
_MOST_BYTES = 1 << 22  # who prints more than any table has lost its way
_LONGEST_WAIT_SECONDS = 1.0
_END_SECONDS = 2.0
_NAP_SECONDS = 0.002


class Answer(NamedTuple):
    """What a program said."""

    text: str | None
    """None: it did not end in time."""
    status: int | None
    """As a shell has it: 128 and more for a signal. None: not known."""
    cpu_seconds: float


def run(
    commands: Sequence[Sequence[str]], patience_seconds: float, grace_seconds: float | None = None
) -> list[Answer]:
    """What each of these prints, run side by side; once one has ended, the others have that grace at most."""
    import select

    running: list[_Command] = []
    try:
        for arguments in commands:
            running.append(_Command(arguments))  # noqa: PERF401 - those before one that fails must be ended
        waiting = running
        while waiting and patience_seconds > 0:
            if grace_seconds is not None and len(waiting) < len(running):
                patience_seconds, grace_seconds = min(patience_seconds, grace_seconds), None
            poll = select.poll()
            for command in waiting:
                poll.register(command.output_fd, select.POLLIN)
            began = time.monotonic()
            poll.poll(1000 * min(patience_seconds, _LONGEST_WAIT_SECONDS))
            # Who was frozen together with them, in a container that was paused, gives them their time afterwards.
            patience_seconds -= min(time.monotonic() - began, _LONGEST_WAIT_SECONDS)
            waiting = [command for command in waiting if not command.has_ended()]
    finally:
        for command in running:
            command.stop()
        deadline = time.monotonic() + _END_SECONDS
        answers = [command.wait(deadline) for command in running]
    return answers


class _Command:
    """A running program, and what it has printed so far."""

    def __init__(self, arguments: Sequence[str]) -> None:
        import signal

        self._printed = b""
        self._has_ended = False
        self.output_fd, theirs = os.pipe()
        watched, self._lifeline_fd = os.pipe()
        try:
            self._shell_pid = os.posix_spawn(
                _SHELL,
                # By its name a look at a process tree knows whose it is.
                [_SHELL, "-c", _WATCHED, IGNORED_ARGUMENTS[0], *arguments],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, watched, 0),
                    (os.POSIX_SPAWN_DUP2, theirs, 1),
                    (os.POSIX_SPAWN_DUP2, theirs, 2),
                ],
                # A group of its own: Ctrl-C at a terminal is meant for the job.
                setpgroup=0,
                setsigmask=[],
                # Python ignores these, and our parent may ignore the last: what is ignored stays so across exec.
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD],
            )
        except OSError:
            os.close(self.output_fd)
            os.close(self._lifeline_fd)
            raise
        finally:
            os.close(theirs)
            os.close(watched)
        os.set_blocking(self.output_fd, False)

    def has_ended(self) -> bool:
        """Take what has arrived; whether that was the last of it, or more than enough."""
        while not self._has_ended:
            try:
                piece = os.read(self.output_fd, _CHUNK_BYTES)
            except BlockingIOError:
                break
            self._printed += piece
            self._has_ended = not piece or len(self._printed) >= _MOST_BYTES
        return self._has_ended

    def stop(self) -> None:
        """Have it killed, if it has not ended."""
        os.close(self._lifeline_fd)
        os.close(self.output_fd)

    def wait(self, deadline: float) -> Answer:
        """Until nothing is left of it, not even a zombie."""
        text = self._printed.decode("utf-8", "replace") if self._has_ended else None
        try:
            while True:
                pid, status, usage = os.wait4(self._shell_pid, os.WNOHANG)
                if pid:
                    return Answer(text, os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime)
                if time.monotonic() > deadline:
                    break
                time.sleep(_NAP_SECONDS)
            # Stuck in a driver, where nothing can be killed; its shell need not wait for it.
            import signal

            os.killpg(self._shell_pid, signal.SIGKILL)
            os.waitpid(self._shell_pid, 0)
        except ChildProcessError:
            pass  # somebody else has waited for it
        return Answer(text, None, 0.0)
