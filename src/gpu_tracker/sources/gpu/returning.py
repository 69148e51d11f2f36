"""A source whose devices come back after they were lost: a reset, a driver loaded again, a card plugged in again. Pure.

A device that has once answered and no longer does is looked for again, ever more rarely, by connecting anew. So is one
that could not be opened, and one that is new at once. The others keep their source, and what it remembers, until the new
one has found it.
"""

from __future__ import annotations

from ...core.model import GpuReadings
from .guard import choose_pause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ...core.model import Gpu
    from .. import GpuSource


class ReturningSource:
    """Connects again when devices are missing. `gpus` only grows: at its end are those found later."""

    is_outdated = False

    def __init__(self, connect: Callable[[], GpuSource], now: Callable[[], float]) -> None:
        self._connect = connect
        self._now = now
        self._source: GpuSource | None = None
        self.gpus: tuple[Gpu, ...] = ()
        self.unopened: tuple[Gpu, ...] = ()
        self.reasons: Mapping[tuple[str, str], str] = {}
        self.kinds: Mapping[tuple[str, str], str] = {}
        self.poll_seconds = float("inf")
        self._answered: set[str] = set()
        """Those that ever have."""
        self._missing_seconds: float | None = None
        """Since when one is missing."""
        self._retry_seconds = 0.0
        self._notes: list[str] = []
        self._said: set[str] = set()
        self._use(connect())

    def read(self, pids: frozenset[int] | None) -> GpuReadings:
        """Read every device, and what these processes use of it."""
        if self._source is None:
            readings = GpuReadings(self._now(), (), ())
        else:
            readings = self._source.read(pids)
            self._explain(self._source)
        answering = _find_answering(readings)
        self._answered |= answering
        began_seconds = self._now()
        if self._answered <= answering and not self._has_others():
            self._missing_seconds = None
            return readings
        if self._missing_seconds is None:
            self._missing_seconds = began_seconds
            self._retry_seconds = began_seconds + (0.0 if self._has_new() else choose_pause(0.0, 0.0))
        if began_seconds < self._retry_seconds:
            return readings
        found = self._look_again(pids, readings, answering)
        now = self._now()
        self._retry_seconds = now + choose_pause(now - self._missing_seconds, now - began_seconds)
        return found

    def collect(self) -> None:
        """Fetch samples for the next reading."""
        if self._source is not None:
            self._source.collect()

    def expect_end(self) -> None:
        """The next reading is the last."""
        if self._source is not None:
            self._source.expect_end()

    def read_details(self, names: Collection[str]) -> Mapping[str, Mapping[str, float | str]]:
        """Less common figures, as they are reported."""
        if self._source is None:
            return {}
        details = self._source.read_details(names)
        self._explain(self._source)
        return details

    def take_notes(self) -> tuple[str, ...]:
        """Sentences for the user since the last call; a new source need not repeat those of the one before."""
        self._keep_notes()
        notes, self._notes = self._notes, []
        return tuple(notes)

    def close(self) -> None:
        """Release all resources."""
        if self._source is not None:
            self._source.close()
            self._source = None

    def _has_others(self) -> bool:
        """Whether there are devices that only a new connection can find."""
        return bool(self.unopened) or self._has_new()

    def _has_new(self) -> bool:
        return self._source is not None and self._source.is_outdated

    def _look_again(
        self, pids: frozenset[int] | None, readings: GpuReadings, answering: set[str]
    ) -> GpuReadings:
        """Connect anew, and stay with it if more devices answer."""
        if not answering:
            self._keep_notes()
            self.close()  # a driver that was loaded again answers only those who have left it
        try:
            source = self._connect()
        except Exception:  # noqa: BLE001 - it is still not there
            return readings
        found = source.read(pids)
        self._note_unopened(source)
        if not _find_answering(found) - answering:
            source.close()
            return readings
        self._keep_notes()
        self.close()
        self._use(source)
        self._answered |= _find_answering(found)
        return found._replace(faults=readings.faults + found.faults)

    def _use(self, source: GpuSource) -> None:
        self._source = source
        # Of a device that was split, the instances answer.
        self._answered -= {gpu.uuid for gpu in source.gpus if gpu.is_split}
        known = {gpu.uuid for gpu in self.gpus}
        self.gpus += tuple(gpu for gpu in source.gpus if gpu.uuid not in known)
        self._note_unopened(source)
        self.poll_seconds = source.poll_seconds
        self._explain(source)

    def _note_unopened(self, source: GpuSource) -> None:
        """Those that are known have been lost since."""
        known = {gpu.ordinal for gpu in self.gpus}
        self.unopened = tuple(gpu for gpu in source.unopened if gpu.ordinal not in known)

    def _explain(self, source: GpuSource) -> None:
        self.reasons, self.kinds = source.reasons, source.kinds

    def _keep_notes(self) -> None:
        if self._source is None:
            return
        for note in self._source.take_notes():
            if note not in self._said:
                self._said.add(note)
                self._notes.append(note)


def _find_answering(readings: GpuReadings) -> set[str]:
    """The devices of which anything is known; one that sleeps is not lost."""
    known = {
        reading.uuid
        for reading in readings.devices
        if not (reading.used_bytes is None and reading.utilization_percent is None)
    }
    return known.union(readings.asleep)
