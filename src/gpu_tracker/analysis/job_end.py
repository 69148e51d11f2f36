"""How a job of many ranks ended, and which of them ended it. Pure."""

from __future__ import annotations

from collections import Counter

from ..core.model import OOM_GROUP
from ..core.signals import name_signal
from ..core.text import count_of
from ..core.units import humanize_bytes, humanize_limit, humanize_seconds
from ..core.values import NamedTuple
from .endings import (
    ENDING_SIGNALS,
    SIGKILL,
    find_ending,
    find_signal,
    has_failed,
    is_out_of_time,
    list_ending_signals,
)
from .ranks import find_end, is_of_whole_job, name_rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .hosts import Host
    from .ranks import Part

_MOST_LOST = 5
# What the kernel kills together ends within this time; a launcher takes longer to learn of it.
_AT_ONCE_SECONDS = 0.5
COMPLETED, ENDED, RUNNING = "completed", "ended", "running"
# Slurm's words for the state of a job, in ours.
_SLURM_COMPLETED = "COMPLETED"
_STATES = {
    "BOOT_FAIL": "node lost",
    "CANCELLED": "cancelled",
    _SLURM_COMPLETED: COMPLETED,
    "COMPLETING": "ending",
    "DEADLINE": "deadline reached",
    "FAILED": "failed",
    "NODE_FAIL": "node lost",
    "OUT_OF_MEMORY": "out of memory",
    "PENDING": "requeued",
    "PREEMPTED": "preempted",
    "REQUEUED": "requeued",
    "RUNNING": RUNNING,
    "TIMEOUT": "time limit reached",
}
# Its reasons to end what runs.
_ENDED_BY_SLURM = ("CANCELLED", "DEADLINE", "PREEMPTED", "REQUEUED", "TIMEOUT")
_UNSUCCESSFUL = (*_ENDED_BY_SLURM, "BOOT_FAIL", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY")
# What Slurm calls completed if the batch script went on, in words.
_PARTLY = {
    "out of memory": "completed, but part of it ran out of memory",
    "failed": "completed, but part of it failed",
    "killed or failed": "completed, but part of it was killed or failed",
}


def name_state(state: str) -> str:
    """Slurm's word for it in ours, or as it is."""
    return _STATES.get(state, state.lower().replace("_", " "))


def judge_state(state: str | None, parts: Sequence[Part]) -> str:
    """How the job ended: Slurm's word for it, if it was asked, and what that leaves out."""
    found = find_state(parts)
    named = found if state is None else name_state(state)
    return _PARTLY.get(found, named) if state == _SLURM_COMPLETED else named


def tells_why(state: str | None) -> bool:
    """Whether Slurm's word explains why processes were ended from outside."""
    return state in _ENDED_BY_SLURM


def describe_outcome(state: str | None) -> str:
    """Why Slurm's word for a job is that of no successful one; empty if it is, goes on or is not known."""
    return f"by Slurm: {name_state(state)}" if state in _UNSUCCESSFUL else ""


def find_state(parts: Sequence[Part]) -> str:
    """How the job ended, as far as its recordings tell."""
    telling = [part for part in parts if _tells_end(part)]
    # The tracker of a whole job may outlive what the others track.
    if any(part.recording.is_running for part in telling or parts):
        return RUNNING
    if any(map(_has_oom, parts)):
        return "out of memory"
    failed = [part for part in telling if _has_failed(part)]
    told = [part for part in telling if _list_signals(part)]
    if any(is_out_of_time(part.recording) for part in (*failed, *told)):
        return "time limit reached"
    if any(map(_has_failed_by_itself, telling)):
        return "failed"
    if told:
        return "told to end"
    if failed:
        return "killed or failed"
    codes = {part.recording.end.exit_code for part in telling if part.recording.end is not None}
    return COMPLETED if codes == {0} else ENDED


def describe_end(parts: Sequence[Part], hosts: Sequence[Host]) -> list[str]:
    """Where memory ran out, which machine was lost, which rank failed first, and what the others were told."""
    hit = [part for part in parts if _has_oom(part)]
    notes = [
        _describe_oom(host, victims, is_shared=_share_limit(parts, host.name))
        for host in hosts
        if (victims := _find_victims(parts, hit, host.name)).parts
    ]
    notes += _describe_lost(parts)
    telling = [part for part in parts if _tells_end(part)]
    own = sorted((part for part in telling if _has_failed_by_itself(part)), key=find_end)
    told = [part for part in telling if _list_signals(part)]
    if own and len(telling) > 1:
        code = own[0].recording.end.exit_code if own[0].recording.end else None
        how = "an exception" if code is None else f"exit code {code}"
        others = f"; {len(own) - 1} more failed by themselves later" if len(own) > 1 else ""
        notes.append(f"{name_rank(own[0])} failed first, with {how}{others}.")
    if told and len(telling) > 1:
        names = sorted({number for part in told for number in _list_signals(part)})
        signals = " and ".join(map(name_signal, names))
        notes.append(f"{signals} reached {len(told)} of {count_of(len(telling), 'recording')}.")
    return notes


def _describe_lost(parts: Sequence[Part]) -> list[str]:
    """Machines on which nobody was left to write an end, if it was not the same on all."""
    on_hosts: dict[str, list[Part]] = {}
    for part in parts:
        on_hosts.setdefault(part.recording.header.host, []).append(part)
    judged = {host: some for host, some in on_hosts.items() if any(map(_tells_end, some))}
    lost = {
        host: some
        for host, some in judged.items()
        if not any(part.recording.end is not None or part.recording.is_running for part in some)
    }
    if len(lost) == len(judged):
        return []
    more = len(lost) - _MOST_LOST
    return [
        *(
            f"{host} was lost, or everything on it was killed at once: its {count_of(len(some), 'recording')} "
            f"ended without a word, at the latest {humanize_seconds(max(map(find_end, some)))} after the start."
            for host, some in list(lost.items())[:_MOST_LOST]
        ),
        *([f"{count_of(more, 'more host')} ended in the same way."] if more > 0 else []),
    ]


class _Victims(NamedTuple):
    """The recordings of which the kernel has killed processes for memory."""

    parts: Sequence[Part]
    are_certain: bool = True
    """Whether it is all of these, not only one or some of them."""


def _find_victims(parts: Sequence[Part], hit: Sequence[Part], host: str) -> _Victims:
    """Those that the kernel's counters name. Else, of those whose limit was reached, the ones that ended badly, and first.

    Others share the limit, and whoever starts the ranks kills the rest of them when it learns of the first.
    """
    there = [part for part in hit if part.recording.header.host == host]
    groups = Counter(map(_name_group, there))
    named = [part for part in there if groups[_name_group(part)] == 1 and _name_group(part)[1]]
    if named:
        return _Victims(named)
    possible = [part for part in there if _tells_end(part) and _name_group(part)[1] != ""]
    failed = [part for part in possible if _has_failed(part)]
    killed = [part for part in failed if not _was_told(part)] or failed
    # One that could write no end may have been killed with its tracker.
    cut = [part for part in parts if part.recording.header.host == host and _is_cut_off(part)]
    may_be_cut = bool(killed or (there and not possible))
    first = _list_first([*killed, *(cut if may_be_cut else [])]) or possible or there
    return _Victims(first, are_certain=len(first) == 1)


def _list_first(parts: Sequence[Part]) -> list[Part]:
    """Those that may have ended before the others; one without an end may have gone on until its next sample."""
    ends = (find_end(part) + (_get_pace(part) if _is_cut_off(part) else 0.0) for part in parts)
    until = min(ends, default=0.0) + _AT_ONCE_SECONDS
    return [part for part in parts if find_end(part) <= until]


def _name_group(part: Part) -> tuple[str | None, str | None]:
    """The control group in which the kernel counted, which may be another one in each container; None if it is not known."""
    told = (event.text for event in part.recording.events if event.kind == OOM_GROUP)
    return part.recording.header.identity.pid_namespace, next(told, None)


def _was_told(part: Part) -> bool:
    """Whether it ended by a signal that others send, and not the kernel for memory."""
    end = part.recording.end
    signal = None if end is None else find_signal(end.exit_code)
    return bool(_list_signals(part)) or signal in ENDING_SIGNALS


def _is_cut_off(part: Part) -> bool:
    return _tells_end(part) and part.recording.end is None and not part.recording.is_running


def _get_pace(part: Part) -> float:
    """How long after its last sample a recording may have gone on."""
    return part.recording.header.sleep_seconds


def _describe_oom(host: Host, victims: _Victims, *, is_shared: bool) -> str:
    parts = victims.parts
    named = ", ".join(name_rank(part) for part in parts[:3]) + (" and others" if len(parts) > 3 else "")
    limit = "" if host.limit_bytes is None else f" of {humanize_limit(host.limit_bytes)}"
    most = host.ram_sum_bytes or host.ram_at_least_bytes
    if most is not None and is_shared and host.limit_bytes is not None:
        most = min(most, host.limit_bytes)  # what they share is in the sum of each
    together = (
        ""
        if most is None
        else f"; its {count_of(host.ranks, 'recording')} held up to {humanize_bytes(most)} together"
    )
    unsure = (
        "" if victims.are_certain else " Of which of them is not known: the kernel counts for all of them."
    )
    return f"Memory ran out on {host.name}: the kernel killed processes of {named} at the limit{limit}{together}.{unsure}"


def _share_limit(parts: Sequence[Part], host: str) -> bool:
    """Whether the recordings on a machine are of one step, so that one limit of Slurm's is above all of them."""
    headers = [part.recording.header for part in parts]
    identities = [header.identity for header in headers if header.host == host]
    return (
        None not in {one.job for one in identities} and len({(one.job, one.step) for one in identities}) == 1
    )


def has_died(part: Part) -> bool:
    """Whether a process failed, was killed, or left no end. A tracked block that raised may have been expected to."""
    end = part.recording.end
    return _tells_end(part) and not part.recording.is_running and (end is None or bool(end.exit_code))


def _tells_end(part: Part) -> bool:
    """A recording of a whole job has no exit code, and ends when the scheduler ends its tracker."""
    return not is_of_whole_job(part.recording.header)


def _has_oom(part: Part) -> bool:
    return any(event.kind == "oom" for event in part.recording.events)


def _has_failed(part: Part) -> bool:
    recording = part.recording
    return has_failed(find_ending(recording), recording.end.exit_code if recording.end else None)


def _has_failed_by_itself(part: Part) -> bool:
    """Not because it was told to, and not by a signal that others send."""
    end = part.recording.end
    if end is None or _list_signals(part) or _has_oom(part):
        return False
    code = end.exit_code
    return end.reason == "raised" or (
        code is not None and code != 0 and -code not in (*ENDING_SIGNALS, SIGKILL)
    )


def _list_signals(part: Part) -> list[int]:
    """Those that it was told to end by."""
    return list_ending_signals(part.recording.events)
