"""The cost of importing the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import run_inside, time_command
from benchmarks.rows import Goal, Row

if TYPE_CHECKING:
    from benchmarks.venvs import Installed

NAME = "import"

_STATEMENTS = ("import gpu_tracker", "from gpu_tracker import Tracker")
_GOAL_MILLISECONDS = 30.0


def measure(bench: Bench) -> list[Row]:
    """Wall time beyond that of an empty program, and the other packages that are imported."""
    rows = {
        statement: Row(f"`{statement}`, beyond `python -c pass`", "ms", Goal(high=_GOAL_MILLISECONDS))
        for statement in _STATEMENTS
    }
    for tools in bench.rounds(NAME, Rounds(12, 6), Rounds(5, 2)):
        for tool in tools:
            if tool.tool.has_api:
                bench.attempt(_time_statements, tool, rows)
    return [*rows.values(), _count_modules(bench)]


def _time_statements(tool: Installed, rows: dict[str, Row]) -> None:
    empty = time_command(tool, [tool.python, "-c", "pass"])
    for statement, row in rows.items():
        row.add(None, 1000 * empty)
        row.add(tool.name, 1000 * (time_command(tool, [tool.python, "-c", statement]) - empty))


def _count_modules(bench: Bench) -> Row:
    row = Row("other packages imported into the user's process, tracking included", "", Goal(high=0), 0)
    for tool in bench.tools:
        if tool.tool.has_api:
            modules = bench.attempt(run_inside, tool, "list_imports")
            if modules is not None:
                row.add(tool.name, len(modules["third_party"]))
    return row
