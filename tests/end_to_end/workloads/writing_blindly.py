"""A program with its standard streams closed, whose libraries write to them all the same."""

from __future__ import annotations

import os
import time

import gpu_tracker as gput

for _ in range(20):
    with gput.region("work"):
        time.sleep(0.01)
    gput.log(x=1)
    for fd in (1, 2):
        try:
            os.write(fd, b"a warning\n" * 100)
        except OSError:
            continue  # it is closed, or cannot be written to
