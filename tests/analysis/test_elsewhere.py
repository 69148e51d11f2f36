"""Commands whose work others do."""

from __future__ import annotations

from typing import Any

import pytest

from builders import header, recording, totals
from gpu_tracker.analysis.elsewhere import describe_elsewhere, describe_engine, find_elsewhere
from gpu_tracker.core.model import NO_PROCESS, Identity, ProcessTotals, RecordingData


def of(command: str, *lasted: tuple[str, float], seconds: float = 100.0, **fields: Any) -> RecordingData:
    """A run of that command, with descendants that were there for so long."""
    return recording(
        header=header(command=tuple(command.split()), **fields),
        totals=totals(at_seconds=seconds),
        processes=tuple(
            ProcessTotals(pid, 1, name, 1.0, 1.0 + long, 0.1, 1) for pid, (name, long) in enumerate(lasted)
        ),
    )


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
    (note,) = describe_elsewhere(of(command))

    assert find_elsewhere(of(command)) == note
    assert note.startswith(f"{who} was measured. Put the tracker there: ")


@pytest.mark.parametrize(("nodes", "is_told"), [(None, False), (1, False), (2, True)])
def test_mpirun_measures_the_ranks_of_this_node(nodes: int | None, is_told: bool) -> None:
    """Which are all of them, unless there are several."""
    identity = Identity(nodes=nodes)
    notes = [
        describe_elsewhere(run)
        for run in (
            of("mpirun -n 4 a", identity=identity),
            of("bash job.sh", ("mpirun", 99.0), identity=identity),
        )
    ]

    assert [bool(note) for note in notes] == [is_told, is_told]
    assert notes[0] == notes[1]


@pytest.mark.parametrize("command", ["python srun.py", "ray start --block", "", "make"])
def test_nothing_is_said_of_others(command: str) -> None:
    """Their descendants do the work."""
    assert describe_elsewhere(of(command, ("python", 99.0))) == []


@pytest.mark.parametrize(
    ("lasted", "seconds", "is_notable"),
    [
        # All of a short script, as of `bash -c 'srun ...'`.
        ([("srun", 3.0)], 4.0, True),
        # A step of a long one, and many short ones.
        ([("srun", 11.0)], 1000.0, True),
        ([("srun", 6.0)] * 10, 100.0, True),
        # A look at what there is.
        ([("docker", 0.2)], 100.0, False),
        ([("kubectl", 0.2)] * 10, 100.0, False),
    ],
)
def test_a_script_may_have_its_work_done_elsewhere(
    lasted: list[tuple[str, float]], seconds: float, is_notable: bool
) -> None:
    """If what has it done was there for a notable part of the run; otherwise there is only a note."""
    run = of("bash job.sh", *lasted, seconds=seconds)
    name, (note,) = lasted[0][0], describe_elsewhere(run)

    assert find_elsewhere(run) == (note if is_notable else "")
    if is_notable:
        assert note.startswith("srun was among the processes. It has its work done elsewhere (by Slurm)")
    else:
        assert note.startswith(f"{name} was among the processes for a moment: work that it may have had done")


@pytest.mark.parametrize(("name", "is_told"), [("srun", False), ("mpirun", False), ("docker", True)])
def test_all_of_a_job_includes_what_its_launchers_start(name: str, is_told: bool) -> None:
    """On each machine, where it is tracked as a whole; containers are no part of it."""
    run = of("job 7", (name, 99.0), pid=NO_PROCESS, identity=Identity(job="7", nodes=2))

    assert bool(describe_elsewhere(run)) == is_told


@pytest.mark.parametrize(("engine", "cure"), [("Dask", "track_cluster(client)"), ("Ray", "watch_nodes()")])
def test_of_an_engine_it_is_said_how_to_track_its_workers(engine: str, cure: str) -> None:
    """With code to copy."""
    note = describe_engine(engine)

    assert note.startswith(f"This program has work done by workers of {engine} that run elsewhere")
    assert cure in note
