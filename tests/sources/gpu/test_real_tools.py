"""The vendors' own tools must see the same as we do in the same files.

They run in their own mount namespace, with our `/sys` and `/proc`. `tests/tools/fetch_real_tools.sh DIRECTORY`
downloads them; `REAL_GPU_TOOLS=DIRECTORY` tells the tests where they are.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shutil
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from details import EVERY_DETAIL
from gpu_tracker.sources.gpu import amd, drm
from sources.gpu.fake_devices import GIB, MIB, FakeClock, FakeMachine, write_amdgpu, write_files, write_i915

TOOLS = Path(os.environ.get("REAL_GPU_TOOLS", "/nonexistent"))
# All mounts end with the namespace.
ENTER = """
set -e
mount --bind "$1" "$3/sys"; mount --bind "$2" "$3/proc"; mount -t tmpfs none "$3/dev"
mkdir "$3/dev/dri" "$3/dev/shm"; mknod "$3/dev/null" c 1 3
for minor in 128 129; do mknod "$3/dev/dri/renderD$minor" c 226 "$minor"; done
root=$3; shift 3; exec chroot "$root" "$@"
"""
# gputop 2.0 crashes on the cycles of xe, so i915 represents Intel.
LOCAL = "drm-total-local0:\t48 MiB\ndrm-resident-local0:\t24 MiB"
ROCM_SMI = ("/usr/bin/python3", "/usr/libexec/rocm_smi/rocm_smi.py")


def why_impossible() -> str:
    """What is missing here, if anything."""
    if not (TOOLS / "complete").exists():
        return "REAL_GPU_TOOLS names no directory filled by tests/tools/fetch_real_tools.sh"
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return "a mount namespace with devices needs root and unshare"
    if subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        return "mount namespaces are not allowed here"
    return ""


pytestmark = pytest.mark.skipif(bool(why_impossible()), reason=why_impossible())


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    """Without cards, but with a loaded driver."""
    machine = FakeMachine(tmp_path)
    write_files(machine.sys, {"module/amdgpu/initstate": "live", "class/.keep": ""})
    return machine


def run(machine: FakeMachine, *command: str, terminal: int | None = None) -> str:
    """The output of a tool on this machine."""
    arguments = [str(machine.sys), str(machine.proc), str(TOOLS / "root"), *command]
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", ENTER, "sh", *arguments],
        stdin=subprocess.DEVNULL if terminal is None else terminal,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    ).stdout


@contextmanager
def wide_terminal() -> Iterator[int]:
    """gputop prints nothing without a terminal."""
    ours, theirs = pty.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
        yield theirs
    finally:
        os.close(ours)
        os.close(theirs)


def test_rocm_smi_sees_the_same_cards(machine: FakeMachine) -> None:
    """The same order, names and figures, although the kernel numbers the cards in reverse."""
    second = {"mem_info_vram_used": 5 * GIB + 12345, "gpu_busy_percent": 12, "mem_busy_percent": 3}
    write_files(machine.add_amd_card(0, "0000:83:00.0", 200), second)
    machine.add_amd_card(1, "0000:03:00.0", 100)
    options = ("use", "memuse", "bus", "uniqueid", "power", "temp", "clocks", "maxpower")
    result: dict[str, dict[str, Any]] = json.loads(
        run(machine, *ROCM_SMI, "--json", "--showmeminfo", "vram", *(f"--show{option}" for option in options))
    )
    source = amd.connect(FakeClock(), machine.roots)
    readings = {reading.uuid: reading for reading in source.read(None).devices}
    details = source.read_details(EVERY_DETAIL)

    assert len(result) == len(source.gpus) == 2
    for gpu in source.gpus:
        reading, card = readings[gpu.uuid], result[f"card{gpu.ordinal}"]
        assert card["PCI Bus"].lower() == gpu.bus_id
        assert int(card["Unique ID"], 16) == int(gpu.uuid.removeprefix("GPU-"), 16)
        assert int(card["VRAM Total Memory (B)"]) == gpu.memory_bytes
        assert int(card["VRAM Total Used Memory (B)"]) == reading.used_bytes
        assert float(card["GPU use (%)"]) == reading.utilization_percent
        activity = _find(card, "GPU memory use", "GPU Memory Read/Write Activity")
        assert float(activity) == reading.memory_utilization_percent
        assert float(_find(card, "Average Graphics Package Power")) == pytest.approx(
            reading.power_watts, abs=0.5
        )
        assert float(_find(card, "Temperature (Sensor edge)")) == reading.temperature_celsius
        assert _find(card, "sclk clock speed") == f"({reading.sm_clock_mhz:.0f}Mhz)"
        assert _find(card, "mclk clock speed") == f"({reading.memory_clock_mhz:.0f}Mhz)"
        assert float(_find(card, "Max Graphics Package Power")) == details[gpu.uuid]["power.limit"]


def test_rocm_smi_sees_the_same_processes(machine: FakeMachine) -> None:
    """It sums over the cards."""
    machine.add_amd_card(0, "0000:03:00.0", 100)
    machine.add_amd_card(1, "0000:83:00.0", 200)
    machine.set_kfd_bytes(10, {100: 6 * MIB, 200: 5 * MIB})
    machine.set_kfd_bytes(11, {100: 0, 200: 7 * MIB})
    for pid in (10, 11):
        machine.set_process(pid, {})
    rows = [line.split() for line in run(machine, *ROCM_SMI, "--showpids").splitlines()]
    result = {int(row[0]): int(row[3]) for row in rows if len(row) >= 6 and row[0].isdigit()}
    ours: dict[int, int] = {}
    for process in amd.connect(FakeClock(), machine.roots).read(None).processes:
        ours[process.pid] = ours.get(process.pid, 0) + (process.used_bytes or 0)

    assert result == ours == {10: 11 * MIB, 11: 7 * MIB}


def test_gputop_sees_the_same_clients(machine: FakeMachine) -> None:
    """Copies and inherited descriptors count once, with the same share of the engines."""
    stop = threading.Event()
    started = time.monotonic()

    def work() -> None:
        """Clients of amdgpu are busy for 6 % and 12 % of the time, those of i915 for a tenth of two engines."""
        while not stop.is_set():
            passed = time.monotonic() - started
            texts = {
                10: write_amdgpu(7, vram_kib=300 * 1024, gtt_kib=0, gfx=int(passed * 0.06e9)),
                12: write_amdgpu(8, vram_kib=700 * 1024, gtt_kib=0, gfx=int(passed * 0.12e9)),
                13: write_i915(
                    9,
                    bus_id="0000:83:00.0",
                    memory=LOCAL,
                    render=int(passed * 0.04e9),
                    video=int(passed * 0.2e9),
                ),
            }
            for path, text in _list_descriptors(machine, texts):
                # Atomically: a reader must never see half a file.
                path.with_suffix(".new").write_text(f"{text}\n")
                path.with_suffix(".new").rename(path)
            stop.wait(0.02)

    machine.set_process(10, {5: "", 6: ""})
    machine.set_process(11, {5: ""})
    machine.set_process(12, {9: ""})
    machine.set_process(13, {5: ""}, node="/dev/dri/renderD129")
    for pid in (10, 11, 12, 13):
        stat = f"{pid} (job{pid}) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 100 100"
        write_files(machine.proc / str(pid), {"stat": stat, "cmdline": f"job{pid}"})
    worker = threading.Thread(target=work)
    worker.start()
    try:
        time.sleep(0.2)
        clients = drm.Clients(time.monotonic, str(machine.proc), frozenset({"amdgpu", "i915"}))
        clients.read(None, frozenset())
        with wide_terminal() as terminal:
            screens = run(machine, "/usr/bin/gputop", "-n", "3", "-d", "1", terminal=terminal)
        ours = clients.read(None, frozenset())
    finally:
        stop.set()
        worker.join()

    result = _parse_gputop(screens.rpartition("\x1b[H\x1b[J")[2])
    seen = {
        (client.bus_id, round(drm.add_device_bytes(client.memory_bytes, is_integrated=False) / MIB)): client
        for client in ours
    }
    # gputop lists a shared client under the process that it finds first.
    assert [(min(pid, 10) if pid in (10, 11) else pid, size) for pid, size, _ in result] == [
        (client.pid, size) for (_, size), client in sorted(seen.items(), key=lambda item: item[1].pid)
    ]
    assert [(client.pid, size) for (_, size), client in seen.items()] == [(10, 300), (12, 700), (13, 24)]
    theirs = [percent for _, _, percent in result]
    expected = [
        drm.find_busiest([client.shares or {}]) or 0.0
        for client in sorted(ours, key=lambda client: client.pid)
    ]
    # gputop divides by the second that it meant to wait. On a busy machine it was another time, for all clients alike.
    lateness = sum(theirs) / sum(expected)
    assert [percent / lateness for percent in theirs] == pytest.approx(expected, abs=1)


def _list_descriptors(machine: FakeMachine, texts: dict[int, str]) -> list[tuple[Path, str]]:
    """Process 10 has a copy, process 11 has inherited it."""
    owners = ((10, 5, 10), (10, 6, 10), (11, 5, 10), (12, 9, 12), (13, 5, 13))
    return [(machine.proc / str(pid) / "fdinfo" / str(fd), texts[owner]) for pid, fd, owner in owners]


def _parse_gputop(screen: str) -> list[tuple[int, int, float]]:
    """Pid, resident MiB and percent of the busiest class, from one screen."""
    rows = []
    for line in screen.splitlines():
        words = line.replace("|", " ").split()
        if words and words[0].isdigit():
            size = int(words[2][:-1]) * {"K": 1 / 1024, "M": 1, "G": 1024}[words[2][-1]]
            percents = [float(word.rstrip("%")) for word in words if word.endswith("%")]
            rows.append((int(words[0]), round(size), max(percents)))
    return sorted(rows)


def _find(card: dict[str, Any], *beginnings: str) -> str:
    """The value of a row whose name depends on the version."""
    return next(str(value) for name, value in card.items() if name.startswith(beginnings))
