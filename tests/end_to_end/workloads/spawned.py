"""Has a child of multiprocessing's "spawn" kind, which brings a helper of Python's own along."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import MB, burn, read_peak_bytes, touch

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def work(megabytes: str, seconds: str, cpu_seconds: str) -> Truth:
    """The child holds that much memory for so long, and uses that much CPU."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=_live, args=(there, megabytes, seconds, cpu_seconds))
    child.start()
    truth: Truth = here.recv()
    child.join()
    helper = resource_tracker._resource_tracker._pid  # type: ignore[attr-defined]
    return {**truth, "has_helper": helper is not None}


def _live(connection: Connection, megabytes: str, seconds: str, cpu_seconds: str) -> None:
    memory = touch(int(megabytes) * MB)
    time.sleep(float(seconds))
    burn(float(cpu_seconds))
    memory.close()
    connection.send({"child_peak_bytes": read_peak_bytes()})


if __name__ == "__main__":
    perform(work)
