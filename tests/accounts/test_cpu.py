"""CPU time is conserved, whoever dies when."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import ROOT, process
from gpu_tracker.accounts.cpu import CpuLedger
from gpu_tracker.core.model import ProcessReading, RootFigures

CHILD, GRANDCHILD, ADOPTER = 101, 102, 50


def new_job(adopter_pid: int = 0) -> CpuLedger:
    """A ledger of a process that was started for the tracking."""
    return CpuLedger(ROOT, RootFigures(0.0, 0.0), adopter_pid)


def test_only_what_was_used_since_the_start_counts() -> None:
    """Of the root and of children that were there before."""
    ledger = CpuLedger(ROOT, RootFigures(5.0, 2.0))
    old_child = process(CHILD, ROOT, cpu_seconds=3.0, was_running_at_start=True)
    ledger.feed([process(cpu_seconds=5.5, reaped_cpu_seconds=2.0), old_child])
    ledger.feed([process(cpu_seconds=6.0, reaped_cpu_seconds=2.5), old_child._replace(cpu_seconds=4.0)])

    assert (ledger.main_seconds, ledger.descendants_seconds) == (1.0, 1.5)


def test_without_a_given_start_the_first_look_is_the_start() -> None:
    """For a process that somebody else owns."""
    ledger = CpuLedger(ROOT, None)
    ledger.feed([process(cpu_seconds=5.0, reaped_cpu_seconds=1.0)])
    ledger.feed([process(cpu_seconds=5.5, reaped_cpu_seconds=1.25)])

    assert (ledger.main_seconds, ledger.descendants_seconds) == (0.5, 0.25)


def test_nothing_is_known_before_the_root_was_seen() -> None:
    """No reading, no figures."""
    ledger = CpuLedger(ROOT, None)
    ledger.feed([])

    assert (ledger.main_seconds, ledger.descendants_seconds) == (0.0, 0.0)


def test_a_child_that_was_waited_for_is_counted_once() -> None:
    """Its time moves into its parent's counter."""
    ledger = new_job()
    ledger.feed([process(), process(CHILD, ROOT, cpu_seconds=2.0)])
    ledger.feed([process(reaped_cpu_seconds=2.25)])

    assert ledger.descendants_seconds == 2.25


def test_a_child_that_nobody_waited_for_is_kept() -> None:
    """A parent that ignores SIGCHLD gains nothing when its child ends."""
    ledger = new_job()
    ledger.feed([process(), process(CHILD, ROOT, cpu_seconds=2.0)])
    ledger.feed([process()])

    assert ledger.descendants_seconds == 2.0


def test_a_child_that_was_waited_for_in_the_middle_of_a_look_is_counted_once() -> None:
    """Its parent was read before that, so the gain shows one look later."""
    ledger = new_job()
    ledger.feed([process(), process(CHILD, ROOT, cpu_seconds=2.0)])
    ledger.feed([process()])
    assert ledger.descendants_seconds == 2.0
    ledger.feed([process(reaped_cpu_seconds=2.1)])
    assert ledger.descendants_seconds == 2.1
    ledger.feed([process(reaped_cpu_seconds=2.1)])
    assert ledger.descendants_seconds == 2.1


def test_a_loss_is_certain_after_one_more_look_or_at_the_end() -> None:
    """What nobody waited for stays, beside what is used later."""
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


def test_a_claim_ends_with_whom_it_is_made_on() -> None:
    """The parent that should have gained has gone too, into the root's counter."""
    ledger = new_job()
    ledger.feed(
        [process(), process(CHILD, ROOT, cpu_seconds=1.0), process(GRANDCHILD, CHILD, cpu_seconds=2.0)]
    )
    ledger.feed([process(), process(CHILD, ROOT, cpu_seconds=1.0)])
    ledger.feed([process(reaped_cpu_seconds=3.0)])

    assert ledger.descendants_seconds == 3.0


def test_rounding_of_reaped_time_is_no_loss() -> None:
    """The kernel prints hundredths, rounded down."""
    ledger = new_job()
    ledger.feed([process(), process(CHILD, ROOT, cpu_seconds=1.019)])
    ledger.feed([process(reaped_cpu_seconds=1.0)])

    assert ledger.descendants_seconds == pytest.approx(1.019)


def test_a_whole_branch_that_ends_between_two_looks_is_counted_once() -> None:
    """Child and grandchild both end up in the root's counter."""
    ledger = new_job()
    ledger.feed(
        [process(), process(CHILD, ROOT, cpu_seconds=1.0), process(GRANDCHILD, CHILD, cpu_seconds=2.0)]
    )
    ledger.feed([process(reaped_cpu_seconds=3.5)])

    assert ledger.descendants_seconds == 3.5


def test_an_orphan_goes_on_counting_and_is_kept_when_it_ends() -> None:
    """Its parent has gone, and init waits for it."""
    ledger = new_job()
    ledger.feed(
        [process(), process(CHILD, ROOT, cpu_seconds=1.0), process(GRANDCHILD, CHILD, cpu_seconds=1.0)]
    )
    ledger.feed([process(reaped_cpu_seconds=1.0), process(GRANDCHILD, 1, cpu_seconds=4.0)])
    ledger.feed([process(reaped_cpu_seconds=1.0)])

    assert ledger.descendants_seconds == 5.0


def test_an_adopted_orphan_is_counted_exactly_in_the_end() -> None:
    """The adopter's own figure replaces the last look at it."""
    ledger = new_job(ADOPTER)
    ledger.feed([process(), process(GRANDCHILD, ADOPTER, cpu_seconds=4.0)])
    ledger.feed([process()])
    assert ledger.descendants_seconds == 4.0

    ledger.feed([process()], RootFigures(0.0, 0.0, adopted_cpu_seconds=4.75))
    assert ledger.descendants_seconds == 4.75


def test_exact_figures_complete_the_last_look() -> None:
    """Also children that ended since, which the root has waited for."""
    ledger = new_job()
    ledger.feed([process(cpu_seconds=1.0), process(CHILD, ROOT, cpu_seconds=2.0)])
    ledger.feed([], RootFigures(1.5, 2.5))

    assert (ledger.main_seconds, ledger.descendants_seconds) == (1.5, 2.5)


def test_a_job_that_ended_before_the_first_look_has_its_exact_figures() -> None:
    """`true` is over in a millisecond."""
    ledger = new_job()
    ledger.feed([], RootFigures(0.001, 0.002))

    assert (ledger.main_seconds, ledger.descendants_seconds) == (0.001, 0.002)


@given(st.lists(st.tuples(st.floats(0, 5), st.booleans()), max_size=8))
def test_the_sum_never_falls_and_never_exceeds_what_was_used(ends: list[tuple[float, bool]]) -> None:
    """Whatever children end, waited for or not."""
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
