"""Takes memory and gives it back; after that, a child does."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import MB, read_rss_bytes, touch


def work(megabytes: str, megabytes_of_child: str, seconds: str) -> Truth:
    """Each holds its own for so long, never both at once."""
    memory = touch(int(megabytes) * MB)
    first = read_rss_bytes()
    time.sleep(float(seconds))
    memory.close()
    command = [sys.executable, "-m", "end_to_end.workloads.resident", megabytes_of_child, seconds]
    child = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return {"most_at_once_bytes": max(first, read_rss_bytes() + child["held_bytes"])}


if __name__ == "__main__":
    perform(work)
