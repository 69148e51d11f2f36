"""`gpu-tracker top` without a terminal: which run is meant, and a frame of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from builders import header
from cli.conftest import COMMAND
from gpu_tracker.core.model import Identity, MetricRow, RecordingData
from gpu_tracker.core.moments import stamp_moment
from gpu_tracker.recording.lock import hold
from patience import wait_until
from recorded import interval, run, write

Ask = Callable[..., "subprocess.CompletedProcess[str]"]
RUNS = "gpu-tracker-runs"


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Run `gpu-tracker top` in a directory of its own."""

    def ask_command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, "top", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=200,
            env={**os.environ, "COLUMNS": "80", "LINES": "24", **environment},
        )

    return ask_command


def finished(name: str, job: str | None = None, day: int = 1, **fields: Any) -> RecordingData:
    """A run with that name."""
    first = header(identity=Identity(name=name, job=job), started_at=f"2026-01-0{day}T12:00:00.000+00:00")
    samples = tuple(interval(float(at), 100 + at, threads=1, processes=1) for at in range(60))
    return run(60.0, **{"samples": samples, **fields})._replace(header=first)


def running(name: str, job: str | None = None, day: int = 1, **fields: Any) -> RecordingData:
    """One that has no end yet."""
    made = finished(name, job, day, **fields)._replace(end=None)
    # Its last sample is of now: of another host, a young file with old samples is a copy.
    started_at = stamp_moment(time.time() - made.totals.at_seconds + day)
    return made._replace(header=made.header._replace(started_at=started_at))


def read_title(done: subprocess.CompletedProcess[str]) -> str:
    """The name of the run that is shown."""
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()[0].split()[-2]


def test_a_frame_for_a_log(ask: Ask, tmp_path: Path) -> None:
    """As a text: no escape codes, no keys."""
    rows = tuple(MetricRow(at, {"loss": 1 / at}, step=10 * at) for at in (10.0, 20.0, 30.0))
    write(tmp_path / "run.jsonl", finished("base", metrics=rows))
    done = ask("run.jsonl", "--once", "--steps", "1000")
    lines = done.stdout.splitlines()

    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0].split()[:5] == ["EXIT", "CODE", "0", "0:01:00", "base"]
    assert any(line.startswith("steps 300 of 1000, 10/s") for line in lines)
    assert any(line.startswith("loss    0.0333") for line in lines)
    assert "\x1b" not in done.stdout
    assert "quit" not in done.stdout


def test_a_small_window_gets_a_frame_too(ask: Ask, tmp_path: Path) -> None:
    """A log has no size; the smallest frame is printed."""
    write(tmp_path / "run.jsonl", finished("base"))
    done = ask("run.jsonl", "--once", COLUMNS="20", LINES="5")

    assert (done.returncode, read_title(done)) == (0, "base")
    assert any(line.startswith("RAM ") for line in done.stdout.splitlines())


def test_ascii_where_nothing_else_can_be_shown(ask: Ask, tmp_path: Path) -> None:
    """As with every command."""
    write(tmp_path / "run.jsonl", finished("base"))

    assert ask("run.jsonl", "--once", LC_ALL="C").stdout.isascii()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "run.jsonl is empty: gpu-tracker was killed at the start"),
        (b"\xff" * 300, "run.jsonl is not a gpu-tracker recording."),
    ],
)
def test_a_file_that_is_no_recording_is_not_waited_for(
    ask: Ask, tmp_path: Path, content: bytes, reason: str
) -> None:
    """It gets the sentence of `ls`."""
    (tmp_path / "run.jsonl").write_bytes(content)
    done = ask("run.jsonl", "--once")

    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr


def test_a_frame_that_cannot_be_written_is_said(ask: Ask, tmp_path: Path) -> None:
    """As by every other command: `top --once > file` on a full disk."""
    write(tmp_path / "run.jsonl", finished("mine"))
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run(
            [COMMAND, "top", "--once", "run.jsonl"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )

    assert (done.returncode, done.stderr) == (
        3,
        "gpu-tracker: Cannot write to standard output: No space left on device.\n",
    )


def test_a_run_that_has_just_been_started_is_waited_for(ask: Ask, tmp_path: Path) -> None:
    """Its writer holds the file."""
    with (tmp_path / "run.jsonl").open("wb") as file:
        hold(file.fileno())
        done = ask("run.jsonl", "--once")

    assert done.returncode == 0
    assert "Waiting for the first sample..." in done.stdout


def test_of_a_directory_the_newest_running_run_is_shown(ask: Ask, tmp_path: Path) -> None:
    """Else the newest; by default it is the usual directory."""
    folder = tmp_path / RUNS
    write(folder / "a.jsonl", finished("a", day=3))
    write(folder / "b.jsonl", finished("b", day=4))
    assert read_title(ask("--once")) == "b"

    write(folder / "c.jsonl", running("c", day=1))
    write(folder / "d.jsonl", running("d", day=2))
    (folder / "e.jsonl").write_text("nothing of ours\n")
    assert read_title(ask("--once", RUNS)) == "d"
    assert read_title(ask("--once", f"{RUNS}/a.jsonl")) == "a"


def test_a_job_is_found_by_its_id_or_name(ask: Ask, tmp_path: Path) -> None:
    """Of several, a running one; else the newest."""
    folder = tmp_path / RUNS
    write(folder / "a.jsonl", finished("night", job="4711", day=3))
    write(folder / "b.jsonl", finished("day", job="4711", day=4))
    write(folder / "c.jsonl", running("old", job="4712_3", day=1))

    assert read_title(ask("--once", "night")) == "night"
    assert read_title(ask("--once", "4712_3")) == "old"
    write(folder / "d.jsonl", running("again", job="4712_3", day=2))
    assert read_title(ask("--once", "4712_3")) == "again"


@pytest.fixture
def tracked(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A tracked job, elsewhere than in the usual directory."""
    folder = tmp_path / "else where"
    words = [COMMAND, "run", "--st", "0.1", "--gpu", "none", "--name", "tracked", "--record", str(folder)]
    job = [sys.executable, "-c", "import sys; print('ready', flush=True); sys.stdin.read()"]
    process = subprocess.Popen([*words, "--", *job], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    yield process
    process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")
@pytest.mark.usefixtures("tracked")
def test_a_process_is_found_wherever_its_recording_is(ask: Ask, tmp_path: Path) -> None:
    """By the process that writes it."""
    (path,) = wait_for_recording(tmp_path / "else where")
    pid = path.read_text("utf-8").partition('"pid":')[2].partition(",")[0]

    assert read_title(ask("--once", pid)) == "tracked"


def wait_for_recording(folder: Path) -> list[Path]:
    """Until it has its first lines."""
    wait_until(lambda: any(path.stat().st_size for path in folder.glob("*.jsonl")), "a recording is there")
    return list(folder.glob("*.jsonl"))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--once"], "There are no recordings in gpu-tracker-runs."),
        (["--once", "."], "There is no recording in .."),
        (["--once", "nowhere"], "There is no file, process or job 'nowhere'."),
        (["--once", "./nowhere"], "Cannot read ./nowhere: No such file or directory."),
        (["--once", "none.jsonl"], "Cannot read none.jsonl: No such file or directory."),
        (["--speed", "0", "."], "--speed: '0' is not a number above 0."),
        (["--steps", "many", "."], "--steps: 'many' is not a number above 0."),
        (["--steps", "nan", "."], "--steps: 'nan' is not a number above 0."),
        (["."], "top needs a terminal. `--once` prints a single frame."),
    ],
)
def test_what_makes_no_sense_is_refused(ask: Ask, words: list[str], reason: str) -> None:
    """In one line."""
    done = ask(*words)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"gpu-tracker: {reason}")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")
def test_a_process_that_nobody_tracks(ask: Ask) -> None:
    """One sentence says how to."""
    done = ask("--once", str(os.getpid()))

    assert done.returncode == 2
    assert f"is not tracked. `gpu-tracker attach {os.getpid()}` does that." in done.stderr


def test_a_text_that_is_no_recording(ask: Ask, tmp_path: Path) -> None:
    """Is named."""
    (tmp_path / "other.txt").write_text("something\n")
    done = ask("--once", "other.txt")

    assert done.returncode == 2
    assert "other.txt is not a gpu-tracker recording." in done.stderr


def test_a_recording_that_has_just_begun(ask: Ask, tmp_path: Path) -> None:
    """There is nothing to draw yet."""
    write(tmp_path / "run.jsonl", running("new", samples=()))

    assert "Waiting for the first sample..." in ask("--once", "run.jsonl").stdout


def test_a_run_that_was_killed(ask: Ask, tmp_path: Path) -> None:
    """Nothing was written for a while."""
    path = write(tmp_path / "run.jsonl", running("lost"))
    os.utime(path, (time.time() - 100, time.time() - 100))

    assert not ask("--once", "run.jsonl").stdout.startswith(" LIVE")


def test_a_run_that_lost_its_writer_before_the_first_sample_is_not_live(ask: Ask, tmp_path: Path) -> None:
    """As every list and report says: it was cut off."""
    first = header(host=os.uname().nodename, started_at=stamp_moment(time.time()))
    path = write(tmp_path / "run.jsonl", run(end=None, samples=())._replace(header=first))
    done = ask("--once", "run.jsonl")
    listed = subprocess.run([COMMAND, "ls", str(path)], capture_output=True, text=True, timeout=60)

    assert done.stdout.startswith(" CUT OFF ")
    assert "There are no samples." in done.stdout
    assert " cut off " in listed.stdout
