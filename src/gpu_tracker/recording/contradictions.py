"""Finds recordings whose figures cannot all be true: an end that has less than a sample before it, or more than the machine can.

An edited file must pass no gate; a valid one must never be doubted. So the bounds are far from anything that clocks,
ticks, estimates and shared memory do. Pure.
"""

from __future__ import annotations

from math import inf

from ..core.model import SAMPLER_LOST, UNWRITTEN, add_known
from ..core.units import humanize_bytes, humanize_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..core.model import End, Gpu, GpuCounters, Header, Peaks, RecordingData, RegionTotals, Sample, Totals

# Counters and peaks may be corrected downwards a little, when what was estimated becomes known.
_CORRECTED_SHARE = 0.05
_CORRECTED_SECONDS = 0.5
_CORRECTED_BYTES = 32 * 2**20
_CORRECTED_JOULES = 100.0
# Of all that is measured, how much more than there is.
_MOST_TIMES = 4
_MOST_CPU_TIMES = 2
_SLACK_SECONDS = 60.0
_SLACK_BYTES = 2**30
_MOST_PERCENT = 105.0
# Several times what the hungriest device and machine draw, and what a meter may count at once.
_MOST_DEVICE_WATTS = 10_000.0
_MOST_MACHINE_WATTS = 200_000.0
_SLACK_JOULES = 100_000.0
# A last sample is written with the end, unless nothing was read any more.
_SILENT_SHARE = 0.2
_SILENT_SECONDS = 600.0
# One reading may be amid its work when a job ends, and is dated when it is done.
_LATE_SECONDS = 1.0
_CALL_SHARE = 0.01
_CALL_SECONDS = 0.1
_BEGINNING = "The recording contradicts itself: "


def find_contradictions(recording: RecordingData, last: Sample | None) -> list[str]:
    """A sentence for each; `last` is the last sample, with the peaks up to it."""
    end, totals = recording.end, recording.totals
    found = [*_find_impossible(recording.header, recording.gpus, totals)]
    if end is not None and last is not None:
        found += _find_decreases(last, totals)
        if last.at_seconds > totals.at_seconds + _LATE_SECONDS or _is_silent(recording, end, last):
            sampled = humanize_seconds(last.at_seconds)
            found.append(
                f"its end is at {humanize_seconds(totals.at_seconds)}, its last sample at {sampled}."
            )
    return [_BEGINNING + words for words in found]


def _is_silent(recording: RecordingData, end: End, last: Sample) -> bool:
    """Whether there is no sample for long before the end, although nothing says why."""
    totals, sampled = recording.totals, last.at_seconds
    silent_seconds = _SILENT_SECONDS + recording.header.sleep_seconds + _SILENT_SHARE * sampled
    is_known = end.reason == SAMPLER_LOST or any(event.kind == UNWRITTEN for event in recording.events)
    return not is_known and totals.at_seconds - sampled > silent_seconds + totals.unread_seconds


def is_contradiction(sentence: str) -> bool:
    """Whether a sentence about damage is one of these."""
    return sentence.startswith(_BEGINNING)


def find_latest_seconds(end: End | None) -> float:
    """When the last metric can have been logged: what outlives the job may log until the sampler ends."""
    if end is None or end.reason == SAMPLER_LOST:
        return inf
    return (1 + _SILENT_SHARE) * end.totals.at_seconds + _SILENT_SECONDS


def find_region_contradiction(region: RegionTotals) -> str | None:
    """A sentence if the time of a region is less than that of its longest call, or more than all calls can have taken."""
    longest = region.longest_seconds
    if longest is None:
        return None
    name = "/".join(region.path)
    if longest > region.wall_seconds * (1 + _CALL_SHARE) + _CALL_SECONDS:
        what = f"a call of {humanize_seconds(longest)}, but {humanize_seconds(region.wall_seconds)} in all"
        return f"{_BEGINNING}the region {name} has {what}."
    ended = region.wall_seconds - region.open_wall_seconds
    if ended > region.calls * longest * (1 + _CALL_SHARE) + _CALL_SECONDS:
        what = f"{humanize_seconds(ended)} in {region.calls} calls of {humanize_seconds(longest)} at most"
        return f"{_BEGINNING}the region {name} has {what}."
    return None


def describe_fewer_calls(name: str) -> str:
    """A sentence about a region that has fewer calls than before."""
    return f"{_BEGINNING}the region {name} has fewer calls than before."


def _find_decreases(last: Sample, totals: Totals) -> Iterator[str]:
    """What the end has less of than the last sample, both since the start."""
    used, known = totals.cpu_seconds.combined, last.cpu_seconds.combined
    if _is_less(used, known, _CORRECTED_SECONDS):
        yield f"{humanize_seconds(used)} of CPU time at its end, {humanize_seconds(known)} in its last sample."
    for what, peak, size in (
        ("RAM", last.peaks.ram.combined.total_bytes, totals.peaks.ram.combined.total_bytes),
        ("GPU memory", last.peaks.gpu_bytes.combined, totals.peaks.gpu_bytes.combined),
    ):
        if peak is not None and _is_less(size or 0, peak, _CORRECTED_BYTES):
            yield f"a peak of {humanize_bytes(size or 0)} of {what} at its end, {humanize_bytes(peak)} in a sample."
    counters = {gpu.uuid: gpu for gpu in totals.gpu_counters}
    for gpu in last.gpu_counters:
        if gpu.uuid in counters and _has_lost(gpu, counters[gpu.uuid]):
            yield f"counters of the device {gpu.uuid} are less at its end than in its last sample."


def _has_lost(before: GpuCounters, after: GpuCounters) -> bool:
    integrals = (
        (after.utilization_percent_seconds, before.utilization_percent_seconds),
        (after.job_percent_seconds, before.job_percent_seconds),
        (after.energy_joules or 0.0, before.energy_joules or 0.0),
    )
    times = (
        (after.utilization_seconds, before.utilization_seconds),
        (after.job_seconds, before.job_seconds),
        (after.energy_seconds, before.energy_seconds),
    )
    return any(_is_less(*pair, _CORRECTED_JOULES) for pair in integrals) or any(
        _is_less(*pair, _CORRECTED_SECONDS) for pair in times
    )


def _is_less(after: float, before: float, slack: float) -> bool:
    return after < before * (1 - _CORRECTED_SHARE) - slack


def _find_impossible(header: Header, gpus: Iterable[Gpu], totals: Totals) -> Iterator[str]:
    """What no machine can have."""
    cores, capacity = header.allocation.machine_cores, header.allocation.machine_ram_bytes
    seconds, cpu = totals.at_seconds, totals.cpu_seconds
    if cores < 1:
        yield f"a machine of {cores} cores."
    elif cpu.combined > _MOST_CPU_TIMES * cores * seconds + _SLACK_SECONDS:
        yield f"{humanize_seconds(cpu.combined)} of CPU time in {humanize_seconds(seconds)} on {cores} cores."
    if _is_less(cpu.combined, cpu.main + cpu.descendants, _CORRECTED_SECONDS) or _is_less(
        cpu.main + cpu.descendants, cpu.combined, _CORRECTED_SECONDS
    ):
        yield "its CPU time is not the sum of that of its parts."
    ram = totals.peaks.ram.combined.total_bytes
    if capacity and ram > _MOST_TIMES * capacity + _SLACK_BYTES:
        yield f"a peak of {humanize_bytes(ram)} of RAM on a machine with {humanize_bytes(capacity)}."
    yield from _find_impossible_on_gpus(gpus, totals)
    energy = totals.energy
    joules = add_known((energy.processors_joules, energy.memory_joules)) or 0.0
    if joules > _MOST_MACHINE_WATTS * (energy.seconds or seconds) + _SLACK_JOULES:
        yield "more energy of processors than any machine draws."


def _find_impossible_on_gpus(gpus: Iterable[Gpu], totals: Totals) -> Iterator[str]:
    held = totals.peaks.gpu_bytes.combined
    if held is not None:
        yield from _find_impossible_memory(held, [gpu.memory_bytes for gpu in gpus], totals.peaks)
    for gpu in totals.gpu_counters:
        if gpu.utilization_percent_seconds > _MOST_PERCENT * (gpu.utilization_seconds + 1):
            yield f"the device {gpu.uuid} was busy for more than all of the time."
        if (gpu.energy_joules or 0.0) > _MOST_DEVICE_WATTS * gpu.energy_seconds + _SLACK_JOULES:
            yield f"more energy of the device {gpu.uuid} than any device draws."


def _find_impossible_memory(held_bytes: int, sizes: Sequence[int | None], peaks: Peaks) -> Iterator[str]:
    """What the job held on all devices, which have these sizes: less than all of them, no less than on one."""
    capacity = sum(size or 0 for size in sizes)
    if sizes and None not in sizes and held_bytes > _MOST_TIMES * capacity + _SLACK_BYTES:
        yield f"a peak of {humanize_bytes(held_bytes)} of GPU memory on devices with {humanize_bytes(capacity)}."
    of_one = max((gpu.job_bytes.combined or 0 for gpu in peaks.gpus), default=0)
    if _is_less(held_bytes, of_one, _CORRECTED_BYTES):
        yield f"a peak of {humanize_bytes(held_bytes)} of GPU memory, {humanize_bytes(of_one)} of it on one device."
