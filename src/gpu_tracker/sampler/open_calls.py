"""The CPU time of calls that are still open, since their process has last counted it."""

from __future__ import annotations

import sys
import time

from ..core.values import NamedTuple
from ..sources.files import read_file
from ..sources.procfs import is_ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..instrument.shared_file import Numbers, SharedFileReader, ThreadEntry

# Less than this is not worth a look at the threads.
_NOTABLE_NS = 1_000_000
_LEAST_WEIGHT_NS = 1_000


class Clocks(NamedTuple):
    """The CPU clocks of a process at one reading."""

    at_ns: int
    process_ns: int
    threads: dict[int, int]


def read_clocks(pid: int, at_ns: int, reader: SharedFileReader) -> Clocks | None:
    """What a process has used by now, the threads only if it has used something since it has counted; None if it has ended.

    The clock of one that nobody has waited for yet still tells what it used, but its threads are gone.
    """
    if sys.platform == "win32":
        return None  # they count when the process does
    counted_ns, entries = reader.read_threads()
    try:
        process_ns = time.clock_gettime_ns((~pid << 3) | 2)
        if process_ns - counted_ns < _NOTABLE_NS:
            return Clocks(at_ns, process_ns, {})
        threads = {entry.tid: _read_thread(pid, entry) for entry in entries}
        return None if is_ended(pid) else Clocks(at_ns, process_ns, threads)
    except (OSError, ValueError, IndexError):
        return None


def read_numbers(reader: SharedFileReader, clocks: Clocks) -> dict[int, Numbers]:
    """The counters of every region, with what is open counted up to these clocks."""
    numbers = reader.read_all(clocks.at_ns)
    counted_ns, entries = reader.read_threads()
    for entry, used_ns, shared_ns in _divide(entries, clocks.process_ns - counted_ns, clocks.threads):
        region = entry.region
        for step in {step for number in (region, *entry.drivers) for step in reader.find_chain(number)}:
            known = numbers.get(step)
            # One that was never entered there is around by the fork of the process.
            if known is not None and (known.open_calls or not known.first_ns):
                own_ns = known.own_cpu_ns + used_ns if step == region else known.own_cpu_ns
                numbers[step] = known._replace(
                    cpu_ns=known.cpu_ns + used_ns,
                    own_cpu_ns=own_ns,
                    shared_cpu_ns=known.shared_cpu_ns + (shared_ns if step == region else 0),
                )
    return numbers


def _divide(
    entries: Iterable[ThreadEntry], process_ns: int, threads: Mapping[int, int]
) -> list[tuple[ThreadEntry, int, int]]:
    """The time that a process has not counted yet: a thread in a region, its part, and how much of that is shared."""
    used = [(entry, max(0, threads.get(entry.tid, 0) - entry.cpu_ns)) for entry in entries]
    inside = [(entry, ns) for entry, ns in used if entry.region > 0]
    helpers_ns = max(0, process_ns - sum(ns for _, ns in used)) if threads else 0
    whole = sum(ns + _LEAST_WEIGHT_NS for _, ns in inside)
    parts = [helpers_ns * (ns + _LEAST_WEIGHT_NS) // whole for _, ns in inside]
    is_shared = len(inside) > 1
    return [
        (entry, ns + part, part if is_shared else 0) for (entry, ns), part in zip(inside, parts, strict=True)
    ]


def _read_thread(pid: int, entry: ThreadEntry) -> int:
    """The CPU time of a thread; what was counted if it cannot be read."""
    try:
        return int(read_file(f"/proc/{pid}/task/{entry.tid}/schedstat").split()[0])
    except (OSError, ValueError, IndexError):
        return entry.cpu_ns
