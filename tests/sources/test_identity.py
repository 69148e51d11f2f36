"""Which job a process belongs to, and its place in it."""

from __future__ import annotations

import pytest

from gpu_tracker.core.model import Identity
from gpu_tracker.sources.identity import find_identity

SLURM = {
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "0",
    "SLURM_ARRAY_TASK_ID": "3",
    "SLURMD_NODENAME": "node7",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
    "SLURM_NTASKS": "8",
}


def test_outside_of_any_job_there_is_nothing() -> None:
    """Not even a rank 0."""
    assert find_identity({}) == find_identity({"RANK": "3", "SLURM_JOB_ID": ""}) == Identity()


def test_slurm_has_everything() -> None:
    """Job, step, array task, node and ranks."""
    assert find_identity(SLURM) == Identity(
        node="node7", job="4711", step="0", array_task="3", rank=5, local_rank=1, world_size=8
    )


@pytest.mark.parametrize(
    ("variables", "ranks"),
    [
        (
            {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4"},
            (2, 0, 4),
        ),
        ({"MV2_COMM_WORLD_RANK": "2"}, (2, None, None)),
        ({"PALS_RANKID": "7", "PALS_LOCAL_RANKID": "3"}, (7, 3, None)),
        ({"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "x"}, (1, 1, 2)),
        ({"PMIX_RANK": "9"}, (9, None, None)),
        ({"PMI_RANK": "1", "MPI_LOCALRANKID": "0", "PMI_SIZE": "2"}, (1, 0, 2)),
    ],
)
def test_a_launcher_knows_better_than_the_scheduler(
    variables: dict[str, str], ranks: tuple[int | None, ...]
) -> None:
    """Under mpirun Slurm's own rank is 0 everywhere."""
    identity = find_identity({**SLURM, **variables})

    assert (identity.rank, identity.local_rank, identity.world_size) == ranks
    assert identity.job == "4711"


@pytest.mark.parametrize("text", ["", "-1", "two", "1.5", "٣", "9" * 30])
def test_a_rank_that_is_not_a_number_is_unknown(text: str) -> None:
    """Then the next launcher is asked."""
    assert find_identity({"OMPI_COMM_WORLD_RANK": text}).rank is None
    assert find_identity({**SLURM, "OMPI_COMM_WORLD_RANK": text}).rank == 5
