"""Regions of a process that several trackers have recorded."""

from __future__ import annotations

from typing import Any

from builders import totals
from gpu_tracker.analysis.compare import compare
from gpu_tracker.analysis.job_measures import doubt_regions
from gpu_tracker.analysis.measures import RunFigures, measure
from gpu_tracker.analysis.ranks import align, find_outer
from gpu_tracker.analysis.regions import summarize_regions
from gpu_tracker.analysis.united_regions import United, unite_regions
from gpu_tracker.core.model import NO_PROCESS, Call, End, Identity, ProcessTotals, RecordingData
from recorded import join, part, rank

STEP = ("step",)


def tracked(
    start: int,
    seconds: float,
    *starts: float,
    pid: int = 7,
    length: float = 1.0,
    exit_code: int | None = None,
    **fields: Any,
) -> RecordingData:
    """A tracker of a process that began that many seconds after noon, with calls that began then."""
    calls = tuple(Call(STEP, pid, number, at, at + length) for number, at in enumerate(starts, 1))
    times = part(
        pid,
        *[length] * len(starts),
        first_seconds=min(starts, default=None),
        last_seconds=max(starts, default=0.0) + length,
    )
    identity = Identity(boot_id="b", **fields.pop("identity", {}))
    made = rank(
        start,
        seconds=seconds,
        pid=pid,
        exit_code=exit_code,
        **{"regions": (times,) * bool(starts), "calls": calls, **fields},
    )
    return made._replace(header=made.header._replace(identity=identity))


def unite(*recordings: RecordingData) -> tuple[list[tuple[float, int]], United]:
    """The time in the region and its calls, of each recording; and all that was united."""
    parts = align([(f"{number}", one) for number, one in enumerate(recordings)])
    united = unite_regions(parts, find_outer(parts))
    summed = [
        [
            (region.wall_seconds, region.calls)
            for region in summarize_regions(united.recordings.get(one.name, one.recording))
        ]
        for one in parts
    ]
    return [some[0] if some else (0.0, 0) for some in summed], united


def test_a_run_has_the_calls_of_the_tracker_within() -> None:
    """Of a script that opens one: each call is in the recording of one of both."""
    regions, united = unite(tracked(0, 30.0, 1.0, 25.0, exit_code=0), tracked(10, 10.0, 1.0, 5.0, 8.0))

    assert regions == [(5.0, 5), (0.0, 0)]
    assert united.doubted == {"0": frozenset()}
    (whole,) = united.recordings["0"].regions[:1]
    (moved,) = united.recordings["0"].regions[1:]
    assert (whole.first_seconds, moved.first_seconds, moved.last_seconds) == (1.0, 11.0, 19.0)


def test_trackers_that_overlap_in_part_have_different_calls() -> None:
    """That which is counted has those of the other, too."""
    regions, united = unite(tracked(0, 10.0, 1.0), tracked(5, 20.0, 2.0, 8.0))

    assert regions == [(0.0, 0), (3.0, 3)]
    assert united.doubted == {"1": frozenset()}


def test_a_call_that_is_in_two_recordings_counts_once() -> None:
    """If one of both has all of them it is known; else there may be more."""
    whole, _ = unite(tracked(0, 30.0, 11.0, 15.0, 25.0, exit_code=0), tracked(10, 10.0, 1.0, 5.0))
    larger, _ = unite(tracked(0, 30.0, 11.0, 15.0, exit_code=0), tracked(10, 10.0, 1.0, 3.0, 5.0))
    partial, united = unite(tracked(0, 10.0, 1.0, 6.0), tracked(5, 20.0, 1.0, 12.0, 15.0))

    assert whole == [(3.0, 3), (0.0, 0)]
    assert larger == [(3.0, 3), (0.0, 0)]
    assert partial == [(0.0, 0), (3.0, 3)]
    assert united.doubted == {"1": frozenset({STEP})}


def test_calls_just_before_the_second_tracker_are_no_copies() -> None:
    """However short they are."""
    first, second = (
        tracked(0, 30.0, 9.999, 10.004, length=0.001, exit_code=0),
        tracked(10, 10.0, 0.0, 0.005, 3.0, length=0.001),
    )
    regions, _ = unite(first, second)

    assert regions[0][1] == 5


def test_regions_of_ranks_and_workers_stay_theirs() -> None:
    """They are compared with each other, not added to what has started them; a tracker in a rank is that rank's."""
    below = tuple(ProcessTotals(pid, 1, "python", 0.0, 30.0, 1.0, 1) for pid in (2, 3))
    launcher = tracked(0, 30.0, 1.0, pid=1, exit_code=0, processes=below)
    ranks = [
        tracked(0, 30.0, 2.0, pid=pid, exit_code=0, identity={"rank": pid, "job": "7"}) for pid in (2, 3)
    ]
    workers = [tracked(0, 30.0, 2.0, pid=pid, exit_code=0) for pid in (2, 3)]
    inside = tracked(
        10,
        5.0,
        1.0,
        pid=3,
        identity={"rank": 3, "job": "7"},
        end=End("stopped", None, totals(at_seconds=5.0), 0.0, 0),
    )
    followed = tracked(0, 30.0, pid=NO_PROCESS, identity={"job": "7"}, processes=below)

    assert unite(launcher, *ranks)[0] == [(1.0, 1)] * 3
    assert unite(launcher, *workers)[0] == [(1.0, 1)] * 3
    assert unite(launcher, *ranks, inside)[0] == [(1.0, 1), (1.0, 1), (2.0, 2), (0.0, 0)]
    assert unite(followed, *ranks, inside)[0] == [(0.0, 0), (1.0, 1), (2.0, 2), (0.0, 0)]


def test_a_command_below_a_tracked_shell_is_part_of_it() -> None:
    """Its process is another; commands one after the other, too."""
    below = tuple(ProcessTotals(pid, 1, "python", at, at + 9.0, 1.0, 1) for pid, at in ((2, 0.0), (3, 10.0)))
    shell = tracked(0, 30.0, 25.0, pid=1, exit_code=0, processes=below)
    commands = [tracked(at, 9.0, 1.0, pid=pid) for pid, at in ((2, 0), (3, 10))]

    assert unite(shell, *commands)[0] == [(3.0, 3), (0.0, 0), (0.0, 0)]


def test_recordings_without_regions_stay_as_they_are() -> None:
    """Also those that are in another one."""
    assert unite(tracked(0, 30.0, 1.0, exit_code=0), tracked(10, 10.0))[1].recordings == {}


def test_the_balance_of_ranks_is_that_of_their_regions() -> None:
    """With a tracker of its own in each: a rank counts once, with all of its calls."""
    ranks = [
        one
        for number, calls in ((1, (1.0, 3.0, 5.0)), (2, (1.0,)))
        for one in (
            tracked(
                0,
                30.0,
                1.0,
                25.0,
                pid=number,
                exit_code=0,
                identity={"rank": number - 1, "ranks": 2, "job": "7"},
            ),
            tracked(10, 10.0, *calls, pid=number, identity={"rank": number - 1, "ranks": 2, "job": "7"}),
        )
    ]
    (step,) = (one for one in join(*ranks).balance if one.region)
    doubtful = join(tracked(0, 10.0, 1.0, 6.0), tracked(5, 20.0, 1.0, 12.0, 15.0)).balance

    assert (step.ranks, step.smallest, step.largest, step.largest_rank) == (2, 3.0, 5.0, "rank 0 on node1")
    assert step.load_balance_percent == 80.0
    assert not step.is_at_least
    assert [one.is_at_least for one in doubtful if one.region] == [True]
    assert {one.figure.name for one in doubtful if one.is_at_least} == {
        "time",
        "cpu_time",
        "mean_cores",
        "peak_ram",
    }


def test_a_limit_on_doubted_calls_cannot_be_checked() -> None:
    """There may be more of all of that."""
    whole = measure(tracked(0, 10.0, 1.0))
    doubted = doubt_regions(whole, frozenset({STEP}))

    def bound(run: RunFigures) -> list[float | None]:
        rows = compare([("a", [run])]).rows
        return [
            row.groups[0].ceiling for row in rows if row.subject.region and row.subject.figure.name == "time"
        ]

    assert (bound(doubted), bound(whole), doubt_regions(whole, ())) == ([float("inf")], [None], whole)
