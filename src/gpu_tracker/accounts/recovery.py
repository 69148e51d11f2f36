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

_NEARLY = 0.8


def complete(
    recording: RecordingData, start_nanoseconds: int, known: Known | None, reason: str = ""
) -> RecordingData:
    """Complete the recording of a lost sampler, with the job's whole time and CPU if they are known."""
    lost_seconds = recording.totals.at_seconds
    totals, exit_code, extent = recording.totals, None, "all figures end there"
    if known is not None:
        before, after, exit_code = known.before, known.after, known.exit_code
        reaped = after.reaped_cpu_seconds - before.reaped_cpu_seconds + after.adopted_cpu_seconds
        totals = totals._replace(
            at_seconds=(known.at_nanoseconds - start_nanoseconds) / 1e9,
            cpu_seconds=add_parts(
                after.own_cpu_seconds - before.own_cpu_seconds, max(totals.cpu_seconds.descendants, reaped)
            ),
            peaks=raise_peaks(totals.peaks, after),
        )
        extent = "time and CPU are complete, memory and GPU figures end there"
    because = f" ({reason})" if reason else ""
    note = f"The sampler was lost {lost_seconds:.3g} s after the start{because}: {extent}."
    return recording._replace(
        events=(*recording.events, Event(lost_seconds, "note", note)),
        totals=totals,
        end=End("sampler lost", exit_code, totals, 0.0, 0),
    )


def raise_peaks(peaks: Peaks, figures: RootFigures) -> Peaks:
    """The peaks, raised to those that only the root's owner or parent can know."""
    main, descendants, combined = peaks.ram
    if figures.largest_peak_bytes is not None and figures.largest_peak_bytes > main.total_bytes:
        # The root's own high-water mark was read until the end; a peak far above it that may be a
        # child's is one.
        if figures.may_be_a_childs and main.total_bytes < figures.largest_peak_bytes * _NEARLY:
            descendants = _raise(descendants, figures.largest_peak_bytes, SAMPLED)
        else:
            main = _raise(main, figures.largest_peak_bytes, EXACT)
    largest = max(main, descendants, key=lambda peak: peak.total_bytes)
    combined = _raise(combined, largest.total_bytes, largest.basis)
    return peaks._replace(ram=Parts(main, descendants, combined))


def _raise(peak: RamPeak, total_bytes: int, basis: str) -> RamPeak:
    if total_bytes <= peak.total_bytes:
        return peak
    shared = min(peak.shared_bytes, total_bytes)
    return RamPeak(total_bytes, total_bytes - shared, shared, basis)
