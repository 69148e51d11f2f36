"""Which calls of a region are kept: all while they are few, then the longest, the largest and a uniform sample. Pure.

Every call has a random priority; the calls with the smallest ones are a uniform sample of all. So calls of several processes can
be put together in any order, and what is kept of them is the same as if they had been one process.
"""

from __future__ import annotations

from heapq import nlargest, nsmallest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .model import Call

MOST_SAMPLED = 128
MOST_LONGEST = MOST_LARGEST = 16
ENTERING_SECONDS, MOST_ENTERING_SECONDS = 4e-6, 10e-6
"""What entering and leaving a region takes of the CPU time of the program while a tracker runs: in a loop, and where it is cold in the caches."""
SWITCHING_SECONDS = 6e-6
"""What it takes when the code of a region is suspended and goes on, where that is followed; at most as much as entering and leaving."""
NO_PRIORITY = 2**32 - 1
"""Of a call that is not in the sample of its process."""


def choose_calls(calls: Iterable[Call]) -> list[Call]:
    """The ended calls of one region to keep, by their start."""
    known = {identify_call(call): call for call in calls}
    ended = list(known.values())
    if len(ended) > MOST_SAMPLED:
        chosen = [
            *nsmallest(MOST_SAMPLED, ended, key=lambda call: call.priority),
            *nlargest(MOST_LONGEST, ended, key=lambda call: (call.end_seconds or 0.0) - call.start_seconds),
            *nlargest(MOST_LARGEST, ended, key=lambda call: call.peak_ram_bytes or 0),
        ]
        ended = list({identify_call(call): call for call in chosen}.values())
    return sorted(ended, key=lambda call: (call.start_seconds, call.pid, call.number))


def identify_call(call: Call) -> tuple[int, int, float]:
    """What no two calls of a region have in common; a process counts anew after an exec."""
    return call.pid, call.number, call.start_seconds
