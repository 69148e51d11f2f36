"""The shared file of a process: it writes its open regions and their counters, the sampler reads them.

Both map it into memory, so entering a region costs no system call, and a killed process loses nothing. One file
per process, in the mailbox. Times are nanoseconds of the monotonic clock.

A header, a table of threads, the regions with the counters of their finished calls, and five columns with a number
per region that change while calls are open: each number there is written at once, so it is never read half-written.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
from itertools import takewhile

from ..core.system import monotonic_ns, posix
from ..core.values import NamedTuple
from .mailbox import REGIONS_SUFFIX, check_size, name_file
from .mishaps import is_ours
from .rises import RAM_FRESH_NS

MOST_REGIONS = 1000
# The path of every region is written: without an end to it they would be as long as there are regions.
_MOST_DEPTH = 100
MOST_THREADS = 64
_NAME_BYTES = 118
_MOST_COUNTED = 10_000  # of the regions that are refused
_WAS_SHORTENED = 0x8000  # in the length of a name
_MAGIC = b"gpu-trk5"

_HEADER = struct.Struct("<8sIi")  # magic, pid, number of regions
_N_REGIONS_OFFSET = 12
_HIGH_WATER_OFFSET = 16
_PROCESS_CPU_OFFSET = 24
_BEGAN_OFFSET = 32
_N_REFUSED_OFFSET = 40
_PROGRAM_OFFSET = 48
_RAM_READ_OFFSET = 56
_THREADS_OFFSET = 64
# Thread id, the region that it is in, its CPU time up to which regions have it; other regions from which its code was resumed.
MOST_DRIVERS = 4
_THREAD = struct.Struct(f"<{3 + MOST_DRIVERS}q")
_RECORDS_OFFSET = _THREADS_OFFSET + (MOST_THREADS + 1) * _THREAD.size
_RECORD_BYTES = 256
_NAMES = struct.Struct(f"<iH{_NAME_BYTES}s")  # parent, length of the name, name
_NUMBERS_OFFSET = 128
NUMBERS = struct.Struct("<QQQQdQQQqqqqQQQ")
TIMES = struct.Struct("<QQQQdQQ")
"""The first of them, which change at every call."""
_FIRST_NS = struct.Struct("<Q")
_FIRST_NS_OFFSET = _NUMBERS_OFFSET + TIMES.size
_LAST_NS = struct.Struct("<Q")
_LAST_NS_OFFSET = TIMES.size - _LAST_NS.size
_COLUMNS_OFFSET = _RECORDS_OFFSET + MOST_REGIONS * _RECORD_BYTES
_N_COLUMNS = 5
FILE_BYTES = _COLUMNS_OFFSET + _N_COLUMNS * MOST_REGIONS * 8

# The file as numbers of eight bytes: where they are. A column is indexed by the number of the region.
PROCESS_CPU = _PROCESS_CPU_OFFSET // 8
RAM_READ = _RAM_READ_OFFSET // 8
THREADS, THREAD_WORDS = _THREADS_OFFSET // 8, _THREAD.size // 8
OPEN, CPU, OWN_CPU, SHARED_CPU, SWITCHES = (
    _COLUMNS_OFFSET // 8 - 1 + n * MOST_REGIONS for n in range(_N_COLUMNS)
)

# A mapped file keeps a descriptor, whose number the program may close and use for another file.
_WITHOUT_DESCRIPTOR: dict[str, bool] = {"trackfd": False} if sys.version_info >= (3, 13) else {}
_KEEPS_DESCRIPTOR = not _WITHOUT_DESCRIPTOR
if sys.platform == "win32":
    _WITHOUT_DESCRIPTOR, _KEEPS_DESCRIPTOR = {}, False

FIRST_BEYOND_STANDARD = 3
NOTHING_FOLLOWS_NS = 1 << 62
"""When memory was read last, of a process whose calls are not followed any more: what they do from then on does not count."""
UNKNOWN_SHARE_NS = 1 << 60
"""In the column of shared CPU time: any part of a region's may be other code's, and any part of theirs its own."""

# How many calls are open, and the sum of the times of their entries (milliseconds since the file began), in one number.
_ONE_CALL = 1 << 43
_NS_PER_MS = 1_000_000


def count_open(since_began_ns: int) -> int:
    """What a call that was entered then adds to the column of open calls."""
    return _ONE_CALL + since_began_ns // _NS_PER_MS


def _split_open(counted: int, since_began_ns: int) -> tuple[int, int]:
    """How many calls are open, and for how many nanoseconds altogether."""
    calls, entered_ms = divmod(counted, _ONE_CALL)
    return calls, max(0, calls * since_began_ns - entered_ms * _NS_PER_MS)


class Numbers(NamedTuple):
    """The counters of one region, in the order of the file. -1: unknown."""

    calls: int
    wall_ns: int
    shortest_ns: int
    longest_ns: int
    squared_seconds: float
    own_wall_ns: int
    last_ns: int
    first_ns: int
    entry_ram_bytes: int
    exit_ram_bytes: int
    peak_ram_bytes: int
    """The kernel's high-water mark, if it rose during a call."""
    inside_ram_bytes: int = -1
    """The largest exact peak of the calls of this region and the regions inside."""
    exact_calls: int = 0
    """How many calls of this region have an exact peak."""
    has_own_doubts: int = 0
    """1 if code of another region may have gone on inside a call, or for longer than it, and nobody told."""
    exceeded_ns: int = 0
    """Since when the high-water mark is above the peak, raised while no call ran; 0 if it is not."""
    cpu_ns: int = 0
    """This and the following are kept in the columns, and include open calls."""
    own_cpu_ns: int = 0
    shared_cpu_ns: int = 0
    """The part of `cpu_ns` that may be other code's; more than that if any part of other code's may be this region's."""
    switches: int = 0
    """How often its code was suspended, or went on."""
    open_calls: int = 0
    open_wall_ns: int = 0
    is_ram_unread: int = 0
    """1 if a call is open, or has ended, of which the process has not read its memory since."""


FINISHED = Numbers._fields[: -_N_COLUMNS - 2]
"""What is counted when a call ends."""


class ThreadEntry(NamedTuple):
    """A thread that has used regions, as the process last wrote it."""

    tid: int
    region: int
    """0 outside of all regions."""
    cpu_ns: int
    drivers: tuple[int, ...] = ()
    """Other regions in whose middle the code of that one goes on."""


class SharedFileWriter:
    """The job's side. Not thread-safe: the caller holds a lock."""

    def __init__(self, mailbox: str) -> None:
        self.pid = posix.getpid()
        self.path = name_file(mailbox, REGIONS_SUFFIX)
        self._file = map_new(self.path, FILE_BYTES, FILE_BYTES)
        self.memory = self._file.memory
        self.words = memoryview(self.memory).cast("q")
        self._n_regions = self._high_water_bytes = 0
        self._depths = {0: 0}
        self._refused: set[int] = set()
        self.began_ns = monotonic_ns()
        struct.pack_into("<q", self.memory, _BEGAN_OFFSET, self.began_ns)
        struct.pack_into("<Q", self.memory, _PROGRAM_OFFSET, _find_program(self.pid))
        _HEADER.pack_into(self.memory, 0, _MAGIC, self.pid, 0)

    def let_go(self) -> None:
        """Let go of the file at once, with its descriptor, whatever still refers to this."""
        self.words.release()
        self._file.let_go()

    def add_region(self, parent: int, name: str) -> int:
        """The number of a new region (counted from 1), or 0 if there are too many, or too many around it."""
        encoded = name.encode("utf-8", "backslashreplace")
        length = len(encoded)
        depth = self._depths.get(parent, 0) + 1
        is_full = self._n_regions >= MOST_REGIONS or depth > _MOST_DEPTH
        if is_full or (length > _NAME_BYTES and sys.is_finalizing()):
            self._refuse(hash((parent, name)))
            return 0
        if length > _NAME_BYTES:
            encoded = _shorten(encoded)
            length = len(encoded) | _WAS_SHORTENED
        _NAMES.pack_into(
            self.memory, _RECORDS_OFFSET + self._n_regions * _RECORD_BYTES, parent, length, encoded
        )
        self._n_regions += 1
        self._depths[self._n_regions] = depth
        struct.pack_into("<i", self.memory, _N_REGIONS_OFFSET, self._n_regions)
        return self._n_regions

    def _refuse(self, region: int) -> None:
        """Count a region for which there is no room."""
        if region not in self._refused and len(self._refused) < _MOST_COUNTED:
            self._refused.add(region)
            struct.pack_into("<q", self.memory, _N_REFUSED_OFFSET, len(self._refused))

    def keep_high_water(self, high_water_bytes: int) -> None:
        """Keep a high-water mark that is about to be reset, if it is the largest so far."""
        if high_water_bytes > self._high_water_bytes:
            self._high_water_bytes = high_water_bytes
            struct.pack_into("<q", self.memory, _HIGH_WATER_OFFSET, high_water_bytes)


def _shorten(encoded: bytes) -> bytes:
    """A long name as its begin and a digest of all of it, so that two are different, and the same in every process."""
    from hashlib import blake2b

    end = f"…{blake2b(encoded, digest_size=8).hexdigest()}".encode()
    return encoded[: _NAME_BYTES - len(end)].decode("utf-8", "ignore").encode() + end


class MappedFile:
    """A file in memory.

    Up to Python 3.12 that keeps a descriptor, whose number the program may have closed, and used for a file of its own: then it is never
    closed, or that file would be.
    """

    __slots__ = ("_fd", "_identity", "memory")

    def __init__(self, fd: int, n_bytes: int) -> None:
        self._identity = identify(fd)
        self._fd = -1
        if _KEEPS_DESCRIPTOR:
            self._fd = posix.dup(fd)  # the number that is about to be taken
            posix.close(self._fd)
        self.memory = mmap.mmap(fd, n_bytes, **_WITHOUT_DESCRIPTOR)

    def let_go(self) -> None:
        """Close it, with its descriptor."""
        if self._is_anothers():
            _never_closed.append(self.memory)
        else:
            self.memory.close()
        self._fd = -1

    def __del__(self) -> None:
        try:
            if self._is_anothers():
                _never_closed.append(self.memory)
        except Exception:  # noqa: BLE001, S110 - the interpreter may be ending, or there was no room for it
            pass

    def _is_anothers(self) -> bool:
        return self._fd >= 0 and identify(self._fd) != self._identity


_never_closed: list[mmap.mmap] = []


def identify(fd: int) -> tuple[int, int] | None:
    """Which file a descriptor is of; None if it is closed."""
    try:
        status = posix.fstat(fd)
    except OSError as error:
        if not is_ours(error):
            raise
        return None
    return status.st_dev, status.st_ino


def map_new(path: str, n_bytes: int, n_reserved_bytes: int) -> MappedFile:
    """Create a file and map it; the rest of its room is reserved later. OSError if there is no room."""
    check_size(n_bytes)
    standard = _take_standard()
    try:
        fd = posix.open(path, posix.O_CREAT | posix.O_EXCL | posix.O_RDWR, 0o600)
        has_failed = False
        try:
            posix.truncate(fd, n_bytes)
            reserve(fd, 0, n_reserved_bytes)
            return MappedFile(fd, n_bytes)
        except OSError:
            has_failed = True
            raise
        finally:
            posix.close(fd)
            if has_failed:  # only now: Windows deletes no file that is open
                posix.unlink(path)
    finally:
        for fd in standard:
            posix.close(fd)


def _take_standard() -> list[int]:
    """Those of the standard streams that are closed: what is printed there would be written into our file."""
    taken: list[int] = []
    if sys.platform == "win32":
        return taken  # files have handles of their own
    try:
        while (fd := posix.open("/", posix.O_RDONLY)) < FIRST_BEYOND_STANDARD:  # which there is in every jail
            taken.append(fd)
        posix.close(fd)
    except OSError:
        tuple(map(posix.close, taken))
        raise
    return taken


def reserve(fd: int, offset: int, n_bytes: int) -> None:
    """Take the room now: writing to a mapped page for which there is none later would kill the job with SIGBUS."""
    check_size(offset + n_bytes)
    if hasattr(posix, "posix_fallocate"):
        posix.posix_fallocate(fd, offset, n_bytes)


def _find_program(pid: int) -> int:
    """What changes when a process goes on as another program: where the kernel has put it. 0 if that cannot be read."""
    if sys.platform == "win32":
        return 0  # no process becomes another program
    try:
        fd = posix.open(f"/proc/{pid}/auxv", posix.O_RDONLY)
        try:
            content = posix.read(fd, 4096)
        finally:
            posix.close(fd)
        total: int = sum(word for (word,) in struct.iter_unpack("<Q", content))
        return total & (1 << 64) - 1
    except (OSError, struct.error) as error:
        if not is_ours(error):
            raise
        return 0


def _find_last(numbers: Numbers, now_ns: int) -> int:
    """When a call of a region ran last."""
    return now_ns if numbers.open_calls else numbers.last_ns


def find_numbers_offset(number: int) -> int:
    """The offset of a region's counters."""
    return _RECORDS_OFFSET + (number - 1) * _RECORD_BYTES + _NUMBERS_OFFSET


class SharedFileReader:
    """The sampler's side."""

    def __init__(self, path: str) -> None:
        fd = posix.open(path, posix.O_RDONLY | posix.O_NOFOLLOW)
        try:
            if os.fstat(fd).st_size != FILE_BYTES:
                raise ValueError(path)
            self._memory = mmap.mmap(fd, FILE_BYTES, access=mmap.ACCESS_READ)
        finally:
            posix.close(fd)
        magic, self.pid, _ = _HEADER.unpack_from(self._memory, 0)
        if magic != _MAGIC:
            self._memory.close()
            raise ValueError(path)
        self._chains: dict[int, tuple[int, ...]] = {}
        self._paths: dict[int, tuple[str, ...]] = {}
        self.long_names: set[str] = set()
        """Those that were shortened, of the paths found so far."""

    def read_active(self) -> dict[int, int]:
        """The open regions, each with its number of calls; those around them that a parent process is in have none."""
        active: dict[int, int] = {}
        (open_calls,) = self._read_columns(OPEN)
        for index, counted in enumerate(open_calls):
            if counted >= _ONE_CALL:
                active[index + 1] = counted // _ONE_CALL
        for number in tuple(active):
            for step in self.find_chain(number):
                if step not in active and not self._was_entered(step):
                    active[step] = 0
        return active

    def list_left(self, since_ns: int) -> list[int]:
        """The regions that were left since then."""
        (count,) = struct.unpack_from("<i", self._memory, _N_REGIONS_OFFSET)
        numbers = range(1, min(count, MOST_REGIONS) + 1)
        return [number for number in numbers if self._read_last(number) >= since_ns]

    def read_all(self, now_ns: int, since_ns: int = 0) -> dict[int, Numbers]:
        """The counters of every region that is open, or was left since then."""
        since_began_ns = now_ns - struct.unpack_from("<q", self._memory, _BEGAN_OFFSET)[0]
        columns = self._read_columns(CPU, OWN_CPU, SHARED_CPU, SWITCHES, OPEN)
        known = {
            number: Numbers(
                *NUMBERS.unpack_from(self._memory, find_numbers_offset(number))
                + counted[:-1]
                + _split_open(counted[-1], since_began_ns)
            )
            for number, counted in enumerate(zip(*columns, strict=True), start=1)
            if not since_ns or counted[-1] >= _ONE_CALL or self._read_last(number) >= since_ns
        }
        # After the counters: a call that ends meanwhile is read in between.
        (ram_read_ns,) = struct.unpack_from("<q", self._memory, _RAM_READ_OFFSET)
        fresh_until_ns = ram_read_ns + RAM_FRESH_NS
        return {
            number: numbers._replace(is_ram_unread=int(_find_last(numbers, now_ns) > fresh_until_ns))
            for number, numbers in known.items()
        }

    def read_refused(self) -> int:
        """How many regions were refused because there were too many; counted up to ten thousand."""
        (n_refused,) = struct.unpack_from("<q", self._memory, _N_REFUSED_OFFSET)
        return min(max(0, int(n_refused)), _MOST_COUNTED)

    def was_replaced(self) -> bool:
        """Whether the process, of our own pid namespace, goes on as another program."""
        (program,) = struct.unpack_from("<Q", self._memory, _PROGRAM_OFFSET)
        return program != 0 and _find_program(self.pid) not in (0, program)

    def read_threads(self) -> tuple[int, list[ThreadEntry]]:
        """The CPU time of the process up to which regions have it, and the threads that have used regions."""
        process_ns, *_ = struct.unpack_from("<q", self._memory, _PROCESS_CPU_OFFSET)
        content = self._memory[_THREADS_OFFSET:_RECORDS_OFFSET]
        return process_ns, [
            ThreadEntry(tid, region, cpu_ns, tuple(takewhile(bool, drivers)))
            for tid, region, cpu_ns, *drivers in _THREAD.iter_unpack(content)
            if tid
        ]

    def read_high_water(self) -> int:
        """The largest high-water mark kept; 0 if it was never reset."""
        (high_water_bytes,) = struct.unpack_from("<q", self._memory, _HIGH_WATER_OFFSET)
        return int(high_water_bytes)

    def find_path(self, number: int) -> tuple[str, ...]:
        """The names from the outermost region to this one."""
        if number not in self._paths:
            self._paths[number] = tuple(
                self._read_names(step)[1] for step in reversed(self.find_chain(number))
            )
        return self._paths[number]

    def close(self) -> None:
        """Unmap the file."""
        self._memory.close()

    def find_chain(self, number: int) -> tuple[int, ...]:
        """A region and those around it."""
        chain = self._chains.get(number)
        if chain is None:
            steps: list[int] = []
            step = number
            while 0 < step <= MOST_REGIONS and step not in steps:
                steps.append(step)
                step, _ = self._read_names(step)
            chain = self._chains[number] = tuple(steps)
        return chain

    def _read_columns(self, *columns: int) -> list[tuple[int, ...]]:
        """Equally long, although the process may add regions meanwhile."""
        (count,) = struct.unpack_from("<i", self._memory, _N_REGIONS_OFFSET)
        numbers = f"<{max(0, min(count, MOST_REGIONS))}q"
        return [struct.unpack_from(numbers, self._memory, (column + 1) * 8) for column in columns]

    def _was_entered(self, number: int) -> bool:
        offset = _RECORDS_OFFSET + (number - 1) * _RECORD_BYTES + _FIRST_NS_OFFSET
        return bool(_FIRST_NS.unpack_from(self._memory, offset)[0])

    def _read_last(self, number: int) -> int:
        (last_ns,) = _LAST_NS.unpack_from(self._memory, find_numbers_offset(number) + _LAST_NS_OFFSET)
        return int(last_ns)

    def _read_names(self, number: int) -> tuple[int, str]:
        parent, length, name = _NAMES.unpack_from(
            self._memory, _RECORDS_OFFSET + (number - 1) * _RECORD_BYTES
        )
        text = name[: length & ~_WAS_SHORTENED].decode("utf-8", "replace")
        if length & _WAS_SHORTENED:
            self.long_names.add(text)
        return parent, text
