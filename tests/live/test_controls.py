"""What the keys of `top` do."""

from __future__ import annotations

from math import inf

import pytest

from gpu_tracker.live.controls import SORTS, SPANS, Controls, play, press, press_all
from gpu_tracker.live.keys import END, HOME, LEFT, PAGE_DOWN, PAGE_UP, RIGHT

LAST = 1000.0


def test_going_back_stops_the_time() -> None:
    """By a tenth of what is seen, or all of it; never before the start."""
    back = press(Controls(), LEFT, LAST, 1)

    assert (back.moment, back.is_paused) == (970.0, True)
    assert press(back, "h", LAST, 1).moment == 940.0
    assert press(back, PAGE_UP, LAST, 1).moment == 670.0
    assert press_all(back, [PAGE_UP] * 9, LAST, 1).moment == 0.0
    assert press(Controls(), HOME, LAST, 1) == Controls(moment=0.0, is_paused=True)
    assert press(Controls(span=len(SPANS) - 1), LEFT, LAST, 1).moment == 900.0


def test_going_forth_ends_now() -> None:
    """Where the time goes on."""
    back = Controls(moment=900.0, is_paused=True)

    assert press(back, RIGHT, LAST, 1).moment == 930.0
    assert press(back, PAGE_DOWN, LAST, 1) == Controls()
    assert press(back, END, LAST, 1) == Controls()
    assert press(Controls(), "l", LAST, 1) == Controls()


def test_the_time_stands_still() -> None:
    """It goes on from now, or in a replay from there."""
    stopped = press(Controls(), " ", LAST, 1)

    assert stopped == Controls(moment=LAST, is_paused=True)
    assert press(stopped, " ", LAST, 1) == Controls()
    replay = Controls(moment=5.0, speed=60.0)
    assert press_all(replay, "  ", LAST, 1) == replay


def test_a_replay_is_as_fast_as_it_is_asked_to_be() -> None:
    """Until it has caught up; it waits while the time stands still."""
    replay = Controls(moment=0.0, speed=60.0)

    assert play(replay, 0.5, LAST).moment == 30.0
    assert play(replay, 20.0, LAST).moment is None
    assert play(replay._replace(is_paused=True), 0.5, LAST).moment == 0.0
    assert play(Controls(), 0.5, LAST) == Controls()


def test_graphs_show_more_or_less() -> None:
    """From a minute to everything."""
    controls = Controls()

    assert press(controls, "+", LAST, 1).span_seconds == 60.0
    assert press_all(controls, "=++", LAST, 1).span_seconds == 60.0
    assert press(controls, "-", LAST, 1).span_seconds == 900.0
    assert press_all(controls, "-" * 20, LAST, 1).span_seconds == inf


def test_processes_are_sorted_in_turn() -> None:
    """Until the first is back."""
    sorts = [press_all(Controls(), "s" * count, LAST, 1).sort for count in range(len(SORTS) + 1)]

    assert sorts == [0, 1, 2, 3, 0]


def test_runs_come_in_turn() -> None:
    """A replay begins anew; a single run stays as it is."""
    late = Controls(moment=900.0, is_paused=True)

    assert press(late, "n", LAST, 3) == Controls(run=1)
    assert press(late, "p", LAST, 3) == Controls(run=2)
    assert press(late, "\t", LAST, 1) == late
    assert press(Controls(moment=50.0, speed=2.0), "n", LAST, 2) == Controls(moment=0.0, speed=2.0, run=1)


@pytest.mark.parametrize("key", ["?", "s", LEFT])
def test_help_is_closed_by_any_key(key: str) -> None:
    """Which does nothing else."""
    assert press(press(Controls(), "?", LAST, 1), key, LAST, 1) == Controls()


def test_quitting_and_unknown_keys() -> None:
    """Also from the help."""
    assert press(Controls(has_help=True), "q", LAST, 1).is_over
    assert press(Controls(), "Q", LAST, 1).is_over
    assert press(Controls(), "x", LAST, 1) == Controls()
