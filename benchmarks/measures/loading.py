"""How long `gpu_tracker.load(path).summary` takes on long recordings, and in how much memory."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import run_inside
from benchmarks.rows import Goal, Row

if TYPE_CHECKING:
    from benchmarks.venvs import Installed

NAME = "load"

_SAMPLES = (10_000, 100_000, 1_000_000)
_LONGEST_SECONDS = 2.0
_MOST_MEGABYTES = 500.0


def measure(bench: Bench) -> list[Row]:
    """With a tenth as many regions as samples. The goal is that of a million."""
    seconds = {
        count: Row(
            f"`load().summary`, {count} samples",
            "s",
            Goal(high=_LONGEST_SECONDS) if count == max(_SAMPLES) else None,
            2,
        )
        for count in _SAMPLES
    }
    memory = Row(f"the same, peak memory of {max(_SAMPLES)}", "MB", Goal(high=_MOST_MEGABYTES), 0)
    with tempfile.TemporaryDirectory() as folder:
        for tools in bench.rounds(NAME, Rounds(5, 0), Rounds(2, 0)):
            for tool in tools:
                for count in _SAMPLES:
                    truth = _load(tool, os.path.join(folder, f"{count}.jsonl"), count)
                    seconds[count].add(tool.name, truth["seconds"])
                memory.add(tool.name, truth["peak_bytes"] / 1e6)
    return [*seconds.values(), memory]


def _load(tool: Installed, path: str, count: int) -> dict[str, float]:
    return run_inside(tool, "load_recording", path, count)
