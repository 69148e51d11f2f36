"""Scenes for the fault tests: real processes, all marked, so that none can be left behind unseen."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest

import gpu_tracker
from end_to_end.fault_workloads.telling import (
    FIGURES,
    MARK,
    UNTRACKED,
)
from marked import marked_processes, read_state, samplers_among
from patience import wait_until

TESTS = Path(__file__).parent.parent
WORKLOADS = Path(__file__).parent / "fault_workloads"
PACKAGE_PARENT = Path(str(gpu_tracker.__file__)).parent.parent
COMMAND = str(Path(sysconfig.get_path("scripts")) / "gpu-tracker")
# Whatever takes this long hangs. Everything here is done within a second or two on a quiet machine.
HANGS_SECONDS = 30.0
NOBODY = 65534
MEGABYTE = 1_000_000

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


class Outcome(NamedTuple):
    """How a program ended and what it said."""

    returncode: int
    stdout: str
    stderr: str
    told: list[dict[str, Any]]

    @property
    def figures(self) -> dict[str, Any]:
        """The last thing that a workload told."""
        assert self.told, f"the workload told nothing; it said: {self.stderr}"
        return self.told[-1]


class Scene:
    """The processes of one test, and a directory for them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.mark = uuid.uuid4().hex
        self._told = directory / "told.jsonl"
        self._elsewhere: Path | None = None
        self._started: list[subprocess.Popen[str]] = []

    def close(self) -> None:
        """Whatever a failed test has left is ended here, one by one."""
        for pid in marked_processes(MARK, self.mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self._started:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        if self._elsewhere is not None:
            shutil.rmtree(self._elsewhere, ignore_errors=True)

    # ---- Running things.

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """The variables by which the scene finds its processes again."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        return {
            **inherited,
            "PYTHONPATH": os.pathsep.join([str(TESTS), str(PACKAGE_PARENT)]),
            MARK: self.mark,
            FIGURES: str(self._told),
            **(extra or {}),
        }

    def start(
        self,
        command: Sequence[str | bytes],
        *,
        env: Mapping[str, str] | None = None,
        stdin: int | IO[Any] = subprocess.DEVNULL,
        stdout: int | IO[Any] = subprocess.PIPE,
        stderr: int | IO[Any] = subprocess.PIPE,
        cwd: Path | None = None,
        **options: Any,
    ) -> subprocess.Popen[str]:
        """Start a command and go on."""
        process: subprocess.Popen[str] = subprocess.Popen(
            command,
            env=self.environment(env),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=cwd or self.directory,
            text=True,
            errors="surrogateescape",
            **options,
        )
        self._started.append(process)
        return process

    def finish(
        self, process: subprocess.Popen[str], stdin: str | None = None, seconds: float = HANGS_SECONDS
    ) -> Outcome:
        """Wait for a command, and for everybody who could still write to its streams."""
        said: list[tuple[str, str]] = []
        reader = threading.Thread(target=lambda: said.append(process.communicate(stdin)), daemon=True)
        reader.start()
        wait_until(lambda: said, f"{process.args!r} has ended", seconds)
        ((stdout, stderr),) = said
        return Outcome(process.returncode, stdout or "", stderr or "", self.take_told())

    def run(self, command: Sequence[str | bytes], **options: Any) -> Outcome:
        """Run a command to its end."""
        return self.finish(self.start(command, **options))

    def run_workload(self, name: str, *arguments: object) -> Outcome:
        """Run a workload that tracks itself."""
        return self.run(workload(name, *arguments))

    def run_both(
        self, name: str, *arguments: object, seconds: float = HANGS_SECONDS
    ) -> tuple[Outcome, Outcome]:
        """Run a workload without and with its tracker, each in a directory of its own, at the same time."""
        self._elsewhere = self._elsewhere or Path(tempfile.mkdtemp(prefix="gpu-tracker-fault-"))
        told = self._elsewhere / "told.jsonl"
        env = {UNTRACKED: "1", FIGURES: str(told)}
        untracked = self.start(workload(name, *arguments), env=env, cwd=self._elsewhere)
        tracked = self.start(workload(name, *arguments))
        outcome = self.finish(tracked, seconds=seconds)
        return self.finish(untracked)._replace(told=read_told(told)), outcome

    def run_tracked(self, *arguments: object, **options: Any) -> Outcome:
        """Run `gpu-tracker` with these arguments."""
        return self.run(tracker(*arguments), **options)

    def take_told(self) -> list[dict[str, Any]]:
        """What the workloads have told since the last call."""
        return read_told(self._told)

    def report(self, path: Path) -> dict[str, Any]:
        """The report of a recording, as any program would get it."""
        outcome = self.run_tracked("report", "-f", "json", path)
        assert outcome.returncode == 0, outcome.stderr
        report: dict[str, Any] = json.loads(outcome.stdout)
        return report

    # ---- Watching processes.

    def processes(self) -> dict[int, str]:
        """Name by pid of all living processes of this scene."""
        return marked_processes(MARK, self.mark)

    def samplers(self) -> list[int]:
        """The samplers among them."""
        return samplers_among(self.processes())

    def wait_for_sampler(self) -> int:
        """The pid of the only sampler, as soon as it is there."""
        wait_until(self.samplers, "a sampler is there")
        (pid,) = self.samplers()
        return pid

    def wait_until_alone(self) -> None:
        """No process of any kind is left soon."""
        wait_until(lambda: not self.processes(), "no process is left", seconds=2)

    def read_line(self, process: subprocess.Popen[str], seconds: float = HANGS_SECONDS) -> str:
        """The next line that a started command writes; what comes after it stays for `finish`."""
        assert process.stdout is not None
        fd, line = process.stdout.fileno(), b""
        while not line.endswith(b"\n"):
            wait_until(lambda: select.select([fd], [], [], 0.02)[0], f"a line follows {line!r}", seconds)
            letter = os.read(fd, 1)
            if not letter:
                break
            line += letter
        return line.decode(errors="surrogateescape").rstrip("\n")


def read_told(path: Path) -> list[dict[str, Any]]:
    """Take what was told, so that nobody reads it twice."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return []
    path.unlink()
    return [json.loads(line) for line in lines]


def workload(name: str, *arguments: object) -> list[str]:
    """The command of a workload; all warnings are errors there too."""
    return [sys.executable, "-W", "error", str(WORKLOADS / f"{name}.py"), *map(str, arguments)]


def tracker(*arguments: object) -> list[str]:
    """The command line of the tracker."""
    return [COMMAND, *(os.fsdecode(a) if isinstance(a, bytes) else str(a) for a in arguments)]


def wait_for_state(pid: int, state: str) -> None:
    """Wait until the kernel gives this state letter for a process."""
    wait_until(lambda: read_state(pid) == state, f"process {pid} is in state {state}")


def wait_until_attached(attached: subprocess.Popen[str]) -> None:
    """Wait until `attach` has begun: from then on it has its own way to end."""
    handled = (1 << signal.SIGTERM - 1) | (1 << signal.SIGHUP - 1)

    def has_begun() -> bool:
        status = Path(f"/proc/{attached.pid}/status").read_text()
        found = re.search(r"^SigCgt:\s*(\w+)", status, re.MULTILINE)
        return found is not None and bool(int(found[1], 16) & handled)

    wait_until(has_begun, "attach has begun")


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, by its own clock; a process that has gone uses nothing more."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2) / 1e9
    except OSError:
        return 0.0


def check_idle(pid: int, seconds: float = 1.0) -> None:
    """The process does not spin: it uses at most a tenth of a core, which is ten times the default budget."""
    before = cpu_seconds(pid)
    time.sleep(seconds)
    used = cpu_seconds(pid) - before
    assert used < 0.1 * seconds, f"{used:.3f} s of CPU in {seconds} s"


def check_said_once(stderr: str, usual: str = "") -> None:
    """Nothing is said more often than it would be without a tracker, but for one time each."""
    more = Counter(stderr.splitlines()) - Counter(usual.splitlines())
    repeated = {line: count for line, count in more.items() if count > 1 and line.strip()}
    assert not repeated, repeated


def check_plausible(figures: Mapping[str, Any], cpu: float, seconds: float = 0.0) -> None:
    """The figures of a workload that used so much CPU and took at least so long."""
    assert figures["seconds"] >= seconds
    assert cpu * 0.9 <= figures["main_cpu_seconds"] <= cpu * 1.1 + 0.05, figures
    assert 5 * MEGABYTE < figures["main_ram_bytes"] < 500 * MEGABYTE, figures
    assert figures["combined_ram_bytes"] >= figures["main_ram_bytes"]


def check_report(report: Mapping[str, Any], cpu: float, slack: float = 0.3) -> None:
    """The same for a report; a kill may cost what happened since the last line."""
    summary = report["summary"]
    assert cpu - slack <= summary["cpu"]["combined"]["seconds"] <= cpu * 1.1 + 0.1, summary
    assert 4 * MEGABYTE < summary["ram"]["combined"]["total_bytes"] < 500 * MEGABYTE, summary


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The lines of a recording, all of which must be whole."""
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def check_ends_once(path: Path) -> None:
    """A recording has one closing line, and it is the last."""
    kinds = [next(iter(line)) for line in lines_of(path)]
    assert kinds[0] == "header"
    assert kinds.count("end") == 1, kinds
    assert kinds[-1] == "end", kinds


# ---- Places and people.


@contextlib.contextmanager
def small_disk(directory: Path, size_bytes: int) -> Iterator[Path]:
    """A file system of its own that is really full when it is full."""
    point = directory / "disk"
    point.mkdir()
    options = f"size={size_bytes},mode=777"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", point], capture_output=True)
    if mounted.returncode:
        pytest.skip("cannot mount a tmpfs here")
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", point], check=True)


def fill(disk: Path, leave_bytes: int = 0) -> Path:
    """Write until nothing more fits, then give so many bytes back."""
    filler = disk / "filler"
    size = 0
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            size += file.write(bytes(4096))
    os.truncate(filler, max(0, size - leave_bytes))
    return filler


@contextlib.contextmanager
def public_directory() -> Iterator[Path]:
    """A directory that everybody may use; those of pytest are private."""
    directory = Path(tempfile.mkdtemp(prefix="gpu-tracker-fault-"))
    directory.chmod(0o777)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def as_nobody(command: Sequence[str]) -> list[str]:
    """The command, run by an ordinary user."""
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]


@functools.cache
def nobodys_python() -> str:
    """An interpreter that an ordinary user can run, also a second time from within itself."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("cannot become an ordinary user here")
    probe = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', 'import gpu_tracker']))"
    for python in (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")):
        if python is None:
            continue
        env = {"PATH": os.defpath, "PYTHONPATH": str(PACKAGE_PARENT)}
        command = as_nobody(["sh", "-c", 'exec "$0" "$@"', python, "-c", probe])
        if subprocess.run(command, env=env, capture_output=True).returncode == 0:
            return python
    pytest.skip("an ordinary user cannot run Python here")
