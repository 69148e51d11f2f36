"""Ends a tracked block in a given way: endings.py WAY STYLE [RECORDING]."""

from __future__ import annotations

import os
import signal
import sys

from end_to_end.fault_workloads.telling import burn, make_tracker, say, tell_figures

CPU_SECONDS = 0.25


def end(way: str) -> None:
    """Some work, then the end."""
    burn(CPU_SECONDS)
    say("worked")
    if way == "exit":
        sys.exit(3)
    elif way == "_exit":
        os._exit(4)
    elif way == "raise":
        raise LookupError("of the job's own")
    elif way == "exec":
        os.execv(sys.executable, [sys.executable, "-c", "import sys; print('exec'); sys.exit(5)"])
    elif way == "pause":
        signal.pause()
    elif way != "return":
        os.kill(os.getpid(), getattr(signal, way))


def main(way: str, style: str, recording: str | None = None) -> None:
    """In a `with` block, or started and never stopped."""
    tracker = make_tracker(record=recording)
    if style == "bare":
        tracker.start()
        end(way)
    else:
        try:
            with tracker:
                end(way)
        finally:
            tell_figures(tracker)
    say("after the block")


if __name__ == "__main__":
    main(*sys.argv[1:])
