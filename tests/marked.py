"""Processes that a test has started, found by a variable in their environment, and what state they are in."""

from __future__ import annotations

import os
from collections.abc import Mapping

_SAMPLER_NAME = "gpu-tracker-smp"
WITNESS_NAME = "gpu-tracker-sig"


def marked_processes(variable: str, mark: str) -> dict[int, str]:
    """Name by pid of every living process whose environment carries the mark."""
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
