"""Which recordings are of one run. A launch without an ID is known by that it has each rank once. Pure."""

from __future__ import annotations

from ..core.model import NO_PROCESS
from ..core.values import NamedTuple
from .ranks import align, find_end, find_outer, find_outermost, is_of_whole_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from ..core.model import Header, Identity, RecordingData
    from .ranks import Part

    _Launches: TypeAlias = list["_Launch"]

# Launchers whose ranks are in one step.
_SLURMS = ("slurm", "pmix")
# The ranks of a launch need not start at once: those that run for a moment only may not overlap.
_STAGGER_SECONDS = 2.0


class _Launch(NamedTuple):
    """What is known of one."""

    processes: Mapping[int, tuple[str, int]]
    """Of each rank: its host and process ID."""
    begin_seconds: float
    """When the first of them began."""
    end_seconds: float
    """When the last of them ended."""


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


def identify_runs(recordings: Sequence[tuple[str, RecordingData]]) -> dict[str, tuple[str, ...]]:
    """The run of each recording, by its name. Ranks are one run with what includes them, if that includes those of one run only."""
    launches = number_unnamed(recordings)
    runs = {
        name: identify_run(recording.header.identity, launches.get(name)) for name, recording in recordings
    }
    is_alone = all(recording.header.identity.rank is not None for _, recording in recordings)
    if is_alone or len(set(runs.values())) == 1:
        return runs  # usually: the rest is not for nothing where there are thousands
    around = _find_runs_around(recordings, runs)
    return {name: around.get(run, run) for name, run in runs.items()}


def _find_runs_around(
    recordings: Sequence[tuple[str, RecordingData]], runs: Mapping[str, tuple[str, ...]]
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Which run another one is the whole content of, as far as that is recorded: of all of a job, or a launcher, its only step."""
    outer = find_outer(align(recordings))
    inner: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for name in outer:
        around = runs[find_outermost(name, outer)]
        if runs[name] != around:
            inner.setdefault(around, set()).add(runs[name])
    return {run: around for around, some in inner.items() if len(some) == 1 for run in some}


def find_run(header: Header, unnamed_launch: int | None = None) -> tuple[str, ...] | None:
    """What the recordings of one run have in common: of its ranks, or of all of a job on each of its machines.

    None for what is a run by itself.
    """
    identity = header.identity
    is_known = identity.job or identity.run_id or identity.ranks or identity.launcher
    is_rank = identity.rank is not None and is_known
    return identify_run(identity, unnamed_launch) if is_of_whole_job(header) or is_rank else None


def find_runs(recordings: Sequence[tuple[str, RecordingData]]) -> dict[str, tuple[str, ...] | None]:
    """The same of each recording, by its name."""
    launches = number_unnamed(recordings)
    return {name: find_run(recording.header, launches.get(name)) for name, recording in recordings}


def _is_unnamed(identity: Identity) -> bool:
    """Whether it is a rank of which nothing says in which launch: under MPICH's mpiexec, or a torchrun without a run ID."""
    return identity.rank is not None and identity.run_id is None and identity.launcher not in _SLURMS


def _name_kind(identity: Identity) -> tuple[object, ...]:
    """What ranks of one launch have in common, and those of others may have, too: their run, and how many they are."""
    return (*identify_run(identity), identity.ranks)


def _name_commands(headers: Iterable[Header]) -> set[tuple[str, ...]]:
    """The runs of what is no rank, nor all of a job: a command of a batch script."""
    alone = (header.identity for header in headers if header.pid != NO_PROCESS)
    return {identify_run(identity) for identity in alone if identity.rank is None}


def number_unnamed(recordings: Sequence[tuple[str, RecordingData]]) -> dict[str, int]:
    """The launch of each recording that is, or is part of, a rank of an unnamed one; empty if nothing has to be told apart from it."""
    if not any(_is_unnamed(recording.header.identity) for _, recording in recordings):
        return {}  # usually: the rest is not for nothing where there are thousands
    parts = align(recordings)
    return number_launches(parts, find_outer(parts))


def number_launches(parts: Sequence[Part], outer: Mapping[str, str]) -> dict[str, int]:
    """The same of recordings of which it is known which are part of others."""
    by_kind: dict[tuple[object, ...], _Launches] = {}
    numbers: dict[str, tuple[tuple[object, ...], int]] = {}
    for part in sorted(parts, key=lambda part: part.begin_seconds):
        identity = part.recording.header.identity
        if part.name not in outer and _is_unnamed(identity):
            kind = _name_kind(identity)
            numbers[part.name] = kind, _join(by_kind.setdefault(kind, []), part)
    # What has started the ranks is one run with them.
    others = (part for part in parts if part.name not in outer and part.name not in outer.values())
    commands = _name_commands(part.recording.header for part in others)
    several = {kind for kind, launches in by_kind.items() if len(launches) > 1 or kind[:-1] in commands}
    outermost = {part.name: find_outermost(part.name, outer) for part in parts}
    found = {name: numbers[around] for name, around in outermost.items() if around in numbers}
    return {name: number + 1 for name, (kind, number) in found.items() if kind in several}


def _join(launches: _Launches, part: Part) -> int:
    """The index of the launch that a rank is of, with which that launch grows."""
    header = part.recording.header
    rank, process = header.identity.rank or 0, (header.host, header.pid)
    fitting = (
        index
        for index in range(len(launches) - 1, -1, -1)
        if launches[index].processes.get(rank) == process
        or (rank not in launches[index].processes and _may_be_of(launches[index], part))
    )
    index = next(fitting, len(launches))
    known = launches[index] if index < len(launches) else _Launch({}, part.begin_seconds, find_end(part))
    end_seconds = max(known.end_seconds, find_end(part))
    grown = known._replace(processes={**known.processes, rank: process}, end_seconds=end_seconds)
    launches[index : index + 1] = [grown]
    return index


def _may_be_of(launch: _Launch, part: Part) -> bool:
    """Whether a rank began while others of a launch ran, or about when these began."""
    return part.begin_seconds <= max(launch.end_seconds, launch.begin_seconds + _STAGGER_SECONDS)
