"""Has many children that live for a moment, one after the other."""

from __future__ import annotations

import os

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import burn


def work(n_children: str, cpu_seconds: str) -> Truth:
    """Every child uses that much CPU and is waited for."""
    for _ in range(int(n_children)):
        pid = os.fork()
        if pid == 0:
            burn(float(cpu_seconds))
            os._exit(0)
        os.waitpid(pid, 0)
    return {}


if __name__ == "__main__":
    perform(work)
