"""What the reader's program has."""

from __future__ import annotations

batches = range(100)


def model(batch: int) -> float:
    """Stands for one."""
    return 1 / (batch + 1)
