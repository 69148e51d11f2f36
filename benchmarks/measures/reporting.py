"""The size of the recording of a month, and the time of a report on the largest."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import run_inside, time_command
from benchmarks.rows import Goal, Row

if TYPE_CHECKING:
    from benchmarks.venvs import Installed

NAME = "report"


def measure(bench: Bench) -> list[Row]:
    """Seconds for `gpu-tracker report`, and the size of the recording."""
    seconds = Row("`report` on thirty days", "s", Goal(high=2.0), 2)
    sizes = {
        (0, 0, 0): Row("recording of thirty days", "MB", Goal(high=20.0)),
        (8, 20, 1): Row("the same, 8 GPUs, 20 regions, a metric per second", "MB", Goal(high=40.0)),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "month.jsonl")
        for what, size in sizes.items():
            bench.say(f"{NAME}: {size.measure}")
            size.add(bench.ours.name, run_inside(bench.ours, "month", path, *what)["bytes"] / 1e6)
        for tools in bench.rounds(NAME, Rounds(5, 0), Rounds(3, 0)):
            for tool in tools:
                _report(tool, path, seconds)
    return [seconds, *sizes.values()]


def _report(tool: Installed, path: str, seconds: Row) -> None:
    seconds.add(tool.name, time_command(tool, [os.path.join(tool.bin, "gpu-tracker"), "report", path]))
