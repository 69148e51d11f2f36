"""What the job's owner knows is never lost, whatever happened to the sampler."""

from __future__ import annotations

from builders import MB, header, totals
from gpu_tracker.accounts.recovery import complete, raise_peaks
from gpu_tracker.core.model import Known, Parts, Peaks, RamPeak, RecordingData, RootFigures

BEFORE = RootFigures(1.0, 2.0)


def test_a_lost_sampler_costs_no_time_and_no_cpu() -> None:
    """Its last line is completed by the owner's own counters."""
    lost = RecordingData(header(), (), (), None, totals(at_seconds=4.0))
    after = RootFigures(9.0, 5.0, largest_peak_bytes=900 * MB)
    saved = complete(lost, 5 * 10**9, Known(15 * 10**9, BEFORE, after, 3), "OSError")

    assert saved.totals.at_seconds == 10.0
    assert (saved.totals.cpu_seconds.main, saved.totals.cpu_seconds.descendants) == (8.0, 3.0)
    assert saved.totals.peaks.ram.main == RamPeak(900 * MB, 890 * MB, 10 * MB, "exact")
    assert saved.end is not None
    assert (saved.end.reason, saved.end.exit_code) == ("sampler lost", 3)
    assert "4 s after the start (OSError): time and CPU are complete" in saved.events[-1].text


def test_of_a_foreign_process_only_what_was_recorded_is_known() -> None:
    """Its counters are not available here."""
    lost = RecordingData(header(), (), (), None, totals(at_seconds=4.0))
    saved = complete(lost, 0, None)

    assert saved.totals == lost.totals
    assert "4 s after the start: all figures end there" in saved.events[-1].text


def test_a_peak_above_the_roots_may_be_a_childs() -> None:
    """The root's own high-water mark was read until the end, so a much larger peak is another process's."""
    peaks = raise_peaks(totals().peaks, RootFigures(0, 0, 0, 1800 * MB, may_be_a_childs=True))

    assert peaks.ram.main.total_bytes == 500 * MB
    assert peaks.ram.descendants.total_bytes == peaks.ram.combined.total_bytes == 1800 * MB


def test_a_peak_slightly_above_the_roots_is_the_roots() -> None:
    """It was still growing at the last reading."""
    peaks = raise_peaks(totals().peaks, RootFigures(0, 0, 0, 600 * MB, may_be_a_childs=True))

    assert peaks.ram.main.total_bytes == peaks.ram.combined.total_bytes == 600 * MB
    assert peaks.ram.descendants.total_bytes == 0


def test_a_known_peak_changes_nothing() -> None:
    """Nor does an unknown one."""
    for known in (None, 400 * MB):
        assert raise_peaks(totals().peaks, RootFigures(0, 0, 0, known)) == totals().peaks


def test_combined_is_never_below_the_largest_part() -> None:
    """Even if only a part was seen."""
    peaks = raise_peaks(Peaks(ram=Parts(RamPeak(5, 5, 0, "exact"), RamPeak(), RamPeak())), RootFigures(0, 0))

    assert peaks.ram.combined.total_bytes == 5
