"""A program with a tracker that saves its work when it is told to end, and ends well."""

import signal
import time
from pathlib import Path

import gpu_tracker as gput

told: list[int] = []
signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
with gput.Tracker(record="runs"):
    Path("ready").touch()
    while not told:
        time.sleep(0.05)
    Path("saved").touch()
