"""The time of `start()` and `stop()`, with the given sleep_time."""

import importlib
import json
import sys
import time

BLOCK_SECONDS = 0.3

Tracker = importlib.import_module("gpu_tracker").Tracker

began = time.perf_counter()
tracker = Tracker(sleep_time=float(sys.argv[1]), disable_logs=True)
tracker.start()
started = time.perf_counter()
time.sleep(BLOCK_SECONDS)
stopping = time.perf_counter()
tracker.stop()
stopped = time.perf_counter()
print(json.dumps({"start_seconds": started - began, "stop_seconds": stopped - stopping}))
