"""A defect of ours after the job has ended: it may cost the report, but never the job's exit code."""

from __future__ import annotations

from ..core.errors import TrackerError
from .output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Result = TypeVar("Result")


def survive(make: Callable[[], Result], otherwise: Result, recording_path: str | None) -> Result:
    """What it makes; `otherwise` after a word about why it could not."""
    try:
        return make()
    except TrackerError as error:
        say(f"{error} {_say_where(recording_path)}".rstrip())
    except Exception as error:  # noqa: BLE001
        say_defect(error, recording_path)
    return otherwise


def say_defect(error: Exception, recording_path: str | None) -> None:
    """One sentence; without a recording to look at, also where it happened."""
    what = f"{type(error).__name__}: {error}"
    say(
        f"A defect of gpu-tracker, not of the job: the result cannot be shown ({what}). {_say_where(recording_path)}".rstrip()
    )
    if recording_path is None:
        import traceback

        say("This is where it happened:", "".join(traceback.format_exception(error)))


def _say_where(recording_path: str | None) -> str:
    return "" if recording_path is None else f"The recording is {recording_path}."
