"""Who may draw a panel on a terminal."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_tracker.live.claim import Claim
from gpu_tracker.live.margin import Margin


@pytest.fixture
def terminal() -> Iterator[int]:
    """One of its own."""
    outer, inner = pty.openpty()
    yield inner
    os.close(outer)
    os.close(inner)


def test_a_terminal_is_claimed_once(terminal: int) -> None:
    """By another one only after it was given back, also if that was asked for twice."""
    first, second = Claim(terminal), Claim(terminal)

    assert [first.take(), second.take(), first.take(), second.take()] == [True, False, True, False]
    first.give_back()
    first.give_back()
    assert second.take()
    second.give_back()


def test_whoever_asks_whether_it_is_free_does_not_keep_it(terminal: int) -> None:
    """Neither from others nor for himself."""
    first, second = Claim(terminal), Claim(terminal)

    assert first.is_free()
    assert second.take()
    assert not first.is_free()
    second.give_back()
    assert first.is_free()


def test_a_panel_that_had_no_time_to_ask_is_crowded_out_all_the_same(terminal: int) -> None:
    """Its job has ended before the first frame, while another panel was there; without one there was only no time."""
    other, margin = Claim(terminal), Margin(terminal)

    assert not margin.was_crowded_out()
    assert other.take()
    assert margin.was_crowded_out()
    other.give_back()


def test_two_terminals_are_claimed_by_two(terminal: int) -> None:
    """Neither is in the way of the other."""
    outer, inner = pty.openpty()
    claims = [Claim(terminal), Claim(inner)]

    assert all(one.take() for one in claims)
    for one in claims:
        one.give_back()
    os.close(outer)
    os.close(inner)


def test_what_cannot_be_claimed_may_be_used(
    tmp_path: Path, terminal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No terminal, one of another user, or a name that means another terminal to everybody."""
    with (tmp_path / "file").open("w") as file:
        assert Claim(file.fileno()).take()
    for path in ("/dev/tty", str(tmp_path / "none")):
        monkeypatch.setattr(os, "ttyname", lambda _, path=path: path)
        assert Claim(terminal).take()
        assert Claim(terminal).take()
