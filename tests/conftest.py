"""What every test may use, and the proof that none leaves anything behind."""

from __future__ import annotations

import os
import sys
import sysconfig
import time
from pathlib import Path

import pytest

SAMPLER_NAME = "gpu-tracker-smp"
WORKLOADS = Path(__file__).parent / "end_to_end" / "workloads"


def running_samplers() -> set[int]:
    """Every sampler of this machine that is not a zombie."""
    pids = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            stat = Path(f"/proc/{name}/stat").read_text()
        except OSError:
            continue
        if f"({SAMPLER_NAME})" in stat and stat.rpartition(")")[2].split()[0] != "Z":
            pids.add(int(name))
    return pids


@pytest.fixture(autouse=True)
def _nothing_is_left_behind():
    """No sampler outlives its test by more than two seconds, no descriptor stays open."""
    samplers, descriptors = running_samplers(), len(os.listdir("/proc/self/fd"))
    yield
    deadline = time.monotonic() + 2
    while (left := running_samplers() - samplers) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not left, f"samplers left behind: {left}"
    assert len(os.listdir("/proc/self/fd")) <= descriptors


@pytest.fixture(scope="session")
def command_line() -> str:
    """The installed `gpu-tracker`."""
    return str(Path(sysconfig.get_path("scripts")) / "gpu-tracker")


@pytest.fixture(scope="session")
def python() -> str:
    """The interpreter of the tests, for workloads."""
    return sys.executable
