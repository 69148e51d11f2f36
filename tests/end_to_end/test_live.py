"""A job that is shown while it runs, in a log; and a command that hears of what goes wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from end_to_end.faults import Scene, tracker
from patience import wait_until

LINE = re.compile(r"gpu-tracker \d+:\d\d:\d\d  <?[\d.]+ of [\d.]+ cores  RAM ")
# A machine that runs tests is busy.
RULES = "[nan-then-burned]\nleast_seconds = 0.1\n[crowded-machine]\noff = true\n"
# Its loss is not a number, and it goes on until somebody has heard of it.
BROKEN = """\
import os, sys, time
import gpu_tracker
gpu_tracker.log(loss=1.0)
gpu_tracker.log(loss=float("nan"))
while not os.path.exists("told"):
    time.sleep(0.01)
print("over")
"""
# It ends instead when it has been measured often enough for a finding.
UNTIL_RECORDED = (
    'while not os.path.exists("told")',
    'import pathlib\nwhile sum(path.read_text().count("sample") for path in pathlib.Path("gpu-tracker-runs").iterdir()) < 60',
)


def notify(scene: Scene, python: str, command: str, *options: str) -> list[str]:
    """The command that tracks such a job."""
    (scene.directory / "rules.ini").write_text(RULES)
    (scene.directory / "job.py").write_text(BROKEN)
    words = ("run", "--st", "0.05", "--gpu", "none", "--rules", "rules.ini", *options, "--notify", command)
    return tracker(*words, "--", python, "job.py")


@pytest.mark.parametrize("record", ["--no-record", "--record=runs"])
def test_a_line_now_and_then(scene: Scene, record: str) -> None:
    """On standard error; standard output is the job's. Also without a recording that is kept."""
    job = "for n in 1 2 3 4 5 6 7 8; do echo $n; sleep 0.1; done"
    command = tracker("run", "--live=0.1", "--st", "0.05", "--gpu", "none", record, "--", "sh", "-c", job)
    outcome = scene.run(command)

    assert outcome.returncode == 0
    assert outcome.stdout == "1\n2\n3\n4\n5\n6\n7\n8\n"
    lines = outcome.stderr.partition("sh -c")[0].splitlines()
    assert len(lines) > 1
    assert all(map(LINE.match, lines))


def test_a_short_job_has_no_line(scene: Scene) -> None:
    """The first one comes after the interval, which is a minute."""
    outcome = scene.run(tracker("run", "--live", "--st", "0.05", "--", "sleep", "0.3"))

    assert not re.search("^gpu-tracker", outcome.stderr, re.MULTILINE)


def test_a_command_hears_of_a_finding(scene: Scene, python: str) -> None:
    """Once, as its last argument and in variables; it costs the job nothing."""
    script = scene.directory / "hear.sh"
    script.write_text(
        'printf "%s|%s|%s|%s\\n" "$1" "$2" "$GPU_TRACKER_RULE" "$GPU_TRACKER_FINDING" >> told\n'
    )
    outcome = scene.run(notify(scene, python, "sh hear.sh first", "-o", "report.json"))

    assert outcome.stdout == "over\n"
    assert "--notify" not in outcome.stderr
    (line,) = (scene.directory / "told").read_text().splitlines()
    first, argument, rule, sentence = line.split("|")
    assert (first, rule, argument) == ("first", "nan-then-burned", sentence)
    assert sentence.startswith("loss became nan at ")
    report = json.loads((scene.directory / "report.json").read_text())
    assert report["summary"]["processes"] == 1


def test_a_finding_is_told_when_the_job_ends_at_the_latest(scene: Scene, python: str) -> None:
    """Nobody looks before the end of this job, an hour being too long for it."""
    command = notify(scene, python, "sh hear.sh", "--live=3600")
    (scene.directory / "hear.sh").write_text('echo "$GPU_TRACKER_RULE" >> told\n')
    (scene.directory / "job.py").write_text(BROKEN.replace(*UNTIL_RECORDED))
    outcome = scene.run(command)

    assert outcome.stdout == "over\n"
    assert "loss became nan at " in outcome.stderr
    wait_until((scene.directory / "told").exists, "it was told")
    assert (scene.directory / "told").read_text() == "nan-then-burned\n"


def test_a_command_may_place_the_sentence_itself(scene: Scene, python: str) -> None:
    """As `$1`."""
    scene.run(notify(scene, python, 'echo "heard: $1, and so on" > told.part; mv told.part told'))

    heard = (scene.directory / "told").read_text()
    assert re.fullmatch(r"heard: loss became nan at .* followed\., and so on\n", heard)


def test_a_command_that_fails_is_reported_once(scene: Scene, python: str) -> None:
    """After the job, which ends as it would have."""
    outcome = scene.run(notify(scene, python, "touch told; printf no%s ise | tee /dev/stderr; exit 3;"))

    assert outcome.returncode == 0
    assert outcome.stdout == "over\n"
    assert outcome.stderr.count("--notify: ") == 1
    assert "failed with exit code 3." in outcome.stderr
    assert "noise" not in outcome.stderr


@pytest.mark.parametrize("seconds", ["python", "0", "nan", "inf", "-1"])
def test_a_wrong_interval_is_refused(scene: Scene, seconds: str) -> None:
    """Before anything runs; most likely it is the command."""
    outcome = scene.run(tracker("run", f"--live={seconds}", "--", "touch", "ran"))

    assert outcome.returncode == 2
    assert "is not a number of seconds" in outcome.stderr
    assert not Path(scene.directory / "ran").exists()
