"""Points in time as text, for headers and for people; and how long to wait for the next line."""

from __future__ import annotations

import time

_PATIENCE_INTERVALS = 2
_PATIENCE_SECONDS = 10.0


def write_moment(epoch_seconds: float, pattern: str) -> str:
    """Like `strftime`, with `%f` for milliseconds."""
    second, fraction = divmod(epoch_seconds, 1)
    pattern = pattern.replace("%f", f"{int(fraction * 1000):03d}")
    return time.strftime(pattern, time.localtime(second))


def stamp_moment(epoch_seconds: float) -> str:
    """As in a header: `2026-01-31T12:00:00.123+01:00`."""
    text = write_moment(epoch_seconds, "%Y-%m-%dT%H:%M:%S.%f%z")
    return f"{text[:-2]}:{text[-2:]}"


def parse_moment(text: str) -> float | None:
    """Seconds since 1970 of a header's time, or None if it is not valid."""
    from datetime import MAXYEAR, MINYEAR, datetime

    if text[-5:-4] in ("+", "-"):  # Python 3.10 refuses `+0100`, which earlier headers have
        text = f"{text[:-2]}:{text[-2:]}"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    is_valid = moment.tzinfo is not None and MINYEAR < moment.year < MAXYEAR  # also in other time zones
    return moment.timestamp() if is_valid else None


def longest_silence(interval_seconds: float) -> float:
    """A line is written every interval: a file without an end that has not grown for so many seconds has lost its writer."""
    return _PATIENCE_INTERVALS * interval_seconds + _PATIENCE_SECONDS


class Pace:
    """When to do something again that costs ever more: so seldom that it takes a small share of a core."""

    def __init__(self, share: float = 0.01, shortest_seconds: float = 1.0) -> None:
        self._share = share
        self._shortest_seconds = shortest_seconds
        self._due_at = 0.0
        self._last_seconds = 0.0

    def is_due(self, now: float) -> bool:
        """Whether it is time."""
        return now >= self._due_at

    def remaining(self, now: float) -> float:
        """Seconds until then."""
        return max(0.0, self._due_at - now)

    def pay(self, now: float, spent_seconds: float) -> None:
        """It was done, and took that much CPU time; what it takes only once, as to load modules, is forgiven."""
        usual_seconds, self._last_seconds = min(spent_seconds, self._last_seconds), spent_seconds
        self._due_at = now + max(self._shortest_seconds, usual_seconds / self._share)
