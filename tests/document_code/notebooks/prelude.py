"""What the reader's program has."""

from __future__ import annotations


def train() -> None:
    """Stands for one."""
    sum(range(1_000_000))
