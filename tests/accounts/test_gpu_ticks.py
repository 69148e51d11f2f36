"""The job's own utilization where the driver samples the device, too: made-up drivers and jobs whose truth is known."""

from __future__ import annotations

import itertools
import random
from bisect import bisect
from collections.abc import Callable

import pytest

from gpu_tracker.accounts.gpu_ticks import TickMeter
from gpu_tracker.accounts.gpus import Span
from gpu_tracker.core.model import GpuShares

PERCENT = 79.0


def measure_bursts(
    times: list[float],
    reading_seconds: float,
    is_busy: Callable[[float], bool],
    *,
    workers: int = 1,
    returns_newest_only: bool = False,
) -> tuple[float, float]:
    """The mean of a job that runs at some instants, and the mean of the driver's own samples.

    The workers take turns. The device is partly busy in every period, as with bursts that are shorter than it.
    """
    dice = random.Random(1)
    meter, seconds = TickMeter(0.0), times[-1]
    at = before = end = 0.0
    while at < seconds + 2 * reading_seconds:
        at += reading_seconds * dice.uniform(0.9, 1.1)
        spans, new = [], {}
        for number, tick in enumerate(times):
            if before < tick <= at:
                spans.append(Span(end, tick, PERCENT if is_busy(tick) else 40.0))
                end = tick
                if is_busy(tick):
                    new[number % workers if returns_newest_only else number] = (tick, PERCENT)
        shares = GpuShares(tuple(sorted(new.values())), not returns_newest_only, until_seconds=at)
        meter.take(spans, shares, is_there=True)
        before = at
    meter.finish()
    starts = [0.0, *times]
    truth = sum((tick - start) * PERCENT * is_busy(tick) for start, tick in zip(starts, times, strict=False))
    return meter.percent_seconds / meter.seconds, truth / times[-1]


@pytest.mark.parametrize("hertz", [1, 1.7, 3, 6, 10])
@pytest.mark.parametrize("period_seconds", [0.25, 0.4, 0.6, 1.0, 2.0, 6.0])
@pytest.mark.parametrize(("workers", "returns_newest_only"), [(1, False), (1, True), (3, True)])
def test_a_job_that_works_in_bursts(
    hertz: float, period_seconds: float, workers: int, returns_newest_only: bool
) -> None:
    """The mean is that of the driver's samples; one that returns only the newest is read as often as it samples."""
    times = [(number + 0.3) / hertz for number in range(int(60 * hertz))]
    for reading_seconds in (0.6 / hertz,) if returns_newest_only else (0.05, 0.25, 1.0):
        mean, truth = measure_bursts(
            times,
            reading_seconds,
            lambda at: at % period_seconds < period_seconds / 2,
            workers=workers,
            returns_newest_only=returns_newest_only,
        )

        assert mean == pytest.approx(truth, abs=1)


def test_a_driver_that_samples_less_often_from_now_on() -> None:
    """Ten times a second, then once: no time is taken for idle."""
    times = [*(number / 10 for number in range(1, 60)), *(6.0 + number for number in range(60))]
    mean, truth = measure_bursts(times, 0.25, lambda at: at % 4 < 2, returns_newest_only=True)

    assert mean == pytest.approx(truth, abs=3)


def test_of_several_instants_only_the_last_is_certain() -> None:
    """If the driver may return only the newest sample of each process: of the instant before nothing is known."""
    certain, doubted = TickMeter(0.0), TickMeter(0.0)
    for meter, are_complete in ((certain, True), (doubted, False)):
        shares = GpuShares(((1.0, PERCENT),), are_complete, until_seconds=1.0)
        meter.take([Span(0.0, 0.5, 40.0), Span(0.5, 1.0, PERCENT)], shares, is_there=True)
        meter.take([], GpuShares((), are_complete, 1.5), is_there=True)

    assert (certain.percent_seconds, certain.seconds) == (PERCENT / 2, 1.0)
    assert (doubted.percent_seconds, doubted.seconds) == (PERCENT / 2, 0.5)


def test_samples_of_one_instant_are_added_and_invalid_ones_are_not_known() -> None:
    """Also if the driver dates them a little apart; one between two samples of the device counts like any other."""
    meter = TickMeter(0.0)
    instants = ((0.5, 30.0), (0.51, 40.0), (0.8, 90.0), (1.0, None), (1.01, None))
    spans = [Span(0.0, 0.5, 90.0), Span(0.5, 1.0, 90.0), Span(1.0, 1.5, 90.0), Span(1.5, 2.0, None)]
    meter.take(spans, GpuShares(instants, True, 1.5), is_there=True)
    meter.finish()

    assert (meter.percent_seconds, meter.seconds) == (35.0 + 27.0, 0.5 + 0.3)


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
    meter = TickMeter(0.0)
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
        shares = GpuShares(
            tuple(new[-1:] if returns_newest_only else new), not returns_newest_only, until_seconds=now
        )
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
    reading_seconds = min(reading_seconds, 0.6 / hertz) if returns_newest_only else reading_seconds
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


@pytest.mark.parametrize("hertz", [1, 3, 7])
@pytest.mark.parametrize("stall_seconds", [0.6, 2.0, 4.0, 20.0])
@pytest.mark.parametrize("returns_newest_only", [False, True])
def test_a_slow_driver_makes_no_job_idle(
    hertz: float, stall_seconds: float, returns_newest_only: bool
) -> None:
    """It is asked for processes before it stalls, and for the device after that; it keeps ten seconds."""
    times = [(number + 0.5) / hertz for number in range(int(100 * hertz))]
    meter = TickMeter(0.0)
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
    """It keeps ten seconds."""
    meter = TickMeter(0.0)
    meter.take([Span(0.0, 1.0, 90.0)], GpuShares(((1.0, PERCENT),), True, 1.0), is_there=True)
    late = [Span(1.0, 2.0, 90.0), Span(2.0, 19.0, None, is_too_old=True), Span(19.0, 20.0, 90.0)]
    meter.take(late, GpuShares((), True, 22.0), is_there=True)
    meter.finish()

    assert (meter.percent_seconds, meter.seconds) == (PERCENT, 1.0 + 1.0)


def measure_apart(
    device_hertz: float,
    process_hertz: float,
    offset: float,
    reading_seconds: float,
    is_busy: Callable[[float], bool] = lambda _: True,
    *,
    returns_newest_only: bool = False,
    round_seconds: float = 1e-6,
) -> float:
    """The mean of a job that is sampled at other instants than its device; that is busy whenever the job is."""
    meter, seconds = TickMeter(0.0), 30.0
    ends = [number / device_hertz for number in range(int(seconds * device_hertz) + 1)]
    spans = [
        Span(start, end, 2.0 * sum(is_busy(start + (part + 0.5) * (end - start) / 50) for part in range(50)))
        for start, end in itertools.pairwise(ends)
    ]
    named = [(number + offset) / process_hertz for number in range(1, int(seconds * process_hertz))]
    named = [at for at in named if is_busy(at)]
    now = 0.0
    while now < seconds:
        now += reading_seconds
        new_spans, new_named = (
            [span for span in spans if span.end_seconds <= now],
            named[: bisect(named, now)],
        )
        spans, named = spans[len(new_spans) :], named[len(new_named) :]
        instants = sorted({at // round_seconds * round_seconds: PERCENT for at in new_named}.items())
        shares = GpuShares(
            tuple(instants[-1:] if returns_newest_only else instants),
            not returns_newest_only,
            until_seconds=now,
        )
        meter.take(new_spans, shares, is_there=True)
    meter.finish()
    # Of what a driver has dropped, only the last period before it was asked is known.
    known = 0.6 * min(1 / device_hertz, 1 / process_hertz) / reading_seconds if returns_newest_only else 1.0
    assert meter.seconds > 0.9 * min(1.0, known) * (seconds - 3)
    return meter.percent_seconds / meter.seconds


@pytest.mark.parametrize("device_hertz", [1, 2, 6, 10])
@pytest.mark.parametrize("process_hertz", [1, 3, 6, 6.3, 7.2, 10])
@pytest.mark.parametrize("returns_newest_only", [False, True])
def test_processes_that_are_sampled_at_other_instants_than_their_device(
    device_hertz: float, process_hertz: float, returns_newest_only: bool
) -> None:
    """A steady job is as busy as its samples say, however often and when they are taken and read."""
    for offset, reading_seconds in itertools.product((0.0, 0.27, 0.5, 0.9), (0.05, 0.25, 1.0)):
        mean = measure_apart(
            device_hertz, process_hertz, offset, reading_seconds, returns_newest_only=returns_newest_only
        )

        assert mean == pytest.approx(PERCENT, abs=0.5)


@pytest.mark.parametrize("device_hertz", [3, 6, 10])
@pytest.mark.parametrize("process_hertz", [3, 6.3, 7.2, 10])
def test_bursts_of_a_job_that_is_sampled_at_other_instants_than_its_device(
    device_hertz: float, process_hertz: float
) -> None:
    """In three fifths of the time."""
    for offset, reading_seconds in itertools.product((0.0, 0.27, 0.5), (0.05, 1.0)):
        mean = measure_apart(
            device_hertz, process_hertz, offset, reading_seconds, lambda at: at % 1.37 < 0.6 * 1.37
        )

        assert mean == pytest.approx(0.6 * PERCENT, abs=3)


def make_bursts(dice: random.Random, busy_seconds: float, idle_seconds: float) -> list[tuple[float, float]]:
    """When somebody uses the device in half a minute: bursts and pauses of about that length."""
    bursts, at = [], -dice.random() * (busy_seconds + idle_seconds)
    while at < 30:
        end = at + busy_seconds * dice.uniform(0.75, 1.25)
        bursts.append((at, end))
        at = end + idle_seconds * dice.uniform(0.75, 1.25)
    return bursts


def measure_shared(
    dice: random.Random,
    process_hertz: float,
    *,
    job: tuple[float, float],
    others: tuple[float, float],
    returns_newest_only: bool,
) -> float:
    """How much too much a job seems to do that uses 80 % of a device in bursts, beside somebody who uses 20 % in others.

    Samples of processes are instants; those of their device are means.
    """
    ours, theirs = make_bursts(dice, *job), make_bursts(dice, *others)

    def use(bursts: list[tuple[float, float]], start: float, end: float) -> float:
        return sum(max(0.0, min(end, last) - max(start, first)) for first, last in bursts) / (end - start)

    device = [(number + dice.random() / 10) / 6 for number in range(180)]
    spans = [
        Span(start, end, round(min(100.0, 80 * use(ours, start, end) + 20 * use(theirs, start, end))))
        for start, end in itertools.pairwise([0.0, *device])
    ]
    instants = [(number + dice.random() / 10) / process_hertz for number in range(int(30 * process_hertz))]
    named = [(at, 80.0 * use(ours, at, at + 1e-6)) for at in instants if use([*ours, *theirs], at, at + 1e-6)]
    meter, step_seconds = TickMeter(0.0), 0.6 / process_hertz if returns_newest_only else 1.0
    for number in range(int(30 / step_seconds)):
        start, now = number * step_seconds, (number + 1) * step_seconds
        new = [one for one in named if start < one[0] <= now]
        meter.take(
            [span for span in spans if start < span.end_seconds <= now],
            GpuShares(tuple(new[-returns_newest_only:]), not returns_newest_only, now),
            is_there=True,
        )
    meter.finish()
    error = meter.percent_seconds / meter.seconds - 80 * use(ours, 0.0, 30.0)
    assert meter.is_drawn or error == pytest.approx(0.0, abs=3)
    return error


@pytest.mark.parametrize("process_hertz", [3, 4, 5, 7, 10])
@pytest.mark.parametrize("job", [(0.3, 0.7), (0.7, 0.3), (2.0, 2.0)])
@pytest.mark.parametrize("others", [(0.5, 0.5), (30.0, 0.0), (3.0, 3.0)])
@pytest.mark.parametrize("returns_newest_only", [False, True])
def test_instants_of_a_job_that_shares_its_device_make_no_mean_too_small(
    process_hertz: float, job: tuple[float, float], others: tuple[float, float], returns_newest_only: bool
) -> None:
    """Chance decides how good each run's is, which is said; over many runs it is right."""
    errors = [
        measure_shared(
            random.Random(seed),
            process_hertz,
            job=job,
            others=others,
            returns_newest_only=returns_newest_only,
        )
        for seed in range(12)
    ]

    assert sum(errors) / len(errors) == pytest.approx(0.0, abs=2)


@pytest.mark.parametrize("round_seconds", [0.01, 0.1, 0.25, 1.0])
def test_samples_of_processes_that_are_dated_roughly(round_seconds: float) -> None:
    """Rounded down."""
    bursts = [
        measure_apart(6, 6, 0.0, 1.0, lambda at: at % 1.37 < 0.6 * 1.37, round_seconds=round_seconds),
        measure_apart(10, 7.2, 0.4, 0.3, lambda at: at % 1.37 < 0.6 * 1.37, round_seconds=round_seconds),
    ]

    assert bursts == pytest.approx([0.6 * PERCENT] * 2, abs=3)


def test_a_device_that_is_fully_busy_without_naming_anybody_any_more() -> None:
    """Nothing is known of that time; partly busy, the job was idle."""
    full, partly = TickMeter(0.0), TickMeter(0.0)
    for meter, percent in ((full, 100.0), (partly, 50.0)):
        meter.take([Span(0.0, 1.0, 100.0)], GpuShares(((1.0, PERCENT),), True, 1.0), is_there=True)
        for second in range(1, 6):
            spans = [Span(float(second), second + 1.0, percent)]
            meter.take(spans, GpuShares((), True, second + 1.0), is_there=True)

    assert (full.percent_seconds, full.seconds) == (PERCENT, 1.0)
    assert (partly.percent_seconds, partly.seconds) == (PERCENT, 1.0 + 3.0)


def test_a_sample_after_the_last_one_of_the_device_counts() -> None:
    """A job may be shorter than the time between two samples of its device."""
    meter = TickMeter(0.0)
    meter.take([], GpuShares(((0.2, PERCENT), (0.4, PERCENT)), True, 0.5), is_there=True)
    meter.finish()

    assert (meter.percent_seconds, meter.seconds) == pytest.approx((PERCENT * 0.4, 0.4))


def test_before_the_first_sample_nothing_is_known() -> None:
    """Of a job on a busy device that names nobody; on an idle one it is idle."""
    busy, idle = TickMeter(0.0), TickMeter(0.0)
    for meter in (busy, idle):
        meter.take([Span(0.0, 0.5, 0.0)], GpuShares(until_seconds=0.5), is_there=False)
    for number in range(2):
        start, end = 0.5 + number / 2, 1.0 + number / 2
        busy.take([Span(start, end, 100.0)], GpuShares(until_seconds=end), is_there=True)
        idle.take([Span(start, end, 0.0)], GpuShares(until_seconds=end), is_there=True)
    was_unknown = busy.is_unknown
    busy.take([Span(1.5, 2.0, 100.0)], GpuShares(until_seconds=2.0), is_there=False)

    assert (was_unknown, busy.is_unknown, idle.is_unknown) == (True, True, False)


def measure_means(
    device_hertz: float, process_hertz: float, offset: float, burst_seconds: float, pause_seconds: float
) -> float:
    """The mean of a fully busy job in bursts whose samples are means of their periods; idle periods have none."""
    cycle_seconds, seconds = burst_seconds + pause_seconds, 60.0

    def work(until: float) -> float:
        return until // cycle_seconds * burst_seconds + min(until % cycle_seconds, burst_seconds)

    def sample(hertz: float, offset: float) -> list[Span]:
        ends = [(number + offset) / hertz for number in range(int(seconds * hertz))]
        return [
            Span(start, end, float(round(100 * hertz * (work(end) - work(start)))))
            for start, end in itertools.pairwise([0.0, *ends])
        ]

    spans, named = (
        sample(device_hertz, 0.45),
        [span for span in sample(process_hertz, offset) if span.percent],
    )
    meter = TickMeter(0.0)
    for reading in range(1, int(seconds * 4)):
        last, now = (reading - 1) / 4, reading / 4
        new = tuple((span.end_seconds, span.percent) for span in named if last < span.end_seconds <= now)
        meter.take(
            [span for span in spans if last < span.end_seconds <= now],
            GpuShares(new, True, now),
            is_there=True,
        )
    meter.finish()
    assert meter.seconds > seconds - 3
    return meter.percent_seconds / meter.seconds


@pytest.mark.parametrize("device_hertz", [2, 6])
@pytest.mark.parametrize("process_hertz", [1, 2, 5, 10])
@pytest.mark.parametrize(
    ("burst_seconds", "pause_seconds"), [(0.37, 0.33), (0.6, 0.25), (2.3, 1.9), (1.3, 0.05), (0.5, 4.0)]
)
def test_samples_that_are_means_are_worth_their_period(
    device_hertz: float, process_hertz: float, burst_seconds: float, pause_seconds: float
) -> None:
    """Whenever in it the job worked: idle time is not counted twice."""
    for offset in (0.3, 0.7):
        mean = measure_means(device_hertz, process_hertz, offset, burst_seconds, pause_seconds)

        assert mean == pytest.approx(100 * burst_seconds / (burst_seconds + pause_seconds), abs=3)


def test_a_meter_that_begins_later_knows_nothing_of_the_time_before() -> None:
    """Of samples of the device that began before it, only the rest counts; what is first named has no period."""
    meter = TickMeter(1.0)
    for number in range(10):
        start = 0.9 + number / 5
        instants = ((start + 0.15, 50.0),)
        meter.take([Span(start, start + 0.2, 50.0)], GpuShares(instants, True, start + 0.2), is_there=True)
    meter.finish()

    assert meter.percent_seconds / meter.seconds == pytest.approx(50.0)
    assert meter.seconds == pytest.approx(1.85)


def measure_dropped(
    reading_seconds: float, *, is_alone: bool, part: float = 1.0, hang_seconds: float = 0.0
) -> tuple[float, float, float]:
    """The mean of a job, what it covers, and the mean of its device, if a driver tells the newest of ten samples a second.

    The job works in bursts of three fifths of 0.43 s; its samples are that part of its device's. The driver hangs once.
    """
    meter, hertz, seconds = TickMeter(0.0), 10, 40.0
    ticks = [(number / 6, min(number / 6, 1.0)) for number in range(1, int(seconds * 6))]
    busy_percent = [100.0 * mean_of_bursts(at - 1 / 6, at) for at, _ in ticks]
    at = before = end = 0.0
    while at < seconds:
        at += reading_seconds + (hang_seconds if before < 10 <= before + reading_seconds else 0.0)
        spans, newest = [], []
        for (tick, _), percent in zip(ticks, busy_percent, strict=True):
            if before < tick <= at:
                spans.append(Span(end, tick, percent))
                end = tick
        for number in range(int(before * hertz) + 1, int(at * hertz) + 1):
            percent = 100.0 * part * mean_of_bursts((number - 1) / hertz, number / hertz)
            if percent:
                newest = [(number / hertz, percent)]
        meter.take(spans, GpuShares(tuple(newest), until_seconds=at), is_there=True, is_alone=is_alone)
        before = at
    meter.finish()
    return meter.percent_seconds / meter.seconds, meter.seconds, sum(busy_percent) / len(busy_percent)


def mean_of_bursts(start: float, end: float) -> float:
    """How long of this time there is a burst, as a share."""
    steps = 200
    inside = sum((start + (end - start) * step / steps) % 0.43 < 0.6 * 0.43 for step in range(steps))
    return inside / steps


@pytest.mark.parametrize("reading_seconds", [0.2, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("part", [1.0, 0.6])
def test_a_job_alone_has_its_part_of_what_the_device_did(reading_seconds: float, part: float) -> None:
    """However many samples of its processes were dropped."""
    mean, _, device = measure_dropped(reading_seconds, is_alone=True, part=part)

    assert mean == pytest.approx(part * device, abs=2)


def measure_rare_means(hertz: float, longest_wait_seconds: float, seed: int) -> tuple[float, float]:
    """The mean of a job that has the device to itself, and the truth: short bursts at random, told as means of a slow driver.

    It is asked at irregular times, and tells the newest sample only; idle periods have none.
    """
    dice, seconds = random.Random(seed), 15.0
    bursts, at = [], 0.0
    while at < seconds:
        length = dice.uniform(0.05, 0.3)
        bursts.append((at, at + length, dice.random() < 0.3))
        at += length

    def mean(start: float, end: float) -> float:
        inside = (min(end, last) - max(start, first) for first, last, is_busy in bursts if is_busy)
        return 100.0 * sum(part for part in inside if part > 0) / (end - start)

    def sample(hertz: float) -> list[tuple[float, float, float]]:
        ends = [dice.random() / hertz]
        while ends[-1] + 1 / hertz < seconds:
            ends.append(ends[-1] + 1 / hertz)
        return [
            (start, end, float(round(mean(start, end)))) for start, end in itertools.pairwise([0.0, *ends])
        ]

    spans, named = sample(6), [one for one in sample(hertz) if one[2]]
    meter, now, before = TickMeter(0.0), 0.0, 0.0
    while now < seconds:
        now = min(seconds, now + dice.uniform(0.05, longest_wait_seconds))
        newest = [(end, percent) for _, end, percent in named if before < end <= now][-1:]
        new_spans = [Span(*one) for one in spans if before < one[1] <= now]
        meter.take(new_spans, GpuShares(tuple(newest), until_seconds=now), is_there=True, is_alone=True)
        before = now
    meter.finish()
    return meter.percent_seconds / meter.seconds, mean(0.0, seconds)


@pytest.mark.parametrize("hertz", [1.5, 2, 3])
@pytest.mark.parametrize("longest_wait_seconds", [0.15, 0.7])
def test_rare_means_of_short_bursts_say_neither_too_little_nor_too_much(
    hertz: float, longest_wait_seconds: float
) -> None:
    """The busiest of the device's shorter periods is busier than any of its processes', and idle ones tell no period."""
    pairs = [measure_rare_means(hertz, longest_wait_seconds, seed) for seed in range(20)]

    assert sum(mean - truth for mean, truth in pairs) / len(pairs) == pytest.approx(0, abs=2)
    assert sum(abs(mean - truth) <= 3 for mean, truth in pairs) >= 17


def test_of_a_long_time_without_readings_one_sample_says_nothing() -> None:
    """The rest of it is not known, if others may have used the device."""
    _, covered, _ = measure_dropped(0.09, is_alone=False, hang_seconds=6.0)
    _, whole, _ = measure_dropped(0.09, is_alone=False)

    assert whole - covered == pytest.approx(6, abs=0.2)


@pytest.mark.parametrize("hang_seconds", [0.8, 2.0, 6.0])
@pytest.mark.parametrize("begin_seconds", [7.0, 8.0, 9.0, 10.0, 11.0])
def test_what_a_job_did_while_the_driver_hung_beside_another_is_not_known(
    hang_seconds: float, begin_seconds: float
) -> None:
    """It works for two of four seconds: neither the last sample before nor the first after stands for the rest."""
    meter, hertz, seconds = TickMeter(0.0), 10, 40.0
    at = before = known = work = 0.0
    while at < seconds:
        at += 0.06 + (hang_seconds if before < begin_seconds <= before + 0.06 else 0.0)
        ticks = range(int(before * hertz) + 1, int(at * hertz) + 1)
        spans = [Span((tick - 1) / hertz, tick / hertz, 90.0 if tick % 40 < 20 else 30.0) for tick in ticks]
        newest = [(tick / hertz, 60.0) for tick in ticks if tick % 40 < 20][-1:]
        meter.take(spans, GpuShares(tuple(newest), until_seconds=at), is_there=True)
        if at - before < 0.1:
            known += len(ticks) / hertz
            work += sum(60.0 for tick in ticks if tick % 40 < 20) / hertz
        before = at
    meter.finish()

    assert meter.seconds == pytest.approx(known, abs=0.5)
    assert meter.percent_seconds / meter.seconds == pytest.approx(work / known, abs=1)


@pytest.mark.parametrize("percent", [0.0, 30.0], ids=["idle device", "beside another"])
def test_a_job_that_is_not_there_is_idle(percent: float) -> None:
    """However rarely the driver is asked meanwhile, and however often it samples."""
    meter, hertz = TickMeter(0.0), 10
    for reading in range(1, 81):
        at = reading / 4
        is_there = 5.0 < at <= 7.0
        ticks = range(int((at - 0.25) * hertz) + 1, int(at * hertz) + 1)
        spans = [Span((tick - 1) / hertz, tick / hertz, percent + 60.0 * (50 < tick <= 70)) for tick in ticks]
        asks = [tick / hertz for tick in ticks] if is_there else [at]
        for ask in asks:
            named = ((ask, 60.0),) if is_there else ((ask, 0.0),) if percent else ()
            meter.take((), GpuShares(named, until_seconds=ask), is_there=is_there)
        meter.take(spans, GpuShares((), until_seconds=at), is_there=is_there)
    meter.finish()

    assert meter.seconds > 18.5
    assert meter.percent_seconds / meter.seconds == pytest.approx(6.0, abs=0.7)


def measure_chosen(
    seed: int,
    hertz: float,
    *,
    job: float,
    others: float,
    tells_own: bool,
    workers: int = 1,
    seconds: float = 12.0,
) -> tuple[float, bool]:
    """The mean of a steady job whose driver names one of those that ran, and whether that is called the mean of instants.

    Chance chooses who, by how much each has used; the sample then says what that one did, or what the device did.
    """
    dice, phase = random.Random(seed), 0.13
    users = [(job / workers, True)] * workers + [(others, False)] * bool(others)
    ticks = [phase + number / hertz for number in range(int(seconds * hertz))]
    named = []
    for tick in ticks:
        own, is_ours = dice.choices(users, [percent for percent, _ in users])[0]
        named.append((tick, float(is_ours) * round(own if tells_own else job + others)))
    spans = [Span(start, end, job + others) for start, end in itertools.pairwise([0.0, *ticks])]
    meter = TickMeter(0.0)
    for reading in range(1, int(seconds * 4) + 1):
        before, now = (reading - 1) / 4, reading / 4
        meter.take(
            [span for span in spans if before < span.end_seconds <= now],
            GpuShares(tuple(one for one in named if before < one[0] <= now), True, now, names_one=True),
            is_there=True,
            is_alone=not others,
        )
    meter.finish()
    return meter.percent_seconds / meter.seconds, meter.is_drawn


@pytest.mark.parametrize("hertz", [3, 6, 10])
@pytest.mark.parametrize(("job", "others"), [(30.0, 50.0), (60.0, 20.0), (5.0, 60.0)])
@pytest.mark.parametrize("tells_own", [True, False])
@pytest.mark.parametrize("workers", [1, 3])
def test_one_process_named_by_chance_stands_for_all_that_the_device_did(
    hertz: float, job: float, others: float, tells_own: bool, workers: int
) -> None:
    """Whatever the driver says of it: over many runs the mean is right, and each is called what it is."""
    runs = [
        measure_chosen(seed, hertz, job=job, others=others, tells_own=tells_own, workers=workers)
        for seed in range(40)
    ]

    error = sum(mean - job for mean, _ in runs) / len(runs)
    assert error == pytest.approx(0.0, abs=2)
    assert all(is_drawn or mean == 0 for mean, is_drawn in runs)


@pytest.mark.parametrize("tells_own", [True, False])
def test_workers_named_one_at_a_time_did_what_their_device_did(tells_own: bool) -> None:
    """If nobody else is there, it does not matter whom chance has chosen."""
    mean, is_drawn = measure_chosen(1, 3, job=77.0, others=0.0, tells_own=tells_own, workers=4)

    assert mean == pytest.approx(77.0)
    assert not is_drawn


@pytest.mark.parametrize(("is_alone", "is_right"), [(True, True), (False, False)])
def test_bursts_between_the_instants_of_a_driver(is_alone: bool, is_right: bool) -> None:
    """A job that works for a fifth of the time is named too rarely, but its device tells what it did if it has that to itself."""
    meter, hertz = TickMeter(0.0), 3.0
    for number in range(1, 61):
        at = number / hertz
        instants = ((at, 100.0),) if number % 12 == 0 else ()
        spans = [Span((number - 1) / hertz, at, 20.0)]
        meter.take(spans, GpuShares(instants, True, at), is_there=True, is_alone=is_alone)
    meter.finish()

    mean = meter.percent_seconds / meter.seconds
    assert (abs(mean - 20.0) < 2) == is_right
    assert not meter.is_drawn


def test_dropped_samples_of_workers_named_one_at_a_time_do_not_matter() -> None:
    """What a sample says of one of them is no part of the device's work."""
    meter = TickMeter(0.0)
    for second in range(1, 11):
        spans = [Span(second - 1 + part / 6, second - 1 + (part + 1) / 6, 80.0) for part in range(6)]
        shares = GpuShares(((float(second), 20.0),), until_seconds=float(second), names_one=True)
        meter.take(spans, shares, is_there=True, is_alone=True)
    meter.finish()

    assert meter.percent_seconds / meter.seconds == pytest.approx(80.0)
