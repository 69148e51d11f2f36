"""Tells each signal that it gets, and ends with code 5 when its standard input ends: signals.py NAME..."""

from __future__ import annotations

import os
import select
import signal
import sys
from types import FrameType


def tell(number: int, frame: FrameType | None) -> None:
    """One line for each signal."""
    os.write(1, f"{signal.Signals(number).name}\n".encode())


def main(*names: str) -> None:
    """Names with a minus are ignored, the others told."""
    for name in names:
        number = signal.Signals[name.removeprefix("-")]
        signal.signal(number, signal.SIG_IGN if name.startswith("-") else tell)
    # A handler runs between two steps of the interpreter: a signal that comes right before a read would wait for its end.
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 100)
        elif not os.read(0, 1000):
            break
    print("bye", flush=True)
    sys.exit(5)


if __name__ == "__main__":
    main(*sys.argv[1:])
