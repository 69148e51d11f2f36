"""Waiting for as long as a quiet machine would need: one that is busy is slower for everybody, and gets longer."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

_START_SOMETHING = (sys.executable, "-I", "-S", "-c", "")
# How long it takes to start that, on a quiet machine of no great speed.
_START_SECONDS = 0.02


def polls(seconds: float, most_pause_seconds: float = 0.1) -> Iterator[None]:
    """Again and again, for that many seconds on a quiet machine; ever more rarely, since asking costs something too.

    The first half is measured by the clock. The second is as long as it takes to start a number of programs, one after
    the other, that a quiet machine starts in that time: the longer, the less of the machine is ours.
    """
    began = time.monotonic()
    while (waited := time.monotonic() - began) < seconds / 2:
        yield
        time.sleep(min(0.005 + waited / 10, most_pause_seconds))
    for _ in range(round(seconds / 2 / _START_SECONDS)):
        yield
        subprocess.run(_START_SOMETHING, check=True)
    yield


def wait_until(
    condition: Callable[[], object],
    what: str,
    seconds: float = 20.0,
    describe: Callable[[], object] = lambda: "",
) -> None:
    """Wait for something that comes soon unless something is broken; then it is described what is there instead."""
    if not any(condition() for _ in polls(seconds)):
        raise AssertionError(f"waited for {seconds} s and longer in vain until {what}\n{describe()}")
