"""A thread that shows a running job: below its output on a terminal, as a line now and then elsewhere.

The command line waits for signals meanwhile. The job never waits for this thread, and it fails alone.
"""

from __future__ import annotations

import sys
import threading

from ..core.errors import RecordingError
from .lookout import Lookout
from .margin import Margin, can_show
from .panel import build_line
from .terminal import write

if sys.platform == "win32":
    _TERMINAL_ERRORS: tuple[type[Exception], ...] = (OSError,)
else:
    import termios

    _TERMINAL_ERRORS = (OSError, termios.error)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..analysis.findings.finding import Finding
    from ..recording.follow import Source
    from ..reports.choices import Choices

_FRAME_SECONDS, _LINE_SECONDS = 1.0, 60.0
# A terminal that was stopped with Ctrl-S takes nothing.
_PATIENCE_SECONDS = 1.0
_CROWDED_OUT = "--live: this terminal showed another run."


class Window:
    """Open until it is closed. Without `seconds` it is as fast as suits the place; None as `fd` shows nothing, but looks."""

    def __init__(
        self,
        source: Source,
        choices: Choices,
        fd: int | None,
        seconds: float | None = None,
        tell: Callable[[Finding], object] | None = None,
    ) -> None:
        self._fd = fd
        self._margin = Margin(fd) if fd is not None and can_show(fd) else None
        self._seconds = seconds or (
            _LINE_SECONDS if fd is not None and self._margin is None else _FRAME_SECONDS
        )
        self._lookout = Lookout(source, choices, tell)
        self._lock = threading.Lock()
        self._wakes = threading.Event()
        self._is_closed = self._is_hidden = False
        self.problem = ""
        """Why nothing was shown, or not until the end."""
        threading.Thread(target=self._run, name="gpu-tracker-window", daemon=True).start()

    def wake(self) -> None:
        """The terminal has changed."""
        self._is_hidden = False
        if self._margin is not None:
            self._wakes.set()

    def hide(self) -> None:
        """Give the terminal back; `wake` shows the panel again."""
        if self._margin is None or not self._lock.acquire(timeout=_PATIENCE_SECONDS):
            return
        try:
            self._is_hidden = True
            self._margin.hide()
        except _TERMINAL_ERRORS:
            pass  # the terminal has gone
        finally:
            self._lock.release()

    def close(self) -> None:
        """Show nothing more. A thread that is busy with a long recording is not waited for."""
        self._is_closed = True
        self.hide()
        self._wakes.set()
        if self._margin is not None and self._margin.was_crowded_out():
            self.problem = self.problem or _CROWDED_OUT

    def _run(self) -> None:
        try:
            if self._margin is None:  # lines come after their time
                self._wakes.wait(self._seconds)
            while not self._is_closed and self._show():
                self._wakes.wait(self._seconds)
                self._wakes.clear()
        except RecordingError as error:
            self.problem = f"--live stopped: {error}"
        except _TERMINAL_ERRORS:
            pass  # the terminal has gone
        except Exception as error:  # noqa: BLE001 - whatever it is, the job goes on
            self.problem = f"--live stopped: {type(error).__name__}: {error}"
        finally:
            self.hide()

    def _show(self) -> bool:
        glimpse = self._lookout.look()
        if self._margin is None:
            return self._fd is None or write(f"{build_line(glimpse)}\n", self._fd)
        with self._lock:
            return self._is_closed or self._is_hidden or self._margin.show(glimpse)
