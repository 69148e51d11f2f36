"""Single calls of regions, of all processes together. Pure."""

from __future__ import annotations

from ..core.calls import MOST_LARGEST, choose_calls, identify_call
from ..core.model import EXACT
from ..core.units import AS_GOOD_AS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.model import Call

    Path = tuple[str, ...]

_MOST_PATHS = 1000


class CallAccount:
    """The calls kept of each region, and those that are not in the recording yet."""

    def __init__(self) -> None:
        self._kept: dict[Path, list[Call]] = {}
        self._open: dict[Path, list[Call]] = {}
        self._left_open: dict[Path, list[Call]] = {}
        self._written: dict[Path, frozenset[tuple[int, int, float]]] = {}
        self._peaks: dict[Path, dict[tuple[int, float], int]] = {}

    def take_peak(self, path: Path, pid: int, start_seconds: float, size: int) -> None:
        """Take a reading of memory, the largest of a region so far, from when the call that began then was open."""
        if path in self._peaks or len(self._peaks) < _MOST_PATHS:
            peaks = self._peaks.setdefault(path, {})
            peaks[pid, start_seconds] = size
            if len(peaks) > MOST_LARGEST:
                del peaks[min(peaks, key=lambda key: peaks[key])]

    def take(self, calls: Iterable[Call]) -> None:
        """Take ended calls; those known already may be among them."""
        for path, some in self._group(calls).items():
            if path in self._kept or len(self._kept) < _MOST_PATHS:
                self._kept[path] = choose_calls([*self._kept.get(path, ()), *some])

    def take_open(self, calls: Iterable[Call]) -> None:
        """Take the calls that are open now, instead of those before."""
        self._open = self._group(calls)

    def take_left_open(self, calls: Iterable[Call]) -> None:
        """Take the calls in which a process was killed."""
        for path, some in self._group(calls).items():
            self._left_open[path] = choose_calls([*self._left_open.get(path, ()), *some])

    def list_calls(self) -> list[Call]:
        """All calls: of each region the ended ones by their start, then the open ones."""
        return [call for path in self._paths() for call in self._list(path)]

    def list_changed(self) -> list[tuple[Path, list[Call]]]:
        """Of each region with calls that are not written yet: those, and all its open ones."""
        changed = []
        for path in self._paths():
            calls = self._list(path)
            written = self._written.get(path, frozenset())
            known = {identify_call(call) for call in calls}
            # A call that has left the kept ones stays in the recording; one that is no longer open must be said.
            if known - written or any(not number for _, number, _ in written - known):
                new = [call for call in calls if not call.number or identify_call(call) not in written]
                changed.append((path, new))
        return changed

    def note_written(self, path: Path) -> None:
        """Note that the calls of a region are in the recording."""
        self._written[path] = frozenset(map(identify_call, self._list(path)))

    def _paths(self) -> Iterable[Path]:
        return dict.fromkeys((*self._kept, *self._left_open, *self._open))

    def _list(self, path: Path) -> list[Call]:
        groups = (self._kept, self._left_open, self._open)
        return [call for group in groups for call in group.get(path, ())]

    def _group(self, calls: Iterable[Call]) -> dict[Path, list[Call]]:
        groups: dict[Path, list[Call]] = {}
        for call in calls:
            groups.setdefault(call.path, []).append(self._complete(call))
        return groups

    def _complete(self, call: Call) -> Call:
        """A call with the largest reading taken while it was open, unless its process knows better."""
        size = self._peaks.get(call.path, {}).get((call.pid, call.start_seconds), 0)
        known = call.peak_ram_bytes or 0
        is_other = call.peak_ram_basis == EXACT and known < size * AS_GOOD_AS
        return call if size <= known or is_other else call._replace(peak_ram_bytes=size)
