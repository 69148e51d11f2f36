"""What Slurm itself says of a job. Asked by reports only, never while a job runs, and never needed."""

from __future__ import annotations

import os
import time

from ..core.units import parse_count
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PATIENCE_SECONDS = 2.0
_MOST_DIGITS = 12
# The accounting remembers for ever, but not every cluster has it; the controller remembers for some minutes.
_ACCOUNTING = (
    "sacct",
    "--noheader",
    "--parsable2",
    "--allocations",
    "--format=State,Start,JobName",
    "--jobs",
)
_CONTROLLER = ("scontrol", "--oneliner", "show", "job")
_STATE, _START, _NAME = "JobState=", "StartTime=", "JobName="
# Seconds since 1970, by the clock of its controller, which may differ from that of a node.
_TIME_FORMAT = {"SLURM_TIME_FORMAT": "%s"}
_CLOCK_SECONDS = 5.0
_REQUEUED = "REQUEUED"


class Answer(NamedTuple):
    """What it says of a job. None is not known."""

    state: str | None = None
    name: str = ""
    started_seconds: float | None = None
    """When it was last started, or may be: since 1970."""


def ask_state(
    job: str,
    name: str | None,
    began_seconds: float | None = None,
    commands: Sequence[tuple[str, ...]] = (_ACCOUNTING, _CONTROLLER),
    patience_seconds: float = PATIENCE_SECONDS,
) -> str | None:
    """The state of the job of that number and name, in Slurm's own word (`TIMEOUT`); None if it does not say within two seconds.

    Another cluster may have a job of the same number. What began before its last start is of an earlier life, which ended in its queue.
    """
    until = time.monotonic() + patience_seconds
    if not (job.isascii() and job.isdecimal()):
        return None  # what anybody may have put into a recording is no argument
    for command in commands:
        answer = parse_answer(_run((*command, job), until - time.monotonic()))
        if answer.state is not None:
            state = _REQUEUED if _is_later(answer, began_seconds) else answer.state
            return state if name in (None, answer.name) else None
    return None


def _is_later(answer: Answer, began_seconds: float | None) -> bool:
    started = answer.started_seconds
    return None not in (started, began_seconds) and (started or 0.0) > (began_seconds or 0.0) + _CLOCK_SECONDS


def parse_answer(text: str) -> Answer:
    """What either command says: `CANCELLED by 1001|1769860800|train`, or `JobId=7 JobName=train JobState=TIMEOUT StartTime=...`."""
    line = text.partition("\n")[0]
    if _STATE in line:
        state, started, name = (_find_field(line, field) for field in (_STATE, _START, _NAME))
    else:
        told, _, rest = line.partition("|")
        state = told.partition(" ")[0]
        started, _, name = rest.partition("|")
    is_word = state.isascii() and state.isupper() and state.replace("_", "").isalpha()
    seconds = parse_count(started, _MOST_DIGITS)
    return Answer(state if is_word else None, name, None if seconds is None else float(seconds))


def _find_field(line: str, field: str) -> str:
    return next((word.removeprefix(field) for word in line.split() if word.startswith(field)), "")


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
            env={**os.environ, **_TIME_FORMAT},
            errors="replace",
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout
