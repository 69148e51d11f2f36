"""`gpu-tracker watch`: at a real terminal, and into pipes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import COMMAND, MIB, Run
from conftest import running_samplers
from gpu_tracker.core.text import count_cells
from nvml_simulator import Simulator

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
HOME = "\x1b[H"
STYLES = re.compile(r"\x1b\[[0-9;]*m")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
CTRL_C, CTRL_Z = "\x03", "\x1a"
PROMPT = "prompt> "


class Window:
    """A terminal window with one command in it."""

    def __init__(self, command: list[str], environment: dict[str, str], **streams: Any) -> None:
        self._master, self._slave = os.openpty()
        self.resize(24, 80)
        self.settings = termios.tcgetattr(self._slave)
        options = {"stdin": self._slave, "stdout": self._slave, "stderr": self._slave, **streams}
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "TERM": "xterm-256color", "NO_COLOR": "", **environment},
            start_new_session=True,
            preexec_fn=take_terminal,  # noqa: PLW1509 - the tests have no threads
            **options,
        )
        self.seen = ""

    def close(self) -> None:
        """Close the window, and end what is left in it."""
        self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    def resize(self, rows: int, columns: int) -> None:
        """Drag the window's corner."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def expect(self, text: str, seconds: float = 20.0) -> None:
        """Wait until this appears after everything that was expected before; what came before is dropped."""
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0, f"waited for {text!r}, saw {self.seen!r}"
            self._look(left)
        self.seen = self.seen.partition(text)[2]

    def next_frame(self) -> list[str]:
        """The lines of the next whole picture, as they are seen."""
        self.expect(HOME)
        deadline = time.monotonic() + 20
        while HOME not in self.seen:
            assert time.monotonic() < deadline
            self._look(1.0)
        return read_frame(self.seen.partition(HOME)[0])

    def wait(self) -> int:
        """The exit code; everything that was shown is in `seen`."""
        code = self.process.wait(timeout=20)
        while self._look(0.05):
            pass
        return code

    def is_as_before(self) -> bool:
        """Whether the terminal works as it did before the command."""
        return termios.tcgetattr(self._slave) == self.settings

    def _look(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        self.seen += os.read(self._master, 65536).decode(errors="replace")
        return True


def take_terminal() -> None:
    """Make standard output the controlling terminal of this session."""
    fcntl.ioctl(1, termios.TIOCSCTTY, 0)


def read_frame(text: str) -> list[str]:
    """What a picture looks like."""
    return [ESCAPES.sub("", line).replace("\r", "") for line in text.split("\n")]


@pytest.fixture
def watch(hardware: Simulator) -> Iterator[Callable[..., Window]]:
    """Open a window with `gpu-tracker watch` in it."""
    windows: list[Window] = []

    def open_window(*options: str, **environment: str) -> Window:
        command = [COMMAND, "watch", "-n", "0.2", *options]
        windows.append(Window(command, {**hardware.environment(), **environment}))
        return windows[-1]

    yield open_window
    for window in windows:
        window.close()


def check_restored(window: Window) -> None:
    """The normal screen with its cursor, wrapping and keyboard."""
    assert window.is_as_before()
    assert window.seen.count(ENTER) == 0
    assert window.seen.count(LEAVE) == 1
    assert "\x1b[?25h" in window.seen
    assert "\x1b[?7h" in window.seen


def test_the_screen_shows_devices_and_processes(
    watch: Callable[..., Window], hardware: Simulator, occupant: Callable[..., int]
) -> None:
    """It is redrawn in place, without being cleared, and follows what happens."""
    pid = occupant()
    hardware.set_process(1, pid, 1234 * MIB, sm_percent=33)
    window = watch()
    window.expect(ENTER)
    window.expect("q quits")
    window.expect("q quits")
    lines = window.next_frame()

    assert any(line.startswith("  1  1234 / 40960") and line.endswith("NVIDIA A100") for line in lines)
    assert any(re.search(rf"  1  {pid}  .*1234  33 % .*sleep 60$", line) for line in lines)
    assert "\x1b[2J" not in window.seen
    hardware.remove_process(1, pid)
    while any(str(pid) in line for line in window.next_frame()):
        pass
    window.type("q")
    assert window.wait() == 0


@pytest.mark.parametrize("keys", ["q", "Q", CTRL_C])
def test_a_key_leaves_and_restores_the_terminal(watch: Callable[..., Window], keys: str) -> None:
    """As if nothing had been there."""
    window = watch()
    window.expect("NVIDIA A100")
    assert not window.is_as_before()
    window.type(keys)

    assert window.wait() == 0
    check_restored(window)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_restores_the_terminal_and_ends_it(watch: Callable[..., Window], number: int) -> None:
    """Whoever sent it sees that it was the signal."""
    window = watch()
    window.expect("NVIDIA A100")
    window.process.send_signal(number)

    assert window.wait() == -number
    check_restored(window)


def test_a_lost_sampler_restores_the_terminal_and_is_told(watch: Callable[..., Window]) -> None:
    """An error leaves as cleanly as a key."""
    before = running_samplers()
    window = watch()
    window.expect("NVIDIA A100")
    (sampler,) = running_samplers() - before
    os.kill(sampler, signal.SIGKILL)

    assert window.wait() == 3
    assert window.seen.rindex("gpu-tracker: The sampler is not available any more") > window.seen.index(LEAVE)
    check_restored(window)


def test_the_picture_follows_the_size_of_the_window(
    watch: Callable[..., Window], hardware: Simulator, occupant: Callable[..., int]
) -> None:
    """At once, and never a line too wide or too many."""
    for _ in range(8):
        hardware.set_process(0, occupant("日本語" * 20), 100 * MIB)
    window = watch("-n", "60")
    window.expect("COMMAND")
    window.expect("COMMAND")  # the second observation comes soon, the third in a minute
    for rows, columns in ((10, 40), (5, 10), (2, 3), (1, 1), (50, 200)):
        window.resize(rows, columns)
        window.expect(HOME, seconds=5)
        time.sleep(0.2)
        while window._look(0.05):
            pass
        lines = read_frame(window.seen.rpartition(HOME)[2])
        if lines[-1] == "":
            lines.pop()  # the cursor waits below the last line

        assert len(lines) <= rows
        assert max(map(count_cells, lines)) <= columns, lines
    window.type("q")
    assert window.wait() == 0


@pytest.mark.parametrize(("variable", "is_coloured"), [("", True), ("1", False)])
def test_colours_are_for_those_who_want_them(
    watch: Callable[..., Window], variable: str, is_coloured: bool
) -> None:
    """NO_COLOR is honoured if it is not empty."""
    window = watch(NO_COLOR=variable)
    window.expect("q quits")
    window.expect(HOME)
    window.type("q")
    window.wait()

    assert bool(STYLES.search(window.seen)) == is_coloured


def test_a_driver_that_hangs_does_not_lock_the_user_in(
    watch: Callable[..., Window], hardware: Simulator
) -> None:
    """The key works while it is asked; after a while the screen says who does not answer."""
    hardware.delay("nvmlDeviceGetUtilizationRates", 60_000)
    window = watch()
    window.expect("Asking the drivers")
    window.type("q")
    assert window.wait() == 0
    impatient = watch("--timeout", "0.5")
    impatient.expect("note: The NVIDIA driver has not answered")
    impatient.expect("note: The NVIDIA driver has not answered", seconds=2)
    impatient.type("q")

    assert impatient.wait() == 0


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_ctrl_z_gives_the_terminal_back_until_fg(hardware: Simulator) -> None:
    """The shell has its own screen meanwhile, and the picture returns."""
    shell = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
    environment = {**hardware.environment(), "PS1": PROMPT, "HISTFILE": ""}
    with contextlib.closing(Window(shell, environment)) as window:
        window.expect(PROMPT)
        window.type(shlex.join([COMMAND, "watch", "-n", "0.2"]) + "\n")
        for _ in range(3):
            window.expect(ENTER)
            window.expect("NVIDIA A100")
            window.type(CTRL_Z)
            window.expect(LEAVE)
            window.expect("Stopped")
            window.expect(PROMPT)
            window.type("fg\n")
        window.expect("NVIDIA A100")
        window.type("q")
        window.expect(LEAVE)
        window.expect(PROMPT)
        window.type("echo code=$?\nexit\n")
        window.expect("code=0")
        assert window.wait() == 0


def test_a_terminal_without_a_keyboard_is_drawn_on_too(hardware: Simulator) -> None:
    """Standard input may be anything."""
    with contextlib.closing(
        Window([COMMAND, "watch"], hardware.environment(), stdin=subprocess.DEVNULL)
    ) as window:
        window.expect("NVIDIA A100")
        window.process.terminate()
        assert window.wait() == -signal.SIGTERM
        check_restored(window)


def test_a_dumb_terminal_gets_lines(watch: Callable[..., Window]) -> None:
    """One that cannot be drawn on, in an editor for example."""
    window = watch(TERM="dumb")
    window.expect("# time")
    window.type(CTRL_C)

    assert window.wait() == 0
    assert "\x1b" not in window.seen


# ---- Not at a terminal.


def test_a_pipe_gets_a_line_per_device_and_interval(hardware: Simulator) -> None:
    """Until it is interrupted, without a single escape sequence."""
    process = subprocess.Popen(
        [COMMAND, "watch", "-n", "0.1"],
        env={**os.environ, **hardware.environment(), "TERM": "xterm"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        lines = [process.stdout.readline() for _ in range(5)]
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()

    assert lines[0].startswith("# time")
    assert [line.split()[1] for line in lines[1:]] == ["0", "1", "0", "1"]
    assert lines[1].split()[10] == "-"  # one observation has no rates
    assert lines[3].split()[10].isdecimal()
    assert "\x1b" not in rest
    assert process.wait(timeout=10) == 0


def test_once_is_one_table(run: Run, hardware: Simulator, occupant: Callable[..., int]) -> None:
    """Plain in a pipe, with rates."""
    hardware.set_process(0, occupant(), 100 * MIB)
    done = run("watch", "--once")

    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert re.search(r"^CPU \d+ % of \d+ cores", done.stdout, re.MULTILINE)
    assert done.stdout.count("NVIDIA A100") == 2
    assert done.stdout.splitlines()[-1].endswith("sleep 60")


def test_json_is_an_object_per_observation(
    run: Run, hardware: Simulator, occupant: Callable[..., int]
) -> None:
    """In base units, with who is on the device."""
    pid = occupant()
    hardware.set_process(1, pid, 100 * MIB, sm_percent=20)
    told = json.loads(run("watch", "--once", "--json").stdout)
    (on_it,) = told["gpus"][1]["processes"]

    assert (on_it["pid"], on_it["used_bytes"], on_it["utilization_percent"]) == (pid, 100 * MIB, 20.0)
    assert on_it["rss_bytes"] > 0
    assert told["machine"]["ram_total_bytes"] > 0


def test_hostile_command_lines_are_harmless(
    run: Run, hardware: Simulator, occupant: Callable[..., int]
) -> None:
    """Escape sequences, newlines, ten kilobytes and broken bytes: one line each, nothing to obey."""
    names = ("\x1b[2J\x1b]0;owned\x07", "a\nb\nc", "x" * 10_000, "\u202eevil", os.fsdecode(b"\xff\xfe"))
    for name in names:
        hardware.set_process(0, occupant(name), 100 * MIB)
    table, objects = run("watch", "--once"), run("watch", "--once", "--json")
    lines = table.stdout.splitlines()

    assert all(line.isprintable() for line in lines)
    assert max(map(len, lines)) <= 160
    assert len(lines) == 6 + 2 + len(names)
    assert objects.stdout.count("\n") == 1
    assert len(json.loads(objects.stdout)["gpus"][0]["processes"]) == len(names)


def test_secrets_of_others_are_masked(run: Run, hardware: Simulator) -> None:
    """A screen is looked at by many."""
    with subprocess.Popen(["sh", "-c", "read x", "--password=hunter2"], stdin=subprocess.PIPE) as process:
        hardware.set_process(0, process.pid, 100 * MIB)
        table = run("watch", "--once").stdout
        process.kill()

    assert "--password=***" in table
    assert "hunter2" not in table


def test_a_machine_without_gpus_is_still_a_machine(run: Run, tmp_path: Path) -> None:
    """CPU and memory, and where to ask why."""
    done = run("watch", "--once", LD_LIBRARY_PATH="")

    assert done.returncode == 0
    assert "gpu-tracker doctor" in done.stdout


@pytest.mark.parametrize("options", [["--interval", "0"], ["--interval", "often"], ["--timeout", "-1"]])
def test_nonsense_is_refused_in_one_sentence(run: Run, options: list[str]) -> None:
    """Before anything is drawn."""
    done = run("watch", *options)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
