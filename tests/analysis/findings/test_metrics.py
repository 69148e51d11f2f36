"""Rules about what the job logged: each fires, stays silent just below its threshold, and knows its guard."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from gpu_tracker.core.model import MetricRow, MetricTotals, RegionTotals
from made_runs import Device, find, made_run, why_not


def losses(*values: float, step: float = 1.0, first: float = 0.0) -> list[MetricRow]:
    """One row per value."""
    return [
        MetricRow(first + step * number, {"loss": value}, number, 100) for number, value in enumerate(values)
    ]


# ---- 29. nan-then-burned.


def test_what_followed_a_loss_that_is_no_number_is_counted() -> None:
    """Time, and the energy of the devices."""
    run = made_run(Device(), metrics=losses(1.0, 0.5, *[nan] * 5))

    finding = find(run, "nan-then-burned")

    assert finding is not None
    assert finding.sentence == "loss became nan at step 2; 98 s and 29400 J followed."
    assert (finding.severity, finding.start_seconds) == ("serious", 2.0)


def test_without_steps_and_power_the_time_is_told() -> None:
    """Of the first metric that broke."""
    rows = [
        MetricRow(0.0, {"loss": 1.0, "other": 1.0}),
        MetricRow(5.0, {"loss": inf}),
        MetricRow(7.0, {"other": nan}),
    ]

    finding = find(made_run(metrics=rows), "nan-then-burned")

    assert finding is not None
    assert finding.sentence == "loss became inf at 5 s; 95 s followed."


def test_one_process_of_several_that_broke_is_enough() -> None:
    """The others go on logging numbers, in between and afterwards."""
    sound = [row._replace(pid=200, at_seconds=row.at_seconds + 0.5) for row in losses(*[1.0] * 99)]
    rows = sorted((*losses(1.0, *[nan] * 90), *sound), key=lambda row: row.at_seconds)

    finding = find(made_run(metrics=rows), "nan-then-burned")

    assert finding is not None
    assert finding.sentence == "loss became nan at step 1; 89 s followed."


def test_a_trial_that_stopped_at_once_burned_nothing() -> None:
    """What comes after it is another one."""
    rows = [*losses(1.0, nan), *(row._replace(pid=200) for row in losses(*[1.0] * 90, first=5.0))]

    assert find(made_run(metrics=rows), "nan-then-burned") is None


@pytest.mark.parametrize(
    "rows",
    [
        losses(1.0, nan, first=39.0),
        losses(1.0, nan, 1.0),
        losses(nan, nan),
        losses(1.0, 0.5),
    ],
)
def test_a_metric_that_recovers_is_nan_by_nature_or_broke_at_the_end_is_fine(rows: list[MetricRow]) -> None:
    """The run must have gone on for a minute."""
    assert find(made_run(metrics=rows), "nan-then-burned") is None


def test_metrics_of_which_only_totals_are_kept_are_not_judged() -> None:
    """When it happened is not known."""
    totals = MetricTotals("loss", 10, 3, 5.0, 0.1, 1.0, nan, 9.0)

    assert why_not(made_run(), "nan-then-burned") == "no metric was logged"
    reason = why_not(made_run(metric_totals=(totals,)), "nan-then-burned")
    assert reason == "when it was nan is not known"


# ---- 30. tail.


def silent(last: float, **fields: Any) -> Any:
    """A run of 4000 s whose last sign was then."""
    return made_run(**{"n": 400, "step": 10, "metrics": losses(1.0, first=last), **fields})


def test_a_long_silence_at_the_end_is_told() -> None:
    """More than a tenth, and five minutes."""
    finding = find(silent(3590), "tail")

    assert finding is not None
    assert finding.sentence == "Nothing was logged for the last 6 min 50 s."
    assert (finding.start_seconds, finding.end_seconds) == (3590, 4000)


@pytest.mark.parametrize(("n", "last"), [(400, 3600), (200, 1700)])
def test_a_shorter_silence_is_fine(n: int, last: float) -> None:
    """A tenth of the run, or five minutes."""
    assert find(silent(last, n=n), "tail") is None


def test_an_open_region_is_no_silence() -> None:
    """Nor does a program that never said anything fall silent; the end of a region is a sign."""
    is_open = [RegionTotals(100, ("epoch",), open_calls=1, first_seconds=0.0)]
    ended = [RegionTotals(100, ("epoch",), calls=1, last_seconds=3700.0)]

    assert why_not(silent(100, regions=is_open), "tail") == "a region was still open at the end"
    assert why_not(silent(100, metrics=()), "tail") == "no region was marked, and no metric logged"
    assert find(silent(100, regions=ended), "tail") is None


# ---- Losses and other metrics.


@pytest.mark.parametrize(
    ("loss", "severity"), [(0.1, "note"), (nan, "serious")], ids=["the loss is finite", "the loss never was"]
)
def test_a_metric_that_is_no_loss_is_a_note_while_the_loss_is_finite(loss: float, severity: str) -> None:
    """An empty class has no recall; without a sound loss nothing speaks for the training."""
    rows = [
        MetricRow(float(at), {"train_loss": loss, "recall_class7": 0.5 if at < 3 else nan}, at, 100)
        for at in range(90)
    ]

    finding = find(made_run(metrics=rows), "nan-then-burned")

    assert finding is not None
    assert finding.sentence.startswith("recall_class7 became nan at step 3")
    assert finding.severity == severity
    assert finding.advice.startswith("The loss stayed finite") is (severity == "note")


def test_a_loss_that_broke_is_told_before_other_metrics() -> None:
    """Even if these broke before it."""
    rows = [
        MetricRow(float(at), {"loss": 1.0 if at < 9 else nan, "recall": 0.5 if at < 3 else nan}, at, 100)
        for at in range(90)
    ]

    finding = find(made_run(metrics=rows), "nan-then-burned")

    assert finding is not None
    assert finding.sentence.startswith("loss became nan at step 9")
    assert finding.severity == "serious"
