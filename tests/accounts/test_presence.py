"""When regions were open: what their counters tell between two readings."""

from __future__ import annotations

import pytest

from gpu_tracker.accounts.presence import Inside, Presence

KEY = (100, ("step",))
OTHER = (101, ("step",))


def test_a_region_that_is_entered_once_is_placed_by_how_long_it_was_open() -> None:
    """Entered at 0.6 s, left at 1.2 s."""
    presence = Presence()

    assert presence.take(1.0, {KEY: Inside(0, 1, 0.4, 0.6, 0.0)}, ()) == {KEY: pytest.approx(0.4)}
    assert presence.take(2.0, {KEY: Inside(1, 0, 0.6, 0.6, 1.2)}, ()) == {KEY: pytest.approx(0.2)}
    assert presence.find(0.0, 0.6) == {}
    assert presence.find(0.5, 1.1) == {KEY: pytest.approx(0.5)}
    assert presence.find(1.1, 2.0) == {KEY: pytest.approx(0.1)}


def test_a_second_call_is_as_long_as_its_time_before_it_was_left() -> None:
    """What the first one took is known from before."""
    presence = Presence()
    presence.take(1.0, {KEY: Inside(1, 0, 0.3, 0.2, 0.5)}, ())
    presence.take(2.0, {KEY: Inside(2, 0, 0.5, 0.2, 1.9)}, ())

    assert presence.find(1.0, 1.7) == {}
    assert presence.find(1.7, 1.9) == {KEY: pytest.approx(0.2)}


def test_many_short_calls_are_spread_over_the_time_between() -> None:
    """Four tenths in all, anywhere in the second; threads that are inside together count once."""
    presence = Presence()
    presence.take(1.0, {}, ())
    presence.take(2.0, {KEY: Inside(4, 0, 0.4, 1.0, 2.0), OTHER: Inside(8, 2, 5.0, 1.0, 2.0)}, ())

    assert presence.find(1.5, 2.0) == {KEY: pytest.approx(0.2), OTHER: pytest.approx(0.5)}


def test_a_region_that_others_have_entered_is_open_as_long_as_it_is_met() -> None:
    """A process that was forked inside it has no count of it."""
    presence = Presence()
    presence.take(1.0, {}, (KEY,))
    presence.take(1.0, {}, (KEY,))

    assert presence.find(0.0, 1.0) == {KEY: 1.0}


def test_what_a_process_counted_before_it_ended_is_kept_under_its_new_name() -> None:
    """Together with what others have there."""
    presence = Presence()
    presence.take(1.0, {KEY: Inside(0, 1, 0.5, 0.5, 0.0)}, ())
    presence.end(KEY, OTHER, Inside(1, 0, 0.8, 0.5, 1.3))
    presence.end((102, ("step",)), OTHER, Inside(1, 0, 0.2, 1.6, 1.8))
    presence.take(2.0, {}, ())

    assert presence.find(1.0, 2.0) == {OTHER: pytest.approx(0.5)}


def test_a_call_that_is_missing_for_a_moment_is_not_counted_twice() -> None:
    """It ended while it was read."""
    presence = Presence()
    presence.take(1.0, {KEY: Inside(0, 1, 1.0, 0.0, 0.0)}, ())
    presence.take(2.0, {KEY: Inside(0, 0, 0.0, 0.0, 0.0)}, ())
    presence.take(3.0, {KEY: Inside(1, 0, 1.5, 0.0, 2.5)}, ())

    assert presence.find(0.0, 3.0) == {KEY: pytest.approx(1.5)}


def test_old_readings_are_kept_in_less_detail() -> None:
    """Nothing of the whole is lost."""
    presence = Presence()
    for turn in range(1, 3001):
        presence.take(float(turn), {KEY: Inside(turn, 0, turn / 2, 0.0, float(turn))}, ())

    assert presence.find(0.0, 3000.0) == {KEY: pytest.approx(1500.0)}
    assert presence.find(2990.5, 2991.0) == {KEY: pytest.approx(0.5)}
