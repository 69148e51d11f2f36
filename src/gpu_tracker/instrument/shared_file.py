"""The shared file of a process: it writes its open regions and their counters, the sampler reads them.

Both map it into memory, so entering a region costs no system call, and a killed process loses nothing. One file
per process, in the mailbox. Times are nanoseconds of the monotonic clock.
"""

from __future__ import annotations

import mmap
import os
import struct

from ..core.values import NamedTuple
from .mailbox import REGIONS_SUFFIX, name_file

MOST_REGIONS = 1000
MOST_SLOTS = 64
_NAME_BYTES = 118
_MOST_COUNTED = 10_000  # of the regions that are refused
_WAS_SHORTENED = 0x8000  # in the length of a name
_MAGIC = b"gpu-trk2"

_HEADER = struct.Struct("<8sIi")  # magic, pid, number of regions
_N_REGIONS_OFFSET = 12
_HIGH_WATER_OFFSET = 16
_N_REFUSED_OFFSET = 40
_SLOTS_OFFSET = 64
_RECORDS_OFFSET = _SLOTS_OFFSET + 4 * MOST_SLOTS
_RECORD_BYTES = 256
_NAMES = struct.Struct(f"<iH{_NAME_BYTES}s")  # parent, length of the name, name
_NUMBERS_OFFSET = 128
NUMBERS = struct.Struct("<QQQQdQQQqqqQQqQ")
FILE_BYTES = _RECORDS_OFFSET + MOST_REGIONS * _RECORD_BYTES


class Numbers(NamedTuple):
    """The counters of one region, in the order of the file. -1: unknown."""

    calls: int
    wall_ns: int
    shortest_ns: int
    longest_ns: int
    squared_seconds: float
    own_wall_ns: int
    cpu_ns: int
    own_cpu_ns: int
    entry_ram_bytes: int
    exit_ram_bytes: int
    peak_ram_bytes: int
    """The kernel's high-water mark, if it rose during a call."""
    first_ns: int
    last_ns: int
    inside_ram_bytes: int = -1
    """The largest exact peak of the calls of this region and the regions inside."""
    exact_calls: int = 0
    """How many calls of this region have an exact peak."""


class SharedFileWriter:
    """The job's side. Not thread-safe: the caller holds a lock."""

    def __init__(self, mailbox: str) -> None:
        self.pid = os.getpid()
        self.path = name_file(mailbox, REGIONS_SUFFIX)
        self.memory = map_new(self.path, FILE_BYTES, FILE_BYTES)
        self.slots = memoryview(self.memory)[_SLOTS_OFFSET:_RECORDS_OFFSET].cast("i")
        self._n_regions = self._high_water_bytes = 0
        self._refused: set[int] = set()
        _HEADER.pack_into(self.memory, 0, _MAGIC, self.pid, 0)

    def add_region(self, parent: int, name: str) -> int:
        """The number of a new region (counted from 1), or 0 if there are too many."""
        if self._n_regions >= MOST_REGIONS:
            self._refuse(hash((parent, name)))
            return 0
        encoded = name.encode("utf-8", "replace")
        length = len(encoded)
        if length > _NAME_BYTES:
            encoded = _shorten(encoded)
            length = len(encoded) | _WAS_SHORTENED
        _NAMES.pack_into(
            self.memory, _RECORDS_OFFSET + self._n_regions * _RECORD_BYTES, parent, length, encoded
        )
        self._n_regions += 1
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


def map_new(path: str, n_bytes: int, n_reserved_bytes: int) -> mmap.mmap:
    """Create a file and map it; the rest of its room is reserved later. OSError if there is no room."""
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        os.truncate(fd, n_bytes)
        reserve(fd, 0, n_reserved_bytes)
        return mmap.mmap(fd, n_bytes)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(fd)


def reserve(fd: int, offset: int, n_bytes: int) -> None:
    """Take the room now: writing to a mapped page for which there is none later would kill the job with SIGBUS."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, offset, n_bytes)


def find_numbers_offset(number: int) -> int:
    """The offset of a region's counters."""
    return _RECORDS_OFFSET + (number - 1) * _RECORD_BYTES + _NUMBERS_OFFSET


class SharedFileReader:
    """The sampler's side."""

    def __init__(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            if os.fstat(fd).st_size != FILE_BYTES:
                raise ValueError(path)
            self._memory = mmap.mmap(fd, FILE_BYTES, prot=mmap.PROT_READ)
        finally:
            os.close(fd)
        magic, self.pid, _ = _HEADER.unpack_from(self._memory, 0)
        if magic != _MAGIC:
            self._memory.close()
            raise ValueError(path)
        self._slots = struct.Struct(f"<{MOST_SLOTS}i")
        self._chains: dict[int, tuple[int, ...]] = {}
        self._paths: dict[int, tuple[str, ...]] = {}
        self.long_names: set[str] = set()
        """Those that were shortened, of the paths found so far."""

    def read_active(self) -> dict[int, int]:
        """The open regions, including those around them, each with its number of threads."""
        active: dict[int, int] = {}
        for number in self._slots.unpack_from(self._memory, _SLOTS_OFFSET):
            for step in self._find_chain(number) if number else ():
                active[step] = active.get(step, 0) + 1
        return active

    def read_all(self) -> dict[int, Numbers]:
        """The counters of every region."""
        (count,) = struct.unpack_from("<i", self._memory, _N_REGIONS_OFFSET)
        return {
            number: Numbers(*NUMBERS.unpack_from(self._memory, find_numbers_offset(number)))
            for number in range(1, min(count, MOST_REGIONS) + 1)
        }

    def read_refused(self) -> int:
        """How many regions were refused because there were too many; counted up to ten thousand."""
        (n_refused,) = struct.unpack_from("<q", self._memory, _N_REFUSED_OFFSET)
        return min(max(0, int(n_refused)), _MOST_COUNTED)

    def read_high_water(self) -> int:
        """The largest high-water mark kept; 0 if it was never reset."""
        (high_water_bytes,) = struct.unpack_from("<q", self._memory, _HIGH_WATER_OFFSET)
        return int(high_water_bytes)

    def find_path(self, number: int) -> tuple[str, ...]:
        """The names from the outermost region to this one."""
        if number not in self._paths:
            self._paths[number] = tuple(
                self._read_names(step)[1] for step in reversed(self._find_chain(number))
            )
        return self._paths[number]

    def close(self) -> None:
        """Unmap the file."""
        self._memory.close()

    def _find_chain(self, number: int) -> tuple[int, ...]:
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

    def _read_names(self, number: int) -> tuple[int, str]:
        parent, length, name = _NAMES.unpack_from(
            self._memory, _RECORDS_OFFSET + (number - 1) * _RECORD_BYTES
        )
        text = name[: length & ~_WAS_SHORTENED].decode("utf-8", "replace")
        if length & _WAS_SHORTENED:
            self.long_names.add(text)
        return parent, text
