"""Run commands and workloads, alone or under a tool, each in an empty directory."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks import watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.tools import Reported
    from benchmarks.venvs import Installed

TIMEOUT_SECONDS = 90
_WORKLOADS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workloads")


class RunFailedError(Exception):
    """A command failed."""


@dataclass(frozen=True)
class Outcome:
    """What a workload measured itself, and what the tool reported if its result was read."""

    truth: dict[str, Any]
    reported: Reported | None


@dataclass(frozen=True)
class Used:
    """What a command used."""

    cpu_seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class Running:
    """A command that has been started."""

    process: subprocess.Popen[str]
    tag: str
    folder: str
    began: float


def script(name: str) -> str:
    """The path of a workload."""
    return os.path.join(_WORKLOADS, f"{name}.py")


def workload(name: str, *arguments: object) -> list[str]:
    """The command line of a workload; the interpreter is the same for every tool."""
    return [sys.executable, script(name), *map(str, arguments)]


def wrap(tool: Installed | None, job: list[str], *options: str) -> list[str]:
    """The command line that runs a job under a tool, or alone."""
    if tool is None:
        return job
    program, *arguments = tool.tool.wrap(list(options), job)
    return [os.path.join(tool.bin, program), *arguments]


def time_command(tool: Installed | None, command: list[str]) -> float:
    """Wall time in seconds, from before the start to after the end."""
    with start(tool, command, output=subprocess.DEVNULL) as running:
        _wait_for_end(running.process.pid)
        elapsed = time.perf_counter() - running.began
    if running.process.returncode:
        raise RunFailedError(f"{' '.join(command)} ended with {running.process.returncode}")
    return elapsed


def measure_command(tool: Installed | None, command: list[str]) -> Used:
    """CPU time and memory of a command and the processes that it has waited for."""
    with start(tool, command, output=subprocess.DEVNULL) as running:
        _wait_for_end(running.process.pid)
        _, status, usage = os.wait4(running.process.pid, os.WNOHANG)
        code = os.waitstatus_to_exitcode(status)
    if code:
        raise RunFailedError(f"{' '.join(command)} ended with {code}")
    return Used(usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss)


def run_workload(tool: Installed | None, name: str, *, wants_result: bool = False) -> Outcome:
    """Run a workload under a tool, with the tool's defaults."""
    options = tool.tool.result_options if tool and wants_result else ()
    with start(tool, wrap(tool, workload(name), *options)) as running:
        truth = finish(running)
        if tool is None or not wants_result:
            return Outcome(truth, None)
        try:
            return Outcome(truth, tool.tool.read(running.folder, truth.get("wall_seconds", 0.0)))
        except (OSError, KeyError, ValueError) as error:
            raise RunFailedError(f"the result of {tool.name} cannot be read: {error!r}") from None


def run_inside(tool: Installed, name: str, *arguments: object) -> dict[str, Any]:
    """Run a workload that uses the tool's Python package; return what it measured."""
    with start(tool, [tool.python, script(name), *map(str, arguments)]) as running:
        return finish(running)


@contextmanager
def start(tool: Installed | None, command: list[str], *, output: int = subprocess.PIPE) -> Iterator[Running]:
    """A running command; all its processes are killed afterwards."""
    environment = _environment(tool)
    with _folder() as folder:
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            text=True,
        )
        running = Running(process, environment[watch.TAG_VARIABLE], folder, began)
        try:
            yield running
        finally:
            watch.kill_tagged(running.tag)
            process.communicate()


def finish(running: Running) -> dict[str, Any]:
    """Wait for the end; what the workload measured is the last line of JSON that it printed."""
    try:
        output, errors = running.process.communicate(timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise RunFailedError(f"{running.process.args!r} took more than {TIMEOUT_SECONDS} s") from None
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if running.process.returncode or not lines:
        last = "\n".join(errors.splitlines()[-5:])
        raise RunFailedError(f"{running.process.args!r} ended with {running.process.returncode}: {last}")
    truth: dict[str, Any] = json.loads(lines[-1])
    return truth


def _wait_for_end(pid: int) -> None:
    """Return at once when it ends; `Popen.wait` with a timeout polls."""
    fd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll(1000 * TIMEOUT_SECONDS)
    finally:
        os.close(fd)


def _environment(tool: Installed | None) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment[watch.TAG_VARIABLE] = uuid.uuid4().hex
    if tool is not None:
        environment["PATH"] = f"{tool.bin}{os.pathsep}{environment.get('PATH', os.defpath)}"
    return environment


@contextmanager
def _folder() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="gpu-tracker-bench-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
