"""Expensive reads happen when the budget covers them."""

from __future__ import annotations

from gpu_tracker.sampler.budget import Budget, estimate_sharing_cost


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


def test_the_cost_of_a_read_grows_with_the_memory() -> None:
    """Eleven milliseconds per gigabyte."""
    assert 0.011 < estimate_sharing_cost(1, 10**9) < 0.012
    assert estimate_sharing_cost(10, 0) > estimate_sharing_cost(1, 0)
