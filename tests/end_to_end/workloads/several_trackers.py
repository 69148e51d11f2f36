"""Tracks itself several times at once: one tracker inside the other, or each in a thread of its own."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import ExitStack

import gpu_tracker as gput
from end_to_end.workloads.stage import say
from end_to_end.workloads.truth import burn

_SECONDS = 1.2


def main(kind: str, n_trackers: str) -> None:
    """Print what every tracker said."""
    trackers = [
        gput.Tracker(0.1, "bytes", time_unit="seconds", disable_logs=True) for _ in range(int(n_trackers))
    ]
    if kind == "nested":
        with ExitStack() as stack:
            for tracker in trackers:
                stack.enter_context(tracker)
            _work()
    else:
        threads = [threading.Thread(target=_track, args=(tracker,)) for tracker in trackers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    say({"usages": [tracker.to_json() for tracker in trackers]})


def _track(tracker: gput.Tracker) -> None:
    with tracker:
        _work()


def _work() -> None:
    burn(0.1)
    time.sleep(_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
