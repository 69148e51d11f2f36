"""Whose an exception is."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial

import pytest

from gpu_tracker.core.units import parse_kib_field
from gpu_tracker.instrument import mishaps


def _raise(error: BaseException) -> None:
    raise error


def test_only_what_our_own_code_raises_is_ours() -> None:
    """The innermost code counts, and other kinds are never ours."""
    with pytest.raises(AttributeError) as ours:
        parse_kib_field(None, b"\n")  # type: ignore[arg-type]
    with pytest.raises(TimeoutError) as handlers:
        _raise(TimeoutError())

    assert mishaps.is_ours(ours.value)
    assert not mishaps.is_ours(handlers.value)
    assert not mishaps.is_ours(KeyboardInterrupt())
    assert not mishaps.is_ours(OSError())


def _catch(act: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:
        act()
    return caught.value


def _interrupt(handler: Callable[..., None]) -> None:
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def _handle(_number: int, _frame: object) -> None:
    raise PermissionError


def _handle_any(*_: object) -> None:
    _raise(PermissionError())


def test_what_a_program_puts_beneath_our_calls_is_ours_but_no_handler() -> None:
    """An audit hook or a fake is called by us, a signal handler in our place; a time limit is never ours."""
    refused = _catch(lambda: _raise(PermissionError()))
    late = _catch(lambda: _raise(TimeoutError()))
    handled = [_catch(partial(_interrupt, handler)) for handler in (_handle, _handle_any)]

    assert mishaps.is_ours(refused)
    assert not mishaps.is_ours(late)
    assert [mishaps.is_ours(error) for error in handled] == [False, False]
    assert [mishaps.is_of_called(error) for error in handled] == [False, False]


def test_what_a_value_of_the_program_raises_is_its_own() -> None:
    """Of any kind if it is written in Python; else of those that conversions raise."""
    assert mishaps.is_of_called(_catch(lambda: _raise(EOFError())))
