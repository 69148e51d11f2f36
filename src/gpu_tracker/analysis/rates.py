"""Rates between two observations, computed only here. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.observation import Observation


def busy_cores(before: Observation | None, after: Observation) -> float | None:
    """How many cores of the machine were busy between two observations."""
    if before is None:
        return None
    return _rate(before, after, before.machine.cpu_seconds, after.machine.cpu_seconds)


def busy_percent(before: Observation | None, after: Observation) -> float | None:
    """The same as a share of all cores; the kernel's ticks are coarse, so that it may say a little more than all."""
    busy = busy_cores(before, after)
    return None if busy is None else min(100.0, 100 * busy / after.machine.cores)


def busy_cores_by_pid(before: Observation | None, after: Observation) -> Mapping[int, float]:
    """How many cores each process that is in both observations kept busy."""
    if before is None:
        return {}
    earlier = {holder.pid: holder.cpu_seconds for holder in before.holders}
    rates = {
        holder.pid: _rate(before, after, earlier.get(holder.pid), holder.cpu_seconds)
        for holder in after.holders
    }
    return {pid: rate for pid, rate in rates.items() if rate is not None}


def _rate(before: Observation, after: Observation, first: float | None, second: float | None) -> float | None:
    seconds = after.at_seconds - before.at_seconds
    # The pid may have been reused by a process that has used less.
    if first is None or second is None or second < first or seconds <= 0:
        return None
    return (second - first) / seconds
