"""When to look: deadlines on the monotonic clock, not sleeps, so lateness does not add up. Pure."""

from __future__ import annotations


class Deadlines:
    """A regular series of instants. One that has been missed altogether is skipped, not made up for."""

    def __init__(self, start_seconds: float, interval_seconds: float) -> None:
        self.interval_seconds = interval_seconds
        self.next_seconds = start_seconds + interval_seconds

    def wait_seconds(self, now_seconds: float) -> float:
        """How long until the next instant."""
        return max(0.0, self.next_seconds - now_seconds)

    def strike(self, now_seconds: float) -> float:
        """The instant has come: set the next one and tell how late this is."""
        late = max(0.0, now_seconds - self.next_seconds)
        missed = int(late // self.interval_seconds)
        self.next_seconds += (1 + missed) * self.interval_seconds
        return late
