"""Holds memory from a moment that it tells by the wall clock: clocked.py FILE."""

from __future__ import annotations

import json
import sys
import time

import gpu_tracker as gput
from end_to_end.workloads.truth import touch

ROUNDS = 5
BLOCK_BYTES = 50_000_000


def main(path: str) -> None:
    """A block more at each step, at no round fraction of a second."""
    kept, grown = [], []
    with gput.Tracker(
        sleep_time=0.05, tracking_file=path, record=f"{path}.jsonl", ram_unit="bytes", disable_logs=True
    ):
        time.sleep(0.5)
        for _ in range(ROUNDS):
            before = time.time()
            kept.append(touch(BLOCK_BYTES))
            grown.append([before, time.time()])
            time.sleep(0.333)
    print(json.dumps({"grown": grown}))


if __name__ == "__main__":
    main(*sys.argv[1:])
