"""The names of Linux's signals, wherever a recording is read. Pure."""

from __future__ import annotations

_NAMES = [
    "HUP",
    "INT",
    "QUIT",
    "ILL",
    "TRAP",
    "ABRT",
    "BUS",
    "FPE",
    "KILL",
    "USR1",
    "SEGV",
    "USR2",
    "PIPE",
    "ALRM",
    "TERM",
    "STKFLT",
    "CHLD",
    "CONT",
    "STOP",
    "TSTP",
    "TTIN",
    "TTOU",
    "URG",
    "XCPU",
    "XFSZ",
    "VTALRM",
    "PROF",
    "WINCH",
    "IO",
    "PWR",
    "SYS",
]


def name_signal(number: int) -> str:
    """As people know it: `SIGTERM (15)`."""
    return f"SIG{_NAMES[number - 1]} ({number})" if 1 <= number <= len(_NAMES) else f"signal {number}"
