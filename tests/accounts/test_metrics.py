"""Totals of the metrics that a job logs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.accounts import metrics as module
from gpu_tracker.accounts.metrics import KnownNames, tally, thin
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


@given(ROWS, st.integers(0, 9))
def test_thinned_in_parts_or_at_once_the_same_is_kept(rows: list[MetricRow], cut: int) -> None:
    """The smallest, the largest, the last and what is no number, with their moments."""
    rows = [row._replace(pid=1) for row in rows]
    kept = thin(rows)

    assert repr(thin([*thin(rows[:cut]), *rows[cut:]])) == repr(kept)
    for name in "ab":
        every = [(row.values[name], row.at_seconds) for row in rows if name in row.values]
        points = [(row.values[name], row.at_seconds) for row in kept if name in row.values]
        finite = [value for value, _ in every if math.isfinite(value)]
        found = [value for value, _ in points if math.isfinite(value)]
        assert len(points) <= 4
        assert (min(found, default=None), max(found, default=None)) == (
            min(finite, default=None),
            max(finite, default=None),
        )
        assert repr(points[-1:]) == repr(every[-1:])
        assert (len(found) < len(points)) == (len(finite) < len(every))
        assert set(map(repr, points)) <= set(map(repr, every))


def test_processes_are_thinned_apart() -> None:
    """They may log different things under one name; steps and moments stay."""
    rows = [MetricRow(at, {"loss": at % 7, "lr": 0.1}, at, pid) for at in range(100) for pid in (1, 2)]
    kept = thin(rows)

    assert {row.pid for row in kept} == {1, 2}
    assert [(row.at_seconds, row.values, row.step) for row in kept if row.pid == 1] == [
        (0, {"loss": 0, "lr": 0.1}, 0),
        (6, {"loss": 6}, 6),
        (99, {"loss": 1, "lr": 0.1}, 99),
    ]


def test_names_are_known_up_to_a_number_and_a_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is put into a name by mistake is counted, not kept; other numbers of the same row are, and so is a row without any."""
    monkeypatch.setattr(module, "MOST_METRICS", 3)
    monkeypatch.setattr(module, "_MOST_LETTERS", 10)
    names = KnownNames()
    first = [
        MetricRow(0.0, {"loss": 1.0, "too long for it": 2.0}),
        MetricRow(1.0, {"a": 1.0}),
        MetricRow(2.0, {}),
    ]
    chosen = names.choose(first)

    assert [row.values for row in chosen] == [{"loss": 1.0}, {"a": 1.0}, {}]
    assert names.n_refused == 1
    second = [MetricRow(at, {"loss": at, f"b{at}": at}, at, 7) for at in (3.0, 4.0, 5.0)]
    assert names.choose(second) == [
        second[0],
        MetricRow(4.0, {"loss": 4.0}, 4.0, 7),
        MetricRow(5.0, {"loss": 5.0}, 5.0, 7),
    ]
    assert names.choose([MetricRow(6.0, {"c": 1.0, "d": 1.0})]) == []
    assert names.n_refused == 5
