"""Uses one tracker twice: for a heavy stretch, then for a light one."""

from __future__ import annotations

import sys
import time

import gpu_tracker as gput
from end_to_end.workloads.stage import Truth, say
from end_to_end.workloads.truth import MB, burn, read_cpu_time, read_rss_bytes, touch


def main(sleep_time: str) -> None:
    """Print the truth and the figures of both."""
    tracker = gput.Tracker(float(sleep_time), "bytes", time_unit="seconds", disable_logs=True)
    stretches: list[Truth] = []
    for megabytes, cpu_seconds in ((400, 1.0), (1, 0.5)):
        with tracker:
            started, before = time.monotonic(), read_cpu_time()
            memory = touch(megabytes * MB)
            held = read_rss_bytes()
            burn(cpu_seconds)
            memory.close()
            time.sleep(0.2)
            cpu, seconds = read_cpu_time().since(before), time.monotonic() - started
        stretches.append({"cpu": cpu, "seconds": seconds, "held_bytes": held, "usage": tracker.to_json()})
    say({"stretches": stretches})


if __name__ == "__main__":
    main(*sys.argv[1:])
