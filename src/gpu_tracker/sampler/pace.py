"""When to write a line: the larger it is and the longer the job runs, the rarer, so that a file stays small. Pure."""

from __future__ import annotations

_MEMORY = 0.9


class Pace:
    """Lines of one kind. Every time the age of the job grows by a factor of e, they may take `growth_bytes` more."""

    def __init__(self, growth_bytes: float) -> None:
        self._growth_bytes = growth_bytes
        self._line_bytes = 0.0
        self._at_seconds = 0.0

    def interval_seconds(self, at_seconds: float) -> float:
        """The time between two lines at this age."""
        return at_seconds * self._line_bytes / self._growth_bytes

    def is_due(self, at_seconds: float) -> bool:
        """Whether it is time for another line."""
        return at_seconds - self._at_seconds >= self.interval_seconds(at_seconds)

    def note(self, at_seconds: float, line_bytes: int) -> None:
        """A line of that size has been written."""
        known = self._line_bytes or line_bytes
        self._line_bytes = _MEMORY * known + (1 - _MEMORY) * line_bytes
        self._at_seconds = at_seconds
