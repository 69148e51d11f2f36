"""One observation: devices, processes and notes."""

from __future__ import annotations

from gpu_tracker.core.model import GpuReading, GpuReadings
from gpu_tracker.core.observation import (
    ABSENT,
    BROKEN,
    UNSUPPORTED,
    Device,
    DeviceProcess,
    Holder,
    Missing,
    Reason,
    VendorState,
    list_gpus,
    list_notes,
)
from gpu_tracker.sources.gpu import guard
from observed import GIB, gpu, observation, process, reading, vendor


def test_a_device_has_its_processes_and_reasons() -> None:
    """Processes by size, with user and command where known."""
    seen = observation(
        vendor(
            reading(0),
            reading(1),
            processes=(process(0, 7, None), process(0, 4242, 5), process(0, 9, 10), process(1, 8)),
        )
    )
    first, second = list_gpus(seen)

    assert [one.reading.pid for one in first.processes] == [9, 4242, 7]
    assert first.processes[1].holder.command_line == "python train.py"
    assert first.processes[2].holder == Holder(7)
    assert first.processes[2].holder.command_line is None
    assert [one.reading.pid for one in second.processes] == [8]


def test_free_memory_is_neither_used_nor_reserved() -> None:
    """And not known if one of those is not."""
    seen = observation(
        vendor(reading(0), reading(1, used_bytes=None), reading(2, reserved_bytes=None, used_bytes=50 * GIB))
    )

    assert [one.memory_free_bytes for one in list_gpus(seen)] == [29 * GIB, None, 0]


def test_a_device_that_was_not_read_is_listed_without_figures() -> None:
    """It stays in the list."""
    seen = observation(
        vendor(gpus=(gpu(0),), readings=GpuReadings(1.0)), vendor(gpus=(gpu(1),), readings=None)
    )

    assert [(one.reading.used_bytes, one.reading.lists_processes) for one in list_gpus(seen)] == [
        (None, False),
        (None, False),
    ]


def test_only_problems_are_noted() -> None:
    """A broken driver and a denied figure are; an absent vendor and a missing fan are not."""
    seen = observation(
        vendor(
            reading(),
            reasons=(
                Reason("GPU-0", "fan.speed", "It has no fan.", UNSUPPORTED),
                Reason("GPU-0", "power_watts", "Denied.", guard.DENIED),
                Reason("GPU-0", "energy_joules", "No kind."),
            ),
            notes=("It has no fan.", "Denied.", "Something else."),
            missing=(Missing("other", BROKEN, "Nobody needs it."),),
        ),
        VendorState("amd", missing=(Missing("amd", ABSENT, "None."), Missing("amd2", BROKEN, "Broken."))),
    )

    assert list_notes(seen) == ("Denied.", "Something else.", "Broken.")


def test_notes_about_other_devices_are_left_out() -> None:
    """Those about all of them, or about none, are not."""
    reasons = (
        Reason("", "energy_joules", "No energy.", guard.DENIED),
        Reason("GPU-1", "power_watts", "GPU 1 denies it.", guard.DENIED),
        Reason("GPU 7", "device", "GPU 7 was lost.", guard.LOST),
    )
    notes = ("GPU 1 denies it.", "Something else.")
    seen = observation(vendor(reading(0), reading(1), reasons=reasons, notes=notes))
    first, second = list_gpus(seen)

    assert list_notes(seen, [first]) == ("No energy.", "Something else.")
    assert list_notes(seen, [first, second]) == ("No energy.", "GPU 1 denies it.", "Something else.")
    assert len(list_notes(seen)) == 4


def test_the_unsupported_kind_is_that_of_the_sources() -> None:
    """Two modules that may not import each other agree on it."""
    assert UNSUPPORTED == guard.UNSUPPORTED


def test_a_device_has_its_figures_by_name() -> None:
    """And so have the processes on it."""
    (device,) = list_gpus(observation(vendor(reading(0), processes=(process(0, 4242, 5),))))
    (user,) = device.processes

    assert (device.index, device.uuid, device.name, device.vendor) == tuple(
        getattr(device.gpu, name) for name in ("ordinal", "uuid", "name", "vendor")
    )
    assert (device.memory_total_bytes, device.memory_used_bytes) == (
        device.gpu.memory_bytes,
        device.reading.used_bytes,
    )
    for name in (
        "utilization_percent",
        "memory_utilization_percent",
        "temperature_celsius",
        "power_watts",
        "sm_clock_mhz",
        "memory_clock_mhz",
    ):
        assert getattr(device, name) == getattr(device.reading, name)
    assert repr(device) == f"<Device {device.index}: {device.name} ({device.uuid})>"
    assert (user.pid, user.user, user.command) == (4242, user.holder.user, "python train.py")
    assert (user.used_bytes, user.utilization_percent, user.kind) == (
        user.reading.used_bytes,
        user.reading.utilization_percent,
        "compute",
    )


def test_a_name_from_a_driver_cannot_control_a_terminal() -> None:
    """Printed as itself, or within a list; nor can the command line of a process."""
    evil = "A100\x1b[2J\x9b\u202e\n"
    seen = observation(
        vendor(reading(0), gpus=(gpu(0)._replace(name=evil, uuid=evil),), processes=(process(0, 9, 10),))
    )
    (device,) = list_gpus(seen)
    holder = Holder(9, evil, (evil, evil))
    texts = [repr(device), str(device), str([device]), str(DeviceProcess(process(0, 9), holder))]

    assert all(map(str.isprintable, texts))
    assert repr(device) == "<Device 0: A100?[2J??? (A100?[2J???)>"


def test_activity_is_that_of_the_reading() -> None:
    """None where it is not measured."""
    measured, other = (
        Device(gpu(0), GpuReading("GPU-0", sm_percent=percent), {}, (), {}) for percent in (42.0, None)
    )

    assert (measured.sm_percent, other.sm_percent) == (42.0, None)


def test_an_instance_may_know_what_it_is_a_part_of() -> None:
    """The rest is as it was."""
    whole, part = (Device(gpu(number), GpuReading(f"GPU-{number}"), {}, (), {}) for number in range(2))

    assert part.parent is None
    assert part.within(whole).parent is whole
    assert (part.within(whole).uuid, part.within(None).parent) == (part.uuid, None)
