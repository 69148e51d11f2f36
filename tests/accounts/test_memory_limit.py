"""What a memory limit has counted at its peak."""

from __future__ import annotations

import pytest

from builders import MB
from gpu_tracker.accounts.memory_limit import MemoryLimitAccount
from gpu_tracker.accounts.sharing import NOTHING, Holding


def hold(size: int, file: int = 0) -> Holding:
    """One process with so many megabytes."""
    return Holding(size * MB, size * MB, 0, file * MB)


def feed(*readings: tuple[int | None, Holding, int]) -> float | None:
    """The most in megabytes, after readings of the limit, of the processes, and of their peak so far."""
    account = MemoryLimitAccount()
    for held, processes, peak in readings:
        account.take(None if held is None else held * MB, processes, peak * MB)
    return None if account.most_bytes is None else account.most_bytes / MB


def test_a_limit_that_is_never_read_has_counted_nothing() -> None:
    """Nor does a peak make it known."""
    account = MemoryLimitAccount()
    account.take_peak(50 * MB)

    assert feed((None, hold(50), 50)) is account.most_bytes is None


def test_a_limit_that_is_read_without_any_process_counts_what_it_says() -> None:
    """Nobody holds anything, so the difference says nothing."""
    assert feed((20, NOTHING, 0)) == 20


@pytest.mark.parametrize(
    ("read_mb", "held_mb"),
    [(88, 62), (172, 60), (52, 180), (172, 180), (52, 60)],
    ids=["falling", "gone", "rising", "seen by both", "seen by none"],
)
def test_a_spike_is_counted_in_full_wherever_it_meets_the_two_readings(read_mb: int, held_mb: int) -> None:
    """The job takes 120 MB and frees them, before, between or after the readings of its processes and of the limit."""
    quiet = hold(52)
    most = feed((60, quiet, 52), (60, quiet, 52), (held_mb, hold(read_mb), 172), (60, quiet, 172))

    assert most == 180


def test_a_spike_in_the_last_reading_is_counted_in_full() -> None:
    """There is no reading after it."""
    assert feed((60, hold(52), 52), (62, hold(88), 172)) == 180


def test_a_spike_counts_beside_what_was_counted_then() -> None:
    """What lay in shared memory earlier was gone when the processes needed most."""
    quiet = hold(20)
    most = feed(
        (230, quiet, 20),
        (230, quiet, 20),
        (30, quiet, 20),
        (30, quiet, 20),
        (30, quiet, 170),
        (30, quiet, 170),
    )

    assert most == 230


def test_a_mapped_file_does_not_count() -> None:
    """The limit counts it as page cache; it is a part of what is resident."""
    assert feed((138, hold(130, file=8), 130), (138, hold(430, file=308), 430)) == 138


def test_the_reading_after_a_peak_says_what_it_was_made_of() -> None:
    """Until then the unread part is taken for the process's own."""
    before = (138, hold(130, file=8), 130)
    meanwhile = (138, hold(200, file=78), 430)

    assert feed(before, meanwhile) == 368
    assert feed(before, meanwhile, (138, hold(430, file=308), 430)) == 138


@pytest.mark.parametrize("held_mb", [86, 37, 22], ids=["all", "a part", "nothing"])
def test_what_an_ended_process_still_holds_is_not_counted_beside_a_peak_that_is_known_later(
    held_mb: int,
) -> None:
    """The kernel frees it for some milliseconds after the process has gone; its own mark is known even later."""
    account = MemoryLimitAccount()
    for held, processes, peak in ((74, hold(74, file=16), 74), (78, hold(78, file=16), 78)):
        account.take(held * MB, processes, peak * MB)
    account.take(held_mb * MB, hold(14, file=7), 78 * MB)
    account.take_peak(80 * MB)

    assert account.most_bytes == max(80, held_mb) * MB


def test_what_stays_after_a_process_has_gone_is_counted_at_the_next_reading() -> None:
    """A job may put into shared memory what it had itself."""
    assert feed((110, hold(100), 100), (110, hold(10), 100), (110, hold(10), 100), (110, hold(10), 60)) == 110
    assert (
        feed((110, hold(100), 100), (110, hold(10), 100), (110, hold(10), 100), (110, hold(10), 120)) == 220
    )
