"""Readings in, totals out."""

from __future__ import annotations

import pytest

from builders import MB, ROOT, gpu, gpu_readings, machine, process
from gpu_tracker.accounts.processes import Account
from gpu_tracker.core.model import (
    PROCESSOR_METER,
    EnergyReading,
    Gpu,
    GpuFault,
    GpuHighWater,
    MachineEnergy,
    PeakProcess,
    RamPeak,
    RootFigures,
    SharingReading,
    Spread,
    Stalls,
    TreeCounters,
)

CHILD = 101


def new_account(**options: object) -> Account:
    """The account of a job that has just been started."""
    return Account(ROOT, RootFigures(0.0, 0.0), machine(), **options)  # type: ignore[arg-type]


def test_the_largest_reading_is_the_peak() -> None:
    """Sampled, because the kernel's high-water mark was not read."""
    account = new_account()
    for at, rss in enumerate((100, 300, 200)):
        account.take(at, [process(rss=rss, file=10)])

    assert account.peaks.ram.main == RamPeak(300 * MB, 290 * MB, 10 * MB, "sampled")
    assert account.peaks.ram.combined == account.peaks.ram.main
    assert account.sample().ram_bytes.main == Spread(100 * MB, 200 * MB, 300 * MB)


def test_a_spike_between_two_readings_is_in_the_kernels_high_water_mark() -> None:
    """Exact, and in the interval in which it happened."""
    account = new_account()
    account.take(0.0, [process(rss=100, peak=100)])
    account.take(1.0, [process(rss=100, peak=900)])

    assert account.peaks.ram.main.total_bytes == 900 * MB
    assert account.peaks.ram.main.basis == account.peaks.ram.combined.basis == "exact"
    assert account.sample().ram_bytes.main.high == 900 * MB


def test_memory_of_which_nothing_was_read_is_not_known() -> None:
    """A job that has ended before its first reading did not hold 0 bytes; later readings count alone."""
    account = new_account()
    account.take(0.0, [])
    assert account.sample().readings == 1
    assert [*account.sample().ram_bytes] == [Spread(None, None, None)] * 3

    account.take(1.0, [process(rss=100), process(CHILD, ROOT, rss=0)])
    account.take(2.0, [process(rss=300)])
    assert account.sample().readings == 3
    assert account.sample().ram_bytes.combined == Spread(100 * MB, 200 * MB, 300 * MB)
    assert account.sample().ram_bytes.descendants == Spread(0, 0, 0)


def test_what_the_root_held_at_the_start_is_all_that_is_known_without_a_reading() -> None:
    """It was read, although only once."""
    account = new_account()
    account.take_root_at_start(100 * MB)

    assert account.sample().ram_bytes.combined == Spread(100 * MB, 100 * MB, 100 * MB)


def test_a_spike_before_the_start_is_not_reported() -> None:
    """The kernel's high-water mark is older than the tracking."""
    account = new_account()
    for at in (0.0, 1.0):
        account.take(at, [process(rss=100, peak=900, was_running_at_start=True)])
    assert account.peaks.ram.main.total_bytes == 100 * MB

    account.take(2.0, [process(rss=100, peak=950, was_running_at_start=True)])
    assert account.peaks.ram.main.total_bytes == 950 * MB


def test_a_spike_in_the_footprint_is_an_estimate() -> None:
    """The kernel has charged a process with more than it was seen to hold; that is not its resident set."""
    account = new_account()
    account.take(0.0, [process(peak_footprint_bytes=5 * MB), process(CHILD, peak_footprint_bytes=5 * MB)])
    root = process(peak_footprint_bytes=300 * MB)
    account.take(1.0, [root, process(CHILD, peak_footprint_bytes=200 * MB)])

    ram = account.peaks.ram
    assert (ram.main.total_bytes, ram.main.basis) == (300 * MB, "estimate")
    assert (ram.descendants.total_bytes, ram.descendants.basis) == (200 * MB, "estimate")
    assert max(one.peak_ram_bytes for one in account.list_processes()) == 300 * MB


def test_whose_a_peak_is_takes_a_mark() -> None:
    """Where none is read, as through psutil, one that may be a child's is of all together; a root that has ended has none to read."""
    figures = RootFigures(0.0, 0.0, largest_peak_bytes=900 * MB, may_be_a_childs=True)
    for peak, descendants in ((None, 0), (10, 900 * MB)):
        account = new_account()
        account.take(0.0, [process(peak=peak)])
        account.take(1.0, [process(rss=0)])
        account.finish(figures)
        assert account.peaks.ram.descendants.total_bytes == descendants
        assert account.peaks.ram.combined.total_bytes == 900 * MB


def test_a_spike_of_the_root_comes_on_top_of_what_the_others_hold() -> None:
    """At least what they held at the smaller of the two readings around it."""
    account = new_account()
    child = process(CHILD, ROOT, rss=200)
    account.take(0.0, [process(rss=100, peak=100), child])
    account.take(1.0, [process(rss=100, peak=500), child])

    assert account.peaks.ram.combined.total_bytes == 700 * MB


def test_a_spike_of_a_child_is_a_peak_of_the_descendants() -> None:
    """And of the combined memory."""
    account = new_account()
    account.take(0.0, [process(rss=10), process(CHILD, ROOT, rss=20, peak=800)])

    assert account.peaks.ram.descendants.total_bytes == 800 * MB
    assert account.peaks.ram.combined.total_bytes == 800 * MB


def test_a_spike_of_a_child_comes_on_top_of_what_its_parent_holds() -> None:
    """Even if it was not running at the reading before."""
    account = new_account()
    account.take(0.0, [process(rss=300)])
    account.take(1.0, [process(rss=310), process(CHILD, ROOT, rss=20, peak=600)])

    assert account.peaks.ram.combined.total_bytes == 900 * MB


def test_a_high_water_mark_reset_between_two_readings_is_a_spike() -> None:
    """The process has kept it: exact, even if it has ended since."""
    account = new_account()
    account.take(0.0, [process(rss=100, peak=100)], reset_high_waters={ROOT: 0})
    account.take(1.0, [process(rss=100, peak=110)], reset_high_waters={ROOT: 900 * MB})

    peaks = account.peaks
    assert (peaks.ram.main.total_bytes, peaks.ram.main.basis) == (900 * MB, "exact")
    assert (peaks.ram.combined.total_bytes, peaks.ram.combined.basis) == (900 * MB, "exact")
    assert account.sample().ram_bytes.main.high == 900 * MB
    assert account.list_processes()[0].peak_ram_bytes == 900 * MB

    account.take(2.0, [], reset_high_waters={ROOT: 950 * MB})
    assert account.peaks.ram.combined == account.peaks.ram.main == RamPeak(950 * MB, 950 * MB, 0, "exact")
    assert account.take_gone()[0].peak_ram_bytes == 950 * MB


def test_a_high_water_mark_kept_by_a_child_is_a_spike_of_the_descendants() -> None:
    """On top of what the others hold."""
    account = new_account()
    account.take(0.0, [process(rss=100), process(CHILD, ROOT, rss=10)])
    account.take(1.0, [process(rss=100)], reset_high_waters={CHILD: 800 * MB})

    assert account.peaks.ram.main.total_bytes == 100 * MB
    assert account.peaks.ram.descendants.total_bytes == 800 * MB
    assert account.peaks.ram.combined.total_bytes == 900 * MB


def test_what_the_root_held_at_the_start_counts() -> None:
    """It may have freed it before the first reading."""
    account = new_account()
    account.take(0.0, [process(rss=50, peak=900, was_running_at_start=True)])
    account.take_root_at_start(200 * MB)

    peaks = account.peaks.ram
    assert (peaks.main.total_bytes, peaks.main.basis) == (200 * MB, "sampled")
    assert (peaks.combined.total_bytes, peaks.combined.basis) == (200 * MB, "sampled")
    assert account.sample().ram_bytes.combined.high == 200 * MB


def test_a_child_that_lived_between_two_readings_may_be_a_copy_of_what_was_read() -> None:
    """What it held beside the largest of the others is certain, no more."""
    account = new_account()
    others = [process(rss=500), process(CHILD + 1, ROOT, rss=100)]
    account.take(0.0, others)
    account.take(1.0, others, reset_high_waters={CHILD: 505 * MB})

    assert account.peaks.ram.descendants.total_bytes == 505 * MB
    assert account.peaks.ram.combined.total_bytes == 605 * MB


@pytest.mark.parametrize("rss", [0, 505])
def test_a_forked_copy_shares_its_high_water_mark_with_its_parent(rss: int) -> None:
    """Also if it is ending when it is first read, and holds nothing any more."""
    account = new_account()
    parent, other = process(rss=510), process(CHILD + 1, ROOT, rss=100)
    account.take(0.0, [parent, other])
    account.take(1.0, [parent, other, process(CHILD, ROOT, rss=rss, peak=505, is_forked_copy=True)])

    assert account.peaks.ram.combined.total_bytes == 610 * MB


def test_a_high_water_mark_reset_long_after_its_spike_is_of_that_time() -> None:
    """It was read then; what others allocated since was not held together with it."""
    account = new_account()
    account.take(0.0, [process(rss=10, peak=10)])
    account.take(1.0, [process(rss=10, peak=600)])
    account.take(2.0, [process(rss=10, peak=600), process(CHILD, ROOT, rss=400)])
    account.take(
        3.0, [process(rss=10, peak=10), process(CHILD, ROOT, rss=400)], reset_high_waters={ROOT: 600 * MB}
    )
    account.take(
        4.0, [process(rss=10, peak=10), process(CHILD, ROOT, rss=500)], reset_high_waters={ROOT: 600 * MB}
    )

    assert account.peaks.ram.combined.total_bytes == 600 * MB


def test_a_kept_high_water_mark_is_newer_than_the_start() -> None:
    """Whatever the kernel's high-water mark was at the start."""
    account = new_account()
    account.take(0.0, [process(rss=100, peak=900, was_running_at_start=True)])
    account.take(
        1.0, [process(rss=100, peak=110, was_running_at_start=True)], reset_high_waters={ROOT: 500 * MB}
    )

    assert account.peaks.ram.main.total_bytes == 500 * MB


def test_spikes_of_different_moments_are_not_added() -> None:
    """Memory freed before a child allocated its own was never held together with it."""
    account = new_account()
    account.take(0.0, [process(rss=10, peak=10)])
    account.take(1.0, [process(rss=10, peak=600)])
    account.take(2.0, [process(rss=10, peak=600), process(CHILD, ROOT, rss=400, peak=400)])

    assert account.peaks.ram.combined.total_bytes == 600 * MB


def test_sharing_is_read_if_it_matters() -> None:
    """Two copies of 500 MB could hold 1000; they hold 750."""
    account = new_account()
    readings = [process(rss=500), process(CHILD, ROOT, rss=500, is_forked_copy=True)]
    account.take(0.0, readings)
    assert account.is_sharing_in_doubt()
    assert account.peaks.ram.combined.basis == "estimate"

    sharing = SharingReading(375 * MB, 375 * MB, 250 * MB)
    account.take_sharing(readings, {ROOT: sharing, CHILD: sharing})
    assert account.peaks.ram.combined == RamPeak(750 * MB, 500 * MB, 250 * MB, "sampled")


def test_a_peak_with_workers_whose_sharing_was_not_read_is_an_estimate() -> None:
    """One early reading says nothing certain about those that came later, nor about pages that were copied since."""
    account = new_account()
    worker = process(CHILD, ROOT, rss=500, is_forked_copy=True)
    readings = [process(rss=500), worker]
    sharing = SharingReading(250 * MB, 250 * MB, 0)
    account.take(0.0, readings)
    account.take_sharing(readings, {ROOT: sharing, CHILD: sharing})
    assert account.peaks.ram.combined == RamPeak(500 * MB, 0, 500 * MB, "sampled")

    account.take(1.0, [process(rss=510), worker._replace(page_faults=50_000)])
    assert account.peaks.ram.combined.basis == "estimate"
    grown = worker._replace(rss_bytes=600 * MB, page_faults=100 * 256)
    account.take(2.0, [process(rss=510), grown])
    assert account.peaks.ram.combined.basis == "sampled"

    late = [grown._replace(pid=300 + n) for n in range(4)]
    account.take(3.0, [process(rss=510), grown, *late])
    assert account.peaks.ram.combined[0] == (510 + 5 * 100) * MB
    assert account.peaks.ram.combined.basis == account.peaks.ram.descendants.basis == "estimate"


def test_memory_that_became_shared_at_the_size_of_the_peak_is_shared() -> None:
    """500 MB of one process, then of it and its four copies."""
    account = new_account()
    account.take(0.0, [process(rss=500, peak=502)])
    readings = [process(rss=500), process(CHILD, ROOT, rss=500, is_forked_copy=True)]
    account.take(1.0, readings)
    sharing = SharingReading(250 * MB, 250 * MB, 1 * MB)
    account.take_sharing(readings, {ROOT: sharing, CHILD: sharing})

    assert account.peaks.ram.combined == RamPeak(502 * MB, 4 * MB, 498 * MB, "exact")
    assert account.peaks.ram.main == RamPeak(502 * MB, 3 * MB, 499 * MB, "exact")


def test_a_copy_read_before_its_sharing_was_known_is_shared_afterwards() -> None:
    """What the first reading took for the child's own was the heap of its parent."""
    account = new_account()
    readings = [process(rss=500), process(CHILD, ROOT, rss=500, is_forked_copy=True)]
    account.take(0.0, readings)
    sharing = SharingReading(250 * MB, 250 * MB, 1 * MB)
    account.take_sharing(readings, {ROOT: sharing, CHILD: sharing})

    assert account.peaks.ram.descendants == RamPeak(500 * MB, 1 * MB, 499 * MB, "sampled")


def test_a_single_process_never_needs_an_expensive_read_for_its_peak() -> None:
    """Only once, to separate private from shared memory."""
    account = new_account()
    account.take(0.0, [process(rss=500)])
    assert not account.is_sharing_in_doubt()
    assert account.is_split_unknown()

    account.take_sharing([process(rss=500)], {ROOT: SharingReading(490 * MB, 480 * MB, 470 * MB)})
    assert not account.is_split_unknown()
    account.take(1.0, [process(rss=600)])
    assert account.peaks.ram.main == RamPeak(600 * MB, 570 * MB, 30 * MB, "sampled")


def test_threads_and_processes_are_the_maximum_at_once() -> None:
    """Main, descendants and both."""
    account = new_account()
    account.take(0.0, [process(n_threads=24)])
    account.take(1.0, [process(n_threads=4), process(CHILD, ROOT, n_threads=16)])

    peaks = account.peaks
    assert (peaks.threads.main, peaks.threads.descendants, peaks.threads.combined) == (24, 16, 24)
    assert (peaks.processes, account.sample().threads, account.sample().processes) == (2, 24, 2)


def test_page_tables_of_all_processes_at_once_are_kept() -> None:
    """A memory limit counts them."""
    account = new_account()
    account.take(0.0, [process(page_table_bytes=300), process(CHILD, ROOT, page_table_bytes=400)])
    account.take(1.0, [process(page_table_bytes=600)])

    assert account.peaks.page_table_bytes == 700


def test_the_busiest_interval_is_kept_as_seconds() -> None:
    """Rates are left to the reader; system time comes from the machine."""
    account = new_account()
    for at, main, child, system in ((1.0, 0.5, 0.0, 1.0), (2.0, 1.5, 1.0, 4.0), (3.0, 1.6, 1.0, 4.0)):
        account.take(at, [process(cpu_seconds=main), process(CHILD, ROOT, cpu_seconds=child)])
        account.take_machine(machine(cpu=system))
        assert account.seconds_in_cpu_interval == 1.0
        account.close_cpu_interval()

    assert account.peaks.busiest.main == (1.0, 1.0)
    assert account.peaks.busiest.descendants == (1.0, 1.0)
    assert account.peaks.busiest.combined == (2.0, 1.0)
    assert account.peaks.system_busiest == (3.0, 1.0)


def test_a_fraction_of_an_interval_counts_alone_only_if_there_is_no_other() -> None:
    """Three milliseconds at the end are too short to measure a rate, but their CPU time is not lost."""
    account = new_account()
    account.take(0.002, [process(cpu_seconds=0.002)])
    account.close_cpu_interval(is_last=True)
    assert account.peaks.busiest.main == (0.002, 0.002)

    account = new_account()
    account.take(1.0, [process(cpu_seconds=0.5)])
    account.close_cpu_interval()
    account.take(2.0, [process(cpu_seconds=0.75)])
    account.close_cpu_interval()
    account.take(2.25, [process(cpu_seconds=1.75)])
    account.close_cpu_interval(is_last=True)
    account.close_cpu_interval()
    assert account.peaks.busiest.main == (1.25, 1.25)


def test_the_machine_and_a_limit_have_their_own_figures() -> None:
    """Each at its peak."""
    account = new_account()
    account.take_machine(machine(ram=2000, limit=700))
    account.take_machine(machine(ram=1500, limit=600))

    assert account.peaks.system_ram_bytes == 2000 * MB
    assert account.peaks.limit_ram_bytes == 700 * MB


def test_what_a_machine_takes_back_is_not_less_than_nothing() -> None:
    """Containers that emulate the machine's counters do so."""
    account = new_account()
    account.take_machine(machine(cpu=-3.0))

    assert account.sample().system_cpu_seconds == account.totals().system_cpu_seconds == 0.0


def test_a_line_that_could_not_be_written_loses_nothing() -> None:
    """The interval stays open until it is."""
    account = new_account()
    account.take(0.0, [process(rss=900)], late_seconds=0.25)
    assert account.sample().ram_bytes.main.high == 900 * MB
    account.take(1.0, [process(rss=100)])
    assert account.sample().ram_bytes.main == Spread(100 * MB, 500 * MB, 900 * MB)
    assert account.sample().late_seconds == 0.25

    account.start_interval()
    assert account.sample().readings == 0


def test_exact_figures_end_the_account() -> None:
    """The kernel's final time and memory. When the peak was is not known, so no sample shows it."""
    account = new_account()
    account.take(0.0, [process(rss=100)])
    figures = RootFigures(2.0, 1.0, largest_peak_bytes=400 * MB, counters=TreeCounters(major_faults=7))
    account.take(1.0, [], exact_root=figures)
    account.finish(figures)

    totals = account.totals()
    assert (totals.cpu_seconds.main, totals.cpu_seconds.descendants, totals.readings) == (2.0, 1.0, 2)
    assert totals.peaks.ram.main.total_bytes == 400 * MB
    assert account.sample().ram_bytes.main.high == 100 * MB
    assert totals.counters == TreeCounters(major_faults=7)


def test_the_last_sample_is_that_of_its_own_interval() -> None:
    """A peak in the middle of the run does not return at its end."""
    account = new_account()
    account.take(0.0, [process(rss=900)])
    account.start_interval()
    account.take(1.0, [process(rss=100)])
    account.finish(RootFigures(2.0, 1.0, largest_peak_bytes=900 * MB))

    assert account.sample().ram_bytes.main == Spread(100 * MB, 100 * MB, 100 * MB)
    assert account.sample().ram_bytes.combined.high == 100 * MB


def test_a_job_holds_its_memory_until_it_ends() -> None:
    """One that is ending holds nothing any more, and one that has ended is not listed: no chart falls to zero."""
    account = new_account()
    account.take(0.0, [process(rss=900)])
    account.take(1.0, [process(rss=0)])
    account.take(2.0, [])
    assert account.sample().ram_bytes.combined == Spread(900 * MB, 900 * MB, 900 * MB)

    account.start_interval()
    account.take(3.0, [])
    assert account.sample().ram_bytes.combined == Spread(900 * MB, 900 * MB, 900 * MB)


def test_a_new_peak_says_who_held_it() -> None:
    """The eight largest processes; the one that spiked between two readings with its spike."""
    account = new_account()
    family = [process(rss=300), *(process(ROOT + n, ROOT, rss=10 * n, name=f"w{n}") for n in range(1, 10))]
    account.take(1.0, family)
    account.moments.add_regions([("epoch",), ("epoch", "eval"), ("other",)])
    (moment,) = account.moments.list_unwritten()

    assert (moment.subject, moment.at_seconds, moment.n_processes) == ("ram", 1.0, 10)
    assert moment.size_bytes == account.peaks.ram.combined.total_bytes
    assert [held.name for held in moment.processes] == ["job", "w9", "w8", "w7", "w6", "w5", "w4", "w3"]
    assert moment.regions == (("epoch", "eval"), ("other",))

    account.moments.note_written(moment)
    account.take(2.0, [family[0], process(ROOT + 1, ROOT, rss=1, peak=700, name="w1")])
    account.moments.add_regions([])
    (moment,) = account.moments.list_unwritten()
    assert (moment.at_seconds, moment.size_bytes, moment.regions) == (2.0, 1000 * MB, ())
    assert moment.processes[0] == PeakProcess(ROOT + 1, "w1", 700 * MB)


def test_a_peak_that_is_hardly_higher_is_the_same() -> None:
    """Else every reading of a growing job would be written."""
    account = new_account()
    for at, rss in enumerate((1000, 1009, 1011)):
        account.take(float(at), [process(rss=rss)])
        account.moments.add_regions([])

    (moment,) = account.moments.list_latest()
    assert (moment.at_seconds, moment.size_bytes) == (2.0, 1011 * MB)


def test_stalls_count_from_their_first_reading() -> None:
    """The kernel counts since the machine was started."""
    account = new_account()
    account.take_activity([], Stalls(cpu_seconds=100.0, io_seconds=5.0))
    account.take_activity([], Stalls(cpu_seconds=101.5, io_seconds=None))

    assert account.totals().stalls == Stalls(cpu_seconds=1.5)


def test_the_start_cost_of_another_tracker_is_not_the_jobs() -> None:
    """The root has reaped it, so the kernel counts it among the root's children."""
    account = new_account()
    account.take(0.0, [process()])
    account.discount(0.25)
    account.take(1.0, [process(reaped_cpu_seconds=0.75)])

    assert account.totals().cpu_seconds.descendants == 0.5


def test_gpus_of_all_vendors_are_added_up() -> None:
    """Each at the time of its own reading; the peaks are those of the sums."""
    account = new_account()
    account.take(0.0, [process(), process(CHILD, ROOT)])
    account.add_gpu(gpu(0))
    account.add_gpu(gpu(1)._replace(is_visible=False))
    account.take_gpus(gpu_readings(0.0, ("GPU-0", 3000, 10.0), GPU_0={ROOT: 1000, CHILD: 500}))
    account.take_gpus(gpu_readings(0.1, ("GPU-1", 500, 30.0), GPU_1={ROOT: 200}))
    account.take_gpus(gpu_readings(2.0, ("GPU-0", 100, 70.0)))

    peaks = account.peaks
    assert (peaks.gpu_bytes.main, peaks.gpu_bytes.descendants) == (1200 * MB, 500 * MB)
    assert (peaks.gpu_bytes.combined, peaks.system_gpu_bytes) == (1700 * MB, 3500 * MB)
    assert (peaks.gpu_utilization_sum_percent, peaks.gpu_with_job_sum_percent) == (70.0, 100.0)
    assert [gpu.uuid for gpu in peaks.gpus] == ["GPU-0", "GPU-1"]
    assert [peak.name for peak in peaks.gpu_processes] == ["job", "job", "job"]
    assert len(account.sample().gpus) == len(account.totals().gpu_counters) == 2
    account.start_interval()
    assert account.sample().gpus[0].job_bytes == 0


def test_a_processs_own_high_water_mark_bounds_the_sums() -> None:
    """The driver recorded it, even if no reading did."""
    account = new_account()
    account.take(0.0, [process()])
    readings = gpu_readings(0.0, ("GPU-0", 3000, 10.0), GPU_0={ROOT: 1000})
    account.take_gpus(readings._replace(high_waters=(GpuHighWater("GPU-0", ROOT, 2500 * MB),)))

    assert account.peaks.gpu_bytes.main == account.peaks.gpu_bytes.combined == 2500 * MB


def test_a_driver_that_no_longer_answers_leaves_no_zero() -> None:
    """What the job held at last is not known; a peak that was seen is kept."""
    account, holder = new_account(), new_account()
    holdings: tuple[dict[int, int | None], ...] = ({}, {ROOT: 700})
    for one, held in zip((account, holder), holdings, strict=True):
        one.take(0.0, [process()])
        one.add_gpu(gpu(0))
        one.take_gpus(gpu_readings(0.0, ("GPU-0", 3000, 10.0), GPU_0=held))
        one.lose_gpus("nvidia")
        one.finish_gpus(has_ended=True)

    assert account.peaks.gpu_bytes.combined is None
    assert holder.peaks.gpu_bytes.combined == 700 * MB


def test_processes_are_known_from_first_to_last_reading() -> None:
    """Those that have ended, and those that still run."""
    account = new_account()
    account.take(0.0, [process(rss=10)])
    account.take(1.0, [process(rss=10), process(CHILD, ROOT, rss=20, peak=25, cpu_seconds=0.5)])
    account.take(3.0, [process(rss=30)])
    (gone,) = account.take_gone()
    (root,) = account.list_processes()

    assert (gone.pid, gone.parent_pid, gone.name, gone.first_seconds) == (CHILD, ROOT, "job", 1.0)
    assert (gone.cpu_seconds, gone.peak_ram_bytes) == (0.5, 25 * MB)
    assert (root.pid, root.first_seconds, root.last_seconds, root.peak_ram_bytes) == (ROOT, 0.0, 3.0, 30 * MB)
    assert account.take_gone() == []
    assert account.rss_bytes == {ROOT: 30 * MB}


def test_what_a_process_did_before_the_job_began_is_not_counted() -> None:
    """Its time, and its peak unless it rises above it; one that begins later counts from its birth."""
    account = Account(ROOT, RootFigures(60.0, 0.0), machine())
    old = process(101, ROOT, cpu_seconds=30.0, rss=50, peak=900, was_running_at_start=True)
    risen = process(102, ROOT, cpu_seconds=30.0, rss=50, peak=900, was_running_at_start=True)
    new = process(103, ROOT, cpu_seconds=1.5, rss=10, peak=20)
    root = process(cpu_seconds=60.0, rss=100, peak=700, was_running_at_start=True)
    account.take(0.0, [root, old, risen])
    account.take(1.0, [root, old._replace(rss_bytes=80 * MB), risen, new])
    account.take(
        5.0,
        [
            root._replace(cpu_seconds=61.0),
            old._replace(cpu_seconds=32.0),
            risen._replace(peak_rss_bytes=950 * MB),
            new,
        ],
    )

    known = {one.pid: (one.cpu_seconds, one.peak_ram_bytes // MB) for one in account.list_processes()}
    assert known == {ROOT: (1.0, 100), 101: (2.0, 80), 102: (0.0, 950), 103: (1.5, 20)}


def test_the_largest_processes_are_listed_with_the_root() -> None:
    """However small the root is."""
    account = new_account()
    workers = [process(CHILD + number, ROOT, rss=20 + number) for number in range(3)]
    account.take(1.0, [process(rss=10), *workers])

    assert [one.pid for one in account.list_largest(3)] == [ROOT, CHILD + 2, CHILD + 1]
    assert [one.pid for one in account.list_largest(1)] == [ROOT]


def test_what_a_limit_counts_is_raised_by_spikes_that_no_reading_met() -> None:
    """Mapped files are not in it; what high-water marks have seen between two readings is."""
    account = new_account()
    account.take(0.0, [process(rss=500, file=400, peak=500)])
    account.take_limit_held(120 * MB)
    assert account.peaks.limit_held_bytes == 120 * MB

    account.take(1.0, [process(rss=500, file=400, peak=800)])
    account.take_limit_held(110 * MB)
    assert account.peaks.limit_held_bytes == 420 * MB

    account.take(2.0, [process(rss=700, file=600, peak=800)])
    account.take_limit_held(120 * MB)
    assert account.peaks.limit_held_bytes == 220 * MB

    account.finish(RootFigures(0.0, 0.0, largest_peak_bytes=900 * MB))
    assert account.peaks.limit_held_bytes == 320 * MB


def test_a_spike_that_ends_between_the_readings_of_tree_and_limit_is_counted() -> None:
    """The tree is read while the job frees its memory, the limit when it is free."""
    account = new_account()
    for at, (rss, peak, held) in enumerate(((52, 52, 60), (88, 172, 62), (52, 172, 60))):
        account.take(float(at), [process(rss=rss, peak=peak)])
        account.take_limit_held(held * MB)

    assert account.peaks.limit_held_bytes == 180 * MB


def test_a_limit_has_never_counted_more_than_its_own_peak() -> None:
    """Without a limit there is nothing to count."""
    account = new_account()
    account.take(0.0, [process(rss=500)])
    account.cap_limit_held(1)
    account.finish(None)
    assert account.peaks.limit_held_bytes is None

    account.take_limit_held(600 * MB)
    account.cap_limit_held(None)
    account.cap_limit_held(700 * MB)
    assert account.peaks.limit_held_bytes == 600 * MB
    account.cap_limit_held(550 * MB)
    assert account.peaks.limit_held_bytes == 550 * MB


def test_the_energy_of_the_machine_is_in_samples_and_totals() -> None:
    """Since the first reading."""
    account = new_account()
    account.take_energy(0.0, [EnergyReading("0", PROCESSOR_METER, 5.0)])
    account.take_energy(1.0, [EnergyReading("0", PROCESSOR_METER, 8.0)])

    assert account.totals().energy == account.sample().energy == MachineEnergy(3.0, None, 1.0)


def test_devices_that_are_polled_are_named_once() -> None:
    """By the account of the devices."""
    account = new_account()
    assert account.take_gpu_estimates() == ()


def test_a_vendor_that_has_told_nothing_was_never_read() -> None:
    """Nor can any other figure of it be known."""
    account = Account(ROOT, None, machine(0.0))

    assert not account.has_read_gpus("nvidia")


def test_faults_of_devices_are_told_through_the_account() -> None:
    """When they happen, and how often at the end."""
    account = Account(ROOT, RootFigures(0.0, 0.0), machine())
    account.add_gpu(Gpu(0, "GPU-0", "A", None))
    told = account.take_gpu_faults([GpuFault("GPU-0", "Xid", 31, 2.0)] * 2)

    assert [(at, kind) for at, kind, _ in told] == [(2.0, "gpu_error")]
    assert account.list_gpu_faults() == [("note", "GPU 0: Xid 31 was reported 2 times in all.")]


def test_sharing_is_read_of_a_job_that_has_no_main_process() -> None:
    """As one that is tracked on a whole node: all of its processes are descendants of nobody."""
    account = new_account()
    readings = [process(CHILD, 1, rss=500), process(CHILD + 1, CHILD, rss=500, is_forked_copy=True)]
    sharing = SharingReading(375 * MB, 375 * MB, 250 * MB)
    account.take(0.0, readings)
    account.take_sharing(readings, {CHILD: sharing, CHILD + 1: sharing})

    assert account.peaks.ram.combined.total_bytes == 750 * MB
    assert account.peaks.ram.main.total_bytes == 0
