"""A machine with two simulated devices, and commands that run on it."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from nvml_simulator import Simulator

COMMAND = str(Path(sysconfig.get_path("scripts")) / "gpu-tracker")
MIB = 2**20

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def hardware(library: Path, tmp_path: Path) -> Iterator[Simulator]:
    """Two devices of 40 GiB."""
    with Simulator(library, tmp_path / "state") as simulator:
        for number in range(2):
            simulator.add_device(
                uuid=f"GPU-{number}", name="NVIDIA A100", power_watts=61.25, temperature_celsius=40 + number
            )
        yield simulator


@pytest.fixture
def run(hardware: Simulator, tmp_path: Path) -> Run:
    """Run `gpu-tracker` on that machine to its end."""

    def run_command(
        *arguments: str, within: Sequence[str] = (), **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*within, COMMAND, *arguments],
            env={**os.environ, **hardware.environment(), **environment},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=200,
        )

    return run_command


@pytest.fixture
def occupant() -> Iterator[Callable[..., int]]:
    """Start a process that sleeps under any command line; its pid."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> int:
        process = subprocess.Popen(["sleep", "60"] if not words else [words[0], "60"], executable="sleep")
        started.append(process)
        return process.pid

    yield start
    for process in started:
        process.kill()
        process.wait()
