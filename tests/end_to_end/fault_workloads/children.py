"""Looks after its children in a way of its own: children.py WAY."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType

from end_to_end.fault_workloads.telling import burn, make_tracker, say, tell, tell_figures


def main(way: str) -> None:
    """Children with the exit codes 1, 2 and 3, waited for as the way says."""
    statuses: list[int] = []

    def reap(number: int, frame: FrameType | None) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            statuses.append(os.waitstatus_to_exitcode(status))

    if way == "threaded handler":
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    if way.endswith("handler"):
        signal.signal(signal.SIGCHLD, reap)
    elif way == "ignored":
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    tracker = make_tracker()
    with tracker:
        burn(0.2)
        pids = [start(code) for code in (1, 2, 3)]
        if way.endswith("handler"):
            deadline = time.monotonic() + 10
            while len(statuses) < len(pids) and time.monotonic() < deadline:
                time.sleep(0.01)
        elif way == "named":
            statuses.extend(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids)
        else:
            wait_for_all(statuses)
        # What `ignored` children left is nothing, what the others left is their three codes.
        say(str(sorted(statuses)))
    tell_figures(tracker)
    tell(children=sorted(own_children()))
    say("after the block")


def start(code: int) -> int:
    """A child that ends with this code."""
    return os.posix_spawn("/bin/sh", ["sh", "-c", f"exit {code}"], os.environ)


def wait_for_all(statuses: list[int]) -> None:
    """Until there is nobody left to wait for, as shells and launchers do."""
    while True:
        try:
            _, status = os.wait()
        except ChildProcessError:
            return
        statuses.append(os.waitstatus_to_exitcode(status))


def own_children() -> list[int]:
    """Every child, zombies included, a moment after the end."""
    time.sleep(0.2)
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


if __name__ == "__main__":
    main(*sys.argv[1:])
