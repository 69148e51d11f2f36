"""Columns as text for a page: small, and unpacked by any browser. Pure.

A value becomes one of 4095 levels between the smallest and the largest of its column, far finer than a pixel; metrics have
65 535. The low bytes of a column come before its high bytes, which deflates best. Exact figures are never taken from here.
"""

from __future__ import annotations

import zlib
from array import array
from base64 import b64encode
from itertools import pairwise
from math import isfinite

from ...core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COARSE, FINE = 0xFFF, 0xFFFF
_MOST = 0xFFFFFFFF
_LEAST = 1e-290
_IS_BIG_ENDIAN = array("H", [1]).tobytes()[0] == 0


class Packed(NamedTuple):
    """How to unpack one column."""

    low: float
    step: float
    unknown: int
    """The level that stands for an unknown value."""


class Packer:
    """Collects columns of one length or of several."""

    def __init__(self) -> None:
        self._planes: list[bytes] = []
        self.columns: list[dict[str, float]] = []

    def add(self, values: Sequence[float], levels: int = COARSE) -> int:
        """Add a column; its number."""
        packed, content = quantize(values, levels)
        self._planes.append(content)
        self.columns.append({**packed._asdict(), "rows": len(values)})
        return len(self.columns) - 1

    def add_times(self, seconds: Sequence[float]) -> int:
        """Add moments, to the millisecond; the number of the column."""
        moments = [round(1000 * moment) for moment in seconds]
        steps = array("I", (min(max(0, after - before), _MOST) for before, after in pairwise([0, *moments])))
        self._planes.append(_split_bytes(steps))
        self.columns.append({"rows": len(moments)})
        return len(self.columns) - 1

    def pack(self) -> str:
        """All columns."""
        return b64encode(zlib.compress(b"".join(self._planes), 6)).decode("ascii")


def quantize(values: Sequence[float], levels: int) -> tuple[Packed, bytes]:
    """The levels of a column; the highest is for unknown values."""
    low, high = _find_range(values)
    step = (high - low) / (levels - 1) if high - low > _LEAST else 1.0
    inverse = 1.0 / step
    numbers = array(
        "H", [round((value - low) * inverse) if value - value == 0 else levels for value in values]
    )
    return Packed(low, step, levels), _split_bytes(numbers)


def _split_bytes(numbers: array[int]) -> bytes:
    """All lowest bytes first, then the next ones."""
    if _IS_BIG_ENDIAN:
        numbers.byteswap()
    content, size = numbers.tobytes(), numbers.itemsize
    return b"".join(content[place::size] for place in range(size))


def _find_range(values: Iterable[float]) -> tuple[float, float]:
    known = [value for value in values if isfinite(value)]
    return (min(known), max(known)) if known else (0.0, 0.0)
