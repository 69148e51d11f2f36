"""The console of Windows: whether it can be drawn on, and the keys that were pressed, as terminals send them. Imported there only."""

# ruff: noqa: E402
from __future__ import annotations

import sys

assert sys.platform == "win32"

import ctypes
import msvcrt

_DRAWS = 0x4  # ENABLE_VIRTUAL_TERMINAL_PROCESSING
_SPECIAL = ("\x00", "\xe0")
_KEYS = {
    "H": "\x1b[A",
    "P": "\x1b[B",
    "M": "\x1b[C",
    "K": "\x1b[D",
    "G": "\x1b[H",
    "O": "\x1b[F",
    "I": "\x1b[5~",
    "Q": "\x1b[6~",
}


def enable_drawing(fd: int) -> bool:
    """Have the console understand the sequences of terminals; whether it does."""
    kernel32 = ctypes.windll.kernel32
    mode = ctypes.c_uint32()
    handle = ctypes.c_void_p(msvcrt.get_osfhandle(fd))
    if not kernel32.GetConsoleMode(handle, ctypes.byref(mode)):
        return False
    return bool(mode.value & _DRAWS or kernel32.SetConsoleMode(handle, mode.value | _DRAWS))


def read_keys() -> str:
    """What was pressed since the last time."""
    keys = ""
    while msvcrt.kbhit():
        key = msvcrt.getwch()
        keys += _KEYS.get(msvcrt.getwch(), "") if key in _SPECIAL else key
    return keys
