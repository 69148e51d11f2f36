"""When to sample: deadlines on the monotonic clock instead of sleeps, so delays do not add up. Pure."""

from __future__ import annotations


class Deadlines:
    """A regular series of deadlines. A missed one is skipped, not made up for."""

    def __init__(self, start_seconds: float, interval_seconds: float) -> None:
        self.interval_seconds = interval_seconds
        self.next_seconds = start_seconds + interval_seconds

    def wait_seconds(self, now_seconds: float) -> float:
        """Time until the next deadline."""
        return max(0.0, self.next_seconds - now_seconds)

    def strike(self, now_seconds: float) -> float:
        """Move on to the next deadline; how late this one was met."""
        late = max(0.0, now_seconds - self.next_seconds)
        missed = int(late // self.interval_seconds)
        self.next_seconds += (1 + missed) * self.interval_seconds
        return late
