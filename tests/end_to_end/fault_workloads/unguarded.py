"""A script as beginners write it: no functions, no guard, and multiprocessing set to spawn."""

from __future__ import annotations

import multiprocessing

from end_to_end.fault_workloads.telling import burn, make_tracker, say, tell_figures

multiprocessing.set_start_method("spawn")
tracker = make_tracker()
tracker.start()
burn(0.2)
say("worked")
tracker.stop()
tell_figures(tracker)
say("after the block")
