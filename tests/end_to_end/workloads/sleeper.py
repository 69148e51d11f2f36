"""Sleeps, and tells by a stopwatch of its own how long that took."""

from __future__ import annotations

import time

from end_to_end.workloads.stage import Truth, perform


def work(seconds: str) -> Truth:
    """That long, or a little longer."""
    time.sleep(float(seconds))
    return {}


if __name__ == "__main__":
    perform(work)
