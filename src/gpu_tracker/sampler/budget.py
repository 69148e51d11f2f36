"""A CPU budget for expensive reads: it grows with time, and each read spends from it. Pure."""

from __future__ import annotations

# Measured cost of smaps_rollup: a fixed part, and 11 ms per GB of 4 KiB pages.
_SECONDS_PER_PROCESS = 0.0003
_SECONDS_PER_BYTE = 0.011 / 1e9
_LARGEST_CREDIT_SECONDS = 0.25


class Budget:
    """CPU seconds that may be spent, at most `share` of the time that passes."""

    def __init__(self, share: float, at_seconds: float, credit_seconds: float) -> None:
        self._share = share
        self._at_seconds = at_seconds
        self._credit_seconds = credit_seconds

    def allows(self, at_seconds: float, cost_seconds: float) -> bool:
        """Whether the budget covers this cost now. A read that costs more than the largest credit waits longer."""
        earned = (at_seconds - self._at_seconds) * self._share
        largest = max(_LARGEST_CREDIT_SECONDS, cost_seconds)
        # What was saved for a larger read is kept when a smaller one is asked about.
        self._credit_seconds = max(self._credit_seconds, min(self._credit_seconds + earned, largest))
        self._at_seconds = at_seconds
        return self._credit_seconds >= cost_seconds

    def spend(self, cost_seconds: float) -> None:
        """Spend; a cost above the estimate leads to a negative balance."""
        self._credit_seconds -= cost_seconds


def estimate_sharing_cost(processes: int, resident_bytes: int) -> float:
    """CPU seconds to read the shared memory of these processes."""
    return processes * _SECONDS_PER_PROCESS + resident_bytes * _SECONDS_PER_BYTE


def describe_cost_of_metrics(cost_seconds: float, n_rows: int, at_seconds: float, share: float) -> str:
    """A note if reading what a job has logged took more than the share of a core that is allowed; else nothing."""
    if cost_seconds <= _LARGEST_CREDIT_SECONDS + share * at_seconds:
        return ""
    return (
        f"The job called log {n_rows:,} times in {at_seconds:.3g} s: reading that took {cost_seconds:.3g} s of CPU time, "
        f"more than {share:.1%} of one core (max_overhead). Log less often."
    )


def describe_thinning(thinned_seconds: float) -> str:
    """A note that the curves of what a job has logged are not complete from this moment on."""
    return (
        f"The job logged so many numbers that of those after {thinned_seconds:.3g} s the recording has only the smallest, the largest and "
        "the last of each interval, and totals of all (full_resolution keeps every one)."
    )
