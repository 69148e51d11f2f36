"""Devices that are lost are looked for again, and the others do not notice."""

from __future__ import annotations

from collections.abc import Mapping

from builders import gpu
from details import EVERY_DETAIL
from gpu_tracker.core.model import GpuReading, GpuReadings
from gpu_tracker.sources import NotAvailableError
from gpu_tracker.sources.gpu.returning import ReturningSource


class Hardware:
    """Devices, and how often somebody has connected to them."""

    def __init__(self, *numbers: int) -> None:
        self.seconds = 0.0
        self.there = set(numbers)
        self.unopened: set[int] = set()
        self.split: set[int] = set()
        self.connecting_seconds = 0.0
        self.asleep: set[int] = set()
        self.opened = self.closed = self.n_collected = 0
        self.expects_end = False
        self.is_loaded = True

    def connect(self) -> Source:
        """One more client."""
        if not self.is_loaded:
            raise NotAvailableError("there is no driver")
        self.opened += 1
        self.seconds += self.connecting_seconds
        return Source(self)


class Source:
    """A client: a device that is lost to it stays lost."""

    poll_seconds = 0.1

    def __init__(self, hardware: Hardware) -> None:
        self._hardware = hardware
        self._known = set(hardware.there)
        self._numbers = self._known - hardware.unopened
        self.unopened = tuple(map(gpu, sorted(hardware.unopened)))
        self.is_outdated = False
        split = tuple(gpu(number)._replace(is_split=True) for number in hardware.split)
        self.gpus = (*map(gpu, sorted(self._numbers)), *split)
        self.reasons: Mapping[tuple[str, str], str] = {}
        self.kinds: Mapping[tuple[str, str], str] = {}
        self._notes = ["Some figures are not reported."]

    def read(self, _pids: frozenset[int] | None) -> GpuReadings:
        """What is still there."""
        hardware = self._hardware
        self.is_outdated = not hardware.there <= self._known
        for number in self._numbers - hardware.there:
            self._notes.append(f"GPU {number} was lost.")
        self._numbers &= hardware.there
        devices = tuple(
            GpuReading(gpu(number).uuid, 5 if hardware.is_loaded else None)
            for number in sorted(self._numbers - hardware.asleep)
        )
        asleep = frozenset(gpu(number).uuid for number in hardware.asleep)
        return GpuReadings(hardware.seconds, devices, asleep=asleep)

    def read_details(self, names: object) -> Mapping[str, Mapping[str, float | str]]:
        """By device."""
        return {one.uuid: {"pstate": "P0"} for one in self.gpus}

    def collect(self) -> None:
        """Counted."""
        self._hardware.n_collected += 1

    def expect_end(self) -> None:
        """Noted."""
        self._hardware.expects_end = True

    def take_notes(self) -> tuple[str, ...]:
        """Since the last call."""
        notes, self._notes = self._notes, []
        return tuple(notes)

    def close(self) -> None:
        """One client less."""
        self._hardware.closed += 1


def follow(
    hardware: Hardware, source: ReturningSource, times: int, step_seconds: float = 1.0
) -> list[set[int]]:
    """The devices that are read, usually once a second."""
    seen = []
    for _ in range(times):
        hardware.seconds += step_seconds
        answer = source.read(frozenset())
        seen.append(
            {number for number in range(4) if gpu(number).uuid in {one.uuid for one in answer.devices}}
        )
    return seen


def test_a_lost_device_is_found_again() -> None:
    """The source of the others is kept until then, and nothing is said twice."""
    hardware = Hardware(0, 1)
    source = ReturningSource(hardware.connect, lambda: hardware.seconds)
    assert follow(hardware, source, 2) == [{0, 1}] * 2
    hardware.there = {1}
    assert follow(hardware, source, 12) == [{1}] * 12
    assert hardware.opened - hardware.closed == 1
    hardware.there = {0, 1}

    assert follow(hardware, source, 20)[-1] == {0, 1}
    assert [one.uuid for one in source.gpus] == [gpu(0).uuid, gpu(1).uuid]
    assert source.take_notes() == ("Some figures are not reported.", "GPU 0 was lost.")
    assert hardware.opened - hardware.closed == 1
    source.collect()
    source.expect_end()
    source.close()
    source.close()
    source.collect()
    source.expect_end()
    assert (hardware.n_collected, hardware.expects_end) == (1, True)
    assert hardware.opened == hardware.closed
    assert source.read(frozenset()).devices == ()
    assert source.read_details(EVERY_DETAIL) == {}


def test_it_is_looked_for_ever_more_rarely() -> None:
    """After a tenth of the time for which it has been missing; once it is there, as soon as at first."""
    hardware = Hardware(0, 1)
    source = ReturningSource(hardware.connect, lambda: hardware.seconds)
    follow(hardware, source, 1)
    hardware.there = {1}
    follow(hardware, source, 600)
    tries = hardware.opened

    assert 40 <= tries <= 60
    hardware.there = {0, 1}
    assert follow(hardware, source, 61)[-1] == {0, 1}
    found = hardware.opened
    hardware.there = {0}
    follow(hardware, source, 4)
    assert hardware.opened == found + 3


def test_a_device_that_returns_is_found_within_a_tenth_of_the_time() -> None:
    """Or in a tenth of a second; a device that was lost for ten seconds is missing for one more."""
    hardware = Hardware(0, 1)
    source = ReturningSource(hardware.connect, lambda: hardware.seconds)
    follow(hardware, source, 1)
    for lost_seconds in (0.2, 2.0, 10.0):
        hardware.there = {1}
        follow(hardware, source, round(lost_seconds * 10), step_seconds=0.1)
        hardware.there = {0, 1}
        late = round(max(1.0, lost_seconds)) + 1
        assert follow(hardware, source, late, step_seconds=0.1)[-1] == {0, 1}


def test_a_device_that_was_split_is_not_looked_for() -> None:
    """Its instances answer in its place."""
    hardware = Hardware(0, 1)
    source = ReturningSource(hardware.connect, lambda: hardware.seconds)
    follow(hardware, source, 1)
    hardware.there, hardware.split = {1, 2}, {0}
    assert follow(hardware, source, 2)[-1] == {1, 2}
    opened = hardware.opened
    follow(hardware, source, 100)

    assert hardware.opened == opened


def test_a_driver_that_is_loaded_again_is_left_first() -> None:
    """While there is none, nothing is read; devices that are new then come last."""
    hardware = Hardware(0)
    source = ReturningSource(hardware.connect, lambda: hardware.seconds)
    follow(hardware, source, 1)
    hardware.is_loaded = False
    follow(hardware, source, 5)
    assert (hardware.opened, hardware.closed) == (1, 1)
    assert source.read_details(EVERY_DETAIL) == {}
    assert source.take_notes() == ("Some figures are not reported.",)
    hardware.is_loaded, hardware.there = True, {0, 2}

    assert follow(hardware, source, 20)[-1] == {0, 2}
    assert [one.ordinal for one in source.gpus] == [0, 2]
    assert source.read_details(EVERY_DETAIL)


def test_a_device_that_sleeps_is_not_lost() -> None:
    """Nor one that has never answered."""
    hardware = Hardware(0, 1)
    hardware.there = {0}
    source = ReturningSource(hardware.connect, lambda: hardware.seconds)
    follow(hardware, source, 1)
    hardware.asleep = {0}
    follow(hardware, source, 100)

    assert hardware.opened == 1


def test_a_device_that_could_not_be_opened_is_looked_for() -> None:
    """Even if it is the only one; it is named until then, and ever more rarely looked for."""
    hardware = Hardware(0, 1)
    hardware.unopened = {0, 1}
    source = ReturningSource(hardware.connect, lambda: hardware.seconds)
    assert follow(hardware, source, 300)[-1] == set()
    assert (source.gpus, [one.ordinal for one in source.unopened]) == ((), [0, 1])
    assert 30 <= hardware.opened <= 50
    hardware.unopened = {1}
    assert follow(hardware, source, 61)[-1] == {0}
    assert [one.ordinal for one in source.unopened] == [1]
    hardware.unopened = set()

    assert follow(hardware, source, 61)[-1] == {0, 1}
    assert ([one.ordinal for one in source.gpus], source.unopened) == ([0, 1], ())
    tries = hardware.opened
    follow(hardware, source, 100)
    assert hardware.opened == tries


def test_a_device_that_is_lost_does_not_become_another() -> None:
    """It cannot be opened while it is lost, but it is known."""
    hardware = Hardware(0, 1)
    source = ReturningSource(hardware.connect, lambda: hardware.seconds)
    follow(hardware, source, 1)
    hardware.there, hardware.unopened = {1}, {0}
    follow(hardware, source, 20)

    assert source.unopened == ()


def test_a_new_device_is_found() -> None:
    """At once, because its source says that there is one."""
    hardware = Hardware(0)
    source = ReturningSource(hardware.connect, lambda: hardware.seconds)
    follow(hardware, source, 10)
    hardware.there = {0, 2}

    assert follow(hardware, source, 1)[-1] == {0, 2}
    assert [one.ordinal for one in source.gpus] == [0, 2]
    assert hardware.opened - hardware.closed == 1


def test_a_connection_that_takes_long_is_tried_less_often() -> None:
    """The others are not read meanwhile."""
    hardware = Hardware(0, 1)
    hardware.unopened = {1}
    source = ReturningSource(hardware.connect, lambda: hardware.seconds)
    hardware.connecting_seconds = 15.0
    follow(hardware, source, 1200)

    assert 2 <= hardware.opened <= 6
