"""The summary in a real terminal: as wide as that, in colour if wanted, in ASCII if it must."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpu_tracker.core.text import count_cells
from patience import wait_until
from recorded import write
from rich import make_rich

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux (apt-get install tmux)")

END = "the end of it"
ESCAPE = re.compile("\x1b\\[[0-9;]*m|\x1b\\(B|\x0f|\x0e")

Show = Callable[..., str]


@pytest.fixture
def show(tmp_path: Path) -> Iterator[Show]:
    """Run a command in a terminal of that many columns; what is on the screen then, with its colours."""
    tmux = ["tmux", "-u", "-f", "/dev/null", "-S", str(tmp_path / "socket")]

    def capture() -> str:
        done = subprocess.run([*tmux, "capture-pane", "-p", "-e"], capture_output=True, text=True, check=True)
        return done.stdout

    def show_command(columns: int, *command: str, **environment: str) -> str:
        variables = [part for name, value in environment.items() for part in ("-e", f"{name}={value}")]
        line = f"{shlex.join(command)}; echo {END}; exec cat"
        subprocess.run(
            [
                *tmux,
                "new-session",
                "-d",
                "-x",
                str(columns),
                "-y",
                "70",
                "-c",
                str(tmp_path),
                *variables,
                line,
            ],
            check=True,
        )
        wait_until(lambda: END in capture(), "the command has ended")
        return capture().partition(END)[0]

    yield show_command
    subprocess.run([*tmux, "kill-server"], check=False)


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    """A recording of something of everything."""
    return str(write(tmp_path / "a.jsonl", make_rich()))


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_report_fits_the_terminal(show: Show, command_line: str, recorded: str, columns: int) -> None:
    """Nothing is broken inside a word, and the picture ends before the edge."""
    screen = show(columns, command_line, "report", recorded)
    lines = ESCAPE.sub("", screen).splitlines()

    assert lines[0] == "python train.py --epochs 11: exit code 0"
    assert max(map(count_cells, lines)) <= columns
    words = " ".join(lines).split()
    assert {"pt_data_worker", "processes,", "descendants", "throttled", "regions"} <= {*words}
    assert any("█" in line and "47 %" in line for line in lines)
    first = "▄" if columns == 60 else "▁"
    assert any(re.match(rf"  GPU 1 +62 % busy +{first}", line) for line in lines)


def test_loads_have_colours(show: Show, command_line: str, recorded: str) -> None:
    """Yellow is 47 %, red 88 %; the title is bold."""
    screen = show(80, command_line, "report", recorded)

    assert screen.startswith("\x1b[1mpython train.py")
    assert re.search("\x1b\\[33m█+", screen)
    assert re.search("\x1b\\[31m█+", screen)


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
def test_colours_can_be_refused(
    show: Show, command_line: str, recorded: str, environment: dict[str, str]
) -> None:
    """By the user or by the terminal."""
    variables = [f"{name}={value}" for name, value in environment.items()]

    assert "\x1b[3" not in show(80, "env", *variables, command_line, "report", recorded)


def test_an_ascii_locale_gets_ascii(show: Show, command_line: str, recorded: str) -> None:
    """With all figures."""
    screen = ESCAPE.sub("", show(80, "env", "LC_ALL=C", command_line, "report", recorded))

    assert screen.isascii()
    assert "[########..........]   47 %" in screen


def test_run_ends_with_its_summary(show: Show, command_line: str, python: str) -> None:
    """On standard error, which is the terminal too."""
    job = "import time\nend = time.time() + 1.5\nwhile time.time() < end: sum(range(9999))"
    screen = show(80, command_line, "run", "--st", "0.1", "--gpu", "none", "--", python, "-c", job)
    lines = ESCAPE.sub("", screen).splitlines()

    assert max(map(count_cells, lines)) <= 80
    assert any("░" in line or "█" in line for line in lines)
    assert any(line.startswith("  charts: gpu-tracker report -o report.") for line in lines)
