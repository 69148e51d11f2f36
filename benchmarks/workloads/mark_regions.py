"""What entering and leaving a region costs the job: microseconds, with a tracker and without."""

from __future__ import annotations

import json
import time

import gpu_tracker as gput

_CALLS = 100_000


def main() -> None:
    without = _measure()
    with gput.Tracker(disable_logs=True):
        alone = _measure()
        with gput.region("outer"), gput.region("middle"):
            nested = _measure()
        logged = _measure_logging()
    print(json.dumps({"without": without, "alone": alone, "nested": nested, "logged": logged}))


def _measure() -> float:
    began = time.perf_counter()
    for _ in range(_CALLS):
        with gput.region("step"):
            pass
    return 1e6 * (time.perf_counter() - began) / _CALLS


def _measure_logging() -> float:
    began = time.perf_counter()
    for step in range(_CALLS):
        gput.log(step=step, loss=0.5)
    return 1e6 * (time.perf_counter() - began) / _CALLS


if __name__ == "__main__":
    main()
