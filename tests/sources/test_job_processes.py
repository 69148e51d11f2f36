"""All processes of a job on this machine: whose they are is in their groups and variables."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from gpu_tracker.core.model import Identity
from gpu_tracker.sources import job_processes
from gpu_tracker.sources.job_processes import JobProcesses, identify, list_of_job
from gpu_tracker.sources.processes import list_descendants

JOB = "471100042"


@contextmanager
def start(job: str | None, code: str = "") -> Iterator[int]:
    """A process of a job, which may start others and ends with its input."""
    environment = {**os.environ, **({} if job is None else {"SLURM_JOB_ID": job})}
    program = f"{code}\nprint('ready', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.kill()


def read(processes: JobProcesses) -> set[int]:
    """Those that are read, after the extra readings that newborn processes and second looks take."""
    for _ in range(3):
        readings = processes.read()
    return {reading.pid for reading in readings}


def test_whoever_started_them() -> None:
    """Those that run, those that come later and their children; nobody else's."""
    with ExitStack() as stack:
        first, other = stack.enter_context(start(JOB)), stack.enter_context(start("1" + JOB))
        processes = JobProcesses(JOB)
        stack.callback(processes.close)
        assert read(processes) == {first}
        code = "import subprocess; child = subprocess.Popen(['sleep', '60'], start_new_session=True)"
        later = stack.enter_context(start(JOB, code))
        (its_child,) = list_descendants(later)
        stack.callback(os.kill, its_child, signal.SIGKILL)

        assert read(processes) == {first, later, its_child}
        assert set(list_of_job(JOB)) == {first, later, its_child}
        assert other not in read(processes)


def test_those_who_measure_are_not_measured() -> None:
    """They run in the job, too."""
    with start(JOB) as first, start(JOB) as second:
        processes = JobProcesses(JOB, outsiders=(second,))

        assert read(processes) == {first}
        processes.close()


def test_it_is_known_for_how_long_a_job_had_run_before() -> None:
    """By the oldest of its processes here; of those that come later it is no matter."""
    with start(JOB):
        early = JobProcesses(JOB, started_seconds=time.monotonic() + 100.0)
        late = JobProcesses(JOB, started_seconds=time.monotonic() - 100.0)
        nobodys = JobProcesses("1" + JOB)

        assert early.find_earlier_seconds() >= 100.0
        assert late.find_earlier_seconds() == nobodys.find_earlier_seconds() == 0.0
        for processes in (early, late, nobodys):
            processes.close()


def test_a_job_may_pause_between_two_steps() -> None:
    """It is over if nothing has run for a while, unless we are part of it. Then it was when something was last seen."""
    now = [100.0]
    with start(JOB):
        processes = JobProcesses(JOB, now=lambda: now[0])
        read(processes)
    now[0] = 200.0
    assert processes.is_alive()
    assert processes.find_pause() is None
    read(processes)
    now[0] = 205.0
    assert processes.is_alive()
    assert processes.find_pause() == 200.0
    now[0] = 211.0

    assert not processes.is_alive()
    processes.close()


def test_a_job_that_we_are_part_of_does_not_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little of it runs on this machine."""
    ours = os.getpid()
    monkeypatch.setattr(
        job_processes, "identify", lambda pid, proc: Identity(job=JOB if pid == ours else None)
    )
    now = [100.0]
    inside = JobProcesses(JOB, outsiders=(ours,), now=lambda: now[0])
    now[0] = 1000.0

    assert read(inside) == set()
    assert inside.is_alive()
    assert inside.find_pause() is None
    inside.close()


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc with two processes of a job that is known by their groups, one of them the scheduler's."""
    for pid, name in ((41, "slurmstepd"), (42, "python")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "comm").write_text(f"{name}\n")
        (tmp_path / str(pid) / "cgroup").write_text("4:memory:/slurm/uid_1/job_7/step_0/task_0\n")
    (tmp_path / "43").mkdir()  # it has just ended
    return tmp_path


def test_what_the_scheduler_runs_is_not_the_jobs(proc: Path) -> None:
    """Its group is enough, if its variables are not for us to see."""
    assert list_of_job("7", proc=str(proc)) == [42]
    assert identify(42, proc=str(proc)).step == "0"
    assert identify(43, proc=str(proc)).job is None


def test_a_copy_of_another_process_may_become_one_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked at for a second, then no longer; one that runs a program of its own is not."""
    asked: list[int] = []
    now = [100.0]

    def count(pid: int, *, proc: str = "/proc") -> object:
        asked.append(pid)
        return identify(pid, proc=proc)

    processes = JobProcesses(JOB, now=lambda: now[0])
    monkeypatch.setattr(job_processes, "identify", count)
    with start(None, "import os; child = os.fork(); child or (input(), os._exit(0))") as other:
        (copy,) = list_descendants(other)
        for _ in range(5):
            processes.read()
            now[0] += 0.4
        os.kill(copy, signal.SIGKILL)

    assert (asked.count(other), asked.count(copy)) == (1, 4)
    processes.close()


def test_a_process_that_is_amid_its_exec_is_looked_at_again(tmp_path: Path) -> None:
    """It has neither arguments nor variables then, which would tell whose it is."""
    own = tmp_path / "77"
    own.mkdir()
    fields = "S 1 1 1 0 -1 0 9 0 0 0 0 0 0 0 20 0 1 0 99 9999999 100 18446744073709551615"
    for file, text in (
        ("stat", f"77 (python) {fields}\n"),
        ("statm", "900 90 9 1 0 9 0\n"),
        ("comm", "python\n"),
        ("cgroup", "0::/\n"),
        ("status", "Name:\tx\nTgid:\t77\n"),
        ("cmdline", ""),
        ("environ", ""),
    ):
        (own / file).write_text(text)
    (tmp_path / "loadavg").write_text("0 0 0 1/1 77\n")
    (tmp_path / "sys" / "kernel").mkdir(parents=True)
    (tmp_path / "sys" / "kernel" / "pid_max").write_text("32768\n")
    processes = JobProcesses("7", proc=str(tmp_path))
    for _ in range(3):
        assert processes.read() == ()
    (own / "cmdline").write_text("python\0")
    (own / "environ").write_text("SLURM_JOB_ID=7\0")

    assert [reading.pid for reading in processes.read()] == [77]
    processes.close()


@pytest.mark.parametrize(("name", "is_copy"), [("slurmstepd", True), ("slurmstepd", False), ("sh", True)])
def test_what_the_scheduler_forks_becomes_the_job(tmp_path: Path, name: str, is_copy: bool) -> None:
    """Its name is the scheduler's until then; the scheduler itself stays what it is."""
    flags = 0x40 if is_copy else 0

    def put(name: str, flags: int) -> None:
        fields = f"S 1 1 1 0 -1 {flags} 9 0 0 0 0 0 0 0 20 0 1 0 99 9999999 100 18446744073709551615"
        (own / "stat").write_text(f"77 ({name}) {fields}\n")
        (own / "statm").write_text("900 90 9 1 0 9 0\n")
        (own / "comm").write_text(f"{name}\n")

    own = tmp_path / "77"
    own.mkdir()
    for file, text in (
        ("cgroup", "4:memory:/slurm/job_7/step_0/task_0\n"),
        ("status", "Name:\tx\nTgid:\t77\n"),
        ("cmdline", "python\0"),
    ):
        (own / file).write_text(text)
    (tmp_path / "loadavg").write_text("0 0 0 1/1 77\n")
    (tmp_path / "sys" / "kernel").mkdir(parents=True)
    (tmp_path / "sys" / "kernel" / "pid_max").write_text("32768\n")
    put(name, flags)
    processes = JobProcesses("7", proc=str(tmp_path))
    before = len(processes.read())
    put("python", 0)
    after = [reading.pid for reading in processes.read()]
    processes.close()

    assert before == int(name == "sh")
    assert after == ([77] if is_copy else [])
