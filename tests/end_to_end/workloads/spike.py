"""Holds a lot of memory for a moment, too short to be met, itself or in a child; either way it has waited for children."""

from __future__ import annotations

import os
import time

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import MB, burn, touch


def work(who: str, megabytes: str) -> Truth:
    """`who` is main or child."""
    size = int(megabytes) * MB
    pid = os.fork()
    if pid == 0:
        burn(0.1)
        if who == "child":
            touch(size).close()
        os._exit(0)
    os.waitpid(pid, 0)
    if who == "main":
        touch(size).close()
    time.sleep(0.6)
    return {"size_bytes": size}


if __name__ == "__main__":
    perform(work)
