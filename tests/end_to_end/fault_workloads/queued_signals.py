"""Tells how many times it got a real-time signal, when its standard input ends: queued_signals.py NUMBER."""

from __future__ import annotations

import signal
import sys


def main(number: int) -> None:
    """A handler of Python's would merge those that come at once; here they wait in the kernel's queue."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    print("ready", flush=True)
    sys.stdin.read()
    got = 0
    while signal.sigtimedwait({number}, 0) is not None:
        got += 1
    print(got)


if __name__ == "__main__":
    main(int(sys.argv[1]))
