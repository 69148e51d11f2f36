"""Processes through psutil, real ones: what is read of them, and how often."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from gpu_tracker.sources.portable import ProcessTree

WAITING = [sys.executable, "-I", "-S", "-c", "import sys; print(flush=True); sys.stdin.read()"]
STARTING = """
import subprocess, sys
count, *command = sys.argv[1:]
children = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(int(count))]
for child in children:
    child.stdout.readline()
print(*(child.pid for child in children), flush=True)
sys.stdin.read()
for child in children:
    child.communicate()
"""


@contextmanager
def family(n_children: int) -> Iterator[tuple[int, set[int]]]:
    """A process with children that do nothing."""
    command = [sys.executable, "-I", "-S", "-c", STARTING, str(n_children), *WAITING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as root:
        assert root.stdout is not None
        yield root.pid, set(map(int, root.stdout.readline().split()))


def count_processes_made(monkeypatch: pytest.MonkeyPatch, tree: ProcessTree) -> int:
    """How often psutil looks up a process in one reading."""
    made = []
    find = psutil.Process.__init__

    def count(process: psutil.Process, pid: int | None = None) -> None:
        made.append(pid)
        find(process, pid)

    with monkeypatch.context() as context:
        context.setattr(psutil.Process, "__init__", count)
        tree.read()
    return len(made)


def test_a_reading_looks_up_no_family(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cost grows with the processes of the tree, not with their square."""
    with family(12) as (root, children):
        tree = ProcessTree(root)
        assert {reading.pid for reading in tree.read()} == {root, *children}
        assert count_processes_made(monkeypatch, tree) <= 3 * (1 + len(children))
        tree.close()


def test_a_child_that_begins_later_is_found() -> None:
    """And its own, and one that is an orphan by now."""
    with family(0) as (root, _):
        tree = ProcessTree(os.getpid(), is_newborn=True)
        assert root in {reading.pid for reading in tree.read()}
        with family(2) as (second, children):
            assert {root, second, *children} <= {reading.pid for reading in tree.read()}
        assert not {second, *children} & {reading.pid for reading in tree.read()}
        tree.close()


def test_what_is_older_than_the_job_is_not_of_it() -> None:
    """Nor what that starts."""
    with family(1) as (outsider, children), family(1) as (root, of_the_job):
        tree = ProcessTree(root, adopter_pid=os.getpid(), outsiders=[outsider])
        assert {reading.pid for reading in tree.read()} == {root, *of_the_job}
        assert not children & {reading.pid for reading in tree.read()}
        tree.close()


def test_a_process_that_may_not_be_read_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's runs on; nothing is known of it until it may be read."""
    with family(0) as (root, _):
        tree = ProcessTree(root)

        def refuse(process: psutil.Process) -> None:
            raise psutil.AccessDenied(process.pid)

        with monkeypatch.context() as context:
            for name in ("status", "num_threads"):
                context.setattr(psutil.Process, name, refuse)
            assert tree.read() == ()
            assert tree.is_alive()
            assert not tree.has_seen_end
        assert [reading.pid for reading in tree.read()] == [root]
        tree.close()


def test_a_process_that_has_ended_has_ended() -> None:
    """Though nobody has waited for it."""
    with subprocess.Popen(["true"]) as job:
        tree = ProcessTree(job.pid)
        os.waitid(os.P_PID, job.pid, os.WEXITED | os.WNOWAIT)
        tree.read()
        assert not tree.is_alive()
        assert tree.has_seen_end
        job.wait()
        assert tree.read() == ()
        assert not tree.is_alive()
        tree.close()
