"""What the processes of a tree have done, conserved: nothing is lost when one ends, nothing counted twice. Pure."""

from __future__ import annotations

from ..core.model import TreeCounters, larger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..core.model import ProcessActivity

_INHERITED = ("read_bytes", "written_bytes", "major_faults")
_OWN = ("switches", "waiting_seconds")


class _InheritedSum:
    """A counter that the kernel adds to the parent's when a process is waited for."""

    def __init__(self) -> None:
        self.total = 0.0
        self._at_start = 0.0
        self._kept = 0.0
        self._missing = 0.0

    def feed(self, living: float, new_at_start: float) -> None:
        """Take the sum over all living processes, and how much of it those had that were found running at the start.

        A child may be waited for between the reading of its parent and its own, so only what is missing in two readings is
        lost to the parent: it stays in the total.
        """
        self._at_start += new_at_start
        now = living - self._at_start + self._kept
        missing = max(0.0, self.total - now)
        lost = min(missing, self._missing)
        self._kept += lost
        self._missing = missing - lost
        self.total = max(self.total, now + lost)


class _OwnSum:
    """A counter that ends with its process."""

    def __init__(self) -> None:
        self.total = 0.0
        self._latest: dict[int, float] = {}

    def feed(self, latest: dict[int, float], at_start: dict[int, float]) -> None:
        """Take the counters of all living processes; those found running at the start begin at their first value."""
        for pid, value in latest.items():
            before = self._latest.get(pid, at_start.get(pid, 0.0))
            # A smaller value is another process with the same pid.
            self.total += value - before if value >= before else value
        self._latest = latest


class CounterAccount:
    """The counters of one tree since the start."""

    def __init__(self) -> None:
        self._inherited = {name: _InheritedSum() for name in _INHERITED}
        self._own = {name: _OwnSum() for name in _OWN}
        self._known: set[int] = set()
        self._read: set[str] = set()

    def feed(self, activities: Sequence[ProcessActivity]) -> None:
        """Take a reading of all living processes."""
        new = {
            activity.pid
            for activity in activities
            if activity.was_running_at_start and activity.pid not in self._known
        }
        for name, inherited in self._inherited.items():
            values = _list_known(activities, name)
            inherited.feed(sum(values.values()), sum(value for pid, value in values.items() if pid in new))
            self._note_read(name, values)
        for name, own in self._own.items():
            values = _list_known(activities, name)
            own.feed(values, {pid: value for pid, value in values.items() if pid in new})
            self._note_read(name, values)
        self._known = {activity.pid for activity in activities}

    def _note_read(self, name: str, values: dict[int, float]) -> None:
        if values:
            self._read.add(name)

    @property
    def counters(self) -> TreeCounters:
        """Since the start; None for what could not be read."""
        return TreeCounters(
            read_bytes=self._count("read_bytes"),
            written_bytes=self._count("written_bytes"),
            major_faults=self._count("major_faults"),
            switches=self._count("switches"),
            waiting_seconds=self._find("waiting_seconds"),
        )

    def _count(self, name: str) -> int | None:
        total = self._find(name)
        return None if total is None else round(total)

    def _find(self, name: str) -> float | None:
        return (self._inherited.get(name) or self._own[name]).total if name in self._read else None


def _list_known(activities: Iterable[ProcessActivity], name: str) -> dict[int, float]:
    values = ((activity.pid, getattr(activity, name)) for activity in activities)
    return {pid: value for pid, value in values if value is not None}


def raise_counters(known: TreeCounters, exact: TreeCounters) -> TreeCounters:
    """The larger ones: a reading misses processes that lived between two, the root misses those it did not wait for."""
    return TreeCounters(
        read_bytes=larger(known.read_bytes, exact.read_bytes),
        written_bytes=larger(known.written_bytes, exact.written_bytes),
        major_faults=larger(known.major_faults, exact.major_faults),
        switches=larger(known.switches, exact.switches),
        waiting_seconds=known.waiting_seconds,
    )
