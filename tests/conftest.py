"""What every test may use, and the proof that none leaves anything behind."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nvml_simulator import build

SAMPLER_NAME = "gpu-tracker-smp"
WORKLOADS = Path(__file__).parent / "end_to_end" / "workloads"


# Inherited by everything the tests start, so that two test runs on one machine do not see each other's.
MARK = f"TEST_SESSION_OF_GPU_TRACKER={os.getpid()}"
os.environ.__setitem__(*MARK.split("="))


def running_samplers() -> set[int]:
    """Every sampler that these tests have started and that is not a zombie."""
    pids = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            stat = Path(f"/proc/{name}/stat").read_text()
            if f"({SAMPLER_NAME})" not in stat or stat.rpartition(")")[2].split()[0] == "Z":
                continue
            environment = Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue
        if MARK.encode() in environment.split(b"\0"):
            pids.add(int(name))
    return pids


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    """No sampler outlives its test by more than two seconds, no descriptor stays open."""
    samplers, descriptors = running_samplers(), len(os.listdir("/proc/self/fd"))
    yield
    deadline = time.monotonic() + 2
    while (left := running_samplers() - samplers) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not left, f"samplers left behind: {left}"
    assert len(os.listdir("/proc/self/fd")) <= descriptors


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The simulated NVIDIA driver, compiled once."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def command_line() -> str:
    """The installed `gpu-tracker`."""
    return str(Path(sysconfig.get_path("scripts")) / "gpu-tracker")


@pytest.fixture(scope="session")
def python() -> str:
    """The interpreter of the tests, for workloads."""
    return sys.executable
