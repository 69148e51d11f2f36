"""Several ranks as one job."""

from __future__ import annotations

import pytest

from builders import MB, totals
from gpu_tracker.model import Peaks, ProcessTotals, RamPeak
from recorded import join, on_gpu, rank, run, window


def test_time_is_from_the_first_start_to_the_last_end() -> None:
    """And CPU time is added up."""
    combined = join(rank(5, pid=1), rank(0, pid=2), rank(8, pid=3))

    assert (combined.seconds, combined.cpu_seconds) == (18.0, 30.0)
    assert combined.mean_cores == pytest.approx(30 / 18)
    assert [part.begin_seconds for part in combined.ranks] == [5.0, 0.0, 8.0]


def test_memory_is_added_up_where_runs_overlap() -> None:
    """The sum is the most it can have been, the largest the least."""
    (host,) = join(rank(0, 500, pid=1), rank(5, 400, pid=2), rank(30, 300, pid=3)).hosts

    assert (host.ram_at_least_bytes, host.ram_sum_bytes, host.ram_at_most_bytes) == (
        500 * MB,
        900 * MB,
        900 * MB,
    )


def test_the_machine_bounds_the_sum() -> None:
    """What it did not have in use, the job did not hold; but a tree held what it held."""
    (host,) = join(rank(0, 1500, pid=1), rank(0, 1500, pid=2)).hosts
    (full,) = join(rank(0, 2500, pid=1), rank(0, 2500, pid=2)).hosts
    unknown = run(totals=totals(peaks=Peaks(combined_ram=RamPeak(5 * MB))))
    (untold,) = join(unknown).hosts

    assert (host.ram_sum_bytes, host.ram_at_most_bytes) == (3000 * MB, 2000 * MB)
    assert (full.ram_sum_bytes, full.ram_at_most_bytes) == (5000 * MB, 2500 * MB)
    assert untold.ram_at_most_bytes == 5 * MB


def test_peaks_at_different_times_are_not_added_up() -> None:
    """One grows while the other shrinks."""
    held = totals().peaks._replace(combined_ram=RamPeak(900 * MB, 900 * MB, 0))
    early = rank(0, 900, 40.0, pid=1, samples=(window(10.0, 900), window(40.0, 100, peaks=held)))
    late = rank(0, 900, 40.0, pid=2, samples=(window(20.0, 100), window(40.0, 900)))
    (host,) = join(early, late).hosts

    assert host.ram_sum_bytes == 1000 * MB


def test_a_peak_that_only_the_kernel_saw_counts_in_its_window() -> None:
    """Or at the end, if nobody knew before."""
    spike = Peaks(combined_ram=RamPeak(800 * MB, 0, 0))
    seen = rank(0, 800, samples=(window(10.0, 100, peaks=spike),), pid=1)
    at_end = rank(0, 700, samples=(window(10.0, 100),), pid=2)
    (host,) = join(seen, at_end).hosts

    assert host.ram_sum_bytes == 1500 * MB


def test_hosts_are_apart() -> None:
    """By the name in the header; their RAM is added up in the total."""
    combined = join(rank(0, 500, host="b"), rank(0, 400, host="a"))

    assert [(host.name, host.ranks, host.ram_sum_bytes) for host in combined.hosts] == [
        ("a", 1, 400 * MB),
        ("b", 1, 500 * MB),
    ]
    assert (combined.ram_at_least_bytes, combined.ram_at_most_bytes) == (500 * MB, 900 * MB)
    assert [note[:40] for note in combined.notes] == ["When a recording began is known to the s"]
    assert join(rank(seconds=30.0, host="b"), rank(seconds=30.0, host="a")).notes == ()


def test_a_device_that_several_ranks_share_is_one_device() -> None:
    """What each of them held there is added up; its energy is not."""
    combined = join(on_gpu(1), on_gpu(2), rank(pid=3))
    ((device,),) = [host.gpus for host in combined.hosts]

    assert (device.uuid, device.job_bytes, device.used_bytes) == ("GPU-0", 4000 * MB, 3000 * MB)
    assert (device.mean_percent, device.energy_joules) == (50.0, 2500.0)
    assert (combined.gpu_bytes, combined.energy_joules) == (4000 * MB, 2500.0)


def test_devices_of_two_hosts_are_two_even_if_they_are_called_the_same() -> None:
    """Their energy is added up."""
    assert join(on_gpu(1, "a"), on_gpu(1, "b")).energy_joules == 5000.0


def test_what_a_device_does_not_tell_is_not_known() -> None:
    """And one that nobody of the job was on is left out."""
    assert join(on_gpu(1, job=None)).gpu_bytes is None
    assert join(on_gpu(1, has_job=False)).hosts[0].gpus == ()


def test_ranks_are_told_by_their_spread() -> None:
    """How far the largest is above the mean is what an even spread would save."""
    combined = join(rank(seconds=10.0, pid=1), rank(seconds=10.0, pid=2), rank(seconds=40.0, pid=3))
    time = combined.balance[0]

    assert (time.smallest, time.median, time.largest, time.imbalance_percent) == (10.0, 10.0, 40.0, 100.0)
    assert "energy" not in {balance.quantity.name for balance in combined.balance}


def test_a_job_that_did_nothing_is_no_division_by_nothing() -> None:
    """Its imbalance is not known."""
    combined = join(rank(seconds=0.0, samples=()))

    assert combined.mean_cores == 0.0
    assert combined.balance[0].imbalance_percent is None


def test_a_worker_that_its_launchers_recording_holds_too_is_counted_once() -> None:
    """And it is said."""
    worker = ProcessTotals(7, 1, "python", 0.0, 10.0, 5.0, 5)
    launcher = rank(0, 800, pid=1, processes=(worker,))
    combined = join(rank(0, 300, pid=7), launcher, rank(0, 300, pid=7, host="other"))

    assert [part.part_of for part in combined.ranks] == ["1", "", ""]
    assert [(host.name, host.ram_sum_bytes) for host in combined.hosts] == [
        ("node1", 800 * MB),
        ("other", 300 * MB),
    ]
    assert combined.notes[0].startswith("0 is part of 1, which measured its processes too")


def test_two_recordings_of_one_process_are_counted_once() -> None:
    """The one inside is in the one around it; the one around it is not in the one inside."""
    combined = join(rank(pid=1), rank(pid=1))

    assert [part.part_of for part in combined.ranks] == ["1", ""]


def test_what_must_be_known_before_believing_is_noted() -> None:
    """Sharing, missing ends, missing beginnings, runs that did not overlap."""
    undated = rank(pid=3)._replace(header=rank(pid=3).header._replace(started_at="?"))
    notes = " ".join(join(rank(0, pid=1), rank(40, pid=2, end=None), undated).notes)

    assert "cannot tell what they share" in notes
    assert "killed or still running: 1." in notes
    assert "taken to have begun with the first" in notes
    assert "Not all of these ran at the same time." in notes
    assert join(undated).seconds == 10.0
