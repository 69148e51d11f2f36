"""Expensive reads happen when the budget covers them."""

from __future__ import annotations

from gpu_tracker.sampler.budget import (
    Budget,
    describe_cost_of_metrics,
    describe_thinning,
    estimate_sharing_cost,
)


def test_credit_grows_with_time_and_is_spent() -> None:
    """One percent of ten seconds is a tenth."""
    budget = Budget(0.01, 0.0, 0.0)
    assert not budget.allows(5.0, 0.1)
    assert budget.allows(10.0, 0.1)
    budget.spend(0.1)
    assert not budget.allows(10.0, 0.01)


def test_credit_is_capped() -> None:
    """An idle hour does not pay for a burst of reads."""
    budget = Budget(0.01, 0.0, 0.0)
    assert budget.allows(3600.0, 0.2)
    budget.spend(0.2)

    assert not budget.allows(3600.0, 0.2)


def test_a_read_above_the_largest_credit_waits_longer() -> None:
    """A process of 100 GB costs a second to read: once in a hundred seconds."""
    budget = Budget(0.01, 0.0, 0.0)
    assert not budget.allows(90.0, 1.0)
    assert budget.allows(200.0, 1.0)


def test_what_was_saved_for_a_large_read_is_kept() -> None:
    """A small one may be asked about meanwhile."""
    budget = Budget(0.01, 0.0, 0.0)
    assert not budget.allows(90.0, 1.0)
    assert budget.allows(90.0, 0.1)

    assert budget.allows(105.0, 1.0)


def test_the_cost_of_a_read_grows_with_the_memory() -> None:
    """Eleven milliseconds per gigabyte."""
    assert 0.011 < estimate_sharing_cost(1, 10**9) < 0.012
    assert estimate_sharing_cost(10, 0) > estimate_sharing_cost(1, 0)


def test_metrics_that_cost_too_much_are_counted() -> None:
    """A moment is free, and so is what stays within the share."""
    assert describe_cost_of_metrics(4.2, 1_000_000, 11.0, 0.01) == (
        "The job called log 1,000,000 times in 11 s: reading that took 4.2 s of CPU time, "
        "more than 1.0% of one core (max_overhead). Log less often."
    )
    assert describe_cost_of_metrics(0.25, 50_000, 0.0, 0.01) == ""
    assert describe_cost_of_metrics(30.0, 50_000_000, 3600.0, 0.01) == ""


def test_metrics_of_which_not_every_number_is_kept_are_said() -> None:
    """From when on, what is kept instead, and how to keep all."""
    assert describe_thinning(12.3456) == (
        "The job logged so many numbers that of those after 12.3 s the recording has only the smallest, the largest and the last of each "
        "interval, and totals of all (full_resolution keeps every one)."
    )
