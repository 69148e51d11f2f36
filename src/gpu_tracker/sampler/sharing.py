"""How much memory several processes hold together, every shared page counted once. Pure.

Exact sharing is dear to read (the kernel walks every page), so between two such reads it is bounded from
what is cheap: anonymous pages are only ever shared between a process and the copies it forked.
"""

from __future__ import annotations

from ..values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..model import ProcessReading, SharingReading


class Overlap(NamedTuple):
    """What one process was found to share, when sharing was last read."""

    anonymous_bytes: int
    file_pss_bytes: int
    shared_bytes: int


class Holding(NamedTuple):
    """Memory of a set of processes."""

    unique_bytes: int
    """Held for certain, as far as known."""
    ceiling_bytes: int
    """What it would be if nothing were shared."""
    shared_bytes: int
    """The part of the unique bytes that more than one process maps."""


NOTHING = Holding(0, 0, 0)


def find_overlap(reading: ProcessReading, sharing: SharingReading) -> Overlap:
    """What a process shares, from its cheap and its exact reading."""
    anonymous = reading.rss_bytes - reading.file_bytes
    return Overlap(
        max(0, anonymous - sharing.anonymous_pss_bytes),
        max(0, sharing.pss_bytes - sharing.anonymous_pss_bytes),
        max(0, reading.rss_bytes - sharing.private_bytes),
    )


def hold(readings: Sequence[ProcessReading], overlaps: Mapping[int, Overlap]) -> Holding:
    """Bound the memory of these processes; overlaps are those known of them, by pid."""
    if not readings:
        return NOTHING
    if len(readings) == 1:
        (only,) = readings
        known = overlaps.get(only.pid)
        shared = only.file_bytes if known is None else known.shared_bytes
        return Holding(only.rss_bytes, only.rss_bytes, min(shared, only.rss_bytes))

    by_pid = {reading.pid: reading for reading in readings}
    largest: dict[int, int] = {}
    proportional: dict[int, int] = {}
    private = 0
    file_largest = file_proportional = ceiling = 0
    for reading in readings:
        head = _head_of_copies(reading, by_pid)
        anonymous = reading.rss_bytes - reading.file_bytes
        ceiling += reading.rss_bytes
        largest[head] = max(largest.get(head, 0), anonymous)
        file_largest = max(file_largest, reading.file_bytes)
        known = overlaps.get(reading.pid)
        if known is not None:
            own = max(0, anonymous - known.anonymous_bytes)
            proportional[head] = proportional.get(head, 0) + own
            file_proportional += min(known.file_pss_bytes, reading.file_bytes)
            private += max(0, reading.rss_bytes - known.shared_bytes)
        elif not reading.is_forked_copy:
            private += anonymous
    unique = max(file_largest, file_proportional) + sum(
        max(size, proportional.get(head, 0)) for head, size in largest.items()
    )
    unique = min(unique, ceiling)
    return Holding(unique, ceiling, max(0, unique - private))


def _head_of_copies(reading: ProcessReading, by_pid: Mapping[int, ProcessReading]) -> int:
    """The process whose memory image this one copied, possibly itself."""
    while reading.is_forked_copy and reading.parent_pid in by_pid:
        reading = by_pid[reading.parent_pid]
    return reading.pid
