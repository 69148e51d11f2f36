"""What a workload can say about itself: the kernel's own meters, and loads of a known size."""

from __future__ import annotations

import mmap
import os
import resource
import time
import zlib
from pathlib import Path
from typing import NamedTuple

MB = 10**6

_BLOCK = bytes(256 * 1024)
_KIB = 1024


class CpuTime(NamedTuple):
    """CPU seconds of this process, and of the children it has waited for."""

    own: float
    children: float

    def since(self, before: CpuTime) -> CpuTime:
        """What was used in between."""
        return CpuTime(self.own - before.own, self.children - before.children)


def read_cpu_time() -> CpuTime:
    """What getrusage says, for all threads."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return CpuTime(own.ru_utime + own.ru_stime, children.ru_utime + children.ru_stime)


def read_peak_bytes() -> int:
    """The most that was ever resident of this program.

    Not by getrusage, which goes on counting from what the process was before it became this program: a copy of the tests.
    """
    return _read_field("/proc/self/status", "VmHWM:")


def read_rss_bytes() -> int:
    """What is resident of this process now."""
    return _read_field("/proc/self/status", "VmRSS:")


def read_n_threads(pid: int) -> int:
    """The threads of a process, as the kernel counts them."""
    return len(os.listdir(f"/proc/{pid}/task"))


def describe_sharing(main_pid: int, other_pids: list[int]) -> dict[str, int]:
    """The memory of a tree, every shared page counted once, and what of it only one process maps.

    Outsiders are not known to map any of it, but for the libraries of the interpreter.
    """
    pss, private = {}, {}
    for pid in (main_pid, *other_pids):
        path = f"/proc/{pid}/smaps_rollup"
        pss[pid] = _read_field(path, "Pss:")
        private[pid] = _read_field(path, "Private_Clean:") + _read_field(path, "Private_Dirty:")
    return {
        "pss_bytes": sum(pss.values()),
        "private_bytes": sum(private.values()),
        "descendants_private_bytes": sum(private[pid] for pid in other_pids),
    }


def burn(cpu_seconds: float) -> None:
    """Use that much CPU in this thread, however long it takes; other threads can run meanwhile."""
    end = time.thread_time() + cpu_seconds
    while time.thread_time() < end:
        zlib.crc32(_BLOCK)


def touch(n_bytes: int) -> mmap.mmap:
    """Private memory, resident at once."""
    return mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)


def _read_field(path: str, field: str) -> int:
    for line in Path(path).read_text(encoding="ascii").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * _KIB
    raise LookupError(f"no {field} in {path}")
