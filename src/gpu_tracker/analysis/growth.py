"""Whether sizes keep growing. Pure."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from ..core.values import NamedTuple
from .findings.spans import find_slope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Growth(NamedTuple):
    """How sizes at equal steps grew."""

    slope_bytes: float
    last_bytes: float
    rising: int
    steps: int


def find_growth(
    every: Sequence[float], step_percent: float, rising_share: float, total_percent: float
) -> Growth | None:
    """Sizes at equal steps that keep growing: by so much per step, in such a share of the steps, by so much altogether.

    The first quarter fills caches; what has not grown in the last one has stopped.
    """
    sizes = every[len(every) // 4 :]
    steps = list(pairwise(sizes))
    rising = sum(after > before for before, after in steps)
    slope = find_slope(sizes)
    is_growing = (
        100 * slope >= step_percent * median(sizes)
        and rising >= rising_share * len(steps)
        and 100 * (sizes[-1] - sizes[0]) >= total_percent * sizes[0]
        and sizes[-1] > sizes[-1 - len(sizes) // 4]
    )
    return Growth(slope, sizes[-1], rising, len(steps)) if is_growing and slope > 0 else None
