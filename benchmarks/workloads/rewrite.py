"""Rewrite 1 GB of memory repeatedly, untracked and tracked in turn.

A tracker that forks keeps the old pages alive, and the kernel must copy every page that is written. All pages are
touched before anything is timed, because the cost of the first touch varies.
"""

import importlib
import json
import os
import sys
import time

ARRAY_BYTES = 1_000_000_000
CHUNK = b"x" * 1_000_000
TAG_VARIABLE = "GPU_TRACKER_BENCHMARK"


def rewrite(memory: memoryview) -> float:
    """CPU seconds to write all of it once."""
    cpu = time.process_time()
    for start in range(0, ARRAY_BYTES, len(CHUNK)):
        memory[start : start + len(CHUNK)] = CHUNK
    return time.process_time() - cpu


def held_bytes() -> int:
    """PSS of this process and its tracker. The machine's available memory would include other processes."""
    tag = f"{TAG_VARIABLE}={os.environ[TAG_VARIABLE]}\0".encode()
    return sum(pss_bytes(name) for name in os.listdir("/proc") if name.isdigit() and has_tag(name, tag))


def has_tag(pid: str, tag: bytes) -> bool:
    """Whether a process belongs to the same run."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return tag in file.read()
    except OSError:
        return False


def pss_bytes(pid: str) -> int:
    """PSS of a process; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:")), 0)
    except OSError:
        return 0


def main() -> None:
    """Measure the given number of pairs."""
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
