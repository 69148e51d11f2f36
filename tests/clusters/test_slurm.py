"""Ranks under a real Slurm: every recording is there, knows which rank it is, and is right."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpu_tracker as gput
from clusters.slurm import NODES, SPARE, Cluster
from clusters.truths import check_against, read_truths
from patience import wait_until

WORK = str(Path(__file__).parent / "work.py")
SAVING = Path(__file__).parent / "saving.py"
IMBALANCED = Path(__file__).parent / "imbalanced.py"
PYTHON = "/usr/bin/python3"


def read_clock(text: str) -> float:
    """Seconds, of `1m2.345s`."""
    minutes, _, seconds = text.rstrip("s").partition("m")
    return 60 * float(minutes) + float(seconds)


@pytest.fixture
def work(shared: Path) -> str:
    """The workload, where every user can read it."""
    copy = shared / "work.py"
    copy.write_text(Path(WORK).read_text())
    copy.chmod(0o755)
    return str(copy)


def list_files(shared: Path) -> list[str]:
    """The recordings, below the directory."""
    return sorted(str(path.relative_to(shared / "runs")) for path in (shared / "runs").rglob("*.jsonl"))


def test_srun_on_two_nodes(cluster: Cluster, tracker: str, shared: Path, work: str) -> None:
    """Four ranks on each, which may have the same process IDs."""
    done = cluster.run(
        "srun", "-N2", "-n8", tracker, "run", "--record", "runs", "--", PYTHON, work, "60", "0.5", cwd=shared
    )
    files = list_files(shared)
    recordings = [gput.load(shared / "runs" / file) for file in files]
    identities = [one.header.identity for one in recordings]

    assert done.returncode == 0
    assert len(read_truths(done.stdout)) == len(files) == 8
    check_against(read_truths(done.stdout), recordings)
    assert sorted((one.rank, one.node) for one in identities) == [
        (rank, NODES[rank // 4]) for rank in range(8)
    ]
    assert {(one.scheduler, one.launcher, one.ranks, one.nodes, one.step) for one in identities} == {
        ("slurm", "slurm", 8, 2, "0")
    }
    assert {file.partition("/")[0] for file in files} == {f"job-{identities[0].job}"}
    assert done.stderr.count("exit code 0") == 1  # the first rank's


def test_mpirun_on_two_nodes(cluster: Cluster, tracker: str, shared: Path, work: str) -> None:
    """Where Slurm's own rank is 0 everywhere."""
    script = shared / "job.sh"
    script.write_text(
        f"#!/bin/sh\ncd {shared}\nmpirun -n 8 {tracker} run --record runs -- {PYTHON} {work} 40 0.5\n"
    )
    number = cluster.batch("-N2", "-n8", "-o", "out", str(script), cwd=shared)
    files = list_files(shared)
    recordings = [gput.load(shared / "runs" / file) for file in files]
    identities = [one.header.identity for one in recordings]

    assert sorted(one.rank or 0 for one in identities) == list(range(8))
    assert {one.launcher for one in identities} == {"openmpi"}
    assert {one.job for one in identities} == {number}
    assert {one.node for one in identities} == set(NODES)
    check_against(read_truths((shared / "out").read_text()), recordings)


def test_an_array_has_a_directory_for_each_task(
    cluster: Cluster, tracker: str, shared: Path, work: str
) -> None:
    """Named by the array and the task."""
    script = shared / "job.sh"
    script.write_text(f"#!/bin/sh\ncd {shared}\nsrun {tracker} run --record runs -- {PYTHON} {work} 20 0.5\n")
    number, files = cluster.batch("--array=0-3", "-o", "out-%a", str(script), cwd=shared), list_files(shared)
    recordings = [gput.load(shared / "runs" / file) for file in files]
    identities = [one.header.identity for one in recordings]

    assert [file.partition("/")[0] for file in files] == [f"job-{number}_{task}" for task in range(4)]
    assert [(one.array_job, one.array_task, one.rank, one.step) for one in identities] == [
        (number, str(task), 0, "0") for task in range(4)
    ]
    assert {one.report.exit_code for one in recordings} == {0}
    for task, recording in enumerate(recordings):
        check_against(read_truths((shared / f"out-{task}").read_text()), [recording])


def test_the_exit_code_is_the_jobs(cluster: Cluster, tracker: str, shared: Path) -> None:
    """Of the worst rank, as without a tracker."""
    command = ["sh", "-c", "exit $SLURM_PROCID"]
    bare = cluster.run("srun", "-n3", *command, cwd=shared)
    tracked = cluster.run("srun", "-n3", tracker, "run", "--record", "runs", "--", *command, cwd=shared)

    assert bare.returncode == tracked.returncode == 2
    codes = [gput.load(shared / "runs" / file).report.exit_code for file in list_files(shared)]
    assert set(codes) == {0, 1, 2}


def test_a_cancelled_step_is_told_and_recorded(
    cluster: Cluster, tracker: str, shared: Path, work: str
) -> None:
    """Slurm tells only the tracker, which passes it on."""
    script = shared / "job.sh"
    script.write_text(
        f"#!/bin/sh\ncd {shared}\nsrun {tracker} run --record runs -- {PYTHON} {work} 20 0.5 60\n"
    )
    number = cluster.run("sbatch", "--parsable", "-o", "out", str(script), cwd=shared).stdout.strip()
    wait_until((shared / "ready").exists, "it works", seconds=60)
    cluster.run("scancel", number, cwd=shared)
    cluster.wait_for_job(number, shared)
    (file,) = list_files(shared)
    recording, told = gput.load(shared / "runs" / file), (shared / "told").read_text()
    report, identity = recording.report, recording.header.identity

    assert told.startswith("told to end\n")  # what it prints then reaches nobody
    check_against(read_truths(told), [recording])
    assert (identity.job, identity.step, identity.rank, identity.ranks) == (number, "0", 0, 1)
    assert report.exit_code == 3
    assert any(note.startswith("The job got SIGTERM (15) after ") for note in report.notes)
    assert gput.combine(shared / "runs").job.state == "told to end"
    told = cluster.run(tracker, "combine", "--job", number, "runs", cwd=shared).stdout
    assert told.startswith(f"Slurm job {number} (job.sh), cancelled: ")  # Slurm was asked
    shown = cluster.run(tracker, "report", f"runs/{file}", cwd=shared).stdout
    assert f"note: Slurm job {number}: cancelled." in shown


def test_no_gate_passes_a_cancelled_program_that_ends_well(
    cluster: Cluster, tracker: str, shared: Path
) -> None:
    """It has a tracker of its own, which sees neither the signal nor the exit code: Slurm tells."""
    (shared / "saving.py").write_text(SAVING.read_text())
    script, python = shared / "job.sh", str(Path(tracker).with_name("python"))
    script.write_text(f"#!/bin/sh\ncd {shared}\nsrun {python} saving.py\n")
    number = cluster.run("sbatch", "--parsable", "-o", "out", str(script), cwd=shared).stdout.strip()
    wait_until((shared / "ready").exists, "it works", seconds=60)
    cluster.run("scancel", number, cwd=shared)
    cluster.wait_for_job(number, shared)
    (file,) = list_files(shared)
    gate = cluster.run(tracker, "compare", "runs", "--fail-if", "time > 1h", cwd=shared)

    assert (gput.load(shared / "runs" / file).report.ending, (shared / "saved").exists()) == ("stopped", True)
    assert (gate.returncode, "by Slurm: cancelled" in gate.stderr) == (2, True), gate.stderr


def test_a_rank_that_was_killed_for_its_memory_is_told(
    cluster: Cluster, tracker: str, shared: Path, work: str
) -> None:
    """One of four, under the limit of its step; the others go on."""
    program = shared / "some.sh"
    program.write_text(f"exec {PYTHON} {work} $((SLURM_PROCID == 1 ? 900 : 30)) 0.5\n")
    tracked = (tracker, "run", "--record", "runs", "--say", "all", "--", "sh", str(program))
    done = cluster.run("srun", "-N1", "-n4", "--mem=400", *tracked, cwd=shared)
    recordings = {
        one.header.identity.rank: one
        for one in (gput.load(shared / "runs" / file) for file in list_files(shared))
    }
    combined = gput.combine(shared / "runs")

    assert done.returncode != 0
    assert {rank: one.report.exit_code for rank, one in recordings.items()} == {0: 0, 1: -9, 2: 0, 3: 0}
    check_against(read_truths(done.stdout), [recordings[rank] for rank in (0, 2, 3)])
    assert "memory" in done.stderr
    assert combined.job.state == "out of memory"
    assert combined.notes[0].startswith(
        "Memory ran out on n1: the kernel killed processes of rank 1 on n1 at the limit of 400 MiB; its 4 recordings held up to "
    )


def test_the_job_is_one(cluster: Cluster, tracker: str, shared: Path, work: str) -> None:
    """With the rank that did most, and the one of which there is no recording."""
    cluster.run(
        "srun", "-N2", "-n4", tracker, "run", "--record", "runs", "--", "sh", "-c",
        f"exec {PYTHON} {work} 20 $((SLURM_PROCID == 2 ? 2 : 1))", cwd=shared,
    )  # fmt: skip
    files = list_files(shared)
    (shared / "runs" / files[1]).unlink()
    number = files[0].partition("/")[0].removeprefix("job-")
    told = cluster.run(tracker, "combine", "--job", number, "runs", cwd=shared)
    heading, *lines = told.stdout.splitlines()

    assert heading.endswith("3 recordings on 2 hosts, 3 of 4 ranks (no recording of rank 1)")
    (cpu,) = (line for line in lines if line.startswith("CPU time"))
    assert "rank 2 on n" in cpu


def test_the_rank_that_the_others_waited_for_is_named(cluster: Cluster, tracker: str, shared: Path) -> None:
    """By its region: the ranks themselves take equally long."""
    program, script = shared / "imbalanced.py", shared / "job.sh"
    program.write_text(IMBALANCED.read_text())
    python = str(Path(tracker).with_name("python"))
    script.write_text(
        f"#!/bin/sh\ncd {shared}\nmpirun -n 4 {tracker} run --record runs -- {python} {program}\n"
    )
    cluster.batch("-N2", "-n4", "-o", "out", str(script), cwd=shared)
    truths = {truth["rank"]: truth for truth in read_truths((shared / "out").read_text())}
    combined = gput.combine(shared / "runs")
    compute = next(one for one in combined.balance if one.region == "compute")
    whole = next(one for one in combined.balance if one.figure.name == "time" and not one.region)

    assert len(truths) == 4, (shared / "out").read_text()
    assert max(truths, key=lambda rank: truths[rank]["compute"]) == 2
    assert compute.largest == pytest.approx(truths[2]["compute"], rel=0.02)
    assert compute.largest_rank.startswith("rank 2 on n")
    assert combined.notes[0].startswith(f"{compute.largest_rank} spent ")
    assert whole.load_balance_percent is not None
    assert compute.load_balance_percent is not None
    assert whole.load_balance_percent > 85 > compute.load_balance_percent


def test_mpich_without_a_scheduler(cluster: Cluster, tracker: str, shared: Path, work: str) -> None:
    """Its ranks are known; without a job, recordings are named as usual."""
    done = cluster.run(
        "mpiexec.mpich", "-n", "4", tracker, "run", "--record", "runs", "--", PYTHON, work, "30", "0.5", cwd=shared
    )  # fmt: skip
    recordings = [gput.load(shared / "runs" / file) for file in list_files(shared)]
    identities = [one.header.identity for one in recordings]

    assert done.returncode == 0, done.stderr
    assert sorted((one.rank, one.ranks, one.local_rank, one.launcher) for one in identities) == [
        (rank, 4, rank, "mpich") for rank in range(4)
    ]
    check_against(read_truths(done.stdout), recordings)
    assert done.stderr.count("exit code 0") == 1


def test_launches_of_mpich_are_told_apart_by_their_ranks(
    cluster: Cluster, tracker: str, shared: Path, work: str
) -> None:
    """It gives them no ID: each is a run, and one that lacks a rank is incomplete."""
    command = (
        "mpiexec.mpich",
        "-n",
        "2",
        tracker,
        "run",
        "--record",
        "runs",
        "--",
        PYTHON,
        work,
        "30",
        "0.2",
    )
    for _ in range(2):
        assert cluster.run(*command, cwd=shared).returncode == 0
    (both,) = gput.compare(shared / "runs").to_json()["groups"]
    tasks = gput.combine(shared / "runs").tasks
    (shared / "runs" / list_files(shared)[0]).unlink()
    (lacking,) = gput.compare(shared / "runs").to_json()["groups"]

    assert [(task.name, task.ranks) for task in tasks] == [("launch 1", 2), ("launch 2", 2)]
    assert (both["runs"], both["incomplete"]) == (2, [])
    assert lacking["runs"] == 2
    assert [words.startswith("no recording of rank") for words in lacking["incomplete"]] == [True]


def test_mpich_in_a_job(cluster: Cluster, tracker: str, shared: Path, work: str) -> None:
    """Its own launcher, in a batch script; Debian's knows nothing of Slurm, and stays on the first node."""
    script = shared / "job.sh"
    script.write_text(
        f"#!/bin/sh\ncd {shared}\nmpiexec.mpich -n 4 {tracker} run --record runs -- {PYTHON} {work} 40 0.5\n"
    )
    number = cluster.batch("-N1", "-n4", "-o", "out", str(script), cwd=shared)
    recordings = [gput.load(shared / "runs" / file) for file in list_files(shared)]
    identities = [one.header.identity for one in recordings]

    assert sorted((one.rank, one.local_rank, one.node) for one in identities) == [
        (rank, rank, NODES[0]) for rank in range(4)
    ]
    assert {(one.launcher, one.ranks, one.job) for one in identities} == {("mpich", 4, number)}
    check_against(read_truths((shared / "out").read_text()), recordings)


def test_what_is_advised_is_enough(cluster: Cluster, tracker: str, shared: Path, work: str) -> None:
    """The same step runs with what `size` says, which is much less than it was given at first; with half of that it does not."""
    command = (tracker, "run", "--record", "runs", "--", PYTHON, work, "300", "0.2")
    first = cluster.run("srun", "-n1", "--mem=1500", *command, cwd=shared)
    advice = cluster.run(tracker, "size", "runs", "--for", "slurm", cwd=shared).stdout
    (memory,) = (word for word in advice.split() if word.startswith("--mem="))
    megabytes = int(memory.removeprefix("--mem=").rstrip("M"))
    second = cluster.run("srun", "-n1", memory, *command, cwd=shared)
    third = cluster.run("srun", "-n1", f"--mem={megabytes // 2}", *command, cwd=shared)

    assert (first.returncode, second.returncode) == (0, 0), second.stderr
    assert 300 < megabytes < 700
    assert third.returncode != 0
    assert "out of memory" in third.stderr.lower()


def test_a_side_car_on_each_node_sees_the_whole_job(
    cluster: Cluster, tracker: str, shared: Path, work: str
) -> None:
    """One sampler a node, whatever runs there; it ends with the job."""
    script = shared / "job.sh"
    script.write_text(
        f"#!/bin/sh\ncd {shared}\n"
        f"srun --overlap --ntasks-per-node=1 --mem=50M {tracker} attach --job --st 0.1 --record runs &\n"
        "for file in n1 n2; do until test -s runs/job-$SLURM_JOB_ID/$file.jsonl; do sleep 0.1; done; done\n"
        f"srun --overlap -n8 --mem-per-cpu=170 {PYTHON} {work} 120 1 1\n"
        "times >times\n"
    )
    cluster.batch("-N2", "-n8", "-o", "out", "--mem=760M", str(script), cwd=shared)
    truths = read_truths((shared / "out").read_text())
    own_seconds = sum(map(read_clock, (shared / "times").read_text().split()))
    recordings = [gput.load(shared / "runs" / file) for file in list_files(shared)]
    summaries = [one.report.summary for one in recordings]
    ram = sum(one.ram.combined.total_bytes for one in summaries)
    cpu = sum(one.cpu.combined.seconds for one in summaries)

    assert len(truths) == 8, (shared / "out").read_text()
    assert [one.header.identity.node for one in recordings] == list(NODES)
    assert {one.header.identity.rank for one in recordings} == {None}
    assert {one.report.ending for one in recordings} == {"ended"}
    assert {one.header.allocation.cores for one in recordings} == {4.0}
    assert {one.ram_capacity_bytes for one in summaries} == {760 * 2**20}
    # What the ranks share is counted once, and the batch script and srun are of the job, too.
    assert 8 * 120_000_000 < ram < 1.01 * sum(truth["ram"] for truth in truths)
    assert cpu == pytest.approx(own_seconds + sum(truth["cpu"] for truth in truths), rel=0.01)


def test_a_side_car_that_came_late_is_not_added_to_the_ranks(
    cluster: Cluster, tracker: str, shared: Path, work: str
) -> None:
    """They are part of what it has measured, which is the least that the job used; also where it is on one node only."""
    script = shared / "job.sh"
    script.write_text(
        f"#!/bin/sh\ncd {shared}\n"
        f"srun --overlap -N2 -n4 --mem-per-cpu=250 {tracker} run --record runs -- {PYTHON} {work} 150 0.5 12 &\nranks=$!\n"
        "until test -e ready; do sleep 0.1; done; sleep 2\n"
        f"srun --overlap -N1 -n1 -w n1 --mem=50M {tracker} attach --job --st 0.1 --record runs &\n"
        "wait $ranks\n"
    )
    number = cluster.batch("-N2", "-n8", "-o", "out", "--mem=760M", str(script), cwd=shared)
    truths = read_truths((shared / "out").read_text())
    combined = gput.combine(shared / "runs")
    (group,) = gput.compare(shared / "runs").to_json()["groups"]
    told = cluster.run(tracker, "combine", "--job", number, "runs", cwd=shared).stdout
    sized = cluster.run(tracker, "size", "runs", "-f", "json", cwd=shared).stdout
    advised = json.loads(sized)["memory_bytes"]
    cpu = combined.values["cpu_time"] or 0.0

    assert len(truths) == 4, (shared / "out").read_text()
    assert len(list_files(shared)) == 5
    assert combined.tasks == ()
    assert sum(rank.part_of != "" for rank in combined.ranks) == 2
    assert combined.ram_at_most_bytes is None
    assert sum(truth["cpu"] for truth in truths) * 0.99 < cpu < sum(truth["cpu"] for truth in truths) + 1.0
    assert "at least" in told.partition("of CPU time")[0]
    assert (group["runs"], group["incomplete"]) == (1, [])
    assert 2 * 150_000_000 < advised["used"] < 2 * 250_000_000
    assert advised["is_at_least"]


def test_a_second_side_car_adds_nothing(cluster: Cluster, tracker: str, shared: Path, work: str) -> None:
    """Of another step, it ends at once. If it records elsewhere, the job is still one run and used what it used."""
    script = shared / "job.sh"
    sidecar = f"srun --overlap --ntasks-per-node=1 --mem=50M {tracker} attach --job --st 0.1 --record"
    begun = "for file in n1 n2; do until test -s {}/job-$SLURM_JOB_ID/$file.jsonl; do sleep 0.1; done; done\n"
    script.write_text(
        f"#!/bin/sh\ncd {shared}\n{sidecar} runs &\n{begun.format('runs')}{sidecar} runs\n"
        f"{sidecar} again &\n{begun.format('again')}"
        f"srun --overlap -n8 --mem-per-cpu=170 {PYTHON} {work} 120 1 1\n"
    )
    cluster.batch("-N2", "-n8", "-o", "out", "--mem=760M", str(script), cwd=shared)
    truths = read_truths((shared / "out").read_text())
    of_each_node = [path.rpartition("/")[2] for path in list_files(shared)]
    for path in (shared / "again").rglob("*.jsonl"):
        path.rename(shared / "runs" / path.parent.name / f"{path.stem}-2.jsonl")
    recordings = [gput.load(shared / "runs" / file) for file in list_files(shared)]
    whole = gput.combine(shared / "runs")
    (group,) = gput.compare(shared / "runs").to_json()["groups"]

    assert of_each_node == ["n1.jsonl", "n2.jsonl"]
    assert [one.report.ending for one in recordings] == ["ended"] * 4
    assert (whole.ram_at_most_bytes or 0) < 1.01 * sum(truth["ram"] for truth in truths)
    # The scripts and commands around the ranks are of the job, too.
    assert sum(truth["cpu"] for truth in truths) < (whole.values["cpu_time"] or 0.0)
    assert (whole.values["cpu_time"] or 0.0) < 1.5 * sum(truth["cpu"] for truth in truths)
    assert sum(rank.part_of != "" for rank in whole.ranks) == 2
    assert group["runs"] == 1


def test_pmix(cluster: Cluster, tracker: str, shared: Path) -> None:
    """Ranks that Slurm itself starts for MPI have no variables of Open MPI's."""
    program = shared / "imbalanced.py"
    program.write_text(IMBALANCED.read_text())
    python = str(Path(tracker).with_name("python"))
    command = (tracker, "run", "--record", "runs", "--", python, str(program))
    done = cluster.run("srun", "--mpi=pmix", "-N2", "-n4", *command, cwd=shared)
    recordings = [gput.load(shared / "runs" / file) for file in list_files(shared)]
    identities = [one.header.identity for one in recordings]

    assert done.returncode == 0, done.stderr
    assert {truth["rank"] for truth in read_truths(done.stdout)} == set(range(4))
    check_against(read_truths(done.stdout), recordings)
    assert sorted(one.rank or 0 for one in identities) == list(range(4))
    assert {(one.ranks, one.launcher, one.step) for one in identities} == {(4, "pmix", "0")}
    assert {one.node for one in identities} == set(NODES)


def test_a_lost_node_is_named(cluster: Cluster, tracker: str, shared: Path, work: str) -> None:
    """Killed with everything on it: what was recorded until then is there."""
    script = shared / "job.sh"
    script.write_text(
        f"#!/bin/sh\ncd {shared}\nsrun {tracker} run --record runs -- {PYTHON} {work} 20 0.1 600\n"
    )
    options = ("--parsable", "--no-requeue", "--partition=spare", "-N2", "-n4", "--ntasks-per-node=2")
    number = cluster.run("sbatch", *options, "-o", "out", str(script), cwd=shared).stdout.strip()
    runs = shared / "runs" / f"job-{number}"

    def work_all() -> bool:
        """Whether all ranks have been seen for some seconds."""
        written = [file.read_bytes() for file in runs.glob("*.jsonl")]
        return len(written) == 4 and all(one.count(b'{"sample"') > 3 for one in written)

    wait_until(work_all, "all work", seconds=60)
    cluster.lose(SPARE[1], shared)
    cluster.wait_for_job(number, shared)
    wait_until(
        lambda: not any(rank.ending == "running" for rank in gput.combine(runs).ranks),
        "no recording counts as running",
        seconds=60,
    )
    combined = gput.combine(runs)
    told = cluster.run(tracker, "combine", "--job", number, "runs", cwd=shared).stdout

    assert told.startswith(f"Slurm job {number} (job.sh), node lost: 4 recordings on 2 hosts, 4 ranks\n")
    assert [rank.ending for rank in combined.ranks if rank.host == SPARE[1]] == ["killed", "killed"]
    assert all(rank.ending == "exited" for rank in combined.ranks if rank.host == SPARE[0])
    assert all((rank.values["peak_ram"] or 0) > 20e6 for rank in combined.ranks)
    assert combined.notes[0].startswith(
        f"{SPARE[1]} was lost, or everything on it was killed at once: its 2 recordings ended without a word, at the latest "
    )


# ---- What takes Slurm more than a minute, all at the same time.


@pytest.fixture(scope="module", autouse=True)
def slow(cluster: Cluster, tracker: str) -> Iterator[tuple[Path, str, str]]:
    """A job that runs into its time limit, and one that is put back into the queue: on a spare node, while everything else runs."""
    with tempfile.TemporaryDirectory(prefix="slow-", dir="/tmp") as folder:
        path = Path(folder)
        path.chmod(0o777)
        (path / "work.py").write_text(Path(WORK).read_text())
        for name in ("limited", "again"):
            (path / name).mkdir()
            (path / name).chmod(0o777)
        run = f"{tracker} run --record ../runs -- {PYTHON} ../work.py 20 0.5"
        (path / "limited.sh").write_text(
            f"#!/bin/bash\n#SBATCH --signal=B:USR1@30 --time=1\ncd {path}/limited\nexec {run} 600\n"
        )
        (path / "again.sh").write_text(
            f"#!/bin/bash\ncd {path}/again\nsrun {run} ${{SLURM_RESTART_COUNT:+0}}${{SLURM_RESTART_COUNT:-600}}\n"
        )
        spare = ("--parsable", "-o", "/dev/null", "--partition=spare", f"--nodelist={SPARE[0]}")
        limited, again = (
            cluster.run("sbatch", *spare, script, cwd=path).stdout.strip()
            for script in ("limited.sh", "again.sh")
        )
        wait_until((path / "again/ready").exists, "the second works")
        cluster.run("scontrol", "requeue", again, cwd=path)
        yield path, limited, again
        cluster.run("scancel", limited, again, cwd=path)


def test_a_time_limit_is_named(slow: tuple[Path, str, str], cluster: Cluster, tracker: str) -> None:
    """With the signals that came before it: one that was asked for, then that of the limit."""
    path, limited, _ = slow
    cluster.wait_for_job(limited, path)
    (file,) = (path / "runs" / f"job-{limited}").iterdir()
    recording, last_words = gput.load(file), (path / "limited/told").read_text()
    told = cluster.run(tracker, "combine", "--job", limited, "runs", cwd=path).stdout

    assert last_words.startswith("told to end\n")
    check_against(read_truths(last_words), [recording])
    assert recording.report.exit_code == 3
    notes = [note.partition(" after")[0] for note in recording.report.notes]
    assert [note for note in notes if note.startswith("The job got")] == [
        "The job got SIGUSR1 (10)",
        "The job got SIGTERM (15)",
    ]
    assert told.startswith(f"Slurm job {limited} (limited.sh), time limit reached: ")


def test_a_job_that_was_put_back_has_a_directory_for_each_life(
    slow: tuple[Path, str, str], cluster: Cluster, tracker: str
) -> None:
    """They are never added up."""
    path, _, again = slow
    first, second = path / "runs" / f"job-{again}", path / "runs" / f"job-{again}.r1"
    wait_until(second.exists, "it has begun again", seconds=240)
    cluster.wait_for_job(again, path)
    (earlier,), (later,) = (list(map(gput.load, one.iterdir())) for one in (first, second))
    told = cluster.run(tracker, "combine", "--job", again, "runs", cwd=path).stdout

    assert (earlier.header.identity.restart, later.header.identity.restart) == (None, 1)
    assert {one.header.identity.job for one in (earlier, later)} == {again}
    assert (earlier.report.exit_code, later.report.exit_code) == (3, 0)
    check_against(read_truths((path / "again/told").read_text()), [earlier])
    assert "2 runs, not added up" in told
    assert "restart 1" in told
