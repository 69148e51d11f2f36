"""Parts of a parallel job: where their recordings go, who prints, and what they are together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import COMMAND, Run
from patience import wait_until

SLURM = {"SLURM_JOB_ID": "47", "SLURM_STEP_ID": "0", "SLURMD_NODENAME": "n1", "SLURM_NTASKS": "4"}


def be(rank: int) -> dict[str, str]:
    """The environment of a rank."""
    return {**SLURM, "SLURM_PROCID": str(rank)}


def test_ranks_write_into_the_directory_of_their_job(run: Run, tmp_path: Path) -> None:
    """Two of one name as well: a batch script may run several commands."""
    for rank in (3, 0, 3):
        assert run("run", "--record", "runs", "--", "true", **be(rank)).returncode == 0

    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.jsonl"))
    assert names == [f"runs/job-47/s0-n1-{rank}.jsonl" for rank in ("r0", "r3-2", "r3")]


def test_only_the_first_rank_prints(run: Run, tmp_path: Path) -> None:
    """Unless all or none are to; a file is written by everyone who is asked for one."""
    first, other = (run("run", "--", "true", **be(rank)) for rank in (0, 3))
    loud = run("run", "--say", "all", "--", "true", **be(3))
    silent = run("run", "--", "true", **be(0), GPU_TRACKER_SAY="none")
    told = run("run", "-o", "told.txt", "--", "true", **be(3))
    wrong = run("run", "--", "true", GPU_TRACKER_SAY="some")

    assert first.stderr.startswith("true: exit code 0")
    assert loud.stderr.startswith("true: exit code 0")
    assert [other.stderr, silent.stderr, told.stderr] == ["", "", ""]
    assert (tmp_path / "told.txt").read_text().startswith("true: exit code 0")
    assert wrong.returncode == 0  # a variable keeps no job from running
    assert wrong.stderr.startswith(
        "gpu-tracker: GPU_TRACKER_SAY=some is ignored: use all, first or none.\ntrue: "
    )


def test_long_names_of_runs_that_begin_alike_are_apart(run: Run, tmp_path: Path) -> None:
    """Each is found by its whole name."""
    for letter in "ab":
        run_id = 60 * "x" + letter
        assert (
            run("run", "--record", "runs", "--", "true", RANK="0", TORCHELASTIC_RUN_ID=run_id).returncode == 0
        )

    assert len(list((tmp_path / "runs").iterdir())) == 2
    for letter in "ab":
        told = run("combine", "--job", 60 * "x" + letter, "runs").stdout
        assert told.startswith("1 recording on 1 host")


def test_steps_of_a_job_have_ranks_of_their_own(run: Run) -> None:
    """A rank that one of them lacks is missing, whatever the other has."""
    for step, rank in (("0", 0), ("0", 1), ("0", 3), *(("1", rank) for rank in range(4))):
        environment = {**be(rank), "SLURM_STEP_ID": step, "SLURM_NTASKS": "4"}
        assert run("run", "--record", "runs", "--", "true", **environment).returncode == 0
    told = run("combine", "--job", "47", "runs").stdout

    assert told.startswith("Slurm job 47: 2 runs, not added up, 7 recordings on 1 host")
    assert "note: step 0: no recording of rank 2" in told
    assert "step 1: no recording" not in told


def test_a_rank_fails_as_its_command_does(run: Run) -> None:
    """Whoever prints."""
    assert run("run", "--", "false", **be(3)).returncode == 1


def test_a_variable_says_where_recordings_go(run: Run, tmp_path: Path) -> None:
    """For commands, and for programs with a tracker."""
    run("run", "--", "true", GPU_TRACKER_RECORD=str(tmp_path / "here"))

    assert len(list((tmp_path / "here").iterdir())) == 1


@pytest.mark.parametrize("place", [("runs",), ("--job", "47", "runs"), ("--job", "47")])
def test_the_job_is_named_with_the_ranks_that_are_missing(run: Run, place: tuple[str, ...]) -> None:
    """By its number, or by the directory of directories."""
    environment = {"GPU_TRACKER_RECORD": "runs"}
    for rank in (0, 1, 3):
        run("run", "--", "true", **be(rank), **environment)
    text = run("combine", *place, **environment).stdout

    assert text.splitlines()[0] == (
        "Slurm job 47, completed: 3 recordings on 1 host, 3 of 4 ranks (no recording of rank 2)"
    )
    assert "rank 3 on n1" in text or "rank 1 on n1" in text or "rank 0 on n1" in text


def test_a_job_without_recordings_is_said(run: Run, tmp_path: Path) -> None:
    """With where it was looked for."""
    (tmp_path / "runs").mkdir()
    done = run("combine", "--job", "48", "runs")

    assert (done.returncode, done.stderr) == (2, "gpu-tracker: There is no recording of job 48 in runs.\n")


def test_work_that_is_done_elsewhere_is_said(run: Run, tmp_path: Path) -> None:
    """In the summary, and in every later report."""
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\n")
    srun.chmod(0o755)
    done = run("run", "--record", "x.jsonl", "--", str(srun), "-n", "4", "python", "train.py")
    later = run("report", "x.jsonl")

    for text in (done.stderr, later.stdout):
        assert "srun has its work done elsewhere (by Slurm)" in " ".join(text.split())


@pytest.mark.parametrize(
    "script", ["exec srun -n 4 train", "srun -n 4 train; true"], ids=["alone", "in a script"]
)
def test_no_gate_passes_work_that_is_done_elsewhere(run: Run, tmp_path: Path, script: str) -> None:
    """And every reader says so: of a launcher, and of a script that starts one."""
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\nsleep 2\n")
    srun.chmod(0o755)
    gate = "--fail-if", "peak_ram > 1TB"
    tracked = run(
        *("run", "--record", "x.jsonl", *gate, "--", "sh", "-c", script),
        PATH=f"{tmp_path}:{os.environ['PATH']}",
    )
    compared, combined, sized = (
        run(*words, "x.jsonl") for words in (("compare", *gate), ("combine",), ("size",))
    )

    assert (tracked.returncode, compared.returncode) == (2, 2)
    assert "without the work that was done elsewhere" in tracked.stderr
    assert "next time, at least" in sized.stdout
    for text in (tracked.stderr, compared.stdout, combined.stdout, sized.stdout):
        assert "It has its work done elsewhere (by Slurm)" in " ".join(text.split())


def test_readers_take_a_job(run: Run, tmp_path: Path) -> None:
    """By its ID, instead of the directory of directories."""
    for job, rank in (("47", 0), ("47", 1), ("48", 0)):
        run("run", "--record", "runs", "--", "true", **{**be(rank), "SLURM_JOB_ID": job})
    listed = {
        words: json.loads(run("ls", "runs", "-f", "json", *words).stdout)
        for words in [("--job", "47"), ("--filter", "job~48"), ()]
    }
    by_size = run("size", "--job", "47", "runs")
    nothing = run("ls", "--job", "49", "runs")

    assert {words: [one["identity"]["job"] for one in found] for words, found in listed.items()} == {
        ("--job", "47"): ["47", "47"],
        ("--filter", "job~48"): ["48"],
        (): ["48", "47", "47"],
    }
    assert {one["identity"]["rank"] for one in listed["--job", "47"]} == {0, 1}
    assert (by_size.returncode, nothing.returncode) == (0, 2)
    assert nothing.stderr == "gpu-tracker: There is no recording of job 49 in runs.\n"


def test_no_gate_passes_because_a_script_goes_on(run: Run, tmp_path: Path) -> None:
    """Its ranks are recorded too: one was killed, then one has no recording."""
    program = "import os, time; time.sleep(1.2); os.kill(os.getpid(), 9 * (os.environ['OMPI_COMM_WORLD_RANK'] == '1'))"
    (tmp_path / "rank.py").write_text(program)
    (tmp_path / "launch.sh").write_text(
        f"""
for rank in 0 1; do
    OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=$rank {sys.executable} -m gpu_tracker run --record runs -- {sys.executable} rank.py &
done
wait
"""
    )
    run("run", "--record", "runs", "--", "sh", "launch.sh", SLURM_JOB_ID="47")
    told = run("combine", "runs").stdout
    killed = run("compare", "runs", "--fail-if", "time > 100s")
    (lost,) = (tmp_path / "runs" / "job-47").glob("*r1*")
    lost.unlink()
    missing = run("compare", "runs", "--fail-if", "time > 100s")

    assert told.splitlines()[0] == "Slurm job 47, killed or failed: 3 recordings on 1 host, 2 ranks"
    assert (killed.returncode, missing.returncode) == (2, 2)
    assert "did not succeed (a recorded part of it: killed by signal 9)" in killed.stderr
    assert "incomplete (no recording of rank 1)" in missing.stderr


def test_a_request_without_all_ranks_says_so(run: Run) -> None:
    """What the missing one needs is not in it."""
    for rank in (0, 1, 3):
        run("run", "--record", "runs", "--", "sleep", "0.3", **be(rank))
    done = run("size", "runs", "-f", "json")
    sizing = json.loads(done.stdout)

    assert sizing["memory_bytes"]["is_at_least"] is True
    assert any("no recording of rank 2" in note for note in sizing["notes"])


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Path]:
    """Two ranks that write into the directory of their job."""
    started = [
        subprocess.Popen(
            [COMMAND, "run", "--record", "runs", "--", "sleep", "600"],
            cwd=tmp_path,
            env={**os.environ, **be(rank), "SLURM_NTASKS": "2"},
            stderr=subprocess.DEVNULL,
        )
        for rank in range(2)
    ]
    folder = tmp_path / "runs/job-47"
    wait_until(
        lambda: sum(b'{"sample"' in path.read_bytes() for path in folder.glob("*.jsonl")) == 2,
        "both have samples",
        seconds=60,
    )
    yield folder
    for process in started:
        process.terminate()
        process.wait()


def test_a_job_is_shown_while_its_ranks_write(run: Run, running: Path, tmp_path: Path) -> None:
    """As text, as a page, in lists, and rank by rank."""
    text = run("combine", "runs").stdout
    page = run("combine", "runs", "-o", "job.html")
    listed = run("ls", "runs").stdout
    frame = run("top", "--once", "runs").stdout

    assert text.startswith("Slurm job 47, running: 2 recordings on 1 host, 2 ranks\n")
    assert sum(line.endswith("  still running") for line in text.splitlines()) == 2
    assert page.returncode == 0, page.stderr
    assert "Slurm job 47, running" in (tmp_path / "job.html").read_text()
    assert listed.count("still running") == 2
    assert {f"runs/job-47/{path.name}" for path in running.iterdir()} <= set(listed.split())
    assert "rank 0 on n1: sleep 600" in frame or "rank 1 on n1: sleep 600" in frame
