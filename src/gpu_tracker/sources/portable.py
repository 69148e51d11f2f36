"""Other systems: the same readings through psutil. Also for Linux kernels without a regular `/proc`."""

from __future__ import annotations

import os
import sys

from ..core.model import MachineReading, ProcessActivity, ProcessReading, SharingReading, Stalls
from . import IGNORED_ARGUMENTS, WITNESS_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import psutil

NAME = "psutil"


class ProcessTree:
    """A process and all its descendants, including orphans."""

    def __init__(
        self,
        root_pid: int,
        *,
        is_newborn: bool = False,
        adopter_pid: int = 0,
        started_seconds: float | None = None,  # noqa: ARG002 - start times are too coarse here
        outsiders: Iterable[int] = (),
    ) -> None:
        self.root_pid = root_pid
        self.has_missed = True  # what came and went is not reported
        self.has_seen_end = False
        self._adopter_pid = adopter_pid
        self._outsiders = set(outsiders)
        self._members: dict[int, psutil.Process] = {}
        self._known_pids: set[int] = set()
        self._pids_at_start: frozenset[int] = frozenset()
        self._find_new()
        if not is_newborn:
            self._pids_at_start = frozenset(self._members)

    def is_alive(self) -> bool:
        """Whether the root still runs; a zombie does not count, one that may not be read does."""
        import psutil

        root = self._members.get(self.root_pid)
        try:
            return root is not None and root.is_running() and root.status() != psutil.STATUS_ZOMBIE
        except psutil.AccessDenied:
            return True
        except psutil.Error:
            return False

    def find_pause(self) -> float | None:
        """A tree ends with its root."""
        return None

    def read(self) -> tuple[ProcessReading, ...]:
        """Read every living process of the tree."""
        import psutil

        self._find_new()
        self.has_seen_end |= self.root_pid in self._members and not self.is_alive()
        readings = []
        for pid, process in tuple(self._members.items()):
            try:
                readings.append(self._read_one(process))
            except psutil.AccessDenied:
                continue  # it runs, but is another user's
            except psutil.Error:
                del self._members[pid]
                self._known_pids.discard(pid)  # its number may be another's by now
        return tuple(readings)

    def read_sharing(self, pid: int) -> SharingReading | None:
        """Shared memory, where the system reports it (Linux only)."""
        import psutil

        try:
            memory = self._members[pid].memory_full_info()
        except (psutil.Error, KeyError):
            return None
        pss = getattr(memory, "pss", None)
        return None if pss is None else SharingReading(pss, pss, memory.uss)

    def close(self) -> None:
        """Forget all processes."""
        self._members.clear()

    def _find_new(self) -> None:
        """Take in what has begun since the last reading. Only that is looked at: who has a parent in the tree keeps being of it."""
        import psutil

        pids = set(psutil.pids())
        new = {pid: _find_parent(pid) for pid in pids - self._known_pids}
        self._known_pids = pids
        self._outsiders &= pids
        self._take_in(new)

    def _take_in(self, parents: dict[int, int | None]) -> None:
        # A child may have a lower number than its parent, so repeat until no process joins.
        while relatives := [pid for pid, parent in parents.items() if self._is_relative(pid, parent)]:
            for pid in relatives:
                if parents.pop(pid) in self._outsiders:
                    self._outsiders.add(pid)
                elif pid not in self._outsiders:
                    self._admit(pid)

    def _is_relative(self, pid: int, parent: int | None) -> bool:
        return (
            pid == self.root_pid
            or parent in self._members
            or parent in self._outsiders
            or parent == self._adopter_pid != 0
        )

    def _admit(self, pid: int) -> None:
        import psutil

        try:
            process = psutil.Process(pid)
        except psutil.Error:
            return  # it has ended
        if pid == self.root_pid or _is_of_the_job(process):
            self._members[pid] = process

    def _read_one(self, process: psutil.Process) -> ProcessReading:
        import psutil

        with process.oneshot():
            if not process.is_running():
                raise psutil.NoSuchProcess(process.pid)
            times = process.cpu_times()
            memory = process.memory_info()
            return ProcessReading(
                process.pid,
                process.ppid(),
                process.name(),
                # psutil does not report it; outside Linux fork without exec is rare.
                is_forked_copy=sys.platform == "linux" and process.pid != self.root_pid,
                n_threads=process.num_threads(),
                cpu_seconds=times.user + times.system,
                reaped_cpu_seconds=getattr(times, "children_user", 0.0)
                + getattr(times, "children_system", 0.0),
                rss_bytes=memory.rss,
                file_bytes=getattr(memory, "shared", 0),
                peak_rss_bytes=getattr(memory, "peak_wset", None),
                was_running_at_start=process.pid in self._pids_at_start,
            )


class Machine:
    """CPU and memory of the whole machine."""

    def __init__(self, read_limit_used: Callable[[], int | None] | None = None) -> None:
        self._read_limit_used = read_limit_used

    def read(self) -> MachineReading:
        """CPU time, and memory in use."""
        import psutil

        times = psutil.cpu_times()
        memory = psutil.virtual_memory()
        busy = sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))
        return MachineReading(
            busy,
            memory.total - memory.available,
            self._read_limit_used() if self._read_limit_used else None,
        )


class Activity:
    """I/O and context switches, where the system reports them."""

    def read(self, readings: Sequence[ProcessReading]) -> tuple[ProcessActivity, ...]:
        """Read the processes of the latest reading of the tree."""
        return tuple(map(_read_activity, readings))

    def read_stalls(self) -> Stalls:
        """Only Linux counts them."""
        return Stalls()


def open_activity(_pid: int) -> Activity:
    """What the processes of a tree do besides computing."""
    return Activity()


def _read_activity(reading: ProcessReading) -> ProcessActivity:
    import psutil

    activity = ProcessActivity(reading.pid, reading.was_running_at_start)
    try:
        process = psutil.Process(reading.pid)
        activity = activity._replace(switches=sum(process.num_ctx_switches()))
        # Not on macOS.
        io = process.io_counters() if hasattr(process, "io_counters") else None
    except psutil.Error:
        return activity
    return (
        activity if io is None else activity._replace(read_bytes=io.read_bytes, written_bytes=io.write_bytes)
    )


def _find_parent(pid: int) -> int | None:
    import psutil

    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return None  # it has ended


def _is_of_the_job(process: psutil.Process) -> bool:
    import psutil

    try:
        if process.name() == WITNESS_NAME:
            return False
        arguments = " ".join(process.cmdline())
    except psutil.Error:
        return process.pid != os.getpid()
    return process.pid != os.getpid() and not any(ignored in arguments for ignored in IGNORED_ARGUMENTS)
