"""The job's own utilization from the driver's samples: made-up drivers and jobs whose truth is known."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from gpu_tracker.accounts.gpu_shares import ShareMeter
from gpu_tracker.accounts.gpus import Span
from gpu_tracker.core.model import GpuShares

HERTZ = (1, 2, 3, 5, 7, 10)
PERCENT = 79.0


class Unmeasured(ShareMeter):
    """Of a device whose own utilization is not known."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self._at_seconds = 0.0

    def read(self, at_seconds: float, shares: GpuShares, *, is_there: bool) -> None:
        """Take one reading."""
        self.take([Span(self._at_seconds, at_seconds, None, is_sampled=False)], shares, is_there=is_there)
        self._at_seconds = at_seconds


def measure(
    hertz: float,
    reading_seconds: float,
    *,
    seconds: float = 20.0,
    phase: float = 0.3,
    is_busy: Callable[[float], bool] = lambda _: True,
    ours: Callable[[int], bool] = lambda _: True,
    returns_newest_only: bool = False,
) -> float:
    """The mean of a job that is there all the time; a driver that drops samples returns one per reading."""
    meter = Unmeasured()
    samples = [((number + phase) / hertz, number) for number in range(int(seconds * hertz))]
    for number in itertools.count(1):
        before, now = (number - 1) * reading_seconds, min(number * reading_seconds, seconds)
        new = [(at, PERCENT if ours(k) else 0.0) for at, k in samples if before < at <= now and is_busy(at)]
        are_complete = len(new) > 1 and not returns_newest_only
        meter.read(
            now, GpuShares(tuple(new[-1:] if returns_newest_only else new), are_complete), is_there=True
        )
        if now == seconds:
            break
    meter.finish()
    return meter.percent_seconds / meter.seconds


@pytest.mark.parametrize("hertz", HERTZ)
@pytest.mark.parametrize("reading_seconds", [0.05, 0.1, 0.25, 1.0])
@pytest.mark.parametrize("returns_newest_only", [False, True])
def test_a_steady_job(hertz: float, reading_seconds: float, returns_newest_only: bool) -> None:
    """However often the driver samples, and however often we read."""
    for seconds, phase in itertools.product((3.0, 20.0), (0.05, 0.5, 0.95)):
        mean = measure(
            hertz, reading_seconds, seconds=seconds, phase=phase, returns_newest_only=returns_newest_only
        )
        assert mean == pytest.approx(PERCENT, abs=1)


@pytest.mark.parametrize("hertz", HERTZ)
def test_a_sample_that_names_somebody_else(hertz: float) -> None:
    """Two of three are ours."""
    mean = measure(hertz, 0.25, seconds=30.0, ours=lambda number: number % 3 != 0)

    assert mean == pytest.approx(PERCENT * 2 / 3, abs=2)


@pytest.mark.parametrize("hertz", [3, 5, 7, 10])
@pytest.mark.parametrize("returns_newest_only", [False, True])
def test_a_job_with_pauses(hertz: float, returns_newest_only: bool) -> None:
    """Time without samples is idle once it is longer than the driver's period."""
    mean = measure(
        hertz,
        0.1,
        seconds=30.0,
        is_busy=lambda at: at % 5 < 3,
        returns_newest_only=returns_newest_only,
    )

    assert mean == pytest.approx(PERCENT * 3 / 5, abs=3)


def test_a_late_reading_of_a_driver_that_drops_samples_counts_no_idle_time() -> None:
    """The pause before the last reading was idle; what was dropped since is not known."""
    meter = Unmeasured()
    for number in range(1, 21):
        meter.read(number / 10, GpuShares(((number / 10 - 0.01, PERCENT),)), is_there=True)
    meter.read(2.5, GpuShares(), is_there=True)
    meter.read(4.0, GpuShares(((3.9, PERCENT),)), is_there=True)

    assert meter.percent_seconds == pytest.approx(PERCENT * (1.99 + 0.1))
    assert meter.seconds == pytest.approx(2.0 + 0.09 + 0.46, abs=0.1)


def test_before_the_job_is_there_it_is_idle_and_what_it_did_last_is_not_known() -> None:
    """One second elsewhere, one busy, half a second up to its end, one after it."""
    meter = Unmeasured()
    meter.read(0.5, GpuShares(), is_there=False)
    meter.read(1.0, GpuShares(), is_there=False)
    meter.read(1.5, GpuShares(((1.5, PERCENT),)), is_there=True)
    meter.read(2.0, GpuShares(((2.0, PERCENT),)), is_there=True)
    meter.read(2.5, GpuShares(), is_there=False)
    meter.read(3.5, GpuShares(), is_there=False)

    assert meter.percent_seconds == pytest.approx(PERCENT)
    assert meter.seconds == pytest.approx(0.5 + 1.0 + 1.0)


def test_an_idle_job_is_idle() -> None:
    """No sample for longer than the slowest driver needs."""
    meter = Unmeasured()
    for number in range(1, 40):
        meter.read(number / 4, GpuShares(), is_there=True)
    meter.finish()

    assert (meter.percent_seconds, meter.seconds) == (0.0, 9.75)


def test_samples_of_one_instant_are_added_and_invalid_ones_are_not_known() -> None:
    """Also if the driver dates them a little apart; more than everything is everything."""
    meter = Unmeasured()
    for number in range(1, 9):
        at = number / 2
        pair = ((at, 60.0), (at + 0.01, 70.0)) if number % 2 else ((at, None), (at + 0.01, None))
        meter.read(at + 0.1, GpuShares(pair), is_there=True)
    meter.read(4.5, GpuShares(((0.1, 1.0),)), is_there=True)
    meter.finish()

    assert meter.percent_seconds / meter.seconds == pytest.approx(100.0)
    assert meter.seconds == pytest.approx(2.0)


def test_one_sample_is_better_than_none() -> None:
    """A short job on a slow driver; the sample waits until the job has ended."""
    meter = Unmeasured()
    meter.read(0.5, GpuShares(((0.4, PERCENT),)), is_there=True)
    assert meter.seconds == 0.0
    meter.finish()

    assert meter.seconds == 0.4
    assert meter.percent_seconds == pytest.approx(PERCENT * 0.4)


def measure_duty(
    hertz: float,
    busy_share: float,
    reading_seconds: float,
    *,
    seed: int,
    returns_newest_only: bool = False,
    lag_seconds: float = 0.0,
) -> tuple[float, float]:
    """The mean of a job that runs in random periods of the driver, and the truth; periods vary by a fifth."""
    dice = random.Random(seed)
    times = [(number + 1 + dice.uniform(-0.2, 0.2)) / hertz for number in range(int(60 * hertz))]
    device = [(at, PERCENT if dice.random() < busy_share else 0.0) for at in times]
    meter = ShareMeter(0.0)
    before = end = 0.0
    for number in range(1, int(61 / reading_seconds)):
        now = number * reading_seconds
        spans = []
        for at, percent in device:
            if before < at <= now:
                spans.append(Span(end, at, percent))
                end = at
        dated = [(at - lag_seconds, percent) for at, percent in device if percent]
        new = [(at, percent) for at, percent in dated if before < at <= now]
        shares = GpuShares(tuple(new[-1:] if returns_newest_only else new), not returns_newest_only)
        meter.take(spans, shares, is_there=True)
        before = now
    meter.finish()
    truth = sum((at - last) * percent for last, (at, percent) in zip([0.0, *times], device, strict=False))
    return meter.percent_seconds / meter.seconds, truth / end


@pytest.mark.parametrize("hertz", [1, 2, 6, 10])
@pytest.mark.parametrize("busy_share", [0.1, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("reading_seconds", [0.1, 0.25, 1.0])
@pytest.mark.parametrize("returns_newest_only", [False, True])
def test_a_job_that_is_often_idle(
    hertz: float, busy_share: float, reading_seconds: float, returns_newest_only: bool
) -> None:
    """There is no sample of a process in a period in which it ran nothing; the device has one."""
    for seed, lag in ((1, 0.0), (2, 0.01)):
        mean, truth = measure_duty(
            hertz,
            busy_share,
            reading_seconds,
            seed=seed,
            returns_newest_only=returns_newest_only,
            lag_seconds=lag,
        )

        assert mean == pytest.approx(truth, abs=3)


def test_a_job_is_not_busier_than_its_device() -> None:
    """Where only the latest value of the device is known."""
    meter = ShareMeter(0.0)
    for number in range(1, 41):
        spans = [Span((number - 1) / 4, number / 4, PERCENT if number % 4 == 0 else 0.0, is_sampled=False)]
        new = ((number / 4 - 0.01, PERCENT),) if number % 4 == 0 else ()
        meter.take(spans, GpuShares(new, True), is_there=True)
    meter.finish()

    assert meter.percent_seconds / meter.seconds == pytest.approx(PERCENT / 4, abs=3)


@pytest.mark.parametrize("hertz", [1, 3, 7])
@pytest.mark.parametrize("stall_seconds", [0.6, 2.0, 4.0, 20.0])
@pytest.mark.parametrize("returns_newest_only", [False, True])
def test_a_slow_driver_makes_no_job_idle(
    hertz: float, stall_seconds: float, returns_newest_only: bool
) -> None:
    """It is asked for processes before it stalls, and for the device after that; it keeps ten seconds."""
    times = [(number + 0.5) / hertz for number in range(int(100 * hertz))]
    meter = ShareMeter(0.0)
    asked = answered = end = 0.0
    while answered < 60:
        before, asked = asked, answered + 0.25
        answered = asked + stall_seconds
        spans = []
        for at in times:
            if end < at <= answered:
                spans.append(Span(end, at, 100.0))
                end = at
        new = [(at, PERCENT) for at in times if max(before, asked - 10) < at <= asked]
        shares = GpuShares(
            tuple(new[-1:] if returns_newest_only else new), not returns_newest_only, until_seconds=asked
        )
        meter.take(spans, shares, is_there=True)
    meter.finish()

    assert meter.percent_seconds / meter.seconds == pytest.approx(PERCENT, abs=0.1)


def test_what_a_driver_has_dropped_is_not_known() -> None:
    """It keeps ten seconds: there are no samples of the ten before them."""
    meter = ShareMeter(0.0)
    meter.take([Span(0.0, 1.0, 100.0)], GpuShares(((1.0, PERCENT),), True, 1.0), is_there=True)
    meter.take([Span(1.0, 21.0, 100.0)], GpuShares((), True, 21.0), is_there=True)
    meter.finish()

    assert meter.percent_seconds == pytest.approx(PERCENT)
    assert meter.seconds == pytest.approx(1.0 + 10.0, abs=1)


def test_before_the_first_sample_nothing_is_known() -> None:
    """Of a job on a busy device; on an idle one it is idle, and so it is if no sample comes for long."""
    busy, idle, long = (ShareMeter(0.0) for _ in range(3))
    for meter in (busy, idle, long):
        meter.take([Span(0.0, 0.5, 0.0)], GpuShares(), is_there=False)
    for number in range(2):
        start, end = 0.5 + number / 2, 1.0 + number / 2
        busy.take([Span(start, end, 100.0)], GpuShares(), is_there=True)
        idle.take([Span(start, end, 0.0)], GpuShares(), is_there=True)
    for number in range(5):
        long.take([Span(0.5 + number, 1.5 + number, 100.0)], GpuShares(), is_there=True)
    was_unknown = busy.is_unknown
    busy.take([Span(1.5, 2.0, 100.0)], GpuShares(), is_there=False)
    busy.take([Span(2.0, 3.0, 100.0)], GpuShares(), is_there=False)

    assert (was_unknown, busy.is_unknown, idle.is_unknown, long.is_unknown) == (True, True, False, False)
