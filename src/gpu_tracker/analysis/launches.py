"""Which recordings are of one run. A launch without an ID is known by that it has each rank once. Pure."""

from __future__ import annotations

from ..core.values import NamedTuple
from .ranks import align, find_end, find_outer, find_outermost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from ..core.model import Identity, RecordingData
    from .ranks import Part

    _Launches: TypeAlias = list["_Launch"]

# Launchers whose ranks are in one step.
_SLURMS = ("slurm", "pmix")
# Ranks that run for a moment only may not overlap, since they do not start at once.
_STAGGER_SECONDS = 2.0


class _Launch(NamedTuple):
    """What is known of one."""

    processes: Mapping[int, tuple[str, int]]
    """Of each rank: its host and process ID."""
    end_seconds: float


def identify_run(identity: Identity, unnamed_launch: int | None = None) -> tuple[str, ...]:
    """Job, task, restart, attempt and launch, each with what it is called: what all ranks of one run have in common.

    A launch without an ID has a number.
    """
    task = identity.array_task
    is_slurms = identity.launcher in _SLURMS
    # The components of one step of several programs (`srun A : B`) are 4+0, 4+1...
    step = None if identity.step is None else identity.step.partition("+")[0]
    launch = step if is_slurms else identity.run_id if identity.job is not None else None
    job = (identity.array_job if task is not None else None) or identity.job or identity.run_id
    known = (
        ("job", job),
        ("task", task),
        ("restart", identity.restart or None),
        # The scheduler's restarts count as attempts of its ranks.
        ("attempt", None if identity.attempt == identity.restart else identity.attempt or None),
        # Of ranks: those of another step, or of another launcher, are others. Ranks of one mpirun may be in several steps.
        ("step" if is_slurms else "launch", unnamed_launch or (None if identity.rank is None else launch)),
    )
    return tuple("" if value is None else f"{what} {value}" for what, value in known)


def _is_unnamed(identity: Identity) -> bool:
    """Whether it is a rank of which nothing says in which launch: under MPICH's mpiexec, or a torchrun without a run ID."""
    return identity.rank is not None and identity.run_id is None and identity.launcher not in _SLURMS


def _name_kind(identity: Identity) -> tuple[object, ...]:
    """What ranks of one launch have in common, and those of others may have, too."""
    return (*identify_run(identity), identity.ranks)


def number_unnamed(recordings: Sequence[tuple[str, RecordingData]]) -> dict[str, int]:
    """The launch of each recording that is, or is part of, a rank of an unnamed one; empty if there is only one launch of each."""
    known = [
        (*_name_kind(rank), rank.rank)
        for _, recording in recordings
        if _is_unnamed(rank := recording.header.identity)
    ]
    if len(set(known)) == len(known):
        return {}
    parts = align(recordings)
    return number_launches(parts, find_outer(parts))


def number_launches(parts: Sequence[Part], outer: Mapping[str, str]) -> dict[str, int]:
    """The same of recordings of which it is known which are part of others."""
    by_kind: dict[tuple[object, ...], _Launches] = {}
    numbers: dict[str, tuple[_Launches, int]] = {}
    for part in sorted(parts, key=lambda part: part.begin_seconds):
        identity = part.recording.header.identity
        if part.name not in outer and _is_unnamed(identity):
            launches = by_kind.setdefault(_name_kind(identity), [])
            numbers[part.name] = launches, _join(launches, part)
    numbered = {part.name: numbers.get(find_outermost(part.name, outer), ([], 0)) for part in parts}
    return {name: number + 1 for name, (launches, number) in numbered.items() if len(launches) > 1}


def _join(launches: _Launches, part: Part) -> int:
    """The index of the launch that a rank is of, with which that launch grows."""
    header = part.recording.header
    rank, process = header.identity.rank or 0, (header.host, header.pid)
    fitting = (
        index
        for index in range(len(launches) - 1, -1, -1)
        if launches[index].processes.get(rank) == process
        or (
            rank not in launches[index].processes
            and part.begin_seconds <= launches[index].end_seconds + _STAGGER_SECONDS
        )
    )
    index = next(fitting, len(launches))
    known = launches[index] if index < len(launches) else _Launch({}, 0.0)
    grown = _Launch({**known.processes, rank: process}, max(known.end_seconds, find_end(part)))
    launches[index : index + 1] = [grown]
    return index
