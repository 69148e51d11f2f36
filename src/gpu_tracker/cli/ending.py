"""How the command line ends: with the job's exit code, or by the signal that ended the job."""

from __future__ import annotations

import os
import sys

from ..core import signal

# STATUS_CONTROL_C_EXIT of Windows.
_ENDED_BY_AN_INTERRUPT = 0xC000013A

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def end(code: int) -> NoReturn:
    """Exit with that code; a negative one is a signal to die of."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError):
            continue  # closed by the caller, or its disk is full
    if sys.platform == "win32":
        os._exit(_to_signed(code))
    # Everything is written; a tidy exit of the interpreter would only keep the caller waiting.
    if code < 0:
        _die_of(-code)
    os._exit(code)


def _to_signed(code: int) -> int:
    """A code of 32 bits as the C library takes it; that of a program ended by Ctrl-C for the signal."""
    code = _ENDED_BY_AN_INTERRUPT if code < 0 else code
    return code - (1 << 32) if code >= 1 << 31 else code


def _die_of(number: int) -> NoReturn:
    """End by the same signal as the job: a shell goes on with its loop or script after a program that exits."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    # The job has left its core, and ours would overwrite it.
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))
    try:
        signal.signal(number, signal.SIG_DFL)
    except (OSError, ValueError):
        pass  # it cannot be caught, or is no signal of this system
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # the first process of a container does not die of it
