"""Runs something small, then takes a lot of memory, and ends a moment later."""

from __future__ import annotations

import subprocess
import time

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import MB, touch


def work(megabytes: str, seconds: str) -> Truth:
    """That much, for so long; the end gives it back."""
    subprocess.run(["true"], check=True)
    _held.append(touch(int(megabytes) * MB))
    time.sleep(float(seconds))
    return {}


_held: list[object] = []

if __name__ == "__main__":
    perform(work)
