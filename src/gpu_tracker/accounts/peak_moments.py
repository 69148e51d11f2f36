"""Who held what when a peak was read. Pure."""

from __future__ import annotations

from ..core.model import PeakMoment, PeakProcess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MOST_PROCESSES = 8
_MOST_REGIONS = 8
# One that is only a little higher may be the same; if it is not, it is written at the end.
_NOTABLY_HIGHER = 1.01


class PeakMoments:
    """The latest peak of each subject."""

    def __init__(self) -> None:
        self._latest: dict[str, PeakMoment] = {}
        self._written_bytes: dict[str, int] = {}
        self._new: list[str] = []

    def is_new(self, subject: str, size_bytes: int, *, is_read: bool = True) -> bool:
        """Whether that is more than before; if it was not read now but became known, notably more: it may be the same peak."""
        known = self._latest.get(subject)
        least = 1.0 if is_read else _NOTABLY_HIGHER
        return size_bytes > (least * known.size_bytes if known else 0)

    def take(
        self, subject: str, at_seconds: float, size_bytes: int, processes: Sequence[tuple[int, str, int]]
    ) -> None:
        """Take a new peak, with the pid, name and size of every process that held a part of it."""
        largest = sorted(processes, key=lambda process: -process[2])[:_MOST_PROCESSES]
        parts = tuple(PeakProcess(*process) for process in largest)
        self._latest[subject] = PeakMoment(subject, at_seconds, size_bytes, len(processes), parts)
        self._new.append(subject)

    def has_new(self) -> bool:
        """Whether a peak was taken whose regions have not been added."""
        return bool(self._new)

    def add_regions(self, paths: Iterable[tuple[str, ...]]) -> None:
        """These regions were open at the peaks just taken."""
        regions = _find_innermost(paths)
        for subject in self._new:
            self._latest[subject] = self._latest[subject]._replace(regions=regions)
        self._new.clear()

    def list_latest(self) -> tuple[PeakMoment, ...]:
        """The latest peak of each subject."""
        return tuple(self._latest.values())

    def list_unwritten(self, *, is_last: bool = False) -> list[PeakMoment]:
        """What must still be written."""
        least = 1.0 if is_last else _NOTABLY_HIGHER
        return [
            moment
            for subject, moment in self._latest.items()
            if moment.size_bytes > least * self._written_bytes.get(subject, 0)
        ]

    def note_written(self, moment: PeakMoment) -> None:
        """It has been written."""
        self._written_bytes[moment.subject] = moment.size_bytes


def _find_innermost(paths: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    every = dict.fromkeys(paths)
    outer = {path[:depth] for path in every for depth in range(1, len(path))}
    return tuple(path for path in every if path not in outer)[:_MOST_REGIONS]
