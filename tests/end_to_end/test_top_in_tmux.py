"""A run on a full screen, in a real terminal: it follows the job and the keys, and the terminal is as before afterwards."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from signal import SIGTERM

import pytest

from builders import header
from end_to_end.tmux import CTRL_C, CTRL_Z, PROMPT, Terminal
from gpu_tracker.core.model import Identity, MetricRow
from patience import wait_until
from recorded import Made, interval, run, write

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux (apt-get install tmux)")

CLOCK = re.compile(r"^ (\S.*?)  (\d+):(\d\d):(\d\d)  (\S+)")
# Tells its steps, and goes on until it is told to stop.
JOB = """\
import os, time
import gpu_tracker
step = 0
while not os.path.exists("stop"):
    with gpu_tracker.region("epoch"):
        step += 1
        gpu_tracker.log(step=step, loss=1 / step)
        time.sleep(0.02)
"""


def has_begun(directory: Path) -> bool:
    """Whether there is a recording that can be read."""
    return any(path.stat().st_size for path in directory.glob("*.jsonl"))


class Top(Terminal):
    """A terminal in which runs are looked at."""

    def __init__(self, folder: Path, command_line: str) -> None:
        super().__init__(folder)
        self._command_line = command_line

    def open(self, *words: str) -> None:
        """Type the command."""
        self.type(f"{self._command_line} top {' '.join(words)}; echo code=$?")

    @property
    def state(self) -> tuple[str, int, str]:
        """What the first line says: live or not, the seconds of the run, its name."""
        match = CLOCK.match(self.screen[0] if self.screen else "")
        if match is None:
            return "", -1, ""
        word, hours, minutes, seconds, name = match.groups()
        return word, 3600 * int(hours) + 60 * int(minutes) + int(seconds), name

    def wait_for_state(self, word: str, least: int = 0, most: int = 10**9, name: str = "") -> None:
        """Until the first line says so."""

        def is_so() -> bool:
            state, seconds, title = self.state
            return state == word and least <= seconds <= most and title.startswith(name)

        wait_until(is_so, f"{word} from {least} to {most} s is shown")

    def wait_for_text(self, text: str) -> None:
        """Until it is anywhere on the screen."""
        wait_until(lambda: any(text in line for line in self.screen), f"{text!r} is shown")

    def leave(self) -> None:
        """Quit, and see the shell again."""
        self.press("q")
        self.wait_for("code=0")
        self.check_as_before()


@pytest.fixture
def top(tmp_path: Path, command_line: str) -> Iterator[Top]:
    """A shell."""
    terminal = Top(tmp_path, command_line)
    yield terminal
    terminal.close()


@pytest.fixture
def job(tmp_path: Path, command_line: str, python: str) -> Iterator[subprocess.Popen[bytes]]:
    """A tracked job that runs until the file `stop` is there."""
    (tmp_path / "job.py").write_text(JOB)
    options = ["--st", "0.1", "--gpu", "none", "--name", "training", "--label", "steps=100000"]
    process = subprocess.Popen(
        [command_line, "run", *options, "--", python, "job.py"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield process
    (tmp_path / "stop").touch()
    process.wait()


def make_finished(path: Path, name: str = "finished", seconds: int = 600) -> Path:
    """A run of some minutes, in which the loss is the time."""
    with Made(path, header(identity=Identity(name=name))) as writer:
        for at in range(seconds + 1):
            writer.write_metrics([MetricRow(float(at), {"loss": float(at)}, step=float(at))])
            writer.write_sample(interval(float(at), 100 + at, processes=1, threads=1))
        end = run(float(seconds)).end
        assert end is not None
        writer.write_end(end._replace(totals=end.totals._replace(at_seconds=float(seconds))))
    return path


@pytest.mark.usefixtures("job")
def test_a_running_job_is_followed_to_its_end(top: Top, tmp_path: Path) -> None:
    """Its clock advances; regions, metrics, processes and a forecast are there; then it says how it ended."""
    wait_until(lambda: has_begun(tmp_path / "gpu-tracker-runs"), "the job has begun")
    top.open()
    top.wait_for_state("LIVE", least=2, name="training")
    first = top.state[1]
    top.wait_for_state("LIVE", least=first + 2)
    for text in ("CPU ", "RAM ", "steps ", " of 100000, ", "loss", "Forecast done in ", " thread"):
        top.wait_for_text(text)
    top.wait_for_text("peak RAM")
    (tmp_path / "stop").touch()
    top.wait_for_state("EXIT CODE 0", name="training")
    top.leave()


@pytest.mark.usefixtures("job")
def test_a_resize_and_ctrl_z(top: Top, tmp_path: Path) -> None:
    """The frame has the size of the window; while it is stopped, the shell has the terminal."""
    wait_until(lambda: has_begun(tmp_path / "gpu-tracker-runs"), "the job has begun")
    top.open()
    top.wait_for_state("LIVE")
    top.resize(120, 40)
    wait_until(lambda: len(top.screen) == 40 and top.screen[-1].startswith("q quit"), "it has grown")
    top.resize(60, 20)
    wait_until(lambda: len(top.screen) == 20 and top.screen[-1].startswith("q quit"), "it has shrunk")
    assert max(map(len, top.screen)) <= 60
    top.resize(30, 8)
    top.wait_for_text("This needs at least")
    top.resize(80, 24)
    top.wait_for_state("LIVE")
    top.press(CTRL_Z)
    wait_until(lambda: any("Stopped" in line for line in top.screen), "it has stopped")
    top.check_as_before(24, 80)
    top.type("clear; fg")
    top.wait_for_state("LIVE")
    top.press("q")
    wait_until(lambda: top.screen[0] == "" or PROMPT in "".join(top.screen), "the shell is back")
    top.check_as_before(24, 80)


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_a_signal_restores_the_terminal(top: Top, tmp_path: Path, name: str) -> None:
    """Ctrl-C is the normal end; of any other one the shell hears."""
    make_finished(tmp_path / "run.jsonl")
    top.open("run.jsonl")
    top.wait_for_state("EXIT CODE 0")
    if name == "INT":
        top.press(CTRL_C)
    else:
        os.kill(find_top(str(tmp_path)), SIGTERM)
    top.wait_for("code=0" if name == "INT" else "code=143")
    top.check_as_before()


def find_top(folder: str) -> int:
    """The process that shows a run in that folder."""
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            place = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        if b"top" in words and b"run.jsonl" in words and place == folder:
            return int(pid)
    raise AssertionError("nobody shows a run there")


def test_a_job_that_is_killed(top: Top, tmp_path: Path, job: subprocess.Popen[bytes]) -> None:
    """With its tracker: nothing is written any more, and after a while that is said."""
    wait_until(lambda: has_begun(tmp_path / "gpu-tracker-runs"), "the job has begun")
    top.open()
    top.wait_for_state("LIVE", least=1)
    job.kill()
    wait_until(lambda: top.state[0] not in ("LIVE", ""), "its end is shown")
    top.leave()


def test_a_file_that_is_deleted(top: Top, tmp_path: Path) -> None:
    """What was seen stays, with the reason."""
    path = make_finished(tmp_path / "run.jsonl")
    top.open("run.jsonl")
    top.wait_for_state("EXIT CODE 0", least=600)
    path.unlink()
    top.wait_for_state("LOST", least=600)
    assert top.screen[-1] == "Cannot read run.jsonl: No such file or directory."
    assert any("loss" in line for line in top.screen)
    make_finished(path, "again", 300)
    top.wait_for_state("EXIT CODE 0", most=300, name="again")
    top.leave()


def test_a_file_that_is_truncated(top: Top, tmp_path: Path) -> None:
    """It is read anew."""
    path = make_finished(tmp_path / "run.jsonl")
    top.open("run.jsonl")
    top.wait_for_state("EXIT CODE 0", least=600)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:201]))
    top.wait_for_state("LIVE", most=100)
    top.leave()


def test_the_keys(top: Top, tmp_path: Path) -> None:
    """Time stands still, goes back and forth; the whole screen is of that moment."""
    make_finished(tmp_path / "run.jsonl")
    top.open("run.jsonl")
    top.wait_for_state("EXIT CODE 0", least=600)
    top.press("Left")
    top.wait_for_state("PAUSED", least=570, most=570)
    wait_until(lambda: any(line.split()[:2] == ["loss", "570"] for line in top.screen), "its loss of then")
    top.press("PPage")
    top.wait_for_state("PAUSED", most=270)
    top.press("Home")
    top.wait_for_state("PAUSED", most=0)
    top.press("NPage")
    top.wait_for_state("PAUSED", least=300, most=300)
    top.press("Space")
    top.wait_for_state("EXIT CODE 0", least=600)
    top.press("?")
    top.wait_for_text("Any key closes this.")
    top.press("x")
    top.wait_for_text("sort by RAM")
    top.press("s", "-")
    top.wait_for_text("+ - 15 min  s sort by CPU")
    top.leave()


def test_a_replay(top: Top, tmp_path: Path) -> None:
    """From the start, as fast as is asked; it stops and goes on, and ends with the run."""
    make_finished(tmp_path / "run.jsonl")
    top.open("--speed", "60", "run.jsonl")
    top.wait_for_state("REPLAY x60", most=590)
    first = top.state[1]
    top.press("Space")
    top.wait_for_state("PAUSED", least=first)
    stopped = top.state[1]
    top.press("Space")
    top.wait_for_state("REPLAY x60", least=stopped + 1)
    top.wait_for_state("EXIT CODE 0", least=600)
    top.leave()


def test_several_running_runs(top: Top, tmp_path: Path) -> None:
    """A key shows the next one."""
    for name in ("one", "two"):
        made = run(60.0, samples=tuple(interval(float(at), 100) for at in range(60)))
        first = header(identity=Identity(name=name))
        write(tmp_path / "runs" / f"{name}.jsonl", made._replace(header=first, end=None))
    top.open("runs")
    wait_until(lambda: top.state[2] in ("one", "two"), "a run is shown")
    other = {"one": "two", "two": "one"}[top.state[2]]
    top.wait_for_text("run 1 of 2")
    top.press("n")
    wait_until(lambda: top.state[2] == other, "the other one is shown")
    top.wait_for_text("run 2 of 2")
    top.leave()
