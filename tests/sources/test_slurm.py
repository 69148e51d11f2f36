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
        ("COMPLETED|1769860800|train\n", ("COMPLETED", "train", 1769860800.0)),
        ("CANCELLED by 1001|Unknown|my job|x\nFAILED|1|other\n", ("CANCELLED", "my job|x", None)),
        (
            "JobId=7 JobName=train UserId=a(1) JobState=OUT_OF_MEMORY Reason=None StartTime=1769860800 EndTime=2\n",
            ("OUT_OF_MEMORY", "train", 1769860800.0),
        ),
        ("JobId=7 JobState=TIMEOUT", ("TIMEOUT", "", None)),
        ("", (None, "", None)),
        ("slurm_load_jobs error: Invalid job id", (None, "", None)),
        ("\x1b[31mRED|1|x", (None, "x", 1.0)),
    ],
)
def test_answers_of_both_commands(text: str, answer: tuple[str | None, str, float | None]) -> None:
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

    assert ask_state("7", "train", commands=[broken, known]) == "TIMEOUT"
    assert ask_state("7", None, commands=[broken, known]) == "TIMEOUT"
    assert ask_state("7", "train", commands=[broken, (str(tmp_path / "missing"),)]) is None


@pytest.mark.parametrize(
    ("began_seconds", "state"),
    [(999.0, "REQUEUED"), (1000.0, "COMPLETED"), (2000.0, "COMPLETED"), (None, "COMPLETED")],
)
def test_what_began_before_the_last_start_was_requeued(
    tmp_path: Path, began_seconds: float | None, state: str
) -> None:
    """The state is that of the job's last life. Clocks may differ by some seconds; times are asked for in seconds since 1970."""
    known = put(tmp_path, "sacct", '[ "$SLURM_TIME_FORMAT" = %s ] && echo "COMPLETED|1005|train"')

    assert ask_state("7", "train", began_seconds, [known]) == state


def test_a_job_of_another_cluster_has_another_name(tmp_path: Path) -> None:
    """Numbers are not unique in the world."""
    known = put(tmp_path, "sacct", "echo 'FAILED|1|other'")

    assert ask_state("7", "train", commands=[known]) is None


@pytest.mark.parametrize("job", ["--help", "7 8", "", "7;rm", "\u0667"])
def test_what_is_no_number_is_not_asked_for(tmp_path: Path, job: str) -> None:
    """It comes from a recording, which may be anybody's."""
    asked = put(tmp_path, "sacct", f"touch {tmp_path}/asked; echo 'FAILED|1|x'")

    assert ask_state(job, None, commands=[asked]) is None
    assert not (tmp_path / "asked").exists()


def test_a_controller_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    """Two seconds for both together, and nothing is left."""
    slow = put(tmp_path, "sacct", "exec sleep 60")
    began = time.monotonic()

    assert ask_state("7", None, commands=[slow, slow]) is None
    assert time.monotonic() - began < 30
    assert not any(
        b"60" in Path(f"/proc/{pid}/cmdline").read_bytes()
        for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    )
