"""The cores and memory that the job may use, from affinity, cgroups v1 and v2, and Slurm; and what the machine has.

On a shared node usage is relative to the allocation: 3 of 4 allocated cores are 75 %, not 2 % of a 128-core node.
"""

from __future__ import annotations

import os
import sys

from ..core.model import Allocation
from ..core.system import resource
from ..core.units import parse_count
from .files import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_MIB = 1024 * 1024
# cgroup v1 writes "no limit" as the largest page-aligned number; no machine has an exbibyte.
_NO_LIMIT_BYTES = 1 << 60
_MOST_GROUPS = 100
_STEP = "/step_"  # in the path of a group of Slurm's


class MemoryLimit:
    """The tightest memory limit of a process, and how much of it is used."""

    def __init__(self, directory: str, limit_bytes: int, groups: tuple[str, ...] = ()) -> None:
        """`groups` are the directories from the process's own up to that of the limit."""
        self.directory = directory
        self.limit_bytes = limit_bytes
        self._groups = groups or (directory,)

    def read_used(self) -> int | None:
        """Bytes in use that the kernel cannot reclaim, like MemAvailable for a machine."""
        try:
            stat = parse_flat_keyed(read_text(f"{self.directory}/memory.stat"))
        except (OSError, ValueError):
            return None
        if "anon" in stat:  # v2
            return stat["anon"] + stat.get("shmem", 0) + stat.get("file_mapped", 0)
        return stat.get("total_rss", 0) + stat.get("total_shmem", 0) + stat.get("total_mapped_file", 0)

    def read_held(self) -> int | None:
        """Bytes that the limit counts, without the page cache and kernel caches, which give way before it is reached."""
        try:
            stat = parse_flat_keyed(read_text(f"{self.directory}/memory.stat"))
            used = self._read_first("memory.current", "memory.usage_in_bytes")
        except (OSError, ValueError):
            return None
        prefix = "" if "anon" in stat else "total_"
        names = (f"{prefix}active_file", f"{prefix}inactive_file", "slab_reclaimable")
        return None if used is None else max(0, used - sum(stat.get(name, 0) for name in names))

    def read_peak(self) -> int | None:
        """The most that the limit has ever counted, with all caches."""
        return self._read_first("memory.peak", "memory.max_usage_in_bytes")

    def _read_first(self, *names: str) -> int | None:
        """The first of these files that can be read: version 2, then version 1."""
        for name in names:
            try:
                return int(read_text(f"{self.directory}/{name}"))
            except (OSError, ValueError):
                continue
        return None

    def count_oom_kills(self) -> int:
        """How many processes the kernel has killed to stay below the limit.

        Version 2 counts a kill in the victim's group and in all above it, version 1 in the victim's only.
        """
        total = _read_oom_kills(f"{self.directory}/memory.events")
        if total is None:
            total = sum(_read_oom_kills(f"{group}/memory.oom_control") or 0 for group in self._groups)
        return total

    @property
    def own_group(self) -> str:
        """The group in which the process is itself; others may be in it."""
        return self._groups[0]


class CpuQuota:
    """The tightest CPU quota of a process."""

    def __init__(self, directory: str, cores: float) -> None:
        self._directory = directory
        self.cores = cores

    def read_throttled_seconds(self) -> float | None:
        """How long the group was stopped, because it had used up its quota."""
        try:
            stat = parse_flat_keyed(read_text(f"{self._directory}/cpu.stat"))
        except (OSError, ValueError):
            return None
        if "throttled_usec" in stat:  # v2
            return stat["throttled_usec"] / 1e6
        return stat["throttled_time"] / 1e9 if "throttled_time" in stat else None


class OomWatch:
    """The memory limits under which processes of the job were seen, and which of them the kernel has killed for.

    A job may enter a group of its own after it has started. What happens in a group before anybody was seen there is not known.
    """

    def __init__(self, limit: MemoryLimit | None, machine_ram_bytes: int, *, proc: str = "/proc") -> None:
        """`limit` is that of the process that starts the job."""
        self._machine_ram_bytes = machine_ram_bytes
        self._proc = proc
        self._groups: set[str] = set()
        self._kills_before: dict[MemoryLimit, int] = {}
        self._own_before: dict[str, int] = {}
        """Of the groups in which processes of the job are themselves, where that can be read."""
        self._add(limit)

    def look_at(self, pid: int) -> None:
        """See which groups this process is in."""
        try:
            groups = read_text(f"{self._proc}/{pid}/cgroup")
        except OSError:
            return  # it has ended
        if groups not in self._groups and len(self._groups) < _MOST_GROUPS:
            self._groups.add(groups)
            self._add(find_memory_limit(pid, self._machine_ram_bytes, proc=self._proc))

    def find_reached(self) -> MemoryLimit | None:
        """The limit for which a process was killed since it was seen."""
        for limit, before in self._kills_before.items():
            if limit.count_oom_kills() > before:
                return limit
        return None

    def find_group(self) -> str | None:
        """The group of the job's own in which a process was killed since; empty if it was in none of them, None if nobody knows."""
        for group, before in self._own_before.items():
            if (_count_in(group) or 0) > before:
                return group
        return "" if self._own_before else None

    def _add(self, limit: MemoryLimit | None) -> None:
        if limit is None:
            return
        self._kills_before[limit] = limit.count_oom_kills()
        if (kills := _count_in(limit.own_group)) is not None:
            self._own_before.setdefault(limit.own_group, kills)


def _count_in(group: str) -> int | None:
    """How many processes of a group, and of those in it, the kernel has killed; version 1 tells of the group alone."""
    counts = (_read_oom_kills(f"{group}/{name}") for name in ("memory.events", "memory.oom_control"))
    return next((count for count in counts if count is not None), None)


def _read_oom_kills(path: str) -> int | None:
    try:
        return parse_flat_keyed(read_text(path)).get("oom_kill", 0)
    except (OSError, ValueError):
        return None


# ---- Parsers. Pure.


def parse_flat_keyed(text: str) -> dict[str, int]:
    """`key number` lines, as in memory.stat."""
    return {key: int(value) for key, value in (line.split() for line in text.splitlines())}


def parse_cgroup_paths(text: str) -> dict[str, str]:
    """Controller → path, from `/proc/PID/cgroup`; the key of the unified (v2) hierarchy is ''."""
    paths = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def parse_cgroup_mounts(text: str) -> dict[str, str]:
    """Controller → mount point, from `/proc/PID/mounts`; the key of v2 is ''."""
    mounts: dict[str, str] = {}
    for line in text.splitlines():
        _, point, kind, options, *_ = line.split()
        if kind == "cgroup2":
            mounts.setdefault("", point)
        elif kind == "cgroup":
            for option in options.split(","):
                mounts.setdefault(option, point)
    return mounts


def parse_slurm_memory(environment: Mapping[str, str]) -> int | None:
    """Bytes of memory on this node, by Slurm's variables."""
    try:
        if "SLURM_MEM_PER_NODE" in environment:
            return int(environment["SLURM_MEM_PER_NODE"]) * _MIB or None
        if "SLURM_MEM_PER_CPU" in environment:
            per_cpu = int(environment["SLURM_MEM_PER_CPU"])
            return per_cpu * int(environment["SLURM_CPUS_ON_NODE"]) * _MIB or None
    except (KeyError, ValueError):
        return None
    return None


def parse_job_cores(environment: Mapping[str, str]) -> float | None:
    """The cores of a Slurm job on this node, if it has as many on each: 4 of `4(x2)`. A step may have fewer."""
    count, _, _ = environment.get("SLURM_JOB_CPUS_PER_NODE", "").partition("(")
    cores = parse_count(count)
    return float(cores) if cores else None


def parse_time_limit(environment: Mapping[str, str]) -> tuple[float | None, float | None]:
    """The time limit of the job, and when it ends, by Slurm's variables."""
    end, start = (parse_count(environment.get(f"SLURM_JOB_{name}_TIME")) for name in ("END", "START"))
    if end is None:
        return None, None
    return None if start is None or end <= start else float(end - start), float(end)


def parse_granted_gpus(environment: Mapping[str, str]) -> int | None:
    """How many devices the scheduler has given to the job on this machine."""
    return parse_count(environment.get("SLURM_GPUS_ON_NODE"))


# ---- Reading.


def read_allocation(
    pid: int, environment: Mapping[str, str], *, is_whole_job: bool = False, proc: str = "/proc"
) -> tuple[Allocation, MemoryLimit | None]:
    """What this process may use, or its job on this machine; and the memory limit if a cgroup sets one."""
    machine_cores = os.cpu_count() or 1
    machine_ram = read_machine_ram_bytes()
    of_job = parse_job_cores(environment) if is_whole_job else None
    cores, cores_source = (
        _read_cores(pid, environment, machine_cores, proc) if of_job is None else (of_job, "Slurm")
    )
    limit = find_memory_limit(pid, machine_ram, is_whole_job=is_whole_job, proc=proc)
    ram, ram_source = machine_ram, "machine"
    if limit is not None:
        ram, ram_source = limit.limit_bytes, "cgroup"
    elif (allocated := parse_slurm_memory(environment)) and allocated < machine_ram:
        ram, ram_source = allocated, "Slurm"
    time_limit, ends_at = parse_time_limit(environment)
    return Allocation(
        machine_cores=machine_cores,
        cores=cores,
        cores_source=cores_source,
        machine_ram_bytes=machine_ram,
        ram_bytes=ram,
        ram_source=ram_source,
        address_space_bytes=_read_address_space(pid),
        time_limit_seconds=time_limit,
        ends_at_seconds=ends_at,
        granted_gpus=parse_granted_gpus(environment),
    ), limit


def read_machine_ram_bytes() -> int:
    """The memory of this machine."""
    if sys.platform == "win32":
        from .platform import windows

        return windows.read_machine_ram_bytes()
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def read_environment(pid: int, *, proc: str = "/proc") -> dict[str, str]:
    """The environment that a process was started with; empty if this user may not read it."""
    try:
        text = read_text(f"{proc}/{pid}/environ")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


def find_memory_limit(
    pid: int, machine_ram_bytes: int, *, is_whole_job: bool = False, proc: str = "/proc"
) -> MemoryLimit | None:
    """The smallest limit on the process's cgroup path, if below the machine's memory; of a job, that of no single step."""
    tightest = None
    steps = _climb(pid, "memory", ("memory.max", "memory.limit_in_bytes"), proc)
    if is_whole_job:
        steps = [step for step in steps if _STEP not in step[0]]
    for number, (directory, name) in enumerate(steps, 1):
        try:
            limit = int(read_text(f"{directory}/{name}"))
        except (OSError, ValueError):  # absent at this level, or "max"
            continue
        if limit < min(_NO_LIMIT_BYTES, machine_ram_bytes) and (
            tightest is None or limit < tightest.limit_bytes
        ):
            groups = tuple(group for group, file in steps[:number] if file == name)
            tightest = MemoryLimit(directory, limit, groups)
    return tightest


def _read_cores(pid: int, environment: Mapping[str, str], machine_cores: int, proc: str) -> tuple[float, str]:
    cores, source = float(machine_cores), "machine"
    for candidate, candidate_source in (
        # An MPI launcher binds each rank to one core of a larger allocation, whose size Slurm
        # gives; otherwise the affinity is right.
        (_read_slurm_cores(environment), "Slurm"),
        (_read_affinity(pid, environment), "affinity"),
        (quota.cores if (quota := find_cpu_quota(pid, proc=proc)) else None, "cgroup"),
    ):
        if candidate is not None and candidate < cores:
            cores, source = candidate, candidate_source
    return cores, source


def _read_slurm_cores(environment: Mapping[str, str]) -> float | None:
    try:
        return float(environment["SLURM_CPUS_ON_NODE"])
    except (KeyError, ValueError):
        return None


def _read_affinity(pid: int, environment: Mapping[str, str]) -> float | None:
    under_mpi = any(name in environment for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"))
    if under_mpi or not hasattr(os, "sched_getaffinity"):
        return None
    try:
        return float(len(os.sched_getaffinity(pid)))
    except OSError:
        return None


def _read_address_space(pid: int) -> int | None:
    try:
        most, _ = resource.prlimit(pid, resource.RLIMIT_AS)
    except (AttributeError, OSError):
        return None
    return None if most == resource.RLIM_INFINITY else most


def find_cpu_quota(pid: int, *, proc: str = "/proc") -> CpuQuota | None:
    """The smallest quota on the process's cgroup path."""
    tightest: CpuQuota | None = None
    for directory, name in _climb(pid, "cpu", ("cpu.max", "cpu.cfs_quota_us"), proc):
        try:
            if name == "cpu.max":
                quota, period = map(int, read_text(f"{directory}/cpu.max").split())
            else:
                quota = int(read_text(f"{directory}/cpu.cfs_quota_us"))
                period = int(read_text(f"{directory}/cpu.cfs_period_us"))
        except (OSError, ValueError):  # absent at this level, or "max"
            continue
        if quota > 0 and period > 0:
            cores = quota / period
            tightest = CpuQuota(directory, cores) if tightest is None or cores < tightest.cores else tightest
    return tightest


def _climb(pid: int, controller: str, names: tuple[str, str], proc: str) -> list[tuple[str, str]]:
    """The directories from the process's cgroup up to the root, v2 and v1, each with the file to read.

    In a container the path may be outside the mount; the mount point itself is then the container's group.
    """
    try:
        paths = parse_cgroup_paths(read_text(f"{proc}/{pid}/cgroup"))
        mounts = parse_cgroup_mounts(read_text(f"{proc}/{pid}/mounts"))
    except (OSError, ValueError):
        return []
    steps = []
    for hierarchy, name in (("", names[0]), (controller, names[1])):
        if hierarchy not in paths or hierarchy not in mounts:
            continue
        path = paths[hierarchy].strip("/")
        while path:
            steps.append((f"{mounts[hierarchy]}/{path}", name))
            path = path.rpartition("/")[0]
        steps.append((mounts[hierarchy], name))
    return steps
