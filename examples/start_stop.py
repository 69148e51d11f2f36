"""Without a block, as in a notebook: start, work, read the usage so far, stop."""

from __future__ import annotations

import gpu_tracker as gput

tracker = gput.Tracker(n_expected_cores=1, time_unit="seconds", ram_unit="megabytes")
tracker.start()

numbers = list(range(1_000_000))
so_far = tracker.resource_usage
total = sum(number * number for number in numbers)

tracker.stop()
final = tracker.resource_usage

if so_far is not None and final is not None:
    print(f"after the list: {so_far.max_ram.main.total_rss:.1f} MB, {so_far.compute_time.time:.2f} s")
    print(f"at the end:     {final.max_ram.main.total_rss:.1f} MB, {final.compute_time.time:.2f} s")
