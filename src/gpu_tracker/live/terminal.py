"""The terminal: text on it, and a full screen that is always restored."""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from ..core import list_signals
from ..core.values import NamedTuple
from .abilities import get_encoding, has_unicode, read_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from typing_extensions import Self

_IN, _OUT, _ERR = 0, 1, 2
_NAP_SECONDS = 0.05
# The alternate screen, without cursor or wrapping: a line that is too long is cut.
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
_SIGNALS = list_signals("SIGINT", "SIGBREAK", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP", "SIGWINCH")


def write(text: str, fd: int = _OUT) -> bool:
    """Write it; False if the reader has gone."""
    try:
        write_all(text, fd)
    except OSError:
        return False
    return True


def write_all(text: str, fd: int = _OUT) -> None:
    """Write it, or raise."""
    encoding = get_encoding()
    if not has_unicode():
        text = text.replace("…", ">")
    if sys.platform == "win32" and os.isatty(fd):
        console = sys.stderr if fd == _ERR else sys.stdout  # bytes would be taken for another alphabet's
        console.write(text)
        console.flush()
        return
    content = text.encode(encoding, "replace")
    while content:
        content = content[os.write(fd, content) :]


class Event(NamedTuple):
    """What ended a wait."""

    keys: str
    signals: frozenset[int]
    is_closed: bool
    """Whether the terminal has gone."""


class Screen:
    """A full-screen view; however the block ends, the terminal is restored."""

    def __init__(self) -> None:
        self._settings: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._wakes = (-1, -1)
        self._old_wakeup_fd = -1
        self._is_shown = False
        self._noted: list[int] = []

    def __enter__(self) -> Self:
        if sys.platform == "win32":
            for number in _SIGNALS:
                self._handlers[number] = signal.signal(number, self._note)
            self._show()
            return self
        self._wakes = os.pipe()
        for fd in self._wakes:
            os.set_blocking(fd, False)
        self._old_wakeup_fd = signal.set_wakeup_fd(self._wakes[1], warn_on_full_buffer=False)
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # what we were told to ignore stays ignored
                self._handlers[number] = signal.signal(number, _do_nothing)
        try:
            self._show()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._hide()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if sys.platform == "win32":
            return
        signal.set_wakeup_fd(self._old_wakeup_fd)
        for fd in self._wakes:
            os.close(fd)

    def draw(self, lines: list[str], widths: list[int]) -> bool:
        """Replace the content in one write, without clearing first, so that nothing flickers.

        A full line is not cleared to its end: the cursor is on its last character, which would be erased.
        """
        columns, rows = read_size()
        body = "\r\n".join(
            line + (_CLEAR_LINE if width < columns else "") for line, width in zip(lines, widths, strict=True)
        )
        rest = f"\r\n{_CLEAR_BELOW}" if len(lines) < rows else ""
        return write(f"{_HOME}{body}{rest}")

    def wait(self, fd: int, seconds: float) -> Event:
        """Wait for a key, a signal, something to read from `fd`, or the timeout."""
        if sys.platform == "win32":
            return self._look_again_and_again(seconds if fd < 0 else 0.0)
        watched = [self._wakes[0]] + ([_IN] if self._settings is not None else []) + ([fd] if fd >= 0 else [])
        ready, _, _ = select.select(watched, [], [], max(0.0, seconds))
        keys, is_closed = "", False
        if self._settings is not None and _IN in ready:
            try:
                content = os.read(_IN, 1024)
            except OSError:
                content = b""
            keys, is_closed = content.decode("utf-8", "replace"), not content
        signals = frozenset(os.read(self._wakes[0], 1024)) if self._wakes[0] in ready else frozenset()
        if sys.platform != "win32" and signal.SIGTSTP in signals:
            self._pause()
        return Event(keys, signals, is_closed)

    def _look_again_and_again(self, seconds: float) -> Event:
        """Nothing waits for keys and for all else at once there."""
        deadline = time.monotonic() + seconds
        while True:
            time.sleep(_NAP_SECONDS)
            keys = _read_keys()
            signals, self._noted = frozenset(self._noted), []
            if keys or signals or time.monotonic() >= deadline:
                return Event(keys, signals, is_closed=False)

    def _note(self, number: int, _frame: object) -> None:
        self._noted.append(number)

    def _pause(self) -> None:
        """Ctrl-Z: restore the terminal while this process is stopped."""
        self._hide()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, _do_nothing)
        self._show()

    def _show(self) -> None:
        if sys.platform != "win32" and os.isatty(_IN):
            import termios
            import tty

            self._settings = termios.tcgetattr(_IN)
            tty.setcbreak(_IN)
        self._is_shown = True
        write(_ENTER)

    def _hide(self) -> None:
        if self._is_shown:
            self._is_shown = False
            write(_LEAVE)
        if self._settings is not None:
            import termios

            try:
                termios.tcsetattr(_IN, termios.TCSADRAIN, self._settings)
            except termios.error:
                pass  # the terminal has been closed
            self._settings = None


def _read_keys() -> str:
    if sys.platform == "win32":
        from .console import read_keys

        return read_keys()
    return ""


def _do_nothing(*_: object) -> None:
    """The signal's number arrives through the pipe."""
