"""Programs that have their work done by others than their descendants, which is then not measured. Pure."""

from __future__ import annotations

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.model import Header


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


def describe_elsewhere(header: Header) -> list[str]:
    """That the work was done elsewhere, and where the tracker belongs, as far as the command tells."""
    words = tuple(word.rpartition("/")[2] for word in header.command[:2])
    program = words[0] if words else ""
    if program in _OF_SEVERAL_NODES and (header.identity.nodes or 1) > 1:
        return [
            f"{program} runs ranks on {header.identity.nodes} nodes; only those on this node were measured. "
            f"Put the tracker behind it: {program} [options] gpu-tracker run -- COMMAND."
        ]
    starter = _STARTERS.get(words[:1]) or _STARTERS.get(words)
    if starter is None:
        return []
    return [
        f"{' '.join(words) if words in _STARTERS else program} has its work done elsewhere ({starter.where}), "
        f"so only {program} itself was measured. Put the tracker there: {starter.instead}."
    ]


def describe_engine(engine: str) -> str:
    """That a program is connected to workers which it has not started."""
    return (
        f"This program has work done by workers of {engine} that run elsewhere, so only the program itself was measured. "
        f"Put the tracker there: {_ENGINES[engine]}."
    )
