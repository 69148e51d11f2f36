"""First many threads, then, when these have gone, children with some threads each."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import read_n_threads

_SECONDS = 0.7
_CHILD = """
import sys, threading
leave = threading.Event()
for _ in range(int(sys.argv[1]) - 1):
    threading.Thread(target=leave.wait).start()
print("ready", flush=True)
sys.stdin.read()
leave.set()
"""


def work(n_threads: str, n_children: str, n_threads_of_each: str) -> Truth:
    """The counts are without the first thread of this process, and with that of a child."""
    main = _be_many(int(n_threads))
    children = [
        subprocess.Popen(
            [sys.executable, "-c", _CHILD, n_threads_of_each],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(int(n_children))
    ]
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()
    descendants = sum(read_n_threads(child.pid) for child in children)
    beside = read_n_threads(os.getpid())
    time.sleep(_SECONDS)
    for child in children:
        child.communicate()
    return {
        "main_threads": main,
        "descendants_threads": descendants,
        "combined_threads": max(main, beside + descendants),
    }


def _be_many(n_threads: int) -> int:
    leave = threading.Event()
    threads = [threading.Thread(target=leave.wait) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    count = read_n_threads(os.getpid())
    time.sleep(_SECONDS)
    leave.set()
    for thread in threads:
        thread.join()
    return count


if __name__ == "__main__":
    perform(work)
