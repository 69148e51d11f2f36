"""Interrupts a region or a metric at every line of our code, one forked process for each, and prints what never reached the program."""

from __future__ import annotations

import builtins
import json
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import gpu_tracker as gput

PACKAGE = os.path.dirname(gput.__file__) + os.sep
REACHED, LOST, TOO_LATE = range(3)


class LimitError(Exception):
    """One of the program's own."""


def enter_and_leave() -> None:
    """A region."""
    with gput.region("interrupted"):
        pass


def log() -> None:
    """A metric."""
    gput.log(step=1, loss=1.0)


class Interrupt:
    """A trace function, which is given the interrupted frame as a signal handler is."""

    def __init__(self, at: int, kind: type[BaseException]) -> None:
        self.remaining, self.kind, self.where = at, kind, ""

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> Interrupt | None:
        """Raise at the wanted line."""
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            self.remaining -= 1
        if self.remaining < 0 and not self.where:
            self.where = f"{frame.f_code.co_filename[len(PACKAGE) :]}:{frame.f_lineno}"
            sys.settrace(None)
            raise self.kind("over")
        return self


def try_in_child(work: Callable[[], None], at: int, kind: type[BaseException], told: int) -> int:
    """Interrupt the work there; the child starts without regions, as every forked one, so it searches and opens all anew."""
    interrupt = Interrupt(at, kind)
    signal.alarm(20)  # if it never ends, it is killed
    try:
        sys.settrace(interrupt)
        work()
    except kind:
        return REACHED
    finally:
        sys.settrace(None)
        os.write(told, interrupt.where.encode())
    return LOST if interrupt.where else TOO_LATE


def interrupt_everywhere(work: Callable[[], None], kind: type[BaseException]) -> tuple[list[str], int]:
    """Where it was lost, and how often it was not."""
    lost: list[str] = []
    n_reached = at = 0
    while True:
        reader, told = os.pipe()
        if not (pid := os.fork()):
            os._exit(try_in_child(work, at, kind, told))
        os.close(told)
        with os.fdopen(reader) as lines:
            where = lines.read()
        outcome = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if outcome == TOO_LATE:
            return lost, n_reached
        if outcome == REACHED:
            n_reached += 1
        else:
            lost.append(where)
        at += 1


if __name__ == "__main__":
    enter_and_leave()  # what is imported in the middle of this is imported once
    log()
    kind = LimitError if sys.argv[1] == "LimitError" else getattr(builtins, sys.argv[1])
    (lost_in_region, n_in_region), (lost_in_log, n_in_log) = (
        interrupt_everywhere(work, kind) for work in (enter_and_leave, log)
    )
    print(json.dumps({"lost": lost_in_region + lost_in_log, "reached": [n_in_region, n_in_log]}))
