"""Processes that are older than their tracker find it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gpu_tracker as gput

TESTS = str(Path(__file__).parents[1])
KINDS = ("fork", "spawn", "forkserver", "futures", "loky")
WORKLOAD = (sys.executable, "-m", "end_to_end.workloads.older_workers")


def run(*command: str) -> list[dict[str, Any]]:
    """The lines of JSON that a command prints."""
    environment = {**os.environ, "PYTHONPATH": TESTS}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("kind", KINDS)
def test_workers_find_a_tracker_that_began_after_them(kind: str) -> None:
    """And the next one, when that has ended."""
    lines = run(*WORKLOAD, kind, "2")

    assert len(lines) == 2
    for line in lines:
        assert sum(line["truth"].values()) == 30
        assert line["told"] == line["truth"]
        assert line["logged"] == {"number": 30}


def test_the_innermost_tracker_has_the_regions_of_older_workers(tmp_path: Path, command_line: str) -> None:
    """While there is none inside, they go to the command line's."""
    path = tmp_path / "x.jsonl"
    (line,) = run(command_line, "run", "--record", str(path), "--disable-logs", "--", *WORKLOAD, "fork", "1")
    outer = {region.pid: region.calls for region in gput.load(path).region_totals if region.path == ("task",)}

    assert line["told"] == line["truth"]
    assert sum(outer.values()) == 60


def test_the_tracker_of_another_job_is_not_found() -> None:
    """Only one around the process is."""
    tracking = "import gpu_tracker as g\nwith g.Tracker(disable_logs=True): print('on', flush=True); input()"
    asking = (
        "import gpu_tracker as g\nfrom gpu_tracker.instrument import outbox\n"
        "with g.region('x'): print(outbox.mailboxes)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", tracking], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "on\n"
        found = subprocess.check_output([sys.executable, "-c", asking], text=True)
        other.communicate("\n", timeout=60)

    assert found == "None\n"
    assert other.returncode == 0
