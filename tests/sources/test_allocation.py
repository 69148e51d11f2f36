"""What the job may use, from every source."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpu_tracker.sources.allocation import (
    MemoryLimit,
    OomWatch,
    find_memory_limit,
    parse_cgroup_mounts,
    parse_cgroup_paths,
    parse_flat_keyed,
    parse_slurm_memory,
    read_allocation,
)

MIB = 2**20
GIB = 2**30
MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


class FakeSystem:
    """A /proc and a cgroup tree in a directory."""

    def __init__(self, root: Path) -> None:
        self.proc = str(root / "proc")
        self.cgroup = root / "cgroup"

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def put(self, pid: int, cgroup: str, mounts: str) -> None:
        """Put a process into a cgroup."""
        self._write(Path(self.proc) / str(pid) / "cgroup", cgroup)
        self._write(Path(self.proc) / str(pid) / "mounts", mounts.replace("ROOT", str(self.cgroup)))

    def control(self, path: str, text: str) -> None:
        """Write a control file."""
        self._write(self.cgroup / path, text)


@pytest.fixture
def system(tmp_path: Path) -> FakeSystem:
    """An empty one."""
    return FakeSystem(tmp_path)


V2 = ("0::/user/job\n", "cgroup2 ROOT cgroup2 rw 0 0\n")
V1 = (
    "4:memory:/slurm/job_3\n2:cpu,cpuacct:/slurm\n0::/\n",
    "cgroup ROOT/memory cgroup rw,memory 0 0\ncgroup ROOT/cpu cgroup rw,cpu,cpuacct 0 0\n",
)


def test_the_tightest_limit_of_v2_wins(system: FakeSystem) -> None:
    """A limit may be set at any level above the process."""
    system.put(7, *V2)
    system.control("user/memory.max", f"{GIB}\n")
    system.control("user/job/memory.max", "max\n")
    system.control("user/job/cpu.max", "max 100000\n")
    system.control("user/cpu.max", "150000 100000\n")
    allocation, limit = read_allocation(7, {}, proc=system.proc)

    assert (allocation.ram_bytes, allocation.ram_source) == (GIB, "cgroup")
    assert (allocation.cores, allocation.cores_source) == (min(1.5, os.cpu_count() or 1), "cgroup")
    assert allocation.machine_ram_bytes == MACHINE
    assert limit is not None
    assert limit.directory.endswith("/user")


def test_limits_of_v1_count(system: FakeSystem) -> None:
    """With separate trees for memory and cpu."""
    system.put(7, *V1)
    system.control("memory/memory.limit_in_bytes", "9223372036854771712\n")
    system.control("memory/slurm/job_3/memory.limit_in_bytes", f"{700 * MIB}\n")
    system.control("cpu/slurm/cpu.cfs_quota_us", "50000\n")
    system.control("cpu/slurm/cpu.cfs_period_us", "100000\n")
    system.control("cpu/cpu.cfs_quota_us", "-1\n")
    system.control("cpu/cpu.cfs_period_us", "100000\n")
    allocation, _ = read_allocation(7, {}, proc=system.proc)

    assert allocation.ram_bytes == 700 * MIB
    assert allocation.cores == 0.5


def test_without_limits_it_is_the_machine(system: FakeSystem) -> None:
    """Also if nothing can be read."""
    allocation, limit = read_allocation(os.getpid(), {}, proc=system.proc)

    assert (allocation.ram_bytes, allocation.ram_source) == (MACHINE, "machine")
    assert limit is None


def test_a_limit_above_the_machine_is_ignored(system: FakeSystem) -> None:
    """No process can use more than the machine has."""
    system.put(7, *V2)
    system.control("user/job/memory.max", f"{64 * GIB}\n")

    assert find_memory_limit(7, 16 * GIB, proc=system.proc) is None


def test_slurm_gives_limits_without_cgroups(system: FakeSystem) -> None:
    """Memory in MiB, cores as a number."""
    slurm = {"SLURM_MEM_PER_NODE": "512", "SLURM_CPUS_ON_NODE": "1"}
    allocation, _ = read_allocation(os.getpid(), slurm, proc=system.proc)

    assert (allocation.ram_bytes, allocation.ram_source) == (512 * MIB, "Slurm")
    assert allocation.cores == 1


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, None),
        ({"SLURM_MEM_PER_NODE": "0"}, None),
        ({"SLURM_MEM_PER_NODE": "junk"}, None),
        ({"SLURM_MEM_PER_CPU": "100"}, None),
        ({"SLURM_MEM_PER_CPU": "100", "SLURM_CPUS_ON_NODE": "4"}, 400 * MIB),
    ],
)
def test_slurms_memory(variables: dict[str, str], expected: int | None) -> None:
    """Per node or per CPU; invalid values are ignored."""
    assert parse_slurm_memory(variables) == expected


def test_affinity_is_what_the_job_may_use_except_under_mpi(system: FakeSystem) -> None:
    """A launcher binds each rank to one core of a larger allocation."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(mine)})
    try:
        pinned, _ = read_allocation(os.getpid(), {}, proc=system.proc)
        rank, _ = read_allocation(os.getpid(), {"PMI_RANK": "0"}, proc=system.proc)
    finally:
        os.sched_setaffinity(0, mine)

    assert pinned.cores == 1
    assert rank.cores == os.cpu_count()


def test_a_process_that_has_ended_is_no_trouble(system: FakeSystem) -> None:
    """Nor are invalid variables."""
    allocation, _ = read_allocation(2**22 + 1, {"SLURM_CPUS_ON_NODE": "many"}, proc=system.proc)

    assert allocation.cores == os.cpu_count()


def test_what_is_used_under_a_limit(system: FakeSystem) -> None:
    """Without what the kernel can reclaim."""
    system.control("v2/memory.stat", "anon 100\nfile 900\nshmem 20\nfile_mapped 5\n")
    system.control("v1/memory.stat", "cache 900\ntotal_rss 100\ntotal_shmem 20\ntotal_mapped_file 3\n")

    assert MemoryLimit(str(system.cgroup / "v2"), 1).read_used() == 125
    assert MemoryLimit(str(system.cgroup / "v1"), 1).read_used() == 123
    assert MemoryLimit(str(system.cgroup / "none"), 1).read_used() is None


def test_what_a_limit_counts_without_its_caches(system: FakeSystem) -> None:
    """Anonymous, shared and kernel memory: usage without files, and without what the kernel can drop of its own."""
    system.control("v2/memory.stat", "anon 100\nactive_file 300\ninactive_file 200\nslab_reclaimable 50\n")
    system.control("v2/memory.current", "700\n")
    system.control("v2/memory.peak", "900\n")
    system.control("v1/memory.stat", "active_file 7\ntotal_active_file 300\ntotal_inactive_file 200\n")
    system.control("v1/memory.usage_in_bytes", "640\n")
    system.control("v1/memory.max_usage_in_bytes", "800\n")
    system.control("torn/memory.stat", "anon 1\nactive_file 900\n")
    system.control("torn/memory.current", "700\n")
    system.control("half/memory.stat", "anon 1\n")
    limits = {
        name: MemoryLimit(str(system.cgroup / name), 1) for name in ("v2", "v1", "torn", "half", "none")
    }

    assert {name: limit.read_held() for name, limit in limits.items()} == {
        "v2": 150,
        "v1": 140,
        "torn": 0,
        "half": None,
        "none": None,
    }
    assert [limits[name].read_peak() for name in ("v2", "v1", "none")] == [900, 800, None]


def test_oom_kills_are_counted(system: FakeSystem) -> None:
    """In both cgroup versions."""
    system.control("v2/memory.events", "low 0\noom 3\noom_kill 2\n")
    system.control("v1/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n")

    assert MemoryLimit(str(system.cgroup / "v2"), 1).count_oom_kills() == 2
    assert MemoryLimit(str(system.cgroup / "v1"), 1).count_oom_kills() == 4
    assert MemoryLimit(str(system.cgroup / "none"), 1).count_oom_kills() == 0


def test_oom_kills_of_v1_are_counted_in_the_victims_own_group(system: FakeSystem) -> None:
    """Up to the group that has the limit, and not above."""
    system.put(7, "4:memory:/slurm/job_3/step_0/task_0\n0::/\n", V1[1])
    system.control("memory/slurm/job_3/memory.limit_in_bytes", f"{700 * MIB}\n")
    groups = ("slurm", "slurm/job_3", "slurm/job_3/step_0", "slurm/job_3/step_0/task_0")
    for group, kills in zip(groups, (1000, 100, 10, 1), strict=True):
        system.control(f"memory/{group}/memory.oom_control", f"under_oom 0\noom_kill {kills}\n")
    limit = find_memory_limit(7, MACHINE, proc=system.proc)

    assert limit is not None
    assert limit.count_oom_kills() == 111


def test_parsers_read_the_kernels_formats() -> None:
    """Several controllers in one tree, a unified tree beside them."""
    assert parse_cgroup_paths("3:cpu,cpuacct:/a:b\n0::/c\n") == {"cpu": "/a:b", "cpuacct": "/a:b", "": "/c"}
    assert parse_cgroup_mounts("x /m cgroup rw,cpu 0 0\ny /u cgroup2 rw 0 0\nz /d ext4 rw 0 0\n") == {
        "rw": "/m",
        "cpu": "/m",
        "": "/u",
    }
    assert parse_flat_keyed("a 1\nb 2\n") == {"a": 1, "b": 2}


def test_the_real_machine_can_be_read() -> None:
    """Whatever it has."""
    allocation, _ = read_allocation(os.getpid(), os.environ)

    assert 0 < allocation.cores <= allocation.machine_cores
    assert 0 < allocation.ram_bytes <= allocation.machine_ram_bytes


def test_a_kill_in_a_group_that_the_job_has_entered_is_found(system: FakeSystem) -> None:
    """Kills before it was seen there were of others; one that has ended is in no group."""
    mounts = "cgroup ROOT/memory cgroup rw,memory 0 0\n"
    system.put(7, "4:memory:/\n", mounts)
    system.control("memory/step/memory.limit_in_bytes", str(MIB))
    system.control("memory/step/memory.oom_control", "oom_kill 3\n")
    watch = OomWatch(None, MACHINE, proc=system.proc)
    watch.look_at(7)
    watch.look_at(8)
    system.put(7, "4:memory:/step\n", mounts)
    watch.look_at(7)
    assert watch.find_reached() is None
    system.control("memory/step/memory.oom_control", "oom_kill 4\n")
    watch.look_at(7)
    reached = watch.find_reached()

    assert reached is not None
    assert reached.limit_bytes == MIB


@pytest.mark.parametrize("version", [1, 2])
def test_the_group_in_which_a_process_was_killed_is_told(system: FakeSystem, version: int) -> None:
    """One of the job's own; what is killed beside it under the same limit is another's."""
    text, mounts = ("4:memory:/job/task_0\n", "cgroup ROOT/memory cgroup rw,memory 0 0\n") if version == 1 else ("0::/job/task_0\n", "cgroup2 ROOT/memory cgroup2 rw 0 0\n")  # fmt: skip
    limit_file, kills_file = ("memory.limit_in_bytes", "memory.oom_control") if version == 1 else ("memory.max", "memory.events")  # fmt: skip
    system.put(7, text, mounts)
    system.control(f"memory/job/{limit_file}", str(MIB))
    system.control(f"memory/job/task_0/{limit_file}", str(2 * MIB))
    for group in ("job", "job/task_0"):
        system.control(f"memory/{group}/{kills_file}", "oom_kill 3\n")
    watch = OomWatch(find_memory_limit(7, MACHINE, proc=system.proc), MACHINE, proc=system.proc)
    system.control(f"memory/job/{kills_file}", "oom_kill 4\n")
    assert watch.find_reached() is not None
    assert watch.find_group() == ""
    system.control(f"memory/job/task_0/{kills_file}", "oom_kill 4\n")

    assert (watch.find_group() or "").endswith("/job/task_0")
    assert OomWatch(None, MACHINE, proc=system.proc).find_group() is None


def test_groups_are_looked_at_up_to_a_number(system: FakeSystem) -> None:
    """A job that makes one for each of its tasks must not make the sampler grow."""
    watch = OomWatch(None, MACHINE, proc=system.proc)
    for number in range(101):
        system.put(7, f"4:memory:/{number}\n", "cgroup ROOT/memory cgroup rw,memory 0 0\n")
        system.control(f"memory/{number}/memory.limit_in_bytes", str(MIB + 4096 * number))
        watch.look_at(7)
    system.control("memory/100/memory.oom_control", "oom_kill 1\n")
    assert watch.find_reached() is None
    system.control("memory/99/memory.oom_control", "oom_kill 1\n")
    reached = watch.find_reached()

    assert reached is not None
    assert reached.limit_bytes == MIB + 4096 * 99


@pytest.mark.parametrize(
    ("text", "cores"), [("4(x2)", 4.0), ("8", 8.0), ("", None), ("0", None), ("many", None)]
)
def test_the_cores_of_a_whole_job_are_not_those_of_a_step(
    system: FakeSystem, text: str, cores: float | None
) -> None:
    """A step that only looks at the job has one of them."""
    variables = {"SLURM_JOB_CPUS_PER_NODE": text, "SLURM_CPUS_ON_NODE": "1"}
    system.put(os.getpid(), *V2)
    allocation, _ = read_allocation(os.getpid(), variables, is_whole_job=True, proc=system.proc)

    assert (allocation.cores, allocation.cores_source) == (1.0 if cores is None else cores, "Slurm")


def test_the_memory_of_a_whole_job_is_not_that_of_a_step(system: FakeSystem) -> None:
    """Which may have asked for less."""
    system.put(7, "0::/job_3/step_1/user\n", V2[1])
    system.control("job_3/memory.max", str(4 * MIB))
    system.control("job_3/step_1/memory.max", str(MIB))
    _, of_job = read_allocation(7, {}, is_whole_job=True, proc=system.proc)
    _, of_step = read_allocation(7, {}, proc=system.proc)

    assert of_job is not None
    assert of_step is not None
    assert (of_job.limit_bytes, of_step.limit_bytes) == (4 * MIB, MIB)
