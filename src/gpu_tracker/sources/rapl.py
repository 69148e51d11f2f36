"""Linux: the energy meters of processors and their memory (RAPL), through /sys/class/powercap.

They count for the whole machine, and on most systems only root may read them.
"""

from __future__ import annotations

import os

from ..core.model import MEMORY_METER, PROCESSOR_METER, EnergyReading
from ..core.values import NamedTuple
from . import NotAvailableError
from .files import read_text

_MICRO = 1e-6
# The mmio zones count the same energy again.
_PREFIX = "intel-rapl:"


class _Zone(NamedTuple):
    path: str
    kind: str
    range_joules: float | None


class EnergyMeters:
    """The meters that can be read here."""

    def __init__(self, zones: tuple[_Zone, ...]) -> None:
        self._zones = zones

    def read(self) -> tuple[EnergyReading, ...]:
        """All that can be read now."""
        readings = []
        for zone in self._zones:
            joules = _read_joules(f"{zone.path}/energy_uj")
            if joules is not None:
                readings.append(
                    EnergyReading(os.path.basename(zone.path), zone.kind, joules, zone.range_joules)
                )
        return tuple(readings)


def connect(*, sys: str = "/sys") -> EnergyMeters:
    """The meters; NotAvailableError says why there are none."""
    directory = f"{sys}/class/powercap"
    try:
        names = sorted(name for name in os.listdir(directory) if name.startswith(_PREFIX))
    except OSError:
        names = []
    zones = tuple(filter(None, (_find_zone(f"{directory}/{name}") for name in names)))
    if not zones:
        raise NotAvailableError("The kernel offers no energy meters of the processors (RAPL) here.")
    readable = tuple(zone for zone in zones if _read_joules(f"{zone.path}/energy_uj") is not None)
    if not readable:
        raise NotAvailableError(
            f"The processors' energy meters cannot be read: {zones[0].path}/energy_uj is for root only. "
            "An administrator can allow it (chmod a+r)."
        )
    return EnergyMeters(readable)


def _find_zone(path: str) -> _Zone | None:
    """A whole processor, or its memory. Parts of a processor are in it already, and the platform has it in itself."""
    try:
        name = read_text(f"{path}/name").strip()
    except OSError:
        return None
    kind = PROCESSOR_METER if name.startswith("package") else MEMORY_METER if name == "dram" else None
    return None if kind is None else _Zone(path, kind, _read_joules(f"{path}/max_energy_range_uj"))


def _read_joules(path: str) -> float | None:
    try:
        return int(read_text(path)) * _MICRO
    except (OSError, ValueError):
        return None
