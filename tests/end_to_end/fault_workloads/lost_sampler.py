"""Loses its sampler in the middle: lost_sampler.py SIGNAL default|ignored [RECORDING]."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time

from end_to_end.fault_workloads.telling import burn, make_tracker, say, signal_sampler, tell_figures

CHILD = """
import time
while time.process_time() < 0.2: pass
"""


def main(name: str, pipe_signal: str, recording: str | None = None) -> None:
    """Work, lose the sampler, work on, also in a child."""
    if pipe_signal == "default":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    tracker = make_tracker(record=recording, n_join_attempts=1, join_timeout=0.5)
    with tracker:
        began, cpu = time.monotonic(), time.process_time()
        burn(0.25)
        sampler = signal_sampler(getattr(signal, name))
        say("still here")
        burn(0.2)
        subprocess.run([sys.executable, "-c", CHILD], check=True)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = time.process_time() - cpu
        ended = time.monotonic()
    tell_figures(
        tracker,
        true_seconds=ended - began,
        true_cpu_seconds=cpu,
        true_children_seconds=children.ru_utime + children.ru_stime,
        stop_seconds=time.monotonic() - ended,
        sampler=sampler,
    )
    say("after the block")


if __name__ == "__main__":
    main(*sys.argv[1:])
