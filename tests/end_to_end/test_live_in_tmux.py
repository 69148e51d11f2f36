"""A job that is shown while it runs, in a real terminal: its output is whole, and the terminal is as before afterwards."""

from __future__ import annotations

import re
import shlex
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from end_to_end.tmux import COLUMNS, CTRL_C, CTRL_Z, PROMPT, ROWS, Terminal
from patience import wait_until

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux (apt-get install tmux)")

PANEL = re.compile(r"── gpu-tracker \d+:\d\d:\d\d ──")


class Shell(Terminal):
    """A terminal in which jobs are tracked."""

    def __init__(self, folder: Path, command_line: str) -> None:
        super().__init__(folder)
        self.command = [
            command_line,
            "run",
            "--live=0.1",
            "--st",
            "0.1",
            "--gpu",
            "none",
            "--no-record",
            "--",
        ]

    def track(self, *job: str) -> None:
        """Type a command, to be shown while it runs."""
        self.type(f"{shlex.join([*self.command, *job])}; echo code=$?")

    def wait_for_panel(self) -> None:
        """Until the panel has figures, in the last rows."""
        wait_until(lambda: has_panel(self.screen) and " cores " in self.screen[-1], "the panel is shown")


def has_panel(screen: list[str]) -> bool:
    """Whether it is at the bottom of the screen."""
    return any(PANEL.match(line) for line in screen[-4:-1])


@pytest.fixture
def terminal(tmp_path: Path, command_line: str) -> Iterator[Shell]:
    """A shell."""
    terminal = Shell(tmp_path, command_line)
    yield terminal
    terminal.close()


def write_job(folder: Path, program: str) -> str:
    """A program in a file."""
    path = folder / "job.py"
    path.write_text(program)
    return str(path)


def test_no_line_of_the_output_is_lost(terminal: Shell, tmp_path: Path, python: str) -> None:
    """Ten thousand of them while the panel is drawn, each once and in order."""
    job = write_job(
        tmp_path,
        "import time\n"
        "for number in range(10_000):\n"
        "    print('line', number, flush=True)\n"
        "    if number % 100 == 0: time.sleep(0.02)\n",
    )
    terminal.track(python, job)
    terminal.wait_for_panel()
    terminal.wait_for("code=0")

    lines = terminal.everything
    assert [line for line in lines if line.startswith("line")] == [f"line {n}" for n in range(10_000)]
    assert not any(PANEL.search(line) for line in lines)
    terminal.check_as_before()


def test_a_progress_bar_stays_in_its_line(terminal: Shell, tmp_path: Path, python: str) -> None:
    """It goes back to the beginning of the line again and again, and is not torn."""
    job = write_job(
        tmp_path,
        "import time\n"
        "print('before')\n"
        "for number in range(201):\n"
        "    print(f'\\rdone {number:3d} of 200', end='', flush=True)\n"
        "    time.sleep(0.01)\n"
        "print('\\nafter')\n",
    )
    terminal.track(python, job)
    terminal.wait_for_panel()
    terminal.wait_for("code=0")

    lines = terminal.everything
    start = lines.index("before")
    assert lines[start : start + 3] == ["before", "done 200 of 200", "after"]
    terminal.check_as_before()


@pytest.mark.skipif(shutil.which("less") is None, reason="needs less")
def test_a_pager_stays_above_the_panel(terminal: Shell, tmp_path: Path) -> None:
    """It has the rows that it is told, and nobody paints over them."""
    text = tmp_path / "text"
    text.write_text("".join(f"row {number}\n" for number in range(200)))
    terminal.track("sh", "-c", f"sleep 1; less {text}; echo back; sleep 1; echo over")
    terminal.wait_for_panel()
    height = ROWS - 2
    terminal.wait_for_rows(0, height - 1)
    terminal.press("Space")
    terminal.wait_for_rows(height - 1, height - 1)
    below = terminal.screen[height:]
    time.sleep(1.5)  # the panel has a clock
    assert terminal.screen[height:] == below
    terminal.press("q")
    terminal.wait_for("back")
    terminal.wait_for_panel()
    terminal.wait_for("code=0")

    assert not any(PANEL.search(line) for line in terminal.everything)
    terminal.check_as_before()


@pytest.mark.parametrize("rows", [ROWS + 12, ROWS - 2, ROWS - 12])
def test_the_panel_follows_the_size_of_the_window(
    terminal: Shell, tmp_path: Path, python: str, rows: int
) -> None:
    """It is at the bottom again, once; also if the window has shrunk by just as many rows as the panel has."""
    job = write_job(
        tmp_path,
        "import os, sys, time\n"
        "for number in range(20): print('line', number, flush=True)\n"
        "sys.stdin.readline()\n"
        "print('rows', os.get_terminal_size().lines, flush=True)\n"
        "sys.stdin.readline()\n",
    )
    terminal.track(python, job)
    terminal.wait_for_panel()
    terminal.resize(70, rows)
    wait_until(lambda: len(terminal.screen) == rows and terminal.screen[-2].endswith("─" * 5), "it has moved")
    terminal.wait_for_panel()
    assert sum(bool(PANEL.match(line)) for line in terminal.screen) == 1
    terminal.press("Enter")
    terminal.wait_for(f"rows {rows - 2}")
    terminal.press("Enter")
    terminal.wait_for("code=0")

    lines = terminal.everything
    assert [line for line in lines if line.startswith("line")] == [f"line {n}" for n in range(20)]
    assert not any(PANEL.search(line) for line in lines)
    terminal.check_as_before(rows, 70)


@pytest.mark.parametrize("n_lines", [2, 3 * ROWS])
def test_a_window_that_is_too_small_has_no_panel(terminal: Shell, n_lines: int) -> None:
    """All of it is the job's, until it is larger again; no line of the job is lost."""
    terminal.track(
        "sh", "-c", f"seq -f 'line %g' {n_lines}; echo started; read answer; stty size; read answer"
    )
    terminal.wait_for("started")
    terminal.wait_for_panel()
    terminal.resize(COLUMNS, 8)
    wait_until(lambda: len(terminal.screen) == 8 and not has_panel(terminal.screen), "the panel is gone")
    terminal.press("Enter")
    terminal.wait_for(f"8 {COLUMNS}")
    terminal.resize(COLUMNS, ROWS)
    terminal.wait_for_panel()
    terminal.press("Enter")
    terminal.wait_for("code=")

    lines = terminal.everything
    told = [line for line in lines if line.startswith(("line", "started"))]
    assert told == [*(f"line {n + 1}" for n in range(n_lines)), "started"]
    assert not any(PANEL.search(line) for line in lines)
    terminal.check_as_before()


def test_ctrl_z_gives_the_whole_terminal_back(terminal: Shell, tmp_path: Path, python: str) -> None:
    """The panel is gone while the job is stopped, and is there again with `fg`, but not with `bg`."""
    job = write_job(
        tmp_path,
        "import os, time\nprint('started', flush=True)\nwhile not os.path.exists('stop'): time.sleep(0.02)\n",
    )
    terminal.track(python, job)
    terminal.wait_for_panel()
    terminal.press(CTRL_Z)
    wait_until(lambda: any("Stopped" in line for line in terminal.screen), "it has stopped")
    assert not any(PANEL.search(line) for line in terminal.everything)
    terminal.check_as_before()
    terminal.type("clear; fg")
    terminal.wait_for_panel()
    terminal.press(CTRL_Z)
    wait_until(lambda: any("Stopped" in line for line in terminal.screen), "it has stopped again")
    terminal.type("bg")
    wait_until(lambda: any(line.rstrip().endswith("&") for line in terminal.everything), "it goes on")
    terminal.check_as_before()
    terminal.type("touch stop; wait; echo ended")
    terminal.wait_for("ended")

    assert not any(PANEL.search(line) for line in terminal.everything)
    terminal.check_as_before()


@pytest.mark.parametrize("how", ["KILL", "SEGV", "INT"])
def test_a_job_that_dies_leaves_the_terminal_as_it_was(terminal: Shell, how: str) -> None:
    """Killed, crashed, or ended with Ctrl-C."""
    end = "sleep 60" if how == "INT" else f"sleep 1; kill -{how} $$"
    terminal.track("sh", "-c", f"echo started; {end}")
    terminal.wait_for("started")
    terminal.wait_for_panel()
    if how == "INT":
        terminal.press(CTRL_C)
    wait_until(lambda: any("killed by SIG" in line for line in terminal.screen), "it has died")
    wait_until(
        lambda: terminal.screen and any(line.endswith(PROMPT) for line in terminal.screen[1:]), "the prompt"
    )

    assert not any(PANEL.search(line) for line in terminal.everything)
    terminal.check_as_before()


def test_one_terminal_shows_one_run(terminal: Shell, tmp_path: Path) -> None:
    """A run inside another one reserves no rows of its own, and the job's output is whole."""
    inner = shlex.join([*terminal.command, "sh", "-c", "seq -f 'line %g' 50; stty size; read answer"])
    terminal.track("sh", "-c", f"read answer; {inner}; read answer")
    terminal.wait_for_panel()
    terminal.press("Enter")
    terminal.wait_for(f"{ROWS - 2} {COLUMNS}")
    wait_until(lambda: PANEL.match(terminal.screen[-2]), "the panel is in its place")
    terminal.press("Enter")
    terminal.wait_for("gpu-tracker: --live: this terminal showed another run.")
    terminal.wait_for_panel()
    terminal.press("Enter")
    terminal.wait_for("code=")

    lines = terminal.everything
    assert [line for line in lines if line.startswith("line")] == [f"line {n + 1}" for n in range(50)]
    assert not any(PANEL.search(line) for line in lines)
    terminal.check_as_before()


def test_of_two_runs_side_by_side_each_is_shown_when_there_is_room(terminal: Shell, tmp_path: Path) -> None:
    """The one that is left takes the place of the one that has ended; there is never more than one panel."""
    jobs = [
        shlex.join(
            [*terminal.command, "sh", "-c", f"until [ -e {name} ]; do sleep 0.05; done; stty size <&2"]
        )
        for name in ("first", "second")
    ]
    (tmp_path / "both.sh").write_text("".join(f"{job} &\n" for job in jobs) + "wait\n")
    terminal.type("sh both.sh; echo code=$?")
    terminal.wait_for_panel()
    (tmp_path / "first").touch()
    terminal.wait_for(f"{ROWS - 2} {COLUMNS}")
    wait_until(lambda: any("exit code 0" in line for line in terminal.everything), "its report is shown")
    terminal.wait_for_panel()
    assert sum(bool(PANEL.match(line)) for line in terminal.screen) == 1
    (tmp_path / "second").touch()
    terminal.wait_for("code=0")

    lines = terminal.everything
    assert lines.count(f"{ROWS - 2} {COLUMNS}") == 2
    assert not any(PANEL.search(line) for line in lines)
    terminal.check_as_before()


def test_a_terminal_of_another_session_gets_lines(terminal: Shell) -> None:
    """Nobody can tell who is in front of it."""
    terminal.type(f"setsid -w {shlex.join([*terminal.command, 'sh', '-c', 'read answer; stty size <&2'])}")
    wait_until(lambda: sum(" cores " in line for line in terminal.screen) > 1, "lines are shown")
    terminal.press("Enter")
    terminal.wait_for(f"{ROWS} {COLUMNS}")
    terminal.check_as_before()
