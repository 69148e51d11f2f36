"""The tracked command on Windows: started in our console, so that Ctrl-C reaches it as it reaches us, and waited for.

It starts in a job object of its own, which counts what all its processes have used, also those that have ended unseen.
"""

# ruff: noqa: E402
from __future__ import annotations

import sys

assert sys.platform == "win32"

import os
import time

from ..core import signal
from ..core.model import RootFigures
from ..sources.platform import windows
from .interrupts import raise_interrupts
from .job import NOT_EXECUTABLE, NOT_FOUND, CannotStartError, Ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from .job import Onlooker

_SUFFIXES = ".COM;.EXE;.BAT;.CMD"
_SCRIPTS = (".bat", ".cmd")
_NOT_FOUND_ERRORS, _NOT_EXECUTABLE_ERRORS = (2, 3), (5, 193)


class Job:
    """A command: about to be started, then running, then ended."""

    outsiders: tuple[int, ...] = ()

    def __init__(self, arguments: list[str], tell: Callable[[int], object] = bool) -> None:
        """`tell` is given every signal that may end the job."""
        self._arguments = arguments
        self._tell = tell
        self._handlers: dict[int, Any] = {}
        self._job = windows.JobObject()

    def start(self) -> None:
        """Start it. CannotStartError if that is not possible."""
        for number in (signal.SIGINT, signal.SIGBREAK):
            # Not ignored: the job would inherit that. It gets the same event, from the same console.
            self._handlers[number] = signal.signal(number, self._note)
        raise_interrupts()
        program = find_program(self._arguments[0], os.environ)
        if program is None:
            self._give_back()
            raise _explain(_NOT_FOUND_ERRORS[0], self._arguments[0])
        try:
            self.pid, self._handle = self._job.start(program, build_command_line(program, self._arguments))
        except OSError as error:
            self._give_back()
            raise _explain(error.winerror or 0, self._arguments[0]) from None
        self.started_nanoseconds = time.monotonic_ns()
        self._job.resume()
        self.before = RootFigures(0.0, 0.0)
        """What the process had used before it ran."""

    def replace_us(self) -> NoReturn:
        """No process can become another program here."""
        raise CannotStartError(f'Cannot run "{self._arguments[0]}".', NOT_EXECUTABLE)

    def wait(self, onlooker: Onlooker | None = None) -> Ending:  # noqa: ARG002 - no signal tells of the terminal
        """Wait until the job has ended."""
        while not windows.is_ready(self._handle, _LONG_SECONDS):
            pass  # handlers of interrupts run in between
        at_nanoseconds = time.monotonic_ns()
        code = windows.read_exit_code(self._handle) or 0
        ending = Ending(at_nanoseconds, code, self._read_figures())
        windows.close_handle(self._handle)
        return ending

    def close(self) -> None:
        """Let go of it."""
        self._job.close()
        self._give_back()

    def _read_figures(self) -> RootFigures | None:
        """What it and all its processes have used; None where Windows does not report it."""
        own_seconds = windows.read_times(self._handle)
        if own_seconds is None:
            return None
        total_seconds = self._job.read_cpu_seconds()
        # Those that still run are counted by whoever reads them.
        running = set(self._job.list_pids())
        of_running = sum(row.cpu_seconds for row in windows.read_table() if row.pid in running)
        return RootFigures(
            own_seconds,
            0.0,
            adopted_cpu_seconds=max(0.0, total_seconds - own_seconds - of_running),
            own_peak_bytes=windows.read_peak_bytes(self._handle),
        )

    def _note(self, number: int, _frame: object) -> None:
        self._tell(number)

    def _give_back(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers.clear()


_LONG_SECONDS = 3600.0


def find_program(name: str, environment: Any) -> str | None:
    """The file that a shell would run: here, or on the PATH, with one of the usual suffixes."""
    suffixes = environment.get("PATHEXT", _SUFFIXES).lower().split(os.pathsep)
    names = [name] if name.lower().endswith(tuple(suffixes)) else [name + suffix for suffix in suffixes]
    folders = [""] if os.path.dirname(name) else ["", *environment.get("PATH", "").split(os.pathsep)]
    candidates = (os.path.join(folder, file) for folder in folders for file in (*names, name))
    return next((os.path.abspath(path) for path in candidates if os.path.isfile(path)), None)


def build_command_line(program: str, arguments: list[str]) -> str:
    """What the program gets, as the C runtime takes it apart again; a script is run by the command interpreter."""
    line = windows.quote([program if program.lower().endswith(_SCRIPTS) else arguments[0], *arguments[1:]])
    if program.lower().endswith(_SCRIPTS):
        return f'{os.environ.get("COMSPEC", "cmd.exe")} /d /s /c "{line}"'
    return line


def _explain(number: int, command: str) -> CannotStartError:
    from ..recording.secrets import mask_text

    command = mask_text(command)
    if number in _NOT_FOUND_ERRORS:
        hint = " Leave out the quotes, or use `cmd /c`." if " " in command else ""
        return CannotStartError(f'Command not found: "{command}".{hint}', NOT_FOUND)
    reason = "it is not a program" if number in _NOT_EXECUTABLE_ERRORS else f"error {number}"
    return CannotStartError(f'Cannot run "{command}": {reason}.', NOT_EXECUTABLE)
