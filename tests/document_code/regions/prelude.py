"""What the reader's program has."""

from __future__ import annotations

import gpu_tracker as gput

loader = iter(range(10))


@gput.region("step")
def step(batch: int) -> float:
    """Stands for one."""
    return 1 / (batch + 1)
