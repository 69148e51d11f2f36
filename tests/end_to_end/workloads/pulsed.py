"""Is busy for a quarter of a second, idle for three, and again."""

from __future__ import annotations

import time

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import burn


def work(periods: str) -> Truth:
    """In step with whoever reads once a second."""
    for _ in range(int(periods)):
        burn(0.25)
        time.sleep(0.75)
    return {}


if __name__ == "__main__":
    perform(work)
