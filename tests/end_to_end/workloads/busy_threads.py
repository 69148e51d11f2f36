"""Keeps several threads busy at once."""

from __future__ import annotations

import threading

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import burn


def work(n_threads: str, cpu_seconds: str) -> Truth:
    """Every thread uses that much CPU."""
    threads = [threading.Thread(target=burn, args=(float(cpu_seconds),)) for _ in range(int(n_threads))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {}


if __name__ == "__main__":
    perform(work)
