"""Whose an exception is."""

from __future__ import annotations

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
