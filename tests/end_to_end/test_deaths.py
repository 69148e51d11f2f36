"""Real processes die in every way that is explained: the cause, and how sure it is."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import gpu_tracker as gput
from end_to_end.cgroup import memory_limit
from end_to_end.faults import MEGABYTE, Scene, needs_root, tracker, workload
from gpu_tracker.analysis.endings import TIME_LIMIT_SLACK_SECONDS

QUIET = ["run", "--no-record", "--st", "0.1", "-f", "json", "-o", "report.json", "--"]


def explain(scene: Scene) -> Any:
    """What the report says about the end: certainty and sentence, or why it was not judged."""
    report = json.loads((scene.directory / "report.json").read_text())
    found = [finding for finding in report["findings"] if finding["rule"] == "killed-why"]
    return (found[0]["confidence"], found[0]["sentence"]) if found else report["unjudged"]["killed-why"]


@needs_root
def test_a_kill_by_the_kernel_is_certain(scene: Scene) -> None:
    """Its counter has risen; the note stays, and is in the recording as an event of its own kind."""
    with memory_limit(150 * MEGABYTE) as prefix:
        outcome = scene.run([*prefix, *tracker(*QUIET, *workload("busy", 0.1, 400))])
        assert outcome.returncode == -signal.SIGKILL, outcome.stderr
        recorded = scene.run(
            [*prefix, *tracker("run", "--record", "x.jsonl", "--", *workload("busy", 0.1, 400))]
        )
        scene.wait_until_alone()

    confidence, sentence = explain(scene)
    assert confidence == "certain"
    assert sentence.startswith("The kernel killed it for its memory: ")
    assert re.search(r" At the (peak|largest reading): main ", sentence)
    assert "note: Out of memory: the kernel killed a process" in recorded.stderr
    assert "serious: The kernel killed it for its memory" in recorded.stderr
    kinds = [json.loads(line)["event"]["kind"] for line in _read_events(scene.directory / "x.jsonl")]
    assert "oom" in kinds


def _read_events(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.startswith('{"event"')]


def limit_address_space() -> None:
    """Enough for gpu-tracker itself."""
    resource.setrlimit(resource.RLIMIT_AS, (600 * MEGABYTE, 600 * MEGABYTE))


def test_an_address_space_that_is_used_up_is_likely(scene: Scene) -> None:
    """The program fails by itself, with its own exit code."""
    process = scene.start(tracker(*QUIET, *workload("mapping")), preexec_fn=limit_address_space)

    assert scene.finish(process).returncode == 1
    confidence, sentence = explain(scene)
    assert confidence == "likely"
    assert sentence.startswith("Probably an allocation was refused: a process had mapped ")


def start_job(scene: Scene, **environment: str) -> tuple[subprocess.Popen[str], int]:
    """A tracked job that waits for its input, and its own number."""
    process = scene.start(tracker(*QUIET, *workload("busy", 0, 1)), env=environment, stdin=subprocess.PIPE)
    assert process.stdout is not None
    return process, int(process.stdout.readline().split()[1])


def test_a_kill_by_somebody_is_not_explained(scene: Scene) -> None:
    """Nothing is said about memory but that it did not run out."""
    process, pid = start_job(scene)
    os.kill(pid, signal.SIGKILL)

    assert scene.finish(process).returncode == -signal.SIGKILL
    confidence, sentence = explain(scene)
    assert confidence == "possible"
    assert sentence.startswith(
        "Killed by SIGKILL; who sent it is not known. Nothing shows that memory ran out"
    )


def test_137_of_the_program_itself_proves_nothing(scene: Scene) -> None:
    """As many take it for a proof."""
    assert scene.run(tracker(*QUIET, "sh", "-c", "exit 137")).returncode == 137

    confidence, sentence = explain(scene)
    assert confidence == "possible"
    assert "or the program returned" in sentence


@pytest.mark.parametrize(("is_late", "expected"), [(True, "likely"), (False, "possible")])
def test_sigterm_is_the_schedulers_if_the_time_is_up(scene: Scene, is_late: bool, expected: str) -> None:
    """By the variables of Slurm, which may send it a few seconds before."""
    end = int(time.time() + (TIME_LIMIT_SLACK_SECONDS if is_late else 1000))
    process, pid = start_job(scene, SLURM_JOB_START_TIME=str(end - 3600), SLURM_JOB_END_TIME=str(end))
    os.kill(pid, signal.SIGTERM)

    assert scene.finish(process).returncode == -signal.SIGTERM
    confidence, sentence = explain(scene)
    assert confidence == expected
    assert (sentence == "The time limit of 1 h 00 min 00 s was reached, and the job got SIGTERM.") == is_late


def test_a_memory_error_of_a_command_is_its_own_to_tell(scene: Scene) -> None:
    """Nobody outside knows of it, unless a limit was nearly reached."""
    outcome = scene.run(tracker(*QUIET, sys.executable, "-c", "bytearray(2**62)"))

    assert "MemoryError" in outcome.stderr
    assert explain(scene) == "nothing is known that would explain it better than its own output"


def test_a_memory_error_in_a_block_is_certain(tmp_path: Path) -> None:
    """Its class is recorded, not its message."""
    path = tmp_path / "run.jsonl"
    with pytest.raises(MemoryError), gput.Tracker(record=path) as tracked:
        bytearray(2**62)

    assert tracked.report is not None
    for report in (tracked.report, gput.load(path).report):
        (finding,) = report.findings
        assert (finding.rule, finding.confidence) == ("killed-why", "certain")
        assert finding.sentence.startswith("An allocation of memory was refused (MemoryError).")
    assert [json.loads(line)["event"]["text"] for line in _read_events(path) if "exception" in line] == [
        "MemoryError"
    ]


class TooLarge(MemoryError):  # noqa: N818 - that is the point
    """An error whose name does not say that it is one of memory."""


def test_an_error_derived_from_a_memory_error_is_one(tmp_path: Path) -> None:
    """As NumPy's and PyTorch's are, whatever they are called."""
    with pytest.raises(TooLarge), gput.Tracker(record=tmp_path / "run.jsonl") as tracked:
        raise TooLarge

    assert tracked.report is not None
    (finding,) = tracked.report.findings
    assert finding.confidence == "certain"
    assert finding.sentence.startswith(
        "An allocation of memory was refused (TooLarge, derived from MemoryError)."
    )


def test_another_exception_has_nothing_to_do_with_memory(tmp_path: Path) -> None:
    """It is recorded all the same; without one nothing is."""
    with pytest.raises(ValueError, match="secret"), gput.Tracker(record=tmp_path / "raised.jsonl") as tracked:
        raise ValueError("secret")
    with gput.Tracker(record=tmp_path / "fine.jsonl") as fine:
        pass

    assert tracked.report is not None
    assert tracked.report.findings == ()
    text = (tmp_path / "raised.jsonl").read_text()
    assert '"kind":"exception","text":"ValueError"' in text
    assert "secret" not in text
    assert fine.report is not None
    assert "exception" not in (tmp_path / "fine.jsonl").read_text()
