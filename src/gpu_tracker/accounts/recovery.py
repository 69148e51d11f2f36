"""Combines what the job's owner or parent knows at the end with what was measured. Pure."""

from __future__ import annotations

from ..core.model import (
    EXACT,
    SAMPLED,
    End,
    Event,
    Known,
    Parts,
    Peaks,
    RamPeak,
    RecordingData,
    RootFigures,
    add_parts,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.model import MetricRow, RegionTotals

_NEARLY = 0.8
_AS_GOOD_AS = 0.99


def complete(
    recording: RecordingData,
    start_nanoseconds: int,
    at_nanoseconds: int,
    known: Known | None,
    reason: str = "",
) -> RecordingData:
    """Complete the recording of a lost sampler, with the job's whole time and CPU if they are known."""
    lost_seconds = recording.totals.at_seconds
    end_seconds = (at_nanoseconds - start_nanoseconds) / 1e9
    totals, exit_code, extent = recording.totals, None, "all figures end there"
    peaks = doubt_peaks(totals.peaks)
    if known is not None:
        before, after, exit_code = known.before, known.after, known.exit_code
        reaped = after.reaped_cpu_seconds - before.reaped_cpu_seconds + after.adopted_cpu_seconds
        totals = totals._replace(
            at_seconds=end_seconds,
            cpu_seconds=add_parts(
                after.own_cpu_seconds - before.own_cpu_seconds, max(totals.cpu_seconds.descendants, reaped)
            ),
        )
        peaks = _raise_after_loss(peaks, before, after)
        extent = "time and CPU are complete, memory and GPU figures end there"
    raised = (
        ()
        if known is None or known.exception is None
        else (Event(end_seconds, "exception", known.exception),)
    )
    because = f" ({reason})" if reason else ""
    note = f"The sampler was lost{because}: nothing was measured from {lost_seconds:.3g} s to {end_seconds:.3g} s; {extent}."
    totals = totals._replace(peaks=peaks)
    return recording._replace(
        events=(*recording.events, Event(lost_seconds, "note", note), *raised),
        totals=totals,
        end=End("sampler lost", exit_code, totals, 0.0, 0),
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
    """The counts that processes have left, with the samples that were taken while there was a sampler."""
    regions = {(region.pid, region.path): region for region in recorded}
    for region in recovered:
        known = regions.get((region.pid, region.path), region)
        if known.calls > region.calls:
            continue
        is_exact = region.peak_ram_basis == EXACT or known.peak_ram_bytes is None
        regions[region.pid, region.path] = region._replace(
            peak_ram_bytes=region.peak_ram_bytes
            if is_exact
            else max(known.peak_ram_bytes or 0, region.peak_ram_bytes or 0),
            gpu_bytes=known.gpu_bytes,
            gpu_percent_seconds=known.gpu_percent_seconds,
            gpu_seconds=known.gpu_seconds,
            energy_joules=known.energy_joules,
        )
    return tuple(regions.values())


def skip_known(recorded: Iterable[MetricRow], recovered: Iterable[MetricRow]) -> list[MetricRow]:
    """The metrics that were not recorded: each process logs its own in order. Recorded times have nine digits."""
    last_seconds: dict[int, float] = {}
    for row in recorded:
        last_seconds[row.pid] = max(row.at_seconds, last_seconds.get(row.pid, -1.0))
    return [row for row in recovered if float(f"{row.at_seconds:.9g}") > last_seconds.get(row.pid, -1.0)]


def raise_peaks(peaks: Peaks, figures: RootFigures) -> Peaks:
    """The peaks, raised to those that only the root's owner or parent can know, and exact only if these say so."""
    main, descendants, combined = peaks.ram
    largest = figures.largest_peak_bytes
    if largest is None:
        if figures.own_peak_bytes is None:  # it may have grown after the last reading
            main, combined = _doubt(main), _doubt(combined)
    elif largest <= main.total_bytes:  # nobody had more
        main = main._replace(basis=EXACT)
    elif figures.may_be_a_childs and main.total_bytes < largest * _NEARLY:
        # The root's high-water mark was read until about the end, so a peak far above it is a child's.
        main, combined = _doubt(main), _doubt(combined)
        descendants = _raise(descendants, largest, SAMPLED)
    else:
        is_sure = not figures.may_be_a_childs or main.total_bytes >= largest * _AS_GOOD_AS
        main = _raise(main, largest, EXACT if is_sure else SAMPLED)
    if combined.total_bytes == main.total_bytes and not descendants.total_bytes:
        combined = combined._replace(basis=main.basis)
    highest = max(main, descendants, key=lambda peak: peak.total_bytes)
    combined = _raise(combined, highest.total_bytes, SAMPLED if descendants.total_bytes else highest.basis)
    return peaks._replace(ram=Parts(main, descendants, combined))


def doubt_peaks(peaks: Peaks) -> Peaks:
    """The peaks of a process that has ended without telling its last high-water mark."""
    return peaks._replace(ram=Parts(*map(_doubt, peaks.ram)))


def _doubt(peak: RamPeak) -> RamPeak:
    """What was exact when it was read is the largest of the samples for the whole run."""
    return peak._replace(basis=SAMPLED) if peak.basis == EXACT else peak


def _raise(peak: RamPeak, total_bytes: int, basis: str) -> RamPeak:
    if total_bytes <= peak.total_bytes:
        return peak
    shared = min(peak.shared_bytes, total_bytes)
    return RamPeak(total_bytes, total_bytes - shared, shared, basis)
