"""A Slurm cluster of two nodes and two spare ones on this machine, for as long as a test needs it. It takes root, and Debian's Slurm.

Each node has its own process IDs, /dev/shm and host name, as real machines have: two ranks then often have the same process ID in the same
second, and what one node writes to /dev/shm the other does not see. Everything listens on loopback only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

NODES = ("n1", "n2")
SPARE = ("n3", "n4")
"""In a partition of their own: for jobs that take long beside others, and for one whose node is lost."""
_ALL = (*NODES, *SPARE)
CORES = 4
_PORT = 17600
_UP_SECONDS = 60.0
_DOWN_SECONDS = 10.0
_USER = 65534  # nobody, as whom jobs run

_CONFIGURATION = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/private/slurmd-%n.pid
SlurmdSpoolDir={root}/spool-%n
StateSaveLocation={root}/state
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd-%n.log
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
KillWait=3
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
DefMemPerCPU=200
PropagateResourceLimits=NONE
"""
# The first process of a node buries orphans, and nothing of the node is left when it ends.
_NODE = """
mount --bind {root}/hosts /etc/hosts && mount --bind {root}/private-{name} {root}/private && hostname {name} &&
mount -t tmpfs -o mode=1777 none /dev/shm && slurmd -D -N {name} & trap 'kill $!' TERM; wait; wait
"""


class Cluster:
    """A cluster that runs."""

    def __init__(self, root: Path) -> None:
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {
            "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin",
            "SLURM_CONF": str(root / "slurm.conf"),
            "HOME": str(root),
            # Neither its daemons nor its ranks look for other networks.
            "OMPI_MCA_oob_tcp_if_include": "lo",
            "OMPI_MCA_btl": "self,vader,tcp",
            "OMPI_MCA_btl_tcp_if_include": "lo",
        }

    def run(
        self, *command: str, cwd: Path, seconds: float = 120, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of Slurm's as an ordinary user."""
        return subprocess.run(
            command,
            cwd=cwd,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            user=_USER,
            group=_USER,
            extra_groups=[],
        )

    def add_node(self, name: str, first: subprocess.Popen[bytes]) -> None:
        """One whose processes all end with its first."""
        self._nodes[name] = first

    def lose(self, name: str, cwd: Path) -> None:
        """Kill a node with all that runs there, as if its power had failed, and let Slurm know at once."""
        self._nodes[name].kill()
        self._nodes[name].wait()
        state = ("NodeName=" + name, "State=DOWN", "Reason=killed")
        subprocess.run(
            ["scontrol", "update", *state], env=self.environment, cwd=cwd, check=True, capture_output=True
        )

    def batch(self, *options: str, cwd: Path) -> str:
        """Run a batch script to its end, which must be a good one; the number of its job. `sbatch --wait` looks every ten seconds."""
        sent = self.run("sbatch", "--parsable", *options, cwd=cwd)
        number = sent.stdout.strip()
        state = self.wait_for_job(number, cwd) if number else sent.stderr
        if state != "COMPLETED":
            raise AssertionError(f"job {number}: {state}")
        return number

    def wait_for_job(self, number: str, cwd: Path, seconds: float = 120) -> str:
        """Wait until a job is over; its last state."""
        until, state = time.monotonic() + seconds, ""
        while time.monotonic() < until:
            told = self.run("scontrol", "show", "job", number, "--oneliner", cwd=cwd).stdout
            states = [word.removeprefix("JobState=") for word in told.split() if word.startswith("JobState=")]
            state = states[0] if states else state
            if not states or all(
                one not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING") for one in states
            ):
                return state
            time.sleep(0.2)
        raise TimeoutError(state)


@contextlib.contextmanager
def start(root: Path) -> Iterator[Cluster]:
    """Start a cluster in an empty directory, which everybody can enter."""
    cluster = Cluster(root)
    host = os.uname().nodename.partition(".")[0]
    for name in ("private", "state", *(f"{kind}-{node}" for node in _ALL for kind in ("private", "spool"))):
        (root / name).mkdir()
        (root / name).chmod(0o1777 if name.startswith("private") else 0o755)
    (root / "munge.key").write_bytes(os.urandom(1024))
    (root / "munge.key").chmod(0o600)
    (root / "cgroup.conf").write_text(
        "CgroupPlugin=cgroup/v1\nConstrainRAMSpace=yes\n"
        if _has_v1()
        else "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\nConstrainRAMSpace=yes\n"
    )
    (root / "mpi.conf").write_text(f"PMIxCliTmpDirBase={root}/private\n")
    nodes = [
        f"NodeName={node} NodeHostname={node} NodeAddr=127.0.0.1 Port={_PORT + 10 + number} CPUs={CORES} RealMemory=4000 State=UNKNOWN"
        for number, node in enumerate(_ALL)
    ]
    partitions = [
        f"PartitionName=all Nodes={','.join(NODES)} Default=YES MaxTime=INFINITE State=UP",
        f"PartitionName=spare Nodes={','.join(SPARE)} MaxTime=INFINITE State=UP",
    ]
    text = _CONFIGURATION.format(host=host, port=_PORT, root=root)
    (root / "slurm.conf").write_text("\n".join((text, *nodes, *partitions, "")))
    names = "".join(f"127.0.0.1 {node}\n" for node in _ALL)
    (root / "hosts").write_text(Path("/etc/hosts").read_text() + names)
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        daemons += [
            _start(
                cluster,
                [
                    "munged",
                    "--foreground",
                    "--force",
                    f"--key-file={root}/munge.key",
                    f"--socket={root}/munge.socket",
                    f"--pid-file={root}/munged.pid",
                    f"--seed-file={root}/munge.seed",
                    f"--log-file={root}/munged.log",
                ],
                root,
            )
        ]
        _wait_until((root / "munge.socket").exists)
        daemons.append(_start(cluster, ["slurmctld", "-D"], root))
        for node in _ALL:
            script = _NODE.format(root=root, name=node)
            apart = [
                "unshare",
                "--uts",
                "--mount",
                "--ipc",
                "--pid",
                "--fork",
                "--mount-proc",
                "--kill-child",
            ]
            daemons.append(_start(cluster, [*apart, "bash", "-c", script], root))
            cluster.add_node(node, daemons[-1])
        _wait_until(lambda: _count_idle(cluster, root) == len(_ALL))
        yield cluster
    finally:
        _end(daemons)


def _has_v1() -> bool:
    return not Path("/sys/fs/cgroup/cgroup.controllers").exists()


def _start(cluster: Cluster, command: list[str], root: Path) -> subprocess.Popen[bytes]:
    log = (root / f"{command[0]}.out").open("ab")
    with log:
        return subprocess.Popen(
            command,
            env=cluster.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _end(daemons: list[subprocess.Popen[bytes]]) -> None:
    """Only what was started here; a node ends with its first process."""
    left = [daemon for daemon in reversed(daemons) if daemon.poll() is None]
    for daemon in left:
        daemon.send_signal(signal.SIGTERM)
    until = time.monotonic() + _DOWN_SECONDS
    for daemon in left:
        try:
            daemon.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def _count_idle(cluster: Cluster, root: Path) -> int:
    return cluster.run("sinfo", "-h", "-N", "-o", "%T", cwd=root).stdout.split().count("idle")


def _wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + _UP_SECONDS
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.1)
