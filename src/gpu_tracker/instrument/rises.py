"""Whose a rise of the kernel's high-water mark is: every region's that was inside all the time between two readings of it.

A region that was inside for a part of that time may have caused the rise, or not. Unless its own peak is as high, that is then a lower bound.
So is that of a region that was not inside, as soon as it runs again: below a mark that others have raised nobody sees how high it gets.
"""

from __future__ import annotations

from ..core.units import AS_GOOD_AS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .stack import Frame, Record

# No notable amount of memory can be allocated in this time.
RAM_FRESH_NS = 100_000


def attribute(
    records: Iterable[Record], calls: Iterable[Frame], high_water_bytes: int, since_ns: int, now_ns: int
) -> list[Record]:
    """Give a rise since the last reading to these calls, which are open or end now, and to their regions; those that have changed."""
    whole: set[Record] = set()
    part: set[Record] = set()
    for frame in calls:
        if frame.entered_ns <= since_ns + RAM_FRESH_NS:
            frame.peak_ram_bytes, frame.is_peak_exact = high_water_bytes, True
            whole.add(frame.record)
        elif frame.entered_ns < now_ns:
            part.add(frame.record)
    changed = []
    for record in records:
        if record in whole or _was_inside(record, since_ns, now_ns, is_open=record in part):
            record.peak_ram_bytes = max(record.peak_ram_bytes, high_water_bytes)
            record.exceeded_ns = 0
        elif not 0 < record.peak_ram_bytes < high_water_bytes * AS_GOOD_AS:
            continue
        elif record in part or record.last_ns > since_ns + RAM_FRESH_NS:
            record.inside_ram_bytes = max(record.inside_ram_bytes, record.peak_ram_bytes)
            record.peak_ram_bytes = -1
        elif not record.exceeded_ns:
            record.exceeded_ns = now_ns
        else:
            continue
        changed.append(record)
    return changed


def _was_inside(record: Record, since_ns: int, now_ns: int, *, is_open: bool) -> bool:
    """Whether calls of a region have followed each other without a pause."""
    return record.paused_ns <= since_ns < record.last_ns and (
        is_open or now_ns - record.last_ns <= RAM_FRESH_NS
    )
