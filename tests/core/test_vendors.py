"""Whose GPUs can be read."""

from __future__ import annotations

from gpu_tracker.core.vendors import name_vendor


def test_vendors_are_written_as_they_write_themselves() -> None:
    """One that we do not know by its own name."""
    assert (name_vendor("nvidia"), name_vendor("moore")) == ("NVIDIA", "moore")
