"""The job, node and rank of a process, from the variables of schedulers and launchers and from its cgroup. Pure."""

from __future__ import annotations

from itertools import pairwise

from ..core.model import TORCHRUN, Identity
from ..core.units import parse_count
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# A scheduler and the variable by which a job of it is known.
_SCHEDULERS = (
    ("slurm", "SLURM_JOB_ID"),
    ("pbs", "PBS_JOBID"),
    ("kubernetes", "KUBERNETES_SERVICE_HOST"),
)
_STEP_VARIABLE = "SLURM_STEP_ID"
# Field of the identity → the variables to look for, in order.
_TEXTS = {
    "job": ("SLURM_JOB_ID", "PBS_JOBID"),
    "job_name": ("SLURM_JOB_NAME", "PBS_JOBNAME"),
    "array_job": ("SLURM_ARRAY_JOB_ID",),
    "array_task": ("SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX"),
    "step": (_STEP_VARIABLE,),
    "node": ("SLURMD_NODENAME",),
    "cluster": ("SLURM_CLUSTER_NAME",),
    "run_id": ("TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE"),
}
_COUNTS = {
    "nodes": ("SLURM_JOB_NUM_NODES", "SLURM_NNODES", "PBS_NUM_NODES"),
    "restart": ("SLURM_RESTART_COUNT",),
    "attempt": ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"),
}


class _Launcher(NamedTuple):
    """The variables of a launcher: rank, rank on this machine, number of ranks; and one without which they are not its own."""

    name: str
    rank: str
    local_rank: str = ""
    ranks: str = ""
    needs: str = ""


# SLURM_PROCID is 0 in all ranks under mpirun in a Slurm job, so the launchers come before the scheduler. `RANK` is a common name.
_LAUNCHERS = (
    _Launcher("openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    _Launcher("mvapich", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"),
    _Launcher("pals", "PALS_RANKID", "PALS_LOCAL_RANKID", "PALS_SIZE"),
    _Launcher(TORCHRUN, "RANK", "LOCAL_RANK", "WORLD_SIZE", needs="TORCHELASTIC_RUN_ID"),
    _Launcher("pmix", "PMIX_RANK"),
    _Launcher("mpich", "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    _Launcher("kubernetes", "JOB_COMPLETION_INDEX"),
)
# Only of a step: in a batch script it is 0, too, although the script is no rank of anything.
_SLURM = _Launcher("slurm", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS")
# What starts the ranks of a step by itself, with variables of each node.
_SLURMS = (_SLURM.name, "pmix")
# Those that number no ranks, and what is set in all that they start: by our plugin in workers of Dask, by Ray itself.
_UNRANKED = (("dask", "GPU_TRACKER_DASK"), ("ray", "RAY_LD_PRELOAD_ON_WORKERS"))
# Steps that Slurm starts itself, whose one process is no rank, and their numbers.
_INTERACTIVE, _BATCH, _EXTERN = "interactive", "batch", "extern"
_OWN_STEPS = {"4294967290": _INTERACTIVE, "4294967291": _BATCH, "4294967292": _EXTERN}
_MOST_DIGITS = 9
_PORT = "MASTER_PORT"
_UNNAMED_RUN = "none"  # by torchrun, unless it is given a name
_JOB, _STEP = "job_", "step_"


def find_identity(environment: Mapping[str, str], cgroup_text: str = "", host: str = "") -> Identity:
    """The identity by the variables, the content of `/proc/PID/cgroup` and the name of this machine; None for what is not set."""
    known: dict[str, str | int | None] = {
        "scheduler": next((name for name, variable in _SCHEDULERS if environment.get(variable)), None),
        **{field: _find(environment, names) for field, names in _TEXTS.items()},
        **{field: _count(environment, names) for field, names in _COUNTS.items()},
        **_find_in_cgroup(cgroup_text),
    }
    known["step"] = step = _OWN_STEPS.get(f"{known['step']}", known["step"])
    known |= _find_rank(environment, is_in_step=step is not None and step not in _OWN_STEPS.values())
    if known["run_id"] == _UNNAMED_RUN:
        known["run_id"] = None
    if known.get("launcher") == TORCHRUN:
        known["port"] = _count(environment, (_PORT,))
    found = Identity(**known)  # type: ignore[arg-type]
    return found._replace(node=_find_node(found, host))


def find_rank_variable(identity: Identity) -> str | None:
    """The variable by which a launcher has told a process its rank; None if it is none."""
    launchers = {launcher.name: launcher.rank for launcher in (*_LAUNCHERS, _SLURM)}
    return None if identity.rank is None else launchers.get(identity.launcher or "")


def is_in_batch_script(environment: Mapping[str, str], cgroup_text: str = "") -> bool:
    """Whether a process is of a batch script of Slurm's, outside of its steps. An interactive shell has no rank, either."""
    step = _find_in_cgroup(cgroup_text).get("step")
    if step is not None:
        return step == _BATCH
    return bool(environment.get(_SLURM.rank)) and not environment.get(_STEP_VARIABLE)


def is_of_job(identity: Identity, job: str) -> bool:
    """Whether a process belongs to the job of that number, or task of an array (4700_7)."""
    task = f"{identity.array_job}_{identity.array_task}" if identity.array_task is not None else None
    return job in (identity.job, task)


def leave_out_rank(identity: Identity) -> Identity:
    """Of a whole job on one machine: none of its steps and ranks."""
    return identity._replace(
        step=None, launcher=None, rank=None, ranks=None, local_rank=None, attempt=None, run_id=None, port=None
    )


def _find_node(identity: Identity, host: str) -> str | None:
    """That of the variables, unless a launcher of its own may have brought them from the node where it began."""
    node, here = identity.node, host.partition(".")[0]
    if node is None or not here or identity.launcher in (None, *_SLURMS):
        return node
    return node if node.partition(".")[0] == here else here


def _find(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((environment[name] for name in names if environment.get(name)), None)


def _count(environment: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    counts = (parse_count(environment.get(name), _MOST_DIGITS) for name in names)
    return next((count for count in counts if count is not None), None)


def _find_rank(environment: Mapping[str, str], *, is_in_step: bool) -> dict[str, str | int | None]:
    for launcher in (*_LAUNCHERS, *[_SLURM] * is_in_step):
        rank = _count(environment, (launcher.rank,))
        if rank is not None and (not launcher.needs or environment.get(launcher.needs)):
            # Started by Slurm itself, which knows the rest of it.
            is_slurms = launcher.name == "pmix" and _count(environment, (_SLURM.rank,)) == rank
            rest = _SLURM if is_slurms and is_in_step else launcher
            return {
                "launcher": launcher.name,
                "rank": rank,
                "local_rank": _count(environment, (rest.local_rank,)),
                "ranks": _count(environment, (rest.ranks,)),
            }
    return next(({"launcher": name} for name, variable in _UNRANKED if environment.get(variable)), {})


def _find_in_cgroup(text: str) -> dict[str, str]:
    """Job and step of a Slurm job: `.../job_4711/step_0/...`. Of the parts of one job that differ, variables name only the first."""
    for line in text.splitlines():
        parts = line.rpartition(":")[2].split("/")
        for job, step in pairwise(parts):
            number = job.removeprefix(_JOB)
            if job.startswith(_JOB) and number.isdecimal() and step.startswith(_STEP):
                return {"scheduler": "slurm", "job": number, "step": step.removeprefix(_STEP)}
    return {}
