"""Signals that are kept although they would be ignored."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from gpu_tracker.cli.pending import keep_pending, restore

IGNORED_BY_DEFAULT, IGNORED, HANDLED = signal.SIGWINCH, signal.SIGUSR1, signal.SIGUSR2
NUMBERS = (IGNORED_BY_DEFAULT, IGNORED, HANDLED, signal.SIGXCPU)


def handle(*_: object) -> None:
    """Somebody's own."""


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in NUMBERS}
    signal.signal(IGNORED_BY_DEFAULT, signal.SIG_DFL)
    signal.signal(IGNORED, signal.SIG_IGN)
    signal.signal(HANDLED, handle)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_what_would_be_ignored_gets_a_handler_for_a_while() -> None:
    """By default or by wish; who has a handler keeps it, and what would end us still would."""
    end = signal.getsignal(signal.SIGXCPU)
    replaced = keep_pending(NUMBERS)
    assert set(replaced) == {IGNORED_BY_DEFAULT, IGNORED}
    assert all(callable(signal.getsignal(number)) for number in replaced)
    assert not isinstance(signal.getsignal(IGNORED), signal.Handlers)
    assert (signal.getsignal(HANDLED), signal.getsignal(signal.SIGXCPU)) == (handle, end)
    restore(replaced)
    assert signal.getsignal(IGNORED_BY_DEFAULT) is signal.SIG_DFL
    assert signal.getsignal(IGNORED) is signal.SIG_IGN


def test_one_that_comes_meanwhile_can_be_waited_for() -> None:
    """On every kernel."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {IGNORED})
    replaced = keep_pending({IGNORED})
    signal.pthread_kill(threading.get_ident(), IGNORED)  # other threads of the test runner would take it
    assert signal.sigwait({IGNORED}) == IGNORED
    restore(replaced)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
