"""What the job's owner or parent knows at the end, put together with what was measured. Pure."""

from __future__ import annotations

from ..model import EXACT, SAMPLED, End, Mark, Peaks, RamPeak, Recording, RootFigures


def salvage(
    recording: Recording,
    at_seconds: float,
    before: RootFigures,
    after: RootFigures,
    exit_code: int | None,
) -> Recording:
    """After the sampler was lost: its last line, with the time and the CPU of the whole stretch."""
    totals = recording.totals
    reaped = after.reaped_cpu_seconds - before.reaped_cpu_seconds
    totals = totals._replace(
        at_seconds=at_seconds,
        main_cpu_seconds=after.own_cpu_seconds - before.own_cpu_seconds,
        descendants_cpu_seconds=max(totals.descendants_cpu_seconds, reaped),
        peaks=raise_peaks(totals.peaks, after),
    )
    note = Mark(
        recording.totals.at_seconds,
        "note",
        f"The sampler was lost {recording.totals.at_seconds:.3g} s after the start: time and CPU are "
        "complete, memory and GPU figures are those up to then.",
    )
    return recording._replace(
        marks=(*recording.marks, note),
        totals=totals,
        end=End("sampler lost", exit_code, totals, 0.0, 0),
    )


def raise_peaks(peaks: Peaks, figures: RootFigures) -> Peaks:
    """The peaks, with those that only the root's owner or parent can know."""
    main = _raise(peaks.main_ram, figures.main_peak_bytes, EXACT)
    descendants = _raise(peaks.descendants_ram, figures.child_peak_bytes, SAMPLED)
    largest = max(main, descendants, key=_total)
    combined = _raise(peaks.combined_ram, largest.total_bytes, largest.basis)
    return peaks._replace(main_ram=main, descendants_ram=descendants, combined_ram=combined)


def _raise(peak: RamPeak, total_bytes: int | None, basis: str) -> RamPeak:
    if total_bytes is None or total_bytes < peak.total_bytes:
        return peak
    shared = min(peak.shared_bytes, total_bytes)
    return RamPeak(total_bytes, total_bytes - shared, shared, basis)


def _total(peak: RamPeak) -> int:
    return peak.total_bytes
