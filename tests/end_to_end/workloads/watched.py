"""Looks at its own figures while they grow, and again when they should not any more."""

from __future__ import annotations

import time
from typing import Any

import gpu_tracker as gput
from end_to_end.workloads.stage import Truth, say
from end_to_end.workloads.truth import MB, burn, read_cpu_time, read_rss_bytes, touch


def main() -> None:
    """Print the figures of every moment, and the truth right before and after it."""
    tracker = gput.Tracker(0.5, "bytes", time_unit="seconds", disable_logs=True)
    moments: list[Truth] = []
    is_none_before = tracker.resource_usage is None
    with tracker:
        started, before = time.monotonic(), read_cpu_time()

        def observe() -> None:
            cpu, seconds = read_cpu_time().since(before), time.monotonic() - started
            held = read_rss_bytes()
            usage: dict[str, Any] = tracker.to_json()
            moments.append(
                {
                    "asked": (cpu.own, seconds),
                    "answered": (read_cpu_time().since(before).own, time.monotonic() - started),
                    "held_bytes": held,
                    "usage": usage,
                }
            )

        observe()
        burn(0.6)
        observe()
        memory = touch(200 * MB)
        observe()
        memory.close()
        time.sleep(0.3)
        observe()
    stopped = tracker.to_json()
    burn(0.3)
    touch(400 * MB).close()
    say(
        {
            "is_none_before": is_none_before,
            "moments": moments,
            "stopped": stopped,
            "later": tracker.to_json(),
        }
    )


if __name__ == "__main__":
    main()
