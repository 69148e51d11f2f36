"""Commands whose work others do."""

from __future__ import annotations

import pytest

from builders import header
from gpu_tracker.analysis.elsewhere import describe_elsewhere, describe_engine
from gpu_tracker.core.model import Identity


@pytest.mark.parametrize(
    ("command", "who"),
    [
        ("srun -n 4 python train.py", "srun has its work done elsewhere (by Slurm), so only srun itself"),
        (
            "/usr/bin/sbatch job.sh",
            "sbatch has its work done elsewhere (by Slurm, later), so only sbatch itself",
        ),
        ("docker run image", "docker has its work done elsewhere (in a container), so only docker itself"),
        ("ray job submit", "ray job has its work done elsewhere (by Ray), so only ray itself"),
    ],
)
def test_it_is_said_where_the_tracker_belongs(command: str, who: str) -> None:
    """Once, in a sentence."""
    (note,) = describe_elsewhere(header()._replace(command=tuple(command.split())))

    assert note.startswith(f"{who} was measured. Put the tracker there: ")


@pytest.mark.parametrize(("nodes", "is_told"), [(None, False), (1, False), (2, True)])
def test_mpirun_measures_the_ranks_of_this_node(nodes: int | None, is_told: bool) -> None:
    """Which are all of them, unless there are several."""
    run = header()._replace(command=("mpirun", "-n", "4", "a"), identity=Identity(nodes=nodes))

    assert bool(describe_elsewhere(run)) == is_told


@pytest.mark.parametrize("command", ["python srun.py", "ray start --block", "", "make"])
def test_nothing_is_said_of_others(command: str) -> None:
    """Their descendants do the work."""
    assert describe_elsewhere(header()._replace(command=tuple(command.split()))) == []


@pytest.mark.parametrize(("engine", "cure"), [("Dask", "track_cluster(client)"), ("Ray", "watch_nodes()")])
def test_of_an_engine_it_is_said_how_to_track_its_workers(engine: str, cure: str) -> None:
    """With code to copy."""
    note = describe_engine(engine)

    assert note.startswith(f"This program has work done by workers of {engine} that run elsewhere")
    assert cure in note
