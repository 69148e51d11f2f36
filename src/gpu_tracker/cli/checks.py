"""Doctor's checks besides the GPUs: versions, processes, allocation, recordings."""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module

from ..analysis.checks import ENERGY_GROUP, FAILED, FINE, NOTHING, WARNING, Check
from ..core.config import PROCESS_SOURCES, list_process_sources
from ..core.system import posix
from ..core.text import count_of
from ..core.units import humanize_bytes
from ..core.version import DISTRIBUTION, __version__
from ..sources.allocation import read_allocation
from .track import DEFAULT_DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_MACHINES_OWN_PID_NAMESPACE = "pid:[4026531836]"
_NAMESAKE = "gpu-tracker"
_JOB_VARIABLES = (
    "SLURM_JOB_ID",
    "SLURM_CPUS_ON_NODE",
    "SLURM_MEM_PER_NODE",
    "SLURM_MEM_PER_CPU",
    "SLURM_GPUS_ON_NODE",
    "SLURM_JOB_GPUS",
)


def check_versions() -> list[Check]:
    """Versions of everything involved."""
    from importlib.metadata import PackageNotFoundError, version

    system = posix.uname()
    checks = [
        _fine("versions", DISTRIBUTION, __version__),
        *_check_namesake(),
        _fine("versions", "Python", f"{sys.version.split()[0]} ({sys.executable})"),
        _fine("versions", "system", f"{system.sysname} {system.release} {system.machine}"),
    ]
    for package in ("psutil", "nvidia-ml-py"):
        try:
            checks.append(_fine("versions", package, version(package)))
        except PackageNotFoundError:
            checks.append(Check("versions", package, NOTHING, "not installed"))
    return checks


def _check_namesake() -> list[Check]:
    """The paper's own package has a module `gpu_tracker` as well: installed together, each overwrites files of the other."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        other = version(_NAMESAKE)
    except PackageNotFoundError:
        return []
    text = (
        f"version {other} is another package with the same module gpu_tracker, installed beside {DISTRIBUTION}: "
        f"`pip uninstall {_NAMESAKE}`, then install {DISTRIBUTION} again with --force-reinstall"
    )
    return [Check("versions", _NAMESAKE, FAILED, text)]


# How the peaks of a source come about, that is none of Linux's.
_PEAKS = {
    "darwin": "estimates by the footprint",
    "windows": "exact for each process that was read after its peak",
}


def check_processes(proc: str = "/proc") -> list[Check]:
    """The process source that a job would be read with, and how exact its figures are."""
    name = next(filter(_can_read_self, list_process_sources()), None)
    if name is None:
        text = f"Neither {' nor '.join(PROCESS_SOURCES)} can read processes here; mount /proc."
        return [Check("processes", "tree", FAILED, text)]
    if name != "procfs":
        how = _PEAKS.get(name, "sampled")
        text = f"{how}, and shared memory is counted in every process: exact figures need Linux's /proc"
        return [
            _fine("processes", "tree", f"read through {name}"),
            Check("processes", "peaks", WARNING, text),
        ]
    return [
        _fine("processes", "tree", "read through procfs"),
        _check_clock(os.getppid()),
        _check_high_water(f"{proc}/self/status"),
        _check_sharing(),
        _check_others(f"{proc}/1/stat"),
    ]


def check_allocation(environment: Mapping[str, str]) -> list[Check]:
    """What a job started from here may use, and what sets that limit."""
    allocation, limit = read_allocation(os.getpid(), environment)
    cores = f"{allocation.cores:g} of {allocation.machine_cores} ({allocation.cores_source})"
    ram = (
        f"{humanize_bytes(allocation.ram_bytes)} of {humanize_bytes(allocation.machine_ram_bytes)} "
        f"({allocation.ram_source})"
    )
    checks = [_fine("allocation", "cores", cores), _fine("allocation", "RAM", ram)]
    if limit is None:
        checks.append(Check("allocation", "memory limit", NOTHING, "no cgroup sets one"))
    elif limit.read_used() is None:
        text = f"{limit.directory} sets one, but memory.stat there cannot be read."
        checks.append(Check("allocation", "memory limit", FAILED, text))
    else:
        checks.append(
            _fine("allocation", "memory limit", f"{humanize_bytes(limit.limit_bytes)} in {limit.directory}")
        )
    job = [f"{name}={environment[name]}" for name in _JOB_VARIABLES if name in environment]
    checks.append(
        _fine("allocation", "Slurm", " ".join(job))
        if job
        else Check("allocation", "Slurm", NOTHING, "this is not a Slurm job")
    )
    return checks


def check_namespace(proc: str = "/proc") -> list[Check]:
    """Whether our process IDs are the machine's own."""
    try:
        namespace = os.readlink(f"{proc}/self/ns/pid")
    except OSError:
        return []
    if namespace == _MACHINES_OWN_PID_NAMESPACE:
        return [_fine("processes", "pid namespace", "the machine's own")]
    text = (
        "nested, as in a container: some GPU drivers report the host's process IDs, and the job's GPU memory "
        "cannot be separated from other processes' then; `docker run --pid=host` helps"
    )
    return [Check("processes", "pid namespace", WARNING, text)]


def check_recording(directory: str = DEFAULT_DIRECTORY) -> list[Check]:
    """Whether `run` could write its recording."""
    path = directory if os.path.exists(directory) else "."
    if os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK):
        return [_fine("recording", directory, f"writable ({os.path.abspath(directory)})")]
    text = f"{os.path.abspath(path)} is not writable; `--record DIR` puts recordings elsewhere"
    return [Check("recording", directory, WARNING, text)]


def check_energy(sys: str = "/sys") -> list[Check]:
    """Whether the energy of the processors can be read."""
    from ..sources import NotAvailableError
    from ..sources.rapl import connect

    try:
        meters = connect(sys=sys).read()
    except NotAvailableError as error:
        return [Check(ENERGY_GROUP, "processors", NOTHING, str(error))]
    return [
        _fine(ENERGY_GROUP, "processors", f"{count_of(len(meters), 'meter')} (RAPL), for the whole machine")
    ]


def _fine(group: str, what: str, text: str) -> Check:
    return Check(group, what, FINE, text)


def _can_read_self(name: str) -> bool:
    try:
        tree = import_module(f"..sources.{name}", __package__).ProcessTree(os.getpid())
        try:
            return bool(tree.read())
        finally:
            tree.close()
    except Exception:  # noqa: BLE001 - whatever it is, a job could not be read either
        return False


def _check_clock(pid: int) -> Check:
    try:
        time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        text = "in hundredths of a second while a job runs: the kernel hides other processes' clocks"
        return Check("processes", "CPU time", WARNING, text)
    return _fine("processes", "CPU time", "exact: the kernel's clocks and counters")


def _check_high_water(status_path: str) -> Check:
    from ..sources.procfs import parse_sizes

    try:
        with open(status_path, "rb") as file:
            has_marks = parse_sizes(file.read()) is not None
    except (OSError, ValueError):
        has_marks = False
    if has_marks:
        return _fine("processes", "peak memory", "exact: the kernel's high-water marks")
    text = "sampled: this kernel has no high-water marks (VmHWM)"
    return Check("processes", "peak memory", WARNING, text)


def _check_sharing() -> Check:
    from ..sources.procfs import ProcessTree

    tree = ProcessTree(os.getpid())
    try:
        sharing = tree.read_sharing(os.getpid())
    finally:
        tree.close()
    if sharing is not None:
        return _fine("processes", "shared memory", "counted once: smaps_rollup can be read")
    text = "an estimate: smaps_rollup cannot be read (Linux before 4.14, or without page monitoring)"
    return Check("processes", "shared memory", WARNING, text)


def _check_others(stat_path: str) -> Check:
    try:
        with open(stat_path, "rb") as file:
            file.read()
    except OSError:
        text = "hidden (hidepid): other users' processes on a GPU are shown by ID only"
        return Check("processes", "other users", WARNING, text)
    return _fine("processes", "other users", "visible")
