"""Groups of runs side by side."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.analysis.compare import (
    APPEARED,
    CANNOT_TELL,
    CHANGED,
    GONE,
    NOISE,
    UNKNOWN,
    Comparison,
    Row,
    compare,
    list_changes,
)
from gpu_tracker.analysis.measures import UNKNOWN_OUTCOME, RunFigures, Subject
from gpu_tracker.core.figures import LAST_METRIC, REGION, RUN

TIME, RAM = RUN[0], RUN[3]


def runs(*times: float | None, **regions: float) -> list[RunFigures]:
    """A run per time; each with regions that took so long."""
    return [
        RunFigures(
            {
                Subject(TIME): time,
                **{Subject(REGION[0], (name,)): seconds for name, seconds in regions.items()},
            }
        )
        for time in times
    ]


def find(comparison: Comparison, subject: Subject) -> Row:
    """The row of that figure."""
    return next(row for row in comparison.rows if row.subject == subject)


def verdict(first: Sequence[float | None], second: Sequence[float | None]) -> str:
    """The verdict on the time of the second group."""
    comparison = compare([("a", runs(*first)), ("b", runs(*second))])
    return find(comparison, Subject(TIME)).changes[0].verdict


def test_work_that_was_done_elsewhere_is_noted() -> None:
    """Once for each group."""
    (own,) = runs(10)
    launcher = own._replace(elsewhere="srun has its work done elsewhere.")
    comparison = compare([("a", [own]), ("b", [launcher, launcher])])

    assert comparison.notes[0] == "b: srun has its work done elsewhere."
    assert [len(group.elsewhere) for group in comparison.groups] == [0, 2]


def test_energy_of_a_part_of_the_time_is_noted() -> None:
    """By the run that lacks most of it."""
    part = [runs(10)[0]._replace(unmetered_seconds=seconds) for seconds in (3.0, 7.0, 0.0)]

    assert (
        "The energy of b is without up to 7 s of the time of a run."
        in compare([("a", runs(10)), ("b", part)]).notes
    )


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([10, 10.1, 10.2, 10.3], [12, 12.1, 12.2, 12.3], CHANGED),
        ([10, 10.1, 10.2, 10.3], [10.1, 10.2, 10.3, 10.4], NOISE),
        ([10, 10.1, 10.2, 10.3], [9, 11, 12, 13], NOISE),
        ([10, 10.01, 10.02, 10.03], [10.1, 10.11, 10.12, 10.13], NOISE),  # significant, but only 1 %
        ([10, 10.1], [120, 121], CANNOT_TELL),
        ([10, 10.1], [120 + number for number in range(40)], CANNOT_TELL),
        ([10, 10.1, 10.2, None], [12, 12.1, 12.2, 12.3], CANNOT_TELL),
        ([10, 10.1, 10.2], [12, 12.1, 12.2], CANNOT_TELL),
        ([10, 10.1, 10.2], [12, 12.1, 12.2, 12.3, 12.4, 12.5], CHANGED),
        ([10], [12], CANNOT_TELL),
        ([10], [10], CANNOT_TELL),
        ([None], [12], UNKNOWN),
        ([0] * 4, [12] * 4, CHANGED),
        ([0] * 4, [0] * 4, NOISE),
        ([0.001] * 4, [0.002] * 4, NOISE),  # twice as long, but below the resolution
    ],
)
def test_a_change_is_more_than_noise(
    first: list[float | None], second: list[float | None], expected: str
) -> None:
    """By rank, by two percent, and by the resolution."""
    assert verdict(first, second) == expected


def test_a_ratio_is_to_the_baseline() -> None:
    """There is none to zero."""
    rows = compare([("a", runs(10)), ("b", runs(5)), ("c", runs(20))]).rows

    assert [change.ratio for change in rows[0].changes] == [0.5, 2.0]
    assert compare([("a", runs(0)), ("b", runs(5))]).rows[0].changes[0].ratio is None
    assert compare([("a", runs(0)), ("b", runs(0))]).rows[0].changes[0].ratio == 1.0
    assert compare([("a", runs(1e-300)), ("b", runs(1e300))]).rows[0].changes[0].ratio is None


TIMES = st.lists(st.floats(0.01, 1e4), min_size=1, max_size=8)


@given(TIMES, TIMES, st.randoms(use_true_random=False))
def test_the_order_of_repeats_does_not_matter(
    first: list[float], second: list[float], dice: random.Random
) -> None:
    """A group is a set of runs."""
    groups = [("a", runs(*first, step=1.0)), ("b", runs(*second, stop=2.0))]
    shuffled = [(name, dice.sample(members, len(members))) for name, members in groups]

    assert compare(groups) == compare(shuffled)


@given(TIMES)
def test_compared_with_itself_nothing_changes(times: list[float]) -> None:
    """Every ratio is one and every verdict noise, or not known in both."""
    group = runs(*times, step=3.0)
    for row in compare([("a", group), ("a", group)]).rows:
        (change,) = row.changes
        assert (change.verdict, change.ratio) in ((CANNOT_TELL, 1.0), (NOISE, 1.0), (UNKNOWN, None))


def test_figures_of_only_some_groups_are_reported() -> None:
    """Not refused."""
    comparison = compare([("a", runs(1.0, old=3.0)), ("b", runs(1.0, new=5.0))])
    found = list_changes(comparison, 1)

    assert {row.subject.region for row in found[APPEARED]} == {("new",)}
    assert {row.subject.region for row in found[GONE]} == {("old",)}


def test_figures_come_whole_run_first_then_the_longest_regions_then_metrics() -> None:
    """By the first group that has them."""
    metric = Subject(LAST_METRIC, metric="loss")
    second = [RunFigures({Subject(TIME): 1.0, metric: 0.5})]
    comparison = compare([("a", runs(1.0, short=1.0, long=9.0)), ("b", second)])
    figures = [row.subject for row in comparison.rows]

    assert figures[: len(RUN)] == [Subject(figure) for figure in RUN]
    assert list(dict.fromkeys(figure.region for figure in figures if figure.region)) == [
        ("long",),
        ("short",),
    ]
    assert figures[-1] == metric


@pytest.mark.repeats(few=200, soak=1000)
@pytest.mark.parametrize("count", [4, 7, 12])
def test_noise_alone_is_seldom_called_a_change(count: int, repeats: int) -> None:
    """At most as often as stated, though run times have long tails; and a real change is found."""
    dice = random.Random(count)

    def draw(seconds: float) -> list[float]:
        return [seconds * (1 + 0.05 * dice.paretovariate(2)) for _ in range(count)]

    false = sum(verdict(draw(10), draw(10)) == CHANGED for _ in range(repeats))
    true = sum(verdict(draw(10), draw(15)) == CHANGED for _ in range(repeats))

    assert false / repeats <= 0.05
    assert true / repeats > 0.9


def test_a_change_is_judged_among_all_figures_and_groups() -> None:
    """Two groups against a baseline have twice the chance, and unchanging figures none."""
    first, second = (10.0, 10.1, 10.2, 10.3, 10.4), (12.0, 12.1, 12.2, 12.3, 12.4)
    groups = [("a", runs(*first, step=1.0)), ("b", runs(*second, step=1.0)), ("c", runs(*first, step=1.0))]
    alone = find(compare(groups[:2]), Subject(TIME)).changes[0]
    comparison = compare(groups)
    among, unchanged = find(comparison, Subject(TIME)).changes
    step = find(comparison, Subject(TIME, ("step",))).changes[0]

    assert (alone.verdict, among.verdict) == (CHANGED, CHANGED)
    assert [alone.chance, among.chance] == pytest.approx([2 / 252, 4 / 252])
    assert (unchanged.verdict, unchanged.chance) == (NOISE, 1.0)
    assert (step.verdict, step.chance) == (NOISE, None)


def test_a_change_between_groups_that_were_not_in_turns_is_doubted() -> None:
    """Whatever drifts with time looks the same. Where nothing has changed there is nothing to doubt."""

    def begin(*times: float, at: float, step: float = 1.0) -> list[RunFigures]:
        return [run._replace(began_seconds=at + step * index) for index, run in enumerate(runs(*times))]

    fast, slow = (1.0, 1.01, 1.02, 1.03), (2.0, 2.01, 2.02, 2.03)
    doubt = "were not interleaved"
    pairs = {
        "in turns": (begin(*fast, at=0, step=2), begin(*slow, at=1, step=2)),
        "one after the other": (begin(*fast, at=0), begin(*slow, at=10)),
        "the other before": (begin(*fast, at=10), begin(*slow, at=0)),
        "alike": (begin(*fast, at=0), begin(*fast, at=10)),
        "not known": (runs(*fast), begin(*slow, at=10)),
    }
    doubted = [
        name
        for name, (before, after) in pairs.items()
        if doubt in " ".join(compare([("a", before), ("b", after)]).notes)
    ]

    assert doubted == ["one after the other", "the other before"]


def test_notes_say_what_weakens_a_comparison() -> None:
    """Failed and unfinished runs, other machines, too few repeats."""
    (plain,) = runs(1.0)
    failed = plain._replace(failure="exit code 1", host="other", cores=2.0)
    cut = plain._replace(failure="no end")
    one_each = " ".join(compare([("a", [plain]), ("b", [failed])]).notes)
    few = " ".join(compare([("a", [plain, plain]), ("b", [cut, failed])]).notes)
    unknown = " ".join(compare([("a", [plain._replace(failure=UNKNOWN_OUTCOME)])]).notes)

    assert "1 run of b did not succeed (exit code 1)." in one_each
    assert "1 run of a may have failed (exit code not known)." in unknown
    assert "same host" in one_each
    assert "same cores and RAM" in one_each
    assert "One run each: differences may be noise. Use 4 or more runs per group." in one_each
    assert "2 runs of b did not succeed (exit code 1, no end)." in few
    assert "Too few runs to rule out noise: b has 2, a 2. Use 4 or more runs per group." in few
    assert compare([("a", [plain])]).notes == ()
    assert compare([("a", [plain] * 4), ("b", [plain] * 4)]).notes == ()
    assert compare([("a", [plain] * 3), ("b", [plain] * 8)]).notes == ()
    assert "Use 5 or more" in compare([(name, [plain] * 4) for name in "abc"]).notes[0]


def logged(*last: float) -> list[RunFigures]:
    """A run per last value of a metric."""
    return [RunFigures({Subject(LAST_METRIC, metric="gain"): value}) for value in last]


def test_negative_values_have_no_ratio() -> None:
    """But a relative difference."""
    figure = Subject(LAST_METRIC, metric="gain")
    for first, second, share in ((-2.0, -1.0, 0.5), (-1.0, 1.0, 2.0), (1.0, -1.0, -2.0)):
        change = find(compare([("a", logged(first)), ("b", logged(second))]), figure).changes[0]
        assert (change.verdict, change.ratio, change.share) == (CANNOT_TELL, None, share)
    nothing = find(compare([("a", logged(0.0)), ("b", logged(3.0))]), figure).changes[0]
    assert (nothing.ratio, nothing.share) == (None, None)


def test_nan_and_inf_are_counted_and_noted() -> None:
    """And in no median."""
    comparison = compare([("a", logged(0.1)), ("b", logged(0.3, math.nan, math.inf))])
    values = find(comparison, Subject(LAST_METRIC, metric="gain")).groups[1]

    assert (values.runs, values.values, values.median, values.not_numbers) == (3, (0.3,), 0.3, 2)
    assert comparison.notes[0] == "The last gain is nan or inf in 2 of 3 runs of b."


def test_a_metric_without_a_name_is_a_metric() -> None:
    """Not the whole run."""
    nameless = [RunFigures({Subject(LAST_METRIC, metric=""): 1.0})]

    assert find(compare([("a", nameless)]), Subject(LAST_METRIC, metric="")).groups[0].median == 1.0
