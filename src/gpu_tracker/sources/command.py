"""A program of the system that prints: run once, or listened to while it runs. It never outlives us.

A program that prints now and then notices our end by the closed pipe; one that has nothing to print, or hangs
in a driver, does not. So each has a small shell beside it that waits for our end and kills it. (The kernel's own
PR_SET_PDEATHSIG would need code between fork and exec, and strikes when the starting *thread* ends.)
"""

from __future__ import annotations

import os
import time

from . import IGNORED_ARGUMENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_SHELL = "/bin/sh"
# The inner shell says its pid and becomes the program; the outer one keeps nothing of the program's output open,
# so that the end of the output is the end of the program.
_WATCHED = (
    'sh -c \'echo $$; exec "$0" "$@"\' "$@" </dev/null & exec >/dev/null 2>&1; read -r _; kill -9 $!; wait'
)
_CHUNK_BYTES = 1 << 16
_MOST_TAKEN_BYTES = 1 << 20
_PATIENCE_SECONDS = 2.0
_NAP_SECONDS = 0.005


class Command:
    """A running program, and what it has printed since it was last asked. Nothing here waits, except `close`."""

    def __init__(self, arguments: Sequence[str]) -> None:
        import signal

        self._pid: int | None = None
        self._unread = b""
        self._is_reaped = False
        self.has_ended = False
        """Its output is at its end: the program is, too."""
        self._output_fd, theirs = os.pipe()
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
                # Python ignores these, and what is ignored stays so across exec.
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
            )
        except OSError:
            os.close(self._output_fd)
            os.close(self._lifeline_fd)
            raise
        finally:
            os.close(theirs)
            os.close(watched)
        os.set_blocking(self._output_fd, False)

    def fileno(self) -> int:
        """What to wait on for more."""
        return self._output_fd

    def take(self) -> bytes:
        """What has arrived."""
        pieces = [self._unread]
        for _ in range(_MOST_TAKEN_BYTES // _CHUNK_BYTES):
            if self.has_ended:
                break
            try:
                piece = os.read(self._output_fd, _CHUNK_BYTES)
            except BlockingIOError:
                break
            pieces.append(piece)
            self.has_ended = not piece
        taken, self._unread = b"".join(pieces), b""
        if self._pid is None:
            pid, newline, rest = taken.partition(b"\n")
            if not newline:
                self._unread = taken
                return b""
            taken, self._pid = rest, int(pid) if pid.isdigit() else 0
        return taken

    def count_sleeps(self) -> int | None:
        """How often it has gone to sleep: what runs in rounds grows. None where the kernel does not tell."""
        try:
            with open(f"/proc/{self._pid}/status", "rb") as file:
                _, _, count = file.read().partition(b"\nvoluntary_ctxt_switches:")
            return int(count.split(maxsplit=1)[0])
        except (OSError, ValueError, IndexError):
            return None

    def stop(self) -> None:
        """Have it killed; `is_gone` tells when that is done."""
        if self._lifeline_fd >= 0:
            os.close(self._lifeline_fd)
            os.close(self._output_fd)
            self._lifeline_fd = self._output_fd = -1
            self.has_ended = True

    def is_gone(self) -> bool:
        """Whether nothing is left of it, not even a zombie."""
        if not self._is_reaped:
            try:
                pid, _ = os.waitpid(self._shell_pid, os.WNOHANG)
            except ChildProcessError:
                pid = self._shell_pid  # somebody else has waited for it
            self._is_reaped = pid != 0
        return self._is_reaped

    def close(self) -> None:
        """Stop it, and wait a little for its end."""
        self.stop()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self.is_gone() and time.monotonic() < deadline:
            time.sleep(_NAP_SECONDS)
        if not self._is_reaped:
            # Stuck in a driver, where nothing can be killed; its shell need not wait for it.
            import signal

            os.killpg(self._shell_pid, signal.SIGKILL)
            os.waitpid(self._shell_pid, 0)
            self._is_reaped = True


def run(commands: Sequence[Sequence[str]], patience_seconds: float) -> list[str | None]:
    """What each of these prints, run side by side; None for one that does not end in time."""
    import select

    deadline = time.monotonic() + patience_seconds
    running: list[Command] = []
    printed = [b""] * len(commands)
    try:
        for arguments in commands:
            running.append(Command(arguments))  # noqa: PERF401 - those before one that fails must be closed
        while True:
            for number, command in enumerate(running):
                printed[number] += command.take()
            waiting = [command for command in running if not command.has_ended]
            remaining = deadline - time.monotonic()
            if not waiting or remaining <= 0:
                break
            poll = select.poll()
            for command in waiting:
                poll.register(command.fileno(), select.POLLIN)
            poll.poll(1000 * remaining)
        return [
            text.decode("utf-8", "replace") if command.has_ended else None
            for text, command in zip(printed, running, strict=True)
        ]
    finally:
        for command in running:
            command.stop()
        for command in running:
            command.close()
