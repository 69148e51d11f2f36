"""The threads that read GPUs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from gpu_tracker.core.model import Gpu, GpuReading, GpuReadings, GpuShares
from gpu_tracker.sampler import gpu_threads
from gpu_tracker.sampler.gpu_threads import Silences, choose_pause, find_collecting_pause


class RareSource:
    """Gives a new reading every third time, and has no devices after nine."""

    poll_seconds = float("inf")
    unopened: tuple[Gpu, ...] = ()
    is_outdated = False

    def __init__(self) -> None:
        self.gpus: tuple[Gpu, ...] = (Gpu(0, "GPU-a", "A", None),)
        self.reasons: dict[tuple[str, str], str] = {}
        self._n_reads = 0

    def read(self, pids: frozenset[int] | None) -> GpuReadings:
        """The latest reading."""
        at_seconds = 1e9 + self._n_reads // 3
        self._n_reads += 1
        if self._n_reads == 9:
            self.gpus = ()
        return GpuReadings(at_seconds)

    def take_notes(self) -> tuple[str, ...]:
        """Nothing."""
        return ()


def test_a_repeated_reading_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An old reading must not be attributed to a region that began since."""
    monkeypatch.setattr(gpu_threads, "connect", lambda *_: (RareSource(), "rare", ()))
    watch = gpu_threads.GpuThreads(0.001, 1.0, ("nvidia",), (), {})
    watch._vendor_threads[0]._thread.join()

    assert len(watch.take_readings()) == 3


def find_mean(pauses: Iterator[float], period_seconds: float, duty: float, seconds: float) -> float:
    """What polling with these pauses makes of a job that is busy for a part of each period."""
    at = busy = 0.0
    while at < seconds:
        pause = next(pauses)
        at += pause
        busy += pause if at % period_seconds < duty * period_seconds else 0.0
    return busy / at


@pytest.mark.parametrize("period_seconds", [0.05, 0.1, 0.125, 0.2, 0.25, 0.5, 1.0])
def test_a_job_that_alternates_in_step_with_us_is_met_in_every_phase(period_seconds: float) -> None:
    """Where the driver keeps no samples: three of ten seconds busy are 30 %, however fast the job alternates."""
    luck = random.Random(0)
    polled = GpuReadings(0.0, (GpuReading("GPU-a", utilization_percent=1.0),))
    pauses = (choose_pause(polled, 0.25, 0.1, luck.random()) for _ in itertools.count())

    assert find_mean(pauses, period_seconds, 0.3, 2000) == pytest.approx(0.3, abs=0.02)


def test_a_driver_with_samples_is_read_as_often_as_asked() -> None:
    """As is one without utilization. Without samples it is read more often, if that is cheap."""
    sampled = GpuReading("GPU-a", utilization_percent=1.0, samples=())
    instance = GpuReading("GPU-b")
    polled = GpuReading("GPU-c", utilization_percent=1.0)

    assert choose_pause(GpuReadings(0.0, (sampled, instance)), 0.25, 0.1, 0.9) == 0.25
    assert choose_pause(GpuReadings(0.0, (sampled, polled)), 0.25, 0.1, 0.5) == 0.1
    assert choose_pause(GpuReadings(0.0, (polled,)), 0.25, float("inf"), 1.0) == 0.375
    assert choose_pause(GpuReadings(0.0, (polled,)), 0.05, 0.1, 0.0) == 0.025


def test_power_that_is_summed_up_is_read_at_irregular_intervals() -> None:
    """For the same reason: a job that alternates in step with us would seem to draw the most, or the least."""
    metered = GpuReading("GPU-a", samples=(), power_watts=50.0, energy_joules=1.0)

    assert choose_pause(GpuReadings(0.0, (metered,)), 0.25, 0.1, 0.9) == 0.25
    unmetered = metered._replace(energy_joules=None)
    assert choose_pause(GpuReadings(0.0, (unmetered,)), 0.25, 0.1, 0.5) == 0.1


def test_a_driver_that_forgets_samples_is_asked_before_the_next() -> None:
    """The most forgetful device decides; others need not be asked for samples only."""
    readings = GpuReadings(
        0.0,
        tuple(
            GpuReading("GPU-a", samples=(), shares=GpuShares(pause_seconds=pause)) for pause in (0.1, 0.06, 9)
        ),
    )

    assert find_collecting_pause(readings) == 0.06
    assert choose_pause(readings, 0.25, 0.1, 0.5) == 0.25
    assert find_collecting_pause(GpuReadings(0.0, (GpuReading("GPU-a"),))) == float("inf")


# ---- Times in which a driver does not answer.


def test_a_call_that_takes_longer_than_usual_is_told_from_a_slow_driver() -> None:
    """Some calls are slow now and then; one that is slower than all but one of the others is not usual."""
    quick = [0.01] * 11

    assert gpu_threads.find_excess(9.0, [], 0.25) == 0.0
    assert gpu_threads.find_excess(0.21, quick, 0.25) == 0.0
    assert gpu_threads.find_excess(0.31, quick, 0.25) == pytest.approx(0.3)
    assert gpu_threads.find_excess(0.31, [0.01], 0.25) == pytest.approx(0.3)
    assert gpu_threads.find_excess(0.4, [*quick, 0.3], 0.25) == pytest.approx(0.39)
    assert gpu_threads.find_excess(0.4, [*quick, 0.3, 0.3], 0.25) == 0.0
    assert gpu_threads.find_excess(2.2, [1.5] * 12, 0.25) == 0.0
    assert gpu_threads.find_excess(2.3, [1.5] * 12, 0.25) == pytest.approx(0.8)


def test_a_delay_is_measured_by_the_time_between_two_readings() -> None:
    """nvidia-smi is read once a second: a third of one is nothing beside that."""
    assert gpu_threads.find_excess(0.4, [0.05] * 4, 1.0) == 0.0
    assert gpu_threads.find_excess(0.7, [0.05] * 4, 1.0) == pytest.approx(0.65)


def test_readings_carry_their_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a device which is missing among them is known to be."""
    monkeypatch.setattr(gpu_threads, "connect", lambda *_: (RareSource(), "rare", ()))
    watch = gpu_threads.GpuThreads(0.001, 1.0, ("nvidia",), (), {})
    watch._vendor_threads[0]._thread.join()

    assert {readings.vendor for readings in watch.take_readings()} == {"nvidia"}


def say_silence(since: str, until: str) -> str:
    """As the user reads it."""
    return f"The NVIDIA driver did not answer {since} to {until}: GPU figures of that time are missing."


def test_silences_that_are_close_together_are_one() -> None:
    """Said once the driver has answered for a while, and one that goes on to the end only as that."""
    silences = Silences("NVIDIA")
    silences.add(0.0, 2.5)
    silences.add(2.7, 5.0)

    assert silences.take(5.2) == []
    (text,) = silences.take(7.1)
    assert text == (
        "The NVIDIA driver answered only now and then from the start to 5.0 s: GPU figures of that time are incomplete."
    )
    silences.add(9.8, 12.0)
    assert silences.end(9.8) == say_silence("from 9.8 s", "the end")
    assert silences.finish() == []


def test_a_silence_long_after_another_is_another() -> None:
    """Also if nothing was read in between."""
    silences = Silences("NVIDIA")
    silences.add(1.0, 4.0)
    silences.add(14.0, 17.0)

    assert silences.take(17.0) == [say_silence("from 1.0 s", "4.0 s")]
    assert silences.end(30.0) == say_silence("from 30.0 s", "the end")
    assert silences.finish() == [say_silence("from 14.0 s", "17.0 s")]


def test_many_silences_take_few_sentences() -> None:
    """The others are counted."""
    silences = Silences("NVIDIA")
    said: list[str] = []
    for number in range(30):
        silences.add(10.0 * number, 10.0 * number + 3)
        said += silences.take(10.0 * number + 5)

    assert len(said) == 5
    assert silences.finish() == ["The NVIDIA driver did not answer 25 more times, 75.0 s in all."]
