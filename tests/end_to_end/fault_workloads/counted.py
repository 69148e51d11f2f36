"""Counts the signals that it gets within its tracker's block, and tells their number at the end: counted.py NAME..."""

from __future__ import annotations

import signal
import sys
from collections import Counter

from end_to_end.fault_workloads.telling import make_tracker, say


def main(*names: str) -> None:
    """Ends when its standard input does."""
    counts: Counter[str] = Counter()
    with make_tracker():
        for name in names:
            signal.signal(
                signal.Signals[name], lambda number, _: counts.update([signal.Signals(number).name])
            )
        say("ready")
        for line in sys.stdin:
            say(line.strip())
    say(str(sorted(counts.items())))


if __name__ == "__main__":
    main(*sys.argv[1:])
