"""Had a lot of memory once, before anybody looked."""

from __future__ import annotations

import time

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import MB, read_rss_bytes, touch


def prepare(megabytes: str) -> None:
    """The past."""
    touch(int(megabytes) * MB).close()


def work(megabytes: str) -> Truth:
    """The present."""
    time.sleep(0.5)
    return {"held_bytes": read_rss_bytes()}


if __name__ == "__main__":
    perform(work, prepare)
