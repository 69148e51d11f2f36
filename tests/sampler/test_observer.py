"""The observer, with vendors that misbehave."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from details import EVERY_DETAIL
from gpu_tracker.core.model import Gpu, GpuProcessReading, GpuReading, GpuReadings
from gpu_tracker.core.observation import ABSENT, BROKEN, REQUESTED, SLOW, Missing
from gpu_tracker.core.vendors import VENDORS, Vendor
from gpu_tracker.sampler.handle.wire import Request
from gpu_tracker.sampler.observer import Observer
from gpu_tracker.sources import NotAvailableError
from patience import wait_until

# Longer than any test may take.
FOREVER_SECONDS = 3600.0


class Fake:
    """A source with one device, and whatever a test adds."""

    reasons: dict[tuple[str, str], str]
    kinds: dict[tuple[str, str], str]
    poll_seconds = float("inf")
    unopened: tuple[Gpu, ...] = ()
    is_outdated = False

    def __init__(self, *percents: float | None, pid: int = 0) -> None:
        self.gpus = (Gpu(0, "uuid", "name", None),)
        self.reasons, self.kinds = {}, {}
        self.reads = 0
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._percents = percents
        self._pid = pid

    def read(self, pids: frozenset[int] | None) -> GpuReadings:
        """The next percentage."""
        self.may_answer.wait()
        percent = self._percents[min(self.reads, len(self._percents) - 1)]
        self.reads += 1
        processes = (GpuProcessReading("uuid", self._pid),) if self._pid else ()
        return GpuReadings(0.0, (GpuReading("uuid", utilization_percent=percent),), processes)

    def read_details(self, names: object) -> dict[str, dict[str, float | str]]:
        """One detail."""
        return {"uuid": {"pstate": "P0"}}

    def take_notes(self) -> tuple[str, ...]:
        """Nothing."""
        return ()

    def close(self) -> None:
        """Nothing."""


def install(name: str, answer: Any, absent: str | None = None) -> None:
    """Add a source module whose `connect` returns or raises the answer."""

    def connect(now: object) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    module = ModuleType(name)
    vars(module).update(why_absent=lambda: absent, connect=connect)
    sys.modules[f"gpu_tracker.sources.gpu.{name}"] = module


@pytest.fixture(autouse=True)
def _own_modules() -> Iterator[None]:
    """Remove the fakes."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("gpu_tracker.sources.gpu.fake"):
            del sys.modules[name]


def named(**sources: tuple[str, ...]) -> dict[str, Vendor]:
    """Vendors that are read through these modules."""
    return {name: Vendor(name, modules) for name, modules in sources.items()}


def observe(observer: Observer, wish: Request | None = None) -> Any:
    """One observation."""
    return observer.observe(wish or Request(5.0), is_wanted=lambda: True)


def test_the_first_source_that_works_is_used() -> None:
    """With the reasons why those before it do not."""
    install("fake_absent", None, absent="No such thing.")
    install("fake_broken", NotAvailableError("It is broken."))
    install("fake_buggy", ZeroDivisionError("oops"))
    install("fake_good", Fake(50.0))
    observer = Observer(named(x=("fake_nowhere", "fake_absent", "fake_broken", "fake_buggy", "fake_good")))
    (vendor,) = observe(observer).vendors

    assert vendor.source == "fake_good"
    assert [(missing.source, missing.kind) for missing in vendor.missing] == [
        ("fake_nowhere", BROKEN),
        ("fake_absent", ABSENT),
        ("fake_broken", BROKEN),
        ("fake_buggy", BROKEN),
    ]
    assert vendor.missing[3].text == "Reading GPUs through fake_buggy failed: ZeroDivisionError: oops."


def test_a_vendor_without_a_source_is_named() -> None:
    """At every observation."""
    observer = Observer(named(x=("fake_nowhere",)))

    for _ in range(2):
        (vendor,) = observe(observer).vendors
        assert (vendor.source, vendor.missing[0].kind) == (None, BROKEN)


def test_a_slow_vendor_delays_only_once() -> None:
    """The others answer; the slow one is waited for once, and used again when it answers."""
    slow = Fake(50.0)
    slow.may_answer.clear()
    install("fake_slow", slow)
    install("fake_quick", Fake(20.0))
    observer = Observer(named(slow=("fake_slow",), quick=("fake_quick",)))
    first, quick = observe(observer, Request(0.2)).vendors
    again, _ = observe(observer, Request(FOREVER_SECONDS)).vendors
    assert (first.missing[0].kind, again.missing[0].kind) == (SLOW, SLOW)
    assert first.missing[0].text.startswith("The slow driver has not answered within 0.2 s")
    assert quick.readings.devices[0].utilization_percent == 20.0
    slow.may_answer.set()
    wait_until(lambda: not observer._vendors[0]._states.empty(), "it has answered")
    back, _ = observe(observer, Request(FOREVER_SECONDS)).vendors

    assert back.readings.devices[0].utilization_percent == 50.0
    assert slow.reads == 1


def test_no_vendor_is_waited_for_if_the_client_has_ended() -> None:
    """The result is not wanted."""
    slow = Fake(50.0)
    slow.may_answer.clear()
    install("fake_slow", slow)
    Observer(named(slow=("fake_slow",))).observe(Request(FOREVER_SECONDS), is_wanted=lambda: False)

    assert slow.reads == 0
    slow.may_answer.set()


def test_a_source_that_fails_affects_only_itself() -> None:
    """And is read again."""
    source = Fake()  # no percentages: an IndexError
    install("fake_failing", source)
    observer = Observer(named(x=("fake_failing",)))
    (vendor,) = observe(observer).vendors
    assert (vendor.source, vendor.missing[-1].kind) == (None, BROKEN)
    source._percents = (30.0,)
    (vendor,) = observe(observer).vendors

    assert vendor.readings.devices[0].utilization_percent == 30.0


@pytest.mark.parametrize(("settle", "reads", "percent"), [(0.0, 1, None), (0.01, 2, 40.0)])
def test_a_source_that_needs_two_readings_gets_them_at_first(
    settle: float, reads: int, percent: float | None
) -> None:
    """If a settling time is given; never again after that."""
    source = Fake(None, 40.0, None)
    install("fake_counting", source)
    observer = Observer(named(x=("fake_counting",)))
    (vendor,) = observe(observer, Request(5.0, settle)).vendors
    assert (source.reads, vendor.readings.devices[0].utilization_percent) == (reads, percent)
    observe(observer, Request(5.0, settle))

    assert source.reads == reads + 1


def test_a_source_with_a_reason_is_read_once() -> None:
    """A second reading would not help."""
    source = Fake(None)
    source.reasons["uuid", "utilization_percent"] = "It does not report."
    source.kinds["uuid", "utilization_percent"] = "unsupported"
    install("fake_silent", source)
    (vendor,) = observe(Observer(named(x=("fake_silent",))), Request(5.0, 0.01)).vendors

    assert source.reads == 1
    assert tuple(vendor.reasons[0]) == ("uuid", "utilization_percent", "It does not report.", "unsupported")


def test_details_are_read_if_wanted() -> None:
    """Not otherwise, because they cost more than the rest."""
    install("fake_detailed", Fake(1.0))
    observer = Observer(named(x=("fake_detailed",)))

    assert observe(observer).vendors[0].details == {}
    assert observe(observer, Request(5.0, details=EVERY_DETAIL)).vendors[0].details == {
        "uuid": {"pstate": "P0"}
    }


def test_a_process_that_has_ended_is_only_a_pid() -> None:
    """The driver may still list it."""
    install("fake_haunted", Fake(1.0, pid=2**22 + 1))
    (holder,) = observe(Observer(named(x=("fake_haunted",)))).holders

    assert tuple(holder) == (2**22 + 1, None, None, None, None)


def test_every_vendor_has_a_source_to_try() -> None:
    """The table of vendors is what is observed."""
    observation = observe(Observer())

    assert [vendor.vendor for vendor in observation.vendors] == list(VENDORS)
    assert observation.machine.cpu_seconds > 0
    assert 0 < observation.machine.ram_used_bytes < observation.machine.ram_total_bytes


def test_what_no_device_can_do_is_not_believed_whoever_says_so() -> None:
    """The value is left out, with a note; whichever source it comes from."""
    install("fake_boaster", Fake(250.0))
    (vendor,) = observe(Observer(named(x=("fake_boaster",)))).vendors

    assert vendor.readings.devices[0].utilization_percent is None
    assert vendor.notes == ("GPU 0 reports an impossible utilization (250), which is not used.",)


def test_devices_that_are_asked_for_but_absent_come_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one sentence; if a source is broken, its own reason is better."""
    vendor = Vendor("X", ("fake_absent", "fake_other"), cure="Plug it in.", request="X_DEVICES")
    install("fake_absent", None, absent="No such thing.")
    install("fake_other", None, absent="Nor that.")
    monkeypatch.setenv("X_DEVICES", "all")
    (absent,) = observe(Observer({"x": vendor})).vendors
    install("fake_other", OSError("on fire"))
    (broken,) = observe(Observer({"x": vendor})).vendors

    cure = "X_DEVICES is set, but there is no X driver here: plug it in."
    assert absent.missing == (Missing("fake_absent", REQUESTED, cure),)
    assert [missing.kind for missing in broken.missing] == [ABSENT, BROKEN]
