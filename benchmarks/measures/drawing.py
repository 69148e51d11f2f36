"""What the picture in a notebook costs each time it is drawn, and its size."""

from __future__ import annotations

import os
import tempfile

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import run_inside
from benchmarks.rows import Goal, Row

NAME = "drawing"

_DAY = (2, 0, 1, 1)
"""GPUs, regions, metrics and days."""
_MOST_MILLISECONDS = 150.0
_MOST_KILOBYTES = 10.0


def measure(bench: Bench) -> list[Row]:
    """Of a day with two GPUs and a metric per second. The longer it takes, the more seldom it is drawn."""
    cost = Row("picture of a day with 2 GPUs: CPU", "ms", Goal(high=_MOST_MILLISECONDS))
    size = Row("picture of a day with 2 GPUs: size", "kB", Goal(high=_MOST_KILOBYTES))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "day.jsonl")
        run_inside(bench.ours, "month", path, *_DAY)
        for _ in bench.rounds(NAME, Rounds(5, 0), Rounds(2, 0)):
            drawn = run_inside(bench.ours, "draw_picture", path)
            cost.add(bench.ours.name, 1000 * drawn["seconds"])
            size.add(bench.ours.name, drawn["bytes"] / 1000)
    return [cost, size]
