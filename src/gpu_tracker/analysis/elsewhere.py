"""Programs that have their work done by others than their descendants, which is then not measured. Pure."""

from __future__ import annotations

from ..core.model import NO_PROCESS
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.model import Header, ProcessTotals, RecordingData


class _Starter(NamedTuple):
    """A program that starts others, and how to put the tracker there."""

    where: str
    instead: str


# By the first words of a command.
_STARTERS = {
    ("srun",): _Starter("by Slurm", "srun [options] gpu-tracker run -- COMMAND"),
    ("sbatch",): _Starter("by Slurm, later", "srun gpu-tracker run -- COMMAND in the script"),
    ("kubectl",): _Starter("in the cluster", "gpu-tracker run -- COMMAND as the container's command"),
    ("docker",): _Starter("in a container", "docker run [options] IMAGE gpu-tracker run -- COMMAND"),
    ("ray", "job"): _Starter(
        "by Ray", "ray start --block behind gpu-tracker run -- on every node, or Tracker in the tasks"
    ),
}
# By the engine to which a program is connected.
_ENGINES = {
    "Dask": "with gpu_tracker.integrations.dask.track_cluster(client) as job",
    "Ray": "with gpu_tracker.integrations.ray.watch_nodes() as job",
}
_OF_SEVERAL_NODES = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun")
# Where all of a job is tracked, what these start is measured, or is another job's.
_OF_JOB = ("srun", "sbatch", *_OF_SEVERAL_NODES)
# Who was there for longer had work done: one process for so many seconds, or all of that name for that share of the run. A script
# may also just list containers.
_NOTABLE_SECONDS = 10.0
_NOTABLE_SHARE = 0.5


def find_elsewhere(recording: RecordingData) -> str:
    """Who had work done elsewhere, and where the tracker belongs, in a sentence: what was measured is the least. Empty if nobody is known."""
    header, seconds = recording.header, recording.totals.at_seconds
    if told := _describe_command(header):
        return told
    notable = (
        program
        for program, processes in _group_starters(recording).items()
        if _is_notable(processes, seconds)
    )
    return next((_describe_started(program, header) for program in notable), "")


def describe_elsewhere(recording: RecordingData) -> list[str]:
    """The same as notes; of programs that were there for a moment only, that they may have."""
    if told := find_elsewhere(recording):
        return [told]
    return [
        f"{program} was among the processes for a moment: work that it may have had done elsewhere was not measured."
        for program in _group_starters(recording)
    ]


def _describe_command(header: Header) -> str:
    words = tuple(word.rpartition("/")[2] for word in header.command[:2])
    program = words[0] if words else ""
    if _is_on_several_nodes(program, header):
        return _describe_several_nodes(program, header)
    starter = _STARTERS.get(words[:1]) or _STARTERS.get(words)
    if starter is None:
        return ""
    return (
        f"{' '.join(words) if words in _STARTERS else program} has its work done elsewhere ({starter.where}), "
        f"so only {program} itself was measured. Put the tracker there: {starter.instead}."
    )


def _describe_started(program: str, header: Header) -> str:
    if program in _OF_SEVERAL_NODES:
        return _describe_several_nodes(program, header)
    starter = _STARTERS[program,]
    return (
        f"{program} was among the processes. It has its work done elsewhere ({starter.where}), which was not measured. "
        f"Put the tracker there: {starter.instead}."
    )


def _describe_several_nodes(program: str, header: Header) -> str:
    return (
        f"{program} runs ranks on {header.identity.nodes} nodes; only those on this node were measured. "
        f"Put the tracker behind it: {program} [options] gpu-tracker run -- COMMAND."
    )


def _is_on_several_nodes(program: str, header: Header) -> bool:
    return program in _OF_SEVERAL_NODES and (header.identity.nodes or 1) > 1


def _group_starters(recording: RecordingData) -> dict[str, list[ProcessTotals]]:
    """The processes that start others elsewhere, by their program."""
    header = recording.header
    groups: dict[str, list[ProcessTotals]] = {}
    for process in recording.processes:
        is_starter = (process.name,) in _STARTERS or _is_on_several_nodes(process.name, header)
        if is_starter and not (header.pid == NO_PROCESS and process.name in _OF_JOB):
            groups.setdefault(process.name, []).append(process)
    return groups


def _is_notable(processes: Sequence[ProcessTotals], seconds: float) -> bool:
    lasted = [process.last_seconds - process.first_seconds for process in processes]
    return max(lasted) > _NOTABLE_SECONDS or sum(lasted) > _NOTABLE_SHARE * seconds


def describe_engine(engine: str) -> str:
    """That a program is connected to workers which it has not started."""
    return (
        f"This program has work done by workers of {engine} that run elsewhere, so only the program itself was measured. "
        f"Put the tracker there: {_ENGINES[engine]}."
    )
