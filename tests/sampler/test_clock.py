"""Deadlines, not sleeps."""

from __future__ import annotations

import pytest

from gpu_tracker.sampler.clock import Deadlines


def test_delays_do_not_add_up() -> None:
    """Being late for one deadline does not move the next."""
    deadlines = Deadlines(100.0, 1.0)
    assert deadlines.wait_seconds(100.25) == 0.75
    assert deadlines.strike(101.25) == 0.25
    assert deadlines.next_seconds == 102.0


def test_missed_deadlines_are_skipped() -> None:
    """A sampler that was stopped does not catch up in a burst."""
    deadlines = Deadlines(0.0, 1.0)

    assert deadlines.strike(5.5) == pytest.approx(4.5)
    assert deadlines.next_seconds == 6.0
    assert deadlines.wait_seconds(7.0) == 0
