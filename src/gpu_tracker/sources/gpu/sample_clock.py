"""The clock by which a driver dates its samples, which may be another than ours, or be set meanwhile. Pure.

A driver is asked for the samples since the newest that is known. So the newest of its answer is no older than the last
answer; if it is, or lies ahead of us, its clock has been set. If it has been set back, there is no answer at all: then
whatever joins the buffer is new.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# A sample may reach us this late, and our clocks differ by this much.
_DELIVERY_SECONDS = 1.0
_AHEAD_SECONDS = 0.1
# No driver samples less often.
_LONGEST_SAMPLE_SECONDS = 2.0


class SampleClock:
    """The driver's clock, as far as its stamps (in microseconds) tell."""

    def __init__(self, now_seconds: float, now_us: float) -> None:
        self._offset_us = now_us - now_seconds * 1e6
        self._answered_seconds = float("-inf")
        self._new_seconds = float("-inf")
        self._buffer: frozenset[int] | None = None
        self._old: frozenset[int] = frozenset()

    def date(self, at_us: int) -> float:
        """By our clock."""
        return (at_us - self._offset_us) / 1e6

    def stamp(self, at_seconds: float) -> int:
        """What the driver would write at that time."""
        return int(at_seconds * 1e6 + self._offset_us)

    def take(self, stamps: Sequence[int], now_seconds: float) -> None:
        """Take the stamps of all samples since the newest that was known."""
        before, self._answered_seconds = self._answered_seconds, now_seconds
        if not stamps:
            return
        self._new_seconds, self._buffer = now_seconds, None
        newest_us = max(stamps)
        age = now_seconds - self.date(newest_us)
        if not -_AHEAD_SECONDS <= age <= now_seconds - before + _DELIVERY_SECONDS:
            self._offset_us = newest_us - now_seconds * 1e6

    def is_silent(self, now_seconds: float) -> bool:
        """Whether there has been no new sample for longer than usual."""
        return now_seconds - self._new_seconds > _LONGEST_SAMPLE_SECONDS

    def find_new(self, stamps: Iterable[int]) -> frozenset[int]:
        """What has joined the buffer since the last call, while there seem to be no new samples."""
        before, self._buffer = self._buffer, frozenset(stamps)
        self._old = self._buffer if before is None else before
        return self._buffer - self._old

    def is_old(self, at_us: int) -> bool:
        """Whether it is known, though it is dated later than samples that are new."""
        return at_us in self._old
