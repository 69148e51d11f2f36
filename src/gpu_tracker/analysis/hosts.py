"""What the ranks of a job used on each machine together. Pure.

Memory shared between separately measured trees is not known: their sum is an upper bound, the largest of them a lower
bound. Clocks of different hosts may differ, so times are compared in steps of a second.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from operator import add
from types import MappingProxyType

from ..core.model import ESTIMATE, EXACT, SAMPLED, find_peak
from ..core.values import NamedTuple
from .endings import find_ending
from .energy import add_joules
from .ranks import find_end
from .summary import (
    doubt_held,
    find_missing,
    find_unmetered_seconds,
    find_unused_seconds,
    find_unutilized_seconds,
    is_known_enough,
    is_ram_least,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..core.columns import HeldColumns
    from ..core.model import RecordingData
    from .ranks import Part
    from .summary import GpuSummary

_STEP_SECONDS = 1.0
_MOST_STEPS = 20_000


class HostGpu(NamedTuple):
    """One device, as seen by all ranks. None is not known."""

    uuid: str
    name: str
    label: str
    job_bytes: int | None
    """The peak of all ranks together, added up at the same time: an upper bound."""
    used_bytes: int | None
    mean_percent: float | None
    """From the longest recording."""
    utilization_basis: str
    energy_joules: float | None
    unutilized_seconds: float = 0.0
    """How much of the time the mean is without, if that is notable."""
    unmetered_seconds: float = 0.0
    """The same of its energy."""
    energy_basis: str = EXACT
    """By the driver's meter, or an estimate from its power."""
    unheld_seconds: float = 0.0
    """The same of what the job held: it may have been more."""
    memory_basis: str = SAMPLED
    """How that was obtained."""
    is_known_enough: bool = True
    """Whether the mean stands for the whole time."""


class Host(NamedTuple):
    """One machine and the ranks on it."""

    name: str
    ranks: int
    cpu_seconds: float
    ram_at_least_bytes: int | None
    """The largest single tree. This and the following: None if never read."""
    ram_sum_bytes: int | None
    """The peak of all trees together, as if they shared nothing."""
    ram_at_most_bytes: int | None
    """The sum, or the RAM in use on the whole machine if that is less; also None if a tree was not measured all the time."""
    system_ram_bytes: int | None
    gpus: tuple[HostGpu, ...]
    machine_joules: float | None = None
    """Energy of all its processors and their memory, by its own meters; None if not measured."""
    unmetered_seconds: float = 0.0
    """How much of the time that is without, if that is notable."""
    limit_bytes: int | None = None
    """The RAM that the job may use there, and what sets that limit."""
    limit_source: str = ""
    mean_cores: float | None = None
    """How many its ranks kept busy, from the first start there to the last end."""
    machine_cores: int | None = None
    is_cpu_least: bool = False
    """Whether its ranks may have used more CPU time."""


def describe_host(
    name: str,
    parts: Sequence[Part],
    read_held: Callable[[RecordingData], HeldColumns],
    within: Mapping[str, Sequence[Part]] = MappingProxyType({}),
) -> Host:
    """The ranks on one machine together. Some may be without some of their time: then they used at least what those within them did."""
    totals = [part.recording.totals for part in parts]
    known = [
        *totals,
        *(inner.recording.totals for part in parts for inner in within.get(part.name, ())),
    ]
    at_least = max(total.peaks.ram.combined.total_bytes for total in known)
    sums = _Sums(max((find_end(part) for part in parts), default=0.0))
    for part in parts:
        held = read_held(part.recording)
        sums.add("", _list_ram(part, held))
        for uuid, column in held.gpus.items():
            sums.add(uuid, _list_intervals(part, held, column))
    summed = max(at_least, sums.find_most(""))
    system = max(total.peaks.system_ram_bytes for total in totals)
    # Each rank has read the same meters.
    metered = max(totals, key=lambda total: add_joules(*total.energy[:2]) or 0.0)
    at_most = max(at_least, min(summed, system)) if system else summed
    is_least = any(
        part.name in within or is_ram_least(part.summary, find_ending(part.recording)) for part in parts
    )
    allocations = [part.recording.header.allocation for part in parts]
    limit = max(allocations, key=lambda one: one.ram_bytes)
    seconds = max(map(find_end, parts)) - min(part.begin_seconds for part in parts)
    cpu_seconds = sum(max(_add_cpu([part]), _add_cpu(within.get(part.name, ()))) for part in parts)
    return Host(
        name=name,
        ranks=len(parts),
        cpu_seconds=cpu_seconds,
        limit_bytes=limit.ram_bytes or None,
        limit_source=limit.ram_source,
        mean_cores=cpu_seconds / seconds if seconds > 0 else None,
        machine_cores=max(one.machine_cores for one in allocations) or None,
        ram_at_least_bytes=at_least or None,
        ram_sum_bytes=summed or None,
        ram_at_most_bytes=None if is_least else at_most or None,
        system_ram_bytes=system or None,
        gpus=tuple(_describe_gpus(parts, sums)),
        machine_joules=add_joules(*metered.energy[:2]),
        unmetered_seconds=0.0
        if metered.energy.seconds is None
        else find_missing(metered.energy.seconds, metered.at_seconds),
    )


def _add_cpu(parts: Iterable[Part]) -> float:
    return sum(part.recording.totals.cpu_seconds.combined for part in parts)


def _list_intervals(
    part: Part, held: HeldColumns, column: Sequence[float]
) -> Iterator[tuple[float, float, float]]:
    """Begin, end and value of every interval; times beyond the end are damage and left out."""
    begin, latest = part.begin_seconds, part.recording.totals.at_seconds + _STEP_SECONDS
    for start, end, value in zip(held.start_seconds, held.end_seconds, column, strict=True):
        if end <= latest and value > 0:  # neither unknown
            yield begin + start, begin + end, value


def _list_ram(part: Part, held: HeldColumns) -> Iterator[tuple[float, float, float]]:
    """The same of RAM. A running peak that has grown was reached in the interval before."""
    yield from _list_intervals(part, held, held.ram_bytes)
    begin, before, peak = part.begin_seconds, 0.0, 0
    ends = held.end_seconds
    for at, grown in held.grown:
        if grown > peak and at <= part.recording.totals.at_seconds + _STEP_SECONDS:
            row = bisect_left(ends, at)
            before = held.start_seconds[row] if row < len(ends) else before
            yield begin + before, begin + at, grown
            peak = grown
        before = at
    total = part.recording.totals.peaks.ram.combined.total_bytes
    if total > peak:  # reached after the last sample
        yield begin + before, find_end(part), total


class _Sums:
    """Upper bounds of what all ranks of a host held at once: an interval counts in every time step it touches."""

    def __init__(self, end_seconds: float) -> None:
        self._step = max(_STEP_SECONDS, end_seconds / _MOST_STEPS)
        # Clocks of hosts may differ, so each may have been up to one second later.
        self._n_steps = math.floor((end_seconds + 2.0) / self._step) + 2
        self._sums: dict[str, array[float]] = {}

    def add(self, what: str, intervals: Iterable[tuple[float, float, float]]) -> None:
        """One rank more that held this."""
        held = array("d", bytes(8 * self._n_steps))
        step, last = self._step, self._n_steps - 1
        for begin, until, most in intervals:
            number, end = int(begin // step), int((until + 1.0) // step)
            while number <= end and number <= last:
                if held[number] < most:  # noqa: PLR1730 - max() is called, for each of millions
                    held[number] = most
                number += 1
        before = self._sums.get(what)
        self._sums[what] = held if before is None else array("d", map(add, before, held))

    def find_most(self, what: str) -> int:
        """The most that was held at once."""
        return int(max(self._sums.get(what, ()), default=0))


def may_hold_more(parts: Sequence[Part]) -> bool:
    """Whether a rank may hold an unknown amount of a device's memory."""
    gpus = (gpu for part in parts for gpu in part.summary.gpus)
    return any(gpu.may_hold_unseen for gpu in gpus) or bool(list_unread_gpus(parts))


def list_unread_gpus(parts: Sequence[Part]) -> list[Part]:
    """The recordings without some devices that the job may have used: a driver did not answer, or one could not be opened."""
    return [part for part in parts if part.summary.has_unread_gpus]


def _describe_gpus(parts: Sequence[Part], sums: _Sums) -> Iterable[HostGpu]:
    seen: dict[str, list[tuple[Part, GpuSummary]]] = {}
    for part in parts:
        for gpu in part.summary.gpus:
            seen.setdefault(gpu.gpu.uuid, []).append((part, gpu))
    for uuid, views in sorted(seen.items(), key=lambda item: (item[1][0][1].gpu.sort_key, item[0])):
        # A device that no rank used is not the job's.
        if not any(gpu.is_expected for _, gpu in views):
            continue
        peaks = [gpu.job_bytes.combined for _, gpu in views]
        is_unknown = any(gpu.is_expected and gpu.job_bytes.combined is None for _, gpu in views)
        summed = sums.find_most(uuid)
        doubts = [doubt_held([gpu], part.recording.totals.at_seconds) for part, gpu in views]
        part, longest = max(views, key=lambda item: item[0].recording.totals.at_seconds)
        metered, most = max(views, key=lambda item: item[1].energy_joules or 0.0)
        seconds = part.recording.totals.at_seconds
        yield HostGpu(
            uuid=uuid,
            name=longest.gpu.name,
            label=longest.gpu.label,
            job_bytes=None if is_unknown else _bound(find_peak(summed or None, None, peaks), views),
            used_bytes=_most(gpu.used_bytes for _, gpu in views),
            mean_percent=longest.mean_percent,
            utilization_basis=longest.utilization_basis,
            energy_joules=most.energy_joules,
            energy_basis=most.energy_basis,
            unmetered_seconds=0.0
            if most.energy_joules is None
            else find_unmetered_seconds(most, metered.recording.totals.at_seconds),
            unutilized_seconds=find_unutilized_seconds(longest, seconds),
            is_known_enough=is_known_enough(longest.utilization_seconds, seconds),
            unheld_seconds=max(doubt.unheld_seconds for doubt in doubts),
            memory_basis=ESTIMATE if any(doubt.basis == ESTIMATE for doubt in doubts) else SAMPLED,
        )


def _bound(summed: int | None, views: Sequence[tuple[Part, GpuSummary]]) -> int | None:
    """All ranks held no more of a device together than all processes did, if that is known, and no less than one of them."""
    used = [gpu.used_bytes for _, gpu in views]
    is_whole = not any(
        find_unused_seconds(gpu, part.recording.totals.at_seconds) for part, gpu in views
    ) and all(used)
    if summed is None or not is_whole:
        return summed
    most: int = _most(used)
    return max([min(summed, most), *(gpu.job_bytes.combined or 0 for _, gpu in views)])


def _most(values: Iterable[float | None]) -> Any:
    return max((value for value in values if value is not None), default=None)
