"""Which recordings are of one run, where only the ranks tell."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.analysis.launches import find_run, find_runs, identify_run, number_unnamed
from gpu_tracker.core.model import NO_PROCESS, Header, Identity, ProcessTotals, RecordingData
from recorded import join, rank


def header(pid: int = 1, **identity: Any) -> Header:
    """Of a recording with that identity."""
    return rank(pid=pid).header._replace(identity=Identity(**identity))


def of(start: int, number: int, *, pid: int, seconds: float = 10.0, **identity: Any) -> RecordingData:
    """A rank that began that many seconds after noon."""
    made = rank(start, seconds=seconds, pid=pid)
    known = made.header.identity._replace(**{"launcher": "mpich", "rank": number, "ranks": 2, **identity})
    return made._replace(header=made.header._replace(identity=known))


def number(*recordings: RecordingData) -> list[int | None]:
    """The launch of each."""
    numbers = number_unnamed([(f"{name}", one) for name, one in enumerate(recordings)])
    return [numbers.get(f"{name}") for name in range(len(recordings))]


@pytest.mark.parametrize(
    ("ranks", "launches"),
    [
        # One launch: its ranks overlap.
        ([(0, 0, 1), (0, 1, 2)], [None, None]),
        ([(0, 0, 1), (9, 1, 2)], [None, None]),
        # Two in turn, each of which lacks another rank.
        ([(0, 0, 1), (11, 1, 2)], [1, 2]),
        # Two in turn, also if a rank of the first or of the second has no recording.
        ([(0, 0, 1), (0, 1, 2), (30, 0, 3), (30, 1, 4)], [1, 1, 2, 2]),
        ([(30, 1, 4), (0, 0, 1), (31, 0, 3)], [2, 1, 2]),
        ([(0, 0, 1), (0, 1, 2), (30, 1, 4)], [1, 1, 2]),
        # Two at once.
        ([(0, 0, 1), (1, 1, 2), (2, 0, 3), (3, 1, 4)], [1, 1, 2, 2]),
        # A process that was tracked twice is one rank.
        ([(0, 0, 1), (0, 1, 2), (20, 0, 1)], [None, None, None]),
    ],
)
def test_a_launch_has_each_rank_once(ranks: list[tuple[int, int, int]], launches: list[int | None]) -> None:
    """Where its launcher gives it no ID."""
    assert number(*(of(start, rank, pid=pid) for start, rank, pid in ranks)) == launches


def test_ranks_of_a_moment_need_not_overlap() -> None:
    """They do not start at once; launches in turn are further apart."""
    assert number(of(0, 0, pid=1, seconds=0.1), of(1, 1, pid=2, seconds=0.1)) == [None, None]
    assert number(of(0, 0, pid=1, seconds=0.1), of(3, 1, pid=2, seconds=0.1)) == [1, 2]


def test_a_command_without_a_rank_is_another_run_than_ranks() -> None:
    """Of the same batch script; what has started them, and what is part of them, are not."""
    ranks = [of(30, index, pid=pid, job="7") for index, pid in enumerate((2, 3))]
    command = of(0, 0, pid=1, job="7", rank=None, ranks=None)
    inner = of(31, 0, pid=4, job="7", rank=None, ranks=None)
    below = (ProcessTotals(2, 1, "train", 0.0, 10.0, 1.0, 1), ProcessTotals(4, 2, "eval", 1.0, 9.0, 1.0, 1))
    launcher = of(30, 0, pid=1, job="7", rank=None, ranks=None)._replace(processes=below[:1])

    assert number(command, *ranks) == [None, 1, 1]
    assert number(launcher, *ranks) == [None, None, None]
    assert number(ranks[0]._replace(processes=below), inner) == [None, None]
    assert [task.name for task in join(command, *ranks).tasks] == ["outside of steps", "launch 1"]


def test_the_components_of_one_step_are_one_run() -> None:
    """`srun A : B` numbers their ranks in one row; another step is another run."""
    runs = [
        identify_run(Identity(job="7", step=step, launcher="slurm", rank=rank))
        for step, rank in (("4+0", 0), ("4+1", 1), ("4", 2), ("5", 0))
    ]

    assert runs[0] == runs[1] == runs[2] != runs[3]


@pytest.mark.parametrize(
    ("identity", "is_rank"),
    [
        ({}, False),
        ({"job": "7"}, False),
        ({"rank": 0}, False),
        ({"rank": 0, "job": "7"}, True),
        ({"rank": 0, "run_id": "a"}, True),
        ({"rank": 0, "ranks": 4}, True),
        ({"rank": 0, "launcher": "kubernetes"}, True),
        ({"pid": NO_PROCESS, "job": "7"}, True),
        ({"pid": NO_PROCESS}, False),
    ],
)
def test_a_rank_belongs_to_a_job(identity: dict[str, Any], is_rank: bool) -> None:
    """Only if both are known; all of a job on one machine belongs to the job, too."""
    assert (find_run(header(**identity)) is not None) == is_rank


def test_attempts_are_runs_of_their_own() -> None:
    """As are steps and tasks."""
    base: dict[str, Any] = {"job": "7", "rank": 0, "launcher": "slurm", "step": "0"}
    others = [base | one for one in ({"step": "1"}, {"attempt": 1}, {"restart": 1}, {"array_task": "1"})]

    assert len({find_run(header(**one)) for one in (base, *others)}) == 5
    assert find_run(header(**base | {"rank": 3})) == find_run(header(**base))
    assert find_run(header(**base), 2) != find_run(header(**base))


@pytest.mark.parametrize(
    ("identities", "runs"),
    [
        # Open MPI starts its ranks on the first node in the batch script, those elsewhere in a step.
        ([{"job": "7", "launcher": "openmpi", "run_id": "a", "step": step, "rank": number, "ranks": 2}
          for number, step in enumerate(("batch", "0"))], 1),
        # srun A : B
        ([{"job": "7", "launcher": "slurm", "step": step, "rank": number} for number, step in enumerate(("0+0", "0+1"))], 1),
        # attach --job on two nodes
        ([{"pid": NO_PROCESS, "job": "7", "node": node} for node in ("n1", "n2")], 1),
        # The pods of an indexed job of Kubernetes
        ([{"scheduler": "kubernetes", "launcher": "kubernetes", "rank": number} for number in range(3)], 1),
        ([{"job": "7", "launcher": "slurm", "step": step, "rank": 0} for step in ("0", "1")], 2),
    ],
    ids=["mpirun on two nodes", "components", "followed on two nodes", "pods", "steps"],
)  # fmt: skip
def test_one_place_decides_what_is_one_run(identities: list[dict[str, Any]], runs: int) -> None:
    """For all that compare runs, add them up, or size them."""
    recordings = [
        (f"{number}", rank(pid=number + 2, host=f"node{number}")._replace(header=header(**one)))
        for number, one in enumerate(identities)
    ]
    found = find_runs(recordings)

    assert None not in found.values()
    assert len(set(found.values())) == runs


def test_ranks_are_one_run_with_what_includes_them() -> None:
    """All of a job, or a launcher; not where it includes those of several steps, which are runs of their own."""

    def step(number: int, pid: int) -> RecordingData:
        return of(0, 0, pid=pid, job="7", launcher="slurm", step=f"{number}", ranks=1)

    below = tuple(ProcessTotals(pid, 1, "train", 0.0, 10.0, 1.0, 1) for pid in (2, 3))
    whole = rank(pid=NO_PROCESS, processes=below)._replace(header=header(NO_PROCESS, job="7"))

    command = of(0, 0, pid=3, job="7", launcher=None, rank=None, ranks=None)

    assert len(join(whole, step(0, 2)).tasks) == 0
    assert len(join(whole, step(0, 2), command).tasks) == 0
    assert [one.part_of for one in join(whole, step(0, 2)).ranks] == ["", "0"]
    assert [one.name for one in join(whole, step(0, 2), step(1, 3)).tasks] == [
        "outside of steps",
        "step 0",
        "step 1",
    ]
    assert [one.name for one in join(whole, step(0, 4)).tasks] == ["outside of steps", "step 0"]
