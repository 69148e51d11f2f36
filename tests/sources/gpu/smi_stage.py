"""A folder with a fake nvidia-smi that prints what a test wants."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpu_tracker.core.model import GpuReadings
from gpu_tracker.sources.gpu import nvidia_smi

FAKE = Path(__file__).with_name("fake_nvidia_smi.py")
NAME = "NVIDIA A100-SXM4-40GB"
STEP_SECONDS = 5.0


def device(number: int, **cells: str) -> dict[str, str]:
    """A healthy device."""
    row = {
        "index": str(number),
        "uuid": f"GPU-0000000{number}-1111-2222-3333-444444444444",
        "name": NAME,
        "pci.bus_id": f"00000000:{number + 1:02X}:00.0",
        "driver_version": "550.163.01",
        "memory.total": "40960",
        "mig.mode.current": "Disabled",
        "memory.used": "2048",
        "memory.reserved": "583",
        "utilization.gpu": "55",
        "utilization.memory": "7",
        "power.draw": "61.07",
        "temperature.gpu": "31",
        "clocks.current.sm": "1410",
        "clocks.current.memory": "1215",
        "clocks.max.sm": "1410",
        "clocks_event_reasons.active": "0x0000000000000004",
        "pstate": "P0",
        "fan.speed": "[N/A]",
        "power.limit": "400.00",
    }
    return {**row, **{name.replace("__", "."): cell for name, cell in cells.items()}}


def app(number: int, pid: int, used: str = "2048") -> dict[str, str]:
    """A process."""
    return {"gpu_uuid": device(number)["uuid"], "pid": str(pid), "used_memory": used}


class Stage:
    """A folder with a fake nvidia-smi, and the clock of the source."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "nvidia-smi"
        self.ahead_seconds = 0.0
        self.notes: list[str] = []
        # In two steps, because a file that is being written cannot be executed.
        draft = folder / "draft"
        draft.write_text(f"#!{sys.executable} -IS\n{FAKE.read_text()}")
        draft.chmod(0o755)
        draft.rename(self.path)
        self._foreign: set[int] = set()
        self._foreign = set(self.find_running())
        """Children that other tests of this worker have not waited for."""
        self.show()

    def now(self) -> float:
        """The real clock, which can be put ahead."""
        return time.monotonic() + self.ahead_seconds

    def show(
        self, gpus: list[dict[str, str]] | None = None, apps: list[dict[str, str]] | None = None, **more: Any
    ) -> None:
        """Change the scene atomically."""
        more |= more.pop("faults", {})
        scene = {"gpus": gpus or [device(0), device(1)], "apps": apps or [], **more}
        draft = self.folder / "scene.draft"
        draft.write_text(json.dumps(scene))
        draft.rename(self.folder / "scene.json")

    def connect(self, patience_seconds: float = 10) -> nvidia_smi.NvidiaSmiSource:
        """Connect a source."""
        return nvidia_smi.connect(self.now, patience_seconds)

    def read(self, source: nvidia_smi.NvidiaSmiSource) -> GpuReadings:
        """The next reading, some time later."""
        self.ahead_seconds += STEP_SECONDS
        readings = source.read(None)
        self.notes += source.take_notes()
        return readings

    def watch(
        self,
        source: nvidia_smi.NvidiaSmiSource,
        condition: Callable[[GpuReadings], object],
        seconds: float = 20,
    ) -> GpuReadings:
        """Read until the condition holds; the deadline only ends a failing test."""
        deadline = time.monotonic() + seconds
        while not condition(readings := self.read(source)):
            assert time.monotonic() < deadline, (readings, self.notes)
        return readings

    def count_running(self, condition: Callable[[int], bool]) -> int:
        """The number of processes, once the condition holds or the deadline has passed."""
        deadline = time.monotonic() + 10
        while not condition(number := len(self.find_running())) and time.monotonic() < deadline:
            time.sleep(0.02)
        return number

    def find_running(self) -> list[int]:
        """Every process of this stage, including our zombies, but for those that were there before."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                stat = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
                arguments = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            is_our_zombie = stat[0] == "Z" and int(stat[1]) == os.getpid()
            if os.fsencode(self.path) in arguments or is_our_zombie:
                found.append(int(name))
        return [pid for pid in found if pid not in self._foreign]
