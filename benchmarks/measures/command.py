"""What the command line adds to the time of a trivial command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import time_command, wrap
from benchmarks.rows import Goal, Row

if TYPE_CHECKING:
    from benchmarks.venvs import Installed

NAME = "command"

_GOAL_RATIO = 4.0
_GOAL_MILLISECONDS = 50.0
# What a small program in Python usually imports.
_IMPORTS = "import argparse, json, subprocess"
_SLEEP_SECONDS = 0.5


def measure(bench: Bench) -> list[Row]:
    """With the defaults of each tool."""
    ratio = Row("wrapping `true`, times `python -c pass`", "", Goal(high=_GOAL_RATIO), 2)
    wall = Row("wrapping `true`, wall", "ms")
    added = Row("wrapping `true`, beyond bare", "ms", Goal(high=_GOAL_MILLISECONDS))
    imports = Row(f"for comparison: `python -c '{_IMPORTS}'`, wall", "ms")
    beyond = Row(f"wrapping `sleep {_SLEEP_SECONDS}`, wall beyond {_SLEEP_SECONDS} s", "ms")
    for tools in bench.rounds(NAME, Rounds(12, 8), Rounds(5, 2)):
        bare_seconds = 0.0
        imports.add(bench.ours.name, 1000 * time_command(None, [bench.ours.python, "-c", _IMPORTS]))
        for tool in (None, *tools):
            figures = bench.attempt(_time, tool, bench.ours)
            if figures is not None:
                empty, nothing, sleep = figures
                name = tool.name if tool else None
                ratio.add(name, nothing / empty)
                wall.add(name, 1000 * nothing)
                bare_seconds = bare_seconds if tool else nothing
                if tool:
                    added.add(name, 1000 * (nothing - bare_seconds))
                beyond.add(name, 1000 * (sleep - _SLEEP_SECONDS))
    return [ratio, wall, added, imports, beyond]


def _time(tool: Installed | None, ours: Installed) -> tuple[float, float, float]:
    """Seconds of an empty program in the tool's interpreter, and of `true` and `sleep` under the tool."""
    return (
        time_command(tool, [(tool or ours).python, "-c", "pass"]),
        time_command(tool, wrap(tool, ["true"])),
        time_command(tool, wrap(tool, ["sleep", str(_SLEEP_SECONDS)])),
    )
