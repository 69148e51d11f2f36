"""Whether tracking makes a program's own memory more expensive to write and to keep."""

from __future__ import annotations

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import run_inside
from benchmarks.rows import Goal, Row

NAME = "memory"

_PAIRS_PER_RUN = 5
_GOAL_RATIO = 1.05


def measure(bench: Bench) -> list[Row]:
    """Tracked against untracked, in turn within one process."""
    time_row = Row("rewriting 1 GB, CPU time tracked / untracked", "", Goal(high=_GOAL_RATIO), 3)
    held_row = Row("memory held after that, with the tracker / without", "", Goal(high=_GOAL_RATIO), 3)
    for tools in bench.rounds(NAME, Rounds(3, 1), Rounds(1, 0)):
        for tool in tools:
            if not tool.tool.has_api:
                continue
            truth = bench.attempt(run_inside, tool, "rewrite", _PAIRS_PER_RUN)
            if truth is None:
                continue
            for row, ratios in ((time_row, truth["cpu_ratios"]), (held_row, truth["held_ratios"])):
                for ratio in ratios:
                    row.add(tool.name, ratio)
    return [time_row, held_row]
