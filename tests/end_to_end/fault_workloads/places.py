"""Changes its directory while it is tracked: places.py WHERE [RECORDING]."""

from __future__ import annotations

import os
import sys

from end_to_end.fault_workloads.telling import burn, make_tracker, say, tell_figures


def main(where: str, recording: str | None = None) -> None:
    """`before` and `inside` the block, into a directory that is `kept` or `deleted`, or `nowhere`."""
    when, _, what = where.partition("-")
    tracker = make_tracker(record=recording)
    if when == "before":
        go(what)
    with tracker:
        if when == "inside":
            go(what)
        burn(0.2)
        say("worked")
    tell_figures(tracker)
    say("after the block")


def go(what: str) -> None:
    """Enter a new directory, and take it away if it is to be deleted."""
    path = os.path.abspath("elsewhere")
    os.mkdir(path)
    os.chdir(path)
    if what == "deleted":
        os.rmdir(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
