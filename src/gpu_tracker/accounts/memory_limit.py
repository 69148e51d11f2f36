"""The most that the memory limit of a job has counted: at a reading, or at a peak of the processes between two. Pure.

The limit and the processes are read one after the other, and in between a job may take or free any amount. So one
reading alone cannot show what is counted besides the processes; the median of three in a row can. The memory of a process
that ends is counted for some milliseconds in which it no longer has any: that is nothing besides the processes.
"""

from __future__ import annotations

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .sharing import Holding


class _Moment(NamedTuple):
    """What one reading says."""

    outside_bytes: int
    """What the limit counted besides the memory of the processes that is in no file."""
    file_bytes: int
    process_bytes: int


class MemoryLimitAccount:
    """One limit."""

    def __init__(self) -> None:
        self._moments: tuple[_Moment, ...] = ()
        self._read_bytes: int | None = None
        self._peak_bytes = 0
        self._at_peak_bytes = 0
        self._at_earlier_peaks_bytes = 0
        self._has_new_peak = False

    @property
    def most_bytes(self) -> int | None:
        """None if the limit was never read."""
        if self._read_bytes is None:
            return None
        return max(self._read_bytes, self._at_peak_bytes, self._at_earlier_peaks_bytes)

    def take(self, held_bytes: int | None, processes: Holding, peak_bytes: int) -> None:
        """Take what the limit counts, the processes read just before, and their peak so far."""
        if held_bytes is None:
            return
        self._read_bytes = max(self._read_bytes or 0, held_bytes)
        if processes.unique_bytes:
            outside = held_bytes - processes.unique_bytes + processes.file_bytes
            moment = _Moment(outside, processes.file_bytes, processes.unique_bytes)
            self._moments = (*self._moments[-2:], _doubt_rise(moment, self._moments))
            self._settle()
        self.take_peak(peak_bytes)

    def take_peak(self, peak_bytes: int) -> None:
        """Take a peak of the processes that may be higher than what was read of them."""
        if peak_bytes > self._peak_bytes and self._moments:
            self._peak_bytes = peak_bytes
            self._at_peak_bytes = _estimate(peak_bytes, self._moments[-2:])
            self._has_new_peak = True

    def _settle(self) -> None:
        """The reading after a peak says what it was made of."""
        if self._has_new_peak:
            settled = _estimate(self._peak_bytes, self._moments)
            self._at_earlier_peaks_bytes = max(self._at_earlier_peaks_bytes, settled)
            self._at_peak_bytes, self._has_new_peak = 0, False


def _doubt_rise(moment: _Moment, before: Sequence[_Moment]) -> _Moment:
    """The same without what may be memory that the processes had at the reading before; if it stays, the next one has it."""
    if not before:
        return moment
    rise = moment.outside_bytes - max(one.outside_bytes for one in before)
    lost = before[-1].process_bytes - moment.process_bytes
    return moment._replace(outside_bytes=moment.outside_bytes - max(0, min(rise, lost)))


def _estimate(peak_bytes: int, moments: Sequence[_Moment]) -> int:
    """What the limit counted at a peak, by the readings around it: of two, that which says more."""
    outside = sorted(moment.outside_bytes for moment in moments)[len(moments) // 2]
    return peak_bytes - max(moment.file_bytes for moment in moments) + outside
