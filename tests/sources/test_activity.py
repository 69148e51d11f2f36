"""I/O, scheduling and pressure, read from real processes and from made-up files."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from builders import process
from gpu_tracker.core.model import ProcessActivity, Stalls
from gpu_tracker.sources import portable
from gpu_tracker.sources.activity import Activity, parse_io, parse_pressure, parse_schedstat
from gpu_tracker.sources.allocation import CpuQuota
from gpu_tracker.sources.platform import find_counters
from gpu_tracker.sources.procfs import open_activity

IO = (
    b"rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n"
)
PRESSURE = b"some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n"


def test_the_kernels_files_are_understood() -> None:
    """Bytes of storage, not of system calls; nanoseconds and microseconds become seconds."""
    assert parse_io(IO) == (4096, 8192)
    assert parse_schedstat(b"123 2500000000 17\n") == (2.5, 17)
    assert parse_pressure(PRESSURE) == {"some": 2.5, "full": 0.5}


def write_process(proc: Path, pid: int, threads: dict[int, str], io: bytes = IO) -> None:
    """A made-up process."""
    for tid, text in threads.items():
        task = proc / str(pid) / "task" / str(tid)
        task.mkdir(parents=True, exist_ok=True)
        (task / "schedstat").write_text(text)
    (proc / str(pid) / "io").write_bytes(io)


def test_threads_that_have_ended_stay_counted(tmp_path: Path) -> None:
    """Their files are gone with them."""
    write_process(tmp_path, 100, {100: "0 1000000000 5", 101: "0 2000000000 7"})
    activity = Activity(proc=str(tmp_path))
    (first,) = activity.read([process(cpu_seconds=1.0, major_faults=3)])
    assert first == ProcessActivity(100, False, 4096, 8192, 3, 12, 3.0)

    (tmp_path / "100/task/101/schedstat").unlink()
    (tmp_path / "100/task/101").rmdir()
    (second,) = activity.read([process(cpu_seconds=2.0)])
    assert (second.switches, second.waiting_seconds) == (12, 3.0)


def test_a_process_that_has_not_run_is_not_read_again(tmp_path: Path) -> None:
    """Most processes of most jobs wait."""
    write_process(tmp_path, 100, {100: "0 1000000000 5"})
    activity = Activity(proc=str(tmp_path))
    before = activity.read([process(cpu_seconds=1.0)])
    write_process(tmp_path, 100, {100: "0 9000000000 9"})

    assert activity.read([process(cpu_seconds=1.0)]) == before
    (third,) = activity.read([process(cpu_seconds=1.1)])
    assert third.switches == 9


def test_a_reused_pid_is_another_process(tmp_path: Path) -> None:
    """Its counters begin at zero."""
    write_process(tmp_path, 100, {100: "0 9000000000 9", 105: "0 9000000000 9"})
    activity = Activity(proc=str(tmp_path))
    activity.read([process(cpu_seconds=5.0)])
    (tmp_path / "100/task/105/schedstat").unlink()
    (tmp_path / "100/task/105").rmdir()
    write_process(tmp_path, 100, {100: "0 1000000000 1"})

    (now,) = activity.read([process(cpu_seconds=0.1)])
    assert (now.switches, now.waiting_seconds) == (1, 1.0)


def test_many_threads_are_read_in_turns(tmp_path: Path) -> None:
    """After a few readings all are counted."""
    write_process(tmp_path, 100, dict.fromkeys(range(100, 400), "0 1000000000 1"))
    activity = Activity(proc=str(tmp_path))
    counts = [activity.read([process(cpu_seconds=float(turn))])[0].switches for turn in range(1, 5)]

    assert counts[0] == 128
    assert counts[-1] == 300


def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    """Another user's process, an older kernel."""
    activity = Activity(proc=str(tmp_path))
    assert activity.read([process(cpu_seconds=1.0)]) == (ProcessActivity(100, major_faults=0),)
    assert activity.read_stalls() == Stalls()


def test_pressure_and_throttling_are_read(tmp_path: Path) -> None:
    """Of the machine, and of the job's own group."""
    (tmp_path / "pressure").mkdir()
    for name in ("cpu", "memory", "io"):
        (tmp_path / "pressure" / name).write_bytes(PRESSURE)
    activity = Activity(lambda: 0.25, proc=str(tmp_path))

    assert activity.read_stalls() == Stalls(2.5, 2.5, 2.5, 0.5, 0.5, 0.25)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("nr_throttled 1\nthrottled_usec 1500000\n", 1.5),
        ("nr_throttled 1\nthrottled_time 1500000000\n", 1.5),
        ("nr_periods 1\n", None),
    ],
)
def test_throttling_is_counted_by_both_versions_of_cgroups(
    tmp_path: Path, text: str, seconds: float | None
) -> None:
    """In microseconds and nanoseconds."""
    (tmp_path / "cpu.stat").write_text(text)
    assert CpuQuota(str(tmp_path), 1.0).read_throttled_seconds() == seconds
    assert CpuQuota(str(tmp_path / "none"), 1.0).read_throttled_seconds() is None


def test_a_real_process_is_read_as_it_sees_itself() -> None:
    """Switches and bytes of getrusage are those of the kernel's files."""
    ended = threading.Thread(target=sum, args=(range(1000),))
    ended.start()
    ended.join()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    (now,) = open_activity(os.getpid()).read([process(os.getpid(), cpu_seconds=1.0)])
    truth = find_counters(usage, resource.getrusage(resource.RUSAGE_CHILDREN))

    assert None not in now
    assert (now.read_bytes or 0) >= (truth.read_bytes or 0)
    assert 0 < (now.switches or 0) <= (truth.switches or 0) + 1000


def test_written_bytes_of_a_child_are_its_parents(tmp_path: Path) -> None:
    """After the parent has waited for it, as the kernel counts them."""
    code = "import os; fd = os.open('x', os.O_CREAT | os.O_WRONLY); os.write(fd, bytes(10**6)); os.fsync(fd)"
    activity = open_activity(os.getpid())
    (before,) = activity.read([process(os.getpid(), cpu_seconds=1.0)])
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    (after,) = activity.read([process(os.getpid(), cpu_seconds=2.0)])

    assert (after.written_bytes or 0) - (before.written_bytes or 0) >= 10**6


def test_other_systems_report_what_they_have() -> None:
    """I/O and switches, through psutil."""
    activity = portable.open_activity(os.getpid())
    now, gone = activity.read([process(os.getpid()), process(2**22 + 1)])

    assert (now.switches or 0) > 0
    assert now.read_bytes is not None
    assert gone == ProcessActivity(2**22 + 1)
    assert activity.read_stalls() == Stalls()
