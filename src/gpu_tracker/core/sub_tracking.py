"""What the files of gpu-tracker 5's sub-tracking hold: rows of a tracking file, and where code blocks begin and end. Pure."""

from __future__ import annotations

from .values import NamedTuple

BEGIN, END = 0, 1


class BlockEvent(NamedTuple):
    """A code block begins or ends: one row of a sub-tracking file, whose columns are these."""

    process_id: int
    code_block_name: str
    position: int
    """`BEGIN` or `END`."""
    timestamp: float
    """Seconds since 1970."""


class TrackingTable(NamedTuple):
    """A tracking file: what does not change, and a row per sample."""

    static_data: dict[str, float | str | None]
    columns: tuple[str, ...]
    """Of the rows, without the time."""
    rows: tuple[tuple[float | None, ...], ...]
    timestamps: tuple[float, ...]
    """Of the rows, in seconds since 1970, ascending."""
