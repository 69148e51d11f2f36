"""The last lines of a terminal, kept from the job that writes to it, and always given back."""

from __future__ import annotations

import os
import struct
import sys

from ..core.system import fcntl
from ..core.text import paint
from .abilities import has_colour, has_unicode, is_screen
from .claim import Claim
from .panel import FEWEST_ROWS, abandon, build_panel, draw, release, reserve
from .terminal import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .glimpse import Glimpse

if sys.platform != "win32":
    import termios

_SIZE = struct.Struct("HHHH")
_LOCAL_MODES = 3


def can_show(fd: int) -> bool:
    """Whether it is a terminal, large enough, and of our session: else nobody can tell who is in front of it."""
    if sys.platform == "win32":
        return False  # its size cannot be told to others
    return is_screen(fd) and _read_size(fd)[0] >= FEWEST_ROWS and _controls_us(fd)


class Margin:
    """The panel on one terminal.

    While it is there the terminal has fewer rows, also for those who ask: pagers and editors stay above it.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._claim = Claim(fd)
        self._has_been_shown = self._was_refused = False
        self._rows = 0
        """Of the whole window; 0 while nothing is shown."""
        self._n_lines = 0
        self._told: tuple[int, ...] = ()
        """The size that programs are told while the panel is there."""

    def was_crowded_out(self) -> bool:
        """Whether it was never shown, because another panel was there; also if the job ended before the first frame."""
        return not self._has_been_shown and (self._was_refused or not self._claim.is_free())

    def show(self, glimpse: Glimpse) -> bool:
        """Draw it, unless the terminal is somebody else's at the moment; False if it has gone."""
        if not _is_ours(self._fd) or (not self._rows and _is_raw(self._fd)):
            return True  # of a shell, or of a pager that was there before us
        if not self._rows and not self._claim.take():
            self._was_refused = True
            return True
        self._has_been_shown = True
        size = _read_size(self._fd)
        lines = build_panel(glimpse, size[1], has_unicode=has_unicode())
        n_lines = max(len(lines), self._n_lines)
        if size != self._told or n_lines != self._n_lines:
            self._reserve(size, n_lines)
        colour = has_colour(self._fd)
        painted = [paint(line, size[1], has_colour=colour) for line in lines]
        frame = draw(painted + [""] * (n_lines - len(lines)), self._rows)
        return not self._rows or _is_raw(self._fd) or write(frame, self._fd)

    def hide(self) -> None:
        """Leave the terminal as it was."""
        if not self._rows:
            return
        try:
            size = _read_size(self._fd)
            if size != self._told:  # the window has changed since the last frame: find our lines again
                self._reserve(size, self._n_lines)
            self._release()
        finally:
            self._claim.give_back()

    def _reserve(self, size: tuple[int, ...], n_lines: int) -> None:
        rows = self._rows if size == self._told else size[0]
        if rows < FEWEST_ROWS:
            if self._rows:
                write(abandon(), self._fd)
            self._rows, self._n_lines, self._told = 0, 0, ()
            self._claim.give_back()
            return
        write(reserve(rows, n_lines), self._fd)
        self._rows, self._n_lines = rows, n_lines
        self._told = self._tell(rows - n_lines, size)

    def _release(self) -> None:
        if self._rows:
            write(release(self._rows, self._n_lines), self._fd)
            self._tell(self._rows, self._told)
        self._rows, self._n_lines, self._told = 0, 0, ()

    def _tell(self, rows: int, size: tuple[int, ...]) -> tuple[int, ...]:
        told = (rows, *size[1:])
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, _SIZE.pack(*told))
        return told


def _read_size(fd: int) -> tuple[int, ...]:
    """Rows, columns, and both in pixels."""
    return _SIZE.unpack(fcntl.ioctl(fd, termios.TIOCGWINSZ, bytes(_SIZE.size)))


def _is_raw(fd: int) -> bool:
    """Whether a program takes each key as it comes: a pager, an editor."""
    modes: int = termios.tcgetattr(fd)[_LOCAL_MODES]
    return not modes & termios.ICANON


def _controls_us(fd: int) -> bool:
    try:
        os.tcgetpgrp(fd)
    except OSError:
        return False
    return True


def _is_ours(fd: int) -> bool:
    """Whether we are in front of it."""
    return os.tcgetpgrp(fd) == os.getpgrp()
