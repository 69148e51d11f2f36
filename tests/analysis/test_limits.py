"""Limits: parsed, refused, passed or failed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.analysis.compare import compare
from gpu_tracker.analysis.limits import (
    Amount,
    Gate,
    Verdict,
    check_limit,
    check_limits,
    needs_two_groups,
    parse_amount,
    parse_limit,
)
from gpu_tracker.analysis.measures import RunFigures, Subject
from gpu_tracker.core.figures import LAST_METRIC, REGION, RUN, TIME


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
def test_a_limit_is_parsed(text: str, expected: tuple[object, ...]) -> None:
    """With or without spaces; bytes always need a unit."""
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
        ("", "is not a valid limit"),
        ("time", "is not a valid limit"),
        ("> 3", "is not a valid limit"),
        ("time > ", "is not a valid limit"),
        ("time > x", "'x' is not a valid size, duration or number (try 8GB, 90s, 80%)"),
        ("time > soon", "'soon' is not a valid size, duration or number (try 8GB, 90s, 80%)"),
        ("time > 3 parsecs", "'3 parsecs' is not a valid size, duration or number (try 8GB, 90s, 80%)"),
        ("time > 1e999s", "too large"),
        ("time > 8GB", "time is in seconds, and '8GB' is not"),
        ("peak_ram > 8", "peak_ram is in bytes, and '8' is not"),
        ("time > 10%", "has no sign. Write +10%"),
        ("time > +10s", "has a sign"),
        ("time > +10", "has a sign"),
        ("time > -1x", "is not a valid factor"),
        ("time > 3sx", "is not a valid factor"),
        ("tyme > 3s", "Unknown figure 'tyme' in 'tyme > 3s'. Use time, cpu_time"),
        ("calls > 3", "Unknown figure 'calls'"),
        ("time > 3s beyond noise", "only a change can be beyond noise"),
        ("beyond noise", "is not a valid limit"),
        ("gpu_utilization > 101%", "gpu_utilization is never more than 100 %"),
        ("gpu_utilization < 100.5", "gpu_utilization is never more than 100 %"),
        ("regions.time > 3s", "does not name a figure of the region"),
        ("regions.a.tyme > 3s", "Unknown figure 'tyme' in 'regions.a.tyme > 3s'"),
    ],
)
def test_an_invalid_limit_is_refused(text: str, words: str) -> None:
    """With the reason, in one or two sentences."""
    with pytest.raises(ValueError) as refused:
        parse_limit(text)

    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """With ValueError only."""
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
def test_a_parsed_limit_keeps_its_parts(name: str, figure: str, operator: str, percent: float) -> None:
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
    """The result of a limit for groups of one run called a, b, c."""
    groups = [(name, [run]) for name, run in zip("abc", runs, strict=False)]
    return check_limit(parse_limit(text), compare(groups))


def test_a_relative_limit_is_checked_against_the_baseline() -> None:
    """For every other group."""
    verdict = check("time > +10%", values(time=10.0), values(time=10.9), values(time=12.0))

    assert verdict.fired == ("FAILED time > +10%: c took 12 s, 1.200 times the baseline.",)
    assert verdict.unknown == ()


def test_an_absolute_limit_skips_the_baseline_unless_it_is_alone() -> None:
    """It is what the others are compared with."""
    small, large = values(peak_ram=7e9), values(peak_ram=9e9)

    assert check("peak_ram > 8GB", large, small).fired == ()
    assert check("peak_ram > 8GB", small, large).fired == ("FAILED peak_ram > 8GB: b used 9 GB.",)
    assert len(check("peak_ram > 8GB", large).fired) == 1


def bounded(least: float, most: float) -> RunFigures:
    """A run whose peak is only known to be in between."""
    run = values(peak_ram=least)
    return run._replace(ceilings=dict.fromkeys(run.values, most))


@pytest.mark.parametrize(
    ("text", "n_fired", "words"),
    [
        ("peak_ram > 4GB", 1, ""),
        ("peak_ram > 8GB", 0, "b used at least 5 GB, perhaps 9 GB"),
        ("peak_ram > 9GB", 0, ""),
        ("peak_ram < 10GB", 1, ""),
        ("peak_ram < 8GB", 0, "b used at least 5 GB, perhaps 9 GB"),
        ("peak_ram > +10%", 0, ""),
    ],
)
def test_a_limit_between_the_bounds_cannot_be_checked(text: str, n_fired: int, words: str) -> None:
    """Relative limits compare what was measured in the same way."""
    verdict = check(text, values(peak_ram=5e9), bounded(5e9, 9e9))

    assert len(verdict.fired) == n_fired
    assert [sentence for sentence in verdict.unknown if words in sentence] == list(verdict.unknown)
    assert len(verdict.unknown) == bool(words)


@pytest.mark.parametrize(
    ("text", "n_fired", "is_unknown"),
    [
        ("regions.r.peak_ram > 0.1GB", 1, False),
        ("regions.r.peak_ram > 0.3GB", 0, True),
        ("regions.r.peak_ram > 0.5GB", 0, False),
    ],
)
def test_a_sampled_peak_of_a_region_passes_only_what_the_whole_run_passes(
    text: str, n_fired: int, is_unknown: bool
) -> None:
    """How to measure it is said, and the table marks it as the least."""
    peak = Subject(next(figure for figure in REGION if figure.name == "peak_ram"), ("r",))
    run = RunFigures({Subject(TIME, ("r",)): 1.0, peak: 0.2e9}, ceilings={peak: 0.4e9})
    verdict = check(text, run)

    assert (len(verdict.fired), len(verdict.unknown)) == (n_fired, is_unknown)
    assert all(
        "used at least 200 MB, perhaps 400 MB (a region with exact_peak=True" in sentence
        for sentence in verdict.unknown
    )
    (row,) = (row for row in compare([("a", [run])]).rows if row.subject == peak)
    assert row.groups[0].is_at_least


def test_what_is_undecided_is_not_missing() -> None:
    """Only what a run does not have may be left out."""
    between = compare([("a", [values(peak_ram=5e9)]), ("b", [bounded(5e9, 9e9)])])
    absent = compare([("a", [values(peak_ram=5e9)]), ("b", [values(peak_ram=None)])])
    limits = [parse_limit("peak_ram > 8GB")]

    for comparison, allow_missing, is_unchecked in [
        (between, False, True),
        (between, True, True),
        (absent, False, True),
        (absent, True, False),
    ]:
        gate = check_limits(limits, comparison, allow_missing=allow_missing)
        assert bool(gate.unchecked) == is_unchecked
        assert len(gate.unchecked) + len(gate.tolerated) == 1


@pytest.mark.parametrize(
    ("text", "n_fired", "is_unknown"),
    [
        ("gpu_utilization < 30%", 0, False),
        ("gpu_utilization < 50%", 0, True),
        ("gpu_utilization < 90%", 1, False),
        ("gpu_utilization < -20%", 0, True),
        ("gpu_utilization < -90%", 0, False),
    ],
)
def test_a_utilization_that_is_known_for_a_part_of_the_time_is_between_bounds(
    text: str, n_fired: int, is_unknown: bool
) -> None:
    """In the rest the device may have been idle or busy, which differs from run to run."""
    known = values(gpu_utilization=60.0)
    part = known._replace(
        floors=dict.fromkeys(known.values, 36.0), ceilings=dict.fromkeys(known.values, 76.0)
    )
    verdict = check(text, values(gpu_utilization=60.0), part)

    assert (len(verdict.fired), bool(verdict.unknown)) == (n_fired, is_unknown)
    assert all("b had at least 36 %, perhaps 76 %" in sentence for sentence in verdict.unknown)


@pytest.mark.parametrize("text", ["peak_ram > 8GB", "peak_ram > +10%"])
def test_what_was_mostly_not_measured_cannot_be_checked(text: str) -> None:
    """Unless what was measured breaks the limit."""
    unread = check(text, values(peak_ram=5e9), bounded(5e9, math.inf))

    assert (unread.fired, len(unread.unknown)) == ((), 1)
    assert "b used at least 5 GB, not measured all the time" in unread.unknown[0]
    assert len(check("peak_ram > 4GB", values(peak_ram=1e9), bounded(5e9, math.inf)).fired) == 1


def test_work_that_was_done_elsewhere_passes_no_limit() -> None:
    """What was measured of it may break one."""
    launcher = bounded(2e7, math.inf)._replace(elsewhere="srun has its work done elsewhere.")
    comparison = compare([("b", [launcher])])
    kept, broken = (
        check_limits([parse_limit(f"peak_ram > {limit}MB")], comparison, allow_missing=True)
        for limit in (30, 10)
    )

    assert (kept.exit_code, broken.exit_code) == (2, 1)
    assert kept.unchecked == (
        "Not checked: peak_ram > 30MB: b used at least 20 MB, without the work that was done elsewhere.",
    )


@pytest.mark.parametrize(
    ("text", "n_fired", "is_unknown"),
    [
        ("peak_ram > 4GB", 1, False),
        ("peak_ram > 8GB", 0, True),
        ("peak_ram > 9GB", 0, False),
        ("peak_ram > +10%", 1, False),
        ("peak_ram > 2x", 0, False),
    ],
)
def test_a_job_is_limited_by_the_sum_of_its_ranks(text: str, n_fired: int, is_unknown: bool) -> None:
    """Which may share some of it: an absolute limit in between cannot be checked, and relative ones compare sums."""
    run = values(peak_ram=9e9)
    job = run._replace(floors=dict.fromkeys(run.values, 5e9))
    verdict = check(text, values(peak_ram=5e9), job)

    assert (len(verdict.fired), bool(verdict.unknown)) == (n_fired, is_unknown)


@pytest.mark.parametrize(
    ("text", "n_fired", "is_unknown"),
    [
        ("peak_gpu_ram > 4GB", 0, True),
        ("peak_gpu_ram > 11GB", 0, False),
        ("peak_gpu_ram < 4GB", 0, True),
        ("peak_gpu_ram > +10%", 0, True),
        ("peak_gpu_ram > 30x", 0, False),
    ],
)
def test_an_estimate_of_gpu_memory_decides_no_limit_between_its_bounds(
    text: str, n_fired: int, is_unknown: bool
) -> None:
    """It may be far too low in one run, and right in another."""
    run = values(peak_gpu_ram=0.3e9)
    estimated = run._replace(
        floors=dict.fromkeys(run.values, 0.0), ceilings=dict.fromkeys(run.values, 10.5e9)
    )
    verdict = check(text, values(peak_gpu_ram=0.4e9), estimated)

    assert (len(verdict.fired), bool(verdict.undecided)) == (n_fired, is_unknown)
    assert all("b used at least 0 B, perhaps 10.5 GB" in sentence for sentence in verdict.unknown)


def logged(value: float, least: float | None = None, most: float | None = None) -> RunFigures:
    """A run that ended with this value of `z`, or a job whose ranks ended with values in between."""
    subject = Subject(LAST_METRIC, metric="z")
    return RunFigures(
        {subject: value},
        ceilings={} if most is None else {subject: most},
        floors={} if least is None else {subject: least},
    )


@pytest.mark.parametrize(
    ("text", "n_fired", "is_unknown"),
    [
        ("metrics.z > 0.05", 1, False),
        ("metrics.z > 1", 0, True),
        ("metrics.z > 200", 0, False),
        ("metrics.z < 0.5", 0, True),
        ("metrics.z > +50%", 0, True),
        ("metrics.z < -50%", 0, False),
    ],
)
def test_ranks_that_end_with_other_values_do_not_pass(text: str, n_fired: int, is_unknown: bool) -> None:
    """It is not known which of them is meant."""
    verdict = check(text, logged(0.1), logged(0.1, 0.1, 100.0))

    assert (len(verdict.fired), bool(verdict.unknown)) == (n_fired, is_unknown)
    assert all("b has ranks that ended with 0.1 to 100" in sentence for sentence in verdict.unknown)


@pytest.mark.parametrize(
    ("text", "after", "fires"),
    [
        ("metrics.z < -10%", -1.0, 1),
        ("metrics.z < 0.9x", -1.0, 1),
        ("metrics.z > +10%", -1.0, 0),
        ("metrics.z > +10%", 1.0, 1),
        ("metrics.z < -10%", 1.0, 0),
        ("metrics.z < -10%", 0.0, 0),
    ],
)
def test_a_change_from_zero_has_a_direction(text: str, after: float, fires: int) -> None:
    """However little it is, it is more than any percentage."""
    assert len(check(text, logged(0.0), logged(after)).fired) == fires


def test_a_job_with_missing_ranks_does_not_pass() -> None:
    """Its figures are without them, so nothing of it can be checked, unless that is allowed."""
    comparison = compare(
        [("a", [values(time=1.0)]), ("b", [values(time=1.0)._replace(incomplete="no recording of rank 3")])]
    )
    limits = [parse_limit("time > +10%")]
    strict, lenient = (check_limits(limits, comparison, allow_missing=allowed) for allowed in (False, True))

    sentence = "1 run of b is incomplete (no recording of rank 3): the figures are without that."
    assert (strict.exit_code, strict.unchecked) == (2, (f"Not checked: {sentence}",))
    assert (lenient.exit_code, lenient.tolerated) == (0, (f"Not checked: {sentence}",))
    assert sentence in comparison.notes


@pytest.mark.parametrize(
    ("operator", "fires"), [(">", (0, 0, 1)), (">=", (0, 1, 1)), ("<", (1, 0, 0)), ("<=", (1, 1, 0))]
)
def test_every_operator(operator: str, fires: tuple[int, ...]) -> None:
    """Below, at and above the limit."""
    found = [len(check(f"time {operator} 5s", values(time=time)).fired) for time in (4.0, 5.0, 6.0)]

    assert tuple(found) == fires


def test_a_region_is_given_by_name_or_path() -> None:
    """A name that occurs twice selects both."""
    before, after = values(step=1.0), values(step=2.0)

    assert check("regions.step.time > +5%", before, after).fired == (
        "FAILED regions.step.time > +5%: b took 2 s in train/step, 2.000 times the baseline.",
    )
    assert check("regions.test/step.time > +5%", before, after).fired == ()
    assert len(check("regions.train/step.time > +5%", before, after).fired) == 1


def test_a_metric_can_be_limited() -> None:
    """Also a negative one."""
    assert check("metrics.loss > 0.5", values(loss=0.6)).fired == (
        "FAILED metrics.loss > 0.5: a ended with 0.6.",
    )
    assert len(check("metrics.loss > +10%", values(loss=-10.0), values(loss=-8.0)).fired) == 1
    assert check("metrics.loss > +10%", values(loss=-10.0), values(loss=-9.5)).fired == ()


def test_any_value_exceeds_a_baseline_of_zero() -> None:
    """But zero does not."""
    assert len(check("time > 100x", values(time=0.0), values(time=1.0)).fired) == 1
    assert check("time > +10%", values(time=0.0), values(time=0.0)).fired == ()


@pytest.mark.parametrize(
    ("text", "runs", "reason"),
    [
        ("energy > 1J", [values(time=1.0)], "1 of 1 runs of a have no 'energy'"),
        ("time > 1s", [values(time=None)], "not measured in 1 of 1 runs of a"),
        ("time > 1x", [values(time=None), values(time=1.0)], "not measured in 1 of 1 runs of a"),
        ("metrics.loss > 1", [values(loss=1.0), values(time=1.0)], "1 of 1 runs of b have no 'loss'"),
        ("regions.gone.time > 1s", [values(time=1.0)], "no run has the region 'gone'"),
        ("metrics.gone > 1", [values(time=1.0)], "no run has the metric 'gone'"),
    ],
)
def test_what_a_run_does_not_have_does_not_pass(text: str, runs: list[RunFigures], reason: str) -> None:
    """Unless that is allowed: a misspelt gate would be open for ever."""
    comparison = compare([(name, [run]) for name, run in zip("ab", runs, strict=False)])
    sentence = f"Not checked: {text}: {reason}."
    refused = check_limits([parse_limit(text)], comparison)
    allowed = check_limits([parse_limit(text)], comparison, allow_missing=True)

    assert refused == Gate(refused.verdicts, (), (sentence,), ())
    assert allowed == Gate(refused.verdicts, (), (), (sentence,))
    assert (refused.exit_code, allowed.exit_code) == (2, 0)


@pytest.mark.parametrize(
    ("text", "lacking", "n_unknown"),
    [
        ("regions.forward.time > 3s", {"lacks_regions": True}, 1),
        ("regions.forward.time > 3s", {"lacks_metrics": True}, 0),
        ("metrics.loss > 3", {"lacks_metrics": True}, 1),
        ("metrics.loss > 3", {"lacks_regions": True}, 0),
        ("time > 3s", {"lacks_regions": True, "lacks_metrics": True}, 0),
    ],
)
def test_what_was_recorded_in_part_does_not_pass(text: str, lacking: dict[str, bool], n_unknown: int) -> None:
    """Regions of a process without room for its files, say: what is known of the others says nothing of it."""
    run = RunFigures(
        {
            Subject(TIME): 1.0,
            Subject(TIME, ("forward",)): 1.0,
            Subject(LAST_METRIC, metric="loss"): 1.0,
        },
        **lacking,  # type: ignore[arg-type]
    )
    comparison = compare([("A", [run, run._replace(lacks_regions=False, lacks_metrics=False)])])
    gate = check_limits([parse_limit(text)], comparison)

    assert (gate.broken, len(gate.unchecked), gate.exit_code) == ((), n_unknown, 2 * n_unknown)
    assert all("could not be recorded in 1 of 2 runs of A" in sentence for sentence in gate.unchecked)
    assert sum("missing in 1 of 2 runs of A" in note for note in comparison.notes) == len(lacking)


def test_every_run_of_a_group_must_have_it() -> None:
    """The others are checked nevertheless."""
    group = [values(step=2.0), values(step=None), values(time=1.0)]
    verdict = check_limit(parse_limit("regions.train/step.time > 1s"), compare([("a", group)]))

    assert verdict.fired == ("FAILED regions.train/step.time > 1s: a took 2 s in train/step.",)
    assert verdict.unknown == (
        "Not checked: regions.train/step.time > 1s: 1 of 3 runs of a have no 'train/step'.",
        "Not checked: regions.train/step.time > 1s: not measured in 1 of 3 runs of a.",
    )


@pytest.mark.parametrize("place", [0, 1])
def test_a_run_that_did_not_succeed_does_not_pass(place: int) -> None:
    """In any group, unless that is allowed; a broken limit says more. Without limits nothing has to pass."""
    groups = [[values(time=1.0)], [values(time=1.0)]]
    groups[place].append(values(time=1.0)._replace(failure="exit code 3"))
    comparison = compare(list(zip("ab", groups, strict=True)))
    kept, broken = parse_limit("time > 2s"), parse_limit("time > 0.5s")
    why = f": 1 run of {'ab'[place]} did not succeed (exit code 3)."

    assert check_limits([kept], comparison)[1:] == ((), (f"Not checked{why}",), ())
    assert check_limits([kept], comparison, allow_failed=True)[1:] == (
        (),
        (),
        (f"Checked nevertheless{why}",),
    )
    assert check_limits([kept, broken], comparison).exit_code == 1
    assert check_limits([], comparison).exit_code == 0


@pytest.mark.parametrize(
    ("times", "code"),
    [
        ((12.0, 12.1, 12.2, 12.3), 1),
        ((9.0, 11.9, 12.0, 30.0), 0),  # a tenth above, but within noise
        ((10.1, 10.2, 10.3, 10.4), 0),
        ((12.0, 12.1), 2),
        ((10.0, 10.1), 2),
    ],
)
def test_a_limit_can_ask_for_more_than_noise(times: tuple[float, ...], code: int) -> None:
    """Too few runs cannot tell."""
    before = [values(time=time) for time in (10.0, 10.1, 10.2, 10.3)]
    comparison = compare([("a", before), ("b", [values(time=time) for time in times])])
    gate = check_limits([parse_limit("time > +5% beyond noise")], comparison)

    assert gate.exit_code == code
    if code == 1:
        assert gate.broken == (
            "FAILED time > +5% beyond noise: b took 12.1 s, 1.197 times the baseline (p = 0.029).",
        )
    if code == 2:
        assert gate.unchecked[0].endswith("too few runs of b or the baseline to tell a change from noise.")


def test_a_recording_that_cannot_be_read_never_passes() -> None:
    """There is nothing to check, whatever is allowed."""
    comparison = compare([("a", [values(time=1.0)])])
    comparison = comparison._replace(groups=(comparison.groups[0]._replace(unreadable=2),))
    gate = check_limits([parse_limit("time > 2s")], comparison, allow_failed=True, allow_missing=True)

    assert gate.unchecked == ("Not checked: 2 recordings of a cannot be read.",)
    assert gate.exit_code == 2


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("n_good", [0, 4])
@pytest.mark.parametrize("condition", ["> 0.9", "< 0.1", "> +10%", "< -5%", "> 1.2x", "> +5% beyond noise"])
def test_a_metric_that_is_not_a_number_fails_every_limit(
    condition: str, n_good: int, place: int, bad: float
) -> None:
    """In either direction, in any group, and even in only some of its runs."""
    groups = [[values(loss=0.5)] * 5, [values(loss=0.5)] * 5]
    groups[place] = [values(loss=0.5)] * n_good + [values(loss=bad)]
    text = f"metrics.loss {condition}"
    gate = check_limits(
        [parse_limit(text)], compare(list(zip("ab", groups, strict=True))), allow_missing=True
    )

    found = f"nan or inf in 1 of {n_good + 1} runs"
    assert gate.broken == (f"FAILED {text}: {'ab'[place]} ended with 'loss' as {found}.",)
    assert gate.exit_code == 1


def test_a_change_of_a_negative_value_is_in_percent() -> None:
    """A ratio makes no sense."""
    (fired,) = check("metrics.loss > +10%", values(loss=-2.0), values(loss=-1.0)).fired

    assert fired.endswith("b ended with -1, +50 % against the baseline.")
