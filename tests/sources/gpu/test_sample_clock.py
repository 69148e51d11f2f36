"""The clock by which a driver dates its samples."""

from __future__ import annotations

import pytest

from gpu_tracker.sources.gpu.sample_clock import SampleClock


def test_the_wall_clock_is_taken_as_it_is() -> None:
    """A sample may be a little old, also one of the first answer."""
    clock = SampleClock(100.0, 5_000_000_000.0)
    clock.take([4_993_000_000], 100.0)
    clock.take([], 100.5)
    clock.take([5_000_900_000, 5_000_800_000], 101.0)

    assert clock.date(5_000_900_000) == pytest.approx(100.9)
    assert clock.stamp(100.9) == 5_000_900_000


@pytest.mark.parametrize("step_us", [-3_600_000_000, 5_000_000, 3_600_000_000])
def test_a_clock_that_was_set_is_followed(step_us: int) -> None:
    """Its newest sample is then of now."""
    clock = SampleClock(100.0, 5_000_000_000.0)
    clock.take([4_999_900_000], 100.0)
    clock.take([5_000_200_000 + step_us], 100.25)
    clock.take([5_000_400_000 + step_us], 100.5)

    assert clock.date(5_000_400_000 + step_us) == pytest.approx(100.45)


def test_silence_and_what_joins_the_buffer_meanwhile() -> None:
    """What has been there when the silence began is not new."""
    clock = SampleClock(100.0, 5_000_000_000.0)
    assert clock.is_silent(100.0)
    clock.take([4_999_900_000], 100.0)

    assert not clock.is_silent(102.0)
    assert clock.is_silent(102.1)
    assert clock.find_new([7, 9]) == frozenset()
    assert clock.find_new([9, 3]) == {3}
    assert [clock.is_old(at_us) for at_us in (3, 7, 9)] == [False, True, True]
