"""Scrolling columns, as nvidia-smi's dmon and pmon print them."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.core.errors import UsageError
from gpu_tracker.core.observation import Device, Holder, Observation, list_gpus
from gpu_tracker.live.monitors import (
    DEVICE_GROUPS,
    Before,
    build_device_heading,
    build_device_row,
    build_process_heading,
    build_process_rows,
    list_columns,
    list_details,
    parse_letters,
)
from observed import MIB, observation, process, reading, vendor


def observe(details: dict[str, Any] | None = None, **figures: Any) -> tuple[Observation, Device]:
    """One device."""
    seen = observation(vendor(reading(**figures), details={"GPU-0": details or {}}))
    (device,) = list_gpus(seen)
    return seen, device


def test_headings_are_those_of_nvidia_smi() -> None:
    """To the letter, as they were recorded with driver 550 and later."""
    assert build_device_heading(list_columns("pucm"), ()) == [
        "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk     fb   bar1   ccpm ",
        "# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz     MB     MB     MB ",
    ]
    assert build_device_heading(list_columns("v"), ("D", "T")) == [
        "#Date       Time        gpu  pviol  tviol ",
        "#YYYYMMDD   HH:MM:SS    Idx      %   bool ",
    ]
    assert build_process_heading(("u",), ()) == [
        "# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command ",
        "# Idx           #    C/G      %      %      %      %      %      %    name ",
    ]
    assert build_process_heading(("u", "m"), ("T",)) == [
        "#Time        gpu         pid   type     sm    mem    enc    dec    jpg    ofa     fb   ccpm    command ",
        "#HH:MM:SS    Idx           #    C/G      %      %      %      %      %      %     MB     MB    name ",
    ]


def test_a_device_is_one_line() -> None:
    """Whole numbers below their headings; what is not known, or is no number, is a dash."""
    details = {"temperature.memory": "hot", "utilization.encoder": 7, "bar1.used": 4 * MIB}
    seen, device = observe(
        details,
        power_watts=61.5,
        temperature_celsius=41.0,
        utilization_percent=98.0,
        memory_utilization_percent=None,
        used_bytes=90538 * MIB,
        memory_clock_mhz=13365.0,
        sm_clock_mhz=1897.0,
    )

    assert build_device_row(seen, device, None, list_columns("pucm"), ()) == (
        "    0     62     41      -     98      -      7      -      -      -  13365   1897  90538      4      - "
    )


def test_a_line_may_have_its_date_and_time() -> None:
    """Below their headings."""
    seen, device = observe(power_watts=8.0, temperature_celsius=42.0)
    line = build_device_row(seen, device, None, list_columns("p"), ("D", "T"))
    units = build_device_heading(list_columns("p"), ("D", "T"))[1]

    date, time, *rest = line.split()
    assert (len(date), time[2], time[5], rest) == (8, ":", ":", ["0", "8", "42", "-"])
    assert len(line) == len(units)
    assert (line.index(date), line.index(time)) == (units.index("YYYY"), units.index("HH"))


@pytest.mark.parametrize(
    ("grown", "seconds", "shown"),
    [
        (0.5, 2.0, ["25", "1"]),
        (0.0, 2.0, ["0", "0"]),
        (9.0, 2.0, ["100", "1"]),
        (-1.0, 2.0, ["0", "0"]),
        (1.0, 0.0, ["-", "-"]),
    ],
)
def test_violations_are_those_since_the_reading_before(
    grown: float, seconds: float, shown: list[str]
) -> None:
    """As a share of the time, or whether there was any; a counter that began again has not grown."""
    names = ("violation.power", "violation.thermal")
    _, before = observe(dict.fromkeys(names, 10.0))
    seen, now = observe(dict.fromkeys(names, 10.0 + grown))
    row = build_device_row(seen, now, Before(before, seen.at_seconds - seconds), list_columns("v"), ())

    assert row.split() == ["0", *shown]


def test_the_first_reading_has_no_violations() -> None:
    """Nor has one of a device that does not report them."""
    seen, device = observe({"violation.power": 1.0})
    _, without = observe()

    for before in (None, Before(device, seen.at_seconds - 1), Before(without, seen.at_seconds - 1)):
        shown = build_device_row(seen, without if before else device, before, list_columns("v"), ())
        assert shown.split() == ["0", "-", "-"]


def test_a_device_is_also_a_row_for_other_programs() -> None:
    """Separated by commas."""
    seen, device = observe(power_watts=8.0, temperature_celsius=42.0)

    assert build_device_heading(list_columns("p"), (), is_csv=True) == [
        "#gpu, pwr, gtemp, mtemp",
        "#Idx, W, C, C",
    ]
    assert build_device_row(seen, device, None, list_columns("p"), (), is_csv=True) == "0, 8, 42, -"


def test_a_process_is_one_line() -> None:
    """As nvidia-smi prints it: its type, its share, the beginning of its name."""
    holders = (
        Holder(1, command=("/usr/bin/sglang::scheduler", "--port")),
        Holder(2, command=None),
        Holder(3, command=("a\x1b[31m",)),
    )
    seen = observation(
        vendor(
            reading(),
            processes=(
                process(pid=1, mib=3, percent=42.0)._replace(kind="compute+graphics"),
                process(pid=2, mib=2, percent=None)._replace(kind="graphics"),
                process(pid=3, mib=None, percent=None)._replace(kind="new"),
            ),
        ),
        holders=holders,
    )
    (device,) = list_gpus(seen)

    first, second, third = build_process_rows(seen, device, ("u", "m"), ())
    assert first == (
        "    0          1   C+G     42      -      -      -      -      -      3      -    sglang::schedul"
    )
    assert second == (
        "    0          2     G      -      -      -      -      -      -      2      -    -              "
    )
    assert "\x1b" not in third
    assert " new " in third


def test_a_device_without_processes_is_a_line_of_dashes() -> None:
    """As nvidia-smi has it."""
    seen, device = observe()

    assert build_process_rows(seen, device, ("u",), ()) == [
        "    0          -     -      -      -      -      -      -      -    -              "
    ]


def test_groups_are_in_their_own_order() -> None:
    """Each once, whatever the user wrote; a letter that is none of them is refused."""
    assert parse_letters("-s", "mup", DEVICE_GROUPS) == ("p", "u", "m")
    assert parse_letters("-s", "pp", DEVICE_GROUPS) == ("p",)
    for text in ("px", ""):
        with pytest.raises(UsageError, match="Use one or more of pucvmet"):
            parse_letters("-s", text, DEVICE_GROUPS)


def test_only_the_details_of_the_chosen_columns_are_wanted() -> None:
    """The usual reading has the others."""
    assert list_details(list_columns("pc")) == ("temperature.memory",)
