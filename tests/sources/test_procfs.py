"""Reading /proc: real processes, recorded files, and garbage."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.core.model import ProcessReading
from gpu_tracker.core.units import parse_kib_field
from gpu_tracker.sources import procfs
from patience import wait_until

STAT = (
    b"2545 (a b) (c)) S 2543 2543 1141 0 -1 4194368 2875 6526 18 2 600 380 4 1 20 0 7 0 81107 17100800 "
    b"3375 18446744073709551615 1 1 0 0 0 0 0 16781312 2 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
)
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@contextmanager
def python(code: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs some code, prints `ready`, and ends with its input."""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def read(tree: procfs.ProcessTree) -> dict[int, ProcessReading]:
    """By pid, after the extra reading that a newborn needs."""
    tree.read()
    return {reading.pid: reading for reading in tree.read()}


# ---- Parsers.


def test_a_name_may_contain_blanks_and_parentheses() -> None:
    """Fields are counted from the last parenthesis."""
    name, state, parent, flags, cpu, reaped, threads, started, faults, major = procfs.parse_stat(STAT)

    assert (name, state, parent, threads, started) == ("a b) (c)", b"S", 2543, 7, 81107)
    assert flags & 0x40
    assert (faults, major) == (2893, 20)
    assert (cpu, reaped) == (980 / TICKS, 5 / TICKS)


def test_memory_is_in_bytes() -> None:
    """Resident, and how much of it is files and shared memory."""
    assert procfs.parse_statm(b"4175 3375 1500 1 0 900 0\n") == (3375 * PAGE, 1500 * PAGE, 4175 * PAGE)
    assert parse_kib_field(b"VmPeak:\t  9 kB\nVmHWM:\t   12 kB\n", b"VmHWM:") == 12 * 1024
    assert parse_kib_field(b"Name:\tzombie\n", b"VmHWM:") is None


def test_sharing_is_read_from_the_rollup() -> None:
    """Also of a kernel that does not report anonymous memory."""
    old = b"x [rollup]\nRss: 9 kB\nPss: 5 kB\nPrivate_Clean: 1 kB\nPrivate_Dirty: 2 kB\n"
    new = old.replace(b"Pss: 5 kB\n", b"Pss: 5 kB\nPss_Anon: 4 kB\n")

    assert procfs.parse_smaps_rollup(old) == (5 * 1024, 5 * 1024, 3 * 1024)
    assert procfs.parse_smaps_rollup(new) == (5 * 1024, 4 * 1024, 3 * 1024)


def test_the_machine_is_busy_unless_it_waits() -> None:
    """Idle time, I/O wait and steal time are not work."""
    text = b"cpu  100 20 30 4000 50 6 7 80 9 0\ncpu0 1 2 3\n"

    assert procfs.parse_machine_cpu(text) == 163 / TICKS


def test_used_memory_is_what_is_not_available() -> None:
    """Old kernels report free memory only."""
    assert procfs.parse_memory_used(b"MemTotal: 10 kB\nMemFree: 1 kB\nMemAvailable: 4 kB\n") == 6 * 1024
    assert procfs.parse_memory_used(b"MemTotal: 10 kB\nMemFree: 1 kB\n") == 9 * 1024


@pytest.mark.parametrize(
    ("previous", "newest", "expected"),
    [
        (10, 12, [11, 12]),
        (32766, 301, [32767, 300, 301]),
        (10, 5000, None),
        (10, 10, []),
    ],
)
def test_new_pids_are_those_assigned_since(previous: int, newest: int, expected: list[int] | None) -> None:
    """Pids wrap around; too many are not tried one by one."""
    assert procfs.pids_since(previous, newest, 32768) == expected


@given(st.binary(max_size=200))
def test_garbage_raises_expected_errors_only(garbage: bytes) -> None:
    """The reader takes these for a process that has ended."""
    for parse in (
        procfs.parse_stat,
        procfs.parse_statm,
        procfs.parse_smaps_rollup,
        procfs.parse_machine_cpu,
        procfs.parse_memory_used,
        procfs.parse_last_pid,
        procfs.parse_group_leader,
    ):
        try:
            parse(garbage)
        except (ValueError, IndexError):
            continue


# ---- Real processes.


def test_this_process_reads_as_the_kernel_accounts_it() -> None:
    """CPU in nanoseconds, memory in bytes, the high-water mark above it."""
    tree = procfs.ProcessTree(os.getpid())
    before = time.process_time()
    reading = read(tree)[os.getpid()]
    after = time.process_time()

    assert before <= reading.cpu_seconds <= after
    assert 0 < reading.file_bytes < reading.rss_bytes <= (reading.peak_rss_bytes or 0)
    assert reading.was_running_at_start
    assert tree.is_alive()
    tree.close()


def test_a_child_of_a_thread_and_a_daemon_are_found() -> None:
    """Wherever in the tree they start, and even after their parents have ended."""
    code = (
        "import os, subprocess, sys, threading\n"
        "def start(): global child; child = subprocess.Popen(['sleep', '60'])\n"
        "thread = threading.Thread(target=start); thread.start(); thread.join()\n"
        # A thread is joined a moment before the kernel gives its children to another.
        "while len(os.listdir('/proc/self/task')) > 1: pass\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "if os.fork() == 0:\n"
        "    os.setsid(); print(os.spawnvp(os.P_NOWAIT, 'sleep', ['sleep', '61']), flush=True)\n"
        "    sys.stdin.readline(); os._exit(0)\n"
        "os.wait(); sys.stdin.readline(); child.kill(); child.wait()\n"
    )
    with python(code) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        tree = procfs.ProcessTree(process.pid)
        assert [reading.name for reading in read(tree).values()][1:] == ["sleep"]

        process.stdin.write(b"\n")
        daemon = int(process.stdout.readline())
        wait_until(lambda: daemon in read(tree), "the daemon is there")
        process.stdin.write(b"\n")
        wait_until(
            lambda: read(tree)[daemon].parent_pid != process.pid and len(read(tree)) == 3,
            "its parent has ended",
        )
        process.stdin.write(b"\n")
        process.wait()
        wait_until(lambda: list(read(tree)) == [daemon], "only it is left")
        assert not tree.is_alive()
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: not read(tree), "nothing is left")
        tree.close()


def test_an_adopter_brings_its_children_into_the_tree() -> None:
    """The command line inherits the job's orphans."""
    with python("import sys; print('ready', flush=True); sys.stdin.read()") as root:
        with python("import sys; print('ready', flush=True); sys.stdin.read()") as orphan:
            tree = procfs.ProcessTree(root.pid, is_newborn=True, adopter_pid=os.getpid())
            assert set(read(tree)) == {root.pid, orphan.pid}
            tree.close()


def test_what_an_adopter_had_before_stays_out_of_the_tree(tmp_path: Path) -> None:
    """With what it starts, even once the adopter has inherited that, and unlike what the job leaves behind."""
    adopter, root, outsider, theirs, orphan = 301, 302, 303, 304, 305
    for name, text in {"loadavg": b"0 0 0 1/1 302\n", "sys/kernel/pid_max": b"32768\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text)
    write_process(tmp_path, root, adopter)
    write_process(tmp_path, outsider, adopter)
    tree = procfs.ProcessTree(
        root, is_newborn=True, adopter_pid=adopter, outsiders=[outsider], proc=str(tmp_path)
    )
    write_process(tmp_path, theirs, outsider)
    (tmp_path / "loadavg").write_bytes(b"0 0 0 1/1 304\n")
    assert set(read(tree)) == {root}

    shutil.rmtree(tmp_path / str(outsider))
    write_process(tmp_path, theirs, adopter)
    write_process(tmp_path, orphan, adopter)
    (tmp_path / "loadavg").write_bytes(b"0 0 0 1/1 9000\n")  # so many that all processes are looked at
    assert set(read(tree)) == {root, orphan}
    tree.close()


def test_a_process_that_has_a_number_before_it_is_there_is_found_when_it_is(tmp_path: Path) -> None:
    """The kernel numbers it first; another reading later it must be there."""
    for name, text in {"loadavg": b"0 0 0 1/1 302\n", "sys/kernel/pid_max": b"32768\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text)
    write_process(tmp_path, 302, 1)
    tree = procfs.ProcessTree(302, proc=str(tmp_path))
    (tmp_path / "loadavg").write_bytes(b"0 0 0 1/1 304\n")
    assert [reading.pid for reading in tree.read()] == [302]

    write_process(tmp_path, 303, 302)
    assert [reading.pid for reading in tree.read()] == [302, 303]
    write_process(tmp_path, 304, 302)
    assert [reading.pid for reading in tree.read()] == [302, 303]
    tree.close()


def write_process(proc: Path, pid: int, parent: int) -> None:
    """A process in a /proc of our own."""
    directory = proc / str(pid)
    directory.mkdir(exist_ok=True)
    (directory / "stat").write_bytes(b"%d (job) S %d " % (pid, parent) + b"1 " * 49)
    (directory / "statm").write_bytes(b"4175 3375 1500 1 0 900 0\n")
    (directory / "status").write_bytes(b"Name:\tjob\nTgid:\t%d\nVmHWM:\t  999 kB\n" % pid)
    (directory / "cmdline").write_bytes(b"job\0")


def test_samplers_and_pythons_own_helpers_are_not_part_of_the_job() -> None:
    """Nor are threads."""
    code = (
        "import subprocess, sys, threading, time\n"
        "helpers = [subprocess.Popen([sys.executable, '-c', 'input() #' + mark], stdin=subprocess.PIPE)\n"
        "    for mark in ('gpu_tracker.sampler.child', 'multiprocessing.resource_tracker')]\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "time.sleep(0.3); print('ready', flush=True); sys.stdin.read(); [h.kill() for h in helpers]\n"
    )
    with python(code) as process:
        tree = procfs.ProcessTree(process.pid)
        (reading,) = read(tree).values()
        assert (reading.pid, reading.n_threads) == (process.pid, 2)
        tree.close()
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def test_a_forked_copy_is_one_until_it_calls_exec() -> None:
    """Until then its memory may be its parent's."""
    code = (
        "import os, sys\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    print('forked', flush=True); sys.stdin.readline(); os.execvp('sleep', ['sleep', '60'])\n"
        "os.waitpid(pid, 0)\n"
    )
    with python(code) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        tree = procfs.ProcessTree(process.pid)
        process.stdin.write(b"\n")
        process.stdout.readline()
        _, copy = tree.read()
        assert copy.is_forked_copy
        process.stdin.write(b"\n")
        wait_until(lambda: not tree.read()[1].is_forked_copy, "the copy is a program")
        os.kill(copy.pid, signal.SIGKILL)
        process.wait()
        tree.close()


def test_a_child_in_its_parents_memory_does_not_count_yet() -> None:
    """Between vfork and exec it shows its parent's memory."""
    code = (
        "import ctypes, os\n"
        "libc, block = ctypes.CDLL(None), bytearray(50_000_000)\n"
        "os.write(1, b'ready\\n')\n"
        "if libc.vfork() == 0:\n"
        "    libc.sleep(2); libc._exit(0)\n"
    )
    with python(code) as process:
        tree = procfs.ProcessTree(process.pid)
        wait_until(lambda: tree.read() and len(tree._members) == 2, "both are there")
        assert [reading.pid for reading in tree.read()] == [process.pid]
        tree.close()


def test_a_process_that_sleeps_costs_one_clock_read() -> None:
    """Nothing can have changed."""
    with python("import sys; print('ready', flush=True); sys.stdin.read()") as process:
        tree = procfs.ProcessTree(process.pid)
        wait_until(lambda: b") S " in Path(f"/proc/{process.pid}/stat").read_bytes(), "it sleeps")
        first = read(tree)[process.pid]
        assert read(tree)[process.pid] is first
        tree.close()


def test_high_water_marks_of_many_are_read_in_turns() -> None:
    """None is forgotten."""
    sleepers = [subprocess.Popen(["sleep", "60"]) for _ in range(20)]
    tree = procfs.ProcessTree(os.getpid())
    pids = {sleeper.pid for sleeper in sleepers}
    wait_until(
        lambda: all(r.peak_rss_bytes for pid, r in read(tree).items() if pid in pids), "all have begun"
    )
    tree.close()
    for sleeper in sleepers:
        sleeper.kill()
        sleeper.wait()


def test_the_end_is_seen_until_the_parent_has_waited() -> None:
    """Then nobody knows any more what it used last; having seen it once is enough."""
    seen, unseen = (subprocess.Popen(["sleep", "60"]) for _ in range(2))
    trees = [procfs.ProcessTree(sleeper.pid) for sleeper in (seen, unseen)]
    for sleeper in (seen, unseen):
        sleeper.kill()
        os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    trees[0].read()
    for sleeper in (seen, unseen):
        sleeper.wait()
    for tree in trees:
        tree.read()

    assert [tree.has_seen_end for tree in trees] == [True, False]
    for tree in trees:
        tree.close()


LEADERLESS = """
import ctypes, mmap, sys, threading
held = mmap.mmap(-1, 64_000_000)
held.write(bytes(64_000_000))
def work():
    print("ready", flush=True)
    sys.stdin.read()
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_outlives_its_first_thread() -> None:
    """Its memory is that of the others then; a child that is met so late is one of the job's, too."""
    with python(LEADERLESS) as leaderless:
        stat = Path(f"/proc/{leaderless.pid}/stat")
        wait_until(lambda: procfs.parse_stat(stat.read_bytes())[1] == b"Z", "its first thread has ended")
        trees = [procfs.ProcessTree(os.getpid()), procfs.ProcessTree(leaderless.pid)]
        seen = [read(tree)[leaderless.pid] for tree in trees]
        was_alive, was_ended = trees[1].is_alive(), procfs.is_ended(leaderless.pid)
        leaderless.kill()
        wait_until(lambda: procfs.is_ended(leaderless.pid), "it has ended")
        trees[1].read()
        is_alive = trees[1].is_alive()
        for tree in trees:
            tree.close()

    assert (was_alive, was_ended, is_alive) == (True, False, False)
    assert min(reading.rss_bytes for reading in seen) > 64_000_000
    assert [reading.n_threads for reading in seen] == [2, 2]


def test_a_child_that_is_met_after_its_end_counts() -> None:
    """Its parent may never wait for it."""
    with subprocess.Popen(
        [sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"]
    ) as child:
        wait_until(lambda: procfs.is_ended(child.pid), "it has ended")
        tree = procfs.ProcessTree(os.getpid())
        reading = read(tree)[child.pid]
        tree.close()

    assert reading.cpu_seconds >= 0.2
    assert (reading.n_threads, reading.rss_bytes) == (0, 0)


def test_processes_of_a_moment_are_missed() -> None:
    """That there were some between two readings is known from the process IDs that they had."""
    tree = procfs.ProcessTree(os.getpid())
    subprocess.run(["true"], check=True)
    tree.read()

    assert tree.has_missed
    tree.close()


def test_a_dead_or_unreadable_process_is_absent(tmp_path: Path) -> None:
    """A root that has ended gives an empty tree; a torn file counts as an ended process."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    tree = procfs.ProcessTree(gone.pid)
    assert tree.read() == ()
    assert not tree.is_alive()
    assert tree.read_sharing(gone.pid) is None
    tree.close()


def test_a_recorded_tree_can_be_read(tmp_path: Path) -> None:
    """The root directory is an argument."""
    for name, text in {
        "loadavg": b"0 0 0 1/1 2545\n",
        "sys/kernel/pid_max": b"32768\n",
        "stat": b"cpu  100 20 30 4000 50 6 7 80 9 0\n",
        "meminfo": b"MemTotal: 10 kB\nMemAvailable: 4 kB\n",
        "2545/stat": STAT,
        "2545/statm": b"4175 3375 1500 1 0 900 0\n",
        "2545/status": b"Name:\tx\nTgid:\t2545\nVmHWM:\t  999 kB\n",
        "2546/stat": b"2546 (torn",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    tree = procfs.ProcessTree(2545, proc=str(tmp_path))
    (reading,) = tree.read()
    tree.close()

    assert (reading.name, reading.n_threads, reading.rss_bytes) == ("a b) (c)", 7, 3375 * PAGE)
    assert reading.peak_rss_bytes == 999 * 1024
    assert procfs.Machine(lambda: 5, proc=str(tmp_path)).read()[1:] == (6 * 1024, 5)


def test_a_new_program_holds_nothing_until_it_has_run(tmp_path: Path) -> None:
    """While exec replaces its memory, a process has a stack, but no page of its code: what is read is not its size."""
    for name, text in {
        "loadavg": b"0 0 0 1/1 2545\n",
        "sys/kernel/pid_max": b"32768\n",
        "2545/stat": STAT,
        "2545/statm": b"104 4 0 1 0 34 0\n",
        "2545/status": b"Name:\tx\nTgid:\t2545\nVmHWM:\t  16 kB\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    tree = procfs.ProcessTree(2545, proc=str(tmp_path))
    (amid,) = tree.read()
    (tmp_path / "2545/statm").write_bytes(b"700 4 1 1 0 34 0\n")
    (begun,) = tree.read()
    tree.close()

    assert (amid.rss_bytes, amid.peak_rss_bytes) == (0, None)
    assert (begun.rss_bytes, begun.peak_rss_bytes) == (4 * PAGE, 16 * 1024)


def test_a_high_water_mark_comes_with_the_size_of_its_moment() -> None:
    """Otherwise a growing process would seem to have had a spike."""
    status = b"Name:\tx\nVmHWM:\t  900 kB\nVmRSS:\t  800 kB\nRssAnon:\t  500 kB\nRssFile:\t 200 kB\nVmPTE:\t 12 kB\n"

    assert procfs.parse_sizes(status) == (900 * 1024, 800 * 1024, 300 * 1024, 12 * 1024)
    assert procfs.parse_sizes(b"Name:\tx\nVmHWM:\t  900 kB\n") == (900 * 1024, None, 0, 0)
    assert procfs.parse_sizes(b"Name:\tzombie\n") is None


def test_sharing_of_a_real_process() -> None:
    """Private memory is part of the proportional, and that is part of the resident memory."""
    tree = procfs.ProcessTree(os.getpid())
    sharing = tree.read_sharing(os.getpid())
    reading = read(tree)[os.getpid()]
    tree.close()

    assert sharing is not None
    assert 0 < sharing.private_bytes <= sharing.pss_bytes <= reading.rss_bytes * 1.05
