"""The calls file of a process: single calls of its regions, those that `core.calls` keeps, and when the open ones began.

It lies beside the shared file, is mapped by the job and read by the sampler. A region takes room in it when it is first entered. Most
calls are only counted: whether one is sampled is decided in advance, by drawing how many are skipped.
"""

from __future__ import annotations

import struct
from _random import Random  # what random is made of, without importing that
from _thread import get_native_id
from math import log, log1p

from ..core.calls import MOST_LARGEST, MOST_LONGEST, MOST_SAMPLED, NO_PRIORITY
from ..core.system import posix
from ..core.values import NamedTuple
from .mailbox import CALLS_SUFFIX, REGIONS_SUFFIX
from .mishaps import is_ours
from .shared_file import map_new, reserve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_REGIONS_WITH_CALLS = 127
MOST_OPEN = 64
_PAGE_BYTES = 8192
_OPEN = struct.Struct(f"<{MOST_OPEN}Q")  # when the open calls began, else 0
_ENTRY = struct.Struct(
    "<QQQqIIQ"
)  # number and basis, start, end, peak RAM, priority, thread, all of them xored
_ENTRIES = MOST_SAMPLED + MOST_LONGEST + MOST_LARGEST
_ENTRIES_BYTES = _ENTRIES * _ENTRY.size
_VERSIONS = struct.Struct(
    f"<{MOST_REGIONS_WITH_CALLS}Q"
)  # the first page; how often calls of a region were kept
_NEVER = 2**63


class KeptCall(NamedTuple):
    """One call. Times are nanoseconds of the monotonic clock; -1: unknown."""

    number: int
    start_ns: int
    end_ns: int
    peak_ram_bytes: int
    is_exact: bool
    priority: int
    thread: int


class CallFileWriter:
    """The job's side. Not thread-safe: the caller holds a lock."""

    def __init__(self, regions_path: str) -> None:
        self._path = name_call_file(regions_path)
        self._random = Random().random
        self._file = map_new(self._path, (MOST_REGIONS_WITH_CALLS + 1) * _PAGE_BYTES, _PAGE_BYTES)
        self._memory = self._file.memory
        self._versions = memoryview(self._memory)[: _VERSIONS.size].cast("Q")
        self._regions: list[RegionCalls] = []

    def let_go(self) -> None:
        """Let go of the file at once, with its descriptor, whatever still refers to this."""
        for region in self._regions:
            region.let_go()
        self._versions.release()
        self._file.let_go()

    def add_region(self, number: int) -> RegionCalls | None:
        """The calls of a new region; None if there is no room for them."""
        if number > MOST_REGIONS_WITH_CALLS:
            return None
        try:
            fd = posix.open(self._path, posix.O_RDWR | posix.O_NOFOLLOW)
            try:
                reserve(fd, number * _PAGE_BYTES, _PAGE_BYTES)
            finally:
                posix.close(fd)
        except OSError as error:
            if not is_ours(error):
                raise
            return None  # the tracker has ended, or the disk is full
        with memoryview(self._memory)[number * _PAGE_BYTES : (number + 1) * _PAGE_BYTES] as page:
            calls = RegionCalls(page, self._versions[number - 1 : number], self._random)
        self._regions.append(calls)
        return calls


class RegionCalls:
    """The calls of one region.

    What must be fast is up to the caller: while a call is open, its place is 0 if it began as the only one, else one from `free`; there it
    writes its start to `open`, then 0. It is worth keeping if its number is `due`, or if it is longer or larger than the floors. A call that is never
    kept, but counted, puts off what is due.
    """

    __slots__ = (
        "_entries",
        "_largest",
        "_longest",
        "_priorities",
        "_random",
        "_version",
        "due",
        "floor_bytes",
        "floor_ns",
        "free",
        "open",
    )

    def __init__(self, page: memoryview, version: memoryview, random: Callable[[], float]) -> None:
        self._entries = page[:_ENTRIES_BYTES]
        with page[_ENTRIES_BYTES : _ENTRIES_BYTES + _OPEN.size] as opened:
            self.open = opened.cast("Q")
        self.free = list(range(MOST_OPEN - 1, 0, -1))
        self._version = version
        self._random = random
        self.due = 1
        self.floor_ns = self.floor_bytes = -1
        self._priorities: list[int] = []
        self._longest: list[int] = []
        self._largest: list[int] = []

    def let_go(self) -> None:
        """Let go of the file."""
        for view in (self._entries, self.open, self._version):
            view.release()

    def keep(self, number: int, start_ns: int, end_ns: int, peak_ram_bytes: int, is_exact: bool) -> None:
        """Keep a call for what makes it worth it."""
        places = []
        priority = NO_PRIORITY
        if number >= self.due:
            priority, place = self._draw(number)
            places.append(place)
        if end_ns - start_ns > self.floor_ns:
            place, self.floor_ns = _rank(self._longest, end_ns - start_ns, MOST_LONGEST)
            places.append(MOST_SAMPLED + place)
        if peak_ram_bytes > self.floor_bytes:
            place, self.floor_bytes = _rank(self._largest, peak_ram_bytes, MOST_LARGEST)
            places.append(MOST_SAMPLED + MOST_LONGEST + place)
        numbers = (2 * number + is_exact, start_ns, end_ns, peak_ram_bytes, priority, get_native_id())
        for place in places:
            _ENTRY.pack_into(self._entries, place * _ENTRY.size, *numbers, _sum_up(numbers))
        self._version[0] += 1

    def _draw(self, number: int) -> tuple[int, int]:
        """The priority of a sampled call and its place; draws how many are skipped until the next."""
        priorities = self._priorities
        place = len(priorities)
        if place < MOST_SAMPLED:
            priority = int(self._random() * NO_PRIORITY)
            priorities.append(priority)
        else:
            largest = max(priorities)
            place = priorities.index(largest)
            priorities[place] = priority = int(self._random() * largest)
        if len(priorities) < MOST_SAMPLED:
            self.due = number + 1
        else:
            # Each call has a smaller priority than the largest kept one with this probability.
            chance = max(priorities) / NO_PRIORITY
            skipped = int(log(1.0 - self._random()) / log1p(-chance)) if 0.0 < chance < 1.0 else _NEVER
            self.due = number + 1 + skipped
        return priority, place


class CallFileReader:
    """The sampler's side. The file is not mapped: reading a mapped hole would allocate it."""

    def __init__(self, regions_path: str) -> None:
        self.path = name_call_file(regions_path)
        self._versions: tuple[int, ...] = (0,) * MOST_REGIONS_WITH_CALLS

    def take_changed(self) -> Iterator[tuple[int, list[KeptCall]]]:
        """The kept calls of each region that has new ones since the last time, by its number."""
        versions = _VERSIONS.unpack(self._read(0, _VERSIONS.size))
        before, self._versions = self._versions, versions
        for number, (version, old) in enumerate(zip(versions, before, strict=True), start=1):
            if version != old:
                yield number, list(_parse(self._read(number * _PAGE_BYTES, _ENTRIES_BYTES)))

    def read_open(self, number: int) -> list[int]:
        """When the open calls of a region began."""
        if number > MOST_REGIONS_WITH_CALLS:
            return []
        content = self._read(number * _PAGE_BYTES + _ENTRIES_BYTES, _OPEN.size)
        return [start_ns for start_ns in _OPEN.unpack(content) if start_ns]

    def _read(self, offset: int, n_bytes: int) -> bytes:
        """What cannot be read is zero, as are calls that never were."""
        try:
            fd = posix.open(self.path, posix.O_RDONLY | posix.O_NOFOLLOW)
            try:
                return posix.pread(fd, n_bytes, offset).ljust(n_bytes, b"\0")
            finally:
                posix.close(fd)
        except OSError:
            return bytes(n_bytes)


def name_call_file(regions_path: str) -> str:
    """The calls file beside a shared file."""
    return regions_path.removesuffix(REGIONS_SUFFIX) + CALLS_SUFFIX


def _rank(sizes: list[int], size: int, most: int) -> tuple[int, int]:
    """Put a size among the largest: its place, and what the next one must exceed."""
    place = len(sizes)
    if place < most:
        sizes.append(size)
    else:
        place = sizes.index(min(sizes))
        sizes[place] = size
    return place, min(sizes) if len(sizes) == most else -1


def _parse(content: bytes) -> Iterator[KeptCall]:
    """The complete entries: one may have been read while it was being written."""
    for *numbers, checksum in _ENTRY.iter_unpack(content):
        number, start_ns, end_ns, peak, priority, thread = numbers
        if number and _sum_up(numbers) == checksum and start_ns <= end_ns:
            yield KeptCall(number // 2, start_ns, end_ns, peak, bool(number % 2), priority, thread)


def _sum_up(numbers: tuple[int, ...] | list[int]) -> int:
    number, start_ns, end_ns, peak, priority, thread = numbers
    return number ^ start_ns ^ end_ns ^ (peak & _NEVER - 1) ^ priority ^ thread
