"""A training run of a second, for documents that track `train.py`."""

from __future__ import annotations

import sys
import time

import gpu_tracker as gput

until = time.monotonic() + 1
step = 0
while time.monotonic() < until:
    with gput.region("epoch"), gput.region("step"):
        loss = sum(number * number for number in range(20_000)) / (step + 1)
    step += 1
    gput.log(step=step, loss=loss)
print("finished", *sys.argv[1:])
