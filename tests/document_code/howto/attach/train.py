"""A training run of five seconds, for documents that track `train.py`."""

from __future__ import annotations

import sys
import time

import gpu_tracker as gput

until = time.monotonic() + 5
step = 0
while time.monotonic() < until:
    with gput.region("epoch"), gput.region("step"):
        sum(number * number for number in range(200_000))
        loss = 1 / (step + 1)
    step += 1
    gput.log(step=step, loss=loss)
print("finished", *sys.argv[1:])
