"""Meters that begin again at 0."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.accounts.energy import EnergyAccount
from gpu_tracker.core.model import MEMORY_METER, PROCESSOR_METER, EnergyReading, MachineEnergy

RANGE = 65_536.0


def package(joules: float, zone: str = "0", range_joules: float | None = RANGE) -> EnergyReading:
    """The meter of a processor."""
    return EnergyReading(zone, PROCESSOR_METER, joules, range_joules)


def dram(joules: float) -> EnergyReading:
    """The meter of its memory."""
    return EnergyReading("0:0", MEMORY_METER, joules, RANGE)


def test_energy_counts_from_the_first_reading() -> None:
    """All processors together, and memory apart."""
    account = EnergyAccount()
    assert account.energy == MachineEnergy()
    account.take(0.0, [package(1000.0), package(50.0, "1"), dram(7.0)])
    account.take(1.0, [package(1100.0), package(90.0, "1"), dram(8.5)])

    assert account.energy == MachineEnergy(140.0, 1.5, 1.0)


def test_a_full_meter_begins_again() -> None:
    """Which costs nothing."""
    account = EnergyAccount()
    account.take(0.0, [package(RANGE - 60.0)])
    account.take(1.0, [package(40.0)])

    assert account.energy == MachineEnergy(100.0, None, 1.0)


@pytest.mark.parametrize("wrong", [package(40.0, range_joules=None), package(40.0, range_joules=30.0)])
def test_a_meter_that_goes_back_for_no_known_reason_is_not_believed(wrong: EnergyReading) -> None:
    """Nor is that time counted."""
    account = EnergyAccount()
    account.take(0.0, [wrong._replace(joules=1e6)])
    account.take(0.01, [wrong])
    account.take(0.02, [wrong._replace(joules=45.0)])

    assert account.energy == MachineEnergy(5.0, None, 0.01)


def test_a_gap_in_which_a_meter_may_have_begun_again_twice_is_left_out() -> None:
    """The sampler may have been stopped for hours."""
    account = EnergyAccount()
    account.take(0.0, [package(100.0)])
    account.take(3600.0, [package(200.0)])
    account.take(3601.0, [package(250.0)])

    assert account.energy == MachineEnergy(50.0, None, 1.0)


def test_a_meter_that_vanishes_keeps_what_it_had() -> None:
    """Others go on."""
    account = EnergyAccount()
    account.take(0.0, [package(0.0), package(0.0, "1")])
    account.take(1.0, [package(10.0), package(20.0, "1")])
    account.take(2.0, [package(30.0)])

    assert account.energy.processors_joules == 50.0


@given(st.lists(st.floats(0.0, 1000.0), min_size=1, max_size=200), st.floats(0.0, RANGE - 1))
def test_nothing_is_lost_however_often_it_begins_again(steps: list[float], start: float) -> None:
    """The sum of what was drawn, each second."""
    account, true = EnergyAccount(), 0.0
    account.take(0.0, [package(start)])
    for number, step in enumerate(steps, 1):
        true += step
        account.take(float(number), [package((start + true) % RANGE)])

    assert account.energy.processors_joules == pytest.approx(true, abs=1e-3)
