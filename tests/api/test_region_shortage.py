"""Regions in a process that has run out of something, or cannot reach its tracker: they do nothing, and the report says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gpu_tracker as gput

USE = """
with gput.region("block") as one: assert one is not None
assert gput.region("call")(lambda: 7)() == 7
gput.log(step=1, loss=2.0)
print("survived")
"""
NO_DESCRIPTORS = "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))"
NO_MEMORY = """
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize(), -1))
"""


def track(tmp_path: Path, command_line: str, program: str) -> gput.Recording:
    """The recording of a program, which must survive."""
    script, record = tmp_path / "program.py", tmp_path / "run.jsonl"
    script.write_text(f"import os, resource, gpu_tracker as gput\n{program}")
    command = [command_line, "run", "--record", str(record), "--", sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout.partition("\n")[0]) == (0, "survived"), done.stderr
    return gput.load(record)


@pytest.mark.parametrize("shortage", [NO_DESCRIPTORS, NO_MEMORY])
def test_a_region_that_cannot_be_loaded_does_nothing(
    tmp_path: Path, command_line: str, shortage: str
) -> None:
    """Its code is loaded when it is first used, and that may be too late."""
    recording = track(tmp_path, command_line, shortage + USE)

    assert recording.regions == ()
    assert any(note.startswith("Regions of 1 process could not be followed") for note in recording.notes)


def test_other_names_say_why_they_cannot_be_loaded() -> None:
    """Who asks for a tracker must learn that there is none."""
    program = f"import resource, gpu_tracker as gput\n{NO_DESCRIPTORS}\ngput.Tracker"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)

    assert "Too many open files" in done.stderr
