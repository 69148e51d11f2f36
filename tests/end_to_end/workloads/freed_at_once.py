"""Frees a lot of memory as soon as the tracked block begins."""

from __future__ import annotations

import mmap

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import MB, read_rss_bytes, touch

_held: list[mmap.mmap] = []


def prepare(megabytes: str) -> None:
    """Before the block."""
    _held.append(touch(int(megabytes) * MB))


def work(_megabytes: str) -> Truth:
    """What it holds when the block begins."""
    held_bytes = read_rss_bytes()
    _held.pop().close()
    return {"held_bytes": held_bytes}


if __name__ == "__main__":
    perform(work, prepare)
