"""Rates between two observations."""

from __future__ import annotations

from gpu_tracker.analysis.rates import busy_cores, busy_cores_by_pid, busy_percent
from gpu_tracker.core.observation import Holder, MachineState
from observed import observation


def test_rates_are_differences_over_time() -> None:
    """Four of the machine's cores, two of the process's."""
    before, after = observation(at=100.0), observation(at=102.0)

    assert busy_cores(before, after) == 4.0
    assert busy_cores_by_pid(before, after) == {4242: 2.0}


def test_a_machine_is_never_busier_than_its_cores() -> None:
    """Its counter has coarse steps."""
    before, after = (
        observation(at=at, machine=MachineState(8, None, cpu_seconds=8.1 * at)) for at in (100.0, 101.0)
    )

    assert busy_percent(before, after) == 100.0


def test_one_observation_has_no_rates() -> None:
    """Nor have two at the same time, or without a counter."""
    seen = observation()
    blind = observation(at=101.0, machine=MachineState(8, None))

    assert busy_cores(None, seen) is None
    assert busy_cores_by_pid(None, seen) == {}
    assert busy_cores(seen, seen) is None
    assert busy_cores(seen, blind) is None
    assert busy_cores(blind, seen) is None


def test_a_reused_pid_has_no_rate() -> None:
    """The new process has used less than the old one; a newcomer was not there before."""
    before = observation(at=100.0, holders=(Holder(1, cpu_seconds=50.0),))
    after = observation(at=101.0, holders=(Holder(1, cpu_seconds=1.0), Holder(2, cpu_seconds=1.0)))

    assert busy_cores_by_pid(before, after) == {}
