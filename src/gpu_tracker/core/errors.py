"""The exceptions a user may have to act on: a message, a hint, and the exit code of the command line.

    TrackerError
    ├── UsageError       the request makes no sense or cannot be met
    └── RecordingError   a recording cannot be read

Whatever goes wrong while measuring is no exception: it is a note in the recording.
"""

from __future__ import annotations


class TrackerError(Exception):
    """Something the user can mend."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} {self.hint}" if self.hint else message


class UsageError(TrackerError):
    """The request makes no sense or cannot be met."""

    exit_code = 2


class RecordingError(TrackerError):
    """The file is not a recording that can be read."""

    exit_code = 2


# What comes of computing with a file that has the right words and the wrong things behind them.
WRONG_FIGURES = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)
