"""Whose a process is that a driver names: real processes, made-up times."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from gpu_tracker.sources.gpu.owners import Owners

OURS = frozenset({os.getpid()})
NOBODY = 2**22 + 1  # no process ever has such a number


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives until it is killed."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def test_a_process_that_the_sampler_has_not_seen_yet_is_found_by_its_parents(
    child: subprocess.Popen[bytes],
) -> None:
    """Also once it has ended, of the time before, for which the next sample stands; later ones are of somebody else."""
    owners = Owners(sees_everybody=True)
    owners.update(OURS, 1.0)
    was_ours = owners.own(child.pid, 1.0)
    child.kill()
    child.wait()
    owners.update(OURS, 2.0)

    assert was_ours
    assert [owners.own(child.pid, at) for at in (1.9, 2.4, 2.4, 2.6, 3.1)] == [True, True, True, False, False]


def test_nobody_is_a_stranger_before_the_job_begins(child: subprocess.Popen[bytes]) -> None:
    """A slow driver may name a process of the job before its processes are known; once the job has ended, they are."""
    owners = Owners(sees_everybody=True)
    owners.update(frozenset(), 1.0)
    before = owners.own(child.pid, 1.0)
    owners.update(frozenset({NOBODY}), 2.0)
    meanwhile = owners.own(child.pid, 2.0)
    owners.update(frozenset(), 3.0)

    assert (before, meanwhile, owners.own(child.pid, 3.0)) == (None, False, False)


def test_a_grandchild_is_found(child: subprocess.Popen[bytes]) -> None:
    """Through parents that the sampler has not seen either."""
    owners = Owners(sees_everybody=True)
    owners.update(frozenset({os.getppid()}), 1.0)

    assert owners.own(child.pid, 1.0)


def test_a_process_of_somebody_else_stays_so_after_its_end(child: subprocess.Popen[bytes]) -> None:
    """As long as its process ID is not the job's."""
    owners = Owners(sees_everybody=True)
    owners.update(frozenset({NOBODY}), 1.0)
    before = owners.own(child.pid, 1.0)
    child.kill()
    child.wait()
    after = owners.own(child.pid, 2.0)
    owners.update(frozenset({NOBODY, child.pid}), 3.0)

    assert (before, after, owners.own(child.pid, 3.0)) == (False, False, True)


@pytest.mark.parametrize(("sees_everybody", "answer"), [(True, None), (False, False)])
def test_of_a_process_that_nobody_has_seen_it_cannot_be_told(
    sees_everybody: bool, answer: bool | None
) -> None:
    """In a container it is one of the host."""
    owners = Owners(sees_everybody=sees_everybody)
    owners.update(OURS, 1.0)

    assert owners.own(NOBODY, 1.0) is answer


def test_a_process_id_is_the_jobs_until_its_process_has_ended() -> None:
    """And again if the job gets it again; not everything is remembered."""
    owners = Owners(sees_everybody=False)
    owners.update(frozenset({NOBODY}), 1.0)
    owners.update(frozenset(), 2.0)
    then, later = owners.own(NOBODY, 1.5), owners.own(NOBODY, 2.5)
    owners.update(frozenset(range(NOBODY, NOBODY + 5000)), 3.0)
    again = owners.own(NOBODY, 3.0)
    owners.update(frozenset(), 4.0)

    assert (then, later, again) == (True, False, True)
    assert owners.own(NOBODY, 3.5) is False


def test_a_sample_long_after_the_end_is_not_of_that_time(child: subprocess.Popen[bytes]) -> None:
    """No driver samples as seldom as that."""
    owners = Owners(sees_everybody=True)
    owners.update(OURS | {child.pid}, 1.0)
    child.kill()
    child.wait()
    owners.update(OURS, 2.0)

    assert owners.own(child.pid, 3.1) is False
    assert owners.own(child.pid, 2.3, period_seconds=0.2) is False
    assert owners.own(child.pid, 2.2, period_seconds=0.2)


def test_a_process_that_never_was_here_is_somebody_elses() -> None:
    """One of another container, whose samples go on: only one of ours that has just ended is in doubt."""
    owners = Owners(sees_everybody=True)
    owners.update(OURS, 1.0)

    assert [owners.own(NOBODY, at) for at in (1.0, 2.9, 3.1, 9.0)] == [None, None, False, False]
