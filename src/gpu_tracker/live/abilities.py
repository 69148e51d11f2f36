"""What a terminal or a pipe can show. Imported by every run, so it imports little."""

from __future__ import annotations

import os
import sys

_OUT = 1
_WIDTH_OF_A_PIPE = 160
_ASCII_LOCALES = ("C", "POSIX")


def is_screen(fd: int = _OUT) -> bool:
    """Whether standard output, or another descriptor, is a terminal that supports drawing."""
    if sys.platform == "win32":
        from .console import enable_drawing

        return os.isatty(fd) and enable_drawing(fd)
    return os.isatty(fd) and os.environ.get("TERM", "dumb") != "dumb"


def has_colour(fd: int = _OUT) -> bool:
    """Whether colours are wanted and possible."""
    return is_screen(fd) and not os.environ.get("NO_COLOR")


def get_encoding() -> str:
    """The encoding of standard output."""
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def has_unicode() -> bool:
    """Whether standard output takes any character. Python itself writes UTF-8 also if the user asked for plain C."""
    asked = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG")
    return get_encoding().lower().replace("-", "").startswith("utf") and asked not in _ASCII_LOCALES


def read_size(fd: int = _OUT) -> tuple[int, int]:
    """Columns and rows."""
    try:
        columns, rows = os.get_terminal_size(fd)
    except OSError:
        columns, rows = 0, 0
    return columns or _read_number("COLUMNS") or _WIDTH_OF_A_PIPE, rows or _read_number("LINES") or 24


def _read_number(variable: str) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else 0
