"""Vendors of GPUs."""

from __future__ import annotations

from gpu_tracker.core.vendors import name_vendor


def test_vendors_are_spelled_as_they_spell_themselves() -> None:
    """An unknown one by its own name."""
    assert (name_vendor("nvidia"), name_vendor("moore")) == ("NVIDIA", "moore")
