"""How evenly the work of a job is distributed over its ranks, and which rank the others had to wait for. Pure."""

from __future__ import annotations

from math import isfinite

from ..core.figures import RUN, TIME
from ..core.units import humanize_seconds
from ..core.values import NamedTuple
from .permutation_test import median

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..core.figures import Figure
    from .ranks import Rank

# Of the regions, those in which all ranks together spent most time.
_MOST_REGIONS = 10
# A rank that is that far above the median in a region, for that part of the job's time, has held up the others.
_NOTABLE_EXCESS = 0.1
_NOTABLE_PART = 0.02
_WAITING = ("wait", "barrier", "sync", "reduce", "gather", "bcast", "broadcast", "recv", "receive", "join")


class Balance(NamedTuple):
    """One figure over all ranks."""

    figure: Figure
    smallest: float
    median: float
    largest: float
    imbalance_percent: float | None
    """How far the largest is above the mean."""
    is_at_least: bool = False
    """Whether some of them may have been more, because they are without some of the time."""
    smallest_rank: str = ""
    """The name of the rank that has the smallest, and of the one that has the largest."""
    largest_rank: str = ""
    region: str = ""
    """The path of a region; empty for the whole run."""
    ranks: int = 0
    """How many have it."""

    @property
    def load_balance_percent(self) -> float | None:
        """The mean as a share of the largest: how busy the ranks would be if all waited for the last one."""
        excess = self.imbalance_percent
        return None if excess is None or self.ranks < 2 else 100 / (1 + excess / 100)


class MetricSpread(NamedTuple):
    """What a metric was at the end in all ranks. None if it was finite in none."""

    name: str
    smallest: float | None
    median: float | None
    largest: float | None
    smallest_rank: str
    """The name of the rank that has the smallest, and of the one that has the largest."""
    largest_rank: str
    ranks: int
    """How many have it."""
    not_finite: tuple[str, ...]
    """The names of the ranks in which it was nan or infinite."""


def balance_ranks(ranks: Sequence[Rank]) -> Iterator[Balance]:
    """Of the figures of whole runs."""
    for figure in RUN:
        known = [(value, rank) for rank in ranks if (value := rank.values[figure.name]) is not None]
        if known:
            is_at_least = any(figure.name in rank.at_least for rank in ranks)
            yield _weigh(figure, known)._replace(is_at_least=is_at_least)


def balance_regions(ranks: Sequence[Rank]) -> Iterator[Balance]:
    """Of the time in regions, the longest first. Ranks that wait for others spin: only this tells who was waited for."""
    found: dict[str, list[tuple[float, Rank]]] = {}
    for rank in ranks:
        for path, seconds in rank.region_seconds.items():
            found.setdefault(path, []).append((seconds, rank))
    longest = sorted(found, key=lambda path: (-sum(seconds for seconds, _ in found[path]), path))
    for path in longest[:_MOST_REGIONS]:
        is_at_least = any(path in rank.doubted_regions for _, rank in found[path])
        yield _weigh(TIME, found[path])._replace(region=path, is_at_least=is_at_least)


def spread_metrics(ranks: Sequence[Rank]) -> Iterator[MetricSpread]:
    """Of the last values of metrics, those that most ranks have first."""
    found: dict[str, list[tuple[float, str]]] = {}
    for rank in ranks:
        for name, last in rank.metrics.items():
            found.setdefault(name, []).append((last, rank.label))
    for name in sorted(found, key=lambda name: (-len(found[name]), name)):
        finite = [one for one in found[name] if isfinite(one[0])]
        smallest, smallest_rank = min(finite, default=(None, ""))
        largest, largest_rank = max(finite, default=(None, ""))
        yield MetricSpread(
            name,
            smallest,
            median([last for last, _ in finite]) if finite else None,
            largest,
            smallest_rank,
            largest_rank,
            len(found[name]),
            tuple(label for last, label in found[name] if not isfinite(last)),
        )


def _weigh(figure: Figure, known: Sequence[tuple[float, Rank]]) -> Balance:
    values = [value for value, _ in known]
    mean = sum(values) / len(values)
    smallest, largest = min(known, key=lambda one: one[0]), max(known, key=lambda one: one[0])
    return Balance(
        figure,
        smallest[0],
        median(values),
        largest[0],
        imbalance_percent=100 * (largest[0] / mean - 1) if mean > 0 else None,
        smallest_rank=smallest[1].label,
        largest_rank=largest[1].label,
        ranks=len(values),
    )


def describe_delay(balance: Sequence[Balance], seconds: float) -> list[str]:
    """Which rank the others had to wait for, and where, if one stands out in a region that most have."""
    shared = [one for one in balance if one.region and one.ranks > 1]
    excess = [(one.largest - one.median, one) for one in shared if not _is_wait(one, shared)]
    most, worst = max(excess, key=lambda one: one[0], default=(0.0, None))
    if worst is None or most < max(_NOTABLE_PART * seconds, _NOTABLE_EXCESS * worst.median):
        return []
    return [
        f"{worst.largest_rank} spent {humanize_seconds(worst.largest)} in region {worst.region!r}, the median of "
        f"{worst.ranks} ranks is {humanize_seconds(worst.median)} (load balance {worst.load_balance_percent:.0f} %): "
        "the others may have waited for it."
    ]


def _is_wait(balance: Balance, others: Sequence[Balance]) -> bool:
    """Whether a rank is longest in a region because it was the first to have done its work elsewhere: a barrier.

    Times alone do not tell who waits for whom, but people call it so.
    """
    excess = balance.largest - balance.median
    return any(word in balance.region.rpartition("/")[2].lower() for word in _WAITING) and any(
        other.smallest_rank == balance.largest_rank and other.largest - other.smallest >= excess
        for other in others
        if not _are_nested(balance.region, other.region)
    )


def _are_nested(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")
