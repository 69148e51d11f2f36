"""Intel GPUs made of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from details import EVERY_DETAIL
from gpu_tracker.core.model import Gpu, GpuProcessReading, GpuReading
from gpu_tracker.sources import NotAvailableError
from gpu_tracker.sources.gpu import intel
from gpu_tracker.sources.gpu.belief import BelievedSource
from sources.gpu.fake_devices import (
    GIB,
    GIVES_EINVAL,
    MIB,
    FakeClock,
    FakeMachine,
    as_nobody,
    public_directory,
    write_amdgpu,
    write_files,
    write_i915,
    write_xe,
)

INSIDE = "pci-0000:00:02.0"
CARD = "pci-0000:03:00.0"
I915_FILES = {
    "power/runtime_status": "active",
    "card/gt_act_freq_mhz": 350,
    "card/gt_RP0_freq_mhz": 1300,
}
XE_FILES = {
    "power/runtime_status": "active",
    "tile0/vram0/total_bytes": 8 * GIB,
    "tile0/vram0/used_bytes": 1 * GIB,
    "tile1/vram0/total_bytes": 8 * GIB,
    "tile1/vram0/used_bytes": 2 * GIB,
    "tile0/gt0/freq0/act_freq": 2050,
    "tile0/gt0/freq0/rp0_freq": 2400,
    "hwmon/hwmon5/name": "xe",
    "hwmon/hwmon5/energy1_input": 50_000_000,
    "hwmon/hwmon5/temp2_input": 51_000,
    "hwmon/hwmon5/temp3_input": 60_000,
    "hwmon/hwmon5/power1_max": 190_000_000,
    "hwmon/hwmon5/temp2_crit": 105_000,
    "current_link_width": 8,
}


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    """A processor with an integrated GPU on i915, and a card on xe."""
    machine = FakeMachine(tmp_path)
    machine.add_intel_card(0, "0000:03:00.0", "xe", XE_FILES)
    machine.add_intel_card(1, "0000:00:02.0", "i915", I915_FILES)
    return machine


def test_without_an_intel_gpu_there_is_a_reason(tmp_path: Path, clock: FakeClock) -> None:
    """A whole sentence."""
    machine = FakeMachine(tmp_path)
    machine.add_amd_card()
    with pytest.raises(NotAvailableError, match=r"^No Intel GPU was measured: .*\.$"):
        intel.connect(clock, machine.roots)


def test_gpus_are_described(machine: FakeMachine, clock: FakeClock) -> None:
    """An integrated GPU has no memory of its own; a card's tiles add up."""
    assert intel.why_absent(machine.roots) is None
    assert intel.connect(clock, machine.roots).gpus == (
        Gpu(
            *(0, INSIDE, "Intel Arc A770", None, "intel", "intel", "0000:00:02.0", "i915 6.18.1"),
            top_sm_clock_mhz=1300.0,
        ),
        Gpu(
            *(1, CARD, "Intel Arc A770", 16 * GIB, "intel", "intel", "0000:03:00.0", "xe 6.18.1"),
            power_limit_watts=190.0,
            top_sm_clock_mhz=2400.0,
            slowdown_celsius=105.0,
        ),
    )


def test_figures_come_from_files_where_there_are_files(machine: FakeMachine, clock: FakeClock) -> None:
    """Power is derived from energy; a GPU without visible clients is idle."""
    source = intel.connect(clock, machine.roots)
    first = source.read(None)
    clock.seconds += 2
    write_files(machine.find_device("0000:03:00.0"), {"hwmon/hwmon5/energy1_input": 350_000_000})
    inside, card = source.read(None).devices

    assert first.devices[1].power_watts is None
    assert inside == GpuReading(
        INSIDE, 0, 0.0, sm_clock_mhz=350.0, samples=((clock.seconds, 0.0),), measures_processes=True
    )
    assert card == GpuReading(
        CARD,
        3 * GIB,
        0.0,
        power_watts=150.0,
        energy_joules=350.0,
        temperature_celsius=51.0,
        sm_clock_mhz=2050.0,
        samples=((clock.seconds, 0.0),),
        measures_processes=True,
    )
    assert source.take_notes() == ()
    assert source.reasons.keys() == {
        (INSIDE, name) for name in ("power_watts", "energy_joules", "temperature_celsius")
    }
    source.close()


def test_what_no_card_can_do_is_not_believed(machine: FakeMachine, clock: FakeClock) -> None:
    """Heat beyond any sensor, and more memory than the card has."""
    files = {"hwmon/hwmon5/temp2_input": 4_000_000, "tile0/vram0/used_bytes": 2**50}
    write_files(machine.find_device("0000:03:00.0"), files)
    source = BelievedSource(intel.connect(clock, machine.roots))
    _, card = source.read(None).devices

    assert (card.temperature_celsius, card.used_bytes) == (None, None)
    assert (card.sm_clock_mhz, card.energy_joules) == (2050.0, 50.0)
    assert [note.partition(" (")[0] for note in source.take_notes()] == [
        "GPU 1 reports an impossible memory used",
        "GPU 1 reports an impossible temperature",
    ]


def test_an_energy_counter_that_goes_back_is_no_power(machine: FakeMachine, clock: FakeClock) -> None:
    """A reloaded driver begins at 0."""
    source = intel.connect(clock, machine.roots)
    source.read(None)
    clock.seconds += 1
    write_files(machine.find_device("0000:03:00.0"), {"hwmon/hwmon5/energy1_input": 1})

    assert source.read(None).devices[1].power_watts is None


def test_details_have_the_names_of_nvidia_smi(machine: FakeMachine, clock: FakeClock) -> None:
    """A limit of 0 means no limit."""
    source = intel.connect(clock, machine.roots)

    assert source.read_details(EVERY_DETAIL) == {
        INSIDE: {"clocks.max.graphics": 1300.0},
        CARD: {
            "power.limit": 190.0,
            "temperature.memory": 60.0,
            "clocks.max.graphics": 2400.0,
            "pcie.link.width.current": 8,
        },
    }
    write_files(machine.find_device("0000:03:00.0"), {"hwmon/hwmon5/power1_max": 0})
    assert "power.limit" not in source.read_details(EVERY_DETAIL)[CARD]


def test_processes_and_the_sums_over_them(machine: FakeMachine, clock: FakeClock) -> None:
    """The busiest engine class per process and per GPU; other processes' clients count for the GPU."""
    source = intel.connect(clock, machine.roots)
    for step in (0, 1):
        busy = step * 10**9
        machine.set_process(10, {5: write_i915(3, render=busy // 2, video=busy)})
        machine.set_process(11, {5: write_i915(4, render=busy // 4), 6: write_i915(4, render=busy // 4)})
        machine.set_process(12, {5: write_xe(5, ccs=2000 * step, rcs=100 * step, total=1000 * step)})
        machine.set_process(13, {5: write_amdgpu(gfx=busy)})
        readings = source.read(frozenset({10, 12}))
        clock.seconds += 1

    assert readings.processes == (
        GpuProcessReading(INSIDE, 10, 4 * MIB, 50.0, "graphics"),
        GpuProcessReading(CARD, 12, 24 * MIB, 50.0, "compute+graphics"),
    )
    inside, card = readings.devices
    assert (inside.used_bytes, inside.utilization_percent) == (8 * MIB, 75.0)
    assert (card.used_bytes, card.utilization_percent) == (3 * GIB, 50.0)
    assert [note.partition(":")[0] for note in source.take_notes()] == [
        "Intel GPU 0 does not report utilization and memory in use",
        "Intel GPU 1 does not report utilization",
    ]


def test_at_the_first_reading_there_is_no_utilization(machine: FakeMachine, clock: FakeClock) -> None:
    """Unknown is not 0."""
    machine.set_process(10, {5: write_i915(3, render=5)})
    source = intel.connect(clock, machine.roots)
    readings = source.read(None)

    assert readings.devices[0].utilization_percent is None
    assert readings.processes[0].utilization_percent is None


def test_a_card_on_i915_has_local_memory(tmp_path: Path, clock: FakeClock) -> None:
    """Some drivers report its size, none the memory in use; memory in RAM does not count."""
    machine = FakeMachine(tmp_path)
    machine.add_intel_card(0, "0000:03:00.0", "i915", {"card/lmem_total_bytes": 6 * GIB})
    memory = "drm-resident-system0:\t1 MiB\ndrm-total-local0:\t9 MiB\ndrm-resident-local0:\t8 MiB"
    machine.set_process(10, {5: write_i915(3, bus_id="0000:03:00.0", memory=memory)})
    source = intel.connect(clock, machine.roots)
    readings = source.read(None)

    assert source.gpus[0].memory_bytes == 6 * GIB
    assert (readings.devices[0].used_bytes, readings.processes[0].used_bytes) == (8 * MIB, 8 * MIB)


def test_a_size_that_cannot_be_read_is_unknown(tmp_path: Path, clock: FakeClock) -> None:
    """The card is still read."""
    machine = FakeMachine(tmp_path)
    machine.add_intel_card(0, "0000:03:00.0", "i915", {"card/lmem_total_bytes": "many"})

    assert intel.connect(clock, machine.roots).gpus[0].memory_bytes is None


def test_an_inherited_client_is_counted_once(machine: FakeMachine, clock: FakeClock) -> None:
    """On the GPU and in the job."""
    for pid in (10, 11):
        machine.set_process(pid, {5: write_i915(3)})
    readings = intel.connect(clock, machine.roots).read(frozenset({10, 11}))

    assert [(process.pid, process.used_bytes) for process in readings.processes] == [(10, 4 * MIB)]
    assert readings.devices[0].used_bytes == 4 * MIB


def test_trouble_with_one_figure_costs_nothing_else(machine: FakeMachine, clock: FakeClock) -> None:
    """It is noted once."""
    write_files(machine.find_device("0000:03:00.0"), {"hwmon/hwmon5/temp2_input": Path(GIVES_EINVAL)})
    source = intel.connect(clock, machine.roots)
    for _ in range(2):
        card = source.read(None).devices[1]

    assert (card.temperature_celsius, card.energy_joules) == (None, 50.0)
    assert source.take_notes() == ("Intel GPU 1 does not report temperature: its driver has no such figure.",)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the user")
def test_a_process_of_another_user_is_noted_once(clock: FakeClock) -> None:
    """Only if it belongs to the job: others are read for the sums, if they are readable."""
    with public_directory() as directory:
        machine = FakeMachine(directory)
        machine.add_intel_card(0, "0000:00:02.0", "i915", I915_FILES)
        for pid in (10, 11):
            machine.set_process(pid, {5: write_i915()})
            (machine.proc / str(pid) / "fd").chmod(0o700)
        source = intel.connect(clock, machine.roots)
        with as_nobody():
            source.read(frozenset({10}))
            source.read(frozenset({10}))

    (note,) = source.take_notes()
    assert note.startswith("GPU use of process 10 is unknown")


def test_a_card_may_sleep_or_be_lost(machine: FakeMachine, clock: FakeClock) -> None:
    """The other goes on."""
    machine.set_process(10, {5: write_xe(5)})
    source = intel.connect(clock, machine.roots)
    assert len(source.read(None).processes) == 1
    write_files(machine.find_device("0000:03:00.0"), {"power/runtime_status": "suspended"})
    readings = source.read(None)
    assert [reading.uuid for reading in readings.devices] == [INSIDE]
    assert readings.processes == ()

    machine.remove_card(0, "0000:03:00.0")
    assert [reading.uuid for reading in source.read(None).devices] == [INSIDE]
    assert [note.split()[2:5] for note in source.take_notes()[1:]] == [
        ["1", "is", "asleep,"],
        ["1", "was", "lost"],
    ]


@given(st.binary(max_size=100))
def test_no_bytes_break_the_parser_of_limits(garbage: bytes) -> None:
    """A value or None, never an exception."""
    assert intel._parse_limit(garbage) != 0
