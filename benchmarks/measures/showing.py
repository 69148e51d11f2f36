"""What it costs to look at a running job with `top`, in a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import tempfile
import termios
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import workload, wrap
from benchmarks.rows import Goal, Row
from benchmarks.watch import cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.venvs import Installed

NAME = "top"

_MOST_PERCENT = 2.0
_ROWS, _COLUMNS = 50, 160
# Starting is not looking.
_SETTLING_SECONDS = 4.0
_SECONDS = 20.0


def measure(bench: Bench) -> list[Row]:
    """Percent of one core, at one frame a second."""
    row = Row(f"`top` on a running job, {_COLUMNS} x {_ROWS}", "% of a core", Goal(high=_MOST_PERCENT), 2)
    for tools in bench.rounds(NAME, Rounds(3, 0), Rounds(1, 0)):
        for tool in tools:
            row.add(tool.name, _look(tool))
    return [row]


def _look(tool: Installed) -> float:
    with tempfile.TemporaryDirectory() as folder, _start_job(tool, folder), _start_top(tool, folder) as pid:
        time.sleep(_SETTLING_SECONDS)
        before, began = cpu_seconds(frozenset({pid})), time.monotonic()
        time.sleep(_SECONDS)
        return 100 * (cpu_seconds(frozenset({pid})) - before) / (time.monotonic() - began)


@contextmanager
def _start_job(tool: Installed, folder: str) -> Iterator[None]:
    job = workload("busy", _SETTLING_SECONDS + _SECONDS + 5.0)
    process = subprocess.Popen(
        wrap(tool, job), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        runs = os.path.join(folder, "gpu-tracker-runs")
        while not os.path.isdir(runs) or not os.listdir(runs):
            time.sleep(0.05)
        yield
    finally:
        process.wait()


@contextmanager
def _start_top(tool: Installed, folder: str) -> Iterator[int]:
    """In a terminal that somebody reads."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    command = [os.path.join(tool.bin, "gpu-tracker"), "top"]
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(
        command, cwd=folder, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    )
    os.close(slave)
    threading.Thread(target=_drain, args=(master,), daemon=True).start()
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 65536):
            pass
    except OSError:
        os.close(fd)
