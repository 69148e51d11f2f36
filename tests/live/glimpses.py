"""Values to show."""

from __future__ import annotations

from typing import Any

from gpu_tracker.analysis.intervals import GpuInterval, Interval


def make_gpu(ordinal: int = 0, **changes: Any) -> GpuInterval:
    """A busy device."""
    gpu = GpuInterval(
        str(ordinal), f"GPU-{ordinal}", "A100", 24 * 2**30, 18.0 * 2**30, None, 87.0, None, None, None, None
    )
    return gpu._replace(**changes)


def make_interval(**changes: Any) -> Interval:
    """A busy second."""
    return Interval(0.0, 1.0, 5.2, None, 11.2 * 2**30, None, None, 1, 1, None, None)._replace(**changes)
