"""The job, node and rank of a process, from the variables of schedulers and launchers. Pure."""

from __future__ import annotations

from ..core.model import Identity
from ..core.units import parse_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Field of the identity → the variables to look for, in order.
_NAMES = {
    "node": ("SLURMD_NODENAME",),
    "job": ("SLURM_JOB_ID", "PBS_JOBID"),
    "step": ("SLURM_STEP_ID",),
    "array_task": ("SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX"),
}
# Rank, rank on this machine and number of ranks, by launcher. SLURM_PROCID is 0 in all ranks under mpirun
# in a Slurm job, so the launchers come before the scheduler.
_RANKS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PALS_RANKID", "PALS_LOCAL_RANKID", "PALS_SIZE"),
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("PMIX_RANK", "", ""),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
)
_MOST_DIGITS = 9
# `RANK` is a common name; it is torchrun's only if this is set, too.
_TORCHRUN = "TORCHELASTIC_RUN_ID"


def find_identity(environment: Mapping[str, str]) -> Identity:
    """The identity by the variables; None for what is not set."""
    rank, local_rank, world_size = _find_ranks(environment)
    return Identity(
        node=_find(environment, "node"),
        job=_find(environment, "job"),
        step=_find(environment, "step"),
        array_task=_find(environment, "array_task"),
        rank=rank,
        local_rank=local_rank,
        world_size=world_size,
    )


def _find(environment: Mapping[str, str], field: str) -> str | None:
    return next((environment[name] for name in _NAMES[field] if environment.get(name)), None)


def _find_ranks(environment: Mapping[str, str]) -> tuple[int | None, int | None, int | None]:
    for rank, local_rank, size in _RANKS:
        number = parse_count(environment.get(rank), _MOST_DIGITS)
        if number is not None and (rank != "RANK" or _TORCHRUN in environment):
            on_machine, in_all = environment.get(local_rank), environment.get(size)
            return number, parse_count(on_machine, _MOST_DIGITS), parse_count(in_all, _MOST_DIGITS)
    return None, None, None
