"""What the tools report about jobs that measure themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import Outcome, run_workload
from benchmarks.rows import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "accuracy"

# A peak counts as found if at least this share of it is reported.
_FOUND_SHARE = 0.95


@dataclass(frozen=True)
class _Case:
    workload: str
    row: Row
    judge: Callable[[Outcome], float]
    full: Rounds
    quick: Rounds


def measure(bench: Bench) -> list[Row]:
    """Reported / true, with the defaults of each tool."""
    cases = _cases()
    for case in cases:
        for tools in bench.rounds(f"{NAME} {case.workload}", case.full, case.quick):
            for tool in tools:
                outcome = bench.attempt(run_workload, tool, case.workload, wants_result=True)
                if outcome is not None:
                    case.row.add(tool.name, case.judge(outcome))
    return [case.row for case in cases]


def _cases() -> tuple[_Case, ...]:
    return (
        _Case(
            "short_children",
            Row("CPU of 200 children of 20 ms, reported / true", "", Goal(0.99, 1.01), 3),
            lambda outcome: _reported(outcome, "cpu_seconds") / float(outcome.truth["cpu_seconds"]),
            Rounds(3, 1),
            Rounds(1, 0),
        ),
        _Case(
            "spike",
            Row("1 GB held for 50 ms, found", "", Goal(low=1.0), is_count=True),
            lambda outcome: float(
                _reported(outcome, "peak_bytes") >= _FOUND_SHARE * outcome.truth["peak_bytes"]
            ),
            Rounds(5, 3),
            Rounds(2, 0),
        ),
        _Case(
            "sharing_forks",
            Row("4 forks sharing 500 MB, reported / PSS", "", Goal(0.95, 1.05), 3),
            lambda outcome: _reported(outcome, "peak_bytes") / float(outcome.truth["pss_bytes"]),
            Rounds(3, 1),
            Rounds(1, 0),
        ),
    )


def _reported(outcome: Outcome, name: str) -> float:
    return float(getattr(outcome.reported, name))
