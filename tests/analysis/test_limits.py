"""Limits: read, refused, kept or not."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_tracker.analysis.compare import compare
from gpu_tracker.analysis.limits import (
    Amount,
    Verdict,
    check_limit,
    needs_two_groups,
    parse_amount,
    parse_limit,
)
from gpu_tracker.analysis.measures import RunFigures, Subject
from gpu_tracker.core.figures import LAST_METRIC, REGION, RUN


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("peak_gpu_ram > +10%", ("peak_gpu_ram", "", None, ">", Amount(1.1, "ratio"))),
        ("time>1.2x", ("time", "", None, ">", Amount(1.2, "ratio"))),
        ("peak_ram >= 8GB", ("peak_ram", "", None, ">=", Amount(8e9, "bytes"))),
        ("peak_ram > 8 gib", ("peak_ram", "", None, ">", Amount(8 * 2.0**30, "bytes"))),
        ("time > 90", ("time", "", None, ">", Amount(90.0, "seconds"))),
        ("time > 1.5min", ("time", "", None, ">", Amount(90.0, "seconds"))),
        ("gpu_utilization < 50%", ("gpu_utilization", "", None, "<", Amount(50.0, "percent"))),
        ("gpu_utilization < -20%", ("gpu_utilization", "", None, "<", Amount(0.8, "ratio"))),
        ("mean_cores <= 2", ("mean_cores", "", None, "<=", Amount(2.0, "cores"))),
        ("energy > 1kWh", ("energy", "", None, ">", Amount(3.6e6, "joules"))),
        ("regions.forward.time > +5%", ("time", "forward", None, ">", Amount(1.05, "ratio"))),
        ("regions.train/v1.2 a>b.calls > 3", ("calls", "train/v1.2 a>b", None, ">", Amount(3.0, "count"))),
        ("metrics.val.loss > 0.5", ("", "", "val.loss", ">", Amount(0.5, "number"))),
        ("metrics.gain < -1", ("", "", "gain", "<", Amount(-1.0, "number"))),
    ],
)
def test_a_limit_is_read(text: str, expected: tuple[object, ...]) -> None:
    """With or without blanks; units are never guessed between bytes and others."""
    limit = parse_limit(text)
    figure, region, metric, operator, amount = expected

    assert (limit.figure, limit.region, limit.metric, limit.operator) == (
        figure,
        region,
        metric,
        operator,
    )
    assert isinstance(amount, Amount)
    assert limit.amount.unit == amount.unit
    assert limit.amount.value == pytest.approx(amount.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no limit"),
        ("time", "is no limit"),
        ("> 3", "is no limit"),
        ("time > ", "is no limit"),
        ("time > soon", "'soon' is no amount"),
        ("time > 3 parsecs", "'3 parsecs' is no amount"),
        ("time > 1e999s", "too large"),
        ("time > 8GB", "time is in seconds, and '8GB' is not"),
        ("peak_ram > 8", "peak_ram is in bytes, and '8' is not"),
        ("time > 10%", "has no sign. Write +10%"),
        ("time > +10s", "has a sign"),
        ("time > +10", "has a sign"),
        ("time > -1x", "is no factor"),
        ("time > 3sx", "is no factor"),
        ("tyme > 3s", "'tyme' in 'tyme > 3s' is not known. There are: time, cpu_time"),
        ("calls > 3", "is not known"),
        ("regions.time > 3s", "names no figure of a region"),
        ("regions.a.tyme > 3s", "'tyme' in 'regions.a.tyme > 3s' is not known"),
    ],
)
def test_nonsense_is_refused_in_one_sentence_or_two(text: str, words: str) -> None:
    """With what is wrong with it."""
    with pytest.raises(ValueError) as refused:
        parse_limit(text)

    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing else happens."""
    for parse in (parse_limit, parse_amount):
        try:
            parse(text)
        except ValueError:
            continue


NAMES = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1).filter(
    lambda name: not set(name) & set("<>=")
)


@given(
    NAMES,
    st.sampled_from([figure.name for figure in REGION]),
    st.sampled_from([">", "<", ">=", "<="]),
    st.floats(0, 1e6, allow_subnormal=False),
)
def test_what_is_written_is_what_is_meant(name: str, figure: str, operator: str, percent: float) -> None:
    """For any name of a region, any figure and any percentage."""
    limit = parse_limit(f"regions.{name}.{figure} {operator} +{percent:f}%")

    assert (limit.region, limit.figure, limit.operator) == (name, figure, operator)
    assert limit.amount == Amount(1 + float(f"{percent:f}") / 100, "ratio")
    assert needs_two_groups(limit)


def values(**named: float | None) -> RunFigures:
    """A run with such figures; `step` is the time of two regions of that name, `loss` a metric."""
    found: dict[Subject, float | None] = {}
    for figure in RUN:
        if figure.name in named:
            found[Subject(figure)] = named[figure.name]
    if "step" in named:
        found[Subject(REGION[0], ("train", "step"))] = named["step"]
        found[Subject(REGION[0], ("test", "step"))] = 1.0
    if "loss" in named:
        found[Subject(LAST_METRIC, metric="loss")] = named["loss"]
    return RunFigures(found)


def check(text: str, *runs: RunFigures) -> Verdict:
    """What comes of a limit, for groups of one run called a, b, c."""
    groups = [(name, [run]) for name, run in zip("abc", runs, strict=False)]
    return check_limit(parse_limit(text), compare(groups))


def test_a_relative_limit_is_checked_against_the_first() -> None:
    """For every other group."""
    verdict = check("time > +10%", values(time=10.0), values(time=10.9), values(time=12.0))

    assert verdict.fired == (
        "'time > +10%' is true of c: time is 12 s, 1.200 times that of the first group.",
    )
    assert verdict.unknown == ()


def test_an_absolute_limit_is_for_the_others_or_for_the_only_one() -> None:
    """The first is what is measured against."""
    small, large = values(peak_ram=7e9), values(peak_ram=9e9)

    assert check("peak_ram > 8GB", large, small).fired == ()
    assert check("peak_ram > 8GB", small, large).fired == (
        "'peak_ram > 8GB' is true of b: peak RAM is 9 GB.",
    )
    assert len(check("peak_ram > 8GB", large).fired) == 1


@pytest.mark.parametrize(
    ("operator", "fires"), [(">", (0, 0, 1)), (">=", (0, 1, 1)), ("<", (1, 0, 0)), ("<=", (1, 1, 0))]
)
def test_every_operator_means_what_it_says(operator: str, fires: tuple[int, ...]) -> None:
    """Below, at and above the limit."""
    found = [len(check(f"time {operator} 5s", values(time=time)).fired) for time in (4.0, 5.0, 6.0)]

    assert tuple(found) == fires


def test_a_region_is_meant_by_its_name_or_by_its_path() -> None:
    """A name that occurs twice means both."""
    before, after = values(step=1.0), values(step=2.0)

    assert check("regions.step.time > +5%", before, after).fired == (
        "'regions.step.time > +5%' is true of b: time of region 'train/step' is 2 s, "
        "2.000 times that of the first group.",
    )
    assert check("regions.test/step.time > +5%", before, after).fired == ()
    assert len(check("regions.train/step.time > +5%", before, after).fired) == 1


def test_a_metric_can_be_limited() -> None:
    """More than something below zero is still more."""
    assert check("metrics.loss > 0.5", values(loss=0.6)).fired == (
        "'metrics.loss > 0.5' is true of a: the last 'loss' is 0.6.",
    )
    assert len(check("metrics.loss > +10%", values(loss=-10.0), values(loss=-8.0)).fired) == 1
    assert check("metrics.loss > +10%", values(loss=-10.0), values(loss=-9.5)).fired == ()


def test_anything_is_more_than_nothing() -> None:
    """But nothing is not."""
    assert len(check("time > 100x", values(time=0.0), values(time=1.0)).fired) == 1
    assert check("time > +10%", values(time=0.0), values(time=0.0)).fired == ()


def test_what_is_not_known_does_not_fire_but_is_said() -> None:
    """Whatever the reason."""

    def unknown(text: str, *runs: RunFigures) -> str:
        verdict = check(text, *runs)
        assert verdict.fired == ()
        (sentence,) = verdict.unknown
        return sentence

    timed = values(time=1.0)
    assert unknown("energy > 1J", timed).endswith("was not checked for a: it was not measured.")
    assert unknown("time > 1s", values(time=None)).endswith("it was not measured.")
    assert unknown("time > 1x", values(time=None), timed).endswith("it is not known of the first group.")
    assert unknown("metrics.loss > 1", values(loss=1.0), timed).endswith("for b: it has no 'loss'.")


@pytest.mark.parametrize("text", ["regions.gone.time > 1s", "metrics.gone > 1"])
def test_what_no_run_has_cannot_be_checked(text: str) -> None:
    """Most likely it is misspelt: a gate that is always open is none."""
    with pytest.raises(ValueError, match=r"cannot be checked: no run has a .* 'gone'"):
        check(text, values(time=1.0))


@pytest.mark.parametrize("text", ["metrics.loss > 0.5", "metrics.loss < 0.5", "metrics.loss > +10%"])
def test_a_metric_that_has_become_no_number_keeps_no_limit(text: str) -> None:
    """Whichever way it points, and also if only some runs of the group ended so."""
    good, bad = values(loss=0.5), values(loss=math.nan)
    comparison = compare([("a", [good]), ("b", [good, bad])])
    (fired,) = check_limit(parse_limit(text), comparison).fired

    assert fired == f"{text!r} cannot be kept by b: the last 'loss' is no number (nan, inf) in 1 of 2 runs."


def test_more_than_something_below_zero_is_told_in_percent() -> None:
    """It is no multiple of it."""
    (fired,) = check("metrics.loss > +10%", values(loss=-2.0), values(loss=-1.0)).fired

    assert fired.endswith("the last 'loss' is -1, +50 % against that of the first group.")
