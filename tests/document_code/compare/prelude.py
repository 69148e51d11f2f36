"""What the reader has: runs of several kinds."""

from __future__ import annotations

import gpu_tracker as gput

_SINGLE = ("before", "after", "runs/a", "runs/b", "runs/a1", "runs/a2", "runs/b1", "runs/rank0", "runs/rank1")
_REPEATED = ("runs/mlp/1", "runs/boosting/1", "runs/before/1", "gpu-tracker-runs/1")
for run in (*_SINGLE, *_REPEATED):
    with gput.Tracker(record=f"{run}.jsonl"), gput.region("forward"):
        sum(range(100_000))
