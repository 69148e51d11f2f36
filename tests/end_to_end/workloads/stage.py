"""How a workload is run: plainly, for the command line to track, or in a tracker of its own.

Either way it prints one JSON line with the truth about itself; inside a tracker, also what that one said.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from end_to_end.workloads.truth import read_cpu_time, read_peak_bytes

TRACKED = "--tracked"

Truth = dict[str, Any]


def perform(work: Callable[..., Truth], prepare: Callable[..., object] | None = None) -> None:
    """Do the work that the arguments ask for; what is prepared comes before the start of the tracker."""
    arguments = sys.argv[1:]
    if arguments[:1] == [TRACKED]:
        say(_track(work, prepare, json.loads(arguments[1]), arguments[2:]))
    else:
        say(_run(work, prepare, arguments))
        # Taking the interpreter apart would cost time after the truth was told.
        os._exit(0)


def say(truth: Truth) -> None:
    """One line, for the test to read."""
    print(json.dumps(truth), flush=True)


def _run(work: Callable[..., Truth], prepare: Callable[..., object] | None, arguments: list[str]) -> Truth:
    """The truth about this process from its birth: that is what the command line tracks."""
    if prepare is not None:
        prepare(*arguments)
    truth = work(*arguments)
    return {"cpu": read_cpu_time(), "peak_bytes": read_peak_bytes(), **truth}


def _track(
    work: Callable[..., Truth],
    prepare: Callable[..., object] | None,
    options: dict[str, Any],
    arguments: list[str],
) -> Truth:
    """The truth about the block."""
    import gpu_tracker as gput

    if prepare is not None:
        prepare(*arguments)
    tracker = gput.Tracker(ram_unit="bytes", time_unit="seconds", disable_logs=True, **options)
    with tracker:
        started, before = time.monotonic(), read_cpu_time()
        truth = work(*arguments)
        cpu, seconds = read_cpu_time().since(before), time.monotonic() - started
    return {
        "cpu": cpu,
        "seconds": seconds,
        "peak_bytes": read_peak_bytes(),
        **truth,
        "usage": tracker.to_json(),
    }
