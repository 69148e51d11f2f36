"""Uses regions and metrics, holds memory when told to, and tells its own truth: regions.py [tracked RECORDING].

A line of its standard input is a step; the truth is printed after each.
"""

from __future__ import annotations

import json
import sys

import gpu_tracker as gput
from end_to_end.fault_workloads.telling import make_tracker, say, tell_figures
from end_to_end.workloads.truth import read_peak_bytes, touch


def step(number: int) -> list[object]:
    """One call, one metric, 60 MB more."""
    with gput.region("step"):
        block = touch(60_000_000)
        gput.log(step=number, loss=1.0 / (number + 1))
    return [block]


def main(mode: str = "", recording: str | None = None) -> None:
    """Until standard input ends."""
    tracker = make_tracker(record=recording) if mode else None
    if tracker:
        tracker.start()
    say("ready")
    kept = []
    for number, _ in enumerate(sys.stdin):
        kept += step(number)
        if tracker:
            tell_figures(tracker)
        say(json.dumps({"calls": number + 1, "peak_bytes": read_peak_bytes()}))
    if tracker:
        tracker.stop()
        tell_figures(tracker)


if __name__ == "__main__":
    main(*sys.argv[1:])
