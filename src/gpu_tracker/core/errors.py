"""The exceptions that a user can act on: a message, a hint, and an exit code.

    TrackerError         trouble, such as a full disk (3)
    ├── NoGpuError       there is none (1)
    ├── UsageError       the request makes no sense or cannot be met (2); a ValueError
    │   └── KindError    an argument of the wrong type; a TypeError
    ├── StateError       too early or too late; a RuntimeError
    └── RecordingError   a recording cannot be read (2)

A failure while measuring is not an exception but a note in the recording.
"""

from __future__ import annotations


class TrackerError(Exception):
    """Something the user can fix."""

    exit_code = 3

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} {self.hint}" if self.hint else message


class NoGpuError(TrackerError):
    """There is no GPU to query."""

    exit_code = 1


class UsageError(TrackerError, ValueError):
    """The request makes no sense or cannot be met."""

    exit_code = 2


class KindError(UsageError, TypeError):
    """An argument is of the wrong type."""


class StateError(TrackerError, RuntimeError):
    """The request comes too early or too late."""


class RecordingError(TrackerError):
    """The file is not a recording that can be read."""

    exit_code = 2


# What decoding or computing with wrong data may raise; RecursionError is for deep nesting.
WRONG_DATA = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)
