"""Writes, in itself and in a child that it waits for, and crowds one core with threads: activity.py FILE BYTES THREADS SECONDS.

Prints what getrusage has counted, and how long its threads have waited.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from pathlib import Path

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import burn

_BLOCK_BYTES = 512


def work(path: str, n_bytes: str, n_threads: str, cpu_seconds: str) -> Truth:
    """The same amount by this process and by a child."""
    before, before_waiting = _count(), _read_waiting()
    _write(f"{path}.own", int(n_bytes))
    pid = os.fork()
    if pid == 0:
        _write(f"{path}.child", int(n_bytes))
        os._exit(0)
    os.waitpid(pid, 0)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    have_burned, may_end = threading.Barrier(int(n_threads) + 1), threading.Event()
    threads = [
        threading.Thread(target=_crowd, args=(float(cpu_seconds), have_burned, may_end))
        for _ in range(int(n_threads))
    ]
    for thread in threads:
        thread.start()
    have_burned.wait()
    time.sleep(1.5)  # so that a reading meets the threads before they end
    waited = _read_waiting() - before_waiting
    may_end.set()
    for thread in threads:
        thread.join()
    written, switches = (now - then for now, then in zip(_count(), before, strict=True))
    return {"written_bytes": written, "switches": switches, "waited_seconds": waited}


def _write(path: str, n_bytes: int) -> None:
    with Path(path).open("wb") as file:
        file.write(os.urandom(n_bytes))
        file.flush()
        os.fsync(file.fileno())


def _crowd(cpu_seconds: float, have_burned: threading.Barrier, may_end: threading.Event) -> None:
    burn(cpu_seconds)
    have_burned.wait()
    may_end.wait()


def _read_waiting() -> float:
    """What the living threads of this process have waited for a core until now."""
    tasks = Path("/proc/self/task").iterdir()
    return sum(int((task / "schedstat").read_text(encoding="ascii").split()[1]) for task in tasks) / 1e9


def _count() -> tuple[int, int]:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    written = sum(usage.ru_oublock for usage in usages) * _BLOCK_BYTES
    return written, sum(usage.ru_nvcsw + usage.ru_nivcsw for usage in usages)


if __name__ == "__main__":
    perform(work)
