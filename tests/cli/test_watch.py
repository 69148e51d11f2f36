"""`gpu-tracker watch`: at a real terminal, and into pipes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
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
from patience import wait_until

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

    def frame_with(self, text: str) -> list[str]:
        """The lines of the first whole picture in which this is seen."""

        def is_seen() -> bool:
            self._look(0.05)
            frame = self.seen.rpartition(HOME)[2]
            return text in frame and "q quit" in frame  # the last line

        wait_until(is_seen, f"{text!r} is seen", describe=lambda: self.seen)
        return read_frame(self.seen.rpartition(HOME)[2])

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
    window.expect("every 0.2 s")
    window.expect("every 0.2 s")
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
    window.expect("every 0.2 s")
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


def test_keys_sort_filter_and_explain(
    watch: Callable[..., Window], hardware: Simulator, occupant: Callable[..., int]
) -> None:
    """At once, although the next reading is in a minute."""
    small, large = occupant(), occupant()
    hardware.set_process(0, small, 100 * MIB)
    hardware.set_process(1, large, 200 * MIB)
    window = watch("-n", "60", "--no-color")
    window.expect("COMMAND")
    window.expect("COMMAND")  # the second reading comes soon, the third in a minute
    window.type("s")
    lines = window.frame_with("sort by memory")
    assert [line.split()[1] for line in lines if "sleep 60" in line] == [str(large), str(small)]
    window.type("p")
    window.expect("Only these PIDs: ")
    window.type(f"{small}\n")
    lines = window.frame_with("1 of 2 processes")
    assert [line.split()[1] for line in lines if "sleep 60" in line] == [str(small)]
    window.type("a?")
    window.expect("Any key closes this.")
    window.type("xq")
    assert window.wait() == 0
    check_restored(window)


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
    told = json.loads(run("watch", "--once", "--json").stdout, parse_constant=pytest.fail)
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


@pytest.mark.parametrize(
    "options",
    [
        *(["--interval", "0"], ["--interval", "often"], ["-i", "0"], ["--timeout", "-1"]),
        *(["--sort", "colour"], ["--pid", "train.py"], ["--color", "--no-color"], ["-e", "both"]),
        *(["--gpuname-width", "wide"], ["--once", "--id", "0,7"], ["--json", "--id", "GPU-7"]),
    ],
)
def test_nonsense_is_refused_in_one_sentence(run: Run, options: list[str]) -> None:
    """Before anything is drawn."""
    done = run("watch", *options)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


# ---- gpustat's options.

COLUMNS = "GPU PID USER MiB SM CPU RAM COMMAND"


@pytest.mark.parametrize(
    ("options", "headings"),
    [
        (["-cpu"], COLUMNS),
        (["-c", "-p", "-u"], COLUMNS),
        (["--show-cmd", "--show-pid", "--show-user"], COLUMNS),
        (["-a"], COLUMNS),
        (["-P"], COLUMNS),
        (["-c"], "GPU MiB SM CPU RAM COMMAND"),
        (["-p"], "GPU PID USER MiB SM CPU RAM"),
        (["-u"], "GPU USER MiB SM CPU RAM"),
        (["-f"], "GPU PID MiB SM CPU RAM COMMAND"),
        (["-cu", "--no-header"], "GPU USER MiB SM CPU RAM COMMAND"),
    ],
)
def test_gpustats_options_print_once(
    run: Run, hardware: Simulator, occupant: Callable[..., int], options: list[str], headings: str
) -> None:
    """The columns that gpustat would show, and those that it has no room for."""
    hardware.set_process(1, occupant("/bin/sleep"), 100 * MIB)
    done = run("watch", *options)
    lines = done.stdout.splitlines()

    assert (done.returncode, done.stderr) == (0, "")
    assert lines[-2].split() == headings.split()
    assert ("  /bin/sleep 60" in lines[-1], "  sleep 60" in lines[-1]) == (
        options == ["-f"],
        options != ["-f"] and "COMMAND" in headings,
    )
    assert lines[0].startswith("CPU ") == ("--no-header" in options)


def test_gpustats_figures_of_devices(run: Run, hardware: Simulator) -> None:
    """Fans and video units on request, no processes, and names as long as one wants."""
    hardware.set_video_utilization(0, 12, 34)
    told = run(
        "watch", "-F", "-e", "--no-processes", "--gpuname-width", "8", "--id", "0", COLUMNS="160"
    ).stdout
    heading, line = told.splitlines()[-2:]

    assert heading.split()[-4:] == ["FAN", "ENC", "DEC", "NAME"]
    assert line.endswith("12 %  34 %  NVIDIA …")
    assert "61 / 300 W" in line


def test_gpustats_options_are_known(run: Run) -> None:
    """All that gpustat itself lists, but for those about gpustat."""
    environment = {**os.environ, "COLUMNS": "200"}
    told = subprocess.run(
        [sys.executable, "-m", "gpustat", "--help"], env=environment, capture_output=True, text=True
    ).stdout
    theirs, ours = (
        set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", text))
        for text in (told, run("watch", "--help").stdout)
    )

    assert {"-c", "-p", "-u", "-i", "--json", "--id", "--no-color", "--force-color"} <= theirs
    assert theirs - ours <= {"--debug", "-v", "--version", "-s", "--print-completion"}


@pytest.mark.parametrize("options", [["-cpu", "-i", "0.2"], ["-cpui", "0.2"], ["-cpui"], ["-a", "-n", "0.2"]])
def test_an_interval_makes_it_live(hardware: Simulator, options: list[str]) -> None:
    """As with gpustat, `-i` also without a number."""
    with contextlib.closing(Window([COMMAND, "watch", *options], hardware.environment())) as window:
        window.expect(ENTER)
        window.expect("every 0.2 s" if "0.2" in options else "every 1 s")
        window.type("q")
        assert window.wait() == 0
        check_restored(window)


def test_gpustats_options_print_once_on_a_terminal_too(hardware: Simulator) -> None:
    """What is printed stays in the window, in colours unless they are not wanted."""
    for options, is_coloured in ((["-cpu"], True), (["-cpu", "--no-color"], False)):
        with contextlib.closing(Window([COMMAND, "watch", *options], hardware.environment())) as window:
            assert window.wait() == 0
            assert ENTER not in window.seen
            assert window.seen.count("NVIDIA A100") == 2
            assert bool(STYLES.search(window.seen)) == is_coloured


def test_colours_can_be_forced(run: Run) -> None:
    """Into a pipe, and against the environment."""
    assert STYLES.search(run("watch", "--once", "--force-color", NO_COLOR="1").stdout)
    assert STYLES.search(run("watch", "-cpu", "--color").stdout)


def test_who_speaks_of_colours_in_a_pipe_means_gpustats_table(run: Run) -> None:
    """As a script for gpustat does; it would wait for ever."""
    assert run("watch", "--no-color").stdout.count("NVIDIA A100") == 2
    assert STYLES.search(run("watch", "--force-color").stdout)


def test_json_is_one_object_unless_there_is_an_interval(hardware: Simulator) -> None:
    """As a script for gpustat expects it; with an interval, an object per line."""
    command = [COMMAND, "watch", "--json"]
    environment = {**os.environ, **hardware.environment()}
    once = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert len(json.loads(once.stdout)["gpus"]) == 2
    with subprocess.Popen(
        [*command, "-i", "0.1"], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        process.stdout.read()

    assert lines[0]["time"] < lines[1]["time"] < lines[2]["time"]
    assert process.returncode == 0


def test_a_name_means_the_same_gpus_as_elsewhere(run: Run, hardware: Simulator) -> None:
    """Of a model with spaces, a split GPU by its address, and an instance in the old form."""
    hardware.add_device(
        name="NVIDIA Split GPU", uuid="GPU-split", pci_bus_id="00000000:5A:00.0", mig_capable=True
    )
    for number in range(2):
        hardware.add_mig_instance(2, uuid=f"MIG-{number}", gpu_instance=7 + number)

    def list_shown(name: str) -> tuple[list[str], list[str]]:
        told = json.loads(run("watch", "--json", "--id", name).stdout)
        rows = run(
            "query", "--query-gpu=index", "--format=csv,noheader", "--count", "2", "-lms", "50", "-i", name
        )
        return [gpu["label"] for gpu in told["gpus"]], rows.stdout.split()

    for name in ("NVIDIA Split GPU", "0000:5a:00.0"):
        assert list_shown(name) == (["2", "2:0", "2:1"], ["2", "2:0", "2:1"] * 2)
    assert list_shown("MIG-GPU-split/8/0") == (["2:1"], ["2:1"] * 2)


def test_only_some_gpus_and_processes(run: Run, hardware: Simulator, occupant: Callable[..., int]) -> None:
    """In tables, lines and objects alike."""
    first, second = occupant(), occupant()
    user = pwd.getpwuid(os.getuid()).pw_name
    for pid in (first, second):
        hardware.set_process(0, pid, 100 * MIB)
        hardware.set_process(1, pid, 200 * MIB)
    told = json.loads(run("watch", "--json", "--id", "GPU-1", "--pid", f"{first},1").stdout)
    table = run(
        "watch", "--once", "--user", user, "--pid", str(second), "--sort", "Memory"
    ).stdout.splitlines()

    assert [(gpu["ordinal"], [one["pid"] for one in gpu["processes"]]) for gpu in told["gpus"]] == [
        (1, [first])
    ]
    assert table[-4] == f"2 of 4 processes: user {user}, PID {second}"
    assert [line.split()[:2] for line in table[-2:]] == [["1", str(second)], ["0", str(second)]]
    assert run("watch", "--once", "--user", "nobody at all").stdout.endswith(
        "0 of 4 processes: user nobody at all\n"
    )
    with subprocess.Popen(
        [COMMAND, "watch", "--id", "1"],
        env={**os.environ, **hardware.environment()},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        process.stdout.read()
    assert [line.split()[1] for line in lines[1:]] == ["1", "1"]


def test_an_unknown_gpu_restores_the_terminal(watch: Callable[..., Window]) -> None:
    """The sentence is read in the shell, with the GPUs that there are."""
    window = watch("--id", "7")

    assert window.wait() == 2
    assert window.seen.rindex("There is no GPU '7'. GPUs: 0 (GPU-0), 1 (GPU-1).") > window.seen.index(LEAVE)
    assert window.is_as_before()


def test_an_empty_choice_of_gpus_is_refused(run: Run) -> None:
    """As `query -i ''` is: it would show all of them."""
    done = run("watch", "--once", "--id", "")

    assert done.returncode == 2
    assert "--id names no GPU." in done.stderr
