"""Which recordings are of one run. A launch has each rank once, whatever its launcher calls it. Pure."""

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

    _Agent: TypeAlias = tuple[str, str | None, str | None, str | None]
    _Kind: TypeAlias = tuple[str, ...]

# Launchers whose ranks are in one step, of which no job has two of one number.
_SLURMS = ("slurm", "pmix")
# Its ranks are pods, which may run one after the other.
_KUBERNETES = "kubernetes"
# The ranks of a launch need not start at once: those that run for a moment only may not overlap.
_STAGGER_SECONDS = 2.0


class Life(NamedTuple):
    """Which launch of several of one name a rank is of, and which attempt of that. None if there is only one, or it is the first."""

    launch: int | None = None
    attempt: int | None = None


class _Started(NamedTuple):
    """The ranks of one attempt that a process of their launcher has started; without knowing it, those on one machine."""

    relaunches: int
    begin_seconds: float
    """When the first of them began, and the last of them ended."""
    end_seconds: float


def identify_run(identity: Identity, life: Life | None = None) -> tuple[str, ...]:
    """Job, task, restart, attempt and launch, each with what it is called: what all ranks of one run have in common.

    Of several launches of one name, and of those without any, each has a number.
    """
    task = identity.array_task
    is_slurms = identity.launcher in _SLURMS
    # The components of one step of several programs (`srun A : B`) are 4+0, 4+1...
    step = None if identity.step is None else identity.step.partition("+")[0]
    launch = step if is_slurms else identity.run_id if identity.job is not None else None
    number = None if life is None else life.launch
    named = [str(part) for part in (launch, number) if part is not None]
    job = (identity.array_job if task is not None else None) or identity.job or identity.run_id
    known = (
        ("job", job),
        ("task", task),
        ("restart", identity.restart or None),
        ("attempt", (identity.relaunches or None) if life is None else life.attempt),
        # Of ranks: those of another step, or of another launcher, are others. Ranks of one mpirun may be in several steps.
        (
            "step" if is_slurms else "launch",
            None if identity.rank is None and number is None else " ".join(named) or None,
        ),
    )
    return tuple("" if value is None else f"{what} {value}" for what, value in known)


def _name_clusters(
    runs: Mapping[str, tuple[str, ...] | None], recordings: Sequence[tuple[str, RecordingData]]
) -> dict[str, tuple[str, ...]]:
    """The runs of those of which another cluster has a job of the same number, each with its cluster."""
    known = {
        name: (recording.header.identity.cluster, run)
        for name, recording in recordings
        if (run := runs[name]) is not None and recording.header.identity.cluster is not None
    }
    clusters: dict[str, set[str | None]] = {}
    for cluster, run in known.values():
        clusters.setdefault(run[0], set()).add(cluster)
    return {
        name: (f"{run[0]} on {cluster}", *run[1:])
        for name, (cluster, run) in known.items()
        if len(clusters[run[0]]) > 1
    }


def identify_runs(recordings: Sequence[tuple[str, RecordingData]]) -> dict[str, tuple[str, ...]]:
    """The run of each recording, by its name. Ranks are one run with what includes them, if that includes those of one run only."""
    lives = find_lives(recordings)
    runs = {name: identify_run(recording.header.identity, lives.get(name)) for name, recording in recordings}
    runs |= _name_clusters(runs, recordings)
    is_alone = all(recording.header.identity.rank is not None for _, recording in recordings)
    if is_alone or len(set(runs.values())) == 1:
        return runs  # usually: the rest is not for nothing where there are thousands
    around = _find_runs_around(recordings, runs)
    return {name: around.get(run, run) for name, run in runs.items()}


def _find_runs_around(
    recordings: Sequence[tuple[str, RecordingData]], runs: Mapping[str, tuple[str, ...] | None]
) -> dict[tuple[str, ...] | None, tuple[str, ...]]:
    """Which run another one is the whole content of, as far as that is recorded: of all of a job, or a launcher, its only step."""
    outer = find_outer(align(recordings))
    inner: dict[tuple[str, ...], set[tuple[str, ...] | None]] = {}
    for name in outer:
        around = runs[find_outermost(name, outer)]
        if around is not None and runs[name] != around:
            inner.setdefault(around, set()).add(runs[name])
    return {
        run: around for around, some in inner.items() if len(some) == 1 for run in some if run is not None
    }


def find_run(header: Header, life: Life | None = None) -> tuple[str, ...] | None:
    """What the recordings of one run have in common: of its ranks, or of all of a job on each of its machines.

    None for what is a run by itself.
    """
    identity = header.identity
    is_known = identity.job or identity.run_id or identity.ranks or identity.launcher
    is_rank = identity.rank is not None and is_known
    return identify_run(identity, life) if is_of_whole_job(header) or is_rank else None


def find_runs(recordings: Sequence[tuple[str, RecordingData]]) -> dict[str, tuple[str, ...] | None]:
    """The same of each recording, by its name. The ranks of the only recorded step are one run with who follows all of the job."""
    lives = find_lives(recordings)
    runs = {name: find_run(recording.header, lives.get(name)) for name, recording in recordings}
    runs |= _name_clusters(runs, recordings)
    if not any(is_of_whole_job(recording.header) for _, recording in recordings):
        return runs
    around = _find_runs_around(recordings, runs)
    return {name: around.get(run, run) for name, run in runs.items()}


def find_lives(recordings: Sequence[tuple[str, RecordingData]]) -> dict[str, Life]:
    """The life of each recording that is, or is part of, a rank of several launches of one name; empty if there are none."""
    if not _may_have_several([recording.header for _, recording in recordings]):
        return {}  # usually: the rest is not for nothing where there are thousands
    parts = align(recordings)
    return tell_lives_apart(parts, find_outer(parts))


def tell_lives_apart(parts: Sequence[Part], outer: Mapping[str, str]) -> dict[str, Life]:
    """The same of recordings of which it is known which are part of others."""
    heads = _find_heads(parts, outer)
    ranks: dict[_Kind, list[Part]] = {}
    for part in parts:
        if heads.get(part.name) == part.name:
            ranks.setdefault(_name_kind(part.recording.header.identity), []).append(part)
    # What has started the ranks is one run with them.
    others = (part for part in parts if part.name not in outer and part.name not in outer.values())
    commands = _name_commands(part.recording.header for part in others)
    found: dict[str, Life] = {}
    for kind, some in ranks.items():
        groups = _group(some) if _may_have_several([part.recording.header for part in some]) else []
        lives = _number(groups)
        is_told = len({life.launch for life in lives}) > 1 or kind in commands
        for group, life in zip(groups, lives, strict=True):
            found.update(dict.fromkeys(group.names, life if is_told else life._replace(launch=None)))
    return {name: found[head] for name, head in heads.items() if head in found}


def _find_heads(parts: Sequence[Part], outer: Mapping[str, str]) -> dict[str, str]:
    """The recording of a rank that each is part of, itself if that is in no other: all of a job, or a launcher, is no rank."""
    names = {part.name for part in parts if _is_launched(part.recording.header.identity)}
    heads: dict[str, str] = {}
    for part in parts:
        name, seen = part.name, {part.name}
        if name in names:
            heads[part.name] = name
        while (around := outer.get(name)) is not None and around not in seen:
            seen.add(name := around)
            if name in names:
                heads[part.name] = name
    return heads


def _is_launched(identity: Identity) -> bool:
    """Whether it is a rank that Slurm has not started itself."""
    return identity.rank is not None and identity.launcher not in _SLURMS


def _name_kind(identity: Identity) -> _Kind:
    """What ranks of one launch have in common, and those of others may have, too."""
    return identify_run(identity, Life())


def _name_commands(headers: Iterable[Header]) -> set[_Kind]:
    """The runs of what is no rank, nor all of a job: a command of a batch script."""
    alone = (header.identity for header in headers if header.pid != NO_PROCESS)
    return {_name_kind(identity) for identity in alone if identity.rank is None}


def _may_have_several(headers: Iterable[Header]) -> bool:
    """Whether some may be of several launches or attempts: those without a name, or if what is once in a launch is there twice."""
    seen: dict[tuple[object, ...], object] = {}
    for header in headers:
        identity = header.identity
        if not _is_launched(identity):
            continue
        if identity.run_id is None:
            return True
        kind = _name_kind(identity)
        facts: tuple[tuple[object, object], ...] = (
            (identity.rank, _name_process(header)),
            ("ranks", identity.ranks),
            ("relaunches", identity.relaunches),
            ("port", identity.port),
            (header.host, _name_agent(header)),
        )
        if any(seen.setdefault((kind, what), fact) != fact for what, fact in facts):
            return True
    return False


def _name_agent(header: Header) -> _Agent:
    """The process of its launcher, or at least the machine: usually there is one of a launch on each."""
    identity = header.identity
    return header.host, identity.boot_id, identity.pid_namespace, identity.launcher_process


def _name_process(header: Header) -> tuple[str, str]:
    """Of several commands of one rank, that which has started them, as far as it is known."""
    return header.host, header.identity.rank_process or f"{header.pid}"


def _group(parts: Sequence[Part]) -> list[_Group]:
    """Those that ran together, in the order in which they began."""
    groups: list[_Group] = []
    of_process: dict[tuple[int | None, tuple[str, str]], _Group] = {}
    going_on: list[_Group] = []
    for part in sorted(parts, key=lambda part: part.begin_seconds):
        header = part.recording.header
        process, agent = (header.identity.rank, _name_process(header)), _name_agent(header)
        going_on = [group for group in going_on if group.may_grow(part)]
        some = [*going_on, of_process[process]] if process in of_process else going_on
        fitting = [group for group in some if group.may_have(part)]
        # There may be two launches at once; else the latest is the likeliest.
        here = [group for group in fitting if agent in group.agents]
        if not fitting:
            groups.append(_Group())
        group = (here or fitting or groups)[-1]
        if group not in going_on:
            going_on.append(group)
        group.add(part)
        of_process[process] = group
    return groups


class _Group:
    """Ranks that run together: one attempt of a launch. It is added to, since there may be thousands."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.agents: dict[_Agent, _Started] = {}
        self._processes: dict[int, tuple[str, str]] = {}
        self._to_retry: set[int] = set()
        """The ranks that Kubernetes starts again by themselves: their pods have failed."""
        self._ranks: int | None = None
        self._port: int | None = None
        self._latest_seconds = 0.0
        """Until when another may begin."""

    def add(self, part: Part) -> None:
        """One rank more."""
        header, identity = part.recording.header, part.recording.header.identity
        agent, own = _name_agent(header), _describe_start(part)
        before = self.agents.get(agent, own)
        self.agents[agent] = _Started(
            own.relaunches,
            min(before.begin_seconds, own.begin_seconds),
            max(before.end_seconds, own.end_seconds),
        )
        self._latest_seconds = max(self._latest_seconds, _find_latest(own))
        self.names.append(part.name)
        self._processes[identity.rank or 0] = _name_process(header)
        if identity.launcher == _KUBERNETES and _has_failed(part):
            self._to_retry.add(identity.rank or 0)
        else:
            self._to_retry.discard(identity.rank or 0)
        self._ranks = self._ranks or identity.ranks
        self._port = self._port or identity.port

    def may_grow(self, part: Part) -> bool:
        """Whether more of its ranks may begin when this one did, or later."""
        identity = part.recording.header.identity
        if self._ranks is not None and (identity.rank or 0) < self._ranks <= len(self._processes):
            return False  # it has them all
        return identity.launcher == _KUBERNETES or part.begin_seconds <= self._latest_seconds

    def may_have(self, part: Part) -> bool:
        """Whether a rank may be one of these."""
        header, identity = part.recording.header, part.recording.header.identity
        if _differ(self._ranks, identity.ranks) or _differ(self._port, identity.port):
            return False
        here = self.agents.get(_name_agent(header))
        if here is not None and here.relaunches != identity.relaunches:
            return False
        known = self._processes.get(identity.rank or 0)
        if known is not None:
            return known == _name_process(header) or identity.rank in self._to_retry
        # On one machine they begin together; clocks of others may differ.
        return here is None or identity.launcher == _KUBERNETES or part.begin_seconds <= _find_latest(here)


def _has_failed(part: Part) -> bool:
    end = part.recording.end
    return end is None or bool(end.exit_code)


def _describe_start(part: Part) -> _Started:
    return _Started(part.recording.header.identity.relaunches, part.begin_seconds, find_end(part))


def _find_latest(some: _Started) -> float:
    """Until when another rank may begin: while others run, or soon after they have begun."""
    return max(some.end_seconds, some.begin_seconds + _STAGGER_SECONDS)


def _differ(one: object, other: object) -> bool:
    """Whether both are known, and not equal."""
    return None not in (one, other) and one != other


def _number(groups: Sequence[_Group]) -> list[Life]:
    """The launch and attempt of each."""
    lives: list[Life] = []
    latest: dict[int, int] = {}  # of each launch, its last group so far
    for index, group in enumerate(groups):
        earlier = (one for one in reversed(latest) if _is_next_attempt(groups[latest[one]], group))
        launch = next(earlier, len(latest) + 1)
        least = (lives[latest[launch]].attempt or 0) + 1 if launch in latest else 0
        attempt = max(least, *(one.relaunches for one in group.agents.values()))
        lives.append(Life(launch, attempt or None))
        latest[launch] = index
    return lives


def _is_next_attempt(before: _Group, group: _Group) -> bool:
    """Whether the same launcher has started these ranks again.

    It is known by its process or, without that, because it counts: on the machine that failed, not on those that it stopped for that.
    """
    common = before.agents.keys() & group.agents.keys()
    if any(launcher_process is not None for *_, launcher_process in common):
        return True
    growth = [group.agents[agent].relaunches - before.agents[agent].relaunches for agent in common]
    return bool(growth) and min(growth) >= 0 and max(growth) > 0
