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


def test_a_job_is_not_busier_than_its_device() -> None:
    """Where only the latest value of the device is known."""
    meter = ShareMeter(0.0)
    for number in range(1, 41):
        spans = [Span((number - 1) / 4, number / 4, PERCENT if number % 4 == 0 else 0.0, is_sampled=False)]
        new = ((number / 4 - 0.01, PERCENT),) if number % 4 == 0 else ()
        meter.take(spans, GpuShares(new, True), is_there=True)
    meter.finish()

    assert meter.percent_seconds / meter.seconds == pytest.approx(PERCENT / 4, abs=3)


def test_what_a_driver_has_dropped_is_not_known() -> None:
    """It keeps ten seconds: there are no samples of the ten before them."""
    meter = Unmeasured()
    meter.read(1.0, GpuShares(((1.0, PERCENT),), True, 1.0), is_there=True)
    meter.read(21.0, GpuShares((), True, 21.0), is_there=True)
    meter.finish()

    assert meter.percent_seconds == pytest.approx(PERCENT)
    assert meter.seconds == pytest.approx(1.0 + 9.0)


def test_before_the_first_sample_nothing_is_known() -> None:
    """Until it has been missing for long."""
    meter = Unmeasured()
    meter.read(0.5, GpuShares(), is_there=True)
    meter.read(1.0, GpuShares(), is_there=True)
    was_unknown = meter.is_unknown
    for number in range(2, 6):
        meter.read(float(number), GpuShares(), is_there=True)

    assert (was_unknown, meter.is_unknown) == (True, False)


@pytest.mark.parametrize("late_seconds", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("seed", range(4))
def test_a_steady_job_whose_samples_come_late_is_not_idle(late_seconds: float, seed: int) -> None:
    """Two processes take turns; the driver returns the newest sample of each, some time after its instant."""
    dice, meter = random.Random(seed), Unmeasured()
    samples = [(number / 10, dice.randrange(2)) for number in range(1, 150)]
    now, newest = 0.0, 0.0
    while now < 15.0:
        now = min(15.0, now + dice.uniform(0.05, 0.35))
        new = {pid: at for at, pid in samples if newest < at <= now - late_seconds}
        newest = max([newest, *new.values()])
        instants = tuple((at, PERCENT) for at in sorted(new.values()))
        meter.read(now, GpuShares(instants, until_seconds=now), is_there=True)
    meter.finish()

    assert meter.percent_seconds / meter.seconds == pytest.approx(PERCENT, abs=1)
    assert meter.seconds > 5.0
