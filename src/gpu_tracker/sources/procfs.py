"""Linux: processes, their memory and the machine, read from `/proc` and the kernel's CPU clocks.

Built for a reading every few milliseconds: files stay open, a process that has not run since the last reading
costs one clock read, and new processes are found among the pids assigned since, not by walking `/proc`.
"""

from __future__ import annotations

import os
import time

from ..core.model import MachineReading, ProcessReading, SharingReading
from ..core.system import resource
from ..core.units import parse_kib_field
from . import IGNORED_ARGUMENTS, SAMPLER_NAME, WITNESS_NAME
from .files import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    from .activity import Activity

    Stat: TypeAlias = tuple[str, bytes, int, int, float, float, int, int, int, int]

NAME = "procfs"

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_FORKED_BUT_NO_EXEC = 0x40  # PF_FORKNOEXEC in the flags of /proc/PID/stat
_LOWEST_RECYCLED_PID = 300  # the kernel never assigns lower ones after a wrap
_MOST_PIDS_TO_TRY = 2000
# The newest ones, which processors may be making.
_MOST_UNBORN = 8
_SPARE_DESCRIPTORS = 32
_DEAD_STATES = (b"Z", b"X")
_PEAKS_PER_READING = 8
_LEAST_VIRTUAL_BYTES = 2**20  # of a program with its libraries
_NO_MEMORY = (0, 0, 0)

_IGNORED_ARGUMENTS = tuple(argument.encode() for argument in IGNORED_ARGUMENTS)


# ---- Parsers: bytes of a file → a value. Pure.


def parse_stat(text: bytes) -> Stat:
    """Name, state, parent, flags, own CPU, reaped CPU, threads, start tick, page faults and major faults of `/proc/PID/stat`.

    Major faults include those of children that were waited for.

    A name may contain spaces and parentheses, so the fields are counted from the last parenthesis.
    """
    opening, closing = text.index(b"("), text.rindex(b")")
    fields = text[closing + 2 :].split()
    return (
        text[opening + 1 : closing].decode("utf-8", "replace"),
        fields[0],
        int(fields[1]),
        int(fields[6]),
        (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND,
        (int(fields[13]) + int(fields[14])) / TICKS_PER_SECOND,
        int(fields[17]),
        int(fields[19]),
        int(fields[7]) + int(fields[9]),
        int(fields[9]) + int(fields[10]),
    )


def is_forked_copy(stat: Stat) -> bool:
    """Whether a process runs the program of the one that started it: it has not been replaced by another yet."""
    return bool(stat[3] & _FORKED_BUT_NO_EXEC)


def count_seconds(ticks: int) -> float:
    """The kernel's ticks, as in the start of a process."""
    return ticks / TICKS_PER_SECOND


def parse_statm(text: bytes) -> tuple[int, int, int]:
    """Resident bytes, how many of them are files and shared memory, and the size of the address space."""
    size, resident, shared, *_ = text.split(maxsplit=3)
    return int(resident) * _PAGE_BYTES, int(shared) * _PAGE_BYTES, int(size) * _PAGE_BYTES


def is_amid_exec(sizes: tuple[int, int, int]) -> bool:
    """Whether a process has a new memory, of which it has used nothing yet, not even its code: that is no reading of it."""
    _, file_bytes, virtual_bytes = sizes
    return not file_bytes and virtual_bytes < _LEAST_VIRTUAL_BYTES


def parse_sizes(status: bytes) -> tuple[int, int | None, int, int] | None:
    """High-water mark, resident bytes, file bytes and page tables of `/proc/PID/status`, all of one moment.

    A high-water mark next to an older resident size would look like a spike of private memory.
    """
    peak = parse_kib_field(status, b"\nVmHWM:")
    if peak is None:
        return None
    resident, anonymous = parse_kib_field(status, b"\nVmRSS:"), parse_kib_field(status, b"\nRssAnon:")
    page_tables = parse_kib_field(status, b"\nVmPTE:") or 0
    if resident is None or anonymous is None:  # kernels before 4.5
        return peak, None, 0, page_tables
    return peak, resident, max(0, resident - anonymous), page_tables


def parse_smaps_rollup(text: bytes) -> SharingReading:
    """Proportional and private memory; kernels before 5.4 do not report the anonymous part."""
    pss = parse_kib_field(text, b"\nPss:") or 0
    anonymous_pss = parse_kib_field(text, b"\nPss_Anon:")
    private = sum(parse_kib_field(text, field) or 0 for field in (b"\nPrivate_Clean:", b"\nPrivate_Dirty:"))
    return SharingReading(pss, pss if anonymous_pss is None else anonymous_pss, private)


def parse_machine_cpu(text: bytes) -> float:
    """CPU seconds of all processes: without idle, I/O wait and steal time."""
    user, nice, system, _idle, _iowait, irq, softirq = map(int, text.split(maxsplit=8)[1:8])
    return (user + nice + system + irq + softirq) / TICKS_PER_SECOND


def parse_memory_used(text: bytes) -> int:
    """Memory in use: what is not available without swapping."""
    total = parse_kib_field(text, b"MemTotal:") or 0
    available = parse_kib_field(text, b"MemAvailable:")
    if available is None:  # kernels before 3.14, and some emulations of /proc
        available = parse_kib_field(text, b"MemFree:") or 0
    return total - available


def parse_last_pid(text: bytes) -> int:
    """The newest pid of this namespace: the last field of `/proc/loadavg`."""
    return int(text.rsplit(maxsplit=1)[1])


def pids_since(previous: int, newest: int, highest: int) -> list[int] | None:
    """The pids assigned after `previous`; None if there are too many to try."""
    if newest >= previous:
        count, candidates = newest - previous, [range(previous + 1, newest + 1)]
    else:
        candidates = [range(previous + 1, highest), range(_LOWEST_RECYCLED_PID, newest + 1)]
        count = sum(map(len, candidates))
    if count > _MOST_PIDS_TO_TRY:
        return None
    return [pid for pids in candidates for pid in pids]


def is_over(state: bytes, threads: int) -> bool:
    """Whether a process has ended, though nobody may have waited for it yet: its other threads may outlive the first one."""
    return state in _DEAD_STATES and threads <= 1


# ---- Reading.


def is_ended(pid: int, *, proc: str = "/proc") -> bool:
    """The same, of a process by its number."""
    _, state, *_, threads, _, _, _ = parse_stat(read_file(f"{proc}/{pid}/stat"))
    return is_over(state, threads)


def _read_sizes_of_threads(directory: str) -> tuple[int, int, int]:
    """The memory of a process whose first thread has ended, which shows none."""
    for thread in os.listdir(f"{directory}/task"):
        sizes = parse_statm(read_file(f"{directory}/task/{thread}/statm"))
        if any(sizes):
            return sizes
    return _NO_MEMORY


class _StatusFile:
    """A small file of a process or of the machine, kept open while descriptors last.

    An open file stays bound to its process: once that has ended reading fails, even if the pid is reused.
    """

    __slots__ = ("_fd", "_path")

    def __init__(self, path: str, *, keep: bool) -> None:
        self._path = path
        self._fd = -1
        if keep:
            try:
                self._fd = os.open(path, os.O_RDONLY)
            except OSError:
                return  # it has just ended; reading will fail

    def read(self) -> bytes:
        return os.pread(self._fd, 1024, 0) if self._fd >= 0 else read_file(self._path)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


class _Member:
    """A process of the tree, with its open files."""

    __slots__ = (
        "clock_id",
        "clock_nanoseconds",
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
        # The CPU clock of another process (see clock_getcpuclockid) counts nanoseconds;
        # /proc/PID/stat counts hundredths of a second.
        self.clock_id = (~reading.pid << 3) | 2
        self.clock_nanoseconds = -1
        self.is_newborn = False
        self.is_zombie = False
        self.was_read = False
        self.peak_is_due = False

    def close(self) -> None:
        self.stat.close()
        self.statm.close()


class ProcessTree:
    """A process and all its descendants, including orphans.

    `adopter_pid` is a process that inherits the job's orphans (the command line does): its
    children belong to the tree, too, except `outsiders`, which it had before, and what they start.
    A root that `is_newborn` has no children yet.
    """

    def __init__(
        self,
        root_pid: int,
        *,
        is_newborn: bool = False,
        adopter_pid: int = 0,
        started_seconds: float | None = None,
        outsiders: Iterable[int] = (),
        proc: str = "/proc",
    ) -> None:
        self.root_pid = root_pid
        self.has_missed = False
        self.has_seen_end = False
        self._proc = proc
        self._adopter_pid = adopter_pid
        self._outsiders = set(outsiders)
        self._members: dict[int, _Member] = {}
        self._peaks_cursor = 0
        self._undecided: set[int] = set()
        # A child that was started after tracking began, but before this scan, was not running at the start.
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
        """Whether the root still runs; a zombie does not count."""
        root = self._members.get(self.root_pid)
        return root is not None and not root.is_zombie

    def find_pause(self) -> float | None:
        """A tree ends with its root."""
        return None

    def read(self) -> tuple[ProcessReading, ...]:
        """Read every living process of the tree."""
        self._find_new()
        # A copy, because members that have ended are dropped on the way.
        for pid, member in tuple(self._members.items()):
            try:
                if member.is_newborn and self._is_about_to_exec(member):
                    continue
                member.is_newborn = False
                self._refresh(member)
            except (OSError, ValueError, IndexError):
                # A process may end between any two reads.
                self._members.pop(pid).close()
        self._read_due_peaks()
        return tuple(member.reading for member in self._members.values() if member.was_read)

    def read_sharing(self, pid: int) -> SharingReading | None:
        """Shared memory. Costs about 11 ms per GB, during which the process's memory map is locked."""
        try:
            return parse_smaps_rollup(read_file(f"{self._proc}/{pid}/smaps_rollup"))
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Close all files."""
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
        self._outsiders = {pid for pid in self._outsiders if self._try_stat(pid) is not None}
        if candidates is None:
            self.has_missed = True
            self._scan(at_start=False)
        else:
            undecided, self._undecided = self._undecided, set()
            # Numbered, but not there yet, or no longer: the latter for good, the former at the next reading.
            unborn = [pid for pid in candidates[-_MOST_UNBORN:] if self._try_stat(pid) is None]
            self._admit_relatives([*undecided, *candidates], at_start=False)
            self._undecided.update(unborn)

    def _scan(self, *, at_start: bool) -> None:
        pids = sorted(int(name) for name in os.listdir(self._proc) if name.isdigit())
        self._admit_relatives(pids, at_start=at_start)

    def _admit_relatives(self, pids: Iterable[int], *, at_start: bool) -> None:
        strangers = {}
        for pid in pids:
            stat = None if pid in self._members else self._try_stat(pid)
            if stat is not None:
                strangers[pid] = stat
            elif pid not in self._members:
                self.has_missed = True
        # A child's pid may be lower than its parent's (pids wrap), so repeat until no process joins.
        joined = True
        while joined:
            joined = False
            for pid, stat in tuple(strangers.items()):
                parent = stat[2]
                is_adopted = parent == self._adopter_pid != 0 and pid not in self._outsiders
                if parent in self._members or is_adopted:
                    del strangers[pid]
                    joined = self._admit(pid, stat, at_start=at_start) or joined
                elif parent in self._outsiders and pid not in self._outsiders:
                    # Remembered, since the adopter inherits their orphans as well.
                    self._outsiders.add(pid)
                    joined = True

    def _try_stat(self, pid: int) -> Stat | None:
        try:
            return parse_stat(read_file(f"{self._proc}/{pid}/stat"))
        except (OSError, ValueError, IndexError):
            return None

    def _admit(self, pid: int, stat: Stat | None, *, at_start: bool) -> bool:
        if stat is None:
            return False
        name, state, parent, _, cpu, reaped, threads, start_tick, *_ = stat
        is_root = pid == self.root_pid
        at_start = at_start and (is_root or start_tick < self._first_tick)
        # The arguments of a process are gone with its first thread, but not its name.
        is_dead = state in _DEAD_STATES
        is_candidate = name not in (SAMPLER_NAME, WITNESS_NAME)
        is_of_the_job = is_root or (is_candidate and self._is_of_the_job(pid, has_arguments=not is_dead))
        if is_of_the_job is None:
            self._undecided.add(pid)
        if not is_of_the_job:
            return False
        is_copy = is_forked_copy(stat) and not is_root
        reading = ProcessReading(pid, parent, name, is_copy, threads, cpu, reaped, 0, 0, None, at_start)
        keep = len(self._members) < self._most_kept
        stat_file = _StatusFile(f"{self._proc}/{pid}/stat", keep=keep)
        statm_file = _StatusFile(f"{self._proc}/{pid}/statm", keep=keep)
        member = self._members[pid] = _Member(reading, start_tick, stat_file, statm_file)
        member.is_newborn = is_copy and not is_dead
        return True

    def _is_of_the_job(self, pid: int, *, has_arguments: bool = True) -> bool | None:
        """Whether it belongs to the job; None if that is not known yet."""
        try:
            # Threads have a directory in /proc, too, but an unlisted one.
            if parse_group_leader(read_file(f"{self._proc}/{pid}/status")) != pid:
                return False
            if not has_arguments:
                return True
            arguments = read_file(f"{self._proc}/{pid}/cmdline")
        except (OSError, ValueError):
            return False
        if not arguments:
            return None  # during an exec, or while it ends
        return not any(ignored in arguments for ignored in _IGNORED_ARGUMENTS)

    def _is_about_to_exec(self, member: _Member) -> bool:
        """Whether a new child, started by vfork, still runs in its parent's memory.

        It may become any program (even a sampler), and the memory it shows is its parent's. A forked copy never has
        exactly the same figures, because file mappings are not copied.
        """
        parent = self._members.get(member.reading.parent_pid)
        return parent is not None and member.statm.read() == parent.statm.read()

    def _refresh(self, member: _Member) -> None:
        """Read a process again, unless its CPU clock shows that it has not run."""
        try:
            clock = time.clock_gettime_ns(member.clock_id)
        except OSError:
            clock = -1  # ended, or in another pid namespace: the files decide
        if clock == member.clock_nanoseconds and clock >= 0:
            return
        name, state, parent, flags, cpu, reaped, threads, start_tick, faults, major_faults = parse_stat(
            member.stat.read()
        )
        if start_tick != member.start_tick:
            raise ProcessLookupError(member.reading.pid)  # the pid was reused
        old = member.reading
        is_forked_copy = bool(flags & _FORKED_BUT_NO_EXEC) and old.pid != self.root_pid
        if old.is_forked_copy and not is_forked_copy:
            is_of_the_job = self._is_of_the_job(old.pid)
            if is_of_the_job is None:
                return  # decided at the next reading
            if not is_of_the_job:
                raise ProcessLookupError(old.pid)
        member.is_zombie = is_over(state, threads)
        self.has_seen_end |= member.is_zombie and old.pid == self.root_pid
        # Without a page fault nothing became resident, so the high-water mark is unchanged.
        member.peak_is_due = not member.is_zombie and (
            member.peak_is_due or not member.was_read or faults != old.page_faults
        )
        member.was_read = True
        member.clock_nanoseconds = clock
        sizes = _NO_MEMORY if member.is_zombie else parse_statm(member.statm.read())
        if state in _DEAD_STATES and not member.is_zombie:
            sizes = _read_sizes_of_threads(f"{self._proc}/{old.pid}")
        rss, file, virtual = _NO_MEMORY if is_amid_exec(sizes) else sizes
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
            faults,
            major_faults,
            virtual,
            old.page_table_bytes,
        )

    def _read_due_peaks(self) -> None:
        """Read the high-water marks of processes that ran: all of a few, in turns if there are many."""
        due = [member for member in self._members.values() if member.peak_is_due and member.reading.rss_bytes]
        if len(due) > _PEAKS_PER_READING:
            start = self._peaks_cursor % len(due)
            self._peaks_cursor += _PEAKS_PER_READING
            due = (due[start:] + due[:start])[:_PEAKS_PER_READING]
        for member in due:
            member.peak_is_due = False
            try:
                sizes = parse_sizes(read_file(f"{self._proc}/{member.reading.pid}/status"))
            except (OSError, ValueError):
                continue
            if sizes is None:
                continue
            peak, rss, file, page_tables = sizes
            now = member.reading
            member.reading = now._replace(
                peak_rss_bytes=peak,
                rss_bytes=now.rss_bytes if rss is None else rss,
                file_bytes=now.file_bytes if rss is None else file,
                page_table_bytes=page_tables,
            )


class Machine:
    """CPU and memory of the whole machine, and of the job's own memory limit."""

    def __init__(
        self, read_limit_used: Callable[[], int | None] | None = None, *, proc: str = "/proc"
    ) -> None:
        # What is needed of them is at their beginning.
        self._stat = _StatusFile(f"{proc}/stat", keep=True)
        self._meminfo = _StatusFile(f"{proc}/meminfo", keep=True)
        self._read_limit_used = read_limit_used

    def __del__(self) -> None:
        self._stat.close()
        self._meminfo.close()

    def read(self) -> MachineReading:
        """CPU time, and memory in use."""
        return MachineReading(
            parse_machine_cpu(self._stat.read()),
            parse_memory_used(self._meminfo.read()),
            self._read_limit_used() if self._read_limit_used else None,
        )


def open_activity(pid: int) -> Activity:
    """What the processes of a tree do besides computing. Imported only for jobs that last."""
    from .activity import Activity
    from .allocation import find_cpu_quota

    quota = find_cpu_quota(pid)
    return Activity(quota.read_throttled_seconds if quota else None)


def parse_group_leader(status: bytes) -> int:
    """The process of a thread."""
    start = status.index(b"\nTgid:")
    return int(status[start + 6 :].split(maxsplit=1)[0])


def _to_tick(monotonic_seconds: float) -> int:
    """The unit of process start times: ticks since boot, including time suspended."""
    suspended = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
    return int((monotonic_seconds + suspended) * TICKS_PER_SECOND)
