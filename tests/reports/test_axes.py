"""Ticks of axes."""

from __future__ import annotations

import pytest

from gpu_tracker.reports.axes import list_times, list_values, name_times, name_value


@pytest.mark.parametrize(
    ("seconds", "names"),
    [
        (0.004, ["0 s", "0.001 s", "0.002 s", "0.003 s", "0.004 s"]),
        (10, ["0 s", "2 s", "4 s", "6 s", "8 s", "10 s"]),
        (100, ["0 s", "15 s", "30 s", "45 s", "60 s", "75 s", "90 s"]),
        (11_530, ["0 min", "30 min", "60 min", "90 min", "120 min", "150 min", "180 min"]),
        (30 * 86400, ["0 d", "5 d", "10 d", "15 d", "20 d", "25 d", "30 d"]),
        (400 * 86400, ["0 d", "50 d", "100 d", "150 d", "200 d", "250 d", "300 d", "350 d", "400 d"]),
        (0.0, ["0 s"]),
    ],
)
def test_moments_are_round(seconds: float, names: list[str]) -> None:
    """All in seconds, minutes, hours or days."""
    assert name_times([round(moment, 6) for moment in list_times(seconds)]) == names


@pytest.mark.parametrize(
    ("bottom", "top", "values"),
    [
        (0, 16, [0, 5, 10, 15]),
        (0, 34e9, [0, 10e9, 20e9, 30e9]),
        (0, 100, [0, 50, 100]),
        (0, 0.001, [0, 0.0005, 0.001]),
        (-3, 3, [-2, 0, 2]),
        (0, 0, [0]),
    ],
)
def test_values_are_round(bottom: float, top: float, values: list[float]) -> None:
    """From the begin of the axis to its end."""
    assert list_values(bottom, top) == pytest.approx(values)


def test_a_value_has_its_unit() -> None:
    """Watts too, which no other report shows alone."""
    assert [name_value(295.4, "watts"), name_value(5e9, "bytes")] == ["295 W", "5 GB"]
