"""Microseconds of this thread's CPU time to enter and leave a region, with and without a tracker."""

from __future__ import annotations

import json
import time

import gpu_tracker as gput

_CALLS = 100_000
_EXACT_CALLS = 10_000


def main() -> None:
    without = _measure()
    with gput.Tracker(disable_logs=True):
        alone = _measure()
        with gput.region("outer"), gput.region("middle"):
            nested = _measure()
        exact = _measure_exact()
        logged = _measure_logging()
    truth = {"without": without, "alone": alone, "nested": nested, "exact": exact, "logged": logged}
    print(json.dumps(truth))


def _measure() -> float:
    began = time.thread_time()
    for _ in range(_CALLS):
        with gput.region("step"):
            pass
    return 1e6 * (time.thread_time() - began) / _CALLS


def _measure_exact() -> float:
    began = time.thread_time()
    for _ in range(_EXACT_CALLS):
        with gput.region("exact", exact_peak=True):
            pass
    return 1e6 * (time.thread_time() - began) / _EXACT_CALLS


def _measure_logging() -> float:
    began = time.thread_time()
    for step in range(_CALLS):
        gput.log(step=step, loss=0.5)
    return 1e6 * (time.thread_time() - began) / _CALLS


if __name__ == "__main__":
    main()
