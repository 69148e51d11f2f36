"""Ctrl-C until the job runs: never raised in the middle of something, never lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from gpu_tracker.cli.interrupts import allow_interrupts, interruptible, note_interrupts, raise_interrupts


@pytest.fixture(autouse=True)
def usual_handler() -> Iterator[None]:
    """Python's own handler, before and after."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_interrupt_is_raised_where_it_is_asked_for() -> None:
    """Not where it came, and once."""
    note_interrupts()
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        raise_interrupts()
    raise_interrupts()


def test_a_wait_is_interrupted_at_once() -> None:
    """Also by one that came before, and only once: what tidies up is not interrupted again."""
    note_interrupts()
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruptible():
        pytest.fail("it was not interrupted")


def test_after_a_wait_interrupts_are_only_noted_again() -> None:
    """The way out of a wait leaves nothing open."""
    note_interrupts()
    with interruptible():
        pass
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        raise_interrupts()


def test_interrupts_are_allowed_again() -> None:
    """One that was noted comes at once, and Python's own handler is back."""
    note_interrupts()
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        allow_interrupts()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_was_ignored_stays_ignored() -> None:
    """A shell starts its background jobs so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    note_interrupts()
    allow_interrupts()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
