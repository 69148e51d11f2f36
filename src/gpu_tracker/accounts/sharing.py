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
    anonymous_bytes: int = 0
    file_bytes: int = 0
    page_faults: int = 0


class Holding(NamedTuple):
    """Memory of a set of processes."""

    unique_bytes: int
    """Lower bound, every shared page counted once."""
    ceiling_bytes: int
    """Upper bound, as if nothing were shared."""
    shared_bytes: int
    """The part of the unique bytes that several processes map."""
    file_bytes: int = 0
    """The part of the unique bytes that is of files or shared memory."""
    doubtful_bytes: int = 0
    """How much more it may be, because sharing was not read, or has changed since."""


NOTHING = Holding(0, 0, 0)

# Changes that do not matter, as a fraction of what is held.
_STILL = 0.02
_SMALLEST_PAGE_BYTES = 4096
# Forked workers resemble each other: this many of them tell about the rest.
_EXAMPLES = 4


def find_overlap(reading: ProcessReading, sharing: SharingReading) -> Overlap:
    """What a process shares, from its cheap and exact readings."""
    anonymous = reading.rss_bytes - reading.file_bytes
    return Overlap(
        max(0, anonymous - sharing.anonymous_pss_bytes),
        max(0, anonymous - sharing.private_bytes),
        max(0, sharing.pss_bytes - sharing.anonymous_pss_bytes),
        max(0, reading.rss_bytes - sharing.private_bytes),
        anonymous,
        reading.file_bytes,
        reading.page_faults,
    )


def choose_examples(readings: Sequence[ProcessReading], root_pid: int) -> list[ProcessReading]:
    """The root and the largest of its many forked copies; nothing if reading them all costs little more."""
    by_pid = {reading.pid: reading for reading in readings}
    copies: dict[int, list[ProcessReading]] = {}
    for reading in sorted(readings, key=_find_anonymous, reverse=True):
        if reading.is_forked_copy:
            copies.setdefault(_head_of_copies(reading, by_pid), []).append(reading)
    chosen = [reading for reading in readings if reading.pid == root_pid]
    chosen += [reading for alike in copies.values() for reading in alike[:_EXAMPLES]]
    return chosen if copies and 2 * len(chosen) <= len(readings) else []


def is_settled(before: Sequence[ProcessReading], after: Sequence[ProcessReading], seconds: float) -> bool:
    """Whether the processes touch so little memory that what they share now will be the same in a moment.

    A forked copy that writes to its memory takes more of it without growing; only its page faults tell.
    """
    known = {reading.pid: (reading.rss_bytes, reading.page_faults) for reading in before}
    touched = 0
    for reading in after:
        rss_bytes, page_faults = known.get(reading.pid, (0, 0))
        faulted = _find_touched(reading.page_faults - page_faults)
        touched += max(faulted, abs(reading.rss_bytes - rss_bytes))
    return touched <= _STILL * seconds * sum(reading.rss_bytes for reading in after)


def hold_the_same(before: Sequence[ProcessReading], after: Sequence[ProcessReading]) -> bool:
    """Whether these are the same processes, and none has touched or returned memory: then they also share the same.

    Every process has page faults. Where they are not counted, only one that has not run is known to have touched nothing.
    """
    return len(before) == len(after) and all(
        then == now
        or (
            then.pid == now.pid
            and then.rss_bytes == now.rss_bytes
            and then.file_bytes == now.file_bytes
            and then.page_faults == now.page_faults > 0
        )
        for then, now in zip(before, after, strict=True)
    )


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

    Proportional shares of a whole tree, all read at one moment, are exact, but for pages that processes outside hold, too: those are
    counted in full as far as the largest process has them. Proportional shares of a part of a tree are only a bound, because other processes
    hold their share of the same pages.
    """
    if not readings:
        return NOTHING
    if len(readings) == 1:
        (only,) = readings
        known = overlaps.get(only.pid)
        shared = only.file_bytes if known is None else known.shared_bytes
        return Holding(only.rss_bytes, only.rss_bytes, min(shared, only.rss_bytes), only.file_bytes)

    by_pid = {reading.pid: reading for reading in readings}
    images: dict[int, _Image] = {}
    file_largest = file_proportional = ceiling = changed = 0
    for reading in readings:
        known = overlaps.get(reading.pid)
        images.setdefault(_head_of_copies(reading, by_pid), _Image()).add(reading, known)
        ceiling += reading.rss_bytes
        file_largest = max(file_largest, reading.file_bytes)
        if known is not None:
            file_proportional += min(known.file_pss_bytes, reading.file_bytes)
            changed += _find_change(reading, known)
    private = sum(image.private_bytes for image in images.values())
    # A copy forked since sharing was read shares its memory with processes that were read.
    is_known = all(reading.is_forked_copy or reading.pid in overlaps for reading in readings)
    is_read = all(reading.pid in overlaps for reading in readings)
    is_exact = is_whole_tree and is_known
    file = max(file_largest, file_proportional)
    unique = file + sum(image.likely_bytes if is_exact else image.least_bytes for image in images.values())
    unique = min(unique, ceiling)
    doubtful = min(changed, ceiling - unique) if is_read else ceiling - unique
    return Holding(unique, ceiling, max(0, unique - private), file, doubtful)


def hold_beside(one: ProcessReading | None, readings: Sequence[ProcessReading], unique_bytes: int) -> int:
    """What these processes, which hold so much together, hold for certain beside one of them.

    Processes that are forked copies of each other may share all that they hold. One may have been read at another time,
    as it may not have begun yet, or be ending and hold nothing any more. One that was never read may be a copy of any.
    """
    others = {reading.pid: reading for reading in readings}
    own = others.pop(one.pid, None) if one else None
    own_bytes = own.rss_bytes if own else 0
    by_pid = {**others, one.pid: one} if one else others
    head = _head_of_copies(one, by_pid) if one else None
    relatives = (
        reading.rss_bytes
        for reading in others.values()
        if head is None or _head_of_copies(reading, by_pid) == head
    )
    shared_bytes = max(0, max(relatives, default=0) - own_bytes)
    return max(0, unique_bytes - own_bytes - shared_bytes)


def _find_anonymous(reading: ProcessReading) -> int:
    return reading.rss_bytes - reading.file_bytes


def _find_change(reading: ProcessReading, known: Overlap) -> int:
    """How much of what a process shared it may have copied by now, and what it has mapped since."""
    grown = max(0, _find_anonymous(reading) - known.anonymous_bytes)
    copied = max(0, _find_touched(reading.page_faults - known.page_faults) - grown)
    return min(copied, known.anonymous_excess_bytes) + max(0, reading.file_bytes - known.file_bytes)


def _find_touched(page_faults: int) -> int:
    return page_faults * _SMALLEST_PAGE_BYTES


class _Image:
    """Anonymous memory of a process and its forked copies."""

    def __init__(self) -> None:
        self._proportional = self._private = 0
        self._largest = self._shared = 0
        self._shared_by_copies: int | None = None
        self._unread: list[ProcessReading] = []

    def add(self, reading: ProcessReading, known: Overlap | None) -> None:
        anonymous = _find_anonymous(reading)
        self._largest = max(self._largest, anonymous)
        if known is not None:
            shared = min(known.anonymous_shared_bytes, anonymous)
            self._proportional += max(0, anonymous - known.anonymous_excess_bytes)
            self._private += anonymous - shared
            self._shared = max(self._shared, shared)
            if reading.is_forked_copy:
                self._shared_by_copies = max(self._shared_by_copies or 0, known.anonymous_shared_bytes)
        elif reading.is_forked_copy:
            self._unread.append(reading)
        else:
            self._private += anonymous

    @property
    def private_bytes(self) -> int:
        return self._private + self._guessed_bytes

    @property
    def likely_bytes(self) -> int:
        """The sum of proportional shares, or the largest process; if some were not read, the best that the others tell."""
        return max(self._largest, self._shared_once_bytes if self._unread else self._proportional)

    @property
    def least_bytes(self) -> int:
        """The best of three lower bounds.

        The largest process alone; the sum of proportional shares (right if all sharers are here); all private
        memory plus the largest shared part (right if all share the same pages).
        """
        return max(self._largest, self._shared_once_bytes)

    @property
    def _shared_once_bytes(self) -> int:
        return max(self._proportional + self._guessed_bytes, self.private_bytes + self._shared)

    @property
    def _guessed_bytes(self) -> int:
        """What copies that were not read have of their own: they share as much as those that were, or all but what they touched."""
        shared = self._shared_by_copies
        if shared is None:
            return 0
        return sum(
            min(max(0, _find_anonymous(copy) - shared), _find_touched(copy.page_faults))
            for copy in self._unread
        )


def _head_of_copies(reading: ProcessReading, by_pid: Mapping[int, ProcessReading]) -> int:
    """The process whose memory this one copied: possibly itself, possibly one not among these."""
    while reading.is_forked_copy:
        if reading.parent_pid not in by_pid:
            return reading.parent_pid
        reading = by_pid[reading.parent_pid]
    return reading.pid
