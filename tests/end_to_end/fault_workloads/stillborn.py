"""Has an environment in which no program can start, so its sampler cannot either."""

from __future__ import annotations

import os
import time

from end_to_end.fault_workloads.telling import burn, make_tracker, say, tell_figures


def main() -> None:
    """Libraries for another machine are found first; who runs already does not mind."""
    os.mkdir("libraries")
    with open("libraries/libc.so.6", "w", encoding="ascii"):
        pass
    os.environ["LD_LIBRARY_PATH"] = os.path.abspath("libraries")
    tracker = make_tracker()
    began = time.monotonic()
    with tracker:
        started = time.monotonic()
        burn(0.2)
    tell_figures(tracker, start_seconds=started - began)
    say("after the block")


if __name__ == "__main__":
    main()
