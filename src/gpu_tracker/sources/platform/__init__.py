"""System calls of an operating system: exact peaks, CPU clocks of other processes, exit notification."""

from __future__ import annotations

import os
import sys
import time

from ...core.model import TreeCounters
from ...core.units import parse_kib_field
from ..files import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource import struct_rusage

_MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024
_CPU_CLOCK_OF_A_PROCESS = 2
_BLOCK_BYTES = 512


def find_peak_bytes(usage: struct_rusage) -> int:
    """The peak resident set of a resource usage."""
    return usage.ru_maxrss * _MAXRSS_BYTES


def find_counters(*usages: struct_rusage) -> TreeCounters:
    """I/O, faults and switches of resource usages together. Only Linux counts bytes, in blocks of one size."""
    is_linux = sys.platform == "linux"
    return TreeCounters(
        read_bytes=sum(usage.ru_inblock for usage in usages) * _BLOCK_BYTES if is_linux else None,
        written_bytes=sum(usage.ru_oublock for usage in usages) * _BLOCK_BYTES if is_linux else None,
        major_faults=sum(usage.ru_majflt for usage in usages),
        switches=sum(usage.ru_nvcsw + usage.ru_nivcsw for usage in usages),
    )


def read_own_peak_bytes() -> int:
    """The kernel's peak resident set of this process."""
    try:
        peak_bytes = parse_kib_field(read_file("/proc/self/status"), b"\nVmHWM:")
    except OSError:
        peak_bytes = None
    if peak_bytes is not None:
        return peak_bytes
    import resource

    # This goes on counting from what the process was before it became this program.
    return find_peak_bytes(resource.getrusage(resource.RUSAGE_SELF))


def read_cpu_clock(pid: int) -> float | None:
    """CPU seconds of another process, with nanosecond resolution; None where the kernel has no such clock."""
    try:
        return time.clock_gettime_ns((~pid << 3) | _CPU_CLOCK_OF_A_PROCESS) / 1e9
    except OSError:
        return None


def take_name(name: str) -> None:
    """Be called so in `ps` and by other trackers, where the system has such names."""
    try:
        with open("/proc/self/comm", "wb", buffering=0) as file:
            file.write(name.encode())
    except OSError:
        pass


def open_exit(pid: int) -> int:
    """A descriptor that becomes readable when the process ends; -1 where the kernel has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1
