"""The CPU time of regions, against what the program says of itself; from inside and through the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import gpu_tracker as gput
from end_to_end.launch import COMMAND_LINE, TESTS, workload

FRONTS = ("inside", "command line")
# What a few hundred switches between coroutines cost besides.
OVERHEAD_SECONDS = 0.06


class Scene(dict[str, gput.Region]):
    """The regions of a run by path, and what the program has printed."""

    truth: dict[str, float]


def play(tmp_path: Path, scene: str, front: str = "inside") -> Scene:
    """Run a scene under a tracker."""
    record = tmp_path / "run.jsonl"
    command = workload("region_scenes", scene)
    if front == "inside":
        command.append(str(record))
    else:
        command = [
            COMMAND_LINE,
            "run",
            "--disable-logs",
            "--st",
            "0.2",
            "--record",
            str(record),
            "--",
            *command,
        ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=TESTS)
    assert scene.startswith("killed") or done.returncode == 0, done.stderr
    shown = Scene(("/".join(region.path), region) for region in gput.load(record).report.regions)
    shown.truth = json.loads(done.stdout.splitlines()[0])
    return shown


def about(seconds: float) -> object:
    """To three percent and what is done besides."""
    return pytest.approx(seconds, rel=0.03, abs=OVERHEAD_SECONDS)


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("scene", ["threads", "coroutines", "decorated_coroutines", "helpers"])
def test_cpu_time_is_that_of_the_region_that_used_it(tmp_path: Path, scene: str, front: str) -> None:
    """Not that of regions which wait meanwhile, in threads or coroutines; helpers work for the region that runs."""
    regions = play(tmp_path, scene, front)

    for name, region in regions.items():
        assert region.cpu_seconds == about(regions.truth[name])
        assert region.cpu_basis == "exact"
    assert sum(region.own_cpu_seconds for region in regions.values()) <= regions.truth["process"] * 1.01


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize(
    "scene",
    [
        "short_calls",
        "nested_calls",
        "crossed_calls",
        # Where it waits between two readings of its clock, nobody can tell in which call: it is labelled shared then.
        pytest.param("short_waits", marks=pytest.mark.timed),
        "rare_calls",
    ],
)
def test_cpu_time_of_short_calls_is_that_of_the_region_that_used_it(
    tmp_path: Path, scene: str, front: str
) -> None:
    """Those of microseconds in turns, too. Each has all of its own, and together they have no more than there is."""
    regions = play(tmp_path, scene, front)

    for name, region in regions.items():
        assert region.cpu_seconds >= 0.97 * regions.truth[name]
        inside = [inner for path, inner in regions.items() if path.rpartition("/")[0] == name]
        if scene != "crossed_calls":  # where what is inside goes on without it
            assert region.cpu_seconds == pytest.approx(
                region.own_cpu_seconds + sum(inner.cpu_seconds for inner in inside)
            )
    assert sum(region.own_cpu_seconds for region in regions.values()) <= regions.truth["process"] * 1.01


def test_helpers_of_several_regions_are_shared_and_said_to_be(tmp_path: Path) -> None:
    """Nothing is lost or counted twice."""
    regions = play(tmp_path, "divided_helpers")

    assert [region.cpu_basis for region in regions.values()] == ["shared", "shared"]
    assert sum(region.own_cpu_seconds for region in regions.values()) == about(regions.truth["both"])


def test_a_coroutine_has_the_time_of_the_thread_that_it_waits_for(tmp_path: Path) -> None:
    """It is the only region, if a suspended one."""
    regions = play(tmp_path, "awaited_helper")

    assert regions["fetch"].cpu_seconds == about(regions.truth["fetch"])


@pytest.mark.parametrize("front", FRONTS)
def test_a_decorated_async_generator_is_measured_for_all_of_its_life(tmp_path: Path, front: str) -> None:
    """Each step is a call, and so is its end."""
    regions = play(tmp_path, "async_generator", front)

    assert regions["rows"].cpu_seconds == about(regions.truth["rows"])
    assert (regions["rows"].calls, regions["rows"].cpu_basis) == (5, "exact")


def test_a_generator_that_cannot_be_followed_is_said_to_share(tmp_path: Path) -> None:
    """Then its CPU time is an upper bound; where Python tells when it is suspended, it is exact."""
    regions = play(tmp_path, "generator")

    if hasattr(sys, "monitoring"):
        assert regions["rows"].cpu_basis == "exact"
        assert regions["rows"].cpu_seconds == about(regions.truth["rows"])
    else:
        assert regions["rows"].cpu_basis == "shared"
        assert regions["rows"].cpu_seconds >= regions.truth["rows"]


def test_the_block_of_a_context_manager_is_inside_its_region(tmp_path: Path) -> None:
    """Though its generator is suspended."""
    regions = play(tmp_path, "context_manager")

    assert sorted(regions) == ["phase", "phase/inner", "stacked"]
    for name in ("phase", "stacked"):
        assert regions[name].cpu_seconds == about(regions.truth[name])
        assert regions[name].cpu_basis == "exact"


def test_mutual_recursion_counts_once(tmp_path: Path) -> None:
    """In time and in CPU time."""
    regions = play(tmp_path, "recursion")
    even, odd = regions["even"], regions["even/odd"]

    assert (even.calls, odd.calls) == (5, 5)
    assert even.cpu_seconds == about(regions.truth["even"] + regions.truth["odd"])
    assert (even.own_cpu_seconds, odd.own_cpu_seconds) == (
        about(regions.truth["even"]),
        about(regions.truth["odd"]),
    )
    assert odd.wall_seconds <= even.wall_seconds <= regions.truth["seconds"]


def test_an_open_region_counts_until_the_last_reading(tmp_path: Path) -> None:
    """Also of a process that was killed inside it."""
    regions = play(tmp_path, "killed", "command line")
    train = regions["train"]

    assert (train.calls, train.open_calls) == (0, 1)
    assert train.cpu_seconds == about(regions.truth["train"])
    assert train.own_cpu_seconds == about(regions.truth["train"] - regions["train/step"].cpu_seconds)
    assert train.wall_seconds >= regions.truth["train"] + 0.5
    assert (train.cpu_basis, regions["train/step"].cpu_basis) == ("sampled", "exact")


def test_open_regions_of_threads_count_until_the_last_reading(tmp_path: Path) -> None:
    """Each the time of its own thread."""
    regions = play(tmp_path, "killed_threads", "command line")

    for name in ("work", "wait"):
        assert regions[name].open_calls == 1
        assert regions[name].cpu_seconds == about(regions.truth[name])


def test_parallel_regions_do_not_nest(tmp_path: Path) -> None:
    """They share what is done while they overlap, and say so; what they contain is beside them."""
    regions = play(tmp_path, "parallel")

    assert sorted(regions) == ["parse", "request"]
    assert regions["request"].calls == 3
    assert regions["request"].own_cpu_seconds == about(regions.truth["request"])
    assert regions["parse"].cpu_seconds == about(regions.truth["parse"])
    assert regions["request"].cpu_basis == "shared"


@pytest.mark.parametrize("front", FRONTS)
def test_parallel_regions_in_tasks_have_their_own_time(tmp_path: Path, front: str) -> None:
    """Each request the time of its task, with the regions that it enters."""
    regions = play(tmp_path, "parallel_tasks", front)

    assert sorted(regions) == ["serve", "serve/parse", "serve/request"]
    assert regions["serve/request"].calls == 10
    assert regions["serve/request"].own_cpu_seconds == about(regions.truth["request"])
    assert regions["serve/request"].cpu_seconds == about(regions.truth["request"] + regions.truth["parse"])
    assert regions["serve/request"].cpu_basis == "exact"
