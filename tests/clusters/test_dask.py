"""A real scheduler and real workers of Dask: each worker has a recording, each kind of task a region, and a kill costs nothing."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import gpu_tracker as gput
from patience import wait_until

pytestmark = pytest.mark.skipif(
    os.environ.get("REAL_CLUSTER") is None,
    reason="REAL_CLUSTER is not set: `make clusters` installs Dask and runs these",
)
BIN = Path(sys.executable).parent
JOB = Path(__file__).parent / "dask_job.py"
# Found by workers too: tasks are sent by name.
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(JOB.parent),
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE": "False",
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory with a short name."""
    with tempfile.TemporaryDirectory(prefix="dask-", dir="/tmp") as path:
        yield Path(path)


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[..., str]]:
    """Starts a scheduler and two workers with nannies; the file by which they are found."""
    with contextlib.ExitStack() as stack:

        def run(command: Sequence[str], log: str, **variables: str) -> subprocess.Popen[bytes]:
            with (folder / f"{log}.log").open("wb") as file:
                started = subprocess.Popen(
                    command, env={**ENVIRONMENT, **variables}, cwd=folder, stdout=file, stderr=file
                )
            stack.callback(_end, started)
            return started

        def start_cluster(*options: str, before: Sequence[str] = (), **variables: str) -> str:
            place = folder / "scheduler.json"
            quiet = ("--no-dashboard", "--host", "127.0.0.1")
            run(
                [str(BIN / "dask"), "scheduler", "--port", "0", "--scheduler-file", str(place), *quiet],
                "scheduler",
            )
            wait_until(place.exists, "the scheduler runs")
            for number in range(2):
                command = [
                    str(BIN / "dask"),
                    "worker",
                    "--scheduler-file",
                    str(place),
                    "--name",
                    f"w{number}",
                ]
                local = ("--local-directory", str(folder / f"local{number}"))
                run([*before, *command, *quiet, *local, *options], f"worker{number}", **variables)
            return str(place)

        yield start_cluster


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run_job(scheduler: str, folder: Path, *wishes: str) -> dict[str, Any]:
    """What the client has told in the end."""
    command = [sys.executable, str(JOB), scheduler, "2", str(folder / "runs"), *wishes]
    (folder / "runs").mkdir(exist_ok=True)
    environment = {**ENVIRONMENT, "TMPDIR": str(folder)}
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=120)
    logs = "\n".join(log.read_text()[-2000:] for log in folder.glob("*.log"))
    assert done.returncode == 0, f"{done.stderr}\n{logs}"
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def find_regions(recordings: Sequence[gput.Recording]) -> dict[str, list[gput.Region]]:
    """Of all recordings, by name."""
    found: dict[str, list[gput.Region]] = {}
    for recording in recordings:
        for region in recording.regions:
            found.setdefault("/".join(region.path), []).append(region)
    return found


def check_alone(told: dict[str, Any], recordings: Sequence[gput.Recording]) -> None:
    """Tasks that ran one at a time in each worker."""
    regions = find_regions(recordings)
    assert set(regions) == set(told["truths"])
    for name, truths in told["truths"].items():
        assert sum(region.calls for region in regions[name]) == len(truths)
        assert max(region.peak_ram_bytes or 0 for region in regions[name]) == pytest.approx(
            max(truth["ram"] for truth in truths), rel=0.01
        )
        assert {region.peak_ram_basis for region in regions[name]} == {"exact"}


def test_each_kind_of_task_has_its_own_peak_and_cpu_time(start: Callable[..., str], folder: Path) -> None:
    """With one thread per worker, small tasks after large ones too; CPU time is that of the worker meanwhile."""
    told = run_job(start("--nthreads", "1"), folder, "large=4", "small=8")
    recordings = list(map(gput.load, told["recordings"]))
    regions = find_regions(recordings)

    check_alone(told, recordings)
    for name, truths in told["truths"].items():
        seconds = sum(truth["cpu"] for truth in truths)
        used = sum(region.cpu_seconds for region in regions[name])
        assert seconds <= used * 1.02
        assert used <= seconds + len(truths) * 0.12  # it is also sent and received
        assert {region.cpu_basis for region in regions[name]} == {"shared"}
    assert {one.header.identity.launcher for one in recordings} == {"dask"}
    assert {dict(one.header.identity.labels)["worker"] for one in recordings} == {"w0", "w1"}
    assert all(one.is_complete for one in recordings)
    assert told["peak"] >= max(truth["ram"] for truth in told["truths"]["large"])
    assert "time in large" in told["text"]
    # A tracker of the client has measured none of it, and says so.
    (note,) = (note for note in told["own_notes"] if "Dask" in note)
    assert "run elsewhere" in note
    assert "track_cluster(client)" in note


def test_workers_of_a_local_cluster_are_also_the_clients(folder: Path) -> None:
    """They are its children: both measure them, and nothing is elsewhere."""
    told = run_job("local", folder, "large=4")

    check_alone(told, list(map(gput.load, told["recordings"])))
    assert [note for note in told["own_notes"] if "elsewhere" in note] == []
    assert told["own_ram"] >= max(truth["ram"] for truth in told["truths"]["large"])


def test_tasks_that_overlap_are_all_counted(start: Callable[..., str], folder: Path) -> None:
    """Four threads in each worker, whose tasks begin and end in any order."""
    told = run_job(start("--nthreads", "4"), folder, "meet=24")
    regions = find_regions(list(map(gput.load, told["recordings"])))
    truths = told["truths"]["meet"]

    assert set(regions) == {"meet"}
    assert sum(region.calls for region in regions["meet"]) == len(truths)
    assert sum(region.open_calls for region in regions["meet"]) == 0
    # Tasks beside each other count each: more time than the workers had.
    spent = sum(region.wall_seconds for region in regions["meet"])
    assert spent >= sum(truth["seconds"] for truth in truths)
    assert len({truth["thread"] for truth in truths}) > 2


def test_a_worker_that_its_nanny_kills_loses_nothing(start: Callable[..., str], folder: Path) -> None:
    """It has more memory than it may; its recording has what it did before, and the task that it died of."""
    told = run_job(
        start("--nthreads", "1", "--memory-limit", "400MB"), folder, "large=2", "hoard=1", "small=2"
    )
    recordings = list(map(gput.load, told["recordings"]))
    regions = find_regions(recordings)
    (killed,) = (one for one in recordings if any(region.path == ("hoard",) for region in one.regions))
    (hoard,) = regions["hoard"]
    hoarded = list(map(int, (folder / "runs" / "hoarded").read_text().split()))

    assert len(recordings) == 3
    assert "exceeded 95% memory budget" in " ".join(log.read_text() for log in folder.glob("worker*.log"))
    assert (hoard.calls, hoard.open_calls) == (0, 1)
    # The last reading before the kill, which comes in the middle of an allocation.
    assert max(hoarded) * 0.8 <= (hoard.peak_ram_bytes or 0) <= max(hoarded) + 25_000_000
    assert sum(region.calls for region in regions["large"]) == 2
    assert sum(region.calls for region in regions["small"]) == 2
    assert killed.is_complete
    assert [one.is_complete for one in recordings] == [True] * 3


def test_without_a_client(start: Callable[..., str], folder: Path) -> None:
    """`--preload` tracks a worker from its start to its end."""
    place = start(
        "--nthreads",
        "1",
        "--preload",
        "gpu_tracker.integrations.dask",
        GPU_TRACKER_RECORD=str(folder / "preloaded"),
    )

    def find_begun() -> list[Path]:
        return [file for file in (folder / "preloaded").glob("*.jsonl") if file.stat().st_size]

    wait_until(lambda: len(find_begun()) == 2, "both are tracked")
    identities = [gput.load(file).header.identity for file in find_begun()]

    assert Path(place).exists()
    assert {one.launcher for one in identities} == {"dask"}
    assert {dict(one.labels)["worker"] for one in identities} == {"w0", "w1"}


def test_recordings_come_from_machines_that_do_not_share_the_directory(
    start: Callable[..., str], folder: Path
) -> None:
    """Workers that see another, empty directory in its place."""
    (folder / "runs").mkdir()
    apart = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {folder}/runs && exec "$@"', "sh"]
    told = run_job(start("--nthreads", "1", before=apart), folder, "large=2", "small=2")
    recordings = list(map(gput.load, told["recordings"]))

    assert len(recordings) == 2
    assert {Path(one.path).parent for one in recordings} == {folder / "runs"}
    check_alone(told, recordings)
    assert all(one.is_complete for one in recordings)
    assert [one.problems for one in recordings] == [(), ()]


def run_two_trackers(scheduler: str, folder: Path) -> dict[str, Any]:
    """What the client has told in the end."""
    script = JOB.with_name("dask_twice.py")
    directories = [str(folder / name) for name in ("first", "second")]
    command = [sys.executable, str(script), scheduler, "2", *directories]
    done = subprocess.run(command, env=ENVIRONMENT, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**told, "warnings": done.stderr}


def test_two_trackers_of_one_cluster_do_not_disturb_each_other(
    start: Callable[..., str], folder: Path
) -> None:
    """Tasks are counted once, by the tracker that began last, as of nested trackers; none leaves anything behind."""
    told = run_two_trackers(start("--nthreads", "1"), folder)
    calls = {
        name: {
            region: sum(one.calls for one in regions)
            for region, regions in find_regions(list(map(gput.load, told[name]))).items()
        }
        for name in ("first", "second")
    }

    assert calls == {"first": {"both": 8}, "second": {"later": 8}}
    assert told["left"] == []


def test_workers_without_the_package_work_untracked(start: Callable[..., str], folder: Path) -> None:
    """One sentence says so, and nothing is left that would keep other workers from starting."""
    hidden = str(JOB.parent / "without_gput")
    told = run_two_trackers(start("--nthreads", "1", PYTHONPATH=f"{hidden}:{JOB.parent}"), folder)

    assert (told["both"], told["later"]) == (list(range(8)), list(range(8)))
    assert (told["first"], told["second"], told["left"]) == ([], [], [])
    assert "is not tracked: " in told["warnings"]
    assert "Install gput there." in told["warnings"]
