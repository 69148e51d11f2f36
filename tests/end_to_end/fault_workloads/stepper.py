"""Works, says so, and waits for a line before each further step: stepper.py STEPS [RECORDING] [PID]."""

from __future__ import annotations

import sys
import time

from end_to_end.fault_workloads.telling import burn, make_tracker, say, tell_figures


def main(steps: str, recording: str = "", pid: str = "") -> None:
    """Every step burns 0.2 s of CPU and lasts at least 0.3 s."""
    tracker = make_tracker(record=recording or None, process_id=int(pid) if pid else None)
    with tracker:
        began, cpu = time.monotonic(), time.process_time()
        for step in range(int(steps)):
            burn(0.2)
            time.sleep(0.1)
            say(f"step {step}")
            sys.stdin.readline()
        cpu, ended = time.process_time() - cpu, time.monotonic()
    tell_figures(tracker, true_seconds=ended - began, true_cpu_seconds=cpu)
    say("after the block")


if __name__ == "__main__":
    main(*sys.argv[1:])
