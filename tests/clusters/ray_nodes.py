"""Nodes of Ray on this machine, each with its own network, process IDs, host name, /dev/shm and /tmp of Ray. They share the disk only.

The first node is the head; its network has a bridge, to which the others are joined. It takes root.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_RAY = Path(sys.executable).parent / "ray"
_UP_SECONDS = 90.0
_PORT = 6379
_BYTES = 80_000_000  # of Ray's object store, the least that it takes
# The first process of a node buries orphans, and nothing of the node is left when it ends.
_NODE = """
mount -t tmpfs -o mode=1777 none /dev/shm && mount -t tmpfs none {root}/ray && hostname {name} && ip link set lo up || exit 1
{private}
until ip link show {link} >/dev/null 2>&1; do sleep 0.05; done
ip address add {address}/24 dev {link} && ip link set {link} up || exit 1
{ray} start --block --node-ip-address={address} --num-cpus=2 --object-store-memory={bytes} --disable-usage-stats {options} &
wait
sleep infinity
"""
_APART = ("unshare", "--net", "--uts", "--mount", "--ipc", "--pid", "--fork", "--mount-proc", "--kill-child")
_ENVIRONMENT = {
    # A node that is gone is noticed after seconds, not half a minute.
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "5000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DISABLE_DOCKER_CPU_WARNING": "1",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
}


class Nodes:
    """Those that run."""

    def __init__(self, root: Path) -> None:
        self._root = root
        own = dict.fromkeys(
            ("HOME", "TMPDIR"), f"{root}/ray"
        )  # there may be settings of the user's Ray in the home directory
        self._environment = {**os.environ, **_ENVIRONMENT, **own}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        (root / "ray").mkdir()
        self.runs = root / "runs"
        self.runs.mkdir()

    def start(self, *, shares_runs: bool = True) -> str:
        """Start one more; its name."""
        number = len(self._processes) + 1
        name, address = f"r{number}", f"10.77.0.{number}"
        is_head = number == 1
        head = ("--head", f"--port={_PORT}", "--include-dashboard=false", f"--temp-dir={self._root}/ray")
        script = _NODE.format(
            root=self._root,
            name=name,
            address=address,
            link="bridge" if is_head else f"to-{name}",
            ray=_RAY,
            bytes=_BYTES,
            options=" ".join(head if is_head else (f"--address=10.77.0.1:{_PORT}",)),
            private="" if shares_runs else f"mount -t tmpfs none {self.runs} || exit 1",
        )
        with (self._root / f"{name}.log").open("wb") as log:
            self._processes[name] = started = subprocess.Popen(
                [*_APART, "sh", "-c", script],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until = time.monotonic() + _UP_SECONDS
        while os.readlink(f"/proc/{started.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            if time.monotonic() > until:
                raise TimeoutError(name)
            time.sleep(0.01)
        if is_head:
            self._run_in_head("ip", "link", "add", "bridge", "type", "bridge")
        else:
            peer = ("peer", "name", f"to-{name}", "netns", str(started.pid))
            self._run_in_head("ip", "link", "add", f"from-{name}", "type", "veth", *peer)
            self._run_in_head("ip", "link", "set", f"from-{name}", "master", "bridge", "up")
        return name

    def run(self, *command: str, seconds: float = 120) -> subprocess.Popen[str]:
        """Run a program on the first node."""
        inside = Path(
            f"/proc/{self._processes['r1'].pid}/task/{self._processes['r1'].pid}/children"
        ).read_text()
        enter = ("nsenter", "--target", inside.split()[0], "--all")
        with (self._root / "z-program.log").open("wb") as log:
            return subprocess.Popen(
                [*enter, "timeout", str(seconds), *command],
                env=self._environment,
                cwd=self._root,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def kill(self, name: str) -> None:
        """As if it had lost its power: all its processes end at once."""
        self._processes[name].kill()
        self._processes[name].wait()

    def read_logs(self) -> str:
        """What they have said."""
        return "\n".join(log.read_text()[-3000:] for log in sorted(self._root.glob("*.log")))

    def end(self) -> None:
        """End all."""
        for process in reversed(self._processes.values()):
            process.kill()
            process.wait()

    def _run_in_head(self, *command: str) -> None:
        enter = ("nsenter", "--target", str(self._processes["r1"].pid), "--net")
        subprocess.run([*enter, *command], check=True, capture_output=True)


@contextlib.contextmanager
def start(root: Path) -> Iterator[Nodes]:
    """Two nodes, in an empty directory."""
    nodes = Nodes(root)
    try:
        nodes.start()
        nodes.start()
        yield nodes
    finally:
        nodes.end()
