"""Recordings that are parts of others."""

from __future__ import annotations

from typing import Any

import pytest

from builders import MB, totals
from gpu_tracker.analysis.ranks import (
    align,
    find_cut,
    find_outer,
    find_outermost,
    leave_out_inner,
    list_within,
    list_worst,
)
from gpu_tracker.analysis.sizing import bound_by_inner, find_need
from gpu_tracker.core.model import NO_PROCESS, End, Identity, ProcessTotals, RecordingData
from recorded import join, rank


def test_a_recording_that_is_part_of_another_is_left_out() -> None:
    """With a sentence."""
    outer = rank(pid=1, processes=(ProcessTotals(2, 1, "python", 0.0, 10.0, 1.0, MB),))
    recordings = [("outer", outer), ("inner", rank(pid=2)), ("other", rank(pid=3))]
    counted, within, notes = leave_out_inner(recordings)

    assert [name for name, _ in counted] == ["outer", "other"]
    assert not within
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


def followed(
    start: int, seconds: float, *, pid: int = NO_PROCESS, ram: int = 150, **fields: Any
) -> RecordingData:
    """Who follows all of job 7 on a machine, or a rank of that."""
    made = rank(start, ram, seconds, pid=pid, **{"exit_code": 0 if pid else None, **fields})
    identity = Identity(job="7", boot_id="b")
    if pid:
        identity = identity._replace(rank=pid, ranks=3, launcher="slurm", step="0")
    return made._replace(header=made.header._replace(identity=identity))


@pytest.mark.parametrize(
    ("start", "seconds", "is_whole"),
    [(0, 40.0, True), (1, 39.0, True), (8, 32.0, False), (0, 20.0, False), (8, 10.0, False)],
    ids=["from the start", "a sample later", "late", "ended early", "both"],
)
def test_who_follows_a_job_includes_the_ranks_on_its_machine(
    start: int, seconds: float, is_whole: bool
) -> None:
    """Whenever it came or went; without some of their time it is a lower bound, and they are one too. Never are both added up."""
    ranks = [followed(0, 40.0, pid=pid, ram=200) for pid in (1, 2)]
    recordings = [("job", followed(start, seconds)), ("1", ranks[0]), ("2", ranks[1])]
    counted, within, notes = leave_out_inner(recordings)
    combined = join(*(one for _, one in recordings))
    (host,) = combined.hosts

    assert [name for name, _ in counted] == ["job"]
    assert list(within) == ([] if is_whole else ["job"])
    assert [one.part_of for one in combined.ranks] == ["", "0", "0"]
    assert all(("not all of the time" in note) != is_whole for note in notes)
    assert (host.ranks, host.ram_sum_bytes) == (1, (150 if is_whole else 200) * MB)
    assert (host.ram_at_least_bytes, host.ram_at_most_bytes) == (
        (150 * MB, 150 * MB) if is_whole else (200 * MB, None)
    )
    assert (combined.values["cpu_time"], "cpu_time" in combined.at_least) == (
        (seconds, False) if is_whole else (80.0, True)
    )
    assert combined.values["time"] == 40.0


def test_what_is_advised_is_not_the_sum_of_a_job_and_its_ranks() -> None:
    """It is what the ranks held together at least, where who follows the job has not seen all of it."""
    ranks = [(f"{pid}", followed(0, 40.0, pid=pid, ram=200)) for pid in (1, 2)]
    counted, within, _ = leave_out_inner([("job", followed(30, 10.0)), *ranks])
    own = [find_need(one) for _, one in ranks]
    need = bound_by_inner(find_need(counted[0][1]), [find_need(one) for _, one in within["job"]])

    assert need.memory_bytes == sum(one.memory_bytes or 0 for one in own)
    assert need.is_least


def test_the_longest_follower_counts_and_the_machine_must_be_the_same() -> None:
    """A second one that came later is part of the first; on another node, or of another job or life, it follows others."""
    one = followed(0, 40.0, pid=1)
    recordings = [("late", followed(20, 20.0)), ("first", followed(0, 40.0)), ("rank", one)]
    others = [
        one._replace(header=one.header._replace(**fields))
        for fields in (
            {"host": "node2"},
            {"identity": one.header.identity._replace(boot_id="c")},
            {"identity": one.header.identity._replace(job="8")},
            {"identity": one.header.identity._replace(restart=1)},
        )
    ]
    later = followed(30, 5.0, pid=2)

    assert [name for name, _ in leave_out_inner(recordings).recordings] == ["first"]
    assert leave_out_inner(recordings).within == {}
    for other in (*others, later):
        assert len(leave_out_inner([("job", followed(0, 20.0)), ("rank", other)]).recordings) == 2


def test_a_tracker_in_a_followed_rank_is_part_of_the_rank() -> None:
    """So that nothing within the job is added up twice."""
    inside = followed(2, 30.0, pid=1, ram=180, end=End("stopped", None, totals(at_seconds=30.0), 0.0, 0))
    parts = align(
        [("job", followed(10, 30.0)), ("rank", followed(0, 40.0, pid=1, ram=200)), ("inside", inside)]
    )
    outer = find_outer(parts)

    assert outer == {"rank": "job", "inside": "rank"}
    assert list_within(outer, find_cut(parts, outer)) == {"job": ["rank"]}


def test_of_many_that_are_left_out_a_few_are_named() -> None:
    """And the rest are counted."""
    ranks = [(f"{pid}", followed(0, 40.0, pid=pid)) for pid in range(1, 9)]
    notes = leave_out_inner([("job", followed(0, 40.0)), *ranks]).notes

    assert len(notes) == 6
    assert notes[-1] == "Counted once: 3 more are part of others in the same way."


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
