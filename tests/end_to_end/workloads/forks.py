"""Fills its heap, then forks children that share it, and may write to a part of it."""

from __future__ import annotations

import os
import time

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import MB, describe_sharing

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

_heap: list[bytearray] = []


def prepare(when: str, n_blocks: str, megabytes: str, *_: str) -> None:
    """The heap of a program that has been running for a while."""
    if when == "before":
        _fill_heap(int(n_blocks), int(megabytes))


def work(
    when: str, n_blocks: str, megabytes: str, n_children: str, dirty_megabytes: str, seconds: str
) -> Truth:
    """`when` the heap is filled: "before" the start of the tracker, or "inside" its block."""
    if when == "inside":
        _fill_heap(int(n_blocks), int(megabytes))
    gate_out, gate_in = os.pipe()
    news_out, news_in = os.pipe()
    pids = []
    for _ in range(int(n_children)):
        pid = os.fork()
        if pid == 0:
            os.close(gate_in)
            _write_to_heap(int(dirty_megabytes) * MB)
            os.write(news_in, b".")
            os.read(gate_out, 1)
            os._exit(0)
        pids.append(pid)
    for _ in pids:
        os.read(news_out, 1)
    truth: Truth = dict(describe_sharing(os.getpid(), pids))
    time.sleep(float(seconds))
    os.close(gate_in)
    for pid in pids:
        os.waitpid(pid, 0)
    return truth


def _fill_heap(n_blocks: int, megabytes: int) -> None:
    _heap.extend(bytearray(b"\x01") * (megabytes * MB // n_blocks) for _ in range(n_blocks))


def _write_to_heap(n_bytes: int) -> None:
    """A byte of every page: it is copied then."""
    for block in _heap:
        for offset in range(0, min(n_bytes, len(block)), _PAGE_BYTES):
            block[offset] = 2
        n_bytes -= min(n_bytes, len(block))


if __name__ == "__main__":
    perform(work, prepare)
