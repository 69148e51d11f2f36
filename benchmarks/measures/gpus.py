"""What a look at many GPUs costs."""

from __future__ import annotations

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import run_inside
from benchmarks.rows import Goal, Row

NAME = "gpus"


def measure(bench: Bench) -> list[Row]:
    """Milliseconds of CPU for everything that the driver tells, beyond the driver's own."""
    row = Row("one look at 8 GPUs with 200 processes each, CPU beyond the driver's", "ms", Goal(high=5.0), 2)
    for tools in bench.rounds(NAME, Rounds(5, 0), Rounds(3, 0)):
        for tool in tools:
            told = run_inside(tool, "eight_gpus")
            row.add(tool.name, 1000 * (told["seconds"] - told["driver_seconds"]))
    return [row]
