"""Which recordings are of one run, where only the ranks tell."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.analysis.launches import identify_run, number_unnamed
from gpu_tracker.core.model import Identity, RecordingData
from recorded import rank


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
        # One launch, whenever its ranks began.
        ([(0, 0, 1), (0, 1, 2)], [None, None]),
        ([(0, 0, 1), (30, 1, 2)], [None, None]),
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


def test_the_components_of_one_step_are_one_run() -> None:
    """`srun A : B` numbers their ranks in one row; another step is another run."""
    runs = [
        identify_run(Identity(job="7", step=step, launcher="slurm", rank=rank))
        for step, rank in (("4+0", 0), ("4+1", 1), ("4", 2), ("5", 0))
    ]

    assert runs[0] == runs[1] == runs[2] != runs[3]
