"""What the reader's program has."""

from __future__ import annotations

from types import SimpleNamespace


def make() -> bytearray:
    """Stands for a model."""
    return bytearray(10_000_000)


def load() -> list[int]:
    """Stands for data."""
    return list(range(10))


def train(model: bytearray, data: list[int]) -> SimpleNamespace:
    """A loss that knows its number."""
    return SimpleNamespace(item=lambda: len(model) / len(data))
