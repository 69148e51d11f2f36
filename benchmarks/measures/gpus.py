"""The cost of reading many GPUs, and of asking again and again."""

from __future__ import annotations

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import run_inside
from benchmarks.rows import Goal, Row

NAME = "gpus"


def measure(bench: Bench) -> list[Row]:
    """Milliseconds of CPU for everything that is read, without the driver's own."""
    row = Row(
        "one reading of 8 GPUs with 200 processes each, CPU without the driver", "ms", Goal(high=3.0), 2
    )
    calls = {
        "first": Row("`gpus()`, the first call", "ms", Goal(high=100.0), 1),
        "polled": Row("`gpus()`, polled", "ms", Goal(high=5.0), 1),
    }
    for tools in bench.rounds(NAME, Rounds(5, 0), Rounds(3, 0)):
        for tool in tools:
            truth = run_inside(tool, "eight_gpus")
            row.add(tool.name, 1000 * (truth["seconds"] - truth["driver_seconds"]))
            for name, seconds in run_inside(tool, "poll_gpus").items():
                calls[name].add(tool.name, 1000 * seconds)
    return [row, *calls.values()]
