"""Is interrupted in the middle of the tracker's own work: interrupted.py start|stop."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from end_to_end.fault_workloads.telling import (
    burn,
    find_samplers,
    hold,
    make_tracker,
    release,
    say,
    tell,
    tell_figures,
)
from patience import wait_until


def interrupt(number: int, frame: FrameType | None) -> None:
    """What Ctrl-C does, at a moment that the workload chooses."""
    raise KeyboardInterrupt


def main(when: str) -> None:
    """An interrupt, and then the program goes on, as notebooks do."""
    signal.signal(signal.SIGALRM, interrupt)
    tracker = make_tracker()
    is_interrupted = False
    if when == "start":
        signal.setitimer(signal.ITIMER_REAL, 0.004)
        try:
            tracker.start()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            is_interrupted = True
        if is_interrupted:
            wait_until(lambda: not find_samplers(), "no sampler is left", seconds=2)
            tell(left=find_samplers(), fds=len(os.listdir("/proc/self/fd")))
            tracker = make_tracker()
            tracker.start()
        burn(0.2)
        tracker.stop()
    else:
        tracker.start()
        burn(0.2)
        (sampler,) = find_samplers()
        hold(sampler)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            tracker.stop()
        except KeyboardInterrupt:
            is_interrupted = True
        release(sampler)
        tracker.stop()
    tell_figures(tracker, is_interrupted=is_interrupted)
    say("after the block")


if __name__ == "__main__":
    main(*sys.argv[1:])
