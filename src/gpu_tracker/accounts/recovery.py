"""Combines what the job's owner or parent knows at the end with what was measured. Pure."""

from __future__ import annotations

from ..core.model import (
    ESTIMATE,
    EXACT,
    SAMPLED,
    SAMPLER_LOST,
    End,
    Event,
    GpuCounters,
    GpuPeaks,
    Known,
    Parts,
    Peaks,
    RamPeak,
    RecordingData,
    RootFigures,
    add_parts,
)
from ..core.units import AS_GOOD_AS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.model import MetricRow, RegionTotals

_NEARLY = 0.8


def complete(
    recording: RecordingData,
    start_nanoseconds: int,
    at_nanoseconds: int,
    known: Known | None,
    reason: str = "",
    hint: str = "",
) -> RecordingData:
    """Complete the recording of a lost sampler, with the job's whole time and CPU if they are known."""
    lost_seconds = recording.totals.at_seconds
    end_seconds = (at_nanoseconds - start_nanoseconds) / 1e9
    totals, exit_code, extent = recording.totals, None, "all figures end there"
    peaks = doubt_peaks(totals.peaks)
    if known is not None:
        exit_code, totals = known.exit_code, totals._replace(at_seconds=end_seconds)
        extent = "time is complete, all other figures end there"
    if known is not None and known.after is not None:
        before, after = known.before, known.after
        reaped = after.reaped_cpu_seconds - before.reaped_cpu_seconds + after.adopted_cpu_seconds
        totals = totals._replace(
            cpu_seconds=add_parts(
                after.own_cpu_seconds - before.own_cpu_seconds, max(totals.cpu_seconds.descendants, reaped)
            )
        )
        peaks = _raise_after_loss(peaks, before, after)
        extent = "time is complete, CPU is that of the processes that were waited for, memory and GPU figures end there"
    raised = (
        ()
        if known is None or known.exception is None
        else (Event(end_seconds, "exception", known.exception),)
    )
    told = () if known is None else tuple(Event(end_seconds, "note", text) for text in known.notes)
    because, what_to_do = f" ({reason})" if reason else "", f" {hint}" if hint else ""
    note = f"The sampler was lost{because}: nothing was measured from {lost_seconds:.3g} s to {end_seconds:.3g} s; {extent}.{what_to_do}"
    unread_seconds = totals.at_seconds - lost_seconds
    totals = totals._replace(
        unread_seconds=totals.unread_seconds + unread_seconds,
        peaks=_doubt_idle_gpus(peaks),
        gpu_counters=tuple(
            add_unknown(doubt_idle_counters(counters), unread_seconds) for counters in totals.gpu_counters
        ),
    )
    return recording._replace(
        events=(*recording.events, Event(lost_seconds, "note", note), *raised, *told),
        totals=totals,
        end=End(SAMPLER_LOST, exit_code, totals, 0.0, 0),
    )


def _raise_after_loss(peaks: Peaks, before: RootFigures, after: RootFigures) -> Peaks:
    """The peaks, raised to high-water marks that were read without a sampler."""
    peaks = raise_peaks(peaks, after)
    main, descendants, combined = peaks.ram
    own = after.own_peak_bytes
    if own is not None and own > (before.own_peak_bytes or 0):
        main = _raise(main, own, EXACT)
    combined = _raise(combined, main.total_bytes, SAMPLED)
    return peaks._replace(ram=Parts(main, descendants, _doubt(combined)))


def merge_regions(
    recorded: Iterable[RegionTotals], recovered: Iterable[RegionTotals]
) -> tuple[RegionTotals, ...]:
    """The counts that processes have left, with the samples that were taken while there was a sampler.

    What a program has left may be lost, too, if it closes the descriptors of its tracker: then nobody has seen its open calls end.
    """
    regions = {(region.pid, region.path): _doubt_open(region) for region in recorded}
    for region in recovered:
        known = regions.get((region.pid, region.path), region)
        if known.calls > region.calls:
            continue
        is_exact = region.peak_ram_basis == EXACT
        owner = region if is_exact or (known.peak_ram_bytes or 0) < (region.peak_ram_bytes or 0) else known
        regions[region.pid, region.path] = region._replace(
            peak_ram_bytes=owner.peak_ram_bytes,
            peak_ram_call_seconds=owner.peak_ram_call_seconds,
            gpu_bytes=known.gpu_bytes,
            gpu_bytes_call_seconds=known.gpu_bytes_call_seconds,
            gpu_percent_seconds=known.gpu_percent_seconds,
            gpu_seconds=known.gpu_seconds,
            gpu_unknown_seconds=known.gpu_unknown_seconds,
            energy_joules=known.energy_joules,
            energy_least_joules=known.energy_least_joules,
            energy_most_joules=known.energy_most_joules,
        )
    return tuple(regions.values())


def _doubt_open(region: RegionTotals) -> RegionTotals:
    """A call that was open at the last reading may have used more."""
    is_exact = region.cpu_basis == EXACT
    return region._replace(cpu_basis=SAMPLED) if region.open_calls and is_exact else region


def skip_known(recorded: Iterable[MetricRow], recovered: Iterable[MetricRow]) -> list[MetricRow]:
    """The metrics that were not recorded: each process logs its own in order. Recorded times have nine digits."""
    last_seconds: dict[int, float] = {}
    for row in recorded:
        last_seconds[row.pid] = max(row.at_seconds, last_seconds.get(row.pid, -1.0))
    return [row for row in recovered if float(f"{row.at_seconds:.9g}") > last_seconds.get(row.pid, -1.0)]


def raise_peaks(peaks: Peaks, figures: RootFigures, *, has_mark: bool = True) -> Peaks:
    """The peaks, raised to those that only the root's owner or parent can know, and exact only if these say so.

    Without a mark of the root, which readings or figures have, nobody knows whose a peak is that may be a child's.
    """
    main, descendants, combined = peaks.ram
    largest, footprint = figures.largest_peak_bytes, figures.footprint_bytes
    has_mark |= footprint is not None or figures.own_peak_bytes is not None
    main = _raise(main, figures.risen_peak_bytes or 0, EXACT)
    main = _raise(main, footprint or 0, ESTIMATE)
    if largest is not None and main.basis == ESTIMATE and main.total_bytes > largest:
        main = _lower(main, largest)  # no process held more
        combined = _lower(combined, largest) if not descendants.total_bytes else combined
    is_estimate = main.basis == ESTIMATE and figures.may_be_a_childs
    if largest is None:
        if figures.own_peak_bytes is None:  # it may have grown after the last reading
            main, combined = _doubt(main), _doubt(combined)
    elif largest <= main.total_bytes:  # nobody had more
        main = main if is_estimate else main._replace(basis=EXACT)
    elif figures.may_be_a_childs and main.total_bytes < largest * _NEARLY:
        main, combined = _doubt(main), _doubt(combined)
        if has_mark:
            # The root's high-water mark was read until about the end, so a peak far above it is a child's.
            descendants = _raise(descendants, largest, SAMPLED)
        else:
            combined = _raise(combined, largest, SAMPLED)
    elif is_estimate:
        main = _raise(main, largest, ESTIMATE)
    else:
        is_sure = not figures.may_be_a_childs or main.total_bytes >= largest * AS_GOOD_AS
        main = _raise(main, largest, EXACT if is_sure else SAMPLED)
    if combined.total_bytes == main.total_bytes and not descendants.total_bytes:
        combined = combined._replace(basis=main.basis)
    highest = max(main, descendants, key=lambda peak: peak.total_bytes)
    combined = _raise(combined, highest.total_bytes, SAMPLED if descendants.total_bytes else highest.basis)
    return peaks._replace(ram=Parts(main, descendants, combined))


def doubt_peaks(peaks: Peaks) -> Peaks:
    """The peaks of a process that has ended without telling its last high-water mark."""
    return peaks._replace(ram=Parts(*map(_doubt, peaks.ram)))


def _doubt_idle_gpus(peaks: Peaks) -> Peaks:
    return peaks._replace(
        gpu_bytes=_doubt_zeros(peaks.gpu_bytes),
        system_gpu_bytes=peaks.system_gpu_bytes or None,
        gpu_utilization_sum_percent=peaks.gpu_utilization_sum_percent or None,
        gpu_with_job_sum_percent=peaks.gpu_with_job_sum_percent or None,
        gpus=tuple(map(doubt_idle_peaks, peaks.gpus)),
    )


def doubt_idle_peaks(peaks: GpuPeaks) -> GpuPeaks:
    """The peaks of a device that is no longer read: what was zero until then need not have stayed so."""
    return doubt_empty(peaks)._replace(utilization_percent=peaks.utilization_percent or None)


def doubt_empty(peaks: GpuPeaks) -> GpuPeaks:
    """Memory that was not in use when it was read, but may have been later."""
    return peaks._replace(used_bytes=peaks.used_bytes or None, job_bytes=_doubt_zeros(peaks.job_bytes))


def doubt_idle_counters(counters: GpuCounters) -> GpuCounters:
    """The same: an integral that is zero covers no time."""
    busy, job = counters.utilization_percent_seconds, counters.job_percent_seconds
    return counters._replace(
        utilization_seconds=counters.utilization_seconds if busy else 0.0,
        job_seconds=counters.job_seconds if job else 0.0,
        activity=tuple((total, seconds if total else 0.0) for total, seconds in counters.activity),
    )


def add_unknown(counters: GpuCounters, seconds: float) -> GpuCounters:
    """With one more time in which it was not known who held what, although it had been."""
    return add_gap(counters, seconds)._replace(
        job_bytes_unknown_seconds=counters.job_bytes_unknown_seconds + seconds,
        used_bytes_unknown_seconds=counters.used_bytes_unknown_seconds + seconds,
    )


def add_gap(counters: GpuCounters, seconds: float) -> GpuCounters:
    """With one more part of that time that came after it was known."""
    return counters._replace(
        job_bytes_gap_seconds=counters.job_bytes_gap_seconds + seconds,
        used_bytes_gap_seconds=counters.used_bytes_gap_seconds + seconds,
    )


def _doubt_zeros(sizes: Parts[int | None]) -> Parts[int | None]:
    return Parts(*(size or None for size in sizes))


def _doubt(peak: RamPeak) -> RamPeak:
    """What was exact when it was read is the largest of the samples for the whole run."""
    return peak._replace(basis=SAMPLED) if peak.basis == EXACT else peak


def _raise(peak: RamPeak, total_bytes: int, basis: str) -> RamPeak:
    return peak if total_bytes <= peak.total_bytes else _set(peak, total_bytes, basis)


def _lower(peak: RamPeak, total_bytes: int) -> RamPeak:
    return peak if total_bytes >= peak.total_bytes else _set(peak, total_bytes, peak.basis)


def _set(peak: RamPeak, total_bytes: int, basis: str) -> RamPeak:
    shared = min(peak.shared_bytes, total_bytes)
    return RamPeak(total_bytes, total_bytes - shared, shared, basis)
