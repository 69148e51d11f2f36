"""What no device can do is not believed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from builders import MB, gpu
from details import EVERY_DETAIL
from gpu_tracker.core.model import Gpu, GpuHighWater, GpuProcessReading, GpuReading, GpuReadings
from gpu_tracker.sources.gpu.belief import BelievedSource, believe
from gpu_tracker.sources.gpu.guard import Guard

GPU = gpu(0)._replace(memory_bytes=1000 * MB)


def make_guard() -> Guard:
    """One that is never asked."""
    return Guard(lambda: 0.0, (), lambda *_: pytest.fail("nothing was asked"))


@pytest.mark.parametrize(
    ("figure", "possible", "impossible"),
    [
        ("used_bytes", 1050 * MB, 1200 * MB),
        ("reserved_bytes", 0, 2**63),
        ("utilization_percent", 100.0, 101.0),
        ("memory_utilization_percent", 0.0, 2.0**32),
        ("temperature_celsius", 110.0, 2.0**32),
        ("power_watts", 1200.0, 4294967.0),
        ("energy_joules", 1e9, 2.0**64 / 1000),
        ("sm_clock_mhz", 2500.0, 2.0**32),
    ],
)
def test_a_figure_that_cannot_be_is_not_reported_and_said_once(
    figure: str, possible: float, impossible: float
) -> None:
    """The others stay."""
    guard = make_guard()
    before = GpuReading("GPU-0", 5, 50.0, 60.0, 7, limits=("heat",))
    for value, expected in ((possible, possible), (impossible, None), (impossible, None)):
        changes: dict[str, Any] = {figure: value}
        readings = GpuReadings(0.0, (before._replace(**changes),))
        (reading,) = believe(readings, [GPU], guard, {}).devices
        assert getattr(reading, figure) == expected
        assert reading.limits == ("heat",)
    (note,) = guard.take_notes()

    assert note.startswith("GPU 0 reports an impossible ")
    assert note.endswith("which is not used.")


def test_a_process_cannot_hold_more_than_its_device_has() -> None:
    """Nor can its peak be larger; where the size of the device is not known, no size of this world is."""
    unsized = gpu(1)._replace(memory_bytes=None)
    guard = make_guard()
    readings = GpuReadings(
        0.0,
        (),
        (
            GpuProcessReading("GPU-0", 1, 2**63 + 5),
            GpuProcessReading("GPU-0", 2, 900 * MB),
            GpuProcessReading("GPU-1", 3, 2**44),
            GpuProcessReading("GPU-1", 4, 2**60),
        ),
        (GpuHighWater("GPU-0", 1, 2**62), GpuHighWater("GPU-0", 2, MB)),
    )
    believed = believe(readings, [GPU, unsized], guard, {})

    assert [process.used_bytes for process in believed.processes] == [None, 900 * MB, 2**44, None]
    assert [peak.pid for peak in believed.high_waters] == [2]
    assert len(guard.take_notes()) == 2


class Boaster:
    """A source that reports too much, and counts how often it is closed."""

    reasons: Mapping[tuple[str, str], str] = {("GPU-0", "power_watts"): "None."}
    kinds: Mapping[tuple[str, str], str] = {}
    poll_seconds = 0.1
    unopened: tuple[Gpu, ...] = ()
    is_outdated = False

    def __init__(self) -> None:
        self.gpus: tuple[Gpu, ...] = (
            GPU,
            gpu(1)._replace(memory_bytes=2**60),
            gpu(2)._replace(memory_bytes=None),
        )
        self.closed = self.n_collected = 0
        self.expects_end = False

    def read(self, pids: frozenset[int] | None) -> GpuReadings:
        """More degrees than a device can stand."""
        return GpuReadings(0.0, (GpuReading("GPU-0", temperature_celsius=4000.0),))

    def read_details(self, names: object) -> Mapping[str, Mapping[str, float | str]]:
        """One."""
        return {"GPU-0": {"pstate": "P0"}}

    def collect(self) -> None:
        """Counted."""
        self.n_collected += 1

    def expect_end(self) -> None:
        """Noted."""
        self.expects_end = True

    def take_notes(self) -> tuple[str, ...]:
        """One."""
        return ("Its own note.",)

    def close(self) -> None:
        """Count."""
        self.closed += 1


def test_a_source_is_believed_in_all_but_what_cannot_be() -> None:
    """Sizes of devices and readings are left out, with a note; everything else is the source's own."""
    boaster = Boaster()
    source = BelievedSource(boaster)
    source.collect()
    source.expect_end()
    (reading,) = source.read(None).devices
    source.close()

    assert (boaster.n_collected, boaster.expects_end) == (1, True)
    assert [one.memory_bytes for one in source.gpus] == [1000 * MB, None, None]
    assert reading == GpuReading("GPU-0")
    refused = {
        ("GPU-0", "temperature_celsius"): "GPU 0 reports an impossible temperature (4000), which is not used."
    }
    assert (source.reasons, source.poll_seconds) == ({**boaster.reasons, **refused}, 0.1)
    assert source.kinds == {**boaster.kinds, **dict.fromkeys(refused, "trouble")}
    assert source.read_details(EVERY_DETAIL) == boaster.read_details(EVERY_DETAIL)
    assert source.take_notes() == (
        "Its own note.",
        f"GPU 1 reports an impossible memory size ({2.0**60:g}), which is not used.",
        "GPU 0 reports an impossible temperature (4000), which is not used.",
    )
    assert boaster.closed == 1
