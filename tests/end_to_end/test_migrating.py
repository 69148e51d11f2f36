"""Programs and command lines written for gpu-tracker 5 work as they are: the import names the same module."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from gpu_tracker.recording.sub_tracking import read_events, read_tracking_table

PROGRAMS = Path(__file__).parent / "migrated"
# Command lines as in the existing tool's tests, and what their JSON must say.
COMMANDS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "--ru": (["-e", "sleep 0.1", "--ru=kilobytes"], {"max_ram.unit": "kilobytes"}),
    "--disable-logs": (["--execute", "sleep 0.1 ", "--disable-logs"], {"max_ram.unit": "gigabytes"}),
    "--st": (["--execute=sleep  0.1", "--st=0.4"], {"compute_time.unit": "hours"}),
    "units": (
        ["-e", "sleep 0.1", "--gru=megabytes", "--tu=days"],
        {"max_gpu_ram.unit": "megabytes", "compute_time.unit": "days"},
    ),
    "--nec": (
        ["-e", "sleep 0.1", "--nec=3", "--guuids=gpu-id1,gpu-id2,gpu-id3"],
        {"cpu_utilization.n_expected_cores": 3},
    ),
    "--gb": (["-e", "sleep 0.1", "--gb=nvidia"], {"max_ram.unit": "gigabytes"}),
    "--tf": (["-e", "sleep 0.1", "--tf=new.sqlite", "--overwrite"], {"max_ram.unit": "gigabytes"}),
}


def run(program: str, directory: Path, *arguments: str) -> dict[str, Any]:
    """What a program prints in its own directory; it must succeed and complain of nothing."""
    copy(PROGRAMS / program, directory)
    done = subprocess.run(
        [sys.executable, "-W", "error", program, *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=directory,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_a_program_that_tracks_needs_no_change(tmp_path: Path) -> None:
    """Its figures are in the places and units that it expects."""
    (tmp_path / "tracking.csv").write_text("of the last run")
    told = run("tracking.py", tmp_path, "tracking.csv")
    second, parent = told["second"], told["parent"]

    assert told["first"].startswith("Max RAM:\n   Unit: gigabytes\n   System capacity: ")
    assert "   Number of expected cores: 1\n" in told["first"]
    assert second["max_ram"]["main"]["total_rss"] >= 80
    assert 0.4 <= second["compute_time"]["time"] <= told["seconds"]
    assert (told["message"], told["failed"]["max_gpu_ram"]["main"]) == ("AN ERROR", 0.0)
    assert parent["max_ram"]["descendants"]["total_rss"] >= 0.08
    assert parent["cpu_utilization"]["descendants_n_threads"] >= 1
    assert read_tracking_table(str(tmp_path / "tracking.csv")).timestamps
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tracking.csv", "tracking.py"]


def test_a_program_with_code_blocks_needs_no_change(tmp_path: Path, command_line: str) -> None:
    """Its files have all calls of all processes, with the time that the program knows of; the report has them too."""
    (tmp_path / "sub-tracking.csv").write_text("of the last run")
    told = run("sub_tracking.py", tmp_path)
    own = sorted(path.name for path in tmp_path.glob("[0-9]*.csv"))

    def ask(*arguments: str) -> str:
        command = [command_line, "sub-track", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout

    ask("combine", "--stf=workers.csv", *(word for name in own for word in ("-p", name)))
    analyzed = json.loads(ask("analyze", "--tf=tracking.csv", "--stf=sub-tracking.csv", "--format=json"))
    workers = json.loads(ask("analyze", "--tf=tracking.csv", "--stf=workers.csv", "--format=json"))
    block, function = analyzed["code_block_results"]
    (worker,) = workers["code_block_results"]

    assert [block["name"], function["name"]] == ["my-code-block", "my-function"]
    assert worker["name"] == "sub_tracking.py:in_a_worker"
    for found, truth in ((block, told["blocks"]), (function, told["functions"]), (worker, told["workers"])):
        assert found["num_calls"] == len(truth)
        assert found["compute_time"]["total"] == pytest.approx(sum(truth), abs=0.005 * len(truth), rel=0.02)
        assert found["num_timepoints"] > 0
    assert told["totals"] == [block["compute_time"]["total"], function["compute_time"]["total"]]
    assert told["regions"] == {"my-code-block": 4, "my-function": 3, worker["name"]: 4}
    assert 1 <= len(own) <= 2
    assert {event.process_id for event in read_events(str(tmp_path / "workers.csv"))} == {
        int(name.removesuffix(".csv")) for name in own
    }
    assert "my-code-block" in ask("compare", "-m", "A=results.json", "-m", "B=results.json", "--stat=max")


@pytest.mark.parametrize("case", COMMANDS)
@pytest.mark.parametrize("to_file", [False, True])
def test_command_lines_need_no_change(tmp_path: Path, command_line: str, case: str, to_file: bool) -> None:
    """The sentence goes to standard output, and the result after it or to the file, without a newline at its end."""
    arguments, expected = COMMANDS[case]
    output = ["-o", "my-file"] if to_file else []
    done = subprocess.run(
        [command_line, *arguments, "-f", "json", *output],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
    )
    first, _, rest = done.stdout.partition("\n")
    written = (tmp_path / "my-file").read_text() if to_file else rest.removesuffix("\n")
    result = json.loads(written)

    assert done.returncode == 0, done.stderr
    assert first == "Resource tracking complete. Process completed with status code: 0"
    assert written.endswith("}")
    assert (rest == "") == to_file
    for place, value in expected.items():
        part, _, name = place.partition(".")
        assert result[part][name] == value
