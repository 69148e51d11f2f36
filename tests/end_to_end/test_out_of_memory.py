"""A job that the kernel kills for its memory limit, in a real control group."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from end_to_end.cgroup import memory_limit
from end_to_end.launch import COMMAND_LINE

MIB = 2**20
# The command line is in the same group: it must not be the larger one, nor wait for its child.
GREEDY = "import os; hog = bytearray(os.urandom(1)) * (600 << 20)"


@pytest.mark.parametrize("inside", ["", "step"])
def test_a_kill_is_said_whichever_group_it_is_counted_in(tmp_path: Path, inside: str) -> None:
    """The limit may be set above the job's own group, as by a scheduler."""
    path = tmp_path / "report.json"
    options = ("--no-record", "-f", "json", "-o", str(path))
    with memory_limit(200 * MIB, inside) as prefix:
        command = [*prefix, COMMAND_LINE, "run", *options, "--", sys.executable, "-c", GREEDY]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    notes = json.loads(path.read_text())["notes"]

    assert done.returncode == 137
    assert [note for note in notes if note.startswith("Out of memory: the kernel killed a process")]
