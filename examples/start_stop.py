"""In a notebook or a console there is no block to put around the code: start, work, look, stop."""

from __future__ import annotations

import gpu_tracker as gput

tracker = gput.Tracker(n_expected_cores=1, time_unit="seconds", ram_unit="megabytes")
tracker.start()

numbers = list(range(1_000_000))
so_far = tracker.resource_usage
total = sum(number * number for number in numbers)

tracker.stop()
altogether = tracker.resource_usage

if so_far is not None and altogether is not None:
    print(f"after the list: {so_far.max_ram.main.total_rss:.1f} MB, {so_far.compute_time.time:.2f} s")
    print(f"in the end:     {altogether.max_ram.main.total_rss:.1f} MB, {altogether.compute_time.time:.2f} s")
