"""A purse for dear reads: it fills with time, and a read is made when it can be paid. Pure."""

from __future__ import annotations

# smaps_rollup, measured: a fixed part and 11 ms for every GB of 4 KiB pages.
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
        """Whether that much can be paid now. A read dearer than any credit must wait for its turn."""
        earned = (at_seconds - self._at_seconds) * self._share
        largest = max(_LARGEST_CREDIT_SECONDS, cost_seconds)
        self._credit_seconds = min(self._credit_seconds + earned, largest)
        self._at_seconds = at_seconds
        return self._credit_seconds >= cost_seconds

    def spend(self, cost_seconds: float) -> None:
        """Pay, even into debt when it cost more than foreseen."""
        self._credit_seconds -= cost_seconds


def foresee_sharing_cost(processes: int, resident_bytes: int) -> float:
    """CPU seconds that reading the sharing of these processes will take."""
    return processes * _SECONDS_PER_PROCESS + resident_bytes * _SECONDS_PER_BYTE
