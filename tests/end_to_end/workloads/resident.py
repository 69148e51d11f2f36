"""Holds memory for a while, may use some CPU meanwhile, and may stay when it has given it back."""

from __future__ import annotations

import time

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import MB, burn, read_rss_bytes, touch


def work(megabytes: str, seconds: str, cpu_seconds: str = "0", idle_seconds: str = "0") -> Truth:
    """Takes the memory, holds it for so long, gives it back."""
    memory = touch(int(megabytes) * MB)
    held = read_rss_bytes()
    time.sleep(float(seconds))
    burn(float(cpu_seconds))
    memory.close()
    time.sleep(float(idle_seconds))
    return {"held_bytes": held}


if __name__ == "__main__":
    perform(work)
