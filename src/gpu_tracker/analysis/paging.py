"""Whether a memory limit made a job fetch the same pages from storage again and again. Pure.

The kernel drops pages of mapped files, and swaps, where a limit is reached; that kills nothing, but every page that is used again must
be fetched again.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .summary import Summary

PAGE_BYTES = 4096
# Reading in order fetches many pages at a time: only what is used here and there is fetched page by page.
_MANY_TIMES = 2.0
_REACHED = 0.9
_STALLED = 0.2


def find_fetched_bytes(summary: Summary) -> int:
    """What was fetched from storage page by page; 0 if not known."""
    return (summary.counters.major_faults or 0) * PAGE_BYTES


def find_stalled_share(summary: Summary) -> float:
    """For what share of the time something waited for storage or memory; 0 if not known."""
    stalls = summary.stalls
    longest = max(stalls.io_seconds or 0.0, stalls.memory_seconds or 0.0)
    return longest / summary.seconds if summary.seconds else 0.0


def has_lacked_memory(summary: Summary) -> bool:
    """Whether what it fetched page by page is many times its memory limit, which was reached."""
    limit = summary.ram_capacity_bytes
    if summary.ram_source == "machine" or summary.ram_used_bytes < _REACHED * limit:
        return False
    return find_fetched_bytes(summary) > _MANY_TIMES * limit and find_stalled_share(summary) >= _STALLED
