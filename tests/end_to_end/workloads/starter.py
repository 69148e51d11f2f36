"""Has a large heap and starts many small programs, the first ones at once."""

from __future__ import annotations

import subprocess

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import MB, touch

_heap: list[object] = []


def prepare(megabytes: str, _: str) -> None:
    """What the programs never see."""
    _heap.append(touch(int(megabytes) * MB))


def work(_: str, n_programs: str) -> Truth:
    """One after the other, each gone in a moment."""
    for _number in range(int(n_programs)):
        subprocess.run(["true"], check=True)
    return {}


if __name__ == "__main__":
    perform(work, prepare)
