"""Totals of the metrics that a job logs, and the points to keep of many. Pure."""

from __future__ import annotations

from itertools import islice

from ..core.model import MOST_METRICS, MetricRow, MetricTotals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ROWS_AT_ONCE = 10_000
# All names and totals are in one line, which must not become too long to be read.
_MOST_LETTERS = 500_000


class KnownNames:
    """The names that a job logs under. There may be many, but not without end: then a changing value is put into them."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._n_letters = 0
        self.n_refused = 0
        """Numbers with names that are too many."""

    def choose(self, rows: Sequence[MetricRow]) -> list[MetricRow]:
        """The rows without what is refused; one of which nothing remains is left out."""
        chosen = (row if self._names.issuperset(row.values) else self._learn(row) for row in rows)
        return [row for row in chosen if row is not None]

    def _learn(self, row: MetricRow) -> MetricRow | None:
        for name in row.values:
            n_letters = self._n_letters + len(name)
            if name not in self._names and len(self._names) < MOST_METRICS and n_letters <= _MOST_LETTERS:
                self._names.add(name)
                self._n_letters = n_letters
        kept = _keep(row, self._names)
        self.n_refused += len(row.values) - len(kept.values)
        return kept if kept.values else None


def tally(known: dict[str, MetricTotals], rows: Iterable[MetricRow]) -> None:
    """Add the rows to the totals of each metric."""
    left = iter(rows)
    while some := list(islice(left, _ROWS_AT_ONCE)):
        some.sort(key=lambda row: row.at_seconds)  # processes write in batches
        values: dict[str, list[float]] = {}
        last_seconds: dict[str, float] = {}
        for at_seconds, logged, _, _ in some:
            for name, value in logged.items():
                if name in values:
                    values[name].append(value)
                else:
                    values[name] = [value]
                last_seconds[name] = at_seconds
        for name, column in values.items():
            known[name] = _add(known.get(name), name, column, last_seconds[name])


def _add(known: MetricTotals | None, name: str, values: list[float], last_seconds: float) -> MetricTotals:
    before = known or MetricTotals(name, 0, 0, 0.0, None, None, values[-1], last_seconds)
    finite = [value for value in values if value - value == 0]
    sizes = [size for size in (before.minimum, before.maximum) if size is not None]
    is_newer = last_seconds >= before.last_seconds
    return MetricTotals(
        name=name,
        logged=before.logged + len(values),
        not_finite=before.not_finite + len(values) - len(finite),
        sum=before.sum + sum(finite),
        minimum=min([*finite, *sizes], default=None),
        maximum=max([*finite, *sizes], default=None),
        last=values[-1] if is_newer else before.last,
        last_seconds=max(last_seconds, before.last_seconds),
    )


def thin(rows: Sequence[MetricRow]) -> list[MetricRow]:
    """Of each metric in each process its smallest, largest, last and first not-finite values, with their moments.

    To thin what has been thinned before, together with more, is to thin it all at once.
    """
    kept: dict[tuple[int, str], list[int | None]] = {}
    for index, row in enumerate(rows):
        for name, value in row.values.items():
            places = kept.setdefault((row.pid, name), [None, None, None, None])
            places[0] = index
            if value - value != 0:
                places[1] = index if places[1] is None else places[1]
                continue
            if places[2] is None or value < rows[places[2]].values[name]:
                places[2] = index
            if places[3] is None or value > rows[places[3]].values[name]:
                places[3] = index
    names: dict[int, set[str]] = {}
    for (_, name), places in kept.items():
        for place in places:
            if place is not None:
                names.setdefault(place, set()).add(name)
    return [_keep(rows[index], names[index]) for index in sorted(names)]


def _keep(row: MetricRow, names: set[str]) -> MetricRow:
    return row._replace(values={name: value for name, value in row.values.items() if name in names})
