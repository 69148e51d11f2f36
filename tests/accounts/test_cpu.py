"""CPU time is conserved, whichever process ends when."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from builders import ROOT, process
from gpu_tracker.accounts.cpu import CpuLedger
from gpu_tracker.core.model import NO_PROCESS, ProcessReading, RootFigures

CHILD, GRANDCHILD, ADOPTER = 101, 102, 50


def new_job(adopter_pid: int = 0) -> CpuLedger:
    """The ledger of a process that was started by the tracker."""
    return CpuLedger(ROOT, RootFigures(0.0, 0.0), adopter_pid)


def test_only_what_was_used_since_the_start_counts() -> None:
    """Of the root, and of children that were already running."""
    ledger = CpuLedger(ROOT, RootFigures(5.0, 2.0))
    old_child = process(CHILD, ROOT, cpu_seconds=3.0, was_running_at_start=True)
    ledger.feed([process(cpu_seconds=5.5, reaped_cpu_seconds=2.0), old_child])
    ledger.feed([process(cpu_seconds=6.0, reaped_cpu_seconds=2.5), old_child._replace(cpu_seconds=4.0)])

    assert (ledger.main_seconds, ledger.descendants_seconds) == (1.0, 1.5)


def test_without_a_given_start_the_first_reading_is_the_start() -> None:
    """For a process that was not started by the tracker."""
    ledger = CpuLedger(ROOT, None)
    ledger.feed([process(cpu_seconds=5.0, reaped_cpu_seconds=1.0)])
    ledger.feed([process(cpu_seconds=5.5, reaped_cpu_seconds=1.25)])

    assert (ledger.main_seconds, ledger.descendants_seconds) == (0.5, 0.25)


def test_nothing_is_known_before_the_root_was_seen() -> None:
    """Without a reading there are no figures."""
    ledger = CpuLedger(ROOT, None)
    ledger.feed([])

    assert (ledger.main_seconds, ledger.descendants_seconds) == (0.0, 0.0)


def test_a_reaped_child_is_counted_once() -> None:
    """Its time moves to its parent's counter."""
    ledger = new_job()
    ledger.feed([process(), process(CHILD, ROOT, cpu_seconds=2.0)])
    ledger.feed([process(reaped_cpu_seconds=2.25)])

    assert ledger.descendants_seconds == 2.25


def test_an_unreaped_child_is_kept() -> None:
    """A parent that ignores SIGCHLD gains nothing when its child ends."""
    ledger = new_job()
    ledger.feed([process(), process(CHILD, ROOT, cpu_seconds=2.0)])
    ledger.feed([process()])

    assert ledger.descendants_seconds == 2.0


def test_a_child_that_is_reaped_during_a_reading_is_counted_once() -> None:
    """Its parent was read before, so the gain shows one reading later."""
    ledger = new_job()
    ledger.feed([process(), process(CHILD, ROOT, cpu_seconds=2.0)])
    ledger.feed([process()])
    assert ledger.descendants_seconds == 2.0
    ledger.feed([process(reaped_cpu_seconds=2.1)])
    assert ledger.descendants_seconds == 2.1
    ledger.feed([process(reaped_cpu_seconds=2.1)])
    assert ledger.descendants_seconds == 2.1


def test_a_loss_is_certain_after_one_more_reading_or_at_the_end() -> None:
    """Unreaped time is kept, next to later use."""
    for exact in (None, RootFigures(0.0, 1.5)):
        ledger = new_job()
        ledger.feed([process(), process(CHILD, ROOT, cpu_seconds=2.0)])
        ledger.feed([process()])
        ledger.feed([process()])
        ledger.feed([process(reaped_cpu_seconds=1.5)], exact)
        assert ledger.descendants_seconds == 3.5

    ledger = new_job()
    ledger.feed([process(), process(CHILD, ROOT, cpu_seconds=2.0)])
    ledger.feed([process()], RootFigures(0.0, 0.0))
    assert ledger.descendants_seconds == 2.0


def test_a_claim_ends_with_its_process() -> None:
    """The parent that should have gained has ended, too, and is in the root's counter."""
    ledger = new_job()
    ledger.feed(
        [process(), process(CHILD, ROOT, cpu_seconds=1.0), process(GRANDCHILD, CHILD, cpu_seconds=2.0)]
    )
    ledger.feed([process(), process(CHILD, ROOT, cpu_seconds=1.0)])
    ledger.feed([process(reaped_cpu_seconds=3.0)])

    assert ledger.descendants_seconds == 3.0


def test_rounding_of_reaped_time_is_not_a_loss() -> None:
    """The kernel prints hundredths, rounded down."""
    ledger = new_job()
    ledger.feed([process(), process(CHILD, ROOT, cpu_seconds=1.019)])
    ledger.feed([process(reaped_cpu_seconds=1.0)])

    assert ledger.descendants_seconds == pytest.approx(1.019)


def test_a_branch_that_ends_between_two_readings_is_counted_once() -> None:
    """Child and grandchild are both in the root's counter."""
    ledger = new_job()
    ledger.feed(
        [process(), process(CHILD, ROOT, cpu_seconds=1.0), process(GRANDCHILD, CHILD, cpu_seconds=2.0)]
    )
    ledger.feed([process(reaped_cpu_seconds=3.5)])

    assert ledger.descendants_seconds == 3.5


def test_an_orphan_keeps_counting_and_is_kept_when_it_ends() -> None:
    """Its parent has ended, and init reaps it."""
    ledger = new_job()
    ledger.feed(
        [process(), process(CHILD, ROOT, cpu_seconds=1.0), process(GRANDCHILD, CHILD, cpu_seconds=1.0)]
    )
    ledger.feed([process(reaped_cpu_seconds=1.0), process(GRANDCHILD, 1, cpu_seconds=4.0)])
    ledger.feed([process(reaped_cpu_seconds=1.0)])

    assert ledger.descendants_seconds == 5.0


@pytest.mark.parametrize("is_last", [False, True])
def test_a_child_that_is_killed_with_its_parent_is_counted_once(is_last: bool) -> None:
    """The grandparent reaps the parent, the adopter reaps the child; with another reading after that, and without."""
    ledger = new_job(ADOPTER)
    ledger.feed(
        [
            process(),
            process(CHILD, ROOT, cpu_seconds=2.0),
            process(GRANDCHILD, CHILD, cpu_seconds=3.0),
        ]
    )
    for _ in range(0 if is_last else 2):
        ledger.feed([process(reaped_cpu_seconds=2.0)])
    if not is_last:
        assert ledger.descendants_seconds == 5.0
    ledger.feed([], RootFigures(0.0, 2.0, adopted_cpu_seconds=3.25))

    assert ledger.descendants_seconds == 5.25


def test_children_that_nobody_reaps_are_kept_beside_adopted_ones() -> None:
    """The kernel forgets the time of those whose parent ignores them."""
    ledger = new_job(ADOPTER)
    ledger.feed(
        [
            process(),
            process(CHILD, ROOT, cpu_seconds=2.0),
            process(GRANDCHILD, ADOPTER, cpu_seconds=3.0),
        ]
    )
    ledger.feed([process()])
    ledger.feed([process()])
    ledger.feed([], RootFigures(0.0, 0.0, adopted_cpu_seconds=3.0))

    assert ledger.descendants_seconds == 5.0


def test_an_adopted_orphan_is_counted_exactly_in_the_end() -> None:
    """The adopter's own figure replaces the last reading of it."""
    ledger = new_job(ADOPTER)
    ledger.feed([process(), process(GRANDCHILD, ADOPTER, cpu_seconds=4.0)])
    ledger.feed([process()])
    assert ledger.descendants_seconds == 4.0

    ledger.feed([process()], RootFigures(0.0, 0.0, adopted_cpu_seconds=4.75))
    assert ledger.descendants_seconds == 4.75


def test_exact_figures_complete_the_last_reading() -> None:
    """Including children that have ended since and were reaped by the root."""
    ledger = new_job()
    ledger.feed([process(cpu_seconds=1.0), process(CHILD, ROOT, cpu_seconds=2.0)])
    ledger.feed([], RootFigures(1.5, 2.5))

    assert (ledger.main_seconds, ledger.descendants_seconds) == (1.5, 2.5)


def test_a_job_that_ended_before_the_first_reading_has_its_exact_figures() -> None:
    """`true` takes a millisecond."""
    ledger = new_job()
    ledger.feed([], RootFigures(0.001, 0.002))

    assert (ledger.main_seconds, ledger.descendants_seconds) == (0.001, 0.002)


@given(st.lists(st.tuples(st.floats(0, 5), st.booleans()), max_size=8))
def test_the_sum_never_falls_and_never_exceeds_what_was_used(ends: list[tuple[float, bool]]) -> None:
    """Whichever children end, reaped or not."""
    ledger = new_job()
    root = process()
    children: dict[int, ProcessReading] = {
        200 + index: process(200 + index, ROOT, cpu_seconds=seconds)
        for index, (seconds, _) in enumerate(ends)
    }
    ledger.feed([root, *children.values()])
    used = sum(seconds for seconds, _ in ends)
    for index, (seconds, is_waited_for) in enumerate(ends):
        before = ledger.descendants_seconds
        del children[200 + index]
        if is_waited_for:
            root = root._replace(reaped_cpu_seconds=root.reaped_cpu_seconds + seconds)
        ledger.feed([root, *children.values()])
        assert before <= ledger.descendants_seconds <= used + 1e-9
    assert ledger.descendants_seconds == pytest.approx(used)


def test_a_whole_job_has_no_main_process() -> None:
    """What its processes use from the start on counts, also of those that end; what they had used before does not."""
    ledger = CpuLedger(NO_PROCESS, None)
    old = process(5, cpu_seconds=3.0, was_running_at_start=True)
    ledger.feed([old])
    ledger.feed([old._replace(cpu_seconds=4.0), process(6, cpu_seconds=1.0)])
    ledger.feed([process(7, cpu_seconds=0.5)])

    assert (ledger.main_seconds, ledger.descendants_seconds) == (0.0, 2.5)


def test_time_that_no_ancestor_has_gained_is_lost() -> None:
    """Of processes that no reading has met it may be, too. What an adopter has waited for is not, nor is rounding."""
    child = process(CHILD, ROOT, cpu_seconds=1.0)
    forgotten, waited, adopted, cheated = new_job(), new_job(), new_job(ADOPTER), new_job(ADOPTER)
    for ledger in (forgotten, waited, adopted, cheated):
        ledger.feed([process(), child])
    forgotten.feed([process()])
    forgotten.feed([process()])
    waited.feed([process(reaped_cpu_seconds=0.99)])
    waited.feed([process(reaped_cpu_seconds=0.99)])
    adopted.feed([process()], RootFigures(0.0, 0.0, 1.0))
    cheated.feed([process()], RootFigures(0.0, 0.0, 0.0))

    ledgers = (forgotten, waited, adopted, cheated)
    assert [ledger.has_lost for ledger in ledgers] == [True, False, False, True]
    assert [ledger.descendants_seconds for ledger in ledgers] == [1.0, 1.0, 1.0, 1.0]


def test_a_sum_that_nobody_has_split_is_counted_once() -> None:
    """The kernel has told only what the root and its children used together: the children that were met have their part of it."""
    ledger = new_job()
    ledger.feed([process(cpu_seconds=0.5), process(CHILD, ROOT, cpu_seconds=1.0)])
    ledger.feed([process(cpu_seconds=0.6)], RootFigures(1.9, 0.0, is_cpu_split=False))
    assert (ledger.main_seconds, ledger.descendants_seconds) == pytest.approx((0.9, 1.0))


def test_a_sum_that_nobody_has_split_keeps_what_was_known() -> None:
    """The last reading has said how much was the children's; without one all is the root's."""
    ledger = new_job()
    ledger.feed([process(cpu_seconds=0.5, reaped_cpu_seconds=2.0)])
    ledger.feed([], RootFigures(3.0, 0.0, is_cpu_split=False))
    assert (ledger.main_seconds, ledger.descendants_seconds) == (1.0, 2.0)

    unseen = new_job()
    unseen.feed([], RootFigures(3.0, 0.0, is_cpu_split=False))
    assert (unseen.main_seconds, unseen.descendants_seconds) == (3.0, 0.0)
