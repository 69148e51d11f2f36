"""What the reader has: a finished run."""

from __future__ import annotations

import time

import gpu_tracker as gput

with gput.Tracker(record="run.jsonl"), gput.region("wait"):
    gput.log(loss=1)
    time.sleep(0.2)
