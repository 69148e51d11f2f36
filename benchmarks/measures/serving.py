"""What `serve` costs: listing a thousand runs for the first time, and following five running jobs for twenty viewers."""

from __future__ import annotations

import os
import tempfile

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import run_inside
from benchmarks.rows import Goal, Row

NAME = "serve"

_N_RUNS, _LONGEST_SECONDS = 1000, 0.5
_N_VIEWERS, _N_LIVE, _MOST_PERCENT = 20, 5, 2.0


def measure(bench: Bench) -> list[Row]:
    """Nothing without tornado."""
    listing = Row(f"`serve`: list of {_N_RUNS} runs, first look", "CPU s", Goal(high=_LONGEST_SECONDS), 2)
    following = Row(
        f"`serve`: {_N_VIEWERS} viewers of {_N_LIVE} running jobs, ten minutes old",
        "% of a core",
        Goal(high=_MOST_PERCENT),
        2,
    )
    with tempfile.TemporaryDirectory() as folder:
        for tools in bench.rounds(NAME, Rounds(3, 0), Rounds(1, 0)):
            for tool in tools:
                listed = run_inside(tool, "list_runs", os.path.join(folder, "runs"), _N_RUNS)
                listing.add(tool.name, listed["seconds"])
                served = run_inside(tool, "serve_viewers", os.path.join(folder, "live"), _N_LIVE, _N_VIEWERS)
                if served["percent"] is None:
                    bench.say(f"{NAME}: left out, tornado is not installed")
                else:
                    following.add(tool.name, served["percent"])
    return [listing, *([following] if following.values else [])]
