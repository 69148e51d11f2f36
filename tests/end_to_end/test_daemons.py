"""Jobs that close descriptors, or have none: their files are left alone, and ours by them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gpu_tracker as gput

WORKLOADS = Path(__file__).parent / "workloads"
WORKLOAD = WORKLOADS / "daemonizing.py"
CHROOTED = """
import os, sys, gpu_tracker as gput
{before}
child = os.fork()
if not child:
    os.chroot(sys.argv[1])
    for _ in range(5):
        with gput.region("inside"): gput.log(x=1)
    os._exit(0)
os.waitpid(child, 0)
"""


def test_files_of_a_daemon_stay_open(tmp_path: Path, command_line: str) -> None:
    """It closes all descriptors, ours among them, and uses their numbers again."""
    told = tmp_path / "told"
    subprocess.run(
        [command_line, "run", "--no-record", "--", sys.executable, WORKLOAD, told],
        cwd=tmp_path,
        capture_output=True,
        check=True,
        timeout=200,
    )

    assert json.loads(told.read_text()) == []


@pytest.mark.parametrize("where", ["inside", "around"])
def test_files_that_were_opened_before_a_fork_stay_open(
    tmp_path: Path, command_line: str, where: str
) -> None:
    """In the child, in one that is about to become another program, and when a tracker stops."""
    program = [sys.executable, str(WORKLOADS / "forking_late.py"), str(tmp_path), where]
    command = program if where == "inside" else [command_line, "run", "--no-record", "--", *program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=200, check=True)

    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(("limit", "count"), [(256, 3), (1024, 600)])
def test_metrics_are_not_written_to_files_of_the_program(
    tmp_path: Path, command_line: str, limit: int, count: int
) -> None:
    """It has closed ours, and its own have their numbers; none is lost."""
    script = f'ulimit -n {limit}; exec "$@"'
    command = [command_line, "run", "--record", "x.jsonl", "--", sys.executable]
    done = subprocess.run(
        ["sh", "-c", script, "sh", *command, WORKLOADS / "reusing.py", tmp_path, str(count)],
        cwd=tmp_path,
        capture_output=True,
        check=True,
        timeout=200,
    )

    assert json.loads(done.stdout) == []
    recording = gput.load(tmp_path / "x.jsonl")
    assert sorted(row.values["x"] for row in recording.metric_rows) == [-1, 0, 1, 2, 3, 4]
    assert [metric.last for metric in recording.metrics] == [4]


@pytest.mark.parametrize("closed", [">&- 2>&-", "<&- >&- 2>&-", "2>&-"])
def test_what_is_printed_to_closed_streams_reaches_no_file_of_ours(
    tmp_path: Path, command_line: str, closed: str
) -> None:
    """A library writes to standard error whatever that is."""
    command = [command_line, "run", "--record", "x.jsonl", "-o", "x.txt", "--", sys.executable]
    script = f'"$@" {closed}'
    subprocess.run(
        ["sh", "-c", script, "sh", *command, WORKLOADS / "writing_blindly.py"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
        timeout=200,
    )
    recording = gput.load(tmp_path / "x.jsonl")
    (region,) = recording.report.regions

    assert (region.path, region.calls, len(recording.metric_rows)) == (("work",), 20, 20)
    assert recording.report.summary.ram.combined.total_bytes < 10**9


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("before", ["", "with gput.region('a'): pass", "gput.log(x=1)"])
def test_a_worker_with_another_root_says_that_it_is_not_recorded(
    tmp_path: Path, command_line: str, before: str
) -> None:
    """Whatever its parent did before."""
    (tmp_path / "jail").mkdir()
    code = CHROOTED.format(before=before)
    done = subprocess.run(
        [command_line, "run", "--no-record", "--", sys.executable, "-c", code, tmp_path / "jail"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )

    assert "are not recorded: No such file or directory" in done.stderr
