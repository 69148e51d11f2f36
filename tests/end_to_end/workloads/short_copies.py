"""Forks children one after the other that share its heap, live for a moment in a region, and write nothing."""

from __future__ import annotations

import os
import time

import gpu_tracker as gput
from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import MB, read_rss_bytes

_heap: list[bytearray] = []


def work(megabytes: str, n_children: str, seconds: str) -> Truth:
    """What one process holds, which is all that there is."""
    _heap.append(bytearray(b"\x01") * (int(megabytes) * MB))
    time.sleep(0.5)
    for _ in range(int(n_children)):
        pid = os.fork()
        if pid == 0:
            with gput.region("child"):
                time.sleep(float(seconds))
            os._exit(0)
        os.waitpid(pid, 0)
    return {"held_bytes": read_rss_bytes()}


if __name__ == "__main__":
    perform(work)
