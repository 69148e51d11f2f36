"""Process pools and trackers: pools.py WHERE METHOD, the tracker `outside` or `inside` the workers."""

from __future__ import annotations

import multiprocessing
import sys
import time

from end_to_end.fault_workloads.telling import NoTracker, burn, make_tracker, say, tell_figures


def work(number: int) -> int:
    """Use some CPU and answer."""
    burn(0.2)
    return number * number


def work_tracked(number: int) -> tuple[int, bool]:
    """The same under a tracker of the worker's own."""
    tracker = make_tracker()
    cpu = time.process_time()
    with tracker:
        result = work(number)
        cpu = time.process_time() - cpu
    tell_figures(tracker, true_cpu_seconds=cpu)
    return result, multiprocessing.current_process().daemon


def main(where: str, method: str) -> None:
    """Four tasks for two workers."""
    context = multiprocessing.get_context(method)
    tracker = make_tracker() if where == "outside" else NoTracker()
    with tracker, context.Pool(2) as pool:
        function = work if where == "outside" else work_tracked
        say(str(pool.map(function, range(4), chunksize=1)))
        pool.close()
        pool.join()
    tell_figures(tracker)
    say("after the block")


if __name__ == "__main__":
    main(*sys.argv[1:])
