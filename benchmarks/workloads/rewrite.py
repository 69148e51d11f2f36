"""Writes to 1 GB of its own memory again and again, untracked and tracked in turn.

A tracker that forks keeps the old pages alive: the kernel must then copy every page that is written to. The
memory is there before anything is timed, because the first touch costs whatever the machine makes it cost.
"""

import importlib
import json
import os
import sys
import time

ARRAY_BYTES = 1_000_000_000
CHUNK = b"x" * 1_000_000
MARK = "GPU_TRACKER_BENCHMARK"


def rewrite(memory: memoryview) -> float:
    """CPU seconds to write all of it once."""
    cpu = time.process_time()
    for start in range(0, ARRAY_BYTES, len(CHUNK)):
        memory[start : start + len(CHUNK)] = CHUNK
    return time.process_time() - cpu


def held_bytes() -> int:
    """What this process and its tracker hold together: every page once, divided among who maps it (PSS).

    The machine's own figure of what is available would count everybody else's coming and going as well.
    """
    mark = f"{MARK}={os.environ[MARK]}\0".encode()
    return sum(pss_bytes(name) for name in os.listdir("/proc") if name.isdigit() and has_mark(name, mark))


def has_mark(pid: str, mark: bytes) -> bool:
    """Whether a process was started by the same run."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read()
    except OSError:
        return False


def pss_bytes(pid: str) -> int:
    """0 for a process that has just gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:")), 0)
    except OSError:
        return 0


def main() -> None:
    """As many pairs as asked for."""
    tracker_class = importlib.import_module("gpu_tracker").Tracker
    memory = memoryview(bytearray(ARRAY_BYTES))
    rewrite(memory)
    untracked, tracked, held_ratios = [], [], []
    for _ in range(int(sys.argv[1])):
        untracked.append(rewrite(memory))
        held = held_bytes()
        tracker = tracker_class(disable_logs=True)
        tracker.start()
        tracked.append(rewrite(memory))
        held_ratios.append(held_bytes() / held)
        tracker.stop()
    ratios = [after / before for after, before in zip(tracked, untracked, strict=True)]
    print(json.dumps({"cpu_ratios": ratios, "held_ratios": held_ratios}))


main()
