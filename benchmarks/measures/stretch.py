"""How much longer a job takes that needs every core.

On a shared machine, the same work takes a varying amount of CPU time. The cost of a tracker shows in wall time per
CPU second, compared with an untracked run of the same round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import run_workload
from benchmarks.rows import Goal, Row

if TYPE_CHECKING:
    from benchmarks.venvs import Installed

NAME = "stretch"

_GOAL_RATIO = 1.01
# Runs during which other processes used more than this of one core are left out, unless all are.
_DISTURBED_PERCENT = 8.0
# If bare runs vary more than this, a difference of one percent cannot be seen.
_WIDEST_NOISE = 0.05


@dataclass(frozen=True)
class _Run:
    wall_per_cpu: float
    foreign_percent: float


def measure(bench: Bench) -> list[Row]:
    """The bare column compares bare runs with bare runs: the noise."""
    pairs: dict[str | None, list[tuple[_Run, _Run]]] = {}
    for tools in bench.rounds(NAME, Rounds(12, 3), Rounds(2, 0)):
        bare = _work(None)
        for tool in (*tools, None):
            run = bench.attempt(_work, tool)
            if run is not None:
                pairs.setdefault(tool.name if tool else None, []).append((run, bare))
    row = Row(
        "work on all cores, wall per CPU second, times bare",
        "",
        Goal(high=_GOAL_RATIO),
        decimals=3,
        widest_noise=_WIDEST_NOISE,
    )
    for name, measured in pairs.items():
        for run, bare in _undisturbed(measured):
            row.add(name, run.wall_per_cpu / bare.wall_per_cpu)
    return [row]


def _work(tool: Installed | None) -> _Run:
    truth = run_workload(tool, "fixed_work").truth
    return _Run(truth["wall_seconds"] / truth["cpu_seconds"], truth["foreign_percent"])


def _undisturbed(pairs: list[tuple[_Run, _Run]]) -> list[tuple[_Run, _Run]]:
    quiet = [pair for pair in pairs if all(run.foreign_percent <= _DISTURBED_PERCENT for run in pair)]
    return quiet or pairs
