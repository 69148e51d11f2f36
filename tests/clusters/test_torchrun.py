"""Ranks that torchrun starts, lets fail, and starts again."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

import gpu_tracker as gput
from clusters.truths import check_against, read_truths

BIN = Path(sys.executable).parent
FAILING = Path(__file__).parent / "failing.py"
FAILING_ONCE = Path(__file__).parent / "failing_once.py"
RANKS = 4

Launch = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    """Runs the program under torchrun, each rank tracked."""
    _skip_without_torch()

    def run(*options: str, seconds: float = 180, program: Path = FAILING) -> subprocess.CompletedProcess[str]:
        meeting = ("--nnodes=1", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--rdzv-id=train")
        tracked = (BIN / "gpu-tracker", "run", "--record", "runs", "--", sys.executable, program)
        return subprocess.run(
            [BIN / "torchrun", *meeting, f"--nproc-per-node={RANKS}", *options, "--no-python", *tracked],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    return run


def _skip_without_torch() -> None:
    if find_spec("torch") is None or not (BIN / "torchrun").exists():
        pytest.skip("torch is not installed: `make clusters` installs it")


def test_a_rank_that_fails_is_named(launch: Launch, tmp_path: Path) -> None:
    """And not those that torchrun ends because of it."""
    done = launch("--max-restarts=0")
    combined = gput.combine(tmp_path / "runs")
    recordings = [gput.load(path) for path in sorted((tmp_path / "runs").rglob("*.jsonl"))]
    identities = [one.header.identity for one in recordings]

    assert done.returncode == 1, done.stderr
    assert [(one.launcher, one.run_id, one.rank, one.local_rank, one.ranks) for one in identities] == [
        ("torchrun", "train", rank, rank, RANKS) for rank in range(RANKS)
    ]
    assert [one.report.exit_code for one in recordings] == [-15, -15, 5, -15]
    assert combined.job.state == "failed"
    assert combined.notes[0].startswith(
        f"rank 2 on {recordings[2].header.host} failed first, with exit code 5"
    )
    assert any(note.startswith("SIGTERM (15) reached 3 of 4 recordings") for note in combined.notes)


def test_ranks_that_are_started_again_are_another_run(launch: Launch, tmp_path: Path) -> None:
    """Never added to the first."""
    done = launch("--max-restarts=1")
    folder = tmp_path / "runs/job-train"
    files = sorted(path.name for path in folder.iterdir())
    again = [gput.load(folder / name) for name in files if ".a1" in name]
    told = subprocess.run(
        [BIN / "gpu-tracker", "combine", "--job", "train", "runs"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    combined = gput.combine(folder)

    assert done.returncode == 0, done.stderr
    assert len(files) == 2 * RANKS
    assert [one.header.identity.rank for one in again] == list(range(RANKS))
    assert {one.header.identity.attempt for one in again} == {1}
    check_against(read_truths(done.stdout), again)
    assert "2 runs, not added up, 8 recordings on 1 host" in told
    assert [(task.ranks, task.exit_code) for task in combined.tasks] == [(RANKS, -15), (RANKS, 0)]


def test_a_launch_of_the_same_name_is_another_run(launch: Launch, tmp_path: Path) -> None:
    """Neither a copy nor an attempt of the first: each has all of its ranks."""
    for _ in range(2):
        (tmp_path / "failed").touch()
        assert launch("--max-restarts=0", program=FAILING_ONCE).returncode == 0
    combined = gput.combine(tmp_path / "runs")
    (group,) = gput.compare(tmp_path / "runs").to_json()["groups"]

    assert [(task.name, task.ranks, task.exit_code) for task in combined.tasks] == [
        ("launch 1", RANKS, 0),
        ("launch 2", RANKS, 0),
    ]
    assert (group["runs"], group["incomplete"], group["failures"]) == (2, [], [])


def test_a_node_that_did_not_fail_is_in_the_same_attempt(tmp_path: Path) -> None:
    """Its agent starts its ranks again without counting that."""
    _skip_without_torch()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    meeting = ("--nnodes=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=train")
    tracked = (BIN / "gpu-tracker", "run", "--record", "runs", "--", sys.executable, FAILING_ONCE)
    options = ("--nproc-per-node=2", "--max-restarts=1", "--monitor-interval=0.5", "--no-python")
    agents = [
        subprocess.Popen(
            [BIN / "torchrun", *meeting, *options, *tracked], cwd=tmp_path, stderr=subprocess.DEVNULL
        )
        for _ in range(2)
    ]
    try:
        codes = [agent.wait(240) for agent in agents]
    finally:
        for agent in agents:
            agent.kill()
    identities = [gput.load(path).header.identity for path in (tmp_path / "runs").rglob("*.jsonl")]
    combined = gput.combine(tmp_path / "runs")

    assert codes == [0, 0]
    assert sorted(one.attempt or 0 for one in identities) == [0] * 6 + [1] * 2
    assert [(task.name, task.ranks, task.exit_code) for task in combined.tasks][1:] == [
        ("attempt 1", RANKS, 0)
    ]
    assert not any("no recording" in note for note in combined.notes)
