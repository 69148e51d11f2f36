"""What Slurm says of a job: its commands' own answers, other clusters' jobs, and commands that hang."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gpu_tracker.sources.slurm import ask_state, parse_answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("COMPLETED|train\n", ("COMPLETED", "train")),
        ("CANCELLED by 1001|my job|x\nFAILED|other\n", ("CANCELLED", "my job|x")),
        (
            "JobId=7 JobName=train UserId=a(1) JobState=OUT_OF_MEMORY Reason=None\n",
            ("OUT_OF_MEMORY", "train"),
        ),
        ("JobId=7 JobState=TIMEOUT", ("TIMEOUT", "")),
        ("", (None, "")),
        ("slurm_load_jobs error: Invalid job id", (None, "")),
        ("\x1b[31mRED|x", (None, "x")),
    ],
)
def test_answers_of_both_commands(text: str, answer: tuple[str | None, str]) -> None:
    """Only a word is a state."""
    assert parse_answer(text) == answer


def put(folder: Path, name: str, script: str) -> tuple[str, ...]:
    """A command that answers so."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return (str(path),)


def test_who_knows_the_job_is_asked_first(tmp_path: Path) -> None:
    """Without accounting the controller may remember it."""
    broken = put(tmp_path, "sacct", "echo 'Slurm accounting storage is disabled'; exit 1")
    known = put(tmp_path, "scontrol", 'echo "JobId=$1 JobName=train JobState=TIMEOUT"')

    assert ask_state("7", "train", [broken, known]) == "TIMEOUT"
    assert ask_state("7", None, [broken, known]) == "TIMEOUT"
    assert ask_state("7", "train", [broken, (str(tmp_path / "missing"),)]) is None


def test_a_job_of_another_cluster_has_another_name(tmp_path: Path) -> None:
    """Numbers are not unique in the world."""
    known = put(tmp_path, "sacct", "echo 'FAILED|other'")

    assert ask_state("7", "train", [known]) is None


@pytest.mark.parametrize("job", ["--help", "7 8", "", "7;rm", "\u0667"])
def test_what_is_no_number_is_not_asked_for(tmp_path: Path, job: str) -> None:
    """It comes from a recording, which may be anybody's."""
    asked = put(tmp_path, "sacct", f"touch {tmp_path}/asked; echo 'FAILED|x'")

    assert ask_state(job, None, [asked]) is None
    assert not (tmp_path / "asked").exists()


def test_a_controller_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    """Two seconds for both together, and nothing is left."""
    slow = put(tmp_path, "sacct", "exec sleep 60")
    began = time.monotonic()

    assert ask_state("7", None, [slow, slow]) is None
    assert time.monotonic() - began < 30
    assert not any(
        b"60" in Path(f"/proc/{pid}/cmdline").read_bytes()
        for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    )
