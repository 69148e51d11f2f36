"""What the job's owner knows is never lost, whatever happened to the sampler."""

from __future__ import annotations

from typing import Any

import pytest

from builders import MB, header, totals
from gpu_tracker.accounts.recovery import complete, doubt_peaks, merge_regions, raise_peaks, skip_known
from gpu_tracker.core.model import (
    GpuCounters,
    GpuPeaks,
    Known,
    MetricRow,
    Parts,
    Peaks,
    RamPeak,
    RecordingData,
    RegionTotals,
    RootFigures,
)

BEFORE = RootFigures(1.0, 2.0)


def test_a_lost_sampler_costs_no_time_and_no_cpu() -> None:
    """Its last line is completed by the owner's own counters."""
    lost = RecordingData(header(), (), (), None, totals(at_seconds=4.0))
    after = RootFigures(9.0, 5.0, largest_peak_bytes=900 * MB)
    saved = complete(lost, 5 * 10**9, 15 * 10**9, Known(15 * 10**9, BEFORE, after, 3), "OSError")

    assert saved.totals.at_seconds == 10.0
    assert (saved.totals.cpu_seconds.main, saved.totals.cpu_seconds.descendants) == (8.0, 3.0)
    assert saved.totals.peaks.ram.main == RamPeak(900 * MB, 890 * MB, 10 * MB, "exact")
    assert saved.end is not None
    assert (saved.end.reason, saved.end.exit_code) == ("sampler lost", 3)
    assert saved.events[-1].text == (
        "The sampler was lost (OSError): nothing was measured from 4 s to 10 s; "
        "time is complete, CPU is that of the processes that were waited for, memory and GPU figures end there."
    )


def test_what_followed_a_lost_sampler_was_not_read() -> None:
    """Besides the gaps before; if nobody knows the whole time, there is none after it."""
    lost = RecordingData(header(), (), (), None, totals(at_seconds=4.0, unread_seconds=1.5))

    known = complete(lost, 0, 10**10, Known(10**10, BEFORE, BEFORE))

    assert (known.totals.at_seconds, known.totals.unread_seconds) == (10.0, 7.5)
    assert known.end is not None
    assert known.end.totals.unread_seconds == 7.5
    assert complete(lost, 0, 10**10, None).totals.unread_seconds == 1.5


def test_a_lost_sampler_is_said_with_a_hint() -> None:
    """After what is missing."""
    lost = RecordingData(header(), (), (), None, totals(at_seconds=4.0))

    assert complete(lost, 0, 10**10, None, hint="Do this.").events[-1].text == (
        "The sampler was lost: nothing was measured from 4 s to 10 s; all figures end there. Do this."
    )


def test_what_the_program_says_of_the_recording_is_kept_without_a_sampler() -> None:
    """After the note on the sampler."""
    lost = RecordingData(header(), (), (), None, totals(at_seconds=4.0))

    saved = complete(lost, 0, 10**10, Known(10**10, BEFORE, BEFORE, notes=("It has workers elsewhere.",)))

    assert (saved.events[-1].kind, saved.events[-1].text) == ("note", "It has workers elsewhere.")


@pytest.mark.parametrize(("exception", "kinds"), [("MemoryError", ["note", "exception"]), (None, ["note"])])
def test_what_ended_the_program_is_known_without_a_sampler(exception: str | None, kinds: list[str]) -> None:
    """The owner has seen it."""
    lost = RecordingData(header(), (), (), None, totals(at_seconds=4.0))

    saved = complete(lost, 0, 10**10, Known(10**10, BEFORE, BEFORE, exception=exception))

    assert [event.kind for event in saved.events] == kinds
    assert exception is None or saved.events[-1].text == exception


@pytest.mark.parametrize(
    ("after", "main", "combined"),
    [
        # Nobody else had more than what was seen.
        (RootFigures(9.0, 5.0, largest_peak_bytes=500 * MB), (500, "exact"), (500, "sampled")),
        # Nothing is known of the rest of the run.
        (RootFigures(9.0, 5.0), (500, "sampled"), (500, "sampled")),
        # The root's own mark has risen meanwhile, or has not.
        (RootFigures(9.0, 5.0, own_peak_bytes=700 * MB), (700, "exact"), (700, "sampled")),
        (RootFigures(9.0, 5.0, own_peak_bytes=600 * MB), (500, "sampled"), (500, "sampled")),
    ],
)
def test_after_a_loss_only_what_is_known_of_the_whole_run_is_exact(
    after: RootFigures, main: tuple[int, str], combined: tuple[int, str]
) -> None:
    """The recording's own figures were exact until then."""
    lost = RecordingData(header(), (), (), None, totals(at_seconds=4.0))
    exact = Parts(*(peak._replace(basis="exact") for peak in lost.totals.peaks.ram))
    lost = lost._replace(totals=lost.totals._replace(peaks=lost.totals.peaks._replace(ram=exact)))
    before = BEFORE._replace(own_peak_bytes=600 * MB)
    saved = complete(lost, 0, 10**10, Known(10**10, before, after)).totals.peaks.ram

    assert (saved.main.total_bytes / MB, saved.main.basis) == main
    assert (saved.combined.total_bytes / MB, saved.combined.basis) == combined


def test_regions_keep_their_samples_and_get_the_counts_that_processes_left() -> None:
    """Of processes that had ended before, nothing is left but the recording."""
    ended = RegionTotals(1, ("a",), 5, peak_ram_bytes=9 * MB)
    samples: dict[str, Any] = {
        "peak_ram_bytes": 9 * MB,
        "peak_ram_call_seconds": 1.5,
        "gpu_bytes": 7,
        "gpu_bytes_call_seconds": 2.5,
        "energy_joules": 2.0,
    }
    sampled = RegionTotals(2, ("a",), 5, **samples)
    counted = RegionTotals(2, ("a",), 8, peak_ram_bytes=4 * MB)
    exact = RegionTotals(2, ("b",), 8, peak_ram_bytes=4 * MB, peak_ram_basis="exact")
    merged = merge_regions([ended, sampled], [counted, exact, ended._replace(calls=1)])

    assert merged == (
        ended,
        counted._replace(**samples),
        exact,
    )


def test_calls_whose_end_nobody_has_seen_are_lower_bounds() -> None:
    """Of a process that has left nothing; one that has left its counts knows what it used."""
    open_call = RegionTotals(1, ("a",), 0, open_calls=1, cpu_seconds=0.1)
    shared = open_call._replace(path=("b",), cpu_basis="shared")
    left = open_call._replace(path=("c",))
    ended = open_call._replace(path=("d",), open_calls=0)
    merged = merge_regions([open_call, shared, left, ended], [left._replace(cpu_seconds=0.6)])

    assert [(region.cpu_seconds, region.cpu_basis) for region in merged] == [
        (0.1, "sampled"),
        (0.1, "shared"),
        (0.6, "exact"),
        (0.1, "exact"),
    ]


def test_metrics_that_were_recorded_are_not_counted_again() -> None:
    """Times are recorded with nine digits."""
    recorded = [MetricRow(1.0, {"loss": 3.0}, pid=1), MetricRow(1.23456789, {"loss": 2.0}, pid=1)]
    left = [MetricRow(1.234567890123, {"loss": 2.0}, pid=1), MetricRow(2.0, {"loss": 1.0}, pid=1)]
    other = MetricRow(0.5, {"loss": 1.0}, pid=2)

    assert skip_known(recorded, [*left, other]) == [left[1], other]


def test_of_a_foreign_process_only_what_was_recorded_is_known() -> None:
    """Its counters are not available here."""
    lost = RecordingData(header(), (), (), None, totals(at_seconds=4.0))
    saved = complete(lost, 0, 10**10, None)

    assert saved.totals.at_seconds == 4.0
    assert "from 4 s to 10 s; all figures end there" in saved.events[-1].text


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
    """Nor does the root's own word, whose mark was read while it lived."""
    for figures in (RootFigures(0, 0, 0, 400 * MB), RootFigures(0, 0, own_peak_bytes=1)):
        assert raise_peaks(totals().peaks, figures) == totals().peaks


def test_what_nobody_confirms_is_not_exact() -> None:
    """The root has grown after the last reading, or not: its parent knows only of peaks above its own."""
    for figures in (RootFigures(0, 0), RootFigures(0, 0, 0, 1800 * MB, may_be_a_childs=True)):
        ram = raise_peaks(totals().peaks, figures).ram
        assert (ram.main.total_bytes, ram.main.basis) == (500 * MB, "sampled")
        assert ram.combined.basis == "sampled"
    assert doubt_peaks(totals().peaks).ram.main.basis == "sampled"


def test_a_peak_that_may_be_a_childs_is_exact_only_where_it_hardly_matters_whose() -> None:
    """Within a hundredth of the root's own high-water mark."""
    for size, basis in ((503 * MB, "exact"), (600 * MB, "sampled")):
        peaks = raise_peaks(totals().peaks, RootFigures(0, 0, 0, size, may_be_a_childs=True))
        assert (peaks.ram.main.total_bytes, peaks.ram.main.basis) == (size, basis)


def test_a_peak_of_unknown_side_is_of_all_together() -> None:
    """Without a high-water mark of the root, or its own word, it may be anybody's."""
    figures = RootFigures(0, 0, 0, 1800 * MB, may_be_a_childs=True)
    ram = raise_peaks(totals().peaks, figures, has_mark=False).ram
    assert (ram.main.total_bytes, ram.main.basis) == (500 * MB, "sampled")
    assert ram.descendants.total_bytes == 0
    assert (ram.combined.total_bytes, ram.combined.basis) == (1800 * MB, "sampled")

    known = figures._replace(own_peak_bytes=510 * MB)
    assert raise_peaks(totals().peaks, known, has_mark=False).ram.descendants.total_bytes == 1800 * MB


def test_the_roots_own_word_raises_its_peak() -> None:
    """If its high-water mark has risen since the start; a larger one of a child is that one's all the same."""
    ram = raise_peaks(totals().peaks, RootFigures(0, 0, own_peak_bytes=1, risen_peak_bytes=700 * MB)).ram
    assert (ram.main.total_bytes, ram.main.basis) == (700 * MB, "exact")
    assert ram.combined.total_bytes == 700 * MB

    both = RootFigures(0, 0, 0, 1800 * MB, True, 700 * MB, risen_peak_bytes=700 * MB)
    ram = raise_peaks(totals().peaks, both).ram
    assert (ram.main.total_bytes, ram.descendants.total_bytes) == (700 * MB, 1800 * MB)


@pytest.mark.parametrize(
    ("footprint", "largest", "is_a_childs", "main", "descendants"),
    [
        (690, 700, False, (700, "exact"), 0),  # nobody else was there
        (690, 700, True, (700, "estimate"), 0),
        (750, 700, True, (700, "estimate"), 0),  # compressed memory is not resident
        (750, 700, False, (700, "exact"), 0),
        (690, None, False, (690, "estimate"), 0),
        (400, 700, True, (500, "sampled"), 700),
    ],
)
def test_a_footprint_says_whose_a_peak_is(
    footprint: int, largest: int | None, is_a_childs: bool, main: tuple[int, str], descendants: int
) -> None:
    """It is not the resident set, but near it; no process has held more than the largest resident set."""
    figures = RootFigures(
        0, 0, 0, largest and largest * MB, may_be_a_childs=is_a_childs, footprint_bytes=footprint * MB
    )
    ram = raise_peaks(totals().peaks, figures, has_mark=False).ram
    assert (ram.main.total_bytes, ram.main.basis) == (main[0] * MB, main[1])
    assert ram.descendants.total_bytes == descendants * MB


def test_a_footprint_that_was_too_large_is_not_kept_for_all_together() -> None:
    """As far as the root was alone; what several held together may have been more than the largest of them."""
    read = RamPeak(750 * MB, 750 * MB, 0, "estimate")
    figures = RootFigures(0, 0, 0, 700 * MB)
    alone = raise_peaks(Peaks(ram=Parts(read, RamPeak(), read)), figures).ram
    assert [peak.total_bytes for peak in alone] == [700 * MB, 0, 700 * MB]
    child = RamPeak(50 * MB, 50 * MB, 0, "sampled")
    several = raise_peaks(Peaks(ram=Parts(read, child, read)), figures).ram
    assert several.combined.total_bytes == 750 * MB


def test_combined_is_never_below_the_largest_part() -> None:
    """Even if only a part was seen."""
    peaks = raise_peaks(Peaks(ram=Parts(RamPeak(5, 5, 0, "exact"), RamPeak(), RamPeak())), RootFigures(0, 0))

    assert peaks.ram.combined.total_bytes == 5


def test_after_a_lost_sampler_a_device_that_was_idle_is_not_known() -> None:
    """It may have been busy later; one that was busy was busy."""
    devices = (("GPU-0", 0.0, 0), ("GPU-1", 70.0, 5))
    peaks = Peaks(
        gpu_bytes=Parts(0, 0, 0),
        gpu_utilization_sum_percent=0.0,
        gpu_with_job_sum_percent=70.0,
        gpus=tuple(
            GpuPeaks(uuid, job_bytes=Parts(0, size, size), utilization_percent=percent)
            for uuid, percent, size in devices
        ),
    )
    counters = tuple(
        GpuCounters(uuid, percent, 1.0, percent, 1.0, activity=((percent, 1.0),))
        for uuid, percent, _ in devices
    )
    lost = RecordingData(header(), (), (), None, totals(peaks=peaks, gpu_counters=counters))
    saved = complete(lost, 0, 10**10, None).totals

    assert [gpu.utilization_percent for gpu in saved.peaks.gpus] == [None, 70.0]
    assert [gpu.job_bytes.combined for gpu in saved.peaks.gpus] == [None, 5]
    assert (saved.peaks.gpu_bytes, saved.peaks.gpu_utilization_sum_percent) == (Parts(None, None, None), None)
    assert saved.peaks.gpu_with_job_sum_percent == 70.0
    known = [(one.utilization_seconds, one.job_seconds, one.activity[0][1]) for one in saved.gpu_counters]
    assert known == [(0.0, 0.0, 0.0), (1.0, 1.0, 1.0)]
