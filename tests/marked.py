"""Processes that a test has started, found by a variable in their environment, and what state they are in."""

from __future__ import annotations

import os
from collections.abc import Mapping

import psutil

_SAMPLER_NAME = "gpu-tracker-smp"
_SAMPLER_MODULE = "gpu_tracker.sampler.child"
WITNESS_NAME = "gpu-tracker-sig"


def marked_processes(variable: str, mark: str) -> dict[int, str]:
    """Name by pid of every living process whose environment carries the mark."""
    if not os.path.isdir("/proc/self"):
        return _marked_elsewhere(variable, mark)
    needle = f"{variable}={mark}".encode()
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


def _marked_elsewhere(variable: str, mark: str) -> dict[int, str]:
    """The same where processes have no such files, and no name of their own choice."""
    found = {}
    for process in psutil.process_iter():
        try:
            if process.environ().get(variable) == mark:
                is_sampler = any(_SAMPLER_MODULE in word for word in process.cmdline())
                found[process.pid] = _SAMPLER_NAME if is_sampler else process.name()
        except psutil.Error:
            continue
    return found


def samplers_among(processes: Mapping[int, str]) -> list[int]:
    """Their pids."""
    return sorted(pid for pid, name in processes.items() if name == _SAMPLER_NAME)


def read_state(pid: int) -> str | None:
    """R, S, T and so on; None when the process is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state = file.read().rpartition(")")[2].split()[0]
    except OSError:
        return None
    return None if state in "ZX" else state
