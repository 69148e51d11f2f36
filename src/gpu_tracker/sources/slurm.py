"""What Slurm itself says of a job. Asked by reports only, never while a job runs, and never needed."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_PATIENCE_SECONDS = 2.0
# The accounting remembers for ever, but not every cluster has it; the controller remembers for some minutes.
_ACCOUNTING = ("sacct", "--noheader", "--parsable2", "--allocations", "--format=State,JobName", "--jobs")
_CONTROLLER = ("scontrol", "--oneliner", "show", "job")
_STATE, _NAME = "JobState=", "JobName="


def ask_state(
    job: str, name: str | None, commands: Sequence[tuple[str, ...]] = (_ACCOUNTING, _CONTROLLER)
) -> str | None:
    """The state of the job of that number and name, in Slurm's own word (`TIMEOUT`); None if it does not say within two seconds.

    Another cluster may have a job of the same number.
    """
    until = time.monotonic() + _PATIENCE_SECONDS
    if not (job.isascii() and job.isdecimal()):
        return None  # what anybody may have put into a recording is no argument
    for command in commands:
        state, told = parse_answer(_run((*command, job), until - time.monotonic()))
        if state is not None:
            return state if name in (None, told) else None
    return None


def parse_answer(text: str) -> tuple[str | None, str]:
    """State and name of a job, by either command: `CANCELLED by 1001|train`, or `JobId=7 JobName=train JobState=TIMEOUT ...`."""
    line = text.partition("\n")[0]
    if _STATE in line:
        words = line.split()
        states = [word.removeprefix(_STATE) for word in words if word.startswith(_STATE)]
        names = [word.removeprefix(_NAME) for word in words if word.startswith(_NAME)]
        state, name = states[0], names[0] if names else ""
    else:
        told, _, name = line.partition("|")
        state = told.partition(" ")[0]
    is_word = state.isascii() and state.isupper() and state.replace("_", "").isalpha()
    return (state if is_word else None), name


def _run(command: tuple[str, ...], seconds: float) -> str:
    import subprocess

    if seconds <= 0:
        return ""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            text=True,
            errors="replace",
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout
