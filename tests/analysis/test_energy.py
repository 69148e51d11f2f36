"""Energy and carbon dioxide of a run."""

from __future__ import annotations

import pytest

from builders import found, gpu, gpu_totals, recording, totals
from gpu_tracker.analysis.energy import CarbonFactor, add_joules, estimate_carbon, summarize_energy
from gpu_tracker.core.model import Event, MachineEnergy


def test_every_meter_is_told_apart() -> None:
    """Devices by their drivers, the machine by its own; the sum is of what is known."""
    counter, peak = gpu_totals()
    peaks = totals().peaks._replace(gpus=(peak,))
    made = totals(gpu_counters=(counter,), peaks=peaks, energy=MachineEnergy(700.0, 300.0, 9.5))
    energy = summarize_energy(recording(events=(found(gpu(0)), found(gpu(1))), totals=made))

    assert [(device.ordinal, device.label, device.joules, device.seconds) for device in energy.gpus] == [
        (0, "0", 2500.0, 10.0)
    ]
    assert (energy.gpu_joules, energy.cpu_joules, energy.memory_joules) == (2500.0, 700.0, 300.0)
    assert (energy.total_joules, energy.machine_seconds, energy.cpu_reason) == (3500.0, 9.5, "")


@pytest.mark.parametrize(("metered", "missing"), [(4.0, 6.0), (9.8, 0.2), (9.9, 0.0)])
def test_time_without_a_reading_is_missing(metered: float, missing: float) -> None:
    """Of a device and of the machine; hardly any is not worth a word."""
    counter, peak = gpu_totals()
    peaks = totals().peaks._replace(gpus=(peak,))
    counters = (counter._replace(energy_seconds=metered),)
    made = totals(gpu_counters=counters, peaks=peaks, energy=MachineEnergy(700.0, None, 7.0))
    energy = summarize_energy(recording(events=(found(gpu(0)),), totals=made))

    assert energy.gpus[0].missing_seconds == pytest.approx(missing)
    assert energy.machine_missing_seconds == 3.0


def test_what_is_not_metered_is_unknown_with_the_reason() -> None:
    """Not 0."""
    events = (Event(0.0, "unmetered", "For root only."),)

    assert summarize_energy(recording(events=events)) == (
        (),
        None,
        None,
        None,
        None,
        "For root only.",
        None,
        0.0,
        (),
    )
    assert summarize_energy(recording()).cpu_reason == "It was not recorded."
    assert add_joules(None, float("nan")) is None


def test_carbon_dioxide_needs_a_stated_factor() -> None:
    """And the formula is told, with what the building adds if that was stated."""
    plain = estimate_carbon(1.8e6, CarbonFactor(381.0))
    building = estimate_carbon(1.8e6, CarbonFactor(381.0, 1.5))

    assert estimate_carbon(1.8e6, None) is None
    assert plain is not None
    assert plain.grams == pytest.approx(190.5)
    assert plain.formula == "190 g = 0.5 kWh x 381 g/kWh"
    assert building is not None
    assert building.grams == pytest.approx(285.75)
    assert building.formula == "286 g = 0.5 kWh x 1.5 (PUE) x 381 g/kWh"


def test_much_carbon_dioxide_is_in_kilograms() -> None:
    """The figure stays in grams."""
    much = estimate_carbon(3.6e9, CarbonFactor(713.0))

    assert much is not None
    assert much.grams == pytest.approx(713e3)
    assert much.formula == "713 kg = 1000 kWh x 713 g/kWh"


def test_without_energy_there_is_no_carbon_figure() -> None:
    """Although one was asked for."""
    carbon = estimate_carbon(None, CarbonFactor(381.0))

    assert carbon is not None
    assert (carbon.grams, carbon.formula) == (None, "not known: no energy was measured")
