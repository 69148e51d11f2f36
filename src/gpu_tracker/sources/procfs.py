"""Linux: processes, their memory and the machine, read straight from `/proc` and the kernel's CPU clocks.

Built for a look every few milliseconds: files stay open, a process that has not run since the last look
costs one clock read, and new processes are found by the pids handed out since, not by walking `/proc`.
"""

from __future__ import annotations

import os
import resource
import time

from ..core.model import MachineReading, ProcessReading, SharingReading
from . import IGNORED_ARGUMENTS
from .files import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NAME = "procfs"

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_FORKED_BUT_NO_EXEC = 0x40  # PF_FORKNOEXEC in the flags of /proc/PID/stat
_LOWEST_RECYCLED_PID = 300  # the kernel never hands out lower ones after a wrap
_MOST_PIDS_TO_TRY = 2000
_SPARE_DESCRIPTORS = 32
_DEAD_STATES = (b"Z", b"X")
_PEAKS_READ_PER_LOOK = 8

_IGNORED_ARGUMENTS = tuple(argument.encode() for argument in IGNORED_ARGUMENTS)


# ---- Parsers: bytes of a file → a value. Pure.


def parse_stat(text: bytes) -> tuple[str, bytes, int, int, float, float, int, int, int]:
    """Name, state, parent, flags, own CPU, reaped CPU, threads, start tick and page faults of `/proc/PID/stat`.

    A name may hold spaces and brackets, so the fields are counted from the last bracket.
    """
    opening, closing = text.index(b"("), text.rindex(b")")
    fields = text[closing + 2 :].split()
    return (
        text[opening + 1 : closing].decode("utf-8", "replace"),
        fields[0],
        int(fields[1]),
        int(fields[6]),
        (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND,
        (int(fields[13]) + int(fields[14])) / _TICKS_PER_SECOND,
        int(fields[17]),
        int(fields[19]),
        int(fields[7]) + int(fields[9]),
    )


def parse_statm(text: bytes) -> tuple[int, int]:
    """Resident bytes, and the part of them that is files and shared memory."""
    _, resident, shared, *_ = text.split(maxsplit=3)
    return int(resident) * _PAGE_BYTES, int(shared) * _PAGE_BYTES


def parse_kib_field(text: bytes, field: bytes) -> int | None:
    """Bytes of a `Field:   123 kB` line; None where there is no such line (a zombie has none)."""
    start = text.find(field)
    if start < 0:
        return None
    return int(text[start + len(field) :].split(maxsplit=1)[0]) * 1024


def parse_sizes(status: bytes) -> tuple[int, int | None, int] | None:
    """The high-water mark of `/proc/PID/status`, and what was resident at that same moment, files apart.

    A mark beside a resident size of a moment before would pass for a spike of memory that nobody else maps.
    """
    peak = parse_kib_field(status, b"\nVmHWM:")
    if peak is None:
        return None
    resident, anonymous = parse_kib_field(status, b"\nVmRSS:"), parse_kib_field(status, b"\nRssAnon:")
    if resident is None or anonymous is None:  # kernels before 4.5
        return peak, None, 0
    return peak, resident, max(0, resident - anonymous)


def parse_smaps_rollup(text: bytes) -> SharingReading:
    """Proportional and private memory; kernels before 5.4 do not tell the anonymous part apart."""
    pss = parse_kib_field(text, b"\nPss:") or 0
    anonymous_pss = parse_kib_field(text, b"\nPss_Anon:")
    private = sum(parse_kib_field(text, field) or 0 for field in (b"\nPrivate_Clean:", b"\nPrivate_Dirty:"))
    return SharingReading(pss, pss if anonymous_pss is None else anonymous_pss, private)


def parse_machine_cpu(text: bytes) -> float:
    """CPU seconds spent by anybody: all but idle, waiting for disks, and what a hypervisor took."""
    user, nice, system, _idle, _iowait, irq, softirq = map(int, text.split(maxsplit=8)[1:8])
    return (user + nice + system + irq + softirq) / _TICKS_PER_SECOND


def parse_memory_used(text: bytes) -> int:
    """Memory that could not be had without swapping."""
    total = parse_kib_field(text, b"MemTotal:") or 0
    available = parse_kib_field(text, b"MemAvailable:")
    if available is None:  # kernels before 3.14, and some emulations of /proc
        available = parse_kib_field(text, b"MemFree:") or 0
    return total - available


def parse_last_pid(text: bytes) -> int:
    """The newest pid of this namespace, last word of `/proc/loadavg`."""
    return int(text.rsplit(maxsplit=1)[1])


def pids_since(previous: int, newest: int, highest: int) -> Iterable[int] | None:
    """The pids handed out after `previous`; None when they are too many to try one by one."""
    if newest >= previous:
        count, candidates = newest - previous, [range(previous + 1, newest + 1)]
    else:
        candidates = [range(previous + 1, highest), range(_LOWEST_RECYCLED_PID, newest + 1)]
        count = sum(map(len, candidates))
    if count > _MOST_PIDS_TO_TRY:
        return None
    return [pid for pids in candidates for pid in pids]


# ---- Reading.


class _StatusFile:
    """A small file of a process, kept open as long as there are descriptors.

    An open one stays that process's own: after its end reading fails, whoever has the number then.
    """

    __slots__ = ("_fd", "_path")

    def __init__(self, path: str, *, keep: bool) -> None:
        self._path = path
        self._fd = -1
        if keep:
            try:
                self._fd = os.open(path, os.O_RDONLY)
            except OSError:
                return  # it has just ended; reading will tell

    def read(self) -> bytes:
        return os.pread(self._fd, 1024, 0) if self._fd >= 0 else read_file(self._path)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


class _Member:
    """A process of the tree, with its files kept open."""

    __slots__ = (
        "clock_id",
        "clock_nanoseconds",
        "faults",
        "is_newborn",
        "is_zombie",
        "peak_is_due",
        "reading",
        "start_tick",
        "stat",
        "statm",
        "was_read",
    )

    def __init__(
        self, reading: ProcessReading, start_tick: int, stat: _StatusFile, statm: _StatusFile
    ) -> None:
        self.reading = reading
        self.start_tick = start_tick
        self.stat = stat
        self.statm = statm
        # The CPU clock of another process (see clock_getcpuclockid): nanoseconds, where
        # /proc/PID/stat counts in hundredths of a second.
        self.clock_id = (~reading.pid << 3) | 2
        self.clock_nanoseconds = -1
        self.is_newborn = False
        self.is_zombie = False
        self.was_read = False
        self.peak_is_due = False
        self.faults = -1

    def close(self) -> None:
        self.stat.close()
        self.statm.close()


class ProcessTree:
    """A process and all its descendants, also those whose parents have gone.

    `adopter_pid` is a process that inherits the job's orphans (the command line is one): its
    children belong to the tree too. A root that `is_newborn` cannot have children older than itself.
    """

    def __init__(
        self,
        root_pid: int,
        *,
        is_newborn: bool = False,
        adopter_pid: int = 0,
        started_seconds: float | None = None,
        proc: str = "/proc",
    ) -> None:
        self.root_pid = root_pid
        self._proc = proc
        self._adopter_pid = adopter_pid
        self._members: dict[int, _Member] = {}
        self._peaks_cursor = 0
        self._undecided: set[int] = set()
        # A child that was born since the tracking started, but before this first look, is none that was there before.
        self._first_tick = _to_tick(time.monotonic() if started_seconds is None else started_seconds)
        self._loadavg_fd = os.open(f"{proc}/loadavg", os.O_RDONLY)
        self._highest_pid = int(read_file(f"{proc}/sys/kernel/pid_max"))
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most_kept = max(0, descriptors - _SPARE_DESCRIPTORS) // 2
        self._last_pid = root_pid
        self._admit(root_pid, self._try_stat(root_pid), at_start=not is_newborn)
        if not is_newborn:
            self._last_pid = parse_last_pid(os.pread(self._loadavg_fd, 128, 0))
            self._scan(at_start=True)

    def is_alive(self) -> bool:
        """Whether the root still runs; a zombie does not."""
        root = self._members.get(self.root_pid)
        return root is not None and not root.is_zombie

    def read(self) -> tuple[ProcessReading, ...]:
        """Look at every living process of the tree."""
        self._find_new()
        # A copy: members that have gone are dropped on the way.
        for pid, member in tuple(self._members.items()):
            try:
                if member.is_newborn and self._is_about_to_exec(member):
                    continue
                member.is_newborn = False
                self._refresh(member)
            except (OSError, ValueError, IndexError):
                # It may vanish between any two reads; that is normal.
                self._members.pop(pid).close()
        self._read_due_peaks()
        return tuple(member.reading for member in self._members.values() if member.was_read)

    def read_sharing(self, pid: int) -> SharingReading | None:
        """What is shared; costs about 11 ms per GB and holds the process's memory lock meanwhile."""
        try:
            return parse_smaps_rollup(read_file(f"{self._proc}/{pid}/smaps_rollup"))
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Give the descriptors back."""
        for member in self._members.values():
            member.close()
        self._members.clear()
        os.close(self._loadavg_fd)

    def _find_new(self) -> None:
        newest = parse_last_pid(os.pread(self._loadavg_fd, 128, 0))
        if newest == self._last_pid and not self._undecided:
            return
        candidates = pids_since(self._last_pid, newest, self._highest_pid)
        self._last_pid = newest
        if candidates is None:
            self._scan(at_start=False)
        else:
            undecided, self._undecided = self._undecided, set()
            self._admit_relatives([*undecided, *candidates], at_start=False)

    def _scan(self, *, at_start: bool) -> None:
        pids = sorted(int(name) for name in os.listdir(self._proc) if name.isdigit())
        self._admit_relatives(pids, at_start=at_start)

    def _admit_relatives(self, pids: Iterable[int], *, at_start: bool) -> None:
        strangers = {}
        for pid in pids:
            stat = None if pid in self._members else self._try_stat(pid)
            if stat is not None:
                strangers[pid] = stat
        # A child's pid may be lower than its parent's (pids wrap), so go round until nobody joins.
        joined = True
        while joined:
            joined = False
            for pid, stat in tuple(strangers.items()):
                parent = stat[2]
                if parent in self._members or (parent == self._adopter_pid != 0):
                    del strangers[pid]
                    joined = self._admit(pid, stat, at_start=at_start) or joined

    def _try_stat(self, pid: int) -> tuple[str, bytes, int, int, float, float, int, int, int] | None:
        try:
            return parse_stat(read_file(f"{self._proc}/{pid}/stat"))
        except (OSError, ValueError, IndexError):
            return None

    def _admit(
        self,
        pid: int,
        stat: tuple[str, bytes, int, int, float, float, int, int, int] | None,
        *,
        at_start: bool,
    ) -> bool:
        if stat is None:
            return False
        name, state, parent, flags, cpu, reaped, threads, start_tick, _ = stat
        is_root = pid == self.root_pid
        at_start = at_start and (is_root or start_tick < self._first_tick)
        # A zombie's time is its parent's as soon as it is waited for, and it has no arguments left
        # that would tell whose it was.
        is_of_the_job = is_root or (state not in _DEAD_STATES and self._is_of_the_job(pid))
        if is_of_the_job is None:
            self._undecided.add(pid)
        if not is_of_the_job:
            return False
        is_forked_copy = bool(flags & _FORKED_BUT_NO_EXEC) and not is_root
        reading = ProcessReading(
            pid, parent, name, is_forked_copy, threads, cpu, reaped, 0, 0, None, at_start
        )
        keep = len(self._members) < self._most_kept
        stat_file = _StatusFile(f"{self._proc}/{pid}/stat", keep=keep)
        statm_file = _StatusFile(f"{self._proc}/{pid}/statm", keep=keep)
        member = self._members[pid] = _Member(reading, start_tick, stat_file, statm_file)
        member.is_newborn = is_forked_copy
        return True

    def _is_of_the_job(self, pid: int) -> bool | None:
        """Whether it is; None if that cannot be told yet."""
        try:
            # Threads have a directory in /proc too, only not a listed one.
            if parse_group_leader(read_file(f"{self._proc}/{pid}/status")) != pid:
                return False
            arguments = read_file(f"{self._proc}/{pid}/cmdline")
        except (OSError, ValueError):
            return False
        if not arguments:
            return None  # in the middle of an exec, or of its end
        return not any(ignored in arguments for ignored in _IGNORED_ARGUMENTS)

    def _is_about_to_exec(self, member: _Member) -> bool:
        """Whether a new child, started by vfork, still runs in its parent's memory.

        It may be about to become anything (one of our own samplers, say), and what it seems to hold is its parent's. A
        copy made by fork never has just the same figures: what is mapped from files is not copied.
        """
        parent = self._members.get(member.reading.parent_pid)
        return parent is not None and member.statm.read() == parent.statm.read()

    def _refresh(self, member: _Member) -> None:
        """Read a process again, unless its CPU clock says that it has not run since."""
        try:
            clock = time.clock_gettime_ns(member.clock_id)
        except OSError:
            clock = -1  # no such clock for a foreign pid namespace, or gone: the files decide
        if clock == member.clock_nanoseconds and clock >= 0:
            return
        name, state, parent, flags, cpu, reaped, threads, start_tick, faults = parse_stat(member.stat.read())
        if start_tick != member.start_tick:
            raise ProcessLookupError(member.reading.pid)  # another process has the number by now
        old = member.reading
        is_forked_copy = bool(flags & _FORKED_BUT_NO_EXEC) and old.pid != self.root_pid
        if old.is_forked_copy and not is_forked_copy:
            is_of_the_job = self._is_of_the_job(old.pid)
            if is_of_the_job is None:
                return  # once more at the next look
            if not is_of_the_job:
                raise ProcessLookupError(old.pid)
        member.is_zombie = state in _DEAD_STATES
        member.was_read = True
        # Without a page fault nothing became resident, so the high-water mark stands as it was read.
        member.peak_is_due = not member.is_zombie and (member.peak_is_due or faults != member.faults)
        member.faults = faults
        member.clock_nanoseconds = clock
        rss, file = (0, 0) if member.is_zombie else parse_statm(member.statm.read())
        member.reading = ProcessReading(
            old.pid,
            parent,
            name,
            is_forked_copy,
            0 if member.is_zombie else threads,
            clock / 1e9 if clock >= 0 else cpu,
            reaped,
            rss,
            file,
            old.peak_rss_bytes,
            old.was_running_at_start,
        )

    def _read_due_peaks(self) -> None:
        """High-water marks of those that ran: of all while they are few, in turns when many."""
        due = [member for member in self._members.values() if member.peak_is_due]
        if len(due) > _PEAKS_READ_PER_LOOK:
            start = self._peaks_cursor % len(due)
            self._peaks_cursor += _PEAKS_READ_PER_LOOK
            due = (due[start:] + due[:start])[:_PEAKS_READ_PER_LOOK]
        for member in due:
            member.peak_is_due = False
            try:
                sizes = parse_sizes(read_file(f"{self._proc}/{member.reading.pid}/status"))
            except (OSError, ValueError):
                continue
            if sizes is None:
                continue
            peak, rss, file = sizes
            member.reading = member.reading._replace(peak_rss_bytes=peak)
            if rss is not None:
                member.reading = member.reading._replace(rss_bytes=rss, file_bytes=file)


class Machine:
    """CPU and memory of the whole machine, and of the job's own memory limit."""

    def __init__(
        self, read_limit_used: Callable[[], int | None] | None = None, *, proc: str = "/proc"
    ) -> None:
        self._proc = proc
        self._read_limit_used = read_limit_used

    def read(self) -> MachineReading:
        """Look once."""
        return MachineReading(
            parse_machine_cpu(read_file(f"{self._proc}/stat")),
            parse_memory_used(read_file(f"{self._proc}/meminfo")),
            self._read_limit_used() if self._read_limit_used else None,
        )


def parse_group_leader(status: bytes) -> int:
    """The process that a thread belongs to."""
    start = status.index(b"\nTgid:")
    return int(status[start + 6 :].split(maxsplit=1)[0])


def _to_tick(monotonic_seconds: float) -> int:
    """The unit of a process's birth: ticks since boot, while suspended too."""
    suspended = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
    return int((monotonic_seconds + suspended) * _TICKS_PER_SECOND)
