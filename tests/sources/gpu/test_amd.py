"""AMD cards made of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from details import EVERY_DETAIL
from gpu_tracker.core.model import Gpu, GpuProcessReading, GpuReading, GpuReadings
from gpu_tracker.sources import NotAvailableError, Roots
from gpu_tracker.sources.gpu import amd, sysfs
from sources.gpu.fake_devices import (
    GIB,
    GIVES_EINVAL,
    GIVES_EIO,
    MIB,
    FakeClock,
    FakeMachine,
    as_nobody,
    public_directory,
    write_amdgpu,
    write_files,
)

UUID = "GPU-0000000000000064"
SECOND_BUS = "0000:83:00.0"
SECOND_UUID = "GPU-00000000000000c8"


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    """Without cards."""
    return FakeMachine(tmp_path)


def read(source: amd.AmdSource, pids: frozenset[int] | None = None) -> dict[str, GpuReading]:
    """The cards of one reading, by uuid."""
    return {reading.uuid: reading for reading in source.read(pids).devices}


def read_processes(source: amd.AmdSource, *pids: int) -> tuple[GpuProcessReading, ...]:
    """The processes of one reading."""
    return source.read(frozenset(pids) or None).processes


# ---- Parsers.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"0: 500Mhz\n1: 1825Mhz *\n2: 2575Mhz\n", 1825.0),
        (b"S: 19Mhz *\n0: 500Mhz\n", 19.0),
        (b"0: 500MHz\n", None),
        (b"1: fast *\n", None),
    ],
)
def test_the_clock_is_on_the_starred_line(text: bytes, expected: float | None) -> None:
    """A card in deep sleep has an extra line for that."""
    assert amd.parse_clock(text) == expected


def test_the_highest_clock_is_that_of_any_line() -> None:
    """Invalid lines are ignored."""
    assert amd.parse_highest_clock(b"0: 500Mhz\n1: 2575Mhz *\njunk\n2: xMhz\n") == 2575.0
    assert amd.parse_highest_clock(b"") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"deadbeef12345678\n", "GPU-deadbeef12345678"),
        (b"0xDEADBEEF\n", "GPU-00000000deadbeef"),
        (b"0000000000000000\n", None),
        (b"\n", None),
        (b"not a number\n", None),
    ],
)
def test_a_card_is_named_as_rocm_names_it(text: bytes, expected: str | None) -> None:
    """Many cards have no number."""
    assert amd.parse_unique_id(text) == expected


def test_a_node_of_rocm_says_where_the_card_is_plugged_in() -> None:
    """Bus, device and function in one number."""
    assert amd.parse_node_bus_id(b"simd_count 8\nlocation_id 33539\ndomain 1\n") == "0001:83:00.3"
    assert amd.parse_node_bus_id(b"location_id 768\n") == "0000:03:00.0"
    assert amd.parse_node_bus_id(b"location_id 99999999\ndomain 0\n") is None
    assert amd.parse_node_bus_id(b"simd_count 8\n") is None


@given(st.binary(max_size=200))
def test_no_bytes_break_the_parsers(garbage: bytes) -> None:
    """A value or None, never an exception."""
    for parse in (
        amd.parse_clock,
        amd.parse_highest_clock,
        amd.parse_unique_id,
        amd.parse_node_bus_id,
        sysfs.parse_integer,
        sysfs.parse_bytes,
        sysfs.parse_percent,
        sysfs.parse_micro,
        sysfs.parse_celsius,
        sysfs.parse_megahertz,
        sysfs.parse_hertz,
        sysfs.parse_fan,
        sysfs.parse_words,
        sysfs.parse_slot,
    ):
        for text in (
            garbage,
            b"1: " + garbage + b"Mhz *",
            b"PCI_SLOT_NAME=" + garbage,
            b"location_id " + garbage,
        ):
            parse(text)


# ---- Cards.


def test_without_cards_there_is_a_reason(machine: FakeMachine, clock: FakeClock) -> None:
    """Without cards, with cards of other vendors only, and without /sys."""
    nowhere = Roots("/nowhere", "/nowhere")
    for roots in (machine.roots, nowhere):
        assert (amd.why_absent(roots) or "").startswith("No AMD GPU was measured: ")
    machine.add_intel_card(0, "0000:00:02.0", "i915", {})
    with pytest.raises(NotAvailableError, match=r"^No AMD GPU was measured: .*\.$"):
        amd.connect(clock, machine.roots)


def test_a_card_is_described(machine: FakeMachine, clock: FakeClock) -> None:
    """UUID, slot and driver."""
    machine.add_amd_card(product_name="AMD Instinct MI210")
    assert amd.why_absent(machine.roots) is None

    source = amd.connect(clock, machine.roots)

    assert source.gpus == (
        Gpu(
            *(0, UUID, "AMD Instinct MI210", 16 * GIB, "amd", "amd", "0000:03:00.0", "amdgpu 6.18.1"),
            power_limit_watts=255.0,
            top_sm_clock_mhz=2575.0,
            slowdown_celsius=100.0,
        ),
    )


def test_every_figure_is_read(machine: FakeMachine, clock: FakeClock) -> None:
    """In base units; RAM used by a discrete card is not its memory."""
    machine.add_amd_card()
    source = amd.connect(clock, machine.roots)

    assert source.read(None) == GpuReadings(
        100.0,
        (
            GpuReading(
                UUID,
                used_bytes=3 * GIB,
                utilization_percent=87.0,
                memory_utilization_percent=41.0,
                power_watts=203.5,
                energy_joules=12.345678,
                temperature_celsius=64.0,
                sm_clock_mhz=1825.0,
                memory_clock_mhz=1000.0,
                measures_processes=True,
            ),
        ),
    )
    assert (source.take_notes(), dict(source.reasons)) == ((), {})
    source.close()


def test_details_have_the_names_of_nvidia_smi(machine: FakeMachine, clock: FakeClock) -> None:
    """Unreadable ones are left out without a note."""
    device = machine.add_amd_card()
    source = amd.connect(clock, machine.roots)

    assert source.read_details(EVERY_DETAIL) == {
        UUID: {
            "power.limit": 255.0,
            "fan.speed": 40.0,
            "temperature.memory": 72.0,
            "clocks.max.graphics": 2575.0,
            "clocks.max.memory": 1000.0,
            "pcie.link.width.current": 16,
            "vbios_version": "113-D4120500-101",
        }
    }
    write_files(
        device, {"vbios_version": "", "hwmon/hwmon3/pwm1": 300, "current_link_width": Path(GIVES_EIO)}
    )
    (device / "hwmon/hwmon3/power1_cap").unlink()
    assert source.read_details(EVERY_DETAIL)[UUID].keys() == {
        "temperature.memory",
        "clocks.max.graphics",
        "clocks.max.memory",
    }
    assert source.take_notes() == ()


def test_older_and_newer_cards_have_other_files(machine: FakeMachine, clock: FakeClock) -> None:
    """Instantaneous power, the hottest spot, clocks in Hz, a driver with a version."""
    device = machine.add_amd_card()
    sensors = device / "hwmon/hwmon3"
    for name in ("power1_average", "temp1_input"):
        (sensors / name).unlink()
    for name in ("pp_dpm_sclk", "unique_id"):
        (device / name).unlink()
    write_files(device, {"pp_dpm_mclk": Path(GIVES_EINVAL), "hwmon/hwmon3/power1_input": 99_000_000})
    write_files(machine.sys, {"module/amdgpu/version": "6.7.0"})

    source = amd.connect(clock, machine.roots)
    (reading,) = source.read(None).devices

    assert source.gpus[0]._replace(name="") == (
        *(0, "pci-0000:03:00.0", "", 16 * GIB, "amd", "amd", "0000:03:00.0", "amdgpu 6.7.0"),
        *(None, True, 255.0, None, 100.0, None, None, "", False, ""),
    )
    assert source.gpus[0].name == "AMD Radeon RX 6800/6800 XT/6900 XT"
    assert (reading.power_watts, reading.temperature_celsius) == (99.0, 78.0)
    assert (reading.sm_clock_mhz, reading.memory_clock_mhz) == (1801.0, 1000.0)


def test_a_card_is_called_what_it_is_sold_as(machine: FakeMachine, clock: FakeClock) -> None:
    """By itself, by the system's lists, or by its number if nobody knows it."""
    machine.add_amd_card(0, "0000:03:00.0", 100, product_name="AMD Instinct MI210")
    machine.add_amd_card(1, "0000:04:00.0", 200, revision="0xc1")
    machine.add_amd_card(2, "0000:05:00.0", 300, device="0xffff")
    write_files(
        machine.share,
        {"libdrm/amdgpu.ids": "73BF,\tC0,\tAMD Radeon RX 6900 XT\n73BF,\tC1,\tAMD Radeon RX 6800 XT"},
    )

    source = amd.connect(clock, machine.roots)

    assert [gpu.name for gpu in source.gpus] == [
        "AMD Instinct MI210",
        "AMD Radeon RX 6800 XT",
        "AMD GPU 0xffff",
    ]


def test_a_gpu_inside_a_processor_has_its_memory_in_ram(machine: FakeMachine, clock: FakeClock) -> None:
    """The part of RAM reserved as video memory, and the rest of RAM that it may use."""
    files = {
        "hwmon/hwmon3/in1_label": "vddnb",
        "mem_info_vram_total": 512 * MIB,
        "mem_info_vram_used": 200 * MIB,
    }
    write_files(machine.add_amd_card(), files)
    machine.set_process(10, {5: write_amdgpu(vram_kib=1024, gtt_kib=2048)})
    source = amd.connect(clock, machine.roots)

    readings = source.read(None)

    assert source.gpus[0].memory_bytes == 32 * GIB + 512 * MIB
    assert readings.devices[0].used_bytes == 300 * MIB
    assert readings.processes[0].used_bytes == 3 * MIB


def test_cards_are_numbered_along_the_bus(machine: FakeMachine, clock: FakeClock) -> None:
    """Regardless of the kernel's order; a duplicate UUID is replaced by the slot."""
    machine.add_amd_card(0, SECOND_BUS, 100)
    machine.add_amd_card(1, "0000:03:00.0", 100)
    machine.add_intel_card(2, "0000:00:02.0", "i915", {})

    gpus = amd.connect(clock, machine.roots).gpus

    assert [(gpu.ordinal, gpu.bus_id, gpu.uuid) for gpu in gpus] == [
        (0, "0000:03:00.0", UUID),
        (1, SECOND_BUS, f"pci-{SECOND_BUS}"),
    ]


# ---- Processes.


def test_rocm_and_drm_may_report_the_same_memory(machine: FakeMachine, clock: FakeClock) -> None:
    """The larger counts, per card; processes without memory on a card are not listed."""
    machine.add_amd_card(0, gpu_id=100)
    machine.add_amd_card(1, SECOND_BUS, gpu_id=200)
    machine.set_kfd_bytes(10, {100: 6 * MIB, 200: 0})
    machine.set_kfd_bytes(11, {100: 1 * MIB, 200: 9 * MIB})
    machine.set_process(10, {5: write_amdgpu(7, vram_kib=4096)})
    machine.set_process(11, {5: write_amdgpu(8, vram_kib=2048, gfx=5)})
    machine.set_process(12, {5: write_amdgpu(9, vram_kib=512, gfx=5)})
    source = amd.connect(clock, machine.roots)

    assert read_processes(source) == (
        GpuProcessReading(UUID, 10, 6 * MIB, None, "compute"),
        GpuProcessReading(UUID, 11, 2 * MIB, None, "compute+graphics"),
        GpuProcessReading(UUID, 12, MIB // 2, None, "graphics"),
        GpuProcessReading(SECOND_UUID, 11, 9 * MIB, None, "compute"),
    )
    assert {process.pid for process in read_processes(source, 11, 13)} == {11}


def test_a_process_is_as_busy_as_its_busiest_engine(machine: FakeMachine, clock: FakeClock) -> None:
    """Except through ROCm, whose queues bypass the engines' clocks."""
    machine.add_amd_card(gpu_id=100)
    machine.set_kfd_bytes(11, {100: MIB})
    source = amd.connect(clock, machine.roots)
    for milliseconds in (0, 600):
        busy = milliseconds * 10**6
        machine.set_process(
            10, {5: write_amdgpu(7, gfx=busy, dma=busy // 2), 6: write_amdgpu(8, gfx=busy // 4)}
        )
        machine.set_process(11, {5: write_amdgpu(9)})
        machine.set_process(12, {5: write_amdgpu(10)})
        processes = read_processes(source)
        clock.seconds += 1

    assert [process.utilization_percent for process in processes] == [75.0, None, 0.0]


def test_an_inherited_client_is_counted_once(machine: FakeMachine, clock: FakeClock) -> None:
    """A child forked after the card was opened adds no memory."""
    machine.add_amd_card()
    for pid in (10, 11):
        machine.set_process(pid, {5: write_amdgpu(7, vram_kib=1024), 6: write_amdgpu(7, vram_kib=1024)})

    processes = read_processes(amd.connect(clock, machine.roots), 10, 11)

    assert [(process.pid, process.used_bytes) for process in processes] == [(10, MIB)]


def test_in_a_container_the_pids_of_rocm_are_not_ours(machine: FakeMachine, clock: FakeClock) -> None:
    """The same pid would be another process; DRM still reports ours."""
    machine.add_amd_card(gpu_id=100)
    write_files(machine.proc, {"self/ns/pid": Path("pid:[4026532300]")})
    source = amd.connect(clock, machine.roots)
    assert read_processes(source) == ()
    assert source.take_notes() == ()

    machine.set_kfd_bytes(10, {100: 6 * MIB})
    (hidden,) = read(source).values()
    assert (hidden.lists_processes, hidden.measures_processes) == (False, False)
    assert source.kinds[hidden.uuid, "lists_processes"] == "denied"
    machine.set_process(10, {5: write_amdgpu(7, vram_kib=1024)})
    clock.seconds += 1

    assert [process.used_bytes for process in read_processes(source, 10)] == [MIB]
    (shown,) = read(source, frozenset({10})).values()
    assert shown.lists_processes
    (note,) = source.take_notes()
    assert "--pid=host" in note


def test_invalid_and_unreadable_values_of_rocm_are_not_known(machine: FakeMachine, clock: FakeClock) -> None:
    """A process that uses another card only is not listed."""
    machine.add_amd_card(gpu_id=100)
    machine.set_kfd_bytes(10, {100: "garbage"})
    machine.set_kfd_bytes(11, {100: Path(GIVES_EIO)})
    machine.set_kfd_bytes(12, {999: 5})
    write_files(machine.sys / "class/kfd/kfd/proc", {"notes": "not a process"})
    write_files(machine.sys / "class/kfd/kfd/topology/nodes", {"9/gpu_id": 9, "8/gpu_id": "x"})

    source = amd.connect(clock, machine.roots)
    processes = read_processes(source)
    (note,) = source.take_notes()

    assert [(process.pid, process.used_bytes) for process in processes] == [(10, None), (11, None)]
    assert [process.utilization_percent for process in processes] == [None, None]
    assert note.startswith("The memory that a process holds through ROCm is not known: ")


def test_memory_of_rocm_is_not_known_where_the_kernel_is_too_old_to_tell_it(
    machine: FakeMachine, clock: FakeClock
) -> None:
    """On the cards on which a process has queues; on others it holds nothing."""
    machine.add_amd_card(gpu_id=100)
    files = {"10/pasid": 1, "10/queues/0/gpuid": 100, "11/pasid": 2, "12/pasid": 3, "12/queues/0/gpuid": 200}
    write_files(machine.sys / "class/kfd/kfd/proc", files)

    processes = read_processes(amd.connect(clock, machine.roots))

    assert [(process.pid, process.used_bytes) for process in processes] == [(10, None)]


# ---- Trouble.


def test_an_unsupported_figure_is_noted_once_and_not_read_again(
    machine: FakeMachine, clock: FakeClock
) -> None:
    """Other figures are not affected."""
    device = machine.add_amd_card(gpu_busy_percent=Path(GIVES_EINVAL))
    source = amd.connect(clock, machine.roots)

    assert read(source)[UUID].utilization_percent is None
    write_files(device, {"gpu_busy_percent": 5})
    clock.seconds += 1000
    reading = read(source)[UUID]

    assert (reading.utilization_percent, reading.used_bytes) == (None, 3 * GIB)
    text = "AMD GPU 0 does not report utilization: its driver has no such figure."
    assert source.take_notes() == (text,)
    assert source.reasons == {(UUID, "utilization_percent"): text}


def test_only_an_essential_figure_without_a_file_is_noted(machine: FakeMachine, clock: FakeClock) -> None:
    """All of them have a reason."""
    device = machine.add_amd_card()
    for name in ("gpu_busy_percent", "hwmon/hwmon3/energy1_input"):
        (device / name).unlink()
    source = amd.connect(clock, machine.roots)

    assert read(source)[UUID].energy_joules is None
    assert source.reasons.keys() == {(UUID, "utilization_percent"), (UUID, "energy_joules")}
    assert len(source.take_notes()) == 1


@pytest.mark.parametrize("content", ["garbage", "65535", "", Path(GIVES_EIO)])
def test_trouble_is_retried_later(machine: FakeMachine, clock: FakeClock, content: object) -> None:
    """Garbage, an impossible number, nothing, and an I/O error."""
    device = machine.add_amd_card(gpu_busy_percent=content)
    source = amd.connect(clock, machine.roots)

    assert read(source)[UUID].utilization_percent is None
    assert (UUID, "utilization_percent") in source.reasons
    write_files(device, {"gpu_busy_percent": 5})
    assert read(source)[UUID].utilization_percent is None
    clock.seconds += 1.5

    assert read(source)[UUID].utilization_percent == 5.0
    assert not source.reasons
    (note,) = source.take_notes()
    assert note.startswith("AMD GPU 0 does not report utilization at the moment: ")


def test_a_card_in_reset_is_read_again(machine: FakeMachine, clock: FakeClock) -> None:
    """The driver's `not permitted` means `not now`."""
    machine.add_amd_card()
    source = amd.connect(clock, machine.roots)
    failure = source._panel._explain(PermissionError(1, "Operation not permitted"), UUID, "power_watts")

    assert failure.kind == "trouble"
    assert "reset" in failure.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the user")
def test_a_denied_figure_comes_with_the_fix(clock: FakeClock) -> None:
    """The path to which access is missing."""
    with public_directory() as directory:
        machine = FakeMachine(directory)
        device = machine.add_amd_card()
        (device / "hwmon/hwmon3/power1_average").chmod(0o600)
        source = amd.connect(clock, machine.roots)
        with as_nobody():
            reading = read(source)[UUID]
        clock.seconds += 1000
        again = read(source)[UUID]

    assert (reading.power_watts, again.power_watts, reading.used_bytes) == (None, None, 3 * GIB)
    (note,) = source.take_notes()
    assert note.startswith("Power of AMD GPU 0 requires administrator rights, or read access to ")
    assert note.endswith("power1_average.")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the user")
def test_a_process_of_another_user_is_noted_once(clock: FakeClock) -> None:
    """And only if it belongs to the job."""
    with public_directory() as directory:
        machine = FakeMachine(directory)
        machine.add_amd_card()
        machine.set_process(10, {5: write_amdgpu()})
        (machine.proc / "10" / "fd").chmod(0o700)
        source = amd.connect(clock, machine.roots)
        with as_nobody():
            assert read_processes(source) == ()
            assert source.take_notes() == ()
            clock.seconds += 60
            assert read_processes(source, 10) == ()
            clock.seconds += 60
            assert read_processes(source, 10) == ()

    (note,) = source.take_notes()
    assert note.startswith("GPU use of process 10 is unknown because it runs as another user")
    assert source.reasons == {("", "lists_processes"): note}


def test_a_card_that_is_unplugged_is_lost_and_the_others_go_on(
    machine: FakeMachine, clock: FakeClock
) -> None:
    """With its processes, and permanently."""
    machine.add_amd_card(0, gpu_id=100)
    machine.add_amd_card(1, SECOND_BUS, gpu_id=200)
    machine.set_kfd_bytes(10, {100: MIB, 200: MIB})
    source = amd.connect(clock, machine.roots)
    assert read(source).keys() == {UUID, SECOND_UUID}

    machine.remove_card(0, "0000:03:00.0")
    for _ in range(2):
        readings = source.read(None)
        assert [reading.uuid for reading in readings.devices] == [SECOND_UUID]
        assert [process.uuid for process in readings.processes] == [SECOND_UUID]
    machine.add_amd_card(0, gpu_id=100)
    assert read(source).keys() == source.read_details(EVERY_DETAIL).keys() == {SECOND_UUID}
    (note,) = source.take_notes()
    assert note.startswith("AMD GPU 0 was lost")


def test_a_card_that_disappears_during_a_reading_is_lost(machine: FakeMachine, clock: FakeClock) -> None:
    """Its first missing file shows it."""
    machine.add_amd_card()
    source = amd.connect(clock, machine.roots)
    (device,) = source._panel.find_awake()
    machine.remove_card(0, "0000:03:00.0")

    assert source._panel.take_reading(device) == GpuReading(UUID, measures_processes=True)
    assert source.take_notes() == (
        "AMD GPU 0 was lost (unplugged, or driver unloaded); its figures are missing until it returns.",
    )
    assert source.read(None).devices == ()


def test_a_sleeping_card_is_not_woken(machine: FakeMachine, clock: FakeClock) -> None:
    """It is not read until it wakes."""
    device = machine.add_amd_card(0, gpu_id=100)
    machine.set_kfd_bytes(10, {100: MIB})
    source = amd.connect(clock, machine.roots)
    write_files(device, {"power/runtime_status": "suspended", "gpu_busy_percent": Path(GIVES_EIO)})

    for _ in range(2):
        assert source.read(None)[1:3] == ((), ())
    assert source.read_details(EVERY_DETAIL) == {}
    (note,) = source.take_notes()
    assert note.startswith("AMD GPU 0 is asleep")
    assert source.reasons[UUID, "device"] == note
    assert amd.connect(clock, machine.roots).gpus[0].power_limit_watts is None
    write_files(device, {"power/runtime_status": "active", "gpu_busy_percent": 3})
    assert read(source)[UUID].utilization_percent == 3.0
    assert not source.reasons


def test_a_kernel_without_power_management_lets_no_card_sleep(machine: FakeMachine, clock: FakeClock) -> None:
    """The file is missing, but the card is present."""
    (machine.add_amd_card() / "power/runtime_status").unlink()

    assert read(amd.connect(clock, machine.roots)).keys() == {UUID}
