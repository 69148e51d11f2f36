"""The tracker as the first process of a container: its limits, its signals, its exit code, and running out of memory."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import gpu_tracker as gput
from clusters import container
from clusters.container import Container
from clusters.truths import check_against, read_truths
from patience import wait_until

MEBIBYTES = 2**20
TRACKER = str(Path(sys.executable).with_name("gpu-tracker"))
WORK = str(Path(__file__).parent / "work.py")

Make = Callable[..., Container]


@pytest.fixture
def make(shared: Path, tmp_path: Path) -> Make:
    """Makes a container in which the tracker is process 1."""
    runtime = container.find_runtime()
    if os.environ.get("REAL_CLUSTER") is None:
        pytest.skip("REAL_CLUSTER is not set: `make clusters` installs runc and runs these")
    if runtime is None or os.geteuid():
        pytest.fail("`make clusters` needs root and runc or crun")

    def make_one(
        *command: str,
        name: str = "box",
        memory: int = 256,
        is_tracked: bool = True,
        beside: int | None = None,
        **variables: str,
    ) -> Container:
        wrapped = [TRACKER, "run", "--record", "runs", "--"] if is_tracked else []
        limit = memory * MEBIBYTES
        return container.make(
            runtime, tmp_path / name, shared, [*wrapped, *command], limit, 0.5, variables, beside
        )

    return make_one


def load_only(shared: Path) -> gput.Recording:
    """The recording of the container."""
    (file,) = (shared / "runs").rglob("*.jsonl")
    return gput.load(file)


def read_throttled_seconds(text: str) -> float:
    """How long the kernel has stopped the container, by its own file."""
    stat = dict(line.split() for line in text.splitlines() if line.startswith("throttled_"))
    return float(stat.get("throttled_time", 0)) / 1e9 + float(stat.get("throttled_usec", 0)) / 1e6


def test_what_the_container_may_use_is_known(make: Make, shared: Path) -> None:
    """Of memory and of cores; what it used is right, also while the quota stops it."""
    stat = "cat /sys/fs/cgroup/cpu/cpu.stat 2>/dev/null || cat /sys/fs/cgroup/cpu.stat"
    done = make("sh", "-c", f"{sys.executable} {WORK} 100 1; {stat}").run()
    recording = load_only(shared)
    allocation, summary = recording.header.allocation, recording.report.summary

    assert done.returncode == 0, done.stderr
    assert (allocation.ram_bytes, allocation.ram_source) == (256 * MEBIBYTES, "cgroup")
    assert (allocation.cores, allocation.cores_source) == (0.5, "cgroup")
    assert recording.header.host == "box"
    assert recording.report.exit_code == 0
    check_against(read_truths(done.stdout), [recording])
    assert summary.ram_capacity_bytes == 256 * MEBIBYTES
    # It counts from the first reading on, which comes a second after the start.
    assert summary.stalls.throttled_seconds is not None
    assert 0 <= summary.stalls.throttled_seconds <= read_throttled_seconds(done.stdout)


@pytest.mark.parametrize("code", [0, 7])
def test_the_exit_code_is_the_commands(make: Make, shared: Path, code: int) -> None:
    """As without a tracker, which is process 1."""
    done = make("sh", "-c", f"echo $PPID; exit {code}").run()

    assert (done.returncode, done.stdout) == (code, "1\n")
    assert load_only(shared).report.exit_code == code


def test_a_container_that_is_stopped_tells_its_program(make: Make, shared: Path) -> None:
    """The signal goes to process 1 only, for which the kernel has no default action."""
    box = make(sys.executable, WORK, "20", "0.5", "60")
    process = box.start()
    try:
        wait_until(lambda: process.poll() is not None or list(shared.rglob("ready")), "it works")
        box.tell(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    finally:
        box.remove()
    recording = load_only(shared)
    report, told = recording.report, (shared / "told").read_text()

    assert process.returncode == 3, errors
    assert told.startswith("told to end\n")
    check_against(read_truths(told), [recording])
    assert report.exit_code == 3
    assert any(note.startswith("The job got SIGTERM (15) after ") for note in report.notes)


def test_a_container_out_of_memory_is_named(make: Make, shared: Path) -> None:
    """The kernel kills the largest process, not the tracker."""
    done = make(sys.executable, WORK, "500", "0.1", memory=150).run()
    recording = load_only(shared)
    combined = gput.combine(shared / "runs")

    assert done.returncode == 128 + signal.SIGKILL
    assert recording.report.exit_code == -signal.SIGKILL
    assert "memory" in done.stderr
    assert combined.notes[0].startswith("Memory ran out on box: the kernel killed processes of ")
    assert "at the limit of 150 MiB" in combined.notes[0]


def test_containers_with_equal_process_ids_share_a_directory(make: Make, shared: Path) -> None:
    """As the pods of a job do: all are process 1, and nothing is taken for part of another."""
    ranks = {"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "pods"}
    boxes = [
        make(
            sys.executable,
            WORK,
            str(30 + 10 * rank),
            "0.5",
            name=f"pod{rank}",
            **{**ranks, "RANK": str(rank)},
        )
        for rank in range(2)
    ]
    processes = [box.start() for box in boxes]
    try:
        told = [process.communicate(timeout=60) for process in processes]
    finally:
        for box in boxes:
            box.remove()
    combined = gput.combine(shared / "runs")

    assert [process.returncode for process in processes] == [0, 0], told
    assert [(rank.host, rank.part_of) for rank in combined.ranks] == [("pod0", ""), ("pod1", "")]
    assert combined.job.missing_ranks == ()
    check_against(
        read_truths("".join(output for output, _ in told)),
        [gput.load(file) for file in (shared / "runs").rglob("*.jsonl")],
    )


# As docs/clusters.md has it. The brackets keep the pattern from finding this shell.
SIDE_CAR = (
    'until pid=$(pgrep -o -f "[w]ork.py"); do sleep 0.1; done; exec {} attach "$pid" --st 0.1 --record runs'
)


def test_a_side_car_follows_the_program_of_another_container(make: Make, shared: Path) -> None:
    """In a pod whose containers share their process IDs, of which the first belongs to neither."""
    pause = make("sleep", "600", name="pause", is_tracked=False)
    boxes, processes = [pause], [pause.start()]
    try:
        wait_until(pause.find_process, "the pod is there")
        beside = {"is_tracked": False, "beside": pause.find_process()}
        boxes.append(make("sh", "-c", SIDE_CAR.format(TRACKER), name="side", **beside))
        boxes.append(make(sys.executable, WORK, "100", "0.5", "2", name="program", **beside))
        processes += [box.start() for box in boxes[1:]]
        (_, errors), (output, _) = (process.communicate(timeout=60) for process in processes[1:])
    finally:
        for box in reversed(boxes):
            box.remove()
        processes[0].communicate()
    (truth,) = read_truths(output)
    recording = load_only(shared)
    summary = recording.report.summary

    assert [process.returncode for process in processes[1:]] == [0, 0], errors
    assert recording.report.ending == "ended"
    assert recording.header.pid > 1
    assert summary.ram.combined.total_bytes == pytest.approx(truth["ram"], rel=0.01)
    # Without what it used before it was found.
    assert 0.75 * truth["cpu"] < summary.cpu.combined.seconds < 1.01 * truth["cpu"]
