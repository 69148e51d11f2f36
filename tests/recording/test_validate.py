"""Values match their annotations."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.core.model import (
    End,
    GpuCounters,
    GpuPeaks,
    Parts,
    RamPeak,
    RegionTotals,
    Spread,
    Totals,
    TreeCounters,
)
from gpu_tracker.recording.validate import check, check_metric_totals, check_metrics, check_order


@pytest.mark.parametrize(
    "value",
    [
        GpuCounters("a", limited_seconds=(("heat", 1.5), ("power", 2))),
        GpuCounters("a", energy_joules=None),
        GpuCounters("a", activity=((31.5, 1), (0.0, 0.0))),
        RamPeak(2**60),
        RegionTotals(1, ("a",), own_wall_seconds=-1e-9, own_cpu_seconds=-0.01, squared_seconds=1e18),
        End("exited", -9, Totals(), 0.0, 0, -1000),
        GpuPeaks("a", temperature_celsius=-5.0),
        Spread(-1.0, 0.0, 2.0**62),
    ],
)
def test_valid_values_are_accepted(value: Any) -> None:
    """Whole numbers are numbers too."""
    check(value)


@pytest.mark.parametrize(
    "value",
    [
        GpuCounters("a", limited_seconds=(("heat", float("inf")),)),
        GpuCounters("a", limited_seconds=(("heat", 2**63),)),
        GpuCounters("a", limited_seconds=(("heat", [1.0]),)),  # type: ignore[arg-type]
        GpuCounters("a", limited_seconds=(("heat", "1.0"),)),  # type: ignore[arg-type]
        GpuCounters("a", limited_seconds=((None, 1.0),)),  # type: ignore[arg-type]
        GpuCounters("a", limited_seconds=(("heat", 1.0, 2.0),)),  # type: ignore[arg-type]
        GpuCounters("a", limited_seconds=(5.0,)),  # type: ignore[arg-type]
        GpuCounters("a", limited_seconds=5.0),  # type: ignore[arg-type]
        GpuCounters("a", activity=(("31", 1.0),)),  # type: ignore[arg-type]
        GpuCounters("a", activity=((1.0, float("nan")),)),
        GpuCounters("a", energy_joules="5"),  # type: ignore[arg-type]
        Totals(peaks=5.0),  # type: ignore[arg-type]
        RamPeak(2**63),
        RamPeak(2**60 + 1),
        RamPeak(-1),
        End("exited", -(2**33), Totals(), 0.0, 0),
        Totals(at_seconds=-0.001),
        Totals(at_seconds=2.0**51),
        Totals(cpu_seconds=Parts(0.0, -7e9, 0.0)),
        Totals(counters=TreeCounters(read_bytes=-1)),
        GpuCounters("a", -1.0),
        GpuCounters("a", limited_seconds=(("heat", -1.0),)),
        GpuCounters("a", activity=((-1.0, 1.0),)),
        GpuCounters("a", traffic=(None, -1)),
        GpuPeaks("a", utilization_percent=9e18),
        RegionTotals(1, ("a",), calls=-1),
        RegionTotals(1, ("a",), wall_seconds=-7e9),
        RamPeak(1.5),  # type: ignore[arg-type]
        RamPeak(True),
    ],
)
def test_invalid_values_are_refused(value: Any) -> None:
    """Of another type, not finite, or a number that cannot be."""
    with pytest.raises(ValueError):
        check(value)


GOOD: dict[str, Any] = {
    "at": [1, 2.5],
    "pid": [7, 8],
    "step": [None, "nan"],
    "values": {"loss": [1e300, "nan"], "n": [None, 3]},
}


@pytest.mark.parametrize(
    "spread", [Spread(1, 2, 3), Spread(2, 2, 2), Spread(None, None, None), Spread(1, 3.0000001, 3)]
)
def test_a_mean_is_between_its_extremes(spread: Spread) -> None:
    """But for rounding, and unless nothing is known."""
    check_order(spread)


@pytest.mark.parametrize("spread", [Spread(5, 4, 3), Spread(5, 4, 6), Spread(1, 4, 3)])
def test_a_mean_beyond_an_extreme_is_refused(spread: Spread) -> None:
    """Below the smallest, or above the largest."""
    with pytest.raises(ValueError):
        check_order(spread)


def test_what_was_logged_after_the_run_is_refused() -> None:
    """However simple the rest is."""
    for step in (1.0, None):
        line = {"at": [9.0], "pid": [7], "step": [step], "values": {"loss": [1.0]}}
        check_metrics(line, 9.0)
        with pytest.raises(ValueError):
            check_metrics(line, 8.0)


def test_valid_columns_are_accepted() -> None:
    """Metrics may be nan, or of any size."""
    check_metrics(GOOD)
    check_metrics({"at": [], "pid": [], "step": [], "values": {}})


@pytest.mark.parametrize(
    "wrong",
    [
        {"at": [1, None]},
        {"at": [1, -1]},
        {"at": [1, -1], "step": [None, "nan"]},
        {"at": [1, 2**63]},
        {"pid": [7, 1.5]},
        {"pid": [7, True]},
        {"step": [None, "3"]},
        {"step": [10**400, 3]},
        {"values": {"loss": [1.0, 10**400]}},
        {"values": {"loss": [1.0, "low"]}},
        {"values": {"loss": [1.0, [2.0]]}},
    ],
)
def test_invalid_columns_are_refused(wrong: dict[str, Any]) -> None:
    """One value is enough."""
    with pytest.raises(ValueError):
        check_metrics({**GOOD, **wrong})


@pytest.mark.parametrize("wrong", [[-1, 0, 1.0, 1.0, 1.0, 1.0, 2.0], [1, 0, 1.0, 1.0, 1.0, 1.0, -2.0]])
def test_totals_of_metrics_have_counts_and_a_time_that_can_be(wrong: list[float]) -> None:
    """Their values may be anything."""
    check_metric_totals({"loss": [1, 0, -5.0, -5.0, -5.0, "nan", 2.0]})
    with pytest.raises(ValueError):
        check_metric_totals({"loss": wrong})
