"""Energy of the whole machine since the start, from meters that begin again at 0 when they are full. Pure."""

from __future__ import annotations

from ..core.model import MEMORY_METER, PROCESSOR_METER, EnergyReading, MachineEnergy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# No processor draws more: in the time that this fills a meter, it may have begun again more than once.
_MOST_WATTS = 1500.0


class EnergyAccount:
    """The meters of one machine."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[float, EnergyReading]] = {}
        self._joules: dict[str, tuple[str, float]] = {}
        self._seconds = 0.0

    def take(self, at_seconds: float, readings: Iterable[EnergyReading]) -> None:
        """Take a reading. Energy of a time that is too long to be sure of is not counted, nor is that time."""
        covered = 0.0
        for reading in readings:
            before_seconds, before = self._latest.get(reading.zone, (at_seconds, reading))
            used = _subtract(reading, before, at_seconds - before_seconds)
            _, known = self._joules.get(reading.zone, ("", 0.0))
            if used is not None:
                self._joules[reading.zone] = reading.kind, known + used
                covered = max(covered, at_seconds - before_seconds)
            self._latest[reading.zone] = at_seconds, reading
        self._seconds += covered

    @property
    def energy(self) -> MachineEnergy:
        """Since the first reading."""
        return MachineEnergy(
            self._add(PROCESSOR_METER), self._add(MEMORY_METER), self._seconds if self._joules else None
        )

    def _add(self, kind: str) -> float | None:
        known = [joules for metered, joules in self._joules.values() if metered == kind]
        return sum(known) if known else None


def _subtract(now: EnergyReading, before: EnergyReading, seconds: float) -> float | None:
    whole = now.range_joules
    if whole and seconds * _MOST_WATTS > whole:
        return None
    used = now.joules - before.joules
    if used >= 0:
        return used
    return used + whole if whole and used + whole >= 0 else None
