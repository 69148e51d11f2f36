"""The job's memory and utilization on each device."""

from __future__ import annotations

import pytest

from builders import MB, ROOT, gpu, gpu_readings
from gpu_tracker.accounts.gpus import GpuAccount, GpuMoment
from gpu_tracker.core.model import (
    Gpu,
    GpuHighWater,
    GpuProcessReading,
    GpuReading,
    GpuReadings,
    GpuShares,
    Parts,
)

CHILD = 200
NAMES = {ROOT: "train", CHILD: "worker"}


def account_of(*sequence: GpuReadings) -> GpuAccount:
    """An account of these readings."""
    account = GpuAccount(ROOT)
    for readings in sequence:
        account.take(readings, NAMES)
    return account


def test_memory_is_attributed_and_its_growth_is_kept() -> None:
    """Main and descendants at one moment; growth since the first reading may be any process's."""
    account = account_of(
        gpu_readings(0.0, ("GPU-0", 1000, 10.0)),
        gpu_readings(1.0, ("GPU-0", 3000, 50.0), GPU_0={ROOT: 1000, CHILD: 500}),
        gpu_readings(2.0, ("GPU-0", 500, 0.0), GPU_0={ROOT: 1200}),
    )
    (peaks,) = account.peaks

    assert (peaks.job_bytes.main, peaks.job_bytes.descendants, peaks.job_bytes.combined) == (
        1200 * MB,
        500 * MB,
        1500 * MB,
    )
    assert (peaks.used_bytes, peaks.grown_bytes) == (3000 * MB, 2000 * MB)
    assert (peaks.has_job, peaks.basis) == (True, "sampled")
    assert [(p.pid, p.name, p.used_bytes) for p in account.processes] == [
        (ROOT, "train", 1200 * MB),
        (CHILD, "worker", 500 * MB),
    ]


def test_unknown_is_not_zero() -> None:
    """A process without a size, a device without a list, a device without figures."""
    nameless = GpuReading("GPU-1", 700 * MB, lists_processes=False)
    account = account_of(
        GpuReadings(
            0.0,
            (GpuReading("GPU-0"), nameless, GpuReading("GPU-2", 5 * MB)),
            (GpuProcessReading("GPU-0", ROOT), GpuProcessReading("GPU-0", CHILD, 3 * MB)),
        )
    )
    first, second, third = account.peaks

    assert (first.job_bytes.main, first.job_bytes.descendants, first.job_bytes.combined) == (
        None,
        3 * MB,
        None,
    )
    assert (first.used_bytes, first.grown_bytes, first.has_job) == (None, None, True)
    assert (second.job_bytes.main, second.job_bytes.combined, second.has_job) == (None, None, False)
    assert (third.job_bytes.combined, third.has_job) == (0, False)
    assert account.samples()[1].job_bytes is None
    assert account.samples()[2].job_bytes == 0


def test_utilization_is_weighted_by_time() -> None:
    """Ten seconds at 20 %, one at 90 %: of the device, and of the job if that is reported."""
    half = GpuProcessReading("GPU-0", ROOT, 1, 10.0)
    account = account_of(
        GpuReadings(0.0, (GpuReading("GPU-0"),)),
        GpuReadings(10.0, (GpuReading("GPU-0", utilization_percent=20.0, measures_processes=True),), (half,)),
        GpuReadings(
            11.0, (GpuReading("GPU-0", utilization_percent=90.0, utilization_high_percent=97.0),), (half,)
        ),
        GpuReadings(12.0, (GpuReading("GPU-0"),)),
    )
    (counters,) = account.counters

    assert counters.utilization_percent_seconds / counters.utilization_seconds == pytest.approx(290 / 11)
    assert (counters.job_percent_seconds, counters.job_seconds) == (100.0, 10.0)
    assert account.peaks[0].utilization_percent == 97.0


def test_samples_of_the_driver_count_for_the_time_since_the_one_before() -> None:
    """However many of them a reading has caught; one from before the first reading counts for nothing."""
    caught = ((-1.0, 50.0),), ((1.0, 90.0),), ((2.0, 0.0), (3.0, 0.0))
    account = account_of(
        *(
            GpuReadings(at, (GpuReading("GPU-0", utilization_percent=99.0, samples=samples),))
            for at, samples in zip((0.0, 1.5, 3.5, 3.6), (*caught, ()), strict=True)
        )
    )
    (counters,) = account.counters

    assert (counters.utilization_percent_seconds, counters.utilization_seconds) == (90.0, 3.0)


def test_processes_together_cannot_be_busier_than_the_device() -> None:
    """Samples of two processes may overlap."""
    readings = tuple(GpuProcessReading("GPU-0", pid, 1, 80.0) for pid in (ROOT, CHILD))
    account = account_of(GpuReadings(0.0, (GpuReading("GPU-0", measures_processes=True),), readings))

    assert account.samples()[0].job_percent == 100.0


def test_a_counter_of_energy_that_jumps_adds_nothing() -> None:
    """No device draws that much; what follows counts from there."""
    account = account_of(
        *(
            GpuReadings(float(at), (GpuReading("GPU-0", energy_joules=value),))
            for at, value in enumerate((0.0, 400.0, 1e9, 1e9 + 300.0))
        )
    )

    counters = account.counters[0]
    assert (counters.energy_joules, counters.energy_seconds) == (700.0, 2.0)


def test_a_counter_of_energy_that_jumps_is_said_with_the_time_that_is_missing() -> None:
    """Once, for all its jumps; a device whose counter is sound is not named."""
    account = GpuAccount(ROOT)
    for ordinal in range(2):
        account.add(Gpu(ordinal, f"GPU-{ordinal}", "A", None))
    account.add(Gpu(2, "GPU-2", "never read", None))
    for at, value in enumerate((100.0, 2e9, 2e9 + 50, 9e9)):
        sound = GpuReading("GPU-1", energy_joules=10.0 * at)
        account.take(GpuReadings(float(at), (GpuReading("GPU-0", energy_joules=value), sound)), NAMES)

    assert account.list_gaps() == (
        "The energy counter of NVIDIA GPU 0 jumped by more than any device draws: its energy is without 2 s of the time.",
    )


@pytest.mark.parametrize(("samples", "polled"), [(None, ("GPU-0",)), ((), ()), (((1.0, 40.0),), ())])
def test_utilization_without_samples_of_the_driver_is_polled(
    samples: tuple[tuple[float, float], ...] | None, polled: tuple[str, ...]
) -> None:
    """Said once; what is not reported at all is not."""
    reading = GpuReading("GPU-0", utilization_percent=40.0, samples=samples)
    account = account_of(
        GpuReadings(0.0, (GpuReading("GPU-0"),)),
        GpuReadings(0.5, (GpuReading("GPU-0"),)),
        GpuReadings(1.0, (reading,)),
        GpuReadings(2.0, (GpuReading("GPU-0", utilization_percent=40.0, samples=((2.0, 40.0),)),)),
    )

    assert (account.take_polled(), account.take_polled()) == (polled, ())


def test_energy_is_the_difference_of_the_counter_even_after_a_reset() -> None:
    """What was counted before a reset is kept; a device without a counter has no energy."""
    joules = (1000.0, 1400.0, None, 100.0, 150.0)
    account = account_of(
        *(
            GpuReadings(float(at), (GpuReading("GPU-0", energy_joules=value),))
            for at, value in enumerate(joules)
        )
    )
    (counters,) = account.counters

    assert counters.energy_joules == 450.0
    assert counters.energy_seconds == 3.0
    assert account_of(gpu_readings(0.0, ("GPU-0", 1, 1.0))).counters[0].energy_joules is None


def test_time_throttled_is_added_up() -> None:
    """By cause."""
    limits = (None, ("heat",), ("heat", "power cap"), ())
    account = account_of(
        *(GpuReadings(float(at), (GpuReading("GPU-0", limits=names),)) for at, names in enumerate(limits))
    )

    assert account.counters[0].limited_seconds == (("heat", 2.0), ("power cap", 1.0))


def test_the_drivers_accounting_makes_a_peak_exact() -> None:
    """If one process was alone there; of two it is a lower bound."""
    readings = gpu_readings(0.0, ("GPU-0", 3000, 0.0), GPU_0={ROOT: 1000})
    with_peaks = readings._replace(
        high_waters=(GpuHighWater("GPU-0", ROOT, 2500 * MB), GpuHighWater("GPU-9", ROOT, 1))
    )
    alone = account_of(with_peaks, gpu_readings(1.0, ("GPU-0", 3000, 0.0), GPU_0={ROOT: 2500}))
    two = account_of(
        gpu_readings(0.0, ("GPU-0", 3000, 0.0), GPU_0={ROOT: 1000, CHILD: 900}),
        GpuReadings(1.0, (), (), (GpuHighWater("GPU-0", CHILD, 1800 * MB),)),
        GpuReadings(2.0, (), (), (GpuHighWater("GPU-0", CHILD, 900 * MB),)),
    )

    assert (alone.peaks[0].job_bytes.combined, alone.peaks[0].basis) == (2500 * MB, "exact")
    assert alone.processes[0].basis == "exact"
    assert (two.peaks[0].job_bytes.descendants, two.peaks[0].job_bytes.combined) == (1800 * MB, 1900 * MB)
    assert two.peaks[0].basis == "sampled"


def test_a_high_water_mark_equal_to_a_reading_confirms_it() -> None:
    """The reading was at the peak."""
    readings = gpu_readings(0.0, ("GPU-0", 3000, 0.0), GPU_0={ROOT: 1000})
    account = account_of(readings, GpuReadings(1.0, (), (), (GpuHighWater("GPU-0", ROOT, 1000 * MB),)))

    assert account.processes[0].basis == "exact"
    assert account.peaks[0].basis == "exact"


def test_a_thousand_short_processes_do_not_fill_the_memory() -> None:
    """The largest are kept."""
    account = GpuAccount(ROOT)
    for pid in range(1000):
        account.take(gpu_readings(0.0, ("GPU-0", 1, 1.0), GPU_0={pid: pid}), {})

    assert [peak.pid for peak in account.processes] == list(range(999, 967, -1))


def test_an_interval_has_its_own_peak_and_mean() -> None:
    """And ends with its line."""
    account = account_of(
        gpu_readings(0.0, ("GPU-0", 100, 0.0), GPU_0={ROOT: 50}),
        gpu_readings(1.0, ("GPU-0", 900, 80.0), GPU_0={ROOT: 850}),
        gpu_readings(2.0, ("GPU-0", 300, 20.0), GPU_0={ROOT: 250}),
    )
    (sample,) = account.samples()
    account.start_interval()
    account.take(gpu_readings(3.0, ("GPU-0", 300, 30.0), GPU_0={ROOT: 250}), NAMES)
    (after,) = account.samples()

    assert (sample.used_bytes, sample.job_bytes, sample.utilization_percent) == (900 * MB, 850 * MB, 50.0)
    assert (after.used_bytes, after.job_bytes, after.utilization_percent) == (300 * MB, 250 * MB, 30.0)


def test_a_reading_describes_the_time_since_the_one_before() -> None:
    """Of the devices with the job, else of those that it may use."""
    account = GpuAccount(ROOT)
    account.add(gpu(0))
    account.add(gpu(1)._replace(is_visible=False))

    def describe(
        at: float, percents: tuple[float, float], joules: float, used: dict[int, int | None]
    ) -> GpuMoment:
        devices = tuple(
            GpuReading(f"GPU-{number}", utilization_percent=percent, energy_joules=joules)
            for number, percent in enumerate(percents)
        )
        held = tuple(GpuProcessReading("GPU-1", pid, size) for pid, size in used.items())
        readings = GpuReadings(at, devices, held)
        account.take(readings, NAMES)
        return account.describe(readings)

    assert describe(0.0, (10.0, 90.0), 100.0, {}) == (0.0, 0, 10.0, 0.0)
    assert describe(2.0, (10.0, 90.0), 150.0, {ROOT: 7}) == (2.0, 7, 90.0, 50.0)
    assert describe(3.0, (10.0, 90.0), 150.0, {ROOT: None}).job_bytes is None
    assert account.describe(GpuReadings(4.0)) == (0.0, None, None, None)


def test_a_zero_from_before_the_job_held_something_unknown_is_unknown() -> None:
    """The first reading is older than the job's memory; what is known of it later counts."""
    device = GpuReading("GPU-0", measures_processes=True)
    before = [GpuReadings(float(at), (device,)) for at in range(2)]
    there = GpuReadings(2.0, (device,), (GpuProcessReading("GPU-0", CHILD),))
    after = GpuReadings(3.0, (device,))
    known = GpuReadings(4.0, (device,), (GpuProcessReading("GPU-0", CHILD, 7 * MB, 50.0),))
    unknown = account_of(*before, there, after)
    (peaks,) = unknown.peaks
    (counters,) = unknown.counters

    assert peaks.job_bytes == Parts(None, None, None)
    assert (counters.job_percent_seconds, counters.job_seconds) == (0.0, 0.0)
    assert account_of(*before, there).samples()[0].job_bytes is None
    (peaks,) = account_of(*before, there, after, known).peaks
    assert peaks.job_bytes.combined == 7 * MB
    assert account_of(*before, after).peaks[0].job_bytes.combined == 0


def test_a_device_that_stops_listing_its_processes_has_no_zero() -> None:
    """Nor if it lists them again: what the job held meanwhile is not known, and how long that was is said."""
    lists, doubted = GpuReading("GPU-0", 5), GpuReading("GPU-0", 5, lists_processes=False)
    fails = doubted._replace(has_lost_list=True)

    def read(*devices: GpuReading) -> list[GpuReadings]:
        return [GpuReadings(float(at), (device,)) for at, device in enumerate(devices)]

    readings = read(lists, fails, lists)
    assert account_of(*readings[:2]).peaks[0].job_bytes.combined is None
    assert account_of(*read(lists, doubted)).peaks[0].job_bytes.combined is None
    assert account_of(*read(lists, doubted, lists)).peaks[0].job_bytes.combined == 0
    account = account_of(*readings)
    assert account.peaks[0].job_bytes == Parts(None, None, None)
    account.add(Gpu(0, "GPU-0", "A", None))
    assert account.list_gaps() == (
        "NVIDIA GPU 0 did not list its processes for 1 s from 0.0 s on: what the job used of it then is not known.",
    )
    account.start_interval()
    account.take(GpuReadings(4.0, (lists,)), {})
    assert account.samples()[0].job_bytes == 0


def test_a_lost_driver_leaves_what_was_known() -> None:
    """Zero becomes unknown, and other vendors are not concerned."""
    idle, busy = (GpuReadings(0.0, (GpuReading(f"GPU-{n}"),)) for n in range(2))
    busy = busy._replace(processes=(GpuProcessReading("GPU-1", ROOT, 3 * MB),))
    account = GpuAccount(ROOT)
    for one in (Gpu(0, "GPU-0", "A", None), Gpu(1, "GPU-1", "A", None), Gpu(0, "GPU-2", "B", None, "amd")):
        account.add(one)
    for readings in (idle, busy, GpuReadings(0.0, (GpuReading("GPU-2"),))):
        account.take(readings, {})
    account.lose("nvidia")

    assert [peak.job_bytes.combined for peak in account.peaks] == [None, 3 * MB, 0]


def test_a_driver_that_samples_processes_and_one_that_stops_doing_so() -> None:
    """Steady at 60 %; the percentage over the last second is for display only."""
    process = GpuProcessReading("GPU-0", ROOT, 1, 99.0)
    account = GpuAccount(ROOT)
    for number in range(1, 21):
        instants = ((number / 4 - 0.1, 60.0),)
        device = GpuReading("GPU-0", measures_processes=True, shares=GpuShares(instants))
        account.take(GpuReadings(number / 4, (device,), (process,)), {})
    waiting = account.counters[0]
    account.take(GpuReadings(6.0, (GpuReading("GPU-0"),), (process,)), {})
    account.finish()
    (counters,) = account.counters

    assert waiting.job_percent_seconds / waiting.job_seconds == pytest.approx(60.0)
    assert counters.job_percent_seconds / counters.job_seconds == pytest.approx(60.0)
    assert counters.job_seconds == pytest.approx(4.65)


def test_memory_that_devices_share_counts_once() -> None:
    """Instances for computing in one of the GPU."""
    one, other = GpuReading("MIG-a", used_bytes=5), GpuReading("MIG-b", used_bytes=5, is_part_of="MIG-a")

    assert GpuAccount(ROOT).take(GpuReadings(0.0, (one, other)), NAMES).system_bytes == 5
