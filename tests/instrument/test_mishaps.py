"""Whose an exception is."""

from __future__ import annotations

import pytest

from gpu_tracker.core.units import parse_kib_field
from gpu_tracker.instrument import mishaps


def _raise(error: BaseException) -> None:
    raise error


def _catch(error: BaseException) -> BaseException:
    try:
        _raise(error)
    except BaseException as caught:
        return caught
    raise AssertionError


def test_only_what_our_own_code_raises_is_ours() -> None:
    """The innermost code counts, and other kinds are never ours."""
    with pytest.raises((AttributeError, TypeError)) as failed:
        parse_kib_field(None, b"\n")  # type: ignore[arg-type]

    assert mishaps.is_ours(failed.value)
    assert not mishaps.is_ours(_catch(TimeoutError()))
    assert not mishaps.is_ours(KeyboardInterrupt())
    assert not mishaps.is_ours(OSError())
