"""Counters of a tree: conserved, whoever ends when."""

from __future__ import annotations

from hypothesis import given, strategies as st

from gpu_tracker.accounts.counters import CounterAccount, raise_counters
from gpu_tracker.core.model import ProcessActivity, TreeCounters, add_counters


def feed(account: CounterAccount, *activities: ProcessActivity) -> TreeCounters:
    """One reading; the counters after it."""
    account.feed(activities)
    return account.counters


def test_nothing_is_known_before_the_first_reading() -> None:
    """And what is never reported stays unknown."""
    account = CounterAccount()
    assert account.counters == TreeCounters()
    assert feed(account, ProcessActivity(1, switches=4)) == TreeCounters(switches=4)


def test_a_child_that_was_waited_for_is_its_parents() -> None:
    """The kernel adds its bytes to the parent's."""
    account = CounterAccount()
    feed(account, ProcessActivity(1, read_bytes=10), ProcessActivity(2, read_bytes=100))
    assert feed(account, ProcessActivity(1, read_bytes=115)).read_bytes == 115


def test_a_child_may_be_waited_for_in_the_middle_of_a_reading() -> None:
    """Its parent was read before, it is not there any more, and a reading later the parent has its bytes."""
    account = CounterAccount()
    feed(account, ProcessActivity(1, read_bytes=10), ProcessActivity(2, read_bytes=100))
    assert feed(account, ProcessActivity(1, read_bytes=10)).read_bytes == 110
    assert feed(account, ProcessActivity(1, read_bytes=110)).read_bytes == 110
    assert feed(account, ProcessActivity(1, read_bytes=111)).read_bytes == 111


def test_a_child_that_nobody_waited_for_is_not_lost() -> None:
    """Its bytes stay in the total, and later ones are added."""
    account = CounterAccount()
    feed(account, ProcessActivity(1, read_bytes=10), ProcessActivity(2, read_bytes=100))
    feed(account, ProcessActivity(1, read_bytes=10))
    feed(account, ProcessActivity(1, read_bytes=10))
    assert feed(account, ProcessActivity(1, read_bytes=15)).read_bytes == 115


def test_what_came_before_the_start_does_not_count() -> None:
    """Of processes that were running then; children of later do from zero."""
    account = CounterAccount()
    old = ProcessActivity(1, was_running_at_start=True, read_bytes=1000, waiting_seconds=5.0)
    assert feed(account, old) == TreeCounters(read_bytes=0, waiting_seconds=0.0)
    grown = old._replace(read_bytes=1003, waiting_seconds=5.5)
    young = ProcessActivity(2, read_bytes=7, waiting_seconds=0.25)
    assert feed(account, grown, young) == TreeCounters(read_bytes=10, waiting_seconds=0.75)


def test_waiting_ends_with_its_process() -> None:
    """What it waited stays, and a new process with its pid begins at zero."""
    account = CounterAccount()
    feed(account, ProcessActivity(1, waiting_seconds=2.0))
    assert feed(account).waiting_seconds == 2.0
    feed(account, ProcessActivity(1, waiting_seconds=3.0))
    assert feed(account, ProcessActivity(1, waiting_seconds=1.0)).waiting_seconds == 6.0


@given(st.lists(st.lists(st.integers(0, 100), min_size=1, max_size=4), min_size=1, max_size=8))
def test_counters_never_fall(readings: list[list[int]]) -> None:
    """Whatever the kernel says."""
    account, before = CounterAccount(), 0
    for reading in readings:
        now = feed(account, *(ProcessActivity(pid, read_bytes=value) for pid, value in enumerate(reading)))
        assert now.read_bytes is not None
        assert now.read_bytes >= before
        before = now.read_bytes


def test_exact_counters_raise_what_was_read() -> None:
    """Short-lived processes are in them; waiting for a core is not."""
    known = TreeCounters(10, None, 3, 100, 1.5)
    assert raise_counters(known, TreeCounters(5, 7, 4, None)) == TreeCounters(10, 7, 4, 100, 1.5)


def test_sums_are_unknown_if_a_part_is() -> None:
    """Of orphans, for example."""
    assert add_counters(None, TreeCounters(1)) == TreeCounters(1)
    assert add_counters(TreeCounters(1, 2), TreeCounters(3, None)) == TreeCounters(4, None)
