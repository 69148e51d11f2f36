"""Facts about any process."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpu_tracker.core.observation import Holder
from gpu_tracker.sources.processes import (
    exists,
    ignores_children,
    list_descendants,
    name_user,
    parse_command,
    read_holder,
    read_parent,
    read_start,
)


def test_a_process_has_a_user_a_command_memory_and_cpu_time() -> None:
    """Here of this process."""
    with subprocess.Popen(["sleep", "60"]) as process:
        while not Path(f"/proc/{process.pid}/cmdline").read_bytes():
            pass  # it is about to have them
        holder = read_holder(process.pid)
        process.kill()

    assert holder.user == pwd.getpwuid(os.getuid()).pw_name
    assert holder.command_line == "sleep 60"
    assert (holder.rss_bytes or 0) > 0
    assert holder.cpu_seconds is not None


def test_a_process_has_begun_at_some_time() -> None:
    """By the wall clock; one that has ended did so at an unknown time."""
    before = time.time()
    with subprocess.Popen(["sleep", "60"]) as process:
        after, start = time.time(), read_start(process.pid)
        process.kill()

    assert start is not None
    assert before - 0.02 <= start <= after + 0.02  # the kernel counts hundredths of a second
    assert read_start(process.pid) is None


def test_a_process_has_a_parent() -> None:
    """As long as it is there."""
    with subprocess.Popen(["sleep", "60"]) as process:
        parent = read_parent(process.pid)
        process.kill()

    assert parent == os.getpid()
    assert read_parent(process.pid) is None


def test_a_process_exists_until_it_is_reaped() -> None:
    """So does another user's; invalid pids do not."""
    with subprocess.Popen(["sleep", "60"]) as process:
        assert exists(process.pid)
        process.kill()

    assert not exists(process.pid)
    assert exists(os.getpid())
    assert exists(1)
    assert not any(map(exists, (0, -1, -os.getpid(), 2**31, 2**70)))


def test_arguments_may_contain_anything_but_zeros() -> None:
    """Invalid UTF-8 is replaced, and padding is ignored."""
    assert parse_command(b"a b\0c\nd\0\xff\0\0\0") == ("a b", "c\nd", "\ufffd")


def test_a_process_without_arguments_has_a_name(tmp_path: Path) -> None:
    """A kernel thread, or a process that is ending."""
    write_process(tmp_path, cmdline=b"")

    assert read_holder(7, proc=str(tmp_path)).command == ("worker",)


def test_a_hidden_process_is_only_a_pid(tmp_path: Path) -> None:
    """No directory, or an unreadable one."""
    write_process(tmp_path, cmdline=b"")
    (tmp_path / "7" / "cmdline").unlink()

    assert read_holder(7, proc=str(tmp_path)).command is None
    assert read_holder(8, proc=str(tmp_path)) == Holder(8)


def test_a_machine_without_proc_is_read_through_psutil(tmp_path: Path) -> None:
    """With the same result, as far as it goes."""
    holder = read_holder(os.getpid(), proc=str(tmp_path))

    assert holder.user == pwd.getpwuid(os.getuid()).pw_name
    assert holder.command
    assert read_holder(2**22 + 1, proc=str(tmp_path)) == Holder(2**22 + 1)


def test_descendants_are_all_generations(tmp_path: Path) -> None:
    """Read from the kernel, or through psutil where that has no files."""
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        for proc in ("/proc", str(tmp_path)):
            assert list_descendants(child.pid, proc=proc) == {grandchild}
            assert list_descendants(os.getpid(), proc=proc) >= {child.pid, grandchild}
        os.kill(grandchild, signal.SIGKILL)


def test_a_user_without_a_name_is_a_number() -> None:
    """Most likely one of a container."""
    assert name_user(4_000_000_000) == "4000000000"


def write_process(proc: Path, cmdline: bytes) -> None:
    """A /proc with process 7."""
    (proc / "self").mkdir()
    (proc / "7").mkdir()
    (proc / "7" / "stat").write_bytes(b"7 (worker) S " + b"1 " * 49)
    (proc / "7" / "statm").write_bytes(b"100 50 20 0 0 0 0")
    (proc / "7" / "cmdline").write_bytes(cmdline)
    (proc / "7" / "comm").write_bytes(b"worker\n")


@pytest.mark.parametrize("handling", ["SIG_IGN", "SIG_DFL"])
def test_who_ignores_its_children_is_known(handling: str) -> None:
    """The kernel forgets what they used."""
    program = (
        f"import signal; signal.signal(signal.SIGCHLD, signal.{handling}); print(flush=True); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert ignores_children(process.pid) == (handling == "SIG_IGN")
        process.kill()

    assert not ignores_children(process.pid)
