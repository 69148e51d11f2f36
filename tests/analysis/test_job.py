"""Several ranks as one job."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from builders import MB, together, totals
from gpu_tracker.core.model import End, Peaks, ProcessTotals, RamPeak
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
    unknown = run(totals=totals(peaks=Peaks(ram=together(RamPeak(5 * MB)))))
    (untold,) = join(unknown).hosts

    assert (host.ram_sum_bytes, host.ram_at_most_bytes) == (3000 * MB, 2000 * MB)
    assert (full.ram_sum_bytes, full.ram_at_most_bytes) == (5000 * MB, 2500 * MB)
    assert untold.ram_at_most_bytes == 5 * MB


def test_peaks_at_different_times_are_not_added_up() -> None:
    """One grows while the other shrinks."""
    held = totals().peaks._replace(ram=together(RamPeak(900 * MB, 900 * MB, 0)))
    early = rank(0, 900, 40.0, pid=1, samples=(window(10.0, 900), window(40.0, 100, peaks=held)))
    late = rank(0, 900, 40.0, pid=2, samples=(window(20.0, 100), window(40.0, 900)))
    (host,) = join(early, late).hosts

    assert host.ram_sum_bytes == 1000 * MB


def test_a_peak_that_only_the_kernel_saw_counts_in_its_window() -> None:
    """Or at the end, if nobody knew before."""
    spike = Peaks(ram=together(RamPeak(800 * MB, 0, 0)))
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
    assert "energy" not in {balance.figure.name for balance in combined.balance}


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


def test_ranks_that_have_the_same_number_in_their_containers_are_all_counted() -> None:
    """Who has started a process knows its exit code, so two who do have started two."""
    processes = (ProcessTotals(7, 1, "python", 0.0, 10.0, 9.0, 5),)
    combined = join(*(rank(0, ram, pid=7, processes=processes) for ram in (500, 400)))
    trackers = join(*(rank(0, ram, pid=7, exit_code=None) for ram in (500, 400)))

    assert [part.part_of for part in (*combined.ranks, *trackers.ranks)] == ["", "", "", ""]
    assert combined.hosts[0].ram_sum_bytes == 900 * MB


def test_a_tracker_inside_a_job_that_is_tracked_is_counted_once() -> None:
    """It was stopped. One that began when the job had long ended, or was killed, may be of any process."""
    job = rank(0, 500, 10.0, pid=7)
    inside, later = (rank(start, pid=7, end=End("stopped", None, totals(), 0.0, 0)) for start in (2, 40))
    combined = join(inside, job, later, rank(2, 300, 5.0, pid=7, end=None))

    assert [part.part_of for part in combined.ranks] == ["1", "", "", ""]


def test_a_process_of_the_same_number_is_a_worker_only_if_time_and_parent_fit() -> None:
    """The number may have been given to somebody else, before or in a container."""
    worker = ProcessTotals(7, 2, "python", 0.0, 3.0, 5.0, 5)
    launcher = rank(0, 800, 30.0, pid=1, processes=(ProcessTotals(2, 1, "sh", 0.0, 30.0, 0.1, 5), worker))
    fits = rank(1, pid=7, processes=(worker,))
    elsewhere = rank(1, pid=7, processes=(worker._replace(parent_pid=1),))

    assert join(launcher, fits).ranks[1].part_of == "0"
    assert join(launcher, elsewhere).ranks[1].part_of == ""
    assert join(launcher, rank(15, pid=7)).ranks[1].part_of == ""


@pytest.mark.parametrize("impossible", [-1e12, 1e7, 9e18])
def test_a_window_that_was_never_there_counts_nowhere(impossible: float) -> None:
    """Neither does it take for ever to walk through."""
    samples = (window(impossible, 900), window(2.0, 400), window(10.0, 300))
    combined = join(rank(0, 400, pid=1, samples=samples), rank(0, 500, pid=2))

    assert combined.hosts[0].ram_sum_bytes == 900 * MB


def test_a_run_of_all_time_is_walked_through_in_few_steps() -> None:
    """Whatever a file says."""
    assert join(rank(0, 400, 9e18, pid=1), rank(0, 500, pid=2)).hosts[0].ram_sum_bytes == 900 * MB


def test_thousands_of_processes_in_many_ranks_are_looked_through_once() -> None:
    """How often they are asked for does not grow with the ranks."""
    processes = _Counted([ProcessTotals(pid, 1, "sh", 0.0, 9.0, 0.0, 5) for pid in range(1000, 1100)])
    join(*(rank(pid=number, processes=processes) for number in range(40)))

    assert processes.walks == 40


def test_many_names_are_a_few_and_a_number() -> None:
    """Of copies and of those without an end."""
    notes = join(*(rank(end=None) for _ in range(9))).notes

    assert len([note for note in notes if "is part of" in note]) == 5
    assert "And 3 more are part of others in the same way." in notes
    assert "Without an end, killed or still running: 0, 1, 2, 3, 4 and 4 more." in notes


class _Counted(list[ProcessTotals]):
    """Processes that know how often somebody walked through them."""

    walks = 0

    def __iter__(self) -> Iterator[ProcessTotals]:
        self.walks += 1
        return super().__iter__()


def test_what_must_be_known_before_believing_is_noted() -> None:
    """Sharing, missing ends, missing beginnings, runs that did not overlap."""
    undated = rank(pid=3)._replace(header=rank(pid=3).header._replace(started_at="?"))
    notes = " ".join(join(rank(0, pid=1), rank(40, pid=2, end=None), undated).notes)

    assert "cannot tell what they share" in notes
    assert "killed or still running: 1." in notes
    assert "taken to have begun with the first" in notes
    assert "Not all of these ran at the same time." in notes
    assert join(undated).seconds == 10.0
