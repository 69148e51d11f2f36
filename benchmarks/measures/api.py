"""How long a Python program waits for its tracker to start and to stop."""

from __future__ import annotations

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import run_inside
from benchmarks.rows import Goal, Row

NAME = "api"

_SLEEP_TIMES = (0.1, 1, 10, 60)
# The original tool waits in stop() until its loop wakes up.
_LONGEST_FOR_PEERS = 1
_START_GOAL_MILLISECONDS = 80.0
_STOP_GOAL_MILLISECONDS = 50.0


def measure(bench: Bench) -> list[Row]:
    """The start includes the constructor."""
    starts = {
        sleep_time: Row(f"`start()`, sleep_time {sleep_time}", "ms", Goal(high=_START_GOAL_MILLISECONDS))
        for sleep_time in _SLEEP_TIMES
    }
    stops = {
        sleep_time: Row(f"`stop()`, sleep_time {sleep_time}", "ms", Goal(high=_STOP_GOAL_MILLISECONDS))
        for sleep_time in _SLEEP_TIMES
    }
    for tools in bench.rounds(NAME, Rounds(8, 4), Rounds(3, 1)):
        for sleep_time in _SLEEP_TIMES:
            for tool in tools:
                is_for_all = sleep_time <= _LONGEST_FOR_PEERS
                if not tool.tool.has_api or not (is_for_all or tool is bench.ours):
                    continue
                truth = bench.attempt(run_inside, tool, "start_and_stop", sleep_time)
                if truth is not None:
                    starts[sleep_time].add(tool.name, 1000 * truth["start_seconds"])
                    stops[sleep_time].add(tool.name, 1000 * truth["stop_seconds"])
    return [*starts.values(), *stops.values()]
