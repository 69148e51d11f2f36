"""Functions that end without a word: what is to be done then is done once, and not before."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

from gpu_tracker.instrument.running import await_end, end_what_has_ended, find_outermost

Told = list[BaseException | None]


def fit(told: Told, then: Callable[[], object]) -> None:
    """A function that is watched, and does something."""
    own = "its own"
    await_end(sys._getframe(), told.append)
    await_end(sys._getframe(), told.append).cancel()
    then()
    assert (own, len(told)) == ("its own", 0)


def fail() -> None:
    """As a batch does."""
    raise ValueError("broken")


def test_it_is_done_when_the_function_has_returned() -> None:
    """Not while it runs, though somebody asks."""
    told: Told = []

    fit(told, end_what_has_ended)

    assert told == [None]


def test_it_is_done_when_its_error_is_forgotten() -> None:
    """Not by the function that caught it, but once nothing has the variables any more."""
    told: Told = []

    with pytest.raises(ValueError, match="broken") as caught:
        fit(told, fail)
    assert told == []
    del caught

    assert told == [None]
    assert not end_what_has_ended()


def test_an_error_that_is_kept_does_not_hide_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a notebook keeps it; then it is known which one it was."""
    told: Told = []
    with pytest.raises(ValueError, match="broken") as caught:
        fit(told, fail)
    monkeypatch.setattr(sys, "last_value", caught.value, raising=False)

    end_what_has_ended()
    end_what_has_ended()

    assert told == [caught.value]


def test_an_error_of_others_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one may be of anything."""
    told: Told = []
    with pytest.raises(ValueError, match="broken") as caught:
        fit(told, fail)
    monkeypatch.setattr(sys, "last_value", OSError(), raising=False)

    end_what_has_ended()

    assert told == [None]
    assert caught.value is not None


def test_what_runs_in_another_thread_has_not_ended() -> None:
    """Whoever asks."""
    told: Told = []
    begun, asked = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        asked.wait()

    thread = threading.Thread(target=fit, args=(told, wait))
    thread.start()
    begun.wait()
    are_others = end_what_has_ended()
    during = list(told)
    asked.set()
    thread.join()

    assert (are_others, during, told) == (True, [], [None])


def test_a_function_of_another_greenlet_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be switched out."""
    told: Told = []
    one, other = object(), object()
    monkeypatch.setitem(sys.modules, "greenlet", types.SimpleNamespace(getcurrent=lambda: one))
    with pytest.raises(ValueError, match="broken") as caught:
        fit(told, fail)
    monkeypatch.setitem(sys.modules, "greenlet", types.SimpleNamespace(getcurrent=lambda: other))
    assert end_what_has_ended()
    assert told == []
    monkeypatch.setitem(sys.modules, "greenlet", types.SimpleNamespace(getcurrent=lambda: one))

    end_what_has_ended()

    assert told == [None]
    assert caught.value is not None


def make_function(module: str, body: str, **names: Any) -> Any:
    """A function of a module."""
    names["__name__"] = module
    exec(f"def call(then): {body}", names)
    return names["call"]


def test_the_outermost_function_of_a_package_is_found() -> None:
    """Of those that call each other down to us, without what the user has around them."""
    found: list[str | None] = []

    def look() -> None:
        for package in ("framework", "other"):
            frame = find_outermost(package, sys._getframe())
            found.append(None if frame is None else frame.f_globals["__name__"])

    inner = make_function("framework.callbacks", "then()")
    middle = make_function("framework.trainer", "inner(then)", inner=inner)
    users = make_function("train", "middle(then)", middle=middle)
    make_function("framework.cli", "users(then)", users=users)(look)

    assert found == ["framework.trainer", None]
