"""Tracks in several threads at once, each a tracker of its own: threads.py ROUNDS."""

from __future__ import annotations

import sys
import threading

from end_to_end.fault_workloads.telling import make_tracker, say, tell


def track(barrier: threading.Barrier, rounds: int) -> None:
    """Start and stop together with the others, as often as it takes to meet in a bad moment."""
    for _ in range(rounds):
        barrier.wait()
        with make_tracker(disable_logs=True):
            pass


def main(rounds: str) -> None:
    """The main thread is one of them: there is no other that would take a signal."""
    barrier = threading.Barrier(2)
    other = threading.Thread(target=track, args=(barrier, int(rounds)), daemon=True)
    other.start()
    track(barrier, int(rounds))
    other.join()
    tell(rounds=int(rounds))
    say("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
