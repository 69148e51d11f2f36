"""What the fault workloads have in common: they tell the truth about themselves and find their sampler.

Standard output is the job's own and must be the same without a tracker. What the tracker says goes to the
file that FAULT_FIGURES names. With FAULT_UNTRACKED set, there is no tracker at all.
"""

from __future__ import annotations

import json
import os
import signal
import time
from types import TracebackType
from typing import Any

from gpu_tracker import Tracker

MARK = "FAULT_MARK"
FIGURES = "FAULT_FIGURES"
UNTRACKED = "FAULT_UNTRACKED"
SAMPLER_NAME = "gpu-tracker-smp"
WITNESS_NAME = "gpu-tracker-sig"


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
    """A tracker in base units that looks often, or none."""
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


def marked_processes(mark: str) -> dict[int, str]:
    """Name by pid of every living process whose environment carries the mark."""
    needle = f"{MARK}={mark}".encode()
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if needle not in file.read().split(b"\0"):
                    continue
            with open(f"/proc/{entry}/comm", encoding="utf-8", errors="replace") as file:
                found[int(entry)] = file.read().strip()
        except OSError:
            continue
    return found


def find_samplers() -> list[int]:
    """The samplers of this test."""
    processes = marked_processes(os.environ[MARK])
    return sorted(pid for pid, name in processes.items() if name == SAMPLER_NAME)


def signal_sampler(number: int) -> int:
    """Send a signal to the only sampler of this test, and wait until it has taken effect."""
    (pid,) = find_samplers()
    os.kill(pid, number)
    expected = "T" if number == signal.SIGSTOP else None
    deadline = time.monotonic() + 10
    while read_state(pid) != expected and time.monotonic() < deadline:
        time.sleep(0.005)
    return pid


def read_state(pid: int) -> str | None:
    """R, S, T and so on; None when the process is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state = file.read().rpartition(")")[2].split()[0]
    except OSError:
        return None
    return None if state in "ZX" else state
