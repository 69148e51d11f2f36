"""How often a comparison of equal runs claims a change (A/A), and how often a real change is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.jobs import run_inside
from benchmarks.rows import Goal, Row

if TYPE_CHECKING:
    from benchmarks.bench import Bench

NAME = "compare"

_REGIONS = (1, 5, 20)
_N_COMPARISONS = 200
_MOST_FALSE_PERCENT = 5.0


def measure(bench: Bench) -> list[Row]:
    """The comparisons are seeded, so one round says all."""
    rows = []
    for count in _REGIONS:
        bench.say(f"{NAME}: {count} regions")
        found = run_inside(bench.ours, "compare_repeats", count, _N_COMPARISONS)
        false = Row(
            f"{_N_COMPARISONS} comparisons of equal runs, {count} regions: claim a change",
            "%",
            Goal(high=_MOST_FALSE_PERCENT),
        )
        true = Row(f"the same, one region 10 % slower (5 repeats, 2 % noise), {count} regions: find it", "%")
        for row, number in ((false, found["false"]), (true, found["found"])):
            row.add(bench.ours.name, 100 * number / _N_COMPARISONS)
            rows.append(row)
    return rows
