"""Keeps one core busy without a pause."""

from __future__ import annotations

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import burn


def work(cpu_seconds: str) -> Truth:
    """That many seconds of CPU."""
    burn(float(cpu_seconds))
    return {}


if __name__ == "__main__":
    perform(work)
