"""Who held what when a peak was read. Pure."""

from __future__ import annotations

from ..core.model import PeakMoment, PeakProcess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MOST_PROCESSES = 8
_MOST_REGIONS = 8
# A peak that is only a little higher is the same peak.
_NOTABLY_HIGHER = 1.01


class PeakMoments:
    """The latest peak of each subject."""

    def __init__(self) -> None:
        self._latest: dict[str, PeakMoment] = {}
        self._unwritten: dict[str, PeakMoment] = {}
        self._new: list[str] = []

    def is_new(self, subject: str, size_bytes: int) -> bool:
        """Whether that is notably more than before."""
        known = self._latest.get(subject)
        return size_bytes > (known.size_bytes * _NOTABLY_HIGHER if known else 0)

    def take(
        self, subject: str, at_seconds: float, size_bytes: int, processes: Sequence[tuple[int, str, int]]
    ) -> None:
        """Take a new peak, with the pid, name and size of every process that held a part of it."""
        largest = sorted(processes, key=lambda process: -process[2])[:_MOST_PROCESSES]
        parts = tuple(PeakProcess(*process) for process in largest)
        self._latest[subject] = PeakMoment(subject, at_seconds, size_bytes, len(processes), parts)
        self._new.append(subject)

    def add_regions(self, paths: Iterable[tuple[str, ...]]) -> None:
        """The regions that are open now were open at the peaks just taken."""
        if self._new:
            regions = _find_innermost(paths)
            for subject in self._new:
                moment = self._latest[subject]._replace(regions=regions)
                self._latest[subject] = self._unwritten[subject] = moment
            self._new.clear()

    def list_latest(self) -> tuple[PeakMoment, ...]:
        """The latest peak of each subject."""
        return tuple(self._latest.values())

    def list_unwritten(self) -> list[PeakMoment]:
        """What must still be written."""
        return list(self._unwritten.values())

    def note_written(self, moment: PeakMoment) -> None:
        """It has been written."""
        self._unwritten.pop(moment.subject, None)


def _find_innermost(paths: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    every = dict.fromkeys(paths)
    outer = {path[:depth] for path in every for depth in range(1, len(path))}
    return tuple(path for path in every if path not in outer)[:_MOST_REGIONS]
