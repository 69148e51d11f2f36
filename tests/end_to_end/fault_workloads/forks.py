"""Forks in the tracked block: forks.py WAY. The child ends in its own way, the parent goes on."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

from end_to_end.fault_workloads.telling import burn, make_tracker, say, tell, tell_figures


def main(way: str) -> None:
    """One of the ways below."""
    tracker = make_tracker()
    is_child = False
    with tracker:
        burn(0.2)
        pid = fork_without_hooks() if way.startswith("hookless") else os.fork()
        if pid == 0:
            is_child = True
            if way == "exits":
                os._exit(7)
            elif way == "raises":
                raise SystemExit(7)
            elif way.startswith("outlives"):
                linger()
        else:
            say("parent works")
            burn(0.2)
            if way in ("leaves", "exits", "raises"):
                say(f"child ended with {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}")
            if way.endswith("killed"):
                os.kill(os.getpid(), signal.SIGKILL)
    if is_child:
        os._exit(7)
    tell_figures(tracker, child=pid)
    say("parent after the block")


def fork_without_hooks() -> int:
    """As a C library forks: nothing of Python's is told. The child does nothing but stay."""
    libc = ctypes.PyDLL(None)
    quiet = os.open(os.devnull, os.O_RDWR)
    pid: int = libc.fork()
    if pid == 0:
        libc.dup2(quiet, 1)
        libc.dup2(quiet, 2)
        libc.sleep(30)
        libc._exit(0)
    tell(child=pid)
    return pid


def linger() -> None:
    """Stay long after the parent, holding nothing that others wait for."""
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    tell(child=os.getpid())
    time.sleep(30)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
