"""Numbers for people."""

from __future__ import annotations

import pytest

from gpu_tracker.core.figures import RATE, humanize
from gpu_tracker.core.units import (
    check_memory_unit,
    check_time_unit,
    humanize_bytes,
    humanize_joules,
    humanize_limit,
    humanize_seconds,
)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1_460_000_000, "1.46 GB"),
        (999_600_000, "1 GB"),
        (25_275_000_000, "25.3 GB"),
        (3.2e12, "3.2 TB"),
        (5.5e15, "5500 TB"),
    ],
)
def test_bytes_keep_three_digits_in_a_decimal_unit(count: float, text: str) -> None:
    """The unit depends on the size."""
    assert humanize_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.0015, "0.0015 s"),
        (0.69, "0.69 s"),
        (12.345, "12.3 s"),
        (119, "119 s"),
        (125, "2 min 05 s"),
        (3725, "1 h 02 min 05 s"),
        (90061, "1 d 01 h 01 min"),
    ],
)
def test_seconds_grow_into_minutes_hours_and_days(seconds: float, text: str) -> None:
    """From a millisecond to a month."""
    assert humanize_seconds(seconds) == text


def test_a_wrong_unit_is_refused_with_the_valid_ones() -> None:
    """The paper's sentences."""
    with pytest.raises(ValueError) as ram:
        check_memory_unit("GB", "RAM")
    with pytest.raises(ValueError) as time:
        check_time_unit("milliseconds")

    assert str(ram.value).startswith(
        '"GB" is not a valid RAM unit. Valid values are bytes, gigabytes, kilobytes, megabytes, terabytes'
    )
    assert (
        str(time.value)
        == '"milliseconds" is not a valid time unit. Valid values are days, hours, minutes, seconds'
    )


@pytest.mark.parametrize("unit", ["bytes", "terabytes", "gibibytes"])
def test_every_unit_is_accepted(unit: str) -> None:
    """Decimal as in the paper, and binary."""
    check_memory_unit(unit, "RAM")
    check_time_unit("days")


@pytest.mark.parametrize(
    ("joules", "text"), [(0, "0 J"), (2500, "2500 J"), (36_000, "10 Wh"), (7.2e6, "2 kWh")]
)
def test_energy_has_a_unit_that_fits_its_size(joules: float, text: str) -> None:
    """Joules for a test, kilowatt-hours for a training."""
    assert humanize_joules(joules) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (4 * 2**30, "4 GiB"),
        (3 * 2**29, "1.5 GiB"),
        (512 * 2**20, "512 MiB"),
        (4 * 10**9, "4 GB"),
        (2**20 + 1, "1.05 MB"),
        (0, "0 B"),
    ],
)
def test_a_limit_is_binary_if_it_is_set_so(count: int, text: str) -> None:
    """In whole MiB."""
    assert humanize_limit(count) == text


def test_a_rate_is_per_second() -> None:
    """Of bytes."""
    assert humanize(2.5e6, RATE) == "2.5 MB/s"
