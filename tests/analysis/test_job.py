"""Several ranks as one job."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from builders import MB, together, totals
from gpu_tracker.analysis.job_measures import join_ranks, list_missing
from gpu_tracker.analysis.measures import measure
from gpu_tracker.core.model import (
    NO_PROCESS,
    UNREAD,
    End,
    Event,
    Identity,
    MachineEnergy,
    MetricRow,
    Peaks,
    ProcessTotals,
    RamPeak,
    RecordingData,
    Totals,
)
from recorded import interval, join, lost_run, on_gpu, part, rank, run


def test_time_is_from_the_first_start_to_the_last_end() -> None:
    """And CPU time is added up."""
    combined = join(rank(5, pid=1), rank(0, pid=2), rank(8, pid=3))

    assert (combined.values["time"], combined.values["cpu_time"]) == (18.0, 30.0)
    assert combined.values["mean_cores"] == pytest.approx(30 / 18)
    assert [part.begin_seconds for part in combined.ranks] == [5.0, 0.0, 8.0]


def test_work_that_was_done_elsewhere_is_noted() -> None:
    """Once, and nothing bounds what the job held."""
    ranks = [rank(pid=pid) for pid in (1, 2)]
    launchers = [one._replace(header=one.header._replace(command=("srun", "train"))) for one in ranks]
    combined = join(*launchers)

    assert sum(note.startswith("srun has its work done elsewhere") for note in combined.notes) == 1
    assert combined.ram_at_most_bytes is None
    assert all("cpu_time" in one.at_least for one in combined.ranks)


def test_memory_is_added_up_where_runs_overlap() -> None:
    """The sum is an upper bound, the largest a lower bound."""
    (host,) = join(rank(0, 500, pid=1), rank(5, 400, pid=2), rank(30, 300, pid=3)).hosts

    assert (host.ram_at_least_bytes, host.ram_sum_bytes, host.ram_at_most_bytes) == (
        500 * MB,
        900 * MB,
        900 * MB,
    )


def test_the_machine_bounds_the_sum() -> None:
    """The job cannot hold more than the machine uses, nor less than one tree."""
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
    early = rank(0, 900, 40.0, pid=1, samples=(interval(10.0, 900), interval(40.0, 100, peaks=held)))
    late = rank(0, 900, 40.0, pid=2, samples=(interval(20.0, 100), interval(40.0, 900)))
    (host,) = join(early, late).hosts

    assert host.ram_sum_bytes == 1000 * MB


def test_a_peak_from_the_kernel_counts_in_its_interval() -> None:
    """Or at the end, if it was only read then."""
    spike = Peaks(ram=together(RamPeak(800 * MB, 0, 0)))
    seen = rank(0, 800, samples=(interval(10.0, 100, peaks=spike),), pid=1)
    at_end = rank(0, 700, samples=(interval(10.0, 100),), pid=2)
    (host,) = join(seen, at_end).hosts

    assert host.ram_sum_bytes == 1500 * MB


def test_hosts_are_listed_separately() -> None:
    """By the name in the header; their RAM is added up in the total."""
    combined = join(rank(0, 500, host="b"), rank(0, 400, host="a"))

    assert [(host.name, host.ranks, host.ram_sum_bytes) for host in combined.hosts] == [
        ("a", 1, 400 * MB),
        ("b", 1, 500 * MB),
    ]
    assert (combined.ram_at_least_bytes, combined.ram_at_most_bytes) == (500 * MB, 900 * MB)
    assert [note[:40] for note in combined.notes] == ["Recordings are compared in steps of a se"]
    assert join(rank(seconds=30.0, host="b"), rank(seconds=30.0, host="a")).notes == ()


def test_a_device_that_several_ranks_share_is_one_device() -> None:
    """What each of them held there is added up; its energy is not."""
    combined = join(on_gpu(1, job=1200), on_gpu(2, job=1200), rank(pid=3))
    ((device,),) = [host.gpus for host in combined.hosts]

    assert (device.uuid, device.job_bytes, device.used_bytes) == ("GPU-0", 2400 * MB, 3000 * MB)
    assert (device.mean_percent, device.energy_joules) == (50.0, 2500.0)
    assert (combined.values["peak_gpu_ram"], combined.values["energy"]) == (2400 * MB, 2500.0)


def test_ranks_hold_no_more_of_a_device_than_all_processes() -> None:
    """Their intervals are known to the second only, so one may seem to hold what the other has just freed."""
    bounded = join(on_gpu(1, job=2000), on_gpu(2, job=2000))
    alone = join(on_gpu(1, job=3500), on_gpu(2, job=100))
    (counters,) = (one := on_gpu(1)).totals.gpu_counters
    unsure = one._replace(
        totals=one.totals._replace(gpu_counters=(counters._replace(used_bytes_unknown_seconds=9.0),))
    )

    assert bounded.values["peak_gpu_ram"] == 3000 * MB
    assert alone.values["peak_gpu_ram"] == 3500 * MB
    assert join(unsure, on_gpu(2)).values["peak_gpu_ram"] == 4000 * MB


def test_devices_of_two_hosts_are_different_even_with_one_uuid() -> None:
    """Their energy is added up."""
    assert join(on_gpu(1, "a"), on_gpu(1, "b")).values["energy"] == 5000.0


def test_an_unreported_figure_of_a_device_is_not_known() -> None:
    """And a device that no rank used is left out."""
    assert join(on_gpu(1, job=None)).values["peak_gpu_ram"] is None
    assert join(on_gpu(1), on_gpu(2, job=None)).values["peak_gpu_ram"] is None
    assert join(on_gpu(1, "a"), on_gpu(1, "b", job=None)).values["peak_gpu_ram"] is None
    assert join(on_gpu(1, has_job=False)).hosts[0].gpus == ()


def test_devices_that_a_rank_could_not_read_are_in_no_sum() -> None:
    """A driver that hangs on one node must not make the job look smaller."""
    blind = rank(pid=2, host="b", events=(Event(1.0, UNREAD, "nvidia"),))
    combined = join(on_gpu(1, "a"), blind)
    values = combined.values

    assert (values["peak_gpu_ram"], values["energy"], values["gpu_utilization"]) == (None, None, None)
    assert combined.notes[0] == "GPUs could not be measured by 1: their sums are not known."
    many = join(*(rank(pid=number, events=blind.events) for number in range(7)))
    assert many.notes[0].startswith("GPUs could not be measured by 0, 1, 2, 3, 4 and 2 more: ")


def test_balance_shows_the_spread_of_ranks() -> None:
    """Smallest, median, largest, and how far the largest is above the mean."""
    combined = join(rank(seconds=10.0, pid=1), rank(seconds=10.0, pid=2), rank(seconds=40.0, pid=3))
    time = combined.balance[0]

    assert (time.smallest, time.median, time.largest, time.imbalance_percent) == (10.0, 10.0, 40.0, 100.0)
    assert "energy" not in {balance.figure.name for balance in combined.balance}


def test_a_figure_of_zero_has_no_imbalance() -> None:
    """Rather than a division by zero."""
    combined = join(rank(seconds=0.0, samples=()))

    assert combined.values["mean_cores"] is None
    assert combined.balance[0].imbalance_percent is None


def test_a_worker_that_is_in_its_launchers_recording_is_counted_once() -> None:
    """With a note."""
    worker = ProcessTotals(7, 1, "python", 0.0, 10.0, 5.0, 5)
    launcher = rank(0, 800, pid=1, processes=(worker,))
    combined = join(rank(0, 300, pid=7), launcher, rank(0, 300, pid=7, host="other"))

    assert [part.part_of for part in combined.ranks] == ["1", "", ""]
    assert [(host.name, host.ram_sum_bytes) for host in combined.hosts] == [
        ("node1", 800 * MB),
        ("other", 300 * MB),
    ]
    assert combined.notes[0].startswith("0 is part of 1, which includes its processes; it is in no sum.")


def test_a_copy_is_counted_once() -> None:
    """It is no rank, and in no sum."""
    combined = join(rank(pid=1), rank(pid=1), rank(pid=2))

    assert [part.name for part in combined.ranks] == ["0", "2"]
    assert combined.hosts[0].ram_sum_bytes == 1000 * MB
    assert "Counted once: 1 is of the same run as 0." in combined.notes


def test_what_overlapping_trackers_of_a_process_saw_is_a_lower_bound() -> None:
    """Only the larger is counted, which is without some of the time; never both."""
    known = Identity(boot_id="b")
    first, second = (
        made._replace(header=made.header._replace(identity=known))
        for made in (rank(0, 300, 10.0, pid=7, exit_code=None), rank(5, 500, 12.0, pid=7, exit_code=None))
    )
    combined = join(first, second)
    host = combined.hosts[0]

    assert combined.values["time"] == 17.0
    assert combined.values["cpu_time"] == second.totals.cpu_seconds.combined
    assert combined.at_least == ("cpu_time", "mean_cores")
    assert (host.ram_at_least_bytes, host.ram_at_most_bytes) == (500 * MB, None)
    assert combined.notes[0] == (
        "0 and 1 are of the same process and overlap in part: only 1 is counted, so what the process used is at least that."
    )


def test_a_lower_bound_of_a_rank_is_one_of_the_job() -> None:
    """Unless it is in another."""
    lacking = rank(pid=2, events=(Event(5.0, "unreaped", "CPU time is a lower bound."),))
    around = rank(pid=1, processes=(ProcessTotals(2, 1, "python", 0.0, 10.0, 1.0, 5),))

    assert join(rank(pid=1), rank(pid=3)).at_least == ()
    assert join(rank(pid=1), lacking).at_least == ("cpu_time", "mean_cores")
    assert join(around, lacking).at_least == ()


def test_ranks_with_the_same_pid_in_their_containers_are_all_counted() -> None:
    """Only the parent knows an exit code, so two of them mean two processes."""
    processes = (ProcessTotals(7, 1, "python", 0.0, 10.0, 9.0, 5),)
    combined = join(*(rank(0, ram, pid=7, processes=processes) for ram in (500, 400)))
    trackers = join(*(rank(0, ram, pid=7, exit_code=None) for ram in (500, 400)))

    assert [part.part_of for part in (*combined.ranks, *trackers.ranks)] == ["", "", "", ""]
    assert combined.hosts[0].ram_sum_bytes == 900 * MB


def test_a_tracker_inside_a_tracked_job_is_counted_once() -> None:
    """If it was stopped, or saw the process end. One that was killed, or began after the job, may be of any process."""
    job = rank(0, 500, 10.0, pid=7)
    inside, later = (rank(start, pid=7, end=End("stopped", None, totals(), 0.0, 0)) for start in (2, 40))
    attached = rank(3, pid=7, end=End("ended", 0, totals(), 0.0, 0))
    combined = join(inside, job, later, rank(2, 300, 5.0, pid=7, end=None), attached)

    assert [part.part_of for part in combined.ranks] == ["1", "", "", "", "1"]


def test_a_process_with_the_same_pid_is_a_worker_only_if_time_and_parent_fit() -> None:
    """The pid may have been reused, or be from a container."""
    worker = ProcessTotals(7, 2, "python", 0.0, 3.0, 5.0, 5)
    launcher = rank(0, 800, 30.0, pid=1, processes=(ProcessTotals(2, 1, "sh", 0.0, 30.0, 0.1, 5), worker))
    fits = rank(1, pid=7, processes=(worker,))
    elsewhere = rank(1, pid=7, processes=(worker._replace(parent_pid=1),))

    assert join(launcher, fits).ranks[1].part_of == "0"
    assert join(launcher, elsewhere).ranks[1].part_of == ""
    assert join(launcher, rank(15, pid=7)).ranks[1].part_of == ""


@pytest.mark.parametrize("impossible", [-1e12, 1e7, 9e18])
def test_an_impossible_interval_is_ignored(impossible: float) -> None:
    """And costs no time."""
    samples = (interval(impossible, 900), interval(2.0, 400), interval(10.0, 300))
    combined = join(rank(0, 400, pid=1, samples=samples), rank(0, 500, pid=2))

    assert combined.hosts[0].ram_sum_bytes == 900 * MB


def test_an_absurdly_long_run_takes_few_steps() -> None:
    """Whatever a file says."""
    assert join(rank(0, 400, 9e18, pid=1), rank(0, 500, pid=2)).hosts[0].ram_sum_bytes == 900 * MB


def test_processes_of_each_rank_are_read_twice() -> None:
    """For what they start elsewhere and for which recordings are part of others, however many ranks there are."""
    processes = _Counted([ProcessTotals(pid, 1, "sh", 0.0, 9.0, 0.0, 5) for pid in range(1000, 1100)])
    join(*(rank(pid=number, processes=processes) for number in range(40)))

    assert processes.walks == 2 * 40


def test_many_names_are_shortened_to_a_few_and_a_number() -> None:
    """Of workers and of incomplete recordings."""
    workers = tuple(ProcessTotals(pid, 1, "python", 0.0, 10.0, 5.0, 5) for pid in range(2, 10))
    notes = join(rank(pid=1, processes=workers), *(rank(pid=pid, end=None) for pid in range(2, 10))).notes

    assert len([note for note in notes if "is part of" in note]) == 5
    assert "3 more are part of others in the same way." in notes
    assert "Incomplete (killed or still running): 1, 2, 3, 4, 5 and 3 more." in notes


class _Counted(list[ProcessTotals]):
    """Processes that count how often they are iterated."""

    walks = 0

    def __iter__(self) -> Iterator[ProcessTotals]:
        self.walks += 1
        return super().__iter__()


def test_notes_say_what_weakens_the_figures() -> None:
    """Shared memory, missing ends, missing start times, runs that did not overlap."""
    undated = rank(pid=3)._replace(header=rank(pid=3).header._replace(started_at="?"))
    notes = " ".join(join(rank(0, pid=1), rank(40, pid=2, end=None), undated).notes)

    assert "Memory shared between recordings is not known" in notes
    assert "Incomplete (killed or still running): 1." in notes
    assert "taken to have started with the first" in notes
    assert "These did not all run at the same time." in notes
    assert join(undated).values["time"] == 10.0


def test_memory_that_was_never_read_is_not_known() -> None:
    """Not 0."""
    unread = rank()
    combined = join(unread._replace(totals=unread.totals._replace(peaks=Peaks()), samples=()))
    (host,) = combined.hosts

    assert (
        combined.values["peak_ram"] is combined.values["peak_gpu_ram"] is combined.ram_at_most_bytes is None
    )
    assert host[3:7] == (None, None, None, None)
    assert join(rank()).values["peak_ram"] == join(rank()).ram_at_most_bytes == 500 * MB


def test_the_meters_of_a_host_are_counted_once() -> None:
    """All ranks on it have read the same ones; hosts add up."""
    first, second = (totals(energy=MachineEnergy(joules, 50.0)) for joules in (100.0, 120.0))
    combined = join(
        rank(pid=1, totals=first),
        rank(pid=2, totals=second),
        rank(host="node2", totals=first),
        rank(host="node3"),
    )

    assert [host.machine_joules for host in combined.hosts] == [170.0, 150.0, None]
    assert [host.unmetered_seconds for host in combined.hosts] == [0.0, 0.0, 0.0]
    assert combined.machine_joules == 320.0
    assert combined.carbon is None


def test_what_was_not_measured_all_the_time_has_no_upper_bound() -> None:
    """Neither on its host nor in all; other hosts have theirs."""
    lost = lost_run(header={"host": "node1"})
    combined = join(lost, rank(host="node2", pid=2))

    assert [host.ram_at_most_bytes is None for host in combined.hosts] == [True, False]
    assert (combined.ram_at_least_bytes, combined.ram_at_most_bytes) == (500 * MB, None)
    assert combined.values["peak_ram"] is None
    assert [one.at_least for one in combined.ranks] == [("cpu_time", "mean_cores", "peak_ram"), ()]
    least = [one.figure.name for one in combined.balance if one.is_at_least]
    assert least == ["cpu_time", "mean_cores", "peak_ram"]


def test_the_job_tells_which_ranks_are_missing() -> None:
    """If all agree on how many there are, and are of one job."""

    def part(number: int, **fields: Any) -> RecordingData:
        made = rank(pid=number + 1)
        known: dict[str, Any] = {
            "scheduler": "slurm",
            "job": "7",
            "rank": number,
            "ranks": 4,
            "node": f"n{number % 2}",
            **fields,
        }
        return made._replace(header=made.header._replace(identity=Identity(**known)))

    whole = join(*(part(number) for number in (0, 1, 3)))
    others = join(part(0), part(1, job="8"))
    unequal = join(part(0), part(1, ranks=8))

    assert (whole.job.scheduler, whole.job.jobs, whole.job.missing_ranks) == ("slurm", ("7",), (2,))
    assert {balance.largest_rank for balance in whole.balance} <= {f"rank {n} on n{n % 2}" for n in (0, 1, 3)}
    assert (others.job.jobs, others.job.ranks, others.job.missing_ranks) == (("7", "8"), None, ())
    assert (unequal.job.ranks, unequal.job.missing_ranks) == (None, ())


def pod(index: int) -> RecordingData:
    """One of an indexed job of Kubernetes, which does not tell how many there are."""
    made = rank(pid=1, host=f"pod{index}")
    known = Identity(scheduler="kubernetes", launcher="kubernetes", rank=index)
    return made._replace(header=made.header._replace(identity=known))


def test_a_hole_among_the_ranks_is_a_missing_rank() -> None:
    """However many there should be: no gate passes the others as all of them."""
    lacking, whole = [pod(index) for index in (0, 1, 3)], [pod(index) for index in (0, 1, 2)]
    named = [(f"{number}", one) for number, one in enumerate(lacking)]

    assert (join(*lacking).job.ranks, join(*lacking).job.missing_ranks) == (None, (2,))
    assert list_missing(named) == ["no recording of rank 2"]
    assert (
        join_ranks(join(*lacking), [measure(one) for one in lacking]).incomplete == "no recording of rank 2"
    )
    assert join(*whole).job.missing_ranks == ()


def of_two(number: int, host: str = "node1", **fields: Any) -> RecordingData:
    """One of two ranks of a job."""
    made = rank(pid=number + 1, host=host, **fields)
    return made._replace(
        header=made.header._replace(identity=Identity(job="7", rank=number, ranks=2, nodes=1))
    )


def test_what_a_job_used_without_a_rank_or_an_end_is_a_lower_bound() -> None:
    """Also of its machines: of one of them, if it is known on which something is missing."""
    whole, lacking = join(of_two(0), of_two(1)), join(of_two(0))
    killed = join(of_two(0), of_two(1, "node2", end=None))
    running = join(of_two(0), of_two(1, end=None, is_running=True))

    assert [one.at_least for one in (whole, running)] == [(), ()]
    assert lacking.at_least == ("cpu_time", "mean_cores", "peak_ram")
    assert killed.at_least == ("cpu_time", "mean_cores")
    assert [[host.is_cpu_least for host in one.hosts] for one in (whole, lacking, killed)] == [
        [False],
        [True],
        [False, True],
    ]


def test_who_follows_the_whole_job_has_measured_ranks_without_a_recording() -> None:
    """On each of its machines."""
    followed = [rank(pid=NO_PROCESS, host=host) for host in ("node1", "node2")]
    followed = [
        one._replace(header=one.header._replace(identity=Identity(job="7", nodes=2))) for one in followed
    ]
    of_both = of_two(0)._replace(
        header=of_two(0).header._replace(identity=Identity(job="7", rank=0, ranks=2, nodes=2))
    )

    assert join(followed[0], of_both).at_least != ()
    assert join(*followed, of_both).at_least == ()


def in_regions(number: int, host: str = "node1", **seconds: float) -> RecordingData:
    """A rank that spent that many seconds in each region."""
    made = rank(seconds=30.0, pid=number + 1, host=host)
    return made._replace(
        header=made.header._replace(identity=Identity(rank=number, ranks=4, node=host)),
        regions=tuple(part(number + 1, time, path=(name,)) for name, time in seconds.items()),
    )


def test_the_rank_that_held_up_the_others_is_named_by_its_region() -> None:
    """All ranks are as long and as busy: who waits for others spins."""
    ranks = [in_regions(number, compute=20.0 if number == 2 else 10.0, reduce=1.0) for number in range(4)]
    combined = join(*ranks)
    compute, reduce = (balance for balance in combined.balance if balance.region)
    whole = next(balance for balance in combined.balance if balance.figure.name == "time")

    assert (compute.region, compute.smallest, compute.median, compute.largest) == (
        "compute",
        10.0,
        10.0,
        20.0,
    )
    assert (compute.largest_rank, compute.ranks, compute.load_balance_percent) == ("rank 2 on node1", 4, 62.5)
    assert (reduce.region, reduce.load_balance_percent, whole.load_balance_percent) == ("reduce", 100, 100)
    assert combined.notes[0] == (
        "rank 2 on node1 spent 20 s in region 'compute', the median of 4 ranks is 10 s (load balance 62 %): "
        "the others may have waited for it."
    )


def test_who_waits_longest_is_not_who_is_waited_for() -> None:
    """It was the first at the barrier."""
    works = (3.0, 1.0, 5.0, 3.0)
    ranks = [in_regions(number, "n1", compute=work, reduce=6.0 - work) for number, work in enumerate(works)]

    assert join(*ranks).notes[0].startswith("rank 2 on n1 spent 5 s in region 'compute'")


def test_one_of_a_thousand_that_is_twice_as_slow_is_named() -> None:
    """By its region where the others wait for it, and by its own time where they do not."""
    waiting = [
        in_regions(number, f"n{number // 8}", compute=20.0 if number == 417 else 10.0, reduce=1.0)
        for number in range(1000)
    ]
    apart = [
        rank(seconds=20.0 if number == 417 else 10.0, pid=number + 1, host=f"n{number // 8}")
        for number in range(1000)
    ]
    apart = [
        one._replace(header=one.header._replace(identity=Identity(rank=number, ranks=1000)))
        for number, one in enumerate(apart)
    ]
    whole = next(balance for balance in join(*apart).balance if balance.figure.name == "time")

    assert (
        join(*waiting)
        .notes[0]
        .startswith(
            "rank 417 on n52 spent 20 s in region 'compute', the median of 1000 ranks is 10 s (load balance 50 %)"
        )
    )
    assert (whole.largest_rank, whole.median, whole.largest) == ("rank 417 on n52", 10.0, 20.0)
    assert whole.load_balance_percent == pytest.approx(50, abs=0.1)


@pytest.mark.parametrize(
    "seconds", [(10.0, 10.5), (0.01, 0.05), (10.0,)], ids=["a little longer", "too short to matter", "alone"]
)
def test_nobody_is_named_where_nobody_stands_out(seconds: tuple[float, ...]) -> None:
    """Nor a rank that is the only one with a region."""
    combined = join(*(in_regions(number, compute=time) for number, time in enumerate(seconds)))

    assert not any("may have waited" in note for note in combined.notes)
    assert [balance.region for balance in combined.balance if balance.region] == ["compute"]


def test_the_longest_regions_are_compared() -> None:
    """At most ten, by the time of all ranks."""
    combined = join(in_regions(0, "node1", **{f"r{number}": 1.0 + number for number in range(15)}))

    assert [balance.region for balance in combined.balance if balance.region] == [
        f"r{number}" for number in range(14, 4, -1)
    ]


def test_a_host_has_a_limit_and_cores() -> None:
    """As far as its recordings tell."""
    (host,) = join(rank(0, 500, pid=1), rank(5, 400, pid=2)).hosts
    allocation = rank().header.allocation

    assert (host.limit_bytes, host.limit_source) == (allocation.ram_bytes, allocation.ram_source)
    assert host.mean_cores == pytest.approx(20 / 15)
    assert host.machine_cores == allocation.machine_cores


def test_metrics_of_ranks_are_compared() -> None:
    """By what they were at the end, with the ranks that have the smallest and the largest; those that most have first."""
    logged = (
        [MetricRow(1.0, {"loss": 9.0}, 1), MetricRow(2.0, {"loss": last}, 2)] for last in (0.5, 0.25, 4.0)
    )
    ranks = [rank(pid=pid, metrics=tuple(rows)) for pid, rows in enumerate(logged, 1)]
    alone = rank(pid=4, metrics=(MetricRow(1.0, {"accuracy": 0.75}),))
    loss, accuracy = join(*ranks, alone).metrics

    assert (loss.name, loss.ranks, loss.not_finite) == ("loss", 3, ())
    assert (loss.smallest, loss.median, loss.largest) == (0.25, 0.5, 4.0)
    assert (loss.smallest_rank, loss.largest_rank) == ("1", "2")
    assert (accuracy.name, accuracy.ranks, accuracy.largest_rank) == ("accuracy", 1, "3")


def test_ranks_in_which_a_metric_became_nan_are_named() -> None:
    """It is in none of the other figures, of which there may be none then."""
    ranks = [
        rank(pid=pid, metrics=(MetricRow(1.0, {"loss": last, "norm": math.inf}),))
        for pid, last in enumerate((0.5, math.nan), 1)
    ]
    loss, norm = join(*ranks).metrics

    assert (loss.largest, loss.largest_rank, loss.not_finite) == (0.5, "0", ("1",))
    assert (norm.smallest, norm.median, norm.largest_rank, norm.not_finite) == (None, None, "", ("0", "1"))


def test_ranks_are_compared_even_if_who_started_them_is_recorded_too() -> None:
    """It is in the sums, but no rank; what a rank tracks of itself is not compared with it, but has the metrics and regions."""
    processes = tuple(ProcessTotals(pid, 1, "python", 0.0, 10.0, 1.0, MB) for pid in (2, 3))
    launcher, first, second = (
        one._replace(header=one.header._replace(identity=Identity(job="7", rank=number, ranks=number and 2)))
        for number, one in (
            (None, rank(pid=1, ram=900, processes=processes)),
            (1, rank(pid=2, ram=300, regions=(part(2, 3.0),))),
            (2, rank(pid=3, ram=500)),
        )
    )
    itself = run(
        9.0,
        regions=(part(3, 5.0),),
        metrics=(MetricRow(1.0, {"loss": 1.0}),),
        header={**second.header._asdict(), "started_at": "2026-01-31T12:00:00.500+00:00"},
    )
    itself = itself._replace(end=itself.end and itself.end._replace(reason="stopped", exit_code=None))
    combined = join(launcher, first, second, itself)
    balance = {(one.figure.name, one.region): one for one in combined.balance}

    assert [one.part_of for one in combined.ranks] == ["", "0", "0", "0"]
    assert (balance["peak_ram", ""].smallest, balance["peak_ram", ""].largest) == (300 * MB, 500 * MB)
    assert (balance["time", "step"].ranks, balance["time", "step"].largest) == (2, 5.0)
    assert [(one.name, one.ranks) for one in combined.metrics] == [("loss", 1)]


def test_a_rank_that_failed_is_told_whatever_its_launcher_says() -> None:
    """A script may go on; a tracked block that raised may have been expected to."""
    launcher = rank(pid=1, processes=(ProcessTotals(2, 1, "python", 0.0, 10.0, 1.0, MB),))
    inner = rank(pid=2)
    raised = inner._replace(end=inner.end and inner.end._replace(reason="raised", exit_code=None))
    cut = inner._replace(end=None)

    assert [
        join(launcher, one).job.state
        for one in (inner, raised, rank(pid=2, exit_code=-9), cut, rank(pid=2, exit_code=4))
    ] == ["completed", "completed", "killed or failed", "killed or failed", "failed"]


def test_ranks_of_which_nothing_was_read_have_no_time() -> None:
    """It is not known, as in their reports; as soon as one has a sample, it is."""
    nothing = run(end=None)._replace(totals=Totals())
    values, both = join(nothing).values, join(nothing, run()).values

    assert (values["time"], values["cpu_time"], values["mean_cores"]) == (None, None, None)
    assert both["time"] == 10.0
