"""Plain tables: columns as wide as their widest cell. Pure."""

from __future__ import annotations

from .cells import count_cells, pad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def align(
    rows: Sequence[Sequence[str]], words: frozenset[int] = frozenset({0}), gap: str = "  "
) -> list[str]:
    """One line per row; columns are numbers, set to the right, unless they are among the `words`."""
    widths = [max(map(count_cells, column)) for column in zip(*rows, strict=True)]
    return [
        gap.join(
            pad(cell, width, is_number=place not in words)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
