"""The energy of a run, and the carbon dioxide that it caused. Pure.

Devices are metered by their drivers, or their power is added up over time; processors by their own meters, each as a whole: others who use them are included.
"""

from __future__ import annotations

import math

from ..core.model import EXACT, UNMETERED
from ..core.units import humanize_number
from ..core.values import NamedTuple
from .summary import find_missing, find_unmetered_seconds, summarize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.model import RecordingData

NOT_RECORDED = "It was not recorded."
_JOULES_PER_KILOWATT_HOUR = 3.6e6
_GRAMS_PER_KILOGRAM = 1000


class GpuEnergy(NamedTuple):
    """One device."""

    uuid: str
    ordinal: int
    name: str
    joules: float
    seconds: float
    """The time that the meter was read for."""
    missing_seconds: float = 0.0
    """How much of the run that is without; 0 if it is not worth a word."""
    label: str = ""
    """What it is called."""
    basis: str = EXACT
    """By the driver's meter, or an estimate from its power."""


class Energy(NamedTuple):
    """The energy of one run. None is not measured."""

    gpus: tuple[GpuEnergy, ...]
    """The devices that count for the job, as a whole."""
    gpu_joules: float | None
    cpu_joules: float | None
    """All processors of the machine. This and the next include what others did there."""
    memory_joules: float | None
    """All memory of the machine, where it has a meter of its own."""
    machine_seconds: float | None
    """The time that these two cover."""
    cpu_reason: str
    """Why the processors were not metered."""
    total_joules: float | None
    """What is known of all of it."""
    machine_missing_seconds: float = 0.0
    """How much of the run the meters of the machine are without; 0 if that is not worth a word."""
    unmetered_gpus: tuple[str, ...] = ()
    """What the devices are called that count for the job, and of which nothing is known."""


class CarbonFactor(NamedTuple):
    """How much carbon dioxide the electricity causes, as the user states it."""

    grams_per_kilowatt_hour: float
    pue: float = 1.0
    """Power usage effectiveness: what the building draws for each unit that a machine draws."""


class Carbon(NamedTuple):
    """The carbon dioxide of one or more runs."""

    factor: CarbonFactor
    kilowatt_hours: float | None
    """This and the next: None if no energy was measured."""
    grams: float | None
    formula: str


def summarize_energy(recording: RecordingData) -> Energy:
    """The energy of a recording."""
    machine, seconds = recording.totals.energy, recording.totals.at_seconds
    counted = [gpu for gpu in summarize(recording).gpus if gpu.is_expected]
    gpus = tuple(
        GpuEnergy(
            gpu.gpu.uuid,
            gpu.gpu.ordinal,
            gpu.gpu.name,
            gpu.energy_joules,
            gpu.energy_seconds,
            find_unmetered_seconds(gpu, seconds),
            gpu.gpu.label,
            gpu.energy_basis,
        )
        for gpu in counted
        if gpu.energy_joules is not None
    )
    gpu_joules = sum(gpu.joules for gpu in gpus) if gpus else None
    reasons = (event.text for event in recording.events if event.kind == UNMETERED)
    return Energy(
        gpus=gpus,
        gpu_joules=gpu_joules,
        cpu_joules=machine.processors_joules,
        memory_joules=machine.memory_joules,
        machine_seconds=machine.seconds,
        cpu_reason="" if machine.processors_joules is not None else next(reasons, NOT_RECORDED),
        total_joules=add_joules(gpu_joules, machine.processors_joules, machine.memory_joules),
        machine_missing_seconds=0.0 if machine.seconds is None else find_missing(machine.seconds, seconds),
        unmetered_gpus=tuple(gpu.gpu.label for gpu in counted if gpu.energy_joules is None),
    )


def add_joules(*parts: float | None) -> float | None:
    """The sum of what is known; None if nothing is."""
    known = [part for part in parts if part is not None and math.isfinite(part)]
    return sum(known) if known else None


def estimate_carbon(joules: float | None, factor: CarbonFactor | None) -> Carbon | None:
    """The carbon dioxide of that much energy; None without a factor."""
    if factor is None:
        return None
    if joules is None:
        return Carbon(factor, None, None, "not known: no energy was measured")
    kilowatt_hours = joules / _JOULES_PER_KILOWATT_HOUR
    grams = kilowatt_hours * factor.pue * factor.grams_per_kilowatt_hour
    pue = "" if factor.pue == 1 else f" x {factor.pue:g} (PUE)"
    formula = f"{humanize_number(kilowatt_hours)} kWh{pue} x {factor.grams_per_kilowatt_hour:g} g/kWh"
    mass = (
        f"{humanize_number(grams)} g"
        if grams < _GRAMS_PER_KILOGRAM
        else f"{humanize_number(grams / _GRAMS_PER_KILOGRAM)} kg"
    )
    return Carbon(factor, kilowatt_hours, grams, f"{mass} = {formula}")
