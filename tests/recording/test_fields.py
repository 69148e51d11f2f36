"""A value holds what its class says."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.model import GpuCounters, MetricRow, RamPeak
from gpu_tracker.recording.fields import check


@pytest.mark.parametrize(
    "value",
    [
        GpuCounters("a", limited_seconds=(("heat", 1.5), ("power", 2))),
        GpuCounters("a", energy_joules=None),
        MetricRow(1, {"loss": 1e300, "n": 3}),
        RamPeak(2**63 - 1),
    ],
)
def test_what_fits_is_accepted(value: Any) -> None:
    """Whole numbers are numbers too."""
    check(value)


@pytest.mark.parametrize(
    "value",
    [
        GpuCounters("a", limited_seconds=(("heat", float("inf")),)),
        GpuCounters("a", limited_seconds=(("heat", 2**63),)),
        GpuCounters("a", limited_seconds=(("heat", [1.0]),)),  # type: ignore[arg-type]
        GpuCounters("a", energy_joules="5"),  # type: ignore[arg-type]
        MetricRow(1.0, {"loss": 10**400}),
        MetricRow(1.0, {"loss": "low"}),  # type: ignore[dict-item]
        RamPeak(2**63),
        RamPeak(1.5),  # type: ignore[arg-type]
        RamPeak(True),
    ],
)
def test_what_does_not_fit_is_refused(value: Any) -> None:
    """Of another type, not finite, or out of this world."""
    with pytest.raises(ValueError):
        check(value)
