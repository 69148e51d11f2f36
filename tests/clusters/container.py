"""A container made of this machine's own files, read-only, and one directory that it may write to. It takes root, and runc or crun."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CAPABILITIES = ["CAP_KILL", "CAP_SYS_PTRACE"]


def find_runtime() -> str | None:
    """The program that runs containers, if there is one."""
    return shutil.which("runc") or shutil.which("crun")


@dataclass(frozen=True)
class Container:
    """One that has been made, and not yet run."""

    runtime: str
    name: str
    bundle: Path

    def start(self) -> subprocess.Popen[str]:
        """Run it; its exit code is that of its first process."""
        return subprocess.Popen(
            [*self._call("run"), "--bundle", str(self.bundle), self.name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        process = self.start()
        try:
            output, errors = process.communicate(timeout=seconds)
        finally:
            self.remove()
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def find_process(self) -> int:
        """Its first process, as everybody else sees it; 0 until it runs."""
        told = subprocess.run([*self._call("state"), self.name], check=False, capture_output=True, text=True)
        return int(json.loads(told.stdout)["pid"]) if told.returncode == 0 else 0

    def tell(self, number: signal.Signals) -> None:
        """Send a signal to its first process, as `docker stop` and Kubernetes do."""
        subprocess.run([*self._call("kill"), self.name, str(int(number))], check=True, capture_output=True)

    def remove(self) -> None:
        """Nothing is left of it, whatever it did."""
        subprocess.run([*self._call("delete"), "--force", self.name], check=False, capture_output=True)

    def _call(self, command: str) -> list[str]:
        return [self.runtime, "--root", str(self.bundle / "state"), command]


def make(
    runtime: str,
    place: Path,
    shared: Path,
    command: list[str],
    memory_bytes: int,
    cores: float,
    variables: dict[str, str] | None = None,
    beside: int | None = None,
) -> Container:
    """A container with these limits; `shared` is its working directory. `beside` is a process whose process IDs it shares."""
    (place / "rootfs").mkdir(parents=True)
    # Of the machine's files; only the directory can be written to.
    mounts: list[dict[str, Any]] = [
        *(
            {"destination": f"/{name}", "type": "bind", "source": f"/{name}", "options": ["rbind", "ro"]}
            for name in sorted(os.listdir("/"))
            if name not in ("proc", "sys", "dev", "lost+found") and Path("/", name).is_dir()
        ),
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
        {
            "destination": "/dev/shm",
            "type": "tmpfs",
            "source": "shm",
            "options": ["nosuid", "nodev", "mode=1777"],
        },
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "ro"]},
        {
            "destination": "/sys/fs/cgroup",
            "type": "cgroup",
            "source": "cgroup",
            "options": ["nosuid", "noexec", "ro"],
        },
        {"destination": str(shared), "type": "bind", "source": str(shared), "options": ["bind", "rw"]},
    ]
    kinds = dict.fromkeys(("bounding", "effective", "permitted"), _CAPABILITIES)
    name = f"gput-{os.getpid()}-{place.name}"
    configuration = {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "args": command,
            "env": [
                f"{key}={value}" for key, value in {"PATH": os.environ["PATH"], **(variables or {})}.items()
            ],
            "cwd": str(shared),
            "capabilities": kinds,
        },
        "root": {"path": "rootfs", "readonly": False},
        "hostname": place.name,
        "mounts": mounts,
        "linux": {
            "cgroupsPath": f"/{name}",
            "resources": {
                "memory": {"limit": memory_bytes},
                "cpu": {"quota": round(cores * 100_000), "period": 100_000},
            },
            "namespaces": [
                {"type": "pid"} if beside is None else {"type": "pid", "path": f"/proc/{beside}/ns/pid"},
                *({"type": kind} for kind in ("mount", "ipc", "uts")),
            ],
        },
    }
    (place / "config.json").write_text(json.dumps(configuration))
    return Container(runtime, name, place)
