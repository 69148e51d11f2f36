"""The meters of processors, in made-up sysfs trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_tracker.core.model import MEMORY_METER, PROCESSOR_METER, EnergyReading
from gpu_tracker.sources import NotAvailableError
from gpu_tracker.sources.rapl import connect


def add_zone(
    sys: Path, zone: str, name: str, joules: float | None, range_joules: float | None = 262e3
) -> None:
    """A meter as the kernel shows it; without joules it cannot be read."""
    directory = sys / "class/powercap" / zone
    directory.mkdir(parents=True)
    (directory / "name").write_text(f"{name}\n")
    if range_joules is not None:
        (directory / "max_energy_range_uj").write_text(f"{range_joules * 1e6:.0f}\n")
    if joules is None:
        (directory / "energy_uj").mkdir()  # not even root can read this
    else:
        (directory / "energy_uj").write_text(f"{joules * 1e6:.0f}\n")


def test_processors_and_their_memory_are_read(tmp_path: Path) -> None:
    """But not their parts, nor the whole platform, nor the same meters by another way."""
    add_zone(tmp_path, "intel-rapl:0", "package-0", 12.5)
    add_zone(tmp_path, "intel-rapl:0:0", "core", 9.0)
    add_zone(tmp_path, "intel-rapl:0:1", "dram", 1.5, None)
    add_zone(tmp_path, "intel-rapl:1", "package-1", 30.0)
    add_zone(tmp_path, "intel-rapl:2", "psys", 99.0)
    add_zone(tmp_path, "intel-rapl-mmio:0", "package-0", 12.5)
    (tmp_path / "class/powercap/intel-rapl:3").mkdir()
    (tmp_path / "class/powercap/dtpm").mkdir()

    assert connect(sys=str(tmp_path)).read() == (
        EnergyReading("intel-rapl:0", PROCESSOR_METER, 12.5, 262e3),
        EnergyReading("intel-rapl:0:1", MEMORY_METER, 1.5, None),
        EnergyReading("intel-rapl:1", PROCESSOR_METER, 30.0, 262e3),
    )


def test_a_machine_without_meters_says_so(tmp_path: Path) -> None:
    """Most virtual ones have none."""
    with pytest.raises(NotAvailableError, match=r"no energy meters of the processors \(RAPL\)"):
        connect(sys=str(tmp_path))


def test_meters_for_root_only_say_how_to_open_them(tmp_path: Path) -> None:
    """That is what most systems have."""
    add_zone(tmp_path, "intel-rapl:0", "package-0", None)

    with pytest.raises(NotAvailableError, match=r"energy_uj is for root only.*chmod"):
        connect(sys=str(tmp_path))


def test_a_meter_that_fails_later_is_left_out(tmp_path: Path) -> None:
    """The others are still read."""
    add_zone(tmp_path, "intel-rapl:0", "package-0", 1.0)
    add_zone(tmp_path, "intel-rapl:1", "package-1", 2.0)
    meters = connect(sys=str(tmp_path))
    (tmp_path / "class/powercap/intel-rapl:0/energy_uj").write_text("nonsense")

    assert [reading.zone for reading in meters.read()] == ["intel-rapl:1"]
