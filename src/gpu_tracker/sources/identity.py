"""Which job this is and which place a process has in it, by the variables of schedulers and launchers. Pure."""

from __future__ import annotations

from ..core.model import Identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Field of the identity → the variables that may tell it, the most reliable first. Under mpirun inside a Slurm
# job SLURM_PROCID is 0 everywhere, so the launchers come before the scheduler.
_NAMES = {
    "node": ("SLURMD_NODENAME",),
    "job": ("SLURM_JOB_ID", "PBS_JOBID"),
    "step": ("SLURM_STEP_ID",),
    "array_task": ("SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX"),
}
# Rank, rank on this machine, and number of ranks, as one launcher calls them.
_RANKS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PALS_RANKID", "PALS_LOCAL_RANKID", "PALS_SIZE"),
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("PMIX_RANK", "", ""),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
)
# `RANK` may be anybody's variable; beside this one it is torchrun's.
_TORCHRUN = "TORCHELASTIC_RUN_ID"


def find_identity(environment: Mapping[str, str]) -> Identity:
    """What the variables say; None for what they do not."""
    names = {
        field: next((environment[name] for name in variables if environment.get(name)), None)
        for field, variables in _NAMES.items()
    }
    rank, local_rank, world_size = _find_ranks(environment)
    return Identity(**names, rank=rank, local_rank=local_rank, world_size=world_size)


def _find_ranks(environment: Mapping[str, str]) -> tuple[int | None, int | None, int | None]:
    for rank, local_rank, size in _RANKS:
        number = _parse(environment.get(rank))
        if number is not None and (rank != "RANK" or _TORCHRUN in environment):
            return number, _parse(environment.get(local_rank)), _parse(environment.get(size))
    return None, None, None


def _parse(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 10 else None
