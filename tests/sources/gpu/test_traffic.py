"""What goes through the links of a device, by counters or by GPM, on a simulated driver library."""

from __future__ import annotations

from typing import Any

import pytest

from nvml_simulator import Code, Generation, Simulator
from sources.gpu.test_gpm import read

UNKNOWN = [None] * 4
MB, MIB = 10**6, 1 << 20


def pick(result: Any, device: int = 0) -> list[list[Any]]:
    """What went through since the reading before, reading by reading."""
    return [devices[device]["traffic"] for devices in result["readings"]]


def test_counters_tell_what_went_through_since_the_reading_before(hardware: Simulator) -> None:
    """PCIe and NVLink, received and sent; nothing of a device that does not count, and no note."""
    hardware.set_traffic(0, 4000 * MB, 1000 * MB, 16000 * MB, 8000 * MB)
    result = read(hardware)

    first, *others = pick(result)
    assert first == UNKNOWN
    for received, sent, nvlink_received, nvlink_sent in others:
        # Readings are a second apart by their own clock, and some 150 ms by that of the driver.
        assert 400 * MB < received < 4000 * MB
        assert [sent / received, nvlink_received / received, nvlink_sent / received] == pytest.approx(
            [0.25, 4, 2], rel=0.01
        )
    assert pick(result, 1) == [UNKNOWN] * 3
    assert (result["notes"], result["reasons"]) == ([], [])


def test_what_is_not_counted_is_not_known(hardware: Simulator) -> None:
    """A device without NVLink."""
    hardware.set_traffic(0, 4000 * MB, 0, None, None)
    _, *others = pick(read(hardware))

    assert [row[1:] for row in others] == [[0, None, None]] * 2


def test_of_a_counter_that_went_back_nothing_is_known_until_it_goes_on(hardware: Simulator) -> None:
    """As after a reset of the device, whatever it begins with."""
    hardware.set_traffic(0, 4000 * MB, 0, None, None)
    body = "hardware.set_traffic(0, 40e6, 0, None, None, counted=2**33) if number == 2 else None"
    rows = [row[0] for row in pick(read(hardware, times=4, before=body))]

    assert rows[1] > 100 * MB
    assert rows[2] is None
    assert 0 < rows[3] < 40 * MB


def test_a_counter_that_may_be_short_is_not_believed(hardware: Simulator) -> None:
    """It may have begun again any number of times."""
    hardware.set_traffic(0, 4000 * MB, 1000 * MB, 500 * MB, 0, is_short=True)
    rows = pick(read(hardware, times=4))

    assert [row[:2] for row in rows] == [[None, None]] * 4
    assert [row[2] is not None for row in rows] == [False, True, True, True]


def test_gpm_tells_it_where_there_is_gpm(hardware: Simulator) -> None:
    """As rates, which are summed up over their time."""
    hardware.set_traffic(0, *[1e9] * 4)
    hardware.set_activity(0, sm=31, links=(100, 50, 2000, None))
    result = read(hardware)

    assert pick(result) == [
        UNKNOWN,
        *[[pytest.approx(100 * MIB), pytest.approx(50 * MIB), pytest.approx(2000 * MIB), None]] * 2,
    ]


def test_what_is_not_new_is_not_told_again(hardware: Simulator) -> None:
    """Readings are more frequent than samples."""
    hardware.set_activity(0, sm=31, links=(100, 50, 2000, 1))
    rows = pick(read(hardware, times=9, step=0.25))

    assert [row[3] for row in rows] == [None] * 4 + [pytest.approx(MIB)] + [None] * 3 + [pytest.approx(MIB)]


def test_a_rate_that_cannot_be_is_not_used(hardware: Simulator) -> None:
    """The others are."""
    hardware.set_activity(0, sm=31, links=(1e9, 50, 2000, 1))

    assert [row[0] for row in pick(read(hardware))] == [None] * 3


@pytest.mark.parametrize("after", [0, 1])
def test_counters_that_cannot_be_read_cost_nothing_else(hardware: Simulator, after: int) -> None:
    """From the start or later; what went through meanwhile is in the next reading."""
    hardware.set_traffic(0, 4000 * MB, 1000 * MB, None, None)
    hardware.set_utilization(0, 98)
    hardware.fail("nvmlDeviceGetFieldValues", Code.UNKNOWN, after=2 * after, times=1)
    result = read(hardware, times=4)

    assert {devices[0]["utilization_percent"] for devices in result["readings"]} == {98}
    known = [row[0] is not None for row in pick(result)]
    assert known == ([False] * 4 if not after else [False, False, True, True])


def test_older_drivers_have_no_such_counters(hardware: Simulator) -> None:
    """Everything else is read."""
    hardware.set_traffic(0, 4000 * MB, 1000 * MB, None, None)
    hardware.set_generation(Generation.V2)
    result = read(hardware)

    assert not any("links" in note for note in result["notes"])
    assert all(devices[0]["used_bytes"] is not None for devices in result["readings"])
