"""Holds memory while a child takes some too, for a moment, and then stays on without it."""

from __future__ import annotations

import json
import subprocess
import sys

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import MB, read_rss_bytes, touch


def work(megabytes: str, megabytes_of_child: str, seconds: str) -> Truth:
    """The child holds its own for so long, and is there for half a second more."""
    memory = touch(int(megabytes) * MB)
    held = read_rss_bytes()
    command = [sys.executable, "-m", "end_to_end.workloads.resident"]
    command += [megabytes_of_child, seconds, "0", "0.5"]
    child = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    memory.close()
    # Its own getrusage would not do: a process starts with the high-water mark of whoever started it.
    return {"held_bytes": held, "held_by_child_bytes": child["held_bytes"]}


if __name__ == "__main__":
    perform(work)
