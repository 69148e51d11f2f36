"""Recordings that are parts of others."""

from __future__ import annotations

import pytest

from builders import MB
from gpu_tracker.analysis.ranks import find_outermost, leave_out_inner, list_worst
from gpu_tracker.core.model import NO_PROCESS, Identity, ProcessTotals, RecordingData
from recorded import join, rank


def test_a_recording_that_is_part_of_another_is_left_out() -> None:
    """With a sentence."""
    outer = rank(pid=1, processes=(ProcessTotals(2, 1, "python", 0.0, 10.0, 1.0, MB),))
    recordings = [("outer", outer), ("inner", rank(pid=2)), ("other", rank(pid=3))]
    counted, cut, notes = leave_out_inner(recordings)

    assert [name for name, _ in counted] == ["outer", "other"]
    assert not cut
    assert notes == ["Counted once: inner is part of outer, which includes its processes."]


def test_a_copy_is_left_out() -> None:
    """Whole, with a sentence."""
    counted, _, notes = leave_out_inner([("one", rank()), ("copy", rank())])

    assert [name for name, _ in counted] == ["one"]
    assert notes == ["Counted once: copy is of the same run as one."]


def whole_job(start: int, job: str) -> RecordingData:
    """All of a job on one machine, from that many seconds after noon."""
    made = rank(start, pid=NO_PROCESS, exit_code=None)
    return made._replace(header=made.header._replace(identity=Identity(job=job)))


def test_all_of_a_job_on_one_machine_counts_once() -> None:
    """However many have followed it; another job is another."""
    recordings = [("first", whole_job(0, "7")), ("second", whole_job(2, "7")), ("other", whole_job(3, "8"))]
    counted, _, _ = leave_out_inner(recordings)

    assert [name for name, _ in counted] == ["first", "other"]


def here(start: int, seconds: float, **identity: str | None) -> RecordingData:
    """By a tracker in a process of a machine of which the boot is known."""
    made = rank(start, seconds=seconds, pid=7, exit_code=None)
    known = Identity(**{"boot_id": "b", "pid_namespace": "4", **identity})  # type: ignore[arg-type]
    return made._replace(header=made.header._replace(identity=known))


@pytest.mark.parametrize(
    ("first", "second", "counted", "cut"),
    [
        # One within the other, whichever is first; of equal ones either.
        ((0, 10.0), (2, 5.0), ["first"], []),
        ((2, 5.0), (0, 10.0), ["second"], []),
        ((0, 10.0), (0, 10.0), ["first"], []),
        # Overlapping in part: that which has seen more, which is not all.
        ((0, 5.0), (2, 10.0), ["second"], ["second"]),
        ((0, 10.0), (8, 5.0), ["first"], ["first"]),
        # One after the other.
        ((0, 2.0), (2, 5.0), ["first", "second"], []),
        ((0, 2.0), (3, 5.0), ["first", "second"], []),
    ],
)
def test_trackers_of_one_process_at_the_same_time_count_once(
    first: tuple[int, float], second: tuple[int, float], counted: list[str], cut: list[str]
) -> None:
    """Nested, or of two clients of one cluster."""
    left, without_some, notes = leave_out_inner([("first", here(*first)), ("second", here(*second))])

    assert [name for name, _ in left] == counted
    assert sorted(without_some) == cut
    assert len(notes) == 2 - len(counted)
    assert all(("overlap in part" in note) == bool(cut) for note in notes)


@pytest.mark.parametrize(
    "other",
    [{"boot_id": "c"}, {"pid_namespace": "5"}, {"boot_id": None}],
    ids=["boot", "container", "unknown"],
)
def test_equal_pids_may_be_of_two_processes(other: dict[str, str | None]) -> None:
    """On another machine of that name, in another container, or nobody knows."""
    counted, _, notes = leave_out_inner([("first", here(0, 10.0, **other)), ("second", here(2, 5.0))])

    assert (len(counted), notes) == (2, [])


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
