"""What the reader has: three runs."""

from __future__ import annotations

import time

import gpu_tracker as gput

for number in range(3):
    with gput.Tracker(record=f"gpu-tracker-runs/train-{number}.jsonl"):
        time.sleep(0.1)
