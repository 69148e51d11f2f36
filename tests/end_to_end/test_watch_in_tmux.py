"""Eight busy GPUs in a real terminal: GPUs stay in sight, processes scroll, and keys sort and filter them."""

from __future__ import annotations

import os
import pwd
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from end_to_end.tmux import CTRL_C, CTRL_Z, Terminal
from nvml_simulator import Simulator
from patience import wait_until

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux (apt-get install tmux)")

MIB = 2**20
N_GPUS, N_PROCESSES = 8, 40
LOADS = (97, 100, 88, 12, 99, 100, 45, 0)
POWERS = (690, 700, 650, 123, 700, 699, 340, 71)
BY_POWER, BY_HEAT = 0x04, 0x20
CAPTION = re.compile(r"Processes (\d+)-(\d+) of (\d+)")
PROCESS = re.compile(r"^ +(\d) +(\d+)  (\S+) +(\d+) +(\d+) % .* sleep 600$")
SIZES = {(80, 24): 9, (120, 40): 24, (200, 50): 34}
"""How many processes there is room for."""


@pytest.fixture
def hardware(library: Path, tmp_path: Path) -> Iterator[Simulator]:
    """Eight devices under load; power throttles the first, heat also the second."""
    with Simulator(library, tmp_path / "state") as simulator:
        for number in range(N_GPUS):
            simulator.add_device(
                uuid=f"GPU-{number}",
                name="NVIDIA H100 80GB HBM3",
                memory_total_bytes=81559 * MIB,
                power_watts=POWERS[number],
                power_limit_watts=700,
            )
            simulator.set_utilization(number, LOADS[number])
        simulator.set_throttle_reasons(0, BY_POWER)
        simulator.set_throttle_reasons(1, BY_POWER | BY_HEAT)
        yield simulator


@pytest.fixture
def pids(hardware: Simulator) -> Iterator[list[int]]:
    """Forty processes on them, each with more memory than the one before."""
    started = [subprocess.Popen(["sleep", "600"]) for _ in range(N_PROCESSES)]
    for number, process in enumerate(started):
        hardware.set_process(number % N_GPUS, process.pid, (1000 + number) * MIB, sm_percent=number)
    yield [process.pid for process in started]
    for process in started:
        process.kill()
        process.wait()


class Watch(Terminal):
    """A terminal in which the machine is watched."""

    def __init__(self, folder: Path, command: str) -> None:
        super().__init__(folder)
        self.command = command

    def open(self, *words: str, columns: int = 80, rows: int = 24) -> None:
        """Type the command in a window of that size."""
        self.resize(columns, rows)
        self.type(f"clear; {self.command} -n 0.2 {shlex.join(words)}; echo code=$?")

    def wait_for_text(self, text: str) -> None:
        """Until it is anywhere on the screen."""
        wait_until(
            lambda: any(text in line for line in self.screen),
            f"{text!r} is shown",
            describe=lambda: "\n".join(self.screen),
        )

    @property
    def rows(self) -> list[tuple[int, int]]:
        """GPU and PID of every process that is seen."""
        matches = [PROCESS.match(line) for line in self.screen]
        return [(int(match[1]), int(match[2])) for match in matches if match]

    def wait_for_pids(self, wanted: list[int]) -> None:
        """Until exactly these processes are seen, in this order."""
        wait_until(
            lambda: [pid for _, pid in self.rows] == wanted,
            f"{wanted} are shown",
            describe=lambda: "\n".join(self.screen),
        )

    def leave(self) -> None:
        """Quit, and see the shell again."""
        self.press("q")
        self.wait_for("code=0")


@pytest.fixture
def watch(tmp_path: Path, command_line: str, hardware: Simulator) -> Iterator[Watch]:
    """A shell."""
    environment = shlex.join(f"{name}={value}" for name, value in hardware.environment().items())
    terminal = Watch(tmp_path, f"env {environment} {shlex.quote(command_line)} watch")
    yield terminal
    terminal.close()


def by_gpu(pids: list[int]) -> list[int]:
    """In the order in which they are shown at first: by GPU, then by memory."""
    places = {pid: place for place, pid in enumerate(pids)}
    return sorted(pids, key=lambda pid: (places[pid] % N_GPUS, -places[pid]))


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_all_gpus_are_seen_and_all_processes_can_be(
    watch: Watch, pids: list[int], columns: int, rows: int
) -> None:
    """Page by page, while the GPUs above them stay where they are; no word is cut."""
    n_visible = SIZES[columns, rows]
    watch.open(columns=columns, rows=rows)
    expected = by_gpu(pids)
    watch.wait_for_pids(expected[:n_visible])
    first = watch.screen
    seen = list(watch.rows)
    while len(seen) < N_PROCESSES:
        shown = expected[len(seen) : len(seen) + n_visible]
        watch.press("NPage")
        watch.wait_for_pids(expected[-n_visible:] if len(shown) < n_visible else shown)
        seen += watch.rows[-len(shown) :]
    screen = watch.screen

    assert [pid for _, pid in seen] == expected
    assert all(gpu == pids.index(pid) % N_GPUS for gpu, pid in seen)
    (heading,) = [place for place, line in enumerate(screen) if "THROTTLED" in line]
    gpus = screen[heading + 1 : heading + 1 + N_GPUS]
    assert [line.split()[0] for line in gpus] == [str(number) for number in range(N_GPUS)]
    for line, load, power in zip(gpus, LOADS, POWERS, strict=True):
        assert f" {load} % " in line
        assert f" {power} / 700 W  " in line
        assert line.endswith("H100 80GB HBM3")
    assert [line.split(" W  ")[1].split("  ")[0] for line in gpus[:3]] == ["power", "power, heat", "no"]
    assert first[heading : heading + N_GPUS] == screen[heading : heading + N_GPUS]
    caption = CAPTION.search("\n".join(screen))
    assert caption is not None
    assert [int(number) for number in caption.groups()] == [41 - n_visible, 40, 40]
    assert len(screen) == rows
    assert not any("…" in line for line in screen)
    assert screen[-1].startswith("q quit  h help  s sort by GPU")
    watch.leave()
    watch.check_as_before(rows, columns)


def test_single_steps_and_both_ends(watch: Watch, pids: list[int]) -> None:
    """Down and up by one; a step beyond an end does nothing."""
    expected = by_gpu(pids)
    watch.open()
    watch.wait_for_pids(expected[:9])
    watch.press("Down", "Down", "j")
    watch.wait_for_pids(expected[3:12])
    watch.press("Up", "k")
    watch.wait_for_pids(expected[1:10])
    watch.press("End")
    watch.wait_for_pids(expected[-9:])
    watch.press("Down", "Up")
    watch.wait_for_pids(expected[-10:-1])
    watch.press("Home")
    watch.wait_for_pids(expected[:9])
    watch.leave()


def test_keys_sort(watch: Watch, pids: list[int]) -> None:
    """By memory, which here is also by utilization; then by PID, and the other way round."""
    watch.open()
    watch.wait_for_pids(by_gpu(pids)[:9])
    watch.press("s")
    watch.wait_for_pids(pids[::-1][:9])
    watch.wait_for_text("s sort by memory")
    watch.press("r")
    watch.wait_for_pids(pids[:9])
    watch.press("S", "S", "S")  # back past the first
    watch.wait_for_text("s sort by PID")
    watch.wait_for_pids(sorted(pids)[:9])
    watch.leave()


def test_keys_filter(watch: Watch, pids: list[int]) -> None:
    """By GPU, by user, by PID, and everything again; what is left out is said."""
    expected = by_gpu(pids)
    user = pwd.getpwuid(os.getuid()).pw_name
    watch.open()
    watch.wait_for_pids(expected[:9])
    watch.press("g")
    watch.wait_for_text("Only these GPUs (0, 1, 2, 3, 4, 5, 6, 7): ")
    watch.type("2 3")
    watch.wait_for_text("10 of 40 processes: GPU 2 3")
    watch.wait_for_pids(expected[10:20])
    assert sum("H100" in line for line in watch.screen) == 2
    watch.press("p")
    watch.type(f"{expected[10]},{expected[0]}")
    watch.wait_for_text(f"1 of 40 processes: GPU 2 3, PID {expected[10]} {expected[0]}")
    watch.press("a", "u")
    watch.wait_for_text(f"Only these users ({user}): ")
    watch.type("nobody-at-all")
    watch.wait_for_text("0 of 40 processes: user nobody-at-all")
    assert watch.rows == []
    assert sum("H100" in line for line in watch.screen) == N_GPUS
    watch.press("u")
    watch.wait_for_text("Only these users")
    watch.press("x", "Escape")
    watch.wait_for_text("0 of 40 processes: user nobody-at-all")
    watch.press("a")
    watch.wait_for_pids(expected[:9])
    watch.leave()


def test_the_view_follows_the_machine(watch: Watch, hardware: Simulator, pids: list[int]) -> None:
    """What ends while one has scrolled to the end leaves no hole."""
    expected = by_gpu(pids)
    watch.open()
    watch.wait_for_pids(expected[:9])
    watch.press("End")
    watch.wait_for_pids(expected[-9:])
    for pid in pids[:20]:
        hardware.remove_process(pids.index(pid) % N_GPUS, pid)
    left = [pid for pid in expected if pid not in pids[:20]]
    watch.wait_for_pids(left[-9:])
    watch.wait_for_text("Processes 12-20 of 20")
    hardware.set_throttle_reasons(7, BY_HEAT)
    wait_until(lambda: any(re.match(r"  7 .*  heat ", line) for line in watch.screen), "GPU 7 is throttled")
    watch.leave()


@pytest.mark.parametrize("key", ["h", "?"])
def test_help_lists_the_keys(watch: Watch, pids: list[int], key: str) -> None:
    """All of them on the smallest usual screen, with nothing cut; any key goes back."""
    watch.open()
    watch.wait_for_pids(by_gpu(pids)[:9])
    watch.press(key)
    watch.wait_for_text("Any key closes this.")
    screen = watch.screen

    assert not any("…" in line for line in screen)
    assert {line.split()[0] for line in screen if line.startswith("  ")} >= {
        *"srgupah",
        "q,",
        "up",
        "page",
        "home,",
    }
    watch.press("x")
    watch.wait_for_pids(by_gpu(pids)[:9])
    watch.leave()


def test_a_resize_and_ctrl_z(watch: Watch, pids: list[int]) -> None:
    """The table has the size of the window; while it is stopped, the shell has the terminal."""
    expected = by_gpu(pids)
    watch.open()
    watch.wait_for_pids(expected[:9])
    watch.resize(120, 40)
    watch.wait_for_pids(expected[:24])
    watch.resize(60, 14)
    watch.wait_for_pids(expected[:1])
    assert max(map(len, watch.screen)) <= 60
    watch.wait_for_text("(2 more GPUs; g chooses which to show)")
    watch.resize(80, 24)
    watch.wait_for_pids(expected[:9])
    watch.press(CTRL_Z)
    watch.wait_for_text("Stopped")
    watch.check_as_before(24, 80)
    watch.type("clear; fg")
    watch.wait_for_pids(expected[:9])
    watch.press(CTRL_C)
    watch.wait_for_text("prompt>")
    watch.check_as_before(24, 80)


def test_gpustats_options_in_a_terminal(watch: Watch, pids: list[int]) -> None:
    """Once, with the prompt below it."""
    watch.resize(120, 60)
    watch.type(f"clear; {watch.command} -cpu; echo code=$?")
    watch.wait_for("code=0")

    assert [pid for _, pid in watch.rows] == by_gpu(pids)
    assert not any(line.startswith("q quit") for line in watch.screen)
