"""The time of a report on the recording of a month."""

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
    size = Row("recording of thirty days", "MB", Goal(high=20.0))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "month.jsonl")
        for tools in bench.rounds(NAME, Rounds(5, 0), Rounds(3, 0)):
            for tool in tools:
                _report(tool, path, seconds, size)
    return [seconds, size]


def _report(tool: Installed, path: str, seconds: Row, size: Row) -> None:
    if not os.path.exists(path):
        size.add(tool.name, run_inside(tool, "month", path)["bytes"] / 1e6)
    seconds.add(tool.name, time_command(tool, [os.path.join(tool.bin, "gpu-tracker"), "report", path]))
