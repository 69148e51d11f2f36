"""A real Ray on nodes of their own: each node has a recording, each task its figures, and the loss of a node costs nothing."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gpu_tracker as gput
from clusters import ray_nodes

pytestmark = pytest.mark.skipif(
    os.environ.get("REAL_CLUSTER") is None,
    reason="REAL_CLUSTER is not set: `make ray` installs Ray and runs these",
)
JOB = str(Path(__file__).parent / "ray_job.py")


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, Any]]:
    """What a driver has told that ran while a third node came and went; its recordings are there as long as this."""
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:
        with ray_nodes.start(Path(folder)) as nodes:
            text = ""
            with nodes.run(sys.executable, JOB, str(nodes.runs)) as driver:
                for line in driver.stdout or ():
                    text = line
                    if line == "join\n":
                        third = nodes.start(shares_runs=False)
                    elif line == "lose\n":
                        nodes.kill(third)
            assert driver.returncode == 0, nodes.read_logs()
            yield json.loads(text)


@pytest.fixture(scope="module")
def recordings(told: dict[str, Any]) -> list[gput.Recording]:
    """One of each node, in the order in which they came."""
    return list(map(gput.load, told["recordings"]))


def find_regions(recordings: list[gput.Recording], name: str) -> list[gput.Region]:
    """The region of a task, on each node that had it."""
    return [region for one in recordings for region in one.regions if region.path == (name,)]


def test_each_node_has_a_recording(told: dict[str, Any], recordings: list[gput.Recording]) -> None:
    """Also the one that came later, and shares no directory with the others."""
    hosts = [one.header.host for one in recordings]

    assert sorted(hosts[:2]) == ["r1", "r2"]
    assert hosts[2:] == ["r3"]
    assert {Path(one.path).name.startswith("r3-") for one in recordings[:2]} == {False}
    assert Path(recordings[2].path).parent == Path(recordings[0].path).parent
    assert {one.header.identity.launcher for one in recordings} == {"ray"}
    assert {truth["node"] for truth in told["truths"]["burn"]} == {"r1", "r2"}
    # A tracker of the driver has measured none of it, and says so.
    (note,) = (note for note in told["own_notes"] if "workers of Ray" in note)
    assert "watch_nodes()" in note
    assert all(name in told["text"] for name in ("r1: 1 recording", "r2: 1 recording", "r3: 1 recording"))


def test_tasks_are_told_apart_by_the_names_of_processes(told: dict[str, Any]) -> None:
    """CPU time and peaks of each name over all nodes, without anything in the workers."""
    tasks = told["tasks"]

    truths = {**told["truths"], "burn": [*told["truths"]["burn"], told["far"]]}
    for name in ("burn", "large", "small", "Keeper.keep"):
        # What a task does before and after our stopwatch, and in the tenth of a second before it is seen.
        assert tasks[name][0] == pytest.approx(
            sum(truth["cpu"] for truth in truths[name]), rel=0.15, abs=0.25
        )
    for name in ("large", "small", "Keeper.keep"):
        assert tasks[name][1] == pytest.approx(max(truth["ram"] for truth in truths[name]), rel=0.03)


def test_the_hook_makes_each_task_a_region(told: dict[str, Any], recordings: list[gput.Recording]) -> None:
    """With all calls and their own peaks, also of small tasks after large ones."""
    for name in ("burn", "large", "small", "Keeper.keep"):
        truths = [*told["truths"][name], *([told["far"]] if name == "burn" else [])]
        regions = find_regions(recordings, name)
        used = sum(region.cpu_seconds for region in regions)

        assert sum(region.calls for region in regions) == len(truths)
        assert {region.peak_ram_basis for region in regions} == {"exact"}
        # Before and after our stopwatch, functions are fetched, and results sent; the first time, Ray imports what it needs for that.
        assert sum(truth["cpu"] for truth in truths) <= used * 1.02
        assert used <= sum(truth["cpu"] for truth in truths) + 0.15 * len(truths)
        if name != "burn":  # which has less than Ray needs after the first task of a process
            peak = max(region.peak_ram_bytes or 0 for region in regions)
            assert peak == pytest.approx(max(truth["ram"] for truth in truths), rel=0.02)


def test_a_worker_that_is_killed_loses_nothing(recordings: list[gput.Recording]) -> None:
    """The task that it died in is open, and its memory is known."""
    (region,) = find_regions(recordings, "die")

    assert (region.calls, region.open_calls) == (0, 1)
    assert (region.peak_ram_bytes or 0) >= 120_000_000
    assert region.cpu_seconds >= 0.3  # of 0.6 s, up to the last reading


def test_a_node_that_is_lost_keeps_what_was_brought(
    told: dict[str, Any], recordings: list[gput.Recording]
) -> None:
    """Up to the last second, from a disk that nobody has any more."""
    lost = recordings[2]
    (region,) = find_regions([lost], "burn")

    assert not lost.is_complete
    assert [one.is_complete for one in recordings[:2]] == [True, True]
    assert lost.problems == ()
    assert region.calls == 1
    assert told["far"]["cpu"] * 0.98 <= region.cpu_seconds <= told["far"]["cpu"] + 0.15
    assert lost.report.summary.cpu.combined.seconds >= told["far"]["cpu"] * 0.9
