"""Everything slow that can be done before the job begins."""

from __future__ import annotations

import os

from .. import sources
from ..core import load_module
from ..core.system import posix
from ..core.values import NamedTuple
from ..sources import NotAvailableError
from ..sources.allocation import OomWatch, read_allocation, read_environment
from .gpu_threads import GpuThreads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from ..core.model import Allocation
    from ..sources import EnergySource, MachineSource, ProcessTreeSource
    from ..sources.allocation import MemoryLimit
    from .handle.wire import Plan

# The tree is read at least this often, so that short-lived processes are seen between two lines.
_READING_SECONDS = 0.25


class Prepared(NamedTuple):
    """All that a sampler needs to begin."""

    plan: Plan
    recording_fd: int
    environment: Mapping[str, str]
    """The job's environment, as far as it can be read."""
    allocation: Allocation
    limit: MemoryLimit | None
    oom: OomWatch
    source: ModuleType
    machine: MachineSource
    interval_seconds: float
    """Between two readings, if they cost little."""
    gpus: GpuThreads
    energy: EnergySource | None = None
    """The meters of the whole machine."""
    energy_reason: str = ""
    """Why there are none."""


def prepare(plan: Plan, recording_fd: int) -> Prepared:
    """Find the sources that work here, and start reading the GPUs."""
    environment = os.environ if plan.has_our_environment else read_environment(plan.example_pid)
    allocation, limit = read_allocation(plan.example_pid, environment, is_whole_job=plan.job is not None)
    source, machine = _connect(plan, limit)
    interval_seconds = min(plan.sleep_seconds, _READING_SECONDS)
    energy, energy_reason = _connect_energy()
    running = frozenset[int]() if plan.starts_the_job else frozenset((plan.example_pid,))
    return Prepared(
        plan=plan,
        recording_fd=recording_fd,
        environment=environment,
        allocation=allocation,
        limit=limit,
        oom=OomWatch(limit, allocation.machine_ram_bytes),
        source=source,
        machine=machine,
        interval_seconds=interval_seconds,
        gpus=GpuThreads(
            interval_seconds,
            plan.max_overhead,
            plan.gpu_vendors,
            plan.gpu_uuids,
            environment,
            running,
            plan.gpu_patience_seconds,
        ),
        energy=energy,
        energy_reason=energy_reason,
    )


def _connect(plan: Plan, limit: MemoryLimit | None) -> tuple[ModuleType, MachineSource]:
    """The first process source that works here, tried on ourselves."""
    for name in plan.sources:
        module = load_module(f"{sources.__name__}.{name}")
        try:
            machine: MachineSource = module.Machine(limit.read_used if limit else None)
            machine.read()
            tree: ProcessTreeSource = module.ProcessTree(os.getpid(), is_newborn=True)
            is_readable = len(tree.read()) == 1
            tree.close()
        except (OSError, ValueError, IndexError):
            continue
        if is_readable:
            return module, machine
    raise OSError(f"no process source works on this {posix.uname().sysname}")


def _connect_energy() -> tuple[EnergySource | None, str]:
    from ..sources.rapl import connect

    try:
        return connect(), ""
    except NotAvailableError as error:
        return None, str(error)
