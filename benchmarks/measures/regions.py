"""What regions and logged numbers cost the job."""

from __future__ import annotations

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import run_inside
from benchmarks.rows import Goal, Row

NAME = "regions"


def measure(bench: Bench) -> list[Row]:
    """Microseconds of CPU time per call, so that other programs on the machine do not count."""
    rows = {
        "without": Row("a region without a tracker, per enter and exit", "µs", Goal(high=1.0), 2),
        "alone": Row("a region, per enter and exit", "µs", Goal(high=2.5), 2),
        "nested": Row("a region inside two others, per enter and exit", "µs", Goal(high=2.5), 2),
        "exact": Row("a region with its exact peak, per enter and exit", "µs", None, 2),
        "logged": Row("logging one number", "µs", None, 2),
    }
    for tools in bench.rounds(NAME, Rounds(7, 0), Rounds(3, 0)):
        for tool in tools:
            truth = run_inside(tool, "time_regions")
            for name, row in rows.items():
                row.add(tool.name, truth[name])
    return list(rows.values())
