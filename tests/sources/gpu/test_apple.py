"""Apple's GPUs, by a stand-in for `ioreg`."""

from __future__ import annotations

import plistlib
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from details import EVERY_DETAIL
from gpu_tracker.core.model import Gpu, GpuReading, GpuReadings
from gpu_tracker.sources import NotAvailableError
from gpu_tracker.sources.gpu import apple
from gpu_tracker.sources.gpu.belief import BelievedSource
from sources.gpu.fake_devices import FakeClock

M1: dict[str, Any] = {
    "IORegistryEntryID": 4294968311,
    "IOClass": "AGXAcceleratorG13X",
    "model": "Apple M1 Pro",
    "gpu-core-count": 16,
    "PerformanceStatistics": {
        "Device Utilization %": 37,
        "Renderer Utilization %": 36,
        "Tiler Utilization %": 20,
        "In use system memory": 1_234_567_168,
        "Alloc system memory": 3_000_000_000,
    },
}
UUID = "apple-0"


class FakeRegistry:
    """An `ioreg` on the PATH that prints what a test wants."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._plist = directory / "plist"
        self._script = directory / "ioreg"
        monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
        self.show(M1)

    def show(self, *entries: dict[str, Any]) -> None:
        """List these GPUs."""
        self.print(plistlib.dumps(list(entries)))

    def print(self, text: bytes) -> None:
        """Print anything, if called with the right arguments."""
        self._plist.write_bytes(text)
        self.run(f'test "$*" = "-r -d 1 -w 0 -c IOAccelerator -a" && exec cat {self._plist}')

    def run(self, line: str) -> None:
        """Be another program."""
        self._script.write_text(f"#!/bin/sh\n{line}\n")
        self._script.chmod(0o755)

    def remove(self) -> None:
        """Delete the program."""
        self._script.unlink()


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRegistry:
    """One GPU of an M1 Pro."""
    return FakeRegistry(tmp_path, monkeypatch)


def test_only_a_mac_has_one() -> None:
    """The reason is a sentence."""
    assert apple.why_absent(platform="linux") == "No Apple GPU was measured: this is not a Mac."
    assert apple.why_absent(platform="darwin") is None


def test_memory_that_no_mac_has_is_not_believed(registry: FakeRegistry, clock: FakeClock) -> None:
    """The other figures stay."""
    registry.show(
        {**M1, "PerformanceStatistics": {"Device Utilization %": 37, "In use system memory": 2**60}}
    )
    source = BelievedSource(apple.connect(clock))

    assert source.read(None).devices == (GpuReading(UUID, utilization_percent=37.0, lists_processes=False),)
    assert any("impossible memory used" in note for note in source.take_notes())


def test_a_gpu_is_described_and_read(registry: FakeRegistry, clock: FakeClock) -> None:
    """It has no memory of its own and does not report processes, which is noted once."""
    source = apple.connect(clock)

    assert source.gpus == (Gpu(0, UUID, "Apple M1 Pro (16 cores)", None, "apple", "apple"),)
    assert source.read(frozenset({1})) == GpuReadings(
        100.0,
        (GpuReading(UUID, 1_234_567_168, 37.0, lists_processes=False),),
    )
    source.read(None)
    (note,) = source.take_notes()
    assert source.reasons == {("", "lists_processes"): note}
    assert source.read_details(EVERY_DETAIL) == {UUID: {}}
    source.close()


def test_missing_figures_are_noted_once(registry: FakeRegistry, clock: FakeClock) -> None:
    """The busiest part of the GPU is used for the whole."""
    registry.show({**M1, "PerformanceStatistics": {"Tiler Utilization %": 5, "Renderer Utilization %": 9}})
    source = apple.connect(clock)
    for _ in range(2):
        (reading,) = source.read(None).devices

    assert (reading.utilization_percent, reading.used_bytes) == (9.0, None)
    assert source.reasons.keys() == {("", "lists_processes"), (UUID, "used_bytes")}
    assert len(source.take_notes()) == 2


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ({"model": b"AMD Radeon Pro 5500M\0"}, "AMD Radeon Pro 5500M"),
        ({"IOClass": "IntelAccelerator"}, "IntelAccelerator"),
        ({"model": 5, "gpu-core-count": True, "PerformanceStatistics": []}, "Apple GPU"),
    ],
)
def test_unusual_entries_have_a_name(entry: dict[str, Any], name: str) -> None:
    """Whatever the types of their properties."""
    assert apple.parse_accelerators(plistlib.dumps([entry])) == ((0, name, None, None),)


def test_an_invalid_percentage_is_ignored() -> None:
    """Above 100 or below 0."""
    for percent in (101, -1):
        entry = {"PerformanceStatistics": {"Device Utilization %": percent, "In use system memory": -1}}
        assert apple.parse_accelerators(plistlib.dumps([entry])) == ((0, "Apple GPU", None, None),)


@pytest.mark.parametrize(
    "text", [b"<plist", plistlib.dumps([M1])[:-60], plistlib.dumps({"a": 1}), b"\xff\x00garbage"]
)
def test_truncated_output_and_garbage_are_temporary_trouble(
    registry: FakeRegistry, clock: FakeClock, text: bytes
) -> None:
    """Noted once, and read again."""
    source = apple.connect(clock)
    source.take_notes()
    registry.print(text)
    assert source.read(None).devices == ()
    registry.show(M1)
    assert source.read(None).devices == ()
    clock.seconds += 2

    assert len(source.read(None).devices) == 1
    (note,) = source.take_notes()
    assert note == "Apple GPUs could not be read for a while: the output of `ioreg` is not a property list."


def test_a_command_that_hangs_is_killed(registry: FakeRegistry, clock: FakeClock) -> None:
    """Even if its children still hold its output."""
    source = apple.connect(clock, timeout_seconds=0.3)
    registry.run("sleep 3 & exec sleep 20")
    before = time.monotonic()

    assert source.read(None).devices == ()
    assert time.monotonic() - before < 2.5
    assert "did not answer within 0.3 s" in source.take_notes()[-1]


def test_a_command_that_fails_is_a_reason(registry: FakeRegistry, clock: FakeClock) -> None:
    """At the start and later, and if it does not exist."""
    source = apple.connect(clock)
    registry.run("exit 3")
    assert source.read(None).devices == ()
    assert "exit code 3" in source.take_notes()[-1]
    with pytest.raises(
        NotAvailableError, match=r"^No Apple GPU was measured: `ioreg` failed with exit code 3\.$"
    ):
        apple.connect(clock)
    registry.remove()
    with pytest.raises(
        NotAvailableError, match=r"^No Apple GPU was measured: `ioreg` could not be started: .*\.$"
    ):
        apple.connect(clock)
    registry.print(b"")
    with pytest.raises(NotAvailableError, match=r"^No Apple GPU was measured: .* lists none\.$"):
        apple.connect(clock)


def test_a_gpu_that_disappears_is_lost_and_the_others_go_on(registry: FakeRegistry, clock: FakeClock) -> None:
    """They are identified by the registry's numbers, not by their positions."""
    outside = {
        "IORegistryEntryID": 9,
        "model": "AMD Radeon VII",
        "PerformanceStatistics": {"Device Utilization %": 3},
    }
    registry.show(outside, M1)
    source = apple.connect(clock)
    assert [reading.utilization_percent for reading in source.read(None).devices] == [3.0, 37.0]
    registry.show(M1)
    for _ in range(2):
        assert [reading.uuid for reading in source.read(None).devices] == ["apple-1"]
    registry.show(outside, M1)
    assert [reading.uuid for reading in source.read(None).devices] == ["apple-1"]

    assert source.take_notes()[-1] == "Apple GPU 0 was lost; its figures are missing until it returns."
    assert source.read_details(EVERY_DETAIL).keys() == {"apple-1"}


PLIST_VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.binary(max_size=8)
    | st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*M1, "Device Utilization %", "In use system memory"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(PLIST_VALUES)
def test_any_property_list_gives_accelerators_or_none(value: Any) -> None:
    """Whatever the types."""
    parsed = apple.parse_accelerators(plistlib.dumps(value))

    assert (parsed is None) == (not isinstance(value, list))


@given(st.binary(max_size=200), st.integers(0, 1200))
def test_no_bytes_break_the_parser(garbage: bytes, cut: int) -> None:
    """A value or None, never an exception."""
    text = plistlib.dumps([M1])
    apple.parse_accelerators(garbage)
    apple.parse_accelerators(text[:cut] + garbage + text[cut:])
    apple.parse_accelerators(b"bplist00" + garbage)
