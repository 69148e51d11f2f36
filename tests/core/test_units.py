"""Numbers for people."""

from __future__ import annotations

import pytest

from gpu_tracker.core.units import (
    RATE,
    approximate_seconds,
    check_memory_unit,
    check_time_unit,
    count_cores,
    format_size,
    humanize,
    humanize_bytes,
    humanize_cores,
    humanize_joules,
    humanize_limit,
    humanize_number,
    humanize_part,
    humanize_seconds,
    humanize_share,
    write_stopwatch,
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


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.12345, "0.123"),
        (-999.4, "-999"),
        (123456.7, "123457"),
        (-1.2e308, "-1.2e+308"),
        (float("inf"), "inf"),
    ],
)
def test_a_number_is_never_longer_than_people_read(number: float, text: str) -> None:
    """A loss that diverges has up to 309 digits."""
    assert humanize_number(number) == text


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
    ("percent", "text"),
    [(100.0, "1 core"), (642.0, "6.4 cores"), (3.0, "0.03 cores"), (0.19, "<0.01 cores"), (0.0, "0 cores")],
)
def test_one_core_is_no_cores(percent: float, text: str) -> None:
    """Nor is less than one a core."""
    assert humanize_cores(percent) == text


@pytest.mark.parametrize(
    ("number", "text"), [(1, "1 core"), (1.0, "1 core"), (1.5, "1.5 cores"), (16, "16 cores")]
)
def test_cores_are_counted(number: float, text: str) -> None:
    """As many as there are."""
    assert count_cores(number) == text


@pytest.mark.parametrize(("percent", "text"), [(0.0, "0 %"), (0.1, "<1 %"), (0.6, "1 %"), (50.0, "50 %")])
def test_little_is_not_nothing(percent: float, text: str) -> None:
    """Of what was used."""
    assert humanize_share(percent) == text


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


@pytest.mark.parametrize(
    ("size", "text"), [(1024, "1K"), (1500 * 2**20, "1500M"), (3 * 2**30, "3G"), (2**50, "1024T"), (0, "0K")]
)
def test_sizes_are_whole_numbers_of_binary_units(size: int, text: str) -> None:
    """As schedulers take them."""
    assert format_size(size, "KMGT") == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (11.2 * 2**30, 32 * 2**30, "11.2 of 32 GiB"),
        (0.0, 32 * 2**30, "0 B of 32 GiB"),
        (10.7e6, 25_282_527_233, "10.7 MB of 25.3 GB"),
        (300 * 2**20, 512 * 2**20, "300 of 512 MiB"),
    ],
)
def test_a_part_has_the_unit_of_the_whole(part: float, whole: int, text: str) -> None:
    """Unless it is too small to be read in it."""
    assert humanize_part(part, whole) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.9, "0:00:00"), (725.0, "0:12:05"), (360_061.0, "100:01:01")]
)
def test_a_stopwatch_always_has_hours(seconds: float, text: str) -> None:
    """So that lines of a log are alike."""
    assert write_stopwatch(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (119.0, "119 s"),
        (119.9, "2 min"),
        (3599.0, "1 h 00 min"),
        (11400.0, "3 h 10 min"),
        (86399.0, "1 d 00 h"),
        (353000.0, "4 d 02 h"),
    ],
)
def test_what_is_not_known_exactly_is_rounded(seconds: float, text: str) -> None:
    """To two numbers at most."""
    assert approximate_seconds(seconds) == text
