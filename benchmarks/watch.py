"""A tracker observed from outside: its processes, their CPU time and memory.

Everything that a benchmark starts has a tag in its environment. A tagged process that is neither the job nor its
descendant belongs to the tracker: its wrapper, its sampler (possibly an orphan), its helpers.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

TAG_VARIABLE = "GPU_TRACKER_BENCHMARK"
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Found:
    """The processes of one run at one moment."""

    tracker: frozenset[int]
    job: frozenset[int]


def find_processes(tag: str, script: str) -> Found:
    """Separate the tagged processes; the job is the interpreter that runs the script."""
    pids = find_tagged(tag)
    job = {pid for pid in pids if _arguments(pid)[1:2] == [script]}
    grown = True
    while grown:
        children = {pid for pid in pids if pid not in job and _parent(pid) in job}
        grown = bool(children)
        job |= children
    return Found(frozenset(pids) - job, frozenset(job))


def find_tagged(tag: str) -> list[int]:
    """All live processes with this tag."""
    wanted = f"{TAG_VARIABLE}={tag}\0".encode()
    return [pid for pid in _all_pids() if wanted in _read(pid, "environ")]


def kill_tagged(tag: str) -> None:
    """Kill what is left of a run."""
    for pid in find_tagged(tag):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def cpu_seconds(pids: frozenset[int]) -> float:
    """CPU time of these processes, and of the children they have waited for."""
    return sum(_clock_seconds(pid) + _reaped_seconds(pid) for pid in pids)


def rss_bytes(pid: int) -> int:
    """Resident memory of a process; 0 if it has ended."""
    fields = _read(pid, "statm").split()
    return int(fields[1]) * _PAGE_BYTES if fields else 0


def name(pid: int) -> str:
    """What a process calls itself; empty if it has ended."""
    return _read(pid, "comm").decode("utf-8", "replace").strip()


def pss_bytes(pid: int) -> int:
    """Memory of a process, what it shares with others divided among them; 0 if it has ended."""
    for line in _read(pid, "smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _clock_seconds(pid: int) -> float:
    try:
        # The CPU clock of another process, see clock_getcpuclockid(3); /proc has a resolution of 10 ms.
        return time.clock_gettime(((~pid) << 3) | 2)
    except OSError:
        return 0.0


def _reaped_seconds(pid: int) -> float:
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return (int(fields[13]) + int(fields[14])) / _TICKS_PER_SECOND if fields else 0.0


def _parent(pid: int) -> int:
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if fields else 0


def _arguments(pid: int) -> list[str]:
    return _read(pid, "cmdline").decode("utf-8", "replace").split("\0")


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""  # it has ended, or belongs to another user
