"""Which recordings are of one run, where only the ranks tell."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.analysis.launches import identify_run, number_unnamed
from gpu_tracker.core.model import Identity, ProcessTotals, RecordingData
from recorded import join, rank


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
