"""`gpu-tracker explain`, and `--rules`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli.conftest import Run
from made_runs import GB, Device, made_run
from recorded import write


def test_the_rules_are_listed_and_explained(run: Run, tmp_path: Path) -> None:
    """With what a file changes of them."""
    (tmp_path / "rules.ini").write_text("[gpu-low]\nnote_percent = 33\n[tail]\noff = true\n")

    listed = run("explain", "--rules", "rules.ini")
    one = run("explain", "gpu-low", GPU_TRACKER_RULES="rules.ini")

    assert len(listed.stdout.splitlines()) == 39
    assert "tail                off" in listed.stdout
    assert "note_percent = 33 (jobstats, Princeton)" in one.stdout


def test_an_unknown_rule_is_answered_with_a_similar_one(run: Run) -> None:
    """Exit code 2, as every request that makes no sense."""
    done = run("explain", "gpu-lo")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gpu-tracker: No rule is called 'gpu-lo'. Did you mean 'gpu-low'?\n"


def test_a_report_is_judged_by_the_changed_rules(run: Run, tmp_path: Path) -> None:
    """From its file."""
    write(tmp_path / "x.jsonl", made_run(Device(busy=5), ram=63 * GB))
    (tmp_path / "rules.ini").write_text("[gpu-low]\noff = true\n")

    assert "serious: GPU 0 was busy for 5 % of the time." in run("report", "x.jsonl").stdout
    assert "serious: GPU 0" not in run("report", "x.jsonl", "--rules", "rules.ini").stdout


def test_devices_that_python_left_alone_are_named(run: Run, tmp_path: Path) -> None:
    """Measured, judged by a changed threshold, and printed."""
    (tmp_path / "rules.ini").write_text("[gpu-unused]\nleast_seconds = 0.1\n")
    sleep = "import time; time.sleep(2)"

    fast = ("--st", "0.01", "--max-overhead", "1")

    done = run("run", *fast, "--rules", "rules.ini", "--", sys.executable, "-c", sleep)

    assert "hint: GPU 0, 1 were there for " in done.stderr
    assert " s and never used. (possible) Can the program use it" in done.stderr


@pytest.mark.parametrize("command", [("run", "--no-record"), ("attach", "--no-record")])
def test_wrong_rules_are_refused_before_anything_starts(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """Not after hours."""
    (tmp_path / "rules.ini").write_text("[gpu-lo]\n")
    target = ["--", "touch", "started"] if command[0] == "run" else ["1"]

    done = run(*command, "--rules", "rules.ini", *target)

    assert done.returncode == 2
    assert "rules.ini: No rule is called 'gpu-lo'. Did you mean 'gpu-low'?" in done.stderr
    assert not (tmp_path / "started").exists()
