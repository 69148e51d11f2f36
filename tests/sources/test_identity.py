"""Which job a process belongs to, and its place in it."""

from __future__ import annotations

import pytest

from gpu_tracker.core.model import Identity
from gpu_tracker.sources.identity import (
    find_identity,
    find_rank_variable,
    is_in_batch_script,
    is_of_job,
    leave_out_rank,
)

SLURM = {
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "0",
    "SLURM_ARRAY_TASK_ID": "3",
    "SLURMD_NODENAME": "node7",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
    "SLURM_NTASKS": "8",
}


def test_outside_of_any_job_there_is_nothing() -> None:
    """Not even a rank 0."""
    assert find_identity({}) == find_identity({"RANK": "3", "SLURM_JOB_ID": ""}) == Identity()


def test_slurm_has_everything() -> None:
    """Job, step, array task, node and ranks."""
    more = {
        "SLURM_JOB_NAME": "train",
        "SLURM_ARRAY_JOB_ID": "4700",
        "SLURM_JOB_NUM_NODES": "2",
        "SLURM_RESTART_COUNT": "1",
        "SLURM_CLUSTER_NAME": "west",
    }

    assert find_identity({**SLURM, **more}) == Identity(
        scheduler="slurm",
        cluster="west",
        node="node7",
        nodes=2,
        job="4711",
        job_name="train",
        step="0",
        array_job="4700",
        array_task="3",
        restart=1,
        attempt=1,
        launcher="slurm",
        rank=5,
        local_rank=1,
        ranks=8,
    )


def test_a_batch_script_is_no_rank() -> None:
    """Slurm numbers it 0, too."""
    identity = find_identity({name: value for name, value in SLURM.items() if name != "SLURM_STEP_ID"})

    assert (identity.job, identity.step, identity.launcher, identity.rank) == ("4711", None, None, None)


@pytest.mark.parametrize(
    ("number", "text", "step"),
    [
        ("4294967290", "", "interactive"),
        ("4294967290", "0::/slurm/uid_0/job_7/step_interactive/task_0", "interactive"),
        ("4294967291", "", "batch"),
    ],
)
def test_a_shell_of_an_allocation_is_no_rank(number: str, text: str, step: str) -> None:
    """Slurm numbers its step beyond all others, and it has a rank 0 of as many as the allocation has tasks."""
    identity = find_identity({**SLURM, "SLURM_PROCID": "0", "SLURM_STEP_ID": number}, text)

    assert (identity.step, identity.launcher, identity.rank, identity.ranks) == (step, None, None, None)
    assert find_identity({**SLURM, "SLURM_STEP_ID": number, "PMI_RANK": "2"}, text).rank == 2


def test_a_launch_without_a_name_has_none() -> None:
    """What torchrun calls it then is the same for all."""
    ranks = {"RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"}
    identity = find_identity(ranks)

    assert (identity.launcher, identity.rank, identity.ranks, identity.run_id) == ("torchrun", 1, 2, None)
    assert find_identity({**ranks, "TORCHELASTIC_RUN_ID": "a"}).run_id == "a"


@pytest.mark.parametrize(
    ("text", "job", "step"),
    [
        ("5:memory:/slurm_n1/uid_1001/job_3/step_0/task_0\n1:name=systemd:/x", "3", "0"),
        ("0::/system.slice/n1_slurmstepd.scope/job_12/step_batch/user/task_0", "12", "batch"),
        ("4:cpu:/\n0::/slurm/uid_0/job_7/step_extern", "7", "extern"),
        ("0::/user.slice/job_x/step_0", "4711", "0"),
        ("0::/job_3", "4711", "0"),
        ("garbage", "4711", "0"),
    ],
)
def test_the_cgroup_names_job_and_step(text: str, job: str, step: str) -> None:
    """Of the parts of a heterogeneous job the variables name the first only."""
    identity = find_identity(SLURM, text)

    assert (identity.scheduler, identity.job, identity.step) == ("slurm", job, step)


def test_other_schedulers_and_attempts() -> None:
    """PBS, Kubernetes, and a launcher that starts ranks again."""
    pbs = find_identity({"PBS_JOBID": "12.server", "PBS_JOBNAME": "a", "PBS_ARRAY_INDEX": "4"})
    pod = find_identity({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "3"})
    torch = find_identity(
        {
            "RANK": "1",
            "TORCHELASTIC_RUN_ID": "x",
            "TORCHELASTIC_RESTART_COUNT": "2",
            "SLURM_RESTART_COUNT": "0",
        }
    )

    assert (pbs.scheduler, pbs.job, pbs.job_name, pbs.array_task) == ("pbs", "12.server", "a", "4")
    assert (pod.scheduler, pod.launcher, pod.rank) == ("kubernetes", "kubernetes", 3)
    assert (torch.launcher, torch.run_id, torch.attempt, torch.restart) == ("torchrun", "x", 2, 0)


def test_what_tells_launches_of_one_name_apart() -> None:
    """Where the ranks of torchrun meet, which is nobody else's variable, and by what a process knows its rank."""
    torch = {"RANK": "1", "TORCHELASTIC_RUN_ID": "x", "MASTER_PORT": "29500"}
    ranks = [find_identity(one) for one in (torch, {**SLURM, "MASTER_PORT": "29500"}, {"PMI_RANK": "2"}, {})]

    assert [one.port for one in ranks] == [29500, None, None, None]
    assert leave_out_rank(ranks[0]).port is None
    assert list(map(find_rank_variable, ranks)) == ["RANK", "SLURM_PROCID", "PMI_RANK", None]


def test_what_a_launcher_counts_is_no_restart_of_the_scheduler() -> None:
    """Which counts as an attempt of every other rank; torchrun tells its own number only."""
    one = {"SLURM_RESTART_COUNT": "1"}
    torch = {**one, "RANK": "0", "TORCHELASTIC_RUN_ID": "x", "TORCHELASTIC_RESTART_COUNT": "1"}

    assert [find_identity(known).relaunches for known in (one, torch, {})] == [0, 1, 0]


def test_ranks_that_slurm_starts_through_pmix_have_slurms_numbers() -> None:
    """PMIx has only the rank."""
    identity = find_identity({**SLURM, "PMIX_RANK": "5"})

    assert (identity.launcher, identity.rank, identity.local_rank, identity.ranks) == ("pmix", 5, 1, 8)


@pytest.mark.parametrize(
    ("variables", "ranks"),
    [
        (
            {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4"},
            (2, 0, 4),
        ),
        ({"MV2_COMM_WORLD_RANK": "2"}, (2, None, None)),
        ({"PALS_RANKID": "7", "PALS_LOCAL_RANKID": "3"}, (7, 3, None)),
        ({"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "x"}, (1, 1, 2)),
        ({"PMIX_RANK": "9"}, (9, None, None)),
        ({"PMI_RANK": "1", "MPI_LOCALRANKID": "0", "PMI_SIZE": "2"}, (1, 0, 2)),
    ],
)
def test_a_launcher_knows_better_than_the_scheduler(
    variables: dict[str, str], ranks: tuple[int | None, ...]
) -> None:
    """Under mpirun Slurm's own rank is 0 everywhere."""
    identity = find_identity({**SLURM, **variables})

    assert (identity.rank, identity.local_rank, identity.ranks) == ranks
    assert identity.job == "4711"


@pytest.mark.parametrize("text", ["", "-1", "two", "1.5", "٣", "9" * 30])
def test_a_rank_that_is_not_a_number_is_unknown(text: str) -> None:
    """Then the next launcher is asked."""
    assert find_identity({"OMPI_COMM_WORLD_RANK": text}).rank is None
    assert find_identity({**SLURM, "OMPI_COMM_WORLD_RANK": text}).rank == 5


def test_a_process_is_of_a_job_or_of_a_task() -> None:
    """A task has a number of its own besides."""
    identity = find_identity({**SLURM, "SLURM_ARRAY_JOB_ID": "4700"})

    assert all(is_of_job(identity, job) for job in ("4711", "4700_3"))
    assert not any(is_of_job(identity, job) for job in ("4700", "471", "None_None", ""))
    assert not is_of_job(Identity(), "None_None")


@pytest.mark.parametrize(
    ("variables", "host", "node"),
    [
        ({"PMI_RANK": "1"}, "node8.cluster", "node8"),
        ({"PMI_RANK": "1"}, "node7.cluster", "node7"),
        ({"PMI_RANK": "1", "SLURMD_NODENAME": "node7.cluster"}, "node7", "node7.cluster"),
        ({"PMI_RANK": "1"}, "", "node7"),
        ({"PMI_RANK": "1", "SLURMD_NODENAME": ""}, "node8", None),
        ({"PMIX_RANK": "5"}, "node8", "node7"),
        ({}, "login", "node7"),  # what Slurm itself calls it, whatever its host is called
        ({"SLURM_STEP_ID": ""}, "login", "node7"),
    ],
)
def test_a_launcher_may_bring_the_name_of_the_node_where_it_began(
    variables: dict[str, str], host: str, node: str | None
) -> None:
    """Then the ranks are where they run. A domain makes no other node."""
    assert find_identity({**SLURM, **variables}, host=host).node == node


def test_a_whole_job_is_no_rank() -> None:
    """Nor a step; everything else stays."""
    identity = leave_out_rank(find_identity(SLURM))

    assert (identity.step, identity.launcher, identity.rank, identity.ranks) == (None, None, None, None)
    assert (identity.job, identity.node, identity.array_task) == ("4711", "node7", "3")


@pytest.mark.parametrize(
    ("variables", "groups", "is_batch"),
    [
        ({"SLURM_PROCID": "0"}, "", True),
        ({"SLURM_PROCID": "0", "SLURM_STEP_ID": "0"}, "", False),
        ({}, "", False),  # an interactive shell
        ({"SLURM_PROCID": "0"}, "4:memory:/slurm/job_7/step_0/task_0", False),  # under mpirun
        ({}, "0::/system.slice/job_7/step_batch/user/task_0", True),
    ],
)
def test_what_is_of_a_batch_script(variables: dict[str, str], groups: str, is_batch: bool) -> None:
    """Its group tells, else its variables."""
    assert is_in_batch_script(variables, groups) == is_batch


@pytest.mark.parametrize(
    ("variable", "launcher"), [("RAY_LD_PRELOAD_ON_WORKERS", "ray"), ("GPU_TRACKER_DASK", "dask")]
)
def test_engines_number_no_ranks(variable: str, launcher: str) -> None:
    """What Ray or Dask has started is known; a launcher inside of them, which numbers ranks, comes first."""
    ranks = {"OMPI_COMM_WORLD_RANK": "1"}

    assert find_identity({variable: "0"}) == Identity(launcher=launcher)
    assert find_identity({variable: "0", **ranks}).launcher == "openmpi"
    assert find_identity({variable: "0", **SLURM}).launcher == "slurm"
