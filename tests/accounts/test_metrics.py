"""Totals of the metrics that a job logs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.accounts import metrics as module
from gpu_tracker.accounts.metrics import tally
from gpu_tracker.core.model import MetricRow, MetricTotals

ROWS = st.lists(
    st.builds(
        MetricRow,
        st.integers(0, 20).map(float),
        st.dictionaries(st.sampled_from("ab"), st.floats(-1e6, 1e6) | st.sampled_from([math.nan, math.inf])),
    )
)


@given(ROWS, st.integers(0, 9), st.integers(1, 4))
def test_batches_of_any_size_give_the_same_totals(rows: list[MetricRow], cut: int, at_once: int) -> None:
    """The same as adding up by hand."""
    known: dict[str, MetricTotals] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_ROWS_AT_ONCE", at_once)
        tally(known, rows[:cut])
        tally(known, rows[cut:])
    for name in "ab":
        points = [(row.at_seconds, row.values[name]) for row in rows if name in row.values]
        assert (name in known) == bool(points)
        if not points:
            continue
        finite = [value for _, value in points if math.isfinite(value)]
        totals = known[name]
        assert (totals.name, totals.logged) == (name, len(points))
        assert totals.not_finite == len(points) - len(finite)
        assert totals.sum == pytest.approx(sum(finite))
        assert (totals.minimum, totals.maximum) == (min(finite, default=None), max(finite, default=None))
        newest = max(at for at, _ in points)
        assert totals.last_seconds == newest
        last = [value for at, value in points if at == newest][-1]
        assert totals.last == pytest.approx(last, rel=0, abs=0, nan_ok=True)
