"""How much memory several processes hold together, with every shared page counted once. Pure.

Exact sharing is expensive to read (the kernel walks every page), so between two such reads it is bounded by cheap
figures: anonymous pages are shared only between a process and its forked copies.
"""

from __future__ import annotations

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..core.model import ProcessReading, SharingReading


class Overlap(NamedTuple):
    """What one process shared when sharing was last read."""

    anonymous_excess_bytes: int
    """Its anonymous memory, less its proportional share."""
    anonymous_shared_bytes: int
    """Its anonymous memory that others map, too."""
    file_pss_bytes: int
    shared_bytes: int


class Holding(NamedTuple):
    """Memory of a set of processes."""

    unique_bytes: int
    """Lower bound, every shared page counted once."""
    ceiling_bytes: int
    """Upper bound, as if nothing were shared."""
    shared_bytes: int
    """The part of the unique bytes that several processes map."""


NOTHING = Holding(0, 0, 0)

# Changes that do not matter, as a fraction of what is held.
_STILL = 0.02
_SMALLEST_PAGE_BYTES = 4096


def find_overlap(reading: ProcessReading, sharing: SharingReading) -> Overlap:
    """What a process shares, from its cheap and exact readings."""
    anonymous = reading.rss_bytes - reading.file_bytes
    return Overlap(
        max(0, anonymous - sharing.anonymous_pss_bytes),
        max(0, anonymous - sharing.private_bytes),
        max(0, sharing.pss_bytes - sharing.anonymous_pss_bytes),
        max(0, reading.rss_bytes - sharing.private_bytes),
    )


def is_settled(before: Sequence[ProcessReading], after: Sequence[ProcessReading], seconds: float) -> bool:
    """Whether the processes touch so little memory that what they share now will be the same in a moment.

    A forked copy that writes to its memory takes more of it without growing; only its page faults tell.
    """
    known = {reading.pid: (reading.rss_bytes, reading.page_faults) for reading in before}
    touched = 0
    for reading in after:
        rss_bytes, page_faults = known.get(reading.pid, (0, 0))
        faulted = (reading.page_faults - page_faults) * _SMALLEST_PAGE_BYTES
        touched += max(faulted, abs(reading.rss_bytes - rss_bytes))
    return touched <= _STILL * seconds * sum(reading.rss_bytes for reading in after)


def is_torn(
    before: Sequence[ProcessReading],
    after: Sequence[ProcessReading],
    sharings: Mapping[int, SharingReading],
) -> bool:
    """Whether sharing changed while it was read, one process after the other.

    The same page may then be counted in full for one process and in part for another.
    """
    by_pid = {reading.pid: reading for reading in after}
    moved = 0
    for then in before:
        now = by_pid.get(then.pid)
        if now is None:
            moved += then.rss_bytes
        else:
            # New anonymous memory is private, so its growth does not matter.
            freed = (then.rss_bytes - then.file_bytes) - (now.rss_bytes - now.file_bytes)
            moved += abs(then.file_bytes - now.file_bytes) + max(0, freed)
    return moved > _STILL * sum(sharing.pss_bytes for sharing in sharings.values())


def hold(
    readings: Sequence[ProcessReading], overlaps: Mapping[int, Overlap], *, is_whole_tree: bool = False
) -> Holding:
    """Bound the memory of these processes, given their known overlaps by pid.

    Proportional shares of a whole tree, all read at one moment, are exact; those of a part of it are only a
    bound, because other processes hold their share of the same pages.
    """
    if not readings:
        return NOTHING
    if len(readings) == 1:
        (only,) = readings
        known = overlaps.get(only.pid)
        shared = only.file_bytes if known is None else known.shared_bytes
        return Holding(only.rss_bytes, only.rss_bytes, min(shared, only.rss_bytes))

    by_pid = {reading.pid: reading for reading in readings}
    images: dict[int, _Image] = {}
    file_largest = file_proportional = ceiling = 0
    for reading in readings:
        known = overlaps.get(reading.pid)
        images.setdefault(_head_of_copies(reading, by_pid), _Image()).add(reading, known)
        ceiling += reading.rss_bytes
        file_largest = max(file_largest, reading.file_bytes)
        if known is not None:
            file_proportional += min(known.file_pss_bytes, reading.file_bytes)
    private = sum(image.private_bytes for image in images.values())
    # A copy forked since sharing was read shares its memory with processes that were read.
    is_known = all(reading.is_forked_copy or reading.pid in overlaps for reading in readings)
    if is_whole_tree and is_known:
        held = file_proportional + sum(image.proportional_bytes for image in images.values())
        unique = max(held, *(reading.rss_bytes for reading in readings))
    else:
        unique = max(file_largest, file_proportional)
        unique += sum(image.least_bytes for image in images.values())
    unique = min(unique, ceiling)
    return Holding(unique, ceiling, max(0, unique - private))


class _Image:
    """Anonymous memory of a process and its forked copies."""

    def __init__(self) -> None:
        self.proportional_bytes = 0
        self.private_bytes = 0
        self._largest = self._shared = 0

    def add(self, reading: ProcessReading, known: Overlap | None) -> None:
        anonymous = reading.rss_bytes - reading.file_bytes
        self._largest = max(self._largest, anonymous)
        if known is not None:
            shared = min(known.anonymous_shared_bytes, anonymous)
            self.proportional_bytes += max(0, anonymous - known.anonymous_excess_bytes)
            self.private_bytes += anonymous - shared
            self._shared = max(self._shared, shared)
        elif not reading.is_forked_copy:
            self.private_bytes += anonymous

    @property
    def least_bytes(self) -> int:
        """The best of three lower bounds.

        The largest process alone; the sum of proportional shares (right if all sharers are here); all private
        memory plus the largest shared part (right if all share the same pages).
        """
        return max(self._largest, self.proportional_bytes, self.private_bytes + self._shared)


def _head_of_copies(reading: ProcessReading, by_pid: Mapping[int, ProcessReading]) -> int:
    """The process whose memory this one copied: possibly itself, possibly one not among these."""
    while reading.is_forked_copy:
        if reading.parent_pid not in by_pid:
            return reading.parent_pid
        reading = by_pid[reading.parent_pid]
    return reading.pid
