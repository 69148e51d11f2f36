"""Energy and carbon dioxide as rows of a report."""

from __future__ import annotations

import json

from builders import found, gpu, gpu_totals, recording, render_str, totals
from gpu_tracker.analysis.energy import CarbonFactor
from gpu_tracker.core.model import Event, MachineEnergy, RecordingData
from gpu_tracker.reports.build import Choices, build

FACTOR = CarbonFactor(381.0, 1.2)


def metered(energy: MachineEnergy, *events: Event) -> RecordingData:
    """A run with a device of 2500 J, on a machine that used so much."""
    counter, peak = gpu_totals()
    peaks = totals().peaks._replace(gpus=(peak,))
    made = totals(gpu_counters=(counter,), peaks=peaks, energy=energy)
    return recording(events=(found(gpu()), *events), totals=made)


def test_every_meter_says_what_it_meters() -> None:
    """Devices and the machine, each as a whole."""
    text = render_str(build(metered(MachineEnergy(700.0, 300.0, 10.0)), choices=Choices(factor=FACTOR)))

    assert (
        "energy  1 GPU 2500 J (by the driver's meter, whole devices); CPU 700 J, memory 300 J (by RAPL, whole machine)"
        in text
    )
    assert "CO2     0.444 g = 0.000972 kWh x 1.2 (PUE) x 381 g/kWh" in text
    assert "CPU 700 J (by RAPL" in render_str(build(metered(MachineEnergy(700.0))))


def test_what_was_not_metered_has_its_reason() -> None:
    """Beside what was."""
    text = render_str(build(metered(MachineEnergy(), Event(0.0, "unmetered", "For root only."))))

    assert "whole devices); CPU not measured (For root only)" in text
    assert "note: For root only." not in text
    assert "CO2" not in text


def test_a_report_without_meters_is_silent_unless_asked() -> None:
    """Most jobs have neither."""
    assert "energy" not in render_str(build(recording()))
    text = render_str(build(recording(), choices=Choices(factor=FACTOR)))
    assert "energy  GPUs not measured; CPU not measured (It was not recorded)" in text
    assert "CO2     not known: no energy was measured" in text


def test_json_has_the_energy_and_the_formula() -> None:
    """In joules, kWh and grams."""
    shown = json.loads(
        render_str(build(metered(MachineEnergy(700.0)), choices=Choices(factor=FACTOR)), "json")
    )

    assert shown["energy"]["total_joules"] == 3200.0
    assert shown["carbon"]["factor"] == {"grams_per_kilowatt_hour": 381.0, "pue": 1.2}
    assert shown["carbon"]["formula"].endswith("kWh x 1.2 (PUE) x 381 g/kWh")
