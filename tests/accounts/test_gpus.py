"""The job's memory and utilization on each device."""

from __future__ import annotations

from typing import Any

import pytest

from builders import MB, ROOT, gpu, gpu_readings
from gpu_tracker.accounts.gpus import Drawn, GpuAccount, GpuMoment, Span
from gpu_tracker.core.model import (
    Gpu,
    GpuFault,
    GpuHighWater,
    GpuProcessReading,
    GpuReading,
    GpuReadings,
    GpuSample,
    GpuShares,
    Parts,
    Traffic,
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


def test_growth_is_from_before_the_start_to_the_last_reading() -> None:
    """Not to the most of the last interval; a device that was found later, or is lost, may have held anything."""
    before = gpu_readings(0.0, ("GPU-0", 1000, 10.0), GPU_0={ROOT: 1000})
    more = gpu_readings(1.0, ("GPU-0", 3000, 50.0), GPU_0={ROOT: 3000})
    less = gpu_readings(1.2, ("GPU-0", 600, 0.0), GPU_0={ROOT: 600})
    unlisted = GpuReadings(1.3, (GpuReading("GPU-0", 600 * MB, lists_processes=False),))

    assert account_of(before, more, less).find_growth() == -400 * MB
    assert account_of(more, less).find_growth() is None
    assert account_of(before, unlisted).find_growth() is None
    assert account_of(unlisted).find_growth() is None


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
    assert account.samples(0.0)[1].job_bytes is None
    assert account.samples(0.0)[2].job_bytes == 0


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

    assert account.samples(0.0)[0].job_percent == 100.0


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


@pytest.mark.parametrize(("jump", "total"), [(150.0, 590.0), (170.0, 440.0)])
def test_a_jump_is_measured_by_the_power_limit(jump: float, total: float) -> None:
    """For a moment a device may draw twice as much, and its counter may be a tenth of a second late."""
    account = GpuAccount(ROOT)
    account.add(Gpu(0, "GPU-0", "A", None, power_limit_watts=400.0))
    for at, value in ((0.0, 0.0), (1.0, 400.0), (1.1, 440.0), (1.2, 440.0 + jump)):
        account.take(GpuReadings(at, (GpuReading("GPU-0", energy_joules=value),)), NAMES)

    assert account.counters[0].energy_joules == pytest.approx(total)


def test_a_counter_that_moves_once_a_second_does_not_jump() -> None:
    """Then it has collected all that was used meanwhile; also at the first time, which says nothing of how often it moves."""
    account = GpuAccount(ROOT)
    account.add(Gpu(0, "GPU-0", "A", None, power_limit_watts=400.0))
    for tenth in range(31):
        reading = GpuReading("GPU-0", energy_joules=400.0 * ((tenth + 9) // 10))
        account.take(GpuReadings(tenth / 10, (reading,)), NAMES)

    assert account.counters[0].energy_joules == pytest.approx(1200.0)
    assert account.list_gaps() == ()


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
        "The energy counter of NVIDIA GPU 0 jumped by more than the device can draw, or began again: "
        "its energy is without 2 s of the time.",
    )


@pytest.mark.parametrize(
    ("samples", "polled"), [(None, (("polled", "GPU-0"),)), ((), ()), (((1.0, 40.0),), ())]
)
def test_utilization_without_samples_of_the_driver_is_polled(
    samples: tuple[tuple[float, float], ...] | None, polled: tuple[tuple[str, str], ...]
) -> None:
    """Said once; what is not reported at all is not."""
    reading = GpuReading("GPU-0", utilization_percent=40.0, samples=samples)
    account = account_of(
        GpuReadings(0.0, (GpuReading("GPU-0"),)),
        GpuReadings(0.5, (GpuReading("GPU-0"),)),
        GpuReadings(1.0, (reading,)),
        GpuReadings(2.0, (GpuReading("GPU-0", utilization_percent=40.0, samples=((2.0, 40.0),)),)),
    )

    assert (account.take_estimates(), account.take_estimates()) == (polled, ())


def read_power(*watts: float | None, energy_joules: float | None = None) -> GpuAccount:
    """A second apart; the counter of energy appears with the last reading, if at all."""
    last = len(watts) - 1
    return account_of(
        *(
            GpuReadings(
                float(at),
                (
                    GpuReading(
                        "GPU-0", power_watts=value, energy_joules=energy_joules if at == last else None
                    ),
                ),
            )
            for at, value in enumerate(watts)
        )
    )


def test_without_a_counter_energy_is_power_over_time() -> None:
    """The mean of two readings in between; what is not between two is not counted, and the label is said once."""
    account = read_power(100.0, 200.0, 200.0, None, 300.0, 100.0)

    assert (account.counters[0].energy_joules, account.counters[0].energy_seconds) == (550.0, 3.0)
    assert (account.take_estimates(), account.take_estimates()) == ((("integrated", "GPU-0"),), ())
    assert read_power(100.0).counters[0].energy_joules is None
    assert read_power(100.0).take_estimates() == ()


def draw(*joules: float, watts: float | None = 100.0) -> GpuAccount:
    """A second apart, at a steady power."""
    account = GpuAccount(ROOT)
    account.add(Gpu(0, "GPU-0", "A", None))
    for at, value in enumerate(joules):
        reading = GpuReading("GPU-0", power_watts=watts, energy_joules=value)
        account.take(GpuReadings(float(at), (reading,)), NAMES)
    return account


def test_a_counter_of_energy_that_stands_still_while_power_is_drawn_is_replaced_by_power() -> None:
    """From the beginning, or in the middle; what it collects meanwhile is not counted twice."""
    still = draw(*[5000.0] * 11)
    stopped = draw(0.0, 100.0, 200.0, *[200.0] * 8)
    catching_up = draw(0.0, 100.0, 200.0, *[200.0] * 5, 800.0, 900.0)
    accounts = (still, stopped, catching_up)

    assert [account.counters[0].energy_joules for account in accounts] == [1000.0, 1000.0, 900.0]
    assert [account.take_estimates() for account in accounts] == [(("integrated", "GPU-0"),)] * 3
    assert still.list_gaps() == (
        "The energy counter of NVIDIA GPU 0 stood still for 10 s from 0.0 s on although the device drew power: its energy in that time is "
        "estimated from power.",
    )


def test_a_counter_of_energy_that_has_never_moved_says_nothing() -> None:
    """Nobody can tell whether it works. One that has moved may rest while next to nothing is drawn."""
    unknown = draw(*[5000.0] * 11, watts=None)
    short = draw(5000.0, 5000.0)
    resting = draw(0.0, 100.0, *[100.0] * 9, watts=0.1)

    joules = [account.counters[0].energy_joules for account in (unknown, short, resting)]
    assert joules == [None, None, 100.0]
    assert resting.take_estimates() == ()


def test_a_counter_that_stands_still_while_power_cannot_be_read_is_not_believed() -> None:
    """Whether it still counts is known only if it moves within a short time."""
    stopped = draw(0.0, 100.0, 200.0, *[200.0] * 8, watts=None)
    slow = draw(0.0, 100.0, 100.0, 300.0, watts=None)
    accounts = (stopped, slow)

    assert [account.counters[0].energy_joules for account in accounts] == [200.0, 300.0]
    assert [account.counters[0].energy_seconds for account in accounts] == [2.0, 3.0]
    assert stopped.list_gaps() == (
        "The energy counter of NVIDIA GPU 0 stood still for 8 s from 2.0 s on while its power could not be read: its energy is without that time.",
    )
    assert slow.list_gaps() == ()


@pytest.mark.parametrize(("still_seconds", "is_estimate"), [(1.0, False), (1.5, True), (2.5, True)])
def test_a_counter_that_stands_still_for_a_while_is_replaced_meanwhile(
    still_seconds: float, is_estimate: bool
) -> None:
    """None is updated less often than once a second."""
    ticks = range(25)
    until = 1.0 + still_seconds
    counted = [
        100.0 * (at if at <= 1.0 else max(1.0, at - still_seconds)) for at in (tick / 4 for tick in ticks)
    ]
    readings = (
        GpuReadings(tick / 4, (GpuReading("GPU-0", power_watts=100.0, energy_joules=joules),))
        for tick, joules in zip(ticks, counted, strict=True)
    )
    account = account_of(*readings)

    assert counted[round(4 * until)] == 100.0
    assert account.counters[0].energy_joules == (600.0 if is_estimate else 500.0)
    assert account.take_estimates() == ((("integrated", "GPU-0"),) if is_estimate else ())


def test_a_long_time_between_two_readings_of_power_has_no_energy() -> None:
    """What was drawn in it is not known."""
    times = (0.0, 1.0, 2.0, 3.0, 60.0, 61.0)
    account = account_of(*(GpuReadings(at, (GpuReading("GPU-0", power_watts=100.0),)) for at in times))

    assert (account.counters[0].energy_joules, account.counters[0].energy_seconds) == (400.0, 4.0)


def test_a_counter_that_appears_later_goes_on_from_there() -> None:
    """It began before, so only what it counts from then on is added."""
    account = read_power(100.0, 100.0, 100.0, energy_joules=5000.0)
    account.take(GpuReadings(3.0, (GpuReading("GPU-0", power_watts=100.0, energy_joules=5070.0),)), NAMES)

    assert (account.counters[0].energy_joules, account.counters[0].energy_seconds) == (170.0, 2.0)


def test_energy_is_the_difference_of_the_counter_even_after_a_reset() -> None:
    """What was counted before a reset is kept, without the time in which it happened; a device without a counter has no energy."""
    joules = (1000.0, 1400.0, None, 100.0, 150.0)
    account = account_of(
        *(
            GpuReadings(float(at), (GpuReading("GPU-0", energy_joules=value),))
            for at, value in enumerate(joules)
        )
    )
    (counters,) = account.counters

    assert counters.energy_joules == 450.0
    assert counters.energy_seconds == 2.0
    assert account_of(gpu_readings(0.0, ("GPU-0", 1, 1.0))).counters[0].energy_joules is None


def test_time_throttled_is_added_up() -> None:
    """By cause, over the time in which utilization is known: it is never a larger share than all of it."""
    limits = (None, ("heat",), ("heat", "power cap"), (), ("heat",))
    busy = (50.0, 50.0, 50.0, 50.0, None)
    account = account_of(
        *(
            GpuReadings(float(at), (GpuReading("GPU-0", utilization_percent=percent, limits=names),))
            for at, (names, percent) in enumerate(zip(limits, busy, strict=True))
        )
    )

    assert account.counters[0].limited_seconds == (("heat", 2.0), ("power cap", 1.0))
    assert account.counters[0].utilization_seconds == 3.0


def test_the_drivers_accounting_makes_a_peak_exact() -> None:
    """If one process was alone there, and the driver said so in the end; of two it is a lower bound."""
    readings = gpu_readings(0.0, ("GPU-0", 3000, 0.0), GPU_0={ROOT: 1000})
    with_peaks = readings._replace(
        high_waters=(GpuHighWater("GPU-0", ROOT, 2500 * MB), GpuHighWater("GPU-9", ROOT, 1))
    )
    alone = account_of(with_peaks, gpu_readings(1.0, ("GPU-0", 3000, 0.0), GPU_0={ROOT: 2500}))
    early = account_of(with_peaks, gpu_readings(1.0, ("GPU-0", 3000, 0.0), GPU_0={ROOT: 2500}))
    two = account_of(
        gpu_readings(0.0, ("GPU-0", 3000, 0.0), GPU_0={ROOT: 1000, CHILD: 900}),
        GpuReadings(1.0, (), (), (GpuHighWater("GPU-0", CHILD, 1800 * MB),)),
        GpuReadings(2.0, (), (), (GpuHighWater("GPU-0", CHILD, 900 * MB),)),
    )

    bases = alone.peaks[0].basis, alone.processes[0].basis
    alone.finish(0.0, has_ended=True)
    early.finish(0.5, has_ended=True)
    two.finish(2.0, has_ended=True)

    assert bases == (early.peaks[0].basis, early.processes[0].basis) == ("sampled", "sampled")
    assert (alone.peaks[0].job_bytes.combined, alone.peaks[0].basis) == (2500 * MB, "exact")
    assert alone.processes[0].basis == "exact"
    assert (two.peaks[0].job_bytes.descendants, two.peaks[0].job_bytes.combined) == (1800 * MB, 1900 * MB)
    assert two.peaks[0].basis == "sampled"


def test_an_account_beside_others_that_are_not_known_makes_nothing_exact() -> None:
    """They may have been the job's; what this process held is exact all the same."""
    readings = gpu_readings(0.0, ("GPU-0", 3000, 0.0), GPU_0={ROOT: 1000})
    account = account_of(readings._replace(high_waters=(GpuHighWater("GPU-0", ROOT, 2500 * MB, False),)))
    account.finish(0.0, has_ended=True)

    assert (account.peaks[0].job_bytes.combined, account.peaks[0].basis) == (2500 * MB, "sampled")
    assert account.processes[0].basis == "exact"


def test_a_list_without_processes_that_still_hold_memory_is_not_believed() -> None:
    """What the job held meanwhile is unknown; once they have ended, an empty list is right."""

    def read(at: float, used: int, held: int) -> GpuReadings:
        readings = gpu_readings(at, ("GPU-0", used, 0.0), GPU_0={ROOT: held} if held else {})
        (device,) = readings.devices
        return readings._replace(devices=(device._replace(listed_bytes=held * MB),))

    account = account_of(read(0.0, 1000, 1000), read(1.0, 1000, 1000), read(2.0, 6000, 0), read(3.0, 6000, 0))
    account.add(gpu(0))
    account.take(read(4.0, 1000, 1000), NAMES)
    account.take(read(5.0, 1000, 0), {})

    assert account.counters[0].job_bytes_unknown_seconds == 2.0
    assert (account.counters[0].used_bytes_unknown_seconds, account.peaks[0].job_bytes.combined) == (
        0.0,
        1000 * MB,
    )
    assert account.list_gaps() == (
        "NVIDIA GPU 0 did not list its processes for 2 s from 1.0 s on: what the job used of it then is not known.",
    )


def test_a_high_water_mark_equal_to_a_reading_confirms_it() -> None:
    """The reading was at the peak."""
    readings = gpu_readings(0.0, ("GPU-0", 3000, 0.0), GPU_0={ROOT: 1000})
    account = account_of(readings, GpuReadings(1.0, (), (), (GpuHighWater("GPU-0", ROOT, 1000 * MB),)))
    account.finish(1.0, has_ended=True)

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
    (sample,) = account.samples(2.0)
    account.start_interval()
    account.take(gpu_readings(3.0, ("GPU-0", 300, 30.0), GPU_0={ROOT: 250}), NAMES)
    (after,) = account.samples(3.0)

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

    def span(start: float, end: float, percent: float) -> Span:
        return Span(start, end, percent, is_sampled=False)

    assert describe(0.0, (10.0, 90.0), 100.0, {}) == GpuMoment(0, 1)
    assert describe(1.0, (10.0, 90.0), 100.0, {}) == GpuMoment(0, 1, (span(0.0, 1.0, 10.0),))
    assert describe(3.0, (10.0, 90.0), 150.0, {ROOT: 7}) == GpuMoment(
        7, 1, (span(1.0, 3.0, 90.0),), (Drawn(50.0, 0.0, 3.0),)
    )
    assert describe(4.0, (10.0, 90.0), 150.0, {ROOT: None}).job_bytes is None
    assert account.describe(GpuReadings(5.0)) == GpuMoment(None, 1)


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
    assert account_of(*before, there).samples(2.0)[0].job_bytes is None
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
    assert account.samples(4.0)[0].job_bytes == 0


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
    account.finish(6.0, has_ended=True)
    (counters,) = account.counters

    assert waiting.job_percent_seconds / waiting.job_seconds == pytest.approx(60.0)
    assert counters.job_percent_seconds / counters.job_seconds == pytest.approx(60.0)
    assert counters.job_seconds == pytest.approx(4.65)


def test_time_without_samples_of_processes_is_no_idle_time() -> None:
    """The call fails for a while, again and again: the mean is that of the rest, and the time is said."""
    process = GpuProcessReading("GPU-0", ROOT, 1, 50.0)
    account = GpuAccount(ROOT)
    account.add(gpu(0))
    for number in range(1, 101):
        at = number / 4
        samples = tuple((index / 8, 50.0) for index in range(2 * number - 1, 2 * number + 1))
        named = None if at % 4 < 1.5 else GpuShares(((at - 0.1, 50.0),), True, at)
        device = GpuReading("GPU-0", samples=samples, measures_processes=named is not None, shares=named)
        account.take(GpuReadings(at, (device,), (process,)), {})
    account.finish(25.0, has_ended=True)
    (counters,) = account.counters

    assert counters.job_percent_seconds / counters.job_seconds == pytest.approx(50.0)
    assert 13 < counters.job_seconds < 16
    assert account.list_gaps() == (
        "NVIDIA GPU 0 did not report utilization by process for 8.75 s from 3.8 s on: "
        "the mean of the job's own is without that time.",
    )


def test_memory_that_devices_share_counts_once() -> None:
    """Instances for computing in one of the GPU."""
    one, other = GpuReading("MIG-a", used_bytes=5), GpuReading("MIG-b", used_bytes=5)
    account = GpuAccount(ROOT)
    account.add(Gpu(0, "MIG-a", "A", None))
    account.add(Gpu(0, "MIG-b", "A", None, shares_memory_with="MIG-a"))

    assert account.take(GpuReadings(0.0, (one, other)), NAMES).system_bytes == 5


def test_activity_is_counted_with_the_time_that_it_covers() -> None:
    """A mean that an earlier reading has told counts once; a figure that is missing covers no time."""
    account = GpuAccount(ROOT)
    for at, sm, tensor, seconds in (
        (0.0, None, None, 0.0),
        (1.0, 80.0, 20.0, 1.0),
        (1.5, 80.0, 20.0, 0.0),
        (4.0, 40.0, None, 3.0),
    ):
        reading = GpuReading("GPU-0", sm_percent=sm, tensor_percent=tensor, activity_seconds=seconds)
        account.take(GpuReadings(at, (reading,)), {})
        if at == 1.5:
            (early,) = account.samples(at)
            account.start_interval()
    (counters,), (late,) = account.counters, account.samples(4.0)

    assert counters.activity == ((200.0, 4.0), (0.0, 0.0), (20.0, 1.0), (0.0, 0.0))
    assert (early.sm_percent, early.tensor_percent, early.bandwidth_percent) == (80.0, 20.0, None)
    assert (late.sm_percent, late.tensor_percent) == (40.0, None)


def test_what_went_through_the_links_is_summed_up() -> None:
    """What a reading does not tell adds nothing; a link that is never told is not known."""
    account = GpuAccount(ROOT)
    for at, moved in enumerate((Traffic(), Traffic(100, 10, None, 5), Traffic(), Traffic(None, 1, None, 2))):
        account.take(GpuReadings(float(at), (GpuReading("GPU-0", traffic=moved),)), {})
    (counters,) = account.counters

    assert counters.traffic == (100, 11, None, 7)


def use(at: float, busy: float, joules: float, **percents: float | None) -> GpuReadings:
    """A reading of one device with these processes, by name."""
    pids = {name: pid for pid, name in NAMES.items()}
    return GpuReadings(
        at,
        (GpuReading("GPU-0", 1000 * MB, busy, energy_joules=joules, measures_processes=True),),
        tuple(GpuProcessReading("GPU-0", pids[name], MB, percent) for name, percent in percents.items()),
    )


def test_each_process_has_its_part_of_what_the_job_used() -> None:
    """And of the energy of the device, as much as it used of it; nothing is known of who is not told."""
    account = account_of(
        use(0.0, 0.0, 1000.0, train=0.0, worker=0.0),
        use(2.0, 80.0, 1200.0, train=40.0, worker=20.0),
        use(4.0, 50.0, 1300.0, train=50.0, worker=0.0),
        use(6.0, 0.0, 1310.0, train=0.0),
    )
    whole = 2 * 0.8 + 2 * 0.5

    assert list(account.find_use(ROOT)) == pytest.approx([1.8, 310 * 1.8 / whole])
    assert list(account.find_use(CHILD)) == pytest.approx([0.4, 310 * 0.4 / whole])
    assert account.find_use(7) == (None, None)
    account.forget_use(ROOT)
    assert account.find_use(ROOT) == (None, None)


def test_a_device_that_measures_no_activity_counts_none() -> None:
    """Its lines are as short as before."""
    (counters,) = account_of(*(gpu_readings(at, ("GPU-0", 1, 50.0)) for at in (0.0, 1.0))).counters

    assert counters.activity == ()


def test_a_lost_driver_leaves_no_zero_percent() -> None:
    """Neither as peak nor as mean nor as latest value; what was busy stays so."""
    account = GpuAccount(ROOT)
    account.add(Gpu(0, "GPU-0", "A", None))
    account.add(Gpu(1, "GPU-1", "A", None))
    for at in (0.0, 1.0):
        idle = GpuReading("GPU-0", utilization_percent=0.0, sm_percent=0.0, activity_seconds=at)
        busy = GpuReading("GPU-1", utilization_percent=50.0, sm_percent=20.0, activity_seconds=at)
        account.take(GpuReadings(at, (idle, busy)), {})
    account.start_interval()
    assert account.has_read("nvidia")
    assert not account.has_read("amd")
    account.lose("nvidia")

    assert [peak.utilization_percent for peak in account.peaks] == [None, 50.0]
    assert [one.utilization_seconds for one in account.counters] == [0.0, 1.0]
    assert [one.activity[0] for one in account.counters] == [(0.0, 0.0), (20.0, 1.0)]
    assert [(one.utilization_percent, one.sm_percent) for one in account.samples(1.0)] == [(None, None)] * 2


# ---- Times in which nothing was read.


def read_all(
    *delays: tuple[float, float], end_seconds: float = 0.0, is_lost: bool = False
) -> tuple[float, float, float]:
    """Gaps in what the job held, what all did, and utilization, in ten readings, one a second, the fifth after these delays.

    A delay: for how long the driver did not answer, and for how long nobody read.
    """
    account = GpuAccount(ROOT)
    account.add(gpu(0))
    for at in range(10):
        unanswered_seconds, late_seconds = (*delays, (0.0, 0.0))[0] if at == 5 else (0.0, 0.0)
        readings = read_busy(float(at), lists_processes=True)
        account.take(
            readings._replace(unanswered_seconds=unanswered_seconds, late_seconds=late_seconds), NAMES
        )
    if is_lost:
        account.lose("nvidia")
    account.finish(end_seconds or 9.0, has_ended=True)
    (counters,) = account.counters
    return (
        counters.job_bytes_gap_seconds,
        counters.used_bytes_gap_seconds,
        counters.utilization_gap_seconds,
    )


def test_a_driver_that_does_not_answer_in_time_leaves_a_gap() -> None:
    """However short, and even if the next reading follows soon; what is polled is then not known either."""
    assert read_all() == (0.0, 0.0, 0.0)
    assert read_all((0.3, 0.0)) == pytest.approx((0.3, 0.3, 0.3))
    assert read_all((5.0, 0.0)) == (1.0, 1.0, 1.0)
    assert read_all((0.3, 0.6)) == pytest.approx((0.6, 0.6, 0.6))


def test_a_machine_that_stands_still_for_a_moment_leaves_a_gap_unless_the_run_is_long() -> None:
    """One in a hundred seconds may be missing, a little at a time."""
    assert read_all((0.0, 0.4)) == pytest.approx((0.4, 0.4, 0.4))
    assert read_all((0.0, 0.4), end_seconds=10.0) == pytest.approx((0.4, 0.4, 0.4))
    long = GpuAccount(ROOT)
    for at in range(50):
        late_seconds = 0.4 if at == 5 else 0.0
        long.take(read_busy(float(at), lists_processes=True)._replace(late_seconds=late_seconds), NAMES)
    long.finish(49.0, has_ended=True)

    (counters,) = long.counters
    assert counters.job_bytes_unknown_seconds == pytest.approx(0.4)
    assert (counters.job_bytes_gap_seconds, counters.used_bytes_gap_seconds) == (0.0, 0.0)


def test_a_driver_that_is_silent_at_the_end_leaves_a_gap() -> None:
    """From the last reading on, however recent that is; without, a reading stands for the usual time."""
    assert read_all(end_seconds=9.4) == (0.0, 0.0, 0.0)
    assert read_all(end_seconds=9.4, is_lost=True) == pytest.approx((0.4, 0.4, 0.4))


def test_what_is_not_reported_for_a_moment_leaves_a_gap_of_that_figure() -> None:
    """Unless it never was; what is not known at first is none, but of a device that others were read before."""
    account = GpuAccount(ROOT)
    for number in range(3):
        account.add(gpu(number))
    for at in range(4):
        is_known = at != 2
        known = GpuReading("GPU-0", 5 * MB if is_known else None, 40.0 if is_known else None)
        never = GpuReading("GPU-1", lists_processes=False)
        late = (GpuReading("GPU-2", 5 * MB, 40.0),) if at > 1 else ()
        account.take(GpuReadings(1.0 + at, (known, never, *late), vendor="nvidia"), NAMES)
    account.finish(4.0, has_ended=True)

    gaps = [
        (one.job_bytes_gap_seconds, one.used_bytes_gap_seconds, one.utilization_gap_seconds)
        for one in account.counters
    ]
    assert gaps == [(0.0, 1.0, 1.0), (0.0, 0.0, 0.0), (3.0, 3.0, 3.0)]


def read_busy(at_seconds: float, percent: float | None = 40.0, **figures: Any) -> GpuReadings:
    """The first device of NVIDIA at one instant."""
    device = GpuReading("GPU-0", 5 * MB, percent, power_watts=100.0, **figures)
    return GpuReadings(at_seconds, (device,), vendor="nvidia")


def test_a_sample_repeats_the_latest_reading_only_until_the_next_is_overdue() -> None:
    """Readings come every second: after two without one, nothing is known, until there is one again."""
    account = account_of(*(read_busy(float(at)) for at in range(4)))
    account.start_interval()

    assert account.samples(4.5)[0].power_watts == 100.0
    assert account.samples(6.0) == (GpuSample("GPU-0"),)
    account.take(read_busy(9.0), NAMES)
    assert account.samples(12.0)[0].used_bytes == 5 * MB
    account.start_interval()
    assert account.samples(12.0) == (GpuSample("GPU-0"),)


def test_a_first_reading_counts_for_a_moment_only() -> None:
    """A driver may hang before there is another."""
    account = account_of(read_busy(0.0))
    account.start_interval()

    assert account.samples(1.0)[0].used_bytes == 5 * MB
    assert account.samples(3.0) == (GpuSample("GPU-0"),)


def test_a_value_after_a_long_silence_says_nothing_of_it() -> None:
    """It stands for the usual time between readings, of the device and of the open regions."""
    readings = read_busy(13.0, 100.0)
    account = account_of(*(read_busy(float(at), 0.0) for at in range(4)), readings)

    assert account.counters[0].utilization_percent_seconds == 100.0
    assert account.counters[0].utilization_seconds == 4.0
    assert [span.length_seconds for span in account.describe(readings).spans] == [1.0]


def test_samples_that_a_driver_no_longer_has_are_unknown() -> None:
    """Of ten seconds it has kept the last one."""
    account = account_of(
        read_busy(0.0, samples=()),
        read_busy(1.0, samples=((0.5, 0.0), (1.0, 0.0))),
        read_busy(11.0, samples=((10.5, 100.0), (11.0, 100.0))),
    )

    assert account.counters[0].utilization_percent_seconds == 150.0
    assert account.counters[0].utilization_seconds == 2.5


def test_a_device_that_is_not_read_with_the_others_is_unknown() -> None:
    """Zero bytes from before are not a peak then; one of another vendor, or asleep, is not missed."""
    account = GpuAccount(ROOT)
    for number in range(2):
        account.add(gpu(number))
    account.add(gpu(2)._replace(vendor="amd"))
    every = tuple(GpuReading(f"GPU-{number}", 5 * MB, 10.0) for number in range(3))
    account.take(GpuReadings(0.0, every), NAMES)
    account.start_interval()
    account.take(GpuReadings(1.0, vendor="nvidia", asleep=frozenset({"GPU-1"})), NAMES)

    assert [peaks.job_bytes.combined for peaks in account.peaks] == [None, 0, 0]
    assert [sample.used_bytes for sample in account.samples(1.0)] == [None, 5 * MB, 5 * MB]
    assert account.list_gaps() == (
        "NVIDIA GPU 0 could not be read for 1 s from 0.0 s on: its figures of that time are missing.",
    )


def test_a_device_that_is_found_late_is_said() -> None:
    """If others were there before: else it is the driver that was late."""
    account = GpuAccount(ROOT)
    for number in range(2):
        account.add(gpu(number))
    account.take(gpu_readings(2.0, ("GPU-0", 5, 0.0))._replace(vendor="nvidia"), NAMES)
    later = gpu_readings(7.0, ("GPU-0", 5, 0.0), ("GPU-1", 5, 0.0))._replace(vendor="nvidia")
    account.take(later, NAMES)

    assert account.list_gaps() == (
        "NVIDIA GPU 1 was found only at 7.0 s: what was used of it before is not known.",
    )


def test_utilization_that_is_no_longer_reported_is_said_with_the_time() -> None:
    """One that never was reported has its own note."""
    account = account_of(*(read_busy(float(at), 40.0 if at < 3 else None) for at in range(8)))
    never = account_of(*(read_busy(float(at), None) for at in range(8)))
    for one in (account, never):
        one.add(gpu(0))

    assert account.list_gaps() == (
        "NVIDIA GPU 0 did not report its utilization for 5 s from 2.0 s on: means are without that time.",
    )
    assert never.list_gaps() == ()


def test_energy_drawn_while_the_counter_cannot_be_read_counts_with_its_time() -> None:
    """Nor does a counter that says 0 for once lose anything."""
    values = (100.0, 200.0, None, None, 0.0, 600.0)
    account = account_of(*(read_busy(float(at), energy_joules=value) for at, value in enumerate(values)))
    account.add(gpu(0))

    assert (account.counters[0].energy_joules, account.counters[0].energy_seconds) == (500.0, 5.0)
    assert account.list_gaps() == ()


def test_a_counter_that_is_read_late_covers_the_time_since_then() -> None:
    """And its step is of the reading that has it, not of later ones."""
    readings = [
        read_busy(float(at), energy_joules=value) for at, value in enumerate((None, 100.0, 150.0, None))
    ]
    account = account_of(*readings)

    assert (account.counters[0].energy_joules, account.counters[0].energy_seconds) == (50.0, 1.0)
    assert account.describe(readings[-1]).drawn == ()


def test_energy_is_of_the_time_between_the_calls_that_read_it() -> None:
    """A slow driver answers long after the reading has begun: 100 W, whatever the readings are dated."""
    at_seconds = ((0.0, -0.3), (1.0, 1.2), (3.0, 5.7))
    readings = [
        read_busy(at, energy_joules=100 * (1 + energy_at), energy_at_seconds=energy_at)
        for at, energy_at in at_seconds
    ]
    (counters,) = account_of(*readings).counters

    assert (counters.energy_joules, counters.energy_seconds) == pytest.approx((600.0, 6.0))


def test_a_driver_that_begins_to_sample_the_device_is_metered_by_its_samples() -> None:
    """What was known before is kept."""
    account = GpuAccount(ROOT)
    named = [GpuShares(((float(at), 50.0),), until_seconds=float(at)) for at in range(4)]
    for at, shares in enumerate(named):
        samples = ((float(at), 50.0),) if at > 1 else None
        process = GpuProcessReading("GPU-0", ROOT, 5 * MB, 50.0)
        reading = GpuReading("GPU-0", 5 * MB, 50.0, samples=samples, shares=shares)
        account.take(GpuReadings(float(at), (reading,), (process,)), NAMES)
    account.finish(3.0, has_ended=True)

    assert account.counters[0].job_percent_seconds == pytest.approx(50.0 * account.counters[0].job_seconds)
    assert account.counters[0].job_seconds > 0


def test_samples_that_were_fetched_between_readings_count() -> None:
    """A driver that keeps only the newest is asked ten times a second, and read once: half of the time is the job's."""
    account = GpuAccount(ROOT)
    process = GpuProcessReading("GPU-0", ROOT, 5 * MB, 50.0)
    for second in range(1, 11):
        ticks = [second - 1 + number / 10 for number in range(1, 11)]
        *earlier, last = [
            GpuShares(((at, 60.0 if at % 0.4 < 0.2 else 0.0),), until_seconds=at) for at in ticks
        ]
        reading = GpuReading(
            "GPU-0",
            5 * MB,
            90.0,
            samples=tuple((at, 90.0) for at in ticks),
            shares=last._replace(earlier=tuple(earlier)),
            has_others=True,
        )
        account.take(GpuReadings(float(second), (reading,), (process,)), NAMES)
    account.finish(10.0, has_ended=True)
    (counters,) = account.counters

    assert counters.job_seconds == pytest.approx(9.0)  # since the first reading
    assert counters.job_percent_seconds / counters.job_seconds == pytest.approx(30.0, abs=1.5)


def count_unknown(account: GpuAccount, end_seconds: float) -> tuple[float, float]:
    """How long at the end of the run it was not known what the job and all processes held."""
    account.finish(end_seconds, has_ended=True)
    (counters,) = account.counters
    return counters.job_bytes_unknown_seconds, counters.used_bytes_unknown_seconds


def test_the_time_without_a_size_is_counted() -> None:
    """Before the first reading, while a list fails, while a device cannot be read, and while a driver hangs."""
    held: dict[str, dict[int, int | None]] = {"GPU_0": {ROOT: 1000}}
    steady = [gpu_readings(float(at), ("GPU-0", 3000, 50.0), **held) for at in range(4)]
    unlisted = GpuReadings(4.0, (GpuReading("GPU-0", MB, lists_processes=False, has_lost_list=True),))
    lost = GpuReadings(4.0, vendor="nvidia")
    later = gpu_readings(5.0, ("GPU-0", 3000, 50.0), **held)
    after_a_hang = gpu_readings(13.0, ("GPU-0", 3000, 50.0), **held)

    assert count_unknown(account_of(*steady), 4.0) == (0, 0)
    assert count_unknown(account_of(*steady[2:]), 4.0) == (2, 2)
    assert count_unknown(account_of(*steady, unlisted, later), 5.0) == (1, 0)
    assert count_unknown(account_of(*steady, after_a_hang), 13.0) == (9, 9)
    assert count_unknown(account_of(*steady), 13.0) == (10, 10)
    account = GpuAccount(ROOT)
    account.add(gpu())
    for readings in (*steady, lost, later):
        account.take(readings, NAMES)
    assert count_unknown(account, 5.0) == (1, 1)


def test_a_device_that_sleeps_is_not_unknown() -> None:
    """Nothing changes on it meanwhile."""
    account = GpuAccount(ROOT)
    account.add(gpu())
    for at in range(3):
        account.take(gpu_readings(float(at), ("GPU-0", 3000, 50.0), GPU_0={ROOT: 1000}), NAMES)
    for at in range(3, 20):
        account.take(GpuReadings(float(at), vendor="nvidia", asleep=frozenset({"GPU-0"})), NAMES)
    account.take(gpu_readings(20.0, ("GPU-0", 3000, 50.0)), NAMES)

    assert count_unknown(account, 20.0) == (0, 0)


def finish(*sequence: GpuReadings, end_seconds: float, has_ended: bool = True) -> GpuAccount:
    """An account of a job that has ended then."""
    account = GpuAccount(ROOT)
    account.add(gpu())
    for readings in sequence:
        account.take(readings, NAMES)
    account.finish(end_seconds, has_ended=has_ended)
    return account


def test_a_job_that_ended_before_the_first_reading_may_have_used_anything() -> None:
    """What was read before it began and after it ended says nothing of it; a tracker that stops is another matter."""
    idle = [gpu_readings(at, ("GPU-0", 0, 0.0)) for at in (0.0, 0.3)]
    missed, read, stopped = (
        finish(*idle, end_seconds=end, has_ended=has_ended)
        for end, has_ended in ((0.2, True), (0.4, True), (0.2, False))
    )
    nothing = Parts(None, None, None)

    assert (missed.peaks[0].job_bytes, missed.peaks[0].used_bytes) == (nothing, None)
    assert (missed.peaks[0].utilization_percent, missed.counters[0].utilization_seconds) == (None, 0)
    assert missed.list_gaps() == (
        "The job was too short for a reading of the GPUs: what it used of them is not known.",
    )
    for account in (read, stopped):
        assert (account.peaks[0].job_bytes, account.peaks[0].used_bytes) == (Parts(0, 0, 0), 0)
        assert (account.peaks[0].utilization_percent, account.list_gaps()) == (0, ())


def test_a_list_that_is_doubted_after_the_start_does_not_make_a_job_short() -> None:
    """As in a container that shows process IDs of the host: nothing is known, for another reason."""
    begun = gpu_readings(0.0, ("GPU-0", 0, 0.0))
    doubted = GpuReadings(1.0, (GpuReading("GPU-0", 800, 60.0, lists_processes=False),), vendor="nvidia")
    account = finish(begun, doubted, end_seconds=4.0)

    assert (account.peaks[0].job_bytes, account.list_gaps()) == (Parts(None, None, None), ())


def test_memory_that_was_not_in_use_at_the_start_may_have_been_later() -> None:
    """If nothing was read for most of the time."""
    idle = [gpu_readings(float(at), ("GPU-0", 0, 0.0)) for at in range(4)]

    assert finish(*idle, end_seconds=20.0).peaks[0].used_bytes is None
    assert finish(*idle, end_seconds=5.0).peaks[0].used_bytes == 0


def test_faults_are_told_of_devices_that_the_job_may_use_or_uses() -> None:
    """Whatever its environment said when it began."""
    account = GpuAccount(ROOT)
    for ordinal, is_visible in enumerate((True, False, False)):
        account.add(Gpu(ordinal, f"GPU-{ordinal}", "A", None, is_visible=is_visible))
    devices = tuple(GpuReading(f"GPU-{ordinal}", used_bytes=MB) for ordinal in range(3))
    account.take(GpuReadings(0.0, devices, (GpuProcessReading("GPU-1", ROOT, MB),)), NAMES)
    faults = [GpuFault(f"GPU-{ordinal}", "Xid", 79, 3.0) for ordinal in range(4)]

    assert account.list_faults() == []
    assert [(at, text[:6]) for at, _, text in account.take_faults(faults)] == [
        (3.0, "GPU 0:"),
        (3.0, "GPU 1:"),
    ]
    assert account.take_faults([]) == []
    assert account.take_faults(faults[:1]) == []
    assert account.list_faults() == [("note", "GPU 0: Xid 79 was reported 2 times in all.")]


def test_links_that_are_not_counted_all_the_time_have_a_lower_bound() -> None:
    """A note says for how long; of one that moved nothing until then, nothing is known."""
    account = GpuAccount(root_pid=1)
    account.add(Gpu(0, "GPU-0", "", None, "nvidia", "nvml"))
    for at in range(11):
        moved = Traffic(100, 0, 50, None) if at <= 4 else Traffic(None, None, 50, None)
        reading = GpuReading("GPU-0", traffic=moved, activity_seconds=1.0 if at else 0.0)
        account.take(GpuReadings(float(at), (reading,), vendor="nvidia"), {})
    account.finish(10.0, has_ended=True)

    (counters,) = account.counters
    assert counters.traffic == (500, None, 550, None)
    assert account.list_gaps() == (
        "NVIDIA GPU 0 did not count what went through PCIe for 6 s: it was at least as much as is reported.",
    )
