"""System calls about other processes, tried on real ones."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys

import pytest

from gpu_tracker.sources.platform import open_exit, read_exit_code

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

KNOWS_THE_REAPED = tuple(map(int, platform.release().split("-")[0].split(".")[:2])) >= (6, 15)


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", -signal.SIGKILL)])
def test_the_exit_code_of_a_process_whose_parent_has_not_read_it(script: str, code: int) -> None:
    """A zombie still has it."""
    process = subprocess.Popen(["sh", "-c", script])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert read_exit_code(process.pid, -1) == code
    process.wait()


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", -signal.SIGKILL)])
def test_the_exit_code_of_a_process_whose_parent_has_read_it(script: str, code: int) -> None:
    """New kernels remember it for whoever has a descriptor of the process; it is never guessed."""
    process = subprocess.Popen(["sh", "-c", script])
    exit_fd = open_exit(process.pid)
    try:
        process.wait()
        assert read_exit_code(process.pid, exit_fd) == (code if KNOWS_THE_REAPED else None)
        assert read_exit_code(process.pid, -1) is None
    finally:
        os.close(exit_fd)


def test_a_process_that_runs_has_no_exit_code() -> None:
    """Nor is 0 taken for one."""
    exit_fd = open_exit(os.getpid())
    try:
        assert read_exit_code(os.getpid(), exit_fd) is None
    finally:
        os.close(exit_fd)
