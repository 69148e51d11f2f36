"""What the keys of `watch` do."""

from __future__ import annotations

import pytest

from gpu_tracker.live.choices import Choices, Extent, Prompt, Shown, press, press_all
from gpu_tracker.live.keys import DOWN, END, ESCAPE, HOME, LEFT, PAGE_DOWN, PAGE_UP, UP
from gpu_tracker.live.selection import GPU, PID, SORTS, USER, Selection

MANY = Extent(n_processes=40, n_visible=9)


def test_scrolling_stays_within_what_there_is() -> None:
    """By one, by a page, or to an end."""
    firsts = []
    choices = Choices()
    for key in (DOWN, "j", UP, "k", UP, PAGE_DOWN, " ", PAGE_UP, "b", END, DOWN, HOME, LEFT):
        choices = press(choices, key, MANY)
        firsts.append(choices.first)

    assert firsts == [1, 2, 1, 0, 0, 9, 18, 9, 0, 31, 31, 0, 0]


def test_a_screen_with_room_for_all_does_not_scroll() -> None:
    """Nor one without room for any process, beyond the last."""
    assert press_all(Choices(), [DOWN, PAGE_DOWN, END], Extent(9, 9)) == Choices()
    assert press_all(Choices(), [DOWN] * 9, Extent(3, 0)).first == 3


def test_the_key_after_processes_have_ended_moves_from_what_is_seen() -> None:
    """Not from where they would be."""
    assert press(Choices(first=31), UP, Extent(20, 9)).first == 10


def test_sorts_come_in_turn() -> None:
    """Forth and back; another order begins at the top, and is not reversed."""
    sorts = [press_all(Choices(), "s" * count, MANY).selection.sort for count in range(len(SORTS) + 1)]

    assert sorts == [*SORTS, SORTS[0]]
    assert press(Choices(), "S", MANY).selection.sort == SORTS[-1]
    turned = press(Choices(first=5), "r", MANY)
    assert turned == Choices(Selection(is_reversed=True))
    assert press(turned, "r", MANY) == Choices()
    assert press(turned, "s", MANY) == Choices(Selection(sort=SORTS[1]))


@pytest.mark.parametrize(
    ("keys", "selection"),
    [
        ("g0, 3\n", Selection(gpus=("0", "3"))),
        ("uanna\r", Selection(users=("anna",))),
        ("uanx\x7f\x08nq ben\n", Selection(users=("anq", "ben"))),
        ("p12x3,q4\n", Selection(pids=(123, 4))),
        ("p\n", Selection()),
    ],
)
def test_a_filter_is_typed(keys: str, selection: Selection) -> None:
    """A letter is no command meanwhile; for PIDs only digits count."""
    assert press_all(Choices(first=7), keys, MANY) == Choices(selection)


def test_a_filter_is_replaced_and_removed() -> None:
    """An empty answer is everything of its kind; `a` is everything."""
    chosen = Choices(Selection(gpus=("0",), users=("anna",), pids=(1,), sort=PID))

    assert press_all(chosen, "g1\n", MANY).selection.gpus == ("1",)
    assert press_all(chosen, "u\n", MANY).selection == Selection(gpus=("0",), pids=(1,), sort=PID)
    assert press(chosen, "a", MANY).selection == Selection(sort=PID)


@pytest.mark.parametrize(("key", "kind"), [("g", GPU), ("u", USER), ("p", PID)])
def test_escape_cancels_a_filter(key: str, kind: str) -> None:
    """Other keys without a letter do nothing, and an answer has its limits."""
    asked = press(Choices(), key, MANY)

    assert asked.prompt == Prompt(kind)
    assert press_all(asked, ["1", DOWN, "\t", ""], MANY).prompt == Prompt(kind, "1")
    assert press_all(asked, ["1", ESCAPE], MANY) == Choices()
    assert press_all(asked, "1" * 300, MANY).prompt == Prompt(kind, "1" * 200)


@pytest.mark.parametrize("key", ["h", "?", "s", DOWN, ESCAPE])
def test_help_is_closed_by_any_key(key: str) -> None:
    """Which does nothing else."""
    assert press(Choices(), "?", MANY) == press(Choices(), "h", MANY) == Choices(has_help=True)
    assert press(Choices(has_help=True), key, MANY) == Choices()


def test_quitting_and_unknown_keys() -> None:
    """Also from the help."""
    assert press(Choices(has_help=True), "q", MANY).is_over
    assert press(Choices(), "Q", MANY).is_over
    assert press_all(Choices(), ["x", "", ESCAPE], MANY) == Choices()


def test_only_what_is_shown_is_asked_for() -> None:
    """Power limits always, fans and video units on request."""
    limits = ("enforced.power.limit", "power.limit")

    assert Shown().details == limits
    assert Shown(has_fan=True).details == (*limits, "fan.speed")
    assert Shown(has_codec=True).details == (*limits, "utilization.encoder", "utilization.decoder")
