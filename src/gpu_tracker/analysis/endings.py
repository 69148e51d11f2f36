"""How a run ended: as it should, by a signal, at its time limit. Pure."""

from __future__ import annotations

from ..core.model import OOM_GROUP, SIGNAL
from ..core.moments import parse_moment
from ..core.signals import name_signal
from ..core.units import humanize_seconds, parse_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.model import Allocation, Event, RecordingData

SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGXCPU, SIGXFSZ = 1, 2, 9, 15, 24, 25
# What others send to end a job.
ENDING_SIGNALS = (SIGHUP, SIGINT, SIGTERM)
# Schedulers end a job a little later than they said, never much sooner.
TIME_LIMIT_SLACK_SECONDS = 5.0
# Whoever holds less than this of a limit has hardly exceeded it; others under it have.
OWN_PERCENT = 50.0

# Of a recording without an end.
KILLED = "killed"
_GOOD = ("exited", "stopped", "running", "sampler lost")
_MOST_DIGITS = 3
# A shell that passes on the signal of a program adds this.
_SIGNAL_IN_SHELL = 128


def has_failed(ending: str, exit_code: int | None) -> bool:
    """By its exit code, or how its tracking ended."""
    return bool(exit_code) or ending not in _GOOD


def find_signal(exit_code: int | None) -> int | None:
    """What ended the job or, perhaps, a process of it in a shell, if others send it: the end of its time, or of a limit."""
    code = exit_code or 0
    signal = -code if code < 0 else code - _SIGNAL_IN_SHELL
    return signal if signal in (SIGKILL, SIGTERM, SIGXCPU, SIGXFSZ) else None


def describe_signals(events: Sequence[Event]) -> list[str]:
    """Which signals reached the job while it ran, each kind once."""
    first: dict[int, float] = {}
    for event in events:
        number = parse_count(event.text, _MOST_DIGITS) if event.kind == SIGNAL else None
        if number is not None:
            first.setdefault(number, event.at_seconds)
    return [
        f"The job got {name_signal(number)} after {humanize_seconds(at)}." for number, at in first.items()
    ]


def list_ending_signals(events: Sequence[Event]) -> list[int]:
    """Those that told the job to end while it ran, in their order."""
    told = (parse_count(event.text, _MOST_DIGITS) for event in events if event.kind == SIGNAL)
    return [number for number in told if number in ENDING_SIGNALS]


def describe_cut_off(recording: RecordingData) -> str:
    """Why a scheduler's job, or a rank, has done less than it was to do although it ended well; empty if it was not told to end.

    A program that saves its work and exits with 0 was cut off all the same. A service that is stopped, of no job, ends so on purpose.
    """
    identity, signals = recording.header.identity, list_ending_signals(recording.events)
    if identity.job is None and identity.rank is None:
        return ""
    if _has_lost_a_process(recording.events):
        return "the kernel killed a process of it for its memory"
    if not signals:
        return "time limit reached" if _has_stopped_too_late(recording) else ""
    names = " and ".join(map(name_signal, dict.fromkeys(signals)))
    return f"time limit reached, {names}" if is_out_of_time(recording) else f"told to end by {names}"


def _has_lost_a_process(events: Sequence[Event]) -> bool:
    """Whether the kernel killed one for its memory, as far as is known in the job's own control group."""
    groups = [event.text for event in events if event.kind == OOM_GROUP]
    return any(event.kind == "oom" for event in events) and (not groups or any(groups))


def _has_stopped_too_late(recording: RecordingData) -> bool:
    """Whether a program has stopped its tracker when its time was up: nobody has seen the signal that told it, nor its exit code."""
    end, began = recording.end, parse_moment(recording.header.started_at)
    if end is None or end.exit_code is not None or began is None:
        return False
    seconds = recording.totals.at_seconds
    return is_at_time_limit(recording.header.allocation, began + seconds, seconds, slack_seconds=0.0)


def is_out_of_time(recording: RecordingData) -> bool:
    """Whether it ended when its time was up; one without an end may have gone on until its next sample."""
    began, seconds = parse_moment(recording.header.started_at), recording.totals.at_seconds
    ended = None if began is None else began + seconds
    unseen = recording.header.sleep_seconds if recording.end is None else 0.0
    slack = TIME_LIMIT_SLACK_SECONDS + unseen
    return is_at_time_limit(recording.header.allocation, ended, seconds, slack)


def find_ending(recording: RecordingData) -> str:
    """How a run ended, in the word of its recording, or what can be said without one."""
    if recording.end is not None:
        return recording.end.reason
    return "running" if recording.is_running else KILLED


def is_far_below(own_bytes: float, limit_bytes: float, own_percent: float = OWN_PERCENT) -> bool:
    """Whether a job held so little of its memory limit that others must have reached it."""
    return limit_bytes > 0 and 100 * own_bytes < own_percent * limit_bytes


def is_memory_error(exception: str) -> bool:
    """Whether the exception that ended a run says that memory was refused, that of a GPU included."""
    return is_gpu_memory_error(exception) or "MemoryError" in exception


def is_gpu_memory_error(exception: str) -> bool:
    """PyTorch and CuPy call it so."""
    return "OutOfMemory" in exception


def is_at_time_limit(
    allocation: Allocation,
    ended_at_seconds: float | None,
    seconds: float,
    slack_seconds: float = TIME_LIMIT_SLACK_SECONDS,
) -> bool:
    """Whether it ended when its time was up; a limit that was over before it began is not its own."""
    if ended_at_seconds is None:
        return False
    started_at_seconds = ended_at_seconds - seconds
    ends_at = find_deadline(allocation, started_at_seconds)
    return ends_at is not None and started_at_seconds <= ends_at <= ended_at_seconds + slack_seconds


def find_deadline(allocation: Allocation, started_at_seconds: float | None) -> float | None:
    """When its time is up (since 1970); where only the limit is recorded, as if the job had begun with the run."""
    limit = allocation.time_limit_seconds
    if allocation.ends_at_seconds is not None or not limit or started_at_seconds is None:
        return allocation.ends_at_seconds
    return started_at_seconds + limit
