"""How long processes of the job were on one device, which others use, too. Pure.

A driver samples processes now and then. Of those that it meets only once or not at all, chance has chosen what it says.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

# A process that lives for fewer of the driver's periods is short. No driver samples less often than once a second.
_PERIODS = 2
_LONGEST_SHORT_SECONDS = 2.0
_MOST_KEPT = 1000
_NOTABLE_SHARE = 0.1


class Lives:
    """The processes of the job on one device."""

    def __init__(self) -> None:
        self._begins: dict[int, float] = {}
        self._at_seconds = self._seconds = 0.0
        self._short: list[float] = []
        """How long those were there that came and went, beside others, unless they are not short for any driver."""

    def take(self, at_seconds: float, pids: Collection[int], *, has_others: bool) -> None:
        """Take those that are listed."""
        self._seconds += len(self._begins) * (at_seconds - self._at_seconds)
        self._at_seconds = at_seconds
        for pid in self._begins.keys() - pids:
            seconds = at_seconds - self._begins.pop(pid)
            if has_others and seconds < _LONGEST_SHORT_SECONDS and len(self._short) < _MOST_KEPT:
                self._short.append(seconds)
        for pid in pids:
            self._begins.setdefault(pid, at_seconds)

    def are_short(self, period_seconds: float) -> bool:
        """Whether a notable part of the time, processes were there that are short for a driver with this period."""
        short_seconds = sum(seconds for seconds in self._short if seconds < _PERIODS * period_seconds)
        return short_seconds > _NOTABLE_SHARE * self._seconds
