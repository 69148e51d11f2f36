"""What the fault workloads have in common: they tell the truth about themselves and find their sampler.

Standard output is the job's own and must be the same without a tracker. What the tracker says goes to the
file that FAULT_FIGURES names. With FAULT_UNTRACKED set, there is no tracker at all.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import time
from types import TracebackType
from typing import Any

from gpu_tracker import Tracker
from marked import marked_processes, read_state, samplers_among

MARK = "FAULT_MARK"
FIGURES = "FAULT_FIGURES"
UNTRACKED = "FAULT_UNTRACKED"
_PTRACE_ATTACH, _PTRACE_DETACH = 16, 17


def say(text: str) -> None:
    """A line of the job's own output."""
    print(text, flush=True)


def tell(**facts: object) -> None:
    """A line for the test alone."""
    line = json.dumps(facts) + "\n"
    fd = os.open(os.environ[FIGURES], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o666)
    os.write(fd, line.encode())
    os.close(fd)


def burn(cpu_seconds: float) -> None:
    """Use that much CPU time."""
    end = time.process_time() + cpu_seconds
    while time.process_time() < end:
        pass


def is_tracked() -> bool:
    """Whether this run is the one with the tracker."""
    return UNTRACKED not in os.environ


class NoTracker:
    """What is in the tracker's place when there is none."""

    def start(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""

    def __enter__(self) -> None:
        return

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return


def make_tracker(**options: Any) -> Tracker | NoTracker:
    """A tracker in base units that reads often, or none."""
    if not is_tracked():
        return NoTracker()
    chosen: dict[str, Any] = {
        "sleep_time": 0.1,
        "time_unit": "seconds",
        "ram_unit": "bytes",
        "gpu_ram_unit": "bytes",
        **options,
    }
    return Tracker(**chosen)


def tell_figures(tracker: Tracker | NoTracker, **facts: object) -> None:
    """What the tracker has measured."""
    if isinstance(tracker, NoTracker):
        return
    usage = tracker.resource_usage
    if usage is None:
        tell(usage=None, notes=list(tracker.notes), **facts)
        return
    seconds = usage.compute_time.time
    cpu = usage.cpu_utilization
    tell(
        seconds=seconds,
        main_cpu_seconds=cpu.main.mean_sum_percent / 100 * seconds,
        descendants_cpu_seconds=cpu.descendents.mean_sum_percent / 100 * seconds,
        main_ram_bytes=usage.max_ram.main.total_rss,
        combined_ram_bytes=usage.max_ram.combined.total_rss,
        combined_gpu_bytes=usage.max_gpu_ram.combined,
        gpu_percent=usage.gpu_utilization.gpu_percentages.max_sum_percent,
        threads=cpu.combined_n_threads,
        notes=list(tracker.notes),
        **facts,
    )


def find_samplers() -> list[int]:
    """The samplers of this test."""
    return samplers_among(marked_processes(MARK, os.environ[MARK]))


def signal_sampler(number: int) -> int:
    """Send a signal to the only sampler of this test, and wait until it has taken effect."""
    (pid,) = find_samplers()
    os.kill(pid, number)
    expected = "T" if number == signal.SIGSTOP else None
    deadline = time.monotonic() + 10
    while read_state(pid) != expected and time.monotonic() < deadline:
        time.sleep(0.005)
    return pid


def hold(pid: int) -> None:
    """Have a process hang where no signal but SIGKILL moves it, as in a driver or on a lost network disk, until `release`."""
    if ctypes.CDLL(None).ptrace(_PTRACE_ATTACH, pid, None, None):
        raise PermissionError(f"may not trace process {pid}")
    os.waitpid(pid, 0)


def release(pid: int) -> None:
    """Let it go on."""
    ctypes.CDLL(None).ptrace(_PTRACE_DETACH, pid, None, None)
