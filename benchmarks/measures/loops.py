"""What marking a training loop costs it."""

from __future__ import annotations

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import run_inside
from benchmarks.rows import Goal, Row

NAME = "loops"


def measure(bench: Bench) -> list[Row]:
    """A hook ends one part of a loop and begins another: twice for each batch of `watch`."""
    rows = {
        "without": Row("a batch of `watch`, without a tracker", "µs", Goal(high=2.0), 2),
        "hook": Row("a hook of a training callback", "µs", Goal(high=2.0), 2),
        "batch": Row("a batch of `watch`", "µs", Goal(high=5.0), 2),
        "slowdown": Row("slowdown of steps of some milliseconds", "%", Goal(high=0.5), 2),
        "noise": Row("the same without hooks: noise", "%", None, 2),
    }
    for tools in bench.rounds(NAME, Rounds(7, 0), Rounds(3, 0)):
        for tool in tools:
            truth = run_inside(tool, "time_loops")
            for name, row in rows.items():
                row.add(tool.name, truth[name])
    return list(rows.values())
