"""Processes that are older than their tracker find it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
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


STEPPING = """
import sys, time, gpu_tracker as gput
from gpu_tracker.instrument import outbox
for line in sys.stdin:
    before, began = outbox.mailboxes, time.monotonic()
    while line == "turn\\n" and outbox.mailboxes == before and time.monotonic() < began + 20:
        with gput.region("step"): pass
    with gput.region("step"): gput.log(number=1)
    print("done", flush=True)
"""


@pytest.fixture
def stepping() -> Iterator[Callable[[str], int]]:
    """A process that uses regions when it is told to; started by the first word."""
    started: list[subprocess.Popen[str]] = []

    def tell(word: str) -> int:
        if not started:
            command = [sys.executable, "-c", STEPPING]
            started.append(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
        (child,) = started
        assert child.stdin is not None
        assert child.stdout is not None
        print(word, file=child.stdin, flush=True)
        assert child.stdout.readline() == "done\n"
        return child.pid

    yield tell
    for child in started:
        child.communicate()


def test_a_process_finds_the_tracker_that_is_attached_to_it(
    tmp_path: Path, stepping: Callable[[str], int]
) -> None:
    """And is without one again when that has ended."""
    pid = stepping("begin")
    with gput.Tracker(process_id=pid, record=str(tmp_path / "x.jsonl"), disable_logs=True):
        stepping("turn")
    stepping("turn")
    recording = gput.load(tmp_path / "x.jsonl")

    assert [region.path for region in recording.region_totals] == [("step",)]
    assert [(metric.name, metric.logged) for metric in recording.metrics] == [("number", 1)]


def test_an_attached_tracker_leaves_regions_to_the_one_around_the_process(
    tmp_path: Path, stepping: Callable[[str], int]
) -> None:
    """And says so."""
    with gput.Tracker(record=str(tmp_path / "around.jsonl"), disable_logs=True):
        pid = stepping("begin")
        with gput.Tracker(process_id=pid, record=str(tmp_path / "x.jsonl"), disable_logs=True):
            time.sleep(0.1)
            stepping("go on")
    around, attached = gput.load(tmp_path / "around.jsonl"), gput.load(tmp_path / "x.jsonl")

    assert [(region.path, region.calls) for region in around.region_totals] == [(("step",), 2)]
    assert attached.regions == ()
    assert (
        "Regions and metrics of this process are recorded by the tracker that it runs under."
        in attached.notes
    )  # fmt: skip
