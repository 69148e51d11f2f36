"""What `Tracker` says of a block of code, against what the code says of itself."""

from __future__ import annotations

import csv
import json
import os
from datetime import datetime
from itertools import product
from pathlib import Path

import pytest

import gpu_tracker as gput
from end_to_end.cgroup import memory_limit
from end_to_end.figures import Figures, read_paper_json
from end_to_end.launch import run, track_inside, warm_memory, workload
from end_to_end.workloads.clocked import BLOCK_BYTES

MB = 10**6
PORTABLE = {"GPU_TRACKER_SOURCE": "portable"}
# What passes between the meter of a workload and that of the tracker, at either end of a block.
BETWEEN_METERS_SECONDS = 0.005


# ---- CPU.


@pytest.mark.parametrize(
    "load",
    [
        "steady 1",
        "busy_threads 2 1",
        "short_children 100 0.02",
        "workers 2 1 end",
    ],
)
def test_mean_cpu_is_that_of_getrusage(load: str) -> None:
    """CPU time of the process and of the children it waited for is known to one percent, each in its place.

    One of a hundred children missed would be too many.
    """
    truth, figures = track_inside(*load.split())
    own, children = truth["cpu"]
    assert own == pytest.approx(figures.main.cpu_seconds, rel=0.01, abs=BETWEEN_METERS_SECONDS)
    assert children == pytest.approx(figures.descendants.cpu_seconds, rel=0.01)
    assert own + children == pytest.approx(figures.combined.cpu_seconds, rel=0.01)
    assert (own + children) / truth["seconds"] * 100 == pytest.approx(figures.combined.mean_percent, rel=0.01)
    check_busiest_window(figures)


def test_cpu_of_children_nobody_has_waited_for_counts() -> None:
    """Workers that are still there at the end have used what they say they have."""
    truth, figures = track_inside("workers", 2, 1, "stay")
    assert truth["cpu"][1] == 0
    assert truth["living_children_cpu_seconds"] == pytest.approx(figures.descendants.cpu_seconds, rel=0.01)


@pytest.mark.repeats(few=2, soak=20)
def test_child_that_is_started_at_once_counts_from_its_birth(repeats: int) -> None:
    """What begins right after the start belongs to the block, all of it."""
    for _ in range(repeats):
        truth, figures = track_inside("descendant", "child", 1, 0, 0.4)
        assert truth["cpu"][1] == pytest.approx(figures.descendants.cpu_seconds, rel=0.01)


@pytest.mark.serial
def test_pulsed_load_is_neither_missed_nor_taken_for_a_steady_one() -> None:
    """A quarter of a second of work in every second is a quarter on average, and little more in the busiest."""
    truth, figures = track_inside("pulsed", 4, sleep_time=1.0)
    assert truth["cpu"][0] / truth["seconds"] * 100 == pytest.approx(figures.main.mean_percent, rel=0.01)
    assert figures.main.mean_percent <= figures.main.max_percent < 35


def test_children_that_live_for_a_moment_are_met() -> None:
    """Where there is always one child, there is one thread and some memory of descendants."""
    _, figures = track_inside("short_children", 60, 0.02)
    assert figures.descendants.threads == 1
    assert figures.descendants.ram_bytes > MB


def check_busiest_window(figures: Figures) -> None:
    """The busiest window is at least the mean, and never above what the cores could give."""
    for part in (figures.main, figures.descendants, figures.combined):
        assert part.mean_percent <= part.max_percent <= figures.n_cores * 100 * 1.02


# ---- Memory.


@pytest.mark.repeats(few=3, soak=20)
def test_short_spike_is_found_every_time(repeats: int) -> None:
    """400 MB held for 50 ms is in the peak, every time, at one reading a second."""
    warm_memory()
    for _ in range(repeats):
        truth, figures = track_inside("resident", 400, 0.05, sleep_time=1.0)
        assert truth["peak_bytes"] == pytest.approx(figures.main.ram_bytes, rel=0.01)
        assert truth["peak_bytes"] == pytest.approx(figures.combined.ram_bytes, rel=0.01)
        check_ram_adds_up(figures)


@pytest.mark.repeats(few=2, soak=20)
def test_spike_of_a_short_lived_child_is_found_every_time(repeats: int) -> None:
    """400 MB held for 50 ms by a child that is gone at once is in the peak of the descendants."""
    warm_memory()
    for _ in range(repeats):
        truth, figures = track_inside("descendant", "child", 400, 0.05, sleep_time=1.0)
        assert truth["descendant"]["peak_bytes"] == pytest.approx(figures.descendants.ram_bytes, rel=0.01)
        assert figures.combined.ram_bytes >= figures.descendants.ram_bytes
        assert figures.main.ram_bytes < 100 * MB
        check_ram_adds_up(figures)


def test_machine_holds_what_the_job_holds_also_in_a_spike() -> None:
    """The system's peak is at least that of the job, however short it was."""
    warm_memory()
    for load in ("resident 400 0.05", "descendant child 400 0.05"):
        _, figures = track_inside(*load.split(), sleep_time=1.0)
        assert figures.combined.ram_bytes <= figures.system_ram_bytes * 1.02
        assert figures.system_ram_bytes <= figures.capacity_bytes


@pytest.mark.repeats(few=1, soak=10)
def test_spike_is_beside_what_others_hold(repeats: int) -> None:
    """A child's spike counts on top of what its parent holds meanwhile."""
    warm_memory()
    for _ in range(repeats):
        truth, figures = track_inside("beside", 300, 600, 0.05)
        held, held_by_child = truth["held_bytes"], truth["held_by_child_bytes"]
        assert held == pytest.approx(figures.main.ram_bytes, rel=0.01)
        assert held_by_child == pytest.approx(figures.descendants.ram_bytes, rel=0.01)
        assert held + held_by_child == pytest.approx(figures.combined.ram_bytes, rel=0.05)


def test_peaks_of_different_moments_are_not_added() -> None:
    """Memory that was given back before a child took its own was never held together with it."""
    truth, figures = track_inside("in_turn", 600, 400, 0.7)
    assert truth["most_at_once_bytes"] == pytest.approx(figures.combined.ram_bytes, rel=0.05)


@pytest.mark.repeats(few=1, soak=10)
def test_programs_about_to_start_are_not_charged_with_the_memory_of_their_starter(repeats: int) -> None:
    """Between fork and exec a child is still its parent's image; small programs stay small all the same."""
    for _ in range(repeats):
        truth, figures = track_inside("starter", 500, 3)
        assert truth["peak_bytes"] == pytest.approx(figures.main.ram_bytes, rel=0.01)
        assert figures.descendants.ram_bytes < 50 * MB
        assert figures.combined.ram_bytes == pytest.approx(figures.main.ram_bytes, rel=0.05)


def test_spike_before_the_start_is_not_reported() -> None:
    """What the process once held, and gave back before the block, is not the block's."""
    truth, figures = track_inside("past_spike", 400)
    assert truth["peak_bytes"] > 400 * MB
    assert truth["held_bytes"] == pytest.approx(figures.main.ram_bytes, rel=0.05)
    assert truth["held_bytes"] == pytest.approx(figures.combined.ram_bytes, rel=0.05)


def test_memory_that_is_freed_at_once_was_held() -> None:
    """The process itself says what it holds at the start: the first reading may come too late."""
    truth, figures = track_inside("freed_at_once", 200)
    assert truth["held_bytes"] > 200 * MB
    assert figures.main.ram_bytes == pytest.approx(truth["held_bytes"], rel=0.02)
    assert figures.combined.ram_bytes == pytest.approx(truth["held_bytes"], rel=0.02)


def test_forked_copies_that_nobody_met_share_what_their_parent_holds() -> None:
    """Their high-water marks, which regions keep, are mostly of the same memory."""
    truth, figures = track_inside("short_copies", 300, 12, 0.02)
    assert figures.combined.ram_bytes == pytest.approx(truth["held_bytes"], rel=0.05)


@pytest.mark.serial
@pytest.mark.parametrize(
    "load",
    [
        "forks inside 1 500 4 0 2",
        "forks before 20 500 4 0 2",
        "forks before 20 500 4 250 4",
        "shared_block mmap 300 2",
        "shared_block shared_memory 300 2",
    ],
)
def test_shared_memory_is_counted_once(load: str) -> None:
    """What a tree holds is the sum of its proportional sizes, within five percent, and so is its split."""
    warm_memory()
    truth, figures = track_inside(*load.split())
    pss = truth["pss_bytes"]
    assert pss == pytest.approx(figures.combined.ram_bytes, rel=0.05)
    assert truth["private_bytes"] == pytest.approx(figures.combined.private_bytes, abs=0.05 * pss)
    assert truth["descendants_private_bytes"] == pytest.approx(
        figures.descendants.private_bytes, abs=0.05 * pss
    )
    assert truth["peak_bytes"] == pytest.approx(figures.main.ram_bytes, rel=0.01)
    check_ram_adds_up(figures)
    assert figures.combined.ram_bytes <= figures.system_ram_bytes * 1.02


def check_ram_adds_up(figures: Figures) -> None:
    """The whole is the sum of its split, and not less than its parts."""
    for part in (figures.main, figures.descendants, figures.combined):
        assert part.ram_bytes == pytest.approx(part.private_bytes + part.shared_bytes)
        assert min(part.private_bytes, part.shared_bytes) >= 0
    assert figures.combined.ram_bytes >= max(figures.main.ram_bytes, figures.descendants.ram_bytes)


# ---- Time, threads.


@pytest.mark.serial
@pytest.mark.parametrize(
    ("seconds", "sleep_time"), [*product([0.02, 0.9], [0.05, 1.0, 10]), (1.25, 0.05), (4.5, 1.0)]
)
def test_compute_time_is_that_of_a_stopwatch_in_the_block(seconds: float, sleep_time: float) -> None:
    """Time ends with the block, not with the last reading: in the first interval, and in the middle of a later one."""
    truth, figures = track_inside("sleeper", seconds, sleep_time=sleep_time)
    assert truth["seconds"] == pytest.approx(figures.seconds, abs=0.005 + 0.001 * truth["seconds"])


def test_threads_are_the_most_at_once() -> None:
    """The three maxima are each of their own moment."""
    truth, figures = track_inside("crowd", 6, 2, 4)
    assert truth["main_threads"] == figures.main.threads
    assert truth["descendants_threads"] == figures.descendants.threads
    assert truth["combined_threads"] == figures.combined.threads


# ---- What is not the job's.


@pytest.mark.repeats(few=1, soak=20)
@pytest.mark.parametrize(("kind", "n_trackers"), [("nested", 3), ("threads", 4)])
def test_trackers_do_not_count_each_other(kind: str, n_trackers: int, repeats: int) -> None:
    """A process that only tracks itself has no descendants."""
    for _ in range(repeats):
        usages = json.loads(run(workload("several_trackers", kind, n_trackers)))["usages"]
        assert len(usages) == n_trackers
        for figures in map(read_paper_json, usages):
            assert figures.descendants.threads == 0
            assert figures.descendants.ram_bytes == 0
            assert figures.descendants.max_percent < 1


def test_pythons_own_helper_is_not_counted() -> None:
    """Of a spawned child and the resource tracker that comes with it, only the child is the job's."""
    truth, figures = track_inside("spawned", 50, 1, 0.3)
    assert truth["has_helper"]
    assert figures.descendants.threads == 1
    assert truth["child_peak_bytes"] == pytest.approx(figures.descendants.ram_bytes, rel=0.01)
    assert truth["cpu"][1] == pytest.approx(figures.descendants.cpu_seconds, rel=0.01)


# ---- What the job may use.


def test_expected_cores_are_those_the_process_may_run_on() -> None:
    """Pinned to one core, a busy loop uses all of what it has; the machine has what it always had."""
    core = min(os.sched_getaffinity(0))
    truth, figures = track_inside("steady", 1.5, prefix=("taskset", "-c", str(core)))
    assert figures.n_expected_cores == 1
    assert figures.n_cores == os.cpu_count()
    assert truth["cpu"][0] / truth["seconds"] * 100 == pytest.approx(
        figures.main.mean_hardware_percent, rel=0.01
    )


def test_capacity_is_the_memory_limit_of_the_job() -> None:
    """In a group of 700 MB there are 700 MB, whatever the machine has."""
    with memory_limit(700 * MB) as prefix:
        truth, figures = track_inside("resident", 300, 1, prefix=prefix)
    assert figures.capacity_bytes == pytest.approx(700 * MB, rel=0.0001)
    assert truth["peak_bytes"] == pytest.approx(figures.main.ram_bytes, rel=0.01)
    assert figures.combined.ram_bytes <= figures.system_ram_bytes * 1.02
    assert figures.system_ram_bytes <= figures.capacity_bytes


# ---- Live, again, otherwise.


def test_figures_are_live_until_the_stop_and_then_stand_still() -> None:
    """While tracking, every question gets the truth of that moment; afterwards always the same answer."""
    truth = json.loads(run(workload("watched")))
    assert truth["is_none_before"]
    for moment in truth["moments"]:
        figures = read_paper_json(moment["usage"])
        for asked, said, answered in zip(
            moment["asked"], (figures.main.cpu_seconds, figures.seconds), moment["answered"], strict=True
        ):
            assert asked * 0.99 <= said <= answered * 1.01
    first, _, with_memory, last = [read_paper_json(moment["usage"]) for moment in truth["moments"]]
    assert first.main.ram_bytes < 100 * MB
    assert truth["moments"][2]["held_bytes"] == pytest.approx(with_memory.main.ram_bytes, rel=0.01)
    assert last.main.ram_bytes >= with_memory.main.ram_bytes
    assert read_paper_json(truth["stopped"]).seconds > last.seconds
    assert truth["stopped"] == truth["later"]


@pytest.mark.serial
@pytest.mark.parametrize("sleep_time", [0.01, 1.0])
def test_tracker_can_be_used_again(sleep_time: float) -> None:
    """A second start forgets the first: time, CPU and memory are those of the second stretch."""
    for stretch in json.loads(run(workload("restarted", sleep_time)))["stretches"]:
        figures = read_paper_json(stretch["usage"])
        assert stretch["seconds"] == pytest.approx(figures.seconds, abs=0.005 + 0.001 * stretch["seconds"])
        assert stretch["cpu"][0] == pytest.approx(figures.main.cpu_seconds, rel=0.01)
        assert stretch["held_bytes"] == pytest.approx(figures.main.ram_bytes, rel=0.05)
        check_busiest_window(figures)


@pytest.mark.parametrize("load", ["steady 1", "short_children 100 0.02"])
def test_portable_source_knows_the_cpu(load: str) -> None:
    """Also without the Linux source, CPU time is that of getrusage, within two percent."""
    truth, figures = track_inside(*load.split(), environment=PORTABLE)
    own, children = truth["cpu"]
    assert own == pytest.approx(figures.main.cpu_seconds, rel=0.02, abs=BETWEEN_METERS_SECONDS)
    assert children == pytest.approx(figures.descendants.cpu_seconds, rel=0.02)
    check_busiest_window(figures)


def test_portable_source_finds_memory_that_is_held() -> None:
    """Also without the Linux source, 300 MB held for a second are found, in the process and in a child."""
    truth, figures = track_inside("resident", 300, 1, environment=PORTABLE)
    assert truth["peak_bytes"] == pytest.approx(figures.main.ram_bytes, rel=0.01)
    truth, figures = track_inside("descendant", "child", 300, 1, environment=PORTABLE)
    assert truth["descendant"]["peak_bytes"] == pytest.approx(figures.descendants.ram_bytes, rel=0.01)
    check_ram_adds_up(figures)


def test_times_in_a_tracking_file_are_those_of_the_wall_clock(tmp_path: Path) -> None:
    """A row says what was so at its time, to ten milliseconds: no block is in a row before it was taken, or missing after."""
    path = tmp_path / "x.csv"
    grown = json.loads(run(workload("clocked", path)))["grown"]
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file.readlines()[2:]))
    seen = [(float(row["timestamp"]), float(row["main_ram"])) for row in rows]
    base = min(size for _, size in seen)
    for number, (before, after) in enumerate(grown):
        threshold = base + (number + 0.5) * BLOCK_BYTES
        assert all(at > before - 0.01 for at, size in seen if size > threshold)
        assert all(at < after + 0.01 for at, size in seen if size < threshold)
    recording = gput.load(f"{path}.jsonl")
    started = datetime.fromisoformat(recording.header.started_at).timestamp()
    assert started < grown[0][0]
    assert seen[0][0] == pytest.approx(started, abs=0.05)
