"""Energy through the whole tool: the simulated driver's meter, and those of processors in a made-up /sys."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from end_to_end.launch import COMMAND_LINE
from end_to_end.test_gpus import ENTER, needs_namespace, track
from nvml_simulator import Code, Simulator, build

RANGE_MICROJOULES = 65_532_610_987


@pytest.fixture
def hardware(tmp_path: Path) -> Iterator[Simulator]:
    """A device whose meter stands at 1000 J."""
    with Simulator(build(tmp_path), tmp_path / "state") as simulator:
        simulator.add_device(uuid="GPU-a", name="NVIDIA A100", power_limit_watts=1000.0)
        simulator.set_energy_joules(0, 1000.0)
        yield simulator


def test_a_device_is_metered_by_its_driver(hardware: Simulator) -> None:
    """For the run and for its region, and in grams if a factor is stated."""
    job = (
        "import gpu_tracker as gput\nfrom nvml_simulator import Simulator\ndevices = Simulator.open()\n"
        "devices.set_process(0, os.getpid(), 5); time.sleep(1.0)\n"
        "with gput.region('step'):\n"
        "    for joules in range(1_090, 4_601, 90): time.sleep(0.1); devices.set_energy_joules(0, joules)\n"
    )
    report, _ = track(job, "--carbon", "381", environment=hardware.environment())
    energy, carbon = report["energy"], report["carbon"]

    assert [(device["uuid"], device["joules"]) for device in energy["gpus"]] == [("GPU-a", 3_600.0)]
    assert energy["gpu_joules"] == energy["total_joules"] == 3_600.0
    # What the meter moves first, it may have counted since it was read first.
    assert [region["energy_joules"] for region in report["regions"]] == pytest.approx([3_600.0], abs=180.0)
    assert carbon["formula"] == "0.381 g = 0.001 kWh x 381 g/kWh"
    assert energy["cpu_reason"]


def test_a_device_without_a_meter_is_estimated_from_its_power(hardware: Simulator) -> None:
    """For the run and for its region, and said so."""
    hardware.fail("nvmlDeviceGetTotalEnergyConsumption", Code.NOT_SUPPORTED)
    hardware.set_power_watts(0, 100.0)
    job = (
        "import gpu_tracker as gput\nfrom nvml_simulator import Simulator\ndevices = Simulator.open()\n"
        "devices.set_process(0, os.getpid(), 5)\n"
        "time.sleep(2.0)\n"
        "with gput.region('step'):\n"
        "    devices.set_power_watts(0, 300.0); time.sleep(3.0); devices.set_power_watts(0, 100.0)\n"
        "time.sleep(2.0)\n"
    )
    report, _ = track(job, environment=hardware.environment())
    (gpu,), (region,) = report["summary"]["gpus"], report["regions"]
    drawn = 100.0 * report["summary"]["seconds"] + 200.0 * region["wall_seconds"]

    assert gpu["energy_basis"] == "estimate"
    assert gpu["energy_joules"] == pytest.approx(drawn, rel=0.1)
    # A region has what was drawn from one reading to the next while it was open.
    assert region["energy_joules"] == pytest.approx(300.0 * region["wall_seconds"], abs=300.0)


def add_meter(sys_tree: Path, zone: str, name: str, microjoules: int) -> Path:
    """A meter of a processor; its file."""
    directory = sys_tree / "class/powercap" / zone
    directory.mkdir(parents=True)
    (directory / "name").write_text(f"{name}\n")
    (directory / "max_energy_range_uj").write_text(f"{RANGE_MICROJOULES}\n")
    (directory / "energy_uj").write_text(f"{microjoules}\n")
    return directory / "energy_uj"


@needs_namespace
def test_processors_are_metered_for_the_whole_machine(tmp_path: Path) -> None:
    """Also if a meter is full during the run, and begins again."""
    package = add_meter(tmp_path, "intel-rapl:0", "package-0", RANGE_MICROJOULES - 40 * 10**6)
    memory = add_meter(tmp_path, "intel-rapl:0:0", "dram", 5 * 10**6)
    job = (
        f"time.sleep(1.5); open({str(package)!r}, 'w').write('{60 * 10**6}')\n"
        f"open({str(memory)!r}, 'w').write('{12 * 10**6}'); time.sleep(1.5)"
    )
    inside = ("unshare", "--mount", "sh", "-c", ENTER, "sh", str(tmp_path))
    energy = track(job, "--gpu", "none", prefix=inside)[0]["energy"]

    assert (energy["cpu_joules"], energy["memory_joules"]) == (pytest.approx(100.0), pytest.approx(7.0))
    assert energy["total_joules"] == pytest.approx(107.0)
    assert energy["gpu_joules"] is None
    assert energy["cpu_reason"] == ""


@needs_namespace
def test_meters_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    """With what an administrator can do; in the report and by the doctor."""
    add_meter(tmp_path, "intel-rapl:0", "package-0", 5).unlink()
    inside = ("unshare", "--mount", "sh", "-c", ENTER, "sh", str(tmp_path))
    energy = track("time.sleep(0.1)", "--gpu", "none", prefix=inside)[0]["energy"]
    doctor = subprocess.run([*inside, COMMAND_LINE, "doctor"], capture_output=True, text=True, timeout=100)

    assert "is for root only. An administrator can allow it (chmod a+r)." in energy["cpu_reason"]
    assert energy["total_joules"] is None
    assert energy["cpu_reason"] in doctor.stdout
