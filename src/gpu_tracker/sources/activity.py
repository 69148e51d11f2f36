"""Linux: I/O and scheduling of the processes of a tree, for a reading about once a second.

A process that has not run since the last reading costs nothing, and threads are read in turns where there are many.
"""

from __future__ import annotations

import os

from ..core.model import ProcessActivity, Stalls
from .files import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.model import ProcessReading

_MOST_THREADS_PER_READING = 128


# ---- Parsers. Pure.


def parse_io(text: bytes) -> tuple[int, int]:
    """Bytes read from and written to storage, by the process and the children it has waited for."""
    fields = dict(line.split(b": ") for line in text.splitlines())
    return int(fields[b"read_bytes"]), int(fields[b"write_bytes"])


def parse_schedstat(text: bytes) -> tuple[float, int]:
    """Seconds that a thread waited for a core, and how often it was put on one."""
    _, waiting_ns, switches = text.split()
    return int(waiting_ns) / 1e9, int(switches)


def parse_pressure(text: bytes) -> dict[str, float]:
    """Seconds of `some` and `full` pressure."""
    lines = (line.split() for line in text.decode().splitlines())
    return {words[0]: int(words[-1].removeprefix("total=")) / 1e6 for words in lines if words}


# ---- Reading.


class _Process:
    """What is known of one process."""

    def __init__(self) -> None:
        self.cpu_seconds = -1.0
        self.activity = ProcessActivity(0)
        self.threads: dict[str, tuple[float, int]] = {}
        self.ended_seconds, self.ended_switches = 0.0, 0

    def take_threads(self, threads: dict[str, tuple[float, int]], living: set[str]) -> None:
        """Keep what ended threads have counted."""
        for tid in self.threads.keys() - living:
            seconds, switches = self.threads.pop(tid)
            self.ended_seconds += seconds
            self.ended_switches += switches
        self.threads.update(threads)


class Activity:
    """Reads what the processes of one tree have done so far, and how long the machine kept them waiting."""

    def __init__(
        self, read_throttled: Callable[[], float | None] | None = None, *, proc: str = "/proc"
    ) -> None:
        self._proc = proc
        self._read_throttled = read_throttled
        self._processes: dict[int, _Process] = {}
        self._cursor = 0

    def read(self, readings: Sequence[ProcessReading]) -> tuple[ProcessActivity, ...]:
        """Read the processes of the latest reading of the tree."""
        before, self._processes = self._processes, {}
        left = _MOST_THREADS_PER_READING
        activities = []
        for reading in readings:
            process = before.get(reading.pid)
            if process is None or reading.cpu_seconds < process.cpu_seconds:  # the pid was reused
                process = _Process()
            if reading.cpu_seconds != process.cpu_seconds:
                left -= self._refresh(process, reading, max(1, left))
            self._processes[reading.pid] = process
            activities.append(process.activity)
        return tuple(activities)

    def _refresh(self, process: _Process, reading: ProcessReading, most_threads: int) -> int:
        """Read one process; how many of its threads were read."""
        process.cpu_seconds = reading.cpu_seconds
        directory = f"{self._proc}/{reading.pid}"
        read, written = process.activity.read_bytes, process.activity.written_bytes
        waiting, switches = process.activity.waiting_seconds, process.activity.switches
        n_read = 0
        try:
            read, written = parse_io(read_file(f"{directory}/io"))
        except (OSError, ValueError, KeyError):
            pass  # another user's, or it has just ended
        try:
            n_read = self._read_threads(process, directory, most_threads)
            known = process.threads.values()
            waiting = process.ended_seconds + sum(seconds for seconds, _ in known)
            switches = process.ended_switches + sum(count for _, count in known)
        except (OSError, ValueError):
            pass  # it has just ended, or the kernel does not count
        process.activity = ProcessActivity(
            pid=reading.pid,
            was_running_at_start=reading.was_running_at_start,
            read_bytes=read,
            written_bytes=written,
            major_faults=reading.major_faults,
            switches=switches,
            waiting_seconds=waiting,
        )
        return n_read

    def _read_threads(self, process: _Process, directory: str, most: int) -> int:
        tids = os.listdir(f"{directory}/task")
        some = tids
        if len(tids) > most:
            start = self._cursor % len(tids)
            self._cursor += most
            some = (tids[start:] + tids[:start])[:most]
        threads = {}
        for tid in some:
            try:
                threads[tid] = parse_schedstat(read_file(f"{directory}/task/{tid}/schedstat"))
            except FileNotFoundError:
                continue  # the thread has just ended
        process.take_threads(threads, set(tids))
        return len(some)

    def read_stalls(self) -> Stalls:
        """How long the machine, and the job's own group, were kept waiting."""
        cpu, memory, io = map(self._read_pressure, ("cpu", "memory", "io"))
        return Stalls(
            cpu_seconds=cpu.get("some"),
            memory_seconds=memory.get("some"),
            io_seconds=io.get("some"),
            memory_full_seconds=memory.get("full"),
            io_full_seconds=io.get("full"),
            throttled_seconds=self._read_throttled() if self._read_throttled else None,
        )

    def _read_pressure(self, resource: str) -> dict[str, float]:
        try:
            return parse_pressure(read_file(f"{self._proc}/pressure/{resource}"))
        except (OSError, ValueError):
            return {}  # an older kernel, or pressure is not counted
