"""The advice of a first run makes the next one pass with a smaller request, and asks for little more than is needed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from end_to_end.cgroup import request
from end_to_end.launch import COMMAND_LINE, TESTS, run, workload
from end_to_end.workloads.sized import KINDS

GENEROUS_BYTES = 1200 * 10**6
ALL_CORES = 2
MOST_OF_NEED = 1.35
FILE_BYTES = 300 * 10**6
NUMBERS = 350_000


def make_file(directory: Path, kind: str) -> Path:
    """A source file for the compiler, for others a large file of which nothing is in memory."""
    path = directory / ("table.c" if kind == "compiler" else "data")
    if kind == "compiler":
        path.write_text(f"int table[] = {{{','.join(str(n * 7919 % 2**31) for n in range(NUMBERS))}}};")
    else:
        with path.open("wb") as file:
            file.truncate(FILE_BYTES)
    return path


def track(job: list[str], recorded: Path, memory_bytes: int, cores: int) -> int:
    """The exit code of a tracked job under such a request."""
    options = ["--disable-logs", "--record", str(recorded), "-o", str(recorded.with_suffix(".txt"))]
    with request(memory_bytes, cores) as prefix:
        done = subprocess.run(
            [*prefix, COMMAND_LINE, "run", *options, "--", *job],
            env={**os.environ, "PYTHONPATH": str(TESTS)},
            capture_output=True,
            timeout=100,
        )
    return done.returncode


def advise(recorded: Path) -> dict[str, Any]:
    """What to ask for."""
    advice: dict[str, Any] = json.loads(run([COMMAND_LINE, "size", str(recorded), "-f", "json"]))
    return advice


@pytest.mark.uncovered
@pytest.mark.parametrize("kind", [kind.__name__ for kind in KINDS])
def test_the_next_run_passes_with_what_was_advised(kind: str, tmp_path: Path) -> None:
    """And with 1.35 times less it does not: the advice is that near to the true need."""
    job = workload("sized", kind, make_file(tmp_path, kind))
    assert track(job, tmp_path / "first.jsonl", GENEROUS_BYTES, ALL_CORES) == 0
    advice = advise(tmp_path / "first.jsonl")
    memory, cores = advice["memory_bytes"]["advised"], advice["cores"]["advised"]

    assert memory < GENEROUS_BYTES / 2
    assert not advice["memory_bytes"]["is_at_least"]
    assert track(job, tmp_path / "second.jsonl", memory, cores) == 0
    assert track(job, tmp_path / "third.jsonl", int(memory / MOST_OF_NEED), cores) != 0
