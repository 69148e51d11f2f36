"""Runs that are never added up: tasks of an array, jobs, attempts."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.analysis.job import combine
from gpu_tracker.analysis.tasks import find_worst_code, split_tasks
from gpu_tracker.core.model import NO_PROCESS, SIGNAL, Event, RecordingData
from gpu_tracker.recording.sampled import read_held
from recorded import join, part, rank

SRUN: dict[str, Any] = {"launcher": "slurm", "rank": 0}
MPIRUN: dict[str, Any] = {"launcher": "openmpi", "rank": 0, "run_id": "1"}


def of(
    number: int = 1, seconds: float = 10.0, *, exit_code: int | None = 0, **identity: Any
) -> RecordingData:
    """A recording with that identity."""
    made = rank(seconds=seconds, pid=number)
    end = made.end and made.end._replace(exit_code=exit_code)
    known = made.header.identity._replace(scheduler="slurm", **identity)
    return made._replace(header=made.header._replace(identity=known), end=end)


@pytest.mark.parametrize(
    ("identities", "names"),
    [
        ([{}, {}], [""]),
        ([{"job": "7", "rank": 0}, {"job": "7", "rank": 1}], [""]),
        ([{"job": "8"}, {"job": "7"}, {"job": "10"}], ["job 7", "job 8", "job 10"]),
        ([{"job": "9", "array_job": "7", "array_task": task} for task in ("2", "10", "1")], ["task 1", "task 2", "task 10"]),
        ([{"job": "7", "restart": 1, "attempt": 1}, {"job": "7"}], ["first attempt", "restart 1"]),
        ([{"run_id": "a", "attempt": 0}, {"run_id": "a", "attempt": 2}], ["first attempt", "attempt 2"]),
        ([{"run_id": "b"}, {"job": "7", "restart": 1}], ["job b, first attempt", "job 7, restart 1"]),
        ([{"job": "7", "step": "batch"}, {"job": "7", **SRUN, "step": "0"}], ["outside of steps", "step 0"]),
        ([{"job": "7", **SRUN, "step": "0"}, {"job": "7", **SRUN, "step": "1"}], ["step 0", "step 1"]),
        ([{"job": "7", **MPIRUN, "step": step, "rank": number} for number, step in enumerate(("batch", "0"))], [""]),
        ([{"job": "7", **MPIRUN, "run_id": run} for run in ("1", "2")], ["launch 1", "launch 2"]),
    ],
)  # fmt: skip
def test_runs_are_told_apart(identities: list[dict[str, Any]], names: list[str]) -> None:
    """By what differs, in the order of their numbers."""
    recordings = [(str(number), of(number, **one)) for number, one in enumerate(identities, 1)]
    tasks = split_tasks(recordings)

    assert list(tasks) == names
    assert sum(map(len, tasks.values())) == len(recordings)


def test_who_follows_a_whole_job_tells_no_exit_code() -> None:
    """The ranks do, if they are recorded."""
    followed = (of(NO_PROCESS, exit_code=None, job=job) for job in ("7", "8"))
    tasks = join(*followed, of(job="7")).tasks

    assert [task.exit_code for task in tasks] == [0, None]


def test_an_array_has_a_distribution() -> None:
    """Of its tasks: at most a twentieth needs more than p95."""
    array = [of(task, float(task), array_job="7", array_task=str(task)) for task in range(1, 41)]
    combined = join(*array)
    time = combined.spread[0]

    assert combined.values == dict.fromkeys(combined.values)
    assert (combined.hosts, combined.balance, len(combined.ranks), len(combined.tasks)) == ((), (), 40, 40)
    assert (time.figure.name, time.smallest, time.median, time.high, time.largest, time.largest_task) == (
        "time", 1.0, 20.5, 38.0, 40.0, "task 40"
    )  # fmt: skip
    assert {one.figure.name for one in combined.spread} == {"time", "cpu_time", "mean_cores", "peak_ram"}


def test_ranks_of_a_task_are_one_run() -> None:
    """Its own sums and notes are those of a job."""
    slow = part(1, 9.0, path=("compute",)), part(2, 1.0, path=("compute",))
    ranks = [
        of(number, array_job="7", array_task=task, rank=number)._replace(regions=(slow[number - 1],))
        for task in ("1", "2")
        for number in (1, 2)
    ]
    combined = join(*ranks)
    first = combined.tasks[0]

    assert (first.name, first.ranks, first.exit_code) == ("task 1", 2, 0)
    assert (first.values["cpu_time"], first.values["peak_ram"]) == (20.0, 1000e6)
    assert any(
        note.startswith("task 2: rank 1 on node1 spent 9 s in region 'compute'") for note in combined.notes
    )


def test_many_notes_of_tasks_are_counted() -> None:
    """What concerns ranks comes first; what is said of several tasks is said once."""
    array = [
        of(task, array_job="7", array_task=str(task), rank=0, ranks=2)._replace(end=None) for task in range(9)
    ]
    notes = join(*array).notes

    assert notes[0].startswith("killed or failed: task 0, task 1, ")
    assert notes[1:6] == tuple(f"task {task}: no recording of rank 1" for task in range(5))
    assert notes[6] == "4 more notes on single runs: combine one of them."
    assert len(notes) == len(set(notes)) < 17


def ending(task: int, code: int, *events: Event, is_cut: bool = False) -> RecordingData:
    """A task of an array that ended so."""
    made = of(
        task + 1, exit_code=code, array_job="70", array_task=str(task), job=str(70 + task), rank=0, ranks=1
    )
    return made._replace(events=events, end=None if is_cut else made.end)


def test_how_each_task_ended_is_told() -> None:
    """Counted and named by how: also those that end with 0 because they were told to."""
    told = Event(5.0, SIGNAL, "15")
    array = [
        ending(0, 0), ending(1, -9, Event(6.0, "oom", "Out of memory.")), ending(2, 0, told), ending(3, 0, told),
        ending(4, 0, is_cut=True), ending(5, 3), ending(6, 0),
    ]  # fmt: skip
    combined = join(*array)

    assert [task.state for task in combined.tasks] == [
        "completed", "out of memory", "told to end", "told to end", "killed or failed", "failed", "completed",
    ]  # fmt: skip
    assert combined.notes[:4] == (
        "told to end: task 2, task 3.",
        "failed: task 5.",
        "killed or failed: task 4.",
        "out of memory: task 1.",
    )
    assert any(note.startswith("task 1: Memory ran out on node1: ") for note in combined.notes)
    assert combined.job.state is None


def test_of_many_tasks_that_ended_alike_some_are_named() -> None:
    """The others are counted, and have a state of their own in JSON."""
    note = join(*(ending(task, 1) for task in range(30))).notes[0]

    assert note.startswith("failed: task 0, task 1, ")
    assert note.endswith(", task 19 and 10 more.")


def test_attempts_of_a_job_end_each_in_their_way() -> None:
    """What the scheduler says is how the last of them ended."""
    attempts = [of(1, exit_code=1, job="7", restart=None), of(2, job="7", restart=1, attempt=1)]
    named = [(f"{number}", one) for number, one in enumerate(attempts)]
    combined = combine(named, read_held, state="TIMEOUT")

    assert [task.state for task in combined.tasks] == ["failed", "completed"]
    assert (combined.job.state, combined.notes[0]) == ("time limit reached", "failed: first attempt.")


@pytest.mark.parametrize(
    ("codes", "worst"), [((0, 0), 0), ((0, 3, 0), 3), ((0, None), None), ((None, -9), -9), ((), 0)]
)
def test_a_run_ends_as_its_worst_rank(codes: tuple[int | None, ...], worst: int | None) -> None:
    """One that failed, or of which that is not known."""
    assert find_worst_code(codes) == worst
