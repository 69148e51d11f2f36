"""Recordings that are parts of others."""

from __future__ import annotations

from builders import MB
from gpu_tracker.analysis.ranks import find_outermost, leave_out_inner, list_worst
from gpu_tracker.core.model import NO_PROCESS, Identity, ProcessTotals, RecordingData
from recorded import join, rank


def test_a_recording_that_is_part_of_another_is_left_out() -> None:
    """With a sentence."""
    outer = rank(pid=1, processes=(ProcessTotals(2, 1, "python", 0.0, 10.0, 1.0, MB),))
    recordings = [("outer", outer), ("inner", rank(pid=2)), ("other", rank(pid=3))]
    counted, notes = leave_out_inner(recordings)

    assert [name for name, _ in counted] == ["outer", "other"]
    assert notes == ["Counted once: inner is part of outer, which includes its processes."]


def test_a_copy_is_left_out() -> None:
    """Whole, with a sentence."""
    counted, notes = leave_out_inner([("one", rank()), ("copy", rank())])

    assert [name for name, _ in counted] == ["one"]
    assert notes == ["Counted once: copy is of the same run as one."]


def whole_job(start: int, job: str) -> RecordingData:
    """All of a job on one machine, from that many seconds after noon."""
    made = rank(start, pid=NO_PROCESS, exit_code=None)
    return made._replace(header=made.header._replace(identity=Identity(job=job)))


def test_all_of_a_job_on_one_machine_counts_once() -> None:
    """However many have followed it; another job is another."""
    recordings = [("first", whole_job(0, "7")), ("second", whole_job(2, "7")), ("other", whole_job(3, "8"))]
    counted, _ = leave_out_inner(recordings)

    assert [name for name, _ in counted] == ["first", "other"]


def test_the_outermost_is_part_of_no_other() -> None:
    """Copies of one recording may seem to be part of each other."""
    outer = {"a": "b", "b": "c", "x": "y", "y": "x"}

    assert [find_outermost(name, outer) for name in ("a", "b", "c", "z")] == ["c", "c", "c", "z"]
    assert find_outermost("x", outer) == "y"


def test_the_worst_are_those_that_failed_and_took_longest() -> None:
    """All of a few, in their order."""
    ranks = join(
        rank(pid=1, seconds=9.0), rank(pid=2, seconds=5.0, exit_code=1), rank(pid=3, seconds=12.0)
    ).ranks

    assert [one.pid for one in list_worst(ranks, 3)] == [1, 2, 3]
    assert [one.pid for one in list_worst(ranks, 2)] == [2, 3]


def test_who_follows_a_whole_job_is_not_among_the_worst() -> None:
    """Nobody tells it how the job ended."""
    ranks = join(
        rank(pid=NO_PROCESS, seconds=5.0, exit_code=None), rank(pid=2, seconds=9.0), rank(pid=3, exit_code=1)
    ).ranks

    assert [one.pid for one in list_worst(ranks, 2)] == [3, 2]
