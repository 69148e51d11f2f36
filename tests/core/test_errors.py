"""Errors are sentences."""

from __future__ import annotations

from gpu_tracker.core.errors import RecordingError, TrackerError, UsageError


def test_an_error_shows_its_message_and_its_hint() -> None:
    """What is wrong, then what to do."""
    assert str(TrackerError("It is broken.")) == "It is broken."
    assert str(UsageError("It is broken.", "Mend it.")) == "It is broken. Mend it."


def test_each_kind_has_an_exit_code() -> None:
    """Two is a wrong request, as everywhere."""
    assert (UsageError.exit_code, RecordingError.exit_code) == (2, 2)
