"""Workers that are older than the trackers of the process that started them: python -m ... KIND N_TRACKERS.

Prints for each tracker who did how many tasks, and who did how many by its report.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from typing import Any

import gpu_tracker as gput

_N_TASKS = 30
# In this time every worker that enters a region has noticed that a tracker has begun or ended.
_NOTICED_SECONDS = 0.1

Map = Callable[[Callable[[int], int], range], Any]


def do_task(number: int) -> int:
    """One call of a region, and a logged number; who did it."""
    with gput.region("task"):
        gput.log(number=number)
    return os.getpid()


def start_workers(kind: str) -> Map:
    """Two workers, of a start method of multiprocessing or of a library."""
    if kind == "loky":
        joblib = import_module("joblib")
        parallel = joblib.Parallel(n_jobs=2)
        return lambda work, numbers: parallel(joblib.delayed(work)(number) for number in numbers)
    if kind == "futures":
        return ProcessPoolExecutor(2).map
    return multiprocessing.get_context(kind).Pool(2).map


def main(kind: str, n_trackers: int) -> None:
    """The workers are warm before the first tracker begins, and go on after the last one."""
    run_tasks = start_workers(kind)
    list(run_tasks(do_task, range(_N_TASKS)))
    for _ in range(n_trackers):
        with gput.Tracker(disable_logs=True) as tracker:
            time.sleep(_NOTICED_SECONDS)
            truth: Counter[int] = Counter(run_tasks(do_task, range(_N_TASKS)))
        recording = tracker._recording
        assert recording is not None
        assert tracker.report is not None
        told = {region.pid: region.calls for region in recording.regions if region.path == ("task",)}
        logged = {metric.name: metric.logged for metric in tracker.report.metrics}
        print(json.dumps({"truth": truth, "told": told, "logged": logged}), flush=True)
    time.sleep(_NOTICED_SECONDS)
    list(run_tasks(do_task, range(_N_TASKS)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
