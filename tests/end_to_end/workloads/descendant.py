"""Starts another process in a spot where it is easily overlooked, and tells that one's truth beside its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

from end_to_end.workloads.stage import Truth, perform


def work(kind: str, *resident: str) -> Truth:
    """`kind` is child, thread, setsid or orphan; the rest is what the process is to hold."""
    command = [sys.executable, "-m", "end_to_end.workloads.resident", *resident]
    answer_out, answer_in = os.pipe()
    if kind == "thread":
        starter = threading.Thread(target=_run, args=(command, answer_in))
        starter.start()
        starter.join()
    elif kind == "orphan":
        _leave_behind(command, answer_in)
    else:
        _run(command, answer_in, is_own_session=kind == "setsid")
    os.close(answer_in)
    with os.fdopen(answer_out, encoding="ascii") as answer:
        return {"descendant": json.loads(answer.read())}


def _run(command: list[str], answer_fd: int, *, is_own_session: bool = False) -> None:
    subprocess.run(command, stdout=answer_fd, start_new_session=is_own_session, check=True)


def _leave_behind(command: list[str], answer_fd: int) -> None:
    """As a daemon starts: a child, a session of its own, a grandchild, and the child has gone."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork() == 0:
            os.dup2(answer_fd, 1)
            os.execv(command[0], command)
        os._exit(0)
    os.waitpid(pid, 0)


if __name__ == "__main__":
    perform(work)
