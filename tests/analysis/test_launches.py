"""Which recordings are of one run, where only the ranks tell."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.analysis.launches import Life, find_lives, find_run, find_runs, identify_run
from gpu_tracker.core.model import NO_PROCESS, Header, Identity, ProcessTotals, RecordingData
from recorded import join, rank


def header(pid: int = 1, **identity: Any) -> Header:
    """Of a recording with that identity."""
    return rank(pid=pid).header._replace(identity=Identity(**identity))


def of(start: int, number: int, *, pid: int, seconds: float = 10.0, **identity: Any) -> RecordingData:
    """A rank that began that many seconds after noon."""
    made = rank(start, seconds=seconds, pid=pid)
    known = made.header.identity._replace(**{"launcher": "mpich", "rank": number, "ranks": 2, **identity})
    return made._replace(header=made.header._replace(identity=known))


def number(*recordings: RecordingData) -> list[int | None]:
    """The launch of each."""
    lives = find_lives([(f"{name}", one) for name, one in enumerate(recordings)])
    return [lives.get(f"{name}", Life()).launch for name in range(len(recordings))]


@pytest.mark.parametrize(
    ("ranks", "launches"),
    [
        # One launch: its ranks overlap.
        ([(0, 0, 1), (0, 1, 2)], [None, None]),
        ([(0, 0, 1), (9, 1, 2)], [None, None]),
        # Two in turn, each of which lacks another rank.
        ([(0, 0, 1), (11, 1, 2)], [1, 2]),
        # Two in turn, also if a rank of the first or of the second has no recording.
        ([(0, 0, 1), (0, 1, 2), (30, 0, 3), (30, 1, 4)], [1, 1, 2, 2]),
        ([(30, 1, 4), (0, 0, 1), (31, 0, 3)], [2, 1, 2]),
        ([(0, 0, 1), (0, 1, 2), (30, 1, 4)], [1, 1, 2]),
        # Two at once.
        ([(0, 0, 1), (1, 1, 2), (2, 0, 3), (3, 1, 4)], [1, 1, 2, 2]),
        # A process that was tracked twice is one rank.
        ([(0, 0, 1), (0, 1, 2), (20, 0, 1)], [None, None, None]),
    ],
)
def test_a_launch_has_each_rank_once(ranks: list[tuple[int, int, int]], launches: list[int | None]) -> None:
    """Where its launcher gives it no ID."""
    assert number(*(of(start, rank, pid=pid) for start, rank, pid in ranks)) == launches


def test_ranks_of_a_moment_need_not_overlap() -> None:
    """They do not start at once; launches in turn are further apart."""
    assert number(of(0, 0, pid=1, seconds=0.1), of(1, 1, pid=2, seconds=0.1)) == [None, None]
    assert number(of(0, 0, pid=1, seconds=0.1), of(3, 1, pid=2, seconds=0.1)) == [1, 2]


def test_a_command_without_a_rank_is_another_run_than_ranks() -> None:
    """Of the same batch script; what has started them, and what is part of them, are not."""
    ranks = [of(30, index, pid=pid, job="7") for index, pid in enumerate((2, 3))]
    command = of(0, 0, pid=1, job="7", rank=None, ranks=None)
    inner = of(31, 0, pid=4, job="7", rank=None, ranks=None)
    below = (ProcessTotals(2, 1, "train", 0.0, 10.0, 1.0, 1), ProcessTotals(4, 2, "eval", 1.0, 9.0, 1.0, 1))
    launcher = of(30, 0, pid=1, job="7", rank=None, ranks=None)._replace(processes=below[:1])

    assert number(command, *ranks) == [None, 1, 1]
    assert number(launcher, *ranks) == [None, None, None]
    assert number(ranks[0]._replace(processes=below), inner) == [None, None]
    assert [task.name for task in join(command, *ranks).tasks] == ["outside of steps", "launch 1"]


def test_the_components_of_one_step_are_one_run() -> None:
    """`srun A : B` numbers their ranks in one row; another step is another run."""
    runs = [
        identify_run(Identity(job="7", step=step, launcher="slurm", rank=rank))
        for step, rank in (("4+0", 0), ("4+1", 1), ("4", 2), ("5", 0))
    ]

    assert runs[0] == runs[1] == runs[2] != runs[3]


@pytest.mark.parametrize(
    ("identity", "is_rank"),
    [
        ({}, False),
        ({"job": "7"}, False),
        ({"rank": 0}, False),
        ({"rank": 0, "job": "7"}, True),
        ({"rank": 0, "run_id": "a"}, True),
        ({"rank": 0, "ranks": 4}, True),
        ({"rank": 0, "launcher": "kubernetes"}, True),
        ({"pid": NO_PROCESS, "job": "7"}, True),
        ({"pid": NO_PROCESS}, False),
    ],
)
def test_a_rank_belongs_to_a_job(identity: dict[str, Any], is_rank: bool) -> None:
    """Only if both are known; all of a job on one machine belongs to the job, too."""
    assert (find_run(header(**identity)) is not None) == is_rank


def test_attempts_are_runs_of_their_own() -> None:
    """As are steps and tasks."""
    base: dict[str, Any] = {"job": "7", "rank": 0, "launcher": "slurm", "step": "0"}
    others = [base | one for one in ({"step": "1"}, {"attempt": 1}, {"restart": 1}, {"array_task": "1"})]

    assert len({find_run(header(**one)) for one in (base, *others)}) == 5
    assert find_run(header(**base | {"rank": 3})) == find_run(header(**base))
    assert find_run(header(**base), Life(2)) != find_run(header(**base))


@pytest.mark.parametrize(
    ("identities", "runs"),
    [
        # Open MPI starts its ranks on the first node in the batch script, those elsewhere in a step.
        ([{"job": "7", "launcher": "openmpi", "run_id": "a", "step": step, "rank": number, "ranks": 2}
          for number, step in enumerate(("batch", "0"))], 1),
        # srun A : B
        ([{"job": "7", "launcher": "slurm", "step": step, "rank": number} for number, step in enumerate(("0+0", "0+1"))], 1),
        # attach --job on two nodes
        ([{"pid": NO_PROCESS, "job": "7", "node": node} for node in ("n1", "n2")], 1),
        # The pods of an indexed job of Kubernetes
        ([{"scheduler": "kubernetes", "launcher": "kubernetes", "rank": number} for number in range(3)], 1),
        ([{"job": "7", "launcher": "slurm", "step": step, "rank": 0} for step in ("0", "1")], 2),
    ],
    ids=["mpirun on two nodes", "components", "followed on two nodes", "pods", "steps"],
)  # fmt: skip
def test_one_place_decides_what_is_one_run(identities: list[dict[str, Any]], runs: int) -> None:
    """For all that compare runs, add them up, or size them."""
    recordings = [
        (f"{number}", rank(pid=number + 2, host=f"node{number}")._replace(header=header(**one)))
        for number, one in enumerate(identities)
    ]
    found = find_runs(recordings)

    assert None not in found.values()
    assert len(set(found.values())) == runs


def test_ranks_are_one_run_with_what_includes_them() -> None:
    """All of a job, or a launcher; not where it includes those of several steps, which are runs of their own."""

    def step(number: int, pid: int) -> RecordingData:
        return of(0, 0, pid=pid, job="7", launcher="slurm", step=f"{number}", ranks=1)

    below = tuple(ProcessTotals(pid, 1, "train", 0.0, 10.0, 1.0, 1) for pid in (2, 3))
    whole = rank(pid=NO_PROCESS, processes=below)._replace(header=header(NO_PROCESS, job="7"))

    command = of(0, 0, pid=3, job="7", launcher=None, rank=None, ranks=None)

    assert len(join(whole, step(0, 2)).tasks) == 0
    assert len(join(whole, step(0, 2), command).tasks) == 0
    assert [one.part_of for one in join(whole, step(0, 2)).ranks] == ["", "0"]
    assert [one.name for one in join(whole, step(0, 2), step(1, 3)).tasks] == [
        "outside of steps",
        "step 0",
        "step 1",
    ]
    # Also if it began before whoever follows the job, who has missed its process.
    assert [one.part_of for one in join(whole, step(0, 4)).ranks] == ["", "0"]


def under_torchrun(
    start: float,
    number: int,
    *,
    agent: int | None = None,
    host: str = "n1",
    seconds: float = 9.0,
    **identity: Any,
) -> RecordingData:
    """A rank of two that began that many seconds after noon, under an agent of which the process may be known."""
    made = rank(int(start), seconds=seconds, pid=1000 + 10 * int(start) + number, host=host)
    known: dict[str, Any] = {
        "launcher": "torchrun", "run_id": "job", "rank": number, "ranks": 2, "attempt": 0, "boot_id": host,
        "launcher_process": None if agent is None else f"{agent}@1", **identity,
    }  # fmt: skip
    return made._replace(header=made.header._replace(identity=Identity(**known)))


def name_lives(*recordings: RecordingData) -> list[tuple[int | None, int | None]]:
    """The launch and attempt of each."""
    lives = find_lives([(f"{name}", one) for name, one in enumerate(recordings)])
    return [tuple(lives.get(f"{name}", Life())) for name in range(len(recordings))]  # type: ignore[misc]


@pytest.mark.parametrize("agents", [(7, 8), (None, None)], ids=["by its process", "by its times"])
@pytest.mark.parametrize("run_id", ["job", None])
def test_a_launch_of_the_same_name_is_another(agents: tuple[int | None, ...], run_id: str | None) -> None:
    """`--rdzv-id job` again, or torchrun's own name for all: neither added up, nor copies, nor an attempt of the first."""
    first, second = agents
    ranks = [
        under_torchrun(start, number, agent=agent, run_id=run_id)
        for start, agent in ((0, first), (20, second))
        for number in (0, 1)
    ]
    combined = join(*ranks)

    assert name_lives(*ranks) == [(1, None), (1, None), (2, None), (2, None)]
    assert [(task.name, task.ranks, task.values["cpu_time"]) for task in combined.tasks] == [
        ("launch 1", 2, 18.0),
        ("launch 2", 2, 18.0),
    ]
    assert len(set(find_runs([(f"{name}", one) for name, one in enumerate(ranks)]).values())) == 2


def test_launches_at_once_are_told_apart_by_their_launchers() -> None:
    """On one machine by the process that has started the ranks, on several by where these meet; else a machine has one of them."""
    processes = [under_torchrun(start, number, agent=agent) for start, agent, number in ((0, 7, 0), (1, 8, 0), (1, 7, 1), (2, 8, 1))]  # fmt: skip
    ports = [
        under_torchrun(start, number, agent=agent, host=host, port=port)
        for start, agent, host, number, port in (
            (0, 7, "n1", 0, 1), (0, 7, "n2", 1, 1), (1, 8, "n1", 0, 2), (1, 8, "n2", 1, 2),
        )
    ]  # fmt: skip
    machines = [under_torchrun(0, number, host=host) for number in (0, 1) for host in ("n1", "n2")]

    assert [one for one, _ in name_lives(*processes)] == [1, 2, 1, 2]
    assert [one for one, _ in name_lives(*ports)] == [1, 1, 2, 2]
    assert [one for one, _ in name_lives(*machines)] == [1, 2, 1, 2]


def test_a_launch_that_lacks_a_rank_does_not_take_that_of_another() -> None:
    """Each is incomplete by itself."""
    ranks = [under_torchrun(0, 0, agent=7), under_torchrun(20, 1, agent=8), under_torchrun(21, 0, agent=8)]

    assert [one for one, _ in name_lives(*ranks)] == [1, 2, 2]
    assert [note for note in join(*ranks).notes if "no recording" in note] == [
        "launch 1: no recording of rank 1"
    ]


def test_a_machine_may_have_several_launchers_of_one_launch() -> None:
    """As if it were several nodes; each starts its ranks again."""
    ranks = [
        under_torchrun(start, number, agent=7 + number, port=1) for start in (0, 20) for number in (0, 1)
    ]

    assert name_lives(*ranks) == [(None, None)] * 2 + [(None, 1)] * 2


def test_launches_of_other_sizes_are_others() -> None:
    """Although no rank is there twice, and they have no name."""
    assert number(of(0, 0, pid=1), of(0, 1, pid=2, ranks=4)) == [1, 2]


@pytest.mark.parametrize("agents", [(7, 8), (None, None)], ids=["by its process", "by what it counts"])
@pytest.mark.parametrize("ahead", [-1.0, 0.0, 1.0], ids=["behind", "equal", "ahead"])
def test_all_nodes_of_an_attempt_are_one_run(agents: tuple[int | None, ...], ahead: float) -> None:
    """An agent counts only the failures on its own node, and clocks may differ."""
    first, second = agents
    ranks = [
        under_torchrun(start + shift, number, agent=agent, host=host, attempt=attempt, seconds=9.5)
        for start, attempts in ((5, (0, 0)), (15, (1, 0)), (25, (1, 1)))
        for number, agent, host, attempt, shift in (
            (0, first, "n1", attempts[0], 0.0),
            (1, second, "n2", attempts[1], ahead),
        )
    ]
    combined = join(*ranks)

    assert name_lives(*ranks) == [(None, None)] * 2 + [(None, 1)] * 2 + [(None, 2)] * 2
    assert [(task.name, task.ranks) for task in combined.tasks] == [
        ("first attempt", 2),
        ("attempt 1", 2),
        ("attempt 2", 2),
    ]
    assert not any("no recording" in note for note in combined.notes)


def test_what_a_launcher_has_counted_is_another_attempt_whatever_the_clock_says() -> None:
    """Of the first, another rank has left its recording, which may have gone on a little."""
    assert name_lives(under_torchrun(0, 0, seconds=9.5), under_torchrun(9, 1, attempt=1)) == [
        (None, None),
        (None, 1),
    ]


def test_the_last_attempt_alone_is_one_run() -> None:
    """Whatever its nodes count."""
    ranks = [under_torchrun(0, number, host=f"n{number}", attempt=number) for number in (0, 1)]

    assert join(*ranks).tasks == ()
    assert join(*ranks).job.missing_ranks == ()


def test_ranks_that_are_started_again_without_a_failure_of_their_own_are_an_attempt() -> None:
    """A node has joined: nobody counts, but it is the same agent; what numbers the ranks then have is its business."""
    ranks = [
        under_torchrun(0, 0, agent=7),
        under_torchrun(0, 1, agent=7),
        *(under_torchrun(20, number, agent=agent, host=host, ranks=3) for number, agent, host in ((0, 9, "n2"), (1, 7, "n1"), (2, 7, "n1"))),
    ]  # fmt: skip

    assert name_lives(*ranks) == [(None, None)] * 2 + [(None, 1)] * 3


def test_launches_have_attempts_of_their_own() -> None:
    """Without their processes the count begins anew."""
    ranks = [
        under_torchrun(start, 0, attempt=attempt) for start, attempt in ((0, 0), (10, 1), (20, 0), (30, 1))
    ]
    names = sorted(task.name for task in join(*ranks).tasks)

    assert name_lives(*ranks) == [(1, None), (1, 1), (2, None), (2, 1)]
    assert names == [
        "attempt 1, launch 1",
        "attempt 1, launch 2",
        "first attempt, launch 1",
        "first attempt, launch 2",
    ]


def test_a_restart_of_the_scheduler_hides_no_attempt_of_the_launcher() -> None:
    """Also if both have counted to the same number."""
    ranks = [under_torchrun(start, 0, job="7", restart=1, attempt=start // 20) for start in (0, 20)]

    assert len({identify_run(one.header.identity) for one in ranks}) == 2


def test_several_commands_of_one_rank_are_one_run() -> None:
    """One after the other in its script, of which the process is known."""
    commands = [
        under_torchrun(start, number, agent=7, rank_process=f"{number}@5")
        for start in (0, 20)
        for number in (0, 1)
    ]

    assert name_lives(*commands) == [(None, None)] * 4
    assert len(join(*commands).ranks) == 4


def test_ranks_within_a_followed_job_are_told_apart_too() -> None:
    """Who follows the whole job includes them all."""
    ranks = [under_torchrun(start, 0, job="7", ranks=1, seconds=5.0) for start in (0, 20)]
    below = tuple(
        ProcessTotals(one.header.pid, 1, "train", at, at + 5.0, 1.0, 1)
        for one, at in zip(ranks, (0.0, 20.0), strict=True)
    )
    whole = rank(pid=NO_PROCESS, host="n1", seconds=30.0, processes=below)
    whole = whole._replace(header=whole.header._replace(identity=Identity(job="7", boot_id="n1")))

    assert [one for one, _ in name_lives(whole, *ranks)] == [None, 1, 2]


def test_pods_run_one_after_the_other() -> None:
    """As many at once as an indexed job is given; the same index again is another job."""
    pods = [
        of(10 * at, index, pid=1, launcher="kubernetes", ranks=None)
        for at, index in enumerate((0, 1, 2, 0, 1))
    ]
    pods = [one._replace(header=one.header._replace(host=f"pod{at}")) for at, one in enumerate(pods)]

    assert number(*pods[:3]) == [None, None, None]
    assert number(*pods) == [1, 1, 1, 2, 2]


def test_clusters_may_have_jobs_of_one_number() -> None:
    """They are two, and so are the recordings of ranks and of who follows them there; where a cluster is not known it is that of the others."""

    def on(cluster: str | None, host: str, pid: int = 5, **identity: Any) -> RecordingData:
        made = rank(host=host, pid=pid)
        return made._replace(
            header=made.header._replace(identity=Identity(job="7", cluster=cluster, **identity))
        )

    step: dict[str, Any] = {"launcher": "slurm", "step": "0", "ranks": 1, "rank": 0}
    first, second, unknown = on("a", "n1", **step), on("b", "n2", **step), on(None, "n1", NO_PROCESS)
    combined = join(first, second)

    assert [task.name for task in combined.tasks] == ["job 7 on a", "job 7 on b"]
    assert len(set(find_runs([("0", first), ("1", second)]).values())) == 2
    assert join(first, unknown).tasks == ()
    assert find_runs([("0", on("a", "n1", 0 + 9)), ("1", on("b", "n2", 9))]) == {"0": None, "1": None}


def test_tasks_and_arrays_may_use_one_name_for_their_launches() -> None:
    """Each task is a run of its own."""
    ranks = [
        under_torchrun(
            0, 0, job=f"{job}{task}", array_job=job, array_task=task, ranks=1, host=f"n{job}{task}"
        )
        for job in ("7", "8")
        for task in ("1", "2")
    ]

    assert [task.name for task in join(*ranks).tasks] == [
        f"job {job}, task {task}" for job in "78" for task in "12"
    ]


def test_a_pod_that_failed_is_started_again_in_the_same_job() -> None:
    """By itself: the others are not missing then. One that had ended well is of another job."""

    def pod(start: int, index: int, code: int = 0) -> RecordingData:
        made = of(start, index, pid=1, launcher="kubernetes", ranks=None)
        header = made.header._replace(host=f"pod{start}-{index}")
        return made._replace(header=header, end=made.end and made.end._replace(exit_code=code))

    first = [pod(0, 0), pod(0, 1, 1), pod(0, 2)]

    assert number(*first, pod(20, 1)) == [None] * 4
    assert number(*first, pod(20, 1), pod(40, 1)) == [1, 1, 1, 1, 2]
    assert join(*first, pod(20, 1)).job.missing_ranks == ()
