"""Energy and carbon dioxide as rows of a report."""

from __future__ import annotations

import json
from html import unescape

from builders import found, gpu, gpu_totals, recording, render_str, totals
from gpu_tracker.analysis.energy import CarbonFactor
from gpu_tracker.core.model import Event, MachineEnergy, RecordingData
from gpu_tracker.reports.build import build
from gpu_tracker.reports.choices import Choices
from gpu_tracker.reports.energy_lines import format_gpu_energy, list_unmetered

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


def test_energy_of_a_part_of_the_time_says_so() -> None:
    """And so does the carbon dioxide of it, in every format."""
    made = metered(MachineEnergy(700.0, None, 4.0))
    (counter,) = made.totals.gpu_counters
    made = made._replace(totals=made.totals._replace(gpu_counters=(counter._replace(energy_seconds=3.0),)))
    report = build(made, choices=Choices(factor=FACTOR))
    missing = "GPU 0 without 7 s of the time"

    for format_name in ("text", "html"):
        page = unescape(render_str(report, format_name))
        assert f"1 GPU 2500 J (by the driver's meter, whole devices; {missing});" in page
        assert "CPU 700 J (by RAPL, whole machine; CPU without 6 s of the time)" in page
        assert f"381 g/kWh ({missing}; CPU without 6 s of the time)" in page
    assert f"381 g/kWh ({missing}; CPU without 6 s of the time)" in render_str(report, "markdown")
    assert "2500 J, without 7 s of the time" in render_str(report, "html")


def test_energy_of_a_device_without_a_meter_is_an_estimate() -> None:
    """In every format; of several devices, some may be metered."""
    report = build(metered(MachineEnergy(), Event(1.0, "integrated", "GPU-0")))
    assert report.energy is not None
    (one,) = report.energy.gpus
    both = report.energy._replace(gpus=(one, one._replace(basis="exact")))

    assert "1 GPU 2500 J (estimated from power, whole devices)" in render_str(report)
    assert "2500 J estimated from power, mean 250 W (whole device)" in render_str(report)
    assert "estimated from power, whole device" in render_str(report, "html")
    assert "2500 J, estimate" in render_str(report, "html")
    assert "2500 J (estimated from power)" in render_str(report, "markdown")
    assert json.loads(render_str(report, "json"))["summary"]["gpus"][0]["energy_basis"] == "estimate"
    assert format_gpu_energy(both) == "2500 J (partly estimated from power)"


def test_devices_that_were_not_always_metered_are_named_or_counted() -> None:
    """Up to three, with the time of each."""
    few = [("GPU 0", 7.0), ("GPU 1", 0.0), ("GPU 2", 8.0)]

    assert list_unmetered(few) == ["GPU 0 without 7 s of the time", "GPU 2 without 8 s of the time"]
    assert list_unmetered([*few, *few]) == ["4 GPUs without up to 8 s of the time"]


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
    assert "energy  GPUs not measured; CPU energy not recorded" in text
    assert "CO2     not known: no energy was measured" in text
    assert format_gpu_energy(build(recording()).energy) == format_gpu_energy(None) == "-"


def test_json_has_the_energy_and_the_formula() -> None:
    """In joules, kWh and grams."""
    shown = json.loads(
        render_str(build(metered(MachineEnergy(700.0)), choices=Choices(factor=FACTOR)), "json")
    )

    assert shown["energy"]["total_joules"] == 3200.0
    assert shown["carbon"]["factor"] == {"grams_per_kilowatt_hour": 381.0, "pue": 1.2}
    assert shown["carbon"]["formula"].endswith("kWh x 1.2 (PUE) x 381 g/kWh")
