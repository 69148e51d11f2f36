"""Defects of ours, made on purpose: they cost the report, and never the job's exit code."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cli.conftest import COMMAND, Run
from gpu_tracker.cli.defects import survive
from gpu_tracker.core.errors import TrackerError
from patience import wait_until

# Loaded by every Python process before its own program.
_BREAK = """\
from gpu_tracker.{} import {} as module

def fail(*_):
    raise ValueError("an empty sequence")

module.{} = fail
"""
_RENDERING = ("reports", "report", "to_text")


def break_it(directory: Path, package: str, module: str, function: str) -> dict[str, str]:
    """The environment in which that function fails."""
    hook = directory / "broken"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(_BREAK.format(package, module, function))
    return {"PYTHONPATH": str(hook)}


def test_the_jobs_exit_code_survives_a_report_that_cannot_be_shown(run: Run, tmp_path: Path) -> None:
    """One sentence, where the recording is, and no traceback: the recording shows it again."""
    broken = break_it(tmp_path, *_RENDERING)
    done = run("run", "--record", "run.jsonl", "--", "sh", "-c", "exit 7", **broken)

    assert done.returncode == 7
    assert "A defect of gpu-tracker, not of the job" in done.stderr
    assert "ValueError: an empty sequence" in done.stderr
    assert str(tmp_path / "run.jsonl") in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_recording_it_is_said_where_it_happened(run: Run, tmp_path: Path) -> None:
    """Nothing else could tell."""
    broken = break_it(tmp_path, *_RENDERING)
    done = run("run", "--no-record", "--", "sh", "-c", "kill -TERM $$", **broken)

    assert done.returncode == -15
    assert "Traceback" in done.stderr
    assert "in fail" in done.stderr


def test_limits_are_checked_although_nothing_can_be_shown(run: Run, tmp_path: Path) -> None:
    """A limit that is broken is said; one that is kept does not make up for the lost report."""
    broken = break_it(tmp_path, *_RENDERING)
    too_long = run("run", "--no-record", "--fail-if", "time > 0s", "--", "true", **broken)
    kept = run("run", "--no-record", "--fail-if", "time > 1h", "--", "true", **broken)

    assert too_long.returncode == 1
    assert "FAILED time > 0s" in too_long.stderr
    assert kept.returncode == TrackerError.exit_code


def test_limits_that_cannot_be_checked_do_not_pass(run: Run, tmp_path: Path) -> None:
    """Nor do they cost a failed job its exit code."""
    broken = break_it(tmp_path, "analysis", "measures", "measure")
    passed = run("run", "--no-record", "--fail-if", "time > 1h", "--", "true", **broken)
    failed = run("run", "--no-record", "--fail-if", "time > 1h", "--", "sh", "-c", "exit 9", **broken)

    assert (passed.returncode, failed.returncode) == (TrackerError.exit_code, 9)


def test_the_exit_code_survives_the_loss_of_the_result(run: Run, tmp_path: Path) -> None:
    """Even what comes before the report: the end of the recording."""
    hook = tmp_path / "broken"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(
        "from gpu_tracker.api.session import Session\n"
        "def fail(*_, **__):\n"
        "    raise ValueError('no end')\n"
        "Session.stop = fail\n"
    )
    done = run("run", "--no-record", "--", "sh", "-c", "exit 7", PYTHONPATH=str(hook))
    old = run("-e", "sh -c 'exit 6'", PYTHONPATH=str(hook))
    gated = run("run", "--no-record", "--fail-if", "time > 1h", "--", "true", PYTHONPATH=str(hook))

    assert (done.returncode, old.returncode) == (7, 6)
    assert "no end" in done.stderr
    assert gated.returncode == TrackerError.exit_code


def test_the_compatible_form_keeps_the_exit_code_too(run: Run, tmp_path: Path) -> None:
    """Whatever happens to its table."""
    broken = break_it(tmp_path, "reports", "paper", "to_text")
    done = run("-e", "sh -c 'exit 5'", "-f", "text", **broken)

    assert done.returncode == 5
    assert "A defect of gpu-tracker" in done.stderr


def test_attach_says_it_in_a_sentence(tmp_path: Path) -> None:
    """The process is not ours: its exit code is not either."""
    broken = break_it(tmp_path, *_RENDERING)
    file = tmp_path / "run.jsonl"
    with (
        subprocess.Popen(["sleep", "600"]) as job,
        subprocess.Popen(
            [COMMAND, "attach", str(job.pid), "--record", str(file)],
            env={**os.environ, **broken},
            stderr=subprocess.PIPE,
            text=True,
        ) as attached,
    ):
        try:
            wait_until(lambda: file.exists() and file.stat().st_size, "it is recorded")
        finally:
            job.terminate()
        _, said = attached.communicate()

    assert attached.returncode == TrackerError.exit_code
    assert "A defect of gpu-tracker" in said
    assert str(file) in said


def test_what_the_user_can_act_on_is_no_defect(capfd: pytest.CaptureFixture[str]) -> None:
    """It is said as it is."""

    def fail() -> int:
        raise TrackerError("The disk is full.")

    assert survive(lambda: 1, 2, None) == 1
    assert survive(fail, 2, "run.jsonl") == 2
    assert capfd.readouterr().err == "gpu-tracker: The disk is full. The recording is run.jsonl.\n"
