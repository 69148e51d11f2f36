"""How long processes are on a device."""

from __future__ import annotations

from gpu_tracker.accounts.gpu_lives import Lives


def live(*pids_at: tuple[float, set[int]], has_others: bool = True) -> Lives:
    """Processes as they are listed over time."""
    lives = Lives()
    for at_seconds, pids in pids_at:
        lives.take(at_seconds, pids, has_others=has_others)
    return lives


def test_workers_that_end_before_the_driver_samples_again_are_short() -> None:
    """Half a second each; a driver that samples six times a second has met them."""
    turns = [(0.25 * turn, {turn // 4} if turn % 4 < 2 else set[int]()) for turn in range(40)]

    assert live(*turns).are_short(1.0)
    assert not live(*turns).are_short(1 / 6)
    assert not live(*turns, has_others=False).are_short(1.0)


def test_a_short_one_beside_a_long_one_does_not_matter() -> None:
    """It has done little of it."""
    turns = [(float(turn), {1}) for turn in range(20)]

    assert not live(*turns[:10], (9.5, {1, 2}), *turns[10:]).are_short(1.0)
    assert not live().are_short(1.0)


def test_of_very_many_the_first_ones_tell() -> None:
    """They are as short as the others."""
    turns = [(0.25 * turn, {turn}) for turn in range(1500)]

    assert live(*turns).are_short(1.0)
