"""What to ask for the next time, from what runs used."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from builders import MB, alone, found, gpu, gpu_totals, header, recording, together, totals
from gpu_tracker.analysis.sizing import HIGH, LOW, MEDIUM, Need, advise, find_need, lack_ranks, round_up
from gpu_tracker.core.columns import RamColumns, SampleColumns, StallColumns
from gpu_tracker.core.model import (
    SIGNAL,
    Allocation,
    Busiest,
    End,
    Event,
    GpuPeaks,
    Identity,
    Parts,
    PeakMoment,
    PeakProcess,
    Peaks,
    RamPeak,
    Stalls,
    Totals,
    TreeCounters,
    add_parts,
)
from gpu_tracker.reports.sizing_lines import format_slurm, format_used, format_words, is_lower_bound
from made_runs import made_run

GB = 10**9
MIB, GIB = 2**20, 2**30
HOUR = 3600.0
NO_LIMIT = (
    "Measured without a memory limit: what the kernel holds for the job in pipes and sockets, and files in /dev/shm "
    "that no process maps, are not in it. A run under a generous limit counts them."
)


def used(**fields: Any) -> Need:
    """A run of an hour that used one core and a gigabyte."""
    return Need(**{"seconds": HOUR, "memory_bytes": GB, "cores": 1.0, **fields})


def columns(
    cores: Sequence[float],
    ram: Sequence[float] | None = None,
    high: Sequence[float] | None = None,
    low: Sequence[float] | None = None,
    step: float = 1.0,
) -> SampleColumns:
    """Intervals of equal length."""
    number = len(cores)
    mean = array("d", ram or [5.0] * number)
    held = RamColumns(array("d", low or mean), mean, array("d", high or mean))
    busy, nothing = array("d", cores), array("d", [0.0] * number)
    return SampleColumns(
        start_seconds=array("d", (step * at for at in range(number))),
        read_since_seconds=array("d", (step * at for at in range(number))),
        end_seconds=array("d", (step * (at + 1) for at in range(number))),
        cpu_cores=Parts(busy, nothing, busy),
        machine_cores=busy,
        ram_bytes=Parts(held, held, held),
        machine_ram_bytes=mean,
        threads=nothing,
        processes=nothing,
        gpus={},
        read_bytes_per_second=nothing,
        written_bytes_per_second=nothing,
        waiting_threads=nothing,
        stalled=StallColumns(nothing, nothing, nothing, nothing),
    )


# ---- Memory.


@pytest.mark.parametrize(
    ("used_bytes", "advised"),
    [
        (10 * MIB, 12 * MIB),
        (99 * MIB, 120 * MIB),
        (3 * GIB, 3700 * MIB),
        (11 * GIB, 14 * GIB),
        (40 * GIB, 50 * GIB),
        (100 * GIB, 120 * GIB),
        (1000 * GIB, 1200 * GIB),
    ],
)
def test_memory_is_the_peak_and_a_fifth_in_round_numbers(used_bytes: int, advised: int) -> None:
    """The larger, the rounder."""
    amount = advise([used(memory_bytes=used_bytes)]).memory_bytes

    assert amount is not None
    assert (amount.advised, amount.used, amount.is_at_least) == (advised, used_bytes, False)


def test_many_runs_need_a_smaller_margin() -> None:
    """Five are many; the largest counts, and the spread is told."""
    sizing = advise([used(memory_bytes=size * GIB) for size in (90, 95, 100, 98, 97)])

    assert sizing.margin_percent == pytest.approx(15)
    assert sizing.memory_bytes is not None
    assert sizing.memory_bytes[:3] == (120 * GIB, 100 * GIB, 90 * GIB)
    assert sizing.confidence == MEDIUM
    assert advise([used()] * 5).confidence == HIGH
    assert advise([used()] * 2).confidence == MEDIUM
    assert advise([used()]).confidence == LOW
    assert advise([used(program="train"), used(program="make")]).confidence == LOW


@pytest.mark.parametrize(
    ("most", "words"), [(3e9, "it was at most 3 GB."), (math.inf, "Some of a run was not measured")]
)
def test_a_peak_that_is_not_known_gives_a_lower_bound(most: float, words: str) -> None:
    """As of many workers whose shared memory was read too rarely."""
    sizing = advise([used(memory_ceiling_bytes=most)])

    assert sizing.memory_bytes is not None
    assert sizing.memory_bytes.is_at_least
    assert words in sizing.notes[0]


def test_a_run_that_did_not_finish_gives_a_lower_bound() -> None:
    """Unless one that did finish needs more."""
    failed = used(memory_bytes=2 * GB, failure="exit code 1")
    alone_ = advise([failed])
    beside_larger = advise([failed, used(memory_bytes=3 * GB)])
    beside_smaller = advise([failed, used()])

    assert alone_.memory_bytes is not None
    assert alone_.memory_bytes.is_at_least
    assert (alone_.runs, alone_.finished_runs, alone_.confidence) == (1, 0, LOW)
    assert alone_.notes == ("Lower bounds only, where a run did not finish (exit code 1).",)
    assert beside_larger.memory_bytes is not None
    assert not beside_larger.memory_bytes.is_at_least
    assert beside_smaller.memory_bytes is not None
    assert beside_smaller.memory_bytes.is_at_least
    assert beside_smaller.cores is not None
    assert not beside_smaller.cores.is_at_least


@pytest.mark.parametrize(("limit", "least"), [(200 * MB, 300 * MB), (2 * GB, 2.4 * GB)])
def test_after_running_out_of_memory_more_than_the_limit_is_needed(limit: int, least: float) -> None:
    """By a fifth, or by 100 MB."""
    killed = used(
        memory_bytes=limit - MB, limit_bytes=limit, ran_out_of_memory=True, failure="killed by signal 9"
    )
    sizing = advise([killed])

    assert sizing.memory_bytes is not None
    assert least <= sizing.memory_bytes.advised <= 1.125 * least
    assert sizing.memory_bytes.is_at_least
    assert "A run was killed for lack of memory: how much it needs is not known." in sizing.notes


def test_what_a_limit_has_counted_is_what_the_next_one_will_count() -> None:
    """Not mapped files, which the kernel gives back, but files in shared memory and kernel memory."""
    peaks = Peaks(ram=alone(RamPeak(900 * MB, 0, 0)), limit_held_bytes=400 * MB)
    files = find_need(recording(totals=totals(peaks=peaks)))
    peaks = Peaks(ram=alone(RamPeak(20 * MB, 0, 0)), ram_ceiling_bytes=30 * MB, limit_held_bytes=400 * MB)
    shared = find_need(recording(totals=totals(peaks=peaks)))

    assert (files.memory_bytes, files.outside_bytes) == (400 * MB, 0)
    assert (shared.memory_bytes, shared.outside_bytes) == (400 * MB, 370 * MB)
    assert any("/dev/shm" in note for note in advise([shared]).notes)
    assert not any("/dev/shm" in note for note in advise([files]).notes)


def test_mapped_files_that_the_request_leaves_out_are_told() -> None:
    """A job that uses them again and again has to fetch them again where a limit pushes them out."""
    for resident, is_told in ((900 * MB, True), (550 * MB, False)):
        peaks = Peaks(ram=alone(RamPeak(resident, 0, 0)), limit_held_bytes=400 * MB)
        notes = advise([find_need(recording(totals=totals(peaks=peaks)))]).notes

        assert any(note.startswith("500 MB of mapped files were resident, too.") for note in notes) == is_told


def test_a_job_that_lacked_memory_needs_more_than_its_limit() -> None:
    """It fetched the same pages again and again; what it held at a time says little."""
    run = made_run(
        ram=10 * GB,
        counters=TreeCounters(0, 0, 3 * 64 * GB // 4096),
        stalls=Stalls(0.0, 0.0, 37.0),
        limit_used=64 * GB,
        given={"ram_source": "cgroup", "ram_bytes": 64 * GB},
    )
    sizing = advise([find_need(run)])

    assert sizing.memory_bytes is not None
    assert sizing.memory_bytes.is_at_least
    assert sizing.memory_bytes.advised > 64 * GB
    assert any("again and again" in note for note in sizing.notes)


def test_without_a_limit_the_kernels_share_and_ours_are_added() -> None:
    """A little for every process and thread, and for the tracker, which the next limit will count as well."""
    peaks = Peaks(ram=alone(RamPeak(500 * MB, 0, 0)), processes=100, threads=Parts(1, 99, 100))
    need = find_need(recording(totals=totals(peaks=peaks)))

    assert need.memory_bytes is not None
    assert 523 * MB < need.memory_bytes < 533 * MB
    assert need.limit_bytes is None
    cut_off = find_need(recording(totals=totals(peaks=peaks), end=None))
    assert cut_off.memory_bytes == need.memory_bytes + MB, "what the sampler used is not known"


def test_without_a_limit_page_tables_are_added_and_a_note_says_what_is_not() -> None:
    """Only a limit counts all that the kernel holds for a job."""
    peaks = Peaks(ram=alone(RamPeak(500 * MB, 0, 0)), page_table_bytes=100 * MB)
    need = find_need(recording(totals=totals(peaks=peaks)))
    less = find_need(recording(totals=totals(peaks=peaks._replace(page_table_bytes=0))))
    counted = find_need(recording(totals=totals(peaks=peaks._replace(limit_held_bytes=550 * MB))))

    assert (need.memory_bytes or 0) - (less.memory_bytes or 0) == 100 * MB
    assert counted.memory_bytes == 550 * MB
    assert advise([need]).notes == (NO_LIMIT,)
    assert not advise([counted]).notes


def test_a_small_job_needs_room_for_the_tracker() -> None:
    """Which may not have had all of its memory when the limit was read last."""
    peaks = Peaks(ram=alone(RamPeak(2 * MB, 0, 0)), limit_held_bytes=5 * MB)
    need = find_need(recording(totals=totals(peaks=peaks)))

    assert (need.memory_bytes, need.outside_bytes) == (13 * MB, 3 * MB)


def test_a_limit_and_its_end_are_found_in_the_recording() -> None:
    """By the note that the sampler leaves."""
    allocation = Allocation(4, 4.0, "machine", 16 * GB, 2 * GB, "cgroup")
    killed = recording(
        header=header(allocation=allocation, identity=Identity(job="7", rank=3)),
        events=(Event(9.0, "oom", "Out of memory: the kernel killed a process."),),
        end=End("exited", -9, totals(), 0.0, 0),
    )
    need = find_need(killed)

    assert need.ran_out_of_memory
    assert need.limit_bytes == 2 * GB
    assert need.failure == "killed by signal 9"
    assert (need.job, need.rank) == ("7", 3)


@pytest.mark.parametrize(("own", "exit_code", "is_own"), [(100, 0, False), (100, -9, True), (1500, 0, True)])
def test_a_run_that_ended_well_with_little_was_not_killed_for_memory(
    own: int, exit_code: int, is_own: bool
) -> None:
    """The kernel killed another program under the same limit."""
    peaks = Peaks(ram=alone(RamPeak(own * MB, 0, 0)))
    need = find_need(
        recording(
            header=header(allocation=Allocation(4, 4.0, "machine", 16 * GB, 2 * GB, "cgroup")),
            totals=totals(peaks=peaks),
            events=(Event(9.0, "oom", "Out of memory: the kernel killed a process."),),
            end=End("exited", exit_code, totals(), 0.0, 0),
        )
    )

    assert need.ran_out_of_memory is is_own
    assert need.is_least is is_own


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (End("exited", 0, totals(), 0.0, 0), "the run ended before its memory was read"),
        (None, "the recording was cut off before the job's memory was read"),
    ],
)
def test_a_run_that_was_never_read_says_nothing_about_memory(end: End | None, reason: str) -> None:
    """Unknown is not 0, and it is said why."""
    need = find_need(recording(totals=totals(peaks=Peaks()), end=end))
    sizing = advise([need])

    assert need.memory_bytes is None
    assert sizing.memory_bytes is None
    assert sizing.confidence == LOW
    assert f"No memory is advised: {reason}." in sizing.notes


def test_a_refused_allocation_leaves_the_need_unknown() -> None:
    """It is in no peak; that of a GPU says nothing about RAM."""
    note = "An allocation was refused: how much it asked for is not in the peak, so the need is not known."
    for name, is_noted in (("MemoryError", True), ("OutOfMemoryError", False), ("ValueError", False)):
        made = recording(events=(Event(9.0, "exception", name),), end=End("raised", None, totals(), 0.0, 0))
        assert (note in advise([find_need(made)]).notes) is is_noted


# ---- Spikes.


def spiky(**fields: Any) -> tuple[Any, SampleColumns]:
    """A run of 1000 s that needs 100 MB, but once 300 MB for a moment."""
    peaks = Peaks(ram=alone(RamPeak(300 * MB, 0, 0)))
    ram = [100.0 * MB] * 1000
    high = [*ram[:500], 300.0 * MB, *ram[501:]]
    made = recording(totals=totals(at_seconds=1000.0, peaks=peaks), **fields)
    return made, columns([1.0] * 1000, ram, fields.get("high", high), [99.0 * MB] * 1000)


def test_a_spike_is_named_with_what_it_costs() -> None:
    """The request is still that of the peak."""
    moment = PeakMoment("ram", 500.5, 299 * MB, 2, (PeakProcess(7, "eval", 290 * MB),), (("epoch", "eval"),))
    made, samples = spiky(peak_moments=(PeakMoment("GPU-0", 1.0, 1, 1), moment))
    sizing = advise([find_need(made, samples)])

    assert sizing.spike is not None
    assert sizing.spike.peak_bytes == 300 * MB
    assert sizing.spike.usual_bytes == 100 * MB
    assert sizing.spike.saved_bytes == pytest.approx(240 * MB, rel=0.1)
    assert sizing.spike[3:] == (500.5, "eval", ("epoch", "eval"))
    assert sizing.memory_bytes is not None
    assert sizing.memory_bytes.advised >= 360 * MB


def test_a_spike_that_no_reading_has_met_has_no_place() -> None:
    """Only the kernel has seen it, at an unknown time."""
    made, samples = spiky(peak_moments=(PeakMoment("ram", 3.0, 100 * MB, 1),))
    spike = find_need(made, samples).spike

    assert spike is not None
    assert spike[3:] == (None, "", ())


def test_memory_that_each_interval_needs_for_a_moment_is_usual() -> None:
    """Their means would not be enough."""
    made, _ = spiky()
    often = columns([1.0] * 1000, [100.0 * MB] * 1000, [290.0 * MB] * 1000, [99.0 * MB] * 1000)

    assert find_need(made, often).spike is None


def test_a_peak_that_lasts_is_no_spike() -> None:
    """Nor is one that is hardly higher than the rest, nor one without samples."""
    peaks = Peaks(ram=alone(RamPeak(300 * MB, 0, 0)))
    made = recording(totals=totals(at_seconds=100.0, peaks=peaks))
    long = columns([1.0] * 100, [*[100.0 * MB] * 97, *[300.0 * MB] * 3])
    flat = columns([1.0] * 100, [290.0 * MB] * 100)

    assert find_need(made, long).spike is None
    assert find_need(made, flat).spike is None
    assert find_need(made).spike is None


# ---- Cores.


def test_cores_are_those_of_nearly_all_intervals() -> None:
    """Not of the single busiest one."""
    busy = [*[5.2] * 97, *[16.0] * 3]
    made = recording(header=header(allocation=Allocation(16, 16.0, "machine", GB, GB, "machine")))
    sizing = advise([find_need(made, columns(busy))])

    assert sizing.cores is not None
    assert sizing.cores[:2] == (6, 5.2)
    assert sizing.notes == (NO_LIMIT,)


def test_intervals_count_by_their_length_and_only_if_known() -> None:
    """What is not a number is no core."""
    assert find_need(recording(), columns([math.nan, 2.0])).cores == 2.0
    nothing = recording(totals=totals(at_seconds=0.0, peaks=Peaks()))
    assert find_need(nothing, columns([math.nan])).cores is None
    assert find_need(nothing, columns([])).cores is None


def test_nobody_uses_more_cores_than_there_are() -> None:
    """Time of ended children arrives at once."""
    assert find_need(recording(), columns([9.0] * 20)).cores == 4.0


def test_without_samples_the_busiest_interval_counts() -> None:
    """And that is said, unless the run was too short to tell a difference."""
    peaks = totals().peaks._replace(busiest=Parts(Busiest(), Busiest(), Busiest(2.5, 1.0)))
    short, long = (
        advise([find_need(recording(totals=totals(peaks=peaks, at_seconds=seconds)))])
        for seconds in (19.0, 20.0)
    )

    assert short.cores is not None
    assert long.cores is not None
    assert short.cores.advised == long.cores.advised == 3
    assert long.notes == ("Cores are those of the busiest interval: the samples were not read.", NO_LIMIT)
    assert short.notes == (NO_LIMIT,)


@pytest.mark.parametrize(
    ("cores", "gpus", "advised"), [(0.2, None, 1), (1.05, 0, 1), (1.2, None, 2), (0.5, 4, 4), (6.0, 4, 6)]
)
def test_each_gpu_keeps_a_core(cores: float, gpus: int | None, advised: int) -> None:
    """A tenth of a core more than there is does not matter."""
    amount = advise([used(cores=cores, gpus=gpus)]).cores

    assert amount is not None
    assert amount.advised == advised


@pytest.mark.parametrize(
    "fields",
    [
        {"counters": TreeCounters(waiting_seconds=9.0)},
        {"stalls": Stalls(throttled_seconds=2.0)},
    ],
)
def test_a_job_that_waited_for_cores_may_need_more(fields: dict[str, Any]) -> None:
    """Its use is a lower bound."""
    sizing = advise([find_need(recording(totals=totals(**fields)), columns([1.0]))])

    assert sizing.cores is not None
    assert sizing.cores.is_at_least
    assert sizing.notes == (
        "The job waited for cores that it did not get: it may use more than it could show.",
        NO_LIMIT,
    )


@pytest.mark.parametrize(
    ("cores", "waited", "throttled"), [(1.0, 1.0, 0.1), (0.2, 5.0, None), (3.5, 2.6, None)]
)
def test_a_little_waiting_does_not_matter(cores: float, waited: float, throttled: float | None) -> None:
    """Nor does much of it, if even without it the job would have used no more than is advised."""
    counted = totals(
        counters=TreeCounters(waiting_seconds=waited),
        stalls=Stalls(throttled_seconds=throttled),
        peaks=Peaks(),
    )

    assert not find_need(recording(totals=counted), columns([cores])).has_starved


# ---- GPUs and time.


def test_only_gpus_that_were_used_are_asked_for() -> None:
    """With what the job held on one of them."""
    counter, peak = gpu_totals()
    idle = GpuPeaks("GPU-1", used_bytes=0, job_bytes=Parts(0, 0, 0))
    made = recording(
        events=(found(gpu(0)), found(gpu(1))),
        totals=totals(
            gpu_counters=(counter,),
            peaks=totals().peaks._replace(gpus=(peak, idle), gpu_bytes=Parts(0, 0, 2000 * MB)),
        ),
    )
    sizing = advise([find_need(made)])

    assert sizing.gpus is not None
    assert sizing.gpus.advised == 1
    assert sizing.gpu_vendor == "nvidia"
    assert sizing.gpu_memory_bytes is not None
    assert sizing.gpu_memory_bytes.used == 2000 * MB


def test_a_device_of_which_nothing_is_known_makes_their_number_a_lower_bound() -> None:
    """The job may have used it, too."""
    counter, peak = gpu_totals()
    made = recording(
        events=(found(gpu(0)), found(gpu(1))),
        totals=totals(gpu_counters=(counter,), peaks=totals().peaks._replace(gpus=(peak, GpuPeaks("GPU-1")))),
    )
    sizing = advise([find_need(made)])

    assert sizing.gpus is not None
    assert (sizing.gpus.advised, sizing.gpus.is_at_least) == (1, True)


def test_a_gpu_whose_memory_is_not_known_is_asked_for_if_it_was_busy() -> None:
    """As under WSL, and in a MIG instance without root: a job without it could not run again."""
    counter, peak = gpu_totals()
    busy = counter._replace(job_percent_seconds=300.0, job_seconds=10.0)
    peak = peak._replace(job_bytes=Parts(None, None, None), has_job=True)
    made = recording(
        events=(found(gpu(0)),),
        totals=totals(gpu_counters=(busy,), peaks=totals().peaks._replace(gpus=(peak,))),
    )
    sizing = advise([find_need(made)])

    assert sizing.gpus is not None
    assert (sizing.gpus.advised, sizing.gpu_memory_bytes, sizing.gpu_vendor) == (1, None, "nvidia")


def test_unknown_gpus_are_not_asked_for() -> None:
    """No device, or one that does not say who uses it."""
    peaks = totals().peaks._replace(gpus=(GpuPeaks("GPU-0", has_job=True),))
    silent = recording(events=(found(gpu()),), totals=totals(peaks=peaks))

    assert find_need(recording()).gpus is None
    assert find_need(silent).gpus is None
    assert advise([find_need(recording())]).gpus is None


@pytest.mark.parametrize(
    ("seconds", "advised"), [(1.0, 2), (20.0, 26), (600.0, 780), (3600.0, 4800), (7200.0, 9900)]
)
def test_time_has_a_margin_of_three_tenths(seconds: float, advised: int) -> None:
    """In quarters of an hour where it is long."""
    amount = advise([used(seconds=seconds)]).time_seconds

    assert amount is not None
    assert amount.advised == advised


def test_a_run_at_its_time_limit_does_not_say_how_long_it_takes() -> None:
    """More than it took is all that is known, unless a finished run took longer."""
    note = (
        "A run was cut off at its time limit after 1 h 00 min 00 s: it needs more, and how much is not known."
    )
    cut_off = used(reached_time_limit=True, failure="killed by signal 15")
    shorter, longer = (advise([cut_off, used(seconds=seconds)]) for seconds in (HOUR / 2, 2 * HOUR))

    assert advise([cut_off]).time_seconds is shorter.time_seconds is None
    assert note in advise([cut_off]).notes
    assert note in shorter.notes
    assert longer.time_seconds is not None
    assert longer.time_seconds.used == 2 * HOUR
    assert note not in longer.notes


def test_no_time_is_advised_that_was_too_short_before() -> None:
    """Also if what reached the limit of its job had begun late in it, and a finished run took longer than that."""
    late = used(
        seconds=HOUR / 6, reached_time_limit=True, failure="killed by signal 15", time_limit_seconds=HOUR
    )
    shorter, longer = (advise([late, used(seconds=seconds)]) for seconds in (HOUR / 2, HOUR))
    alone = advise([late])

    assert (shorter.time_seconds, shorter.time_above_seconds) == (None, HOUR)
    assert (
        "A run reached the time limit of its job, 1 h 00 min 00 s: ask for more than that." in shorter.notes
    )
    assert format_words(shorter).endswith(", more than 1 h 00 min 00 s")
    assert "--time" not in format_slurm(shorter)
    assert dict(format_used(shorter))["time"] == "more than 1 h 00 min 00 s"
    assert is_lower_bound(alone)
    assert alone.time_above_seconds == HOUR
    assert longer.time_seconds is not None
    assert longer.time_seconds.advised > HOUR
    assert longer.time_above_seconds is None


def test_a_recording_without_an_end_may_have_reached_its_limit_before_the_next_sample() -> None:
    """Of a run that is sampled every minute the last sample may be that old."""
    allocation = Allocation(4, 4.0, "Slurm", GB, GB, "Slurm", ends_at_seconds=1769860810.0 + 50)
    cut = recording(header=header(allocation=allocation, sleep_seconds=60.0), end=None)

    assert find_need(cut).reached_time_limit
    assert not find_need(cut._replace(header=header(allocation=allocation))).reached_time_limit


@pytest.mark.parametrize(
    ("started_at", "code", "expected"),
    [
        ("2026-01-31T12:00:00+00:00", -15, True),
        ("2026-01-31T12:00:00+00:00", 0, False),
        ("2026-01-31T11:59:00+00:00", -15, False),
        ("once", -15, False),
    ],
    ids=["cut off", "finished just in time", "failed long before", "at an unknown time"],
)
def test_a_time_limit_that_was_reached_is_found_in_the_recording(
    started_at: str, code: int, expected: bool
) -> None:
    """By when the run began, how long it took, and that it failed."""
    allocation = Allocation(4, 4.0, "Slurm", GB, GB, "Slurm", ends_at_seconds=1769860810.0)
    made = recording(
        header=header(allocation=allocation, started_at=started_at),
        end=End("exited", code, totals(), 0.0, 0),
    )

    assert find_need(made).reached_time_limit is expected


def test_what_a_job_used_until_it_was_told_to_end_is_a_lower_bound() -> None:
    """Although its program exited with 0."""
    whole = recording(header=header(identity=Identity(job="7")), end=End("exited", 0, totals(), 0.0, 0))
    told = whole._replace(events=(Event(1.0, SIGNAL, "15"),))
    times = [advise([find_need(made)]).time_seconds for made in (whole, told)]

    assert [time is not None and time.is_at_least for time in times] == [False, True]


def test_runs_of_different_programs_are_told_apart() -> None:
    """Their largest is the need of none of them."""
    mixed = advise([used(program=name) for name in ("train", "eval", "train")])
    many = advise([used(program=name) for name in "abcdef"])

    assert mixed.notes == (
        "These are runs of 2 programs (train, eval): the largest of any of them counts. Give those of one only.",
    )
    assert "6 programs (a, b, c, d, ...)" in many.notes[0]
    assert advise([used(program="train")] * 2).notes == ()


def test_ranks_of_one_job_are_no_repeats_of_it() -> None:
    """What one of them needs is not what all need."""
    note = "These are ranks of one job: this is the request for one of them."

    assert (
        note in advise([used(job="7", run=("7",), rank=0), used(job="7", run=("7",), rank=1, host="b")]).notes
    )
    assert note not in advise([used(job="7", run=("7",), rank=0), used(job="8", run=("8",), rank=0)]).notes


def test_all_of_a_job_on_several_machines_is_one_run() -> None:
    """Followed on each of them, with none of its ranks."""
    sizing = advise([used(run=("7",), host=host) for host in "ab"])

    assert sizing.runs == 1
    assert "These are machines of one job: this is the request for one of them." in sizing.notes


@pytest.mark.parametrize(("is_counted", "together"), [(False, 11 * GB), (True, 5 * GB)])
def test_memory_is_that_of_all_ranks_on_one_machine(is_counted: bool, together: int) -> None:
    """Added up, unless a limit above them has counted them all for each; the fullest machine counts."""
    sizes = {"a": (2, 3), "b": (2, 5, 4)}
    ranks = [
        used(
            job="7",
            run=("7",),
            rank=number,
            host=host,
            memory_bytes=size * GB,
            is_counted_by_limit=is_counted,
        )
        for number, (host, size) in enumerate((host, size) for host, some in sizes.items() for size in some)
    ]
    sizing = advise(ranks)

    assert sizing.memory_bytes is not None
    assert (sizing.memory_bytes.used, sizing.ranks_per_machine) == (together, 3)
    assert "memory is for the 3 of them on one machine, the rest for each" in " ".join(sizing.notes)
    assert (sizing.runs, sizing.cores and sizing.cores.advised) == (1, 1)


def test_memory_of_ranks_that_is_not_known_stays_so() -> None:
    """Of some it is a lower bound of all."""
    known, unknown = (
        used(job="7", run=("7",), rank=number, memory_bytes=size, is_counted_by_limit=False)
        for number, size in enumerate((2 * GB, None))
    )
    doubtful = known._replace(rank=2, memory_ceiling_bytes=3.0 * GB)
    both, alone = advise([known, doubtful]).memory_bytes, advise([unknown, unknown._replace(rank=3)])

    assert both is not None
    assert (both.used, both.is_at_least) == (4 * GB, True)
    assert alone.memory_bytes is None


@pytest.mark.parametrize("failure", ["exit code 1", "killed by signal 9", "no end: killed, or still running"])
def test_a_rank_that_did_not_finish_leaves_the_need_of_its_run_unknown(failure: str) -> None:
    """However little it had used by then, ranks may need different amounts; unless another run needs as much for certain."""
    finished = used(job="7", run=("7",), rank=0, host="a", memory_bytes=2 * GB, gpus=1, gpu_bytes=2 * GB)
    died = finished._replace(rank=1, host="b", seconds=60.0, memory_bytes=GB, gpu_bytes=GB, failure=failure)
    again = [finished._replace(run=("8",)), died._replace(run=("8",), failure="")]
    less = [one._replace(memory_bytes=GB, gpu_bytes=GB, seconds=60.0) for one in again]

    for ranks, is_at_least in (
        ([finished, died], True),
        ([finished, died, *less], True),
        ([finished, died, *again], False),
    ):
        sizing = advise(ranks)
        amounts = sizing.memory_bytes, sizing.gpu_memory_bytes, sizing.time_seconds
        assert [amount and amount.is_at_least for amount in amounts] == [is_at_least] * 3
        assert sizing.memory_bytes is not None
        assert sizing.memory_bytes.used == 2 * GB
        assert f"Lower bounds only, where a run did not finish ({failure})." in sizing.notes


def test_a_rank_that_was_never_read_leaves_the_need_of_its_run_unknown() -> None:
    """It was killed before anything was known of it."""
    finished = used(job="7", run=("7",), rank=0, host="a")
    died = Need(seconds=0.0, job="7", run=("7",), rank=1, host="b", failure="killed by signal 9")
    memory = advise([finished, died]).memory_bytes

    assert memory is not None
    assert (memory.used, memory.is_at_least) == (GB, True)


def test_a_rank_that_was_not_measured_all_the_time_leaves_all_but_the_time_unknown() -> None:
    """Also on the machine of the largest."""
    finished = used(job="7", run=("7",), rank=0, host="a")
    for host in ("a", "b"):
        unread = finished._replace(rank=1, host=host, memory_bytes=MIB, unread_seconds=HOUR / 2)
        sizing = advise([finished, unread])

        amounts = sizing.memory_bytes, sizing.cores, sizing.time_seconds
        assert [amount is not None and amount.is_at_least for amount in amounts] == [True, True, False]


def test_ranks_of_one_job_are_one_run() -> None:
    """The largest counts, and there is nothing that it could be alike."""
    ranks = [
        used(job="7", run=("7", "0"), rank=number, memory_bytes=(9 + number) * GB) for number in range(8)
    ]
    sizing = advise(ranks)

    assert (sizing.runs, sizing.finished_runs, sizing.margin_percent, sizing.confidence) == (1, 1, 20, LOW)
    assert sizing.memory_bytes is not None
    assert (sizing.memory_bytes.used, sizing.memory_bytes.least_used) == (16 * GB, 16 * GB)
    assert advise([*ranks, used(job="7", run=("7", "0"), rank=8, failure="exit code 1")]).finished_runs == 0


@pytest.mark.parametrize(
    "other",
    [{"job": "8", "run": ("8", "0")}, {"job": "7", "run": ("7", "1")}],
    ids=["job", "step"],
)
def test_ranks_that_ran_again_are_repeats(other: dict[str, Any]) -> None:
    """In another job, or in another step."""
    ranks = [used(job="7", run=("7", "0"), rank=rank, memory_bytes=(4 - rank) * GB) for rank in (0, 1)]
    again = [used(**other, rank=rank, memory_bytes=(6 - rank) * GB) for rank in (0, 1)]
    sizing = advise([*ranks, *again])

    assert (sizing.runs, sizing.finished_runs, sizing.confidence) == (2, 2, MEDIUM)
    assert sizing.memory_bytes is not None
    assert (sizing.memory_bytes.used, sizing.memory_bytes.least_used) == (6 * GB, 4 * GB)
    assert any(
        note.startswith("These are ranks of parallel jobs: memory is for the 2 ") for note in sizing.notes
    )


def test_commands_of_one_rank_ran_one_after_the_other() -> None:
    """They are one run, and what the larger needs is enough for both."""
    ranks = [
        used(run=("7",), rank=rank, memory_bytes=size * GB, is_counted_by_limit=False)
        for rank, size in ((0, 1), (0, 3), (1, 2))
    ]
    sizing = advise(ranks)

    assert sizing.memory_bytes is not None
    assert (sizing.runs, sizing.memory_bytes.used, sizing.ranks_per_machine) == (1, 5 * GB, 2)


STEP = used(job="7", host="a", begin_seconds=0.0, seconds=100.0)
AT_ONCE = (
    "Several steps or commands of one job ran on one machine at the same time: "
    "memory is what they held there together."
)


@pytest.mark.parametrize(
    ("others", "most"),
    [
        # They overlap, whoever began first, and whatever ran before.
        ([{"begin_seconds": 50.0}], 2),
        ([{"begin_seconds": -50.0}], 2),
        ([{"begin_seconds": 50.0}, {"begin_seconds": 60.0, "memory_bytes": 2 * GB}], 4),
        ([{"begin_seconds": -50.0, "seconds": 60.0}, {"begin_seconds": 20.0, "memory_bytes": 2 * GB}], 3),
        ([{"begin_seconds": -50.0, "seconds": 60.0, "memory_bytes": 3 * GB}, {"begin_seconds": 20.0}], 4),
        # One after the other, on another machine, of another job or none, or nobody knows when.
        ([{"begin_seconds": 100.0}], 1),
        ([{"host": "b"}], 1),
        ([{"job": "8"}], 1),
        ([{"begin_seconds": None}], 1),
    ],
)
def test_steps_that_ran_at_the_same_time_need_memory_together(
    others: list[dict[str, Any]], most: int
) -> None:
    """Each has a limit of its own, and has counted nothing of the others."""
    sizing = advise([STEP, *(STEP._replace(**other) for other in others)])

    assert sizing.memory_bytes is not None
    assert (sizing.memory_bytes.used, sizing.runs) == (most * GB, 1 + len(others))
    assert (AT_ONCE in sizing.notes) == (most > 1)


def test_runs_of_no_job_need_no_memory_together() -> None:
    """They may be repeats that somebody ran at the same time."""
    sizing = advise([STEP._replace(job=None)] * 2)

    assert sizing.memory_bytes is not None
    assert sizing.memory_bytes.used == GB


def test_a_failed_step_leaves_open_what_all_need_together() -> None:
    """Of those that ran at the same time."""
    memory = advise([STEP, STEP._replace(failure="exit code 1")]).memory_bytes

    assert memory is not None
    assert (memory.used, memory.is_at_least) == (2 * GB, True)


@pytest.mark.parametrize(("begins", "seconds"), [((0.0, 40.0, 80.0), 90.0), ((0.0, None, 80.0), 10.0)])
def test_the_time_of_ranks_is_from_the_first_start_to_the_last_end(
    begins: tuple[float | None, ...], seconds: float
) -> None:
    """They need not start at once. Where a start is not known, the longest of them counts."""
    ranks = [
        used(run=("7",), rank=number, begin_seconds=begin, seconds=10.0)
        for number, begin in enumerate(begins)
    ]
    time = advise(ranks).time_seconds

    assert time is not None
    assert time.used == seconds


def test_runs_that_are_no_ranks_are_repeats() -> None:
    """Also in one job."""
    assert advise([used(job="7")] * 5).runs == 5


# ---- What was not measured.


def test_work_that_was_done_elsewhere_leaves_all_but_the_time_unknown() -> None:
    """It is said who did it, and where the tracker belongs."""
    need = find_need(recording(header=header(command=("srun", "python", "train.py"))))
    sizing = advise([need._replace(gpus=1, gpu_bytes=GB)])

    amounts = sizing.memory_bytes, sizing.cores, sizing.gpus, sizing.gpu_memory_bytes, sizing.time_seconds
    assert [amount is not None and amount.is_at_least for amount in amounts] == [*[True] * 4, False]
    assert sizing.notes[0].startswith("srun has its work done elsewhere (by Slurm)")


def test_a_run_some_of_which_is_only_in_another_recording_gives_lower_bounds() -> None:
    """Also of its time."""
    sizing = advise([used(is_cut=True)])

    amounts = sizing.memory_bytes, sizing.cores, sizing.time_seconds
    assert [amount is not None and amount.is_at_least for amount in amounts] == [True] * 3


def test_ranks_that_had_work_done_elsewhere_leave_a_lower_bound() -> None:
    """Of those on one machine, also if it was not the largest."""
    ranks = [
        used(job="7", run=("7",), rank=0),
        used(job="7", run=("7",), rank=1, memory_bytes=MIB, elsewhere="docker"),
    ]
    memory = advise(ranks).memory_bytes

    assert memory is not None
    assert memory.is_at_least


def test_only_memory_is_uncertain_if_its_peak_is_an_estimate() -> None:
    """Time and cores are known."""
    sizing = advise([used(memory_ceiling_bytes=3e9, gpus=1, gpu_bytes=GB)])

    amounts = sizing.memory_bytes, sizing.cores, sizing.gpus, sizing.gpu_memory_bytes, sizing.time_seconds
    assert [amount is not None and amount.is_at_least for amount in amounts] == [True, *[False] * 4]


@pytest.mark.parametrize("failure", ["", "sampler lost"], ids=["gaps", "lost"])
def test_a_run_that_was_not_measured_all_the_time_gives_lower_bounds(failure: str) -> None:
    """Not of its time, which is known."""
    sizing = advise([used(failure=failure, unread_seconds=3000.0, memory_ceiling_bytes=math.inf)])

    amounts = sizing.memory_bytes, sizing.cores, sizing.time_seconds
    assert [amount is not None and amount.is_at_least for amount in amounts] == [True, True, False]
    assert sizing.notes == (
        "Nothing was measured for 50 min 00 s of the 1 h 00 min 00 s of a run: it may have needed more memory and more cores.",
    )


def test_a_short_gap_changes_nothing() -> None:
    """Less than a tenth of the time; what follows a lost sampler may be anything."""
    gap, lost = (
        advise([used(unread_seconds=100.0)]),
        advise([used(unread_seconds=1.0, failure="sampler lost")]),
    )

    assert gap.memory_bytes is not None
    assert not gap.memory_bytes.is_at_least
    assert gap.notes == ()
    assert lost.memory_bytes is not None
    assert lost.memory_bytes.is_at_least


def test_a_lost_sampler_of_a_job_whose_time_nobody_knows_leaves_a_lower_bound_of_it() -> None:
    """The recording ends with its last sample."""
    sizing = advise([used(failure="sampler lost")])

    assert sizing.time_seconds is not None
    assert sizing.time_seconds.is_at_least
    assert sizing.notes == ("Lower bounds only, where a run did not finish (sampler lost).",)


def test_nothing_is_said_of_time_that_was_not_measured() -> None:
    """A peak that only the kernel knows is no spike then, and the mean over all the time may be above what was seen."""
    peak = RamPeak(600 * MB, 600 * MB, 0)
    lost = totals(
        at_seconds=200.0,
        unread_seconds=100.0,
        peaks=Peaks(ram=alone(peak)),
        cpu_seconds=add_parts(300.0, 0.0),
    )
    seen = columns([0.0] * 100, [10 * MB] * 100)
    whole = lost._replace(at_seconds=100.0, unread_seconds=0.0)

    need = find_need(recording(totals=lost, end=End("sampler lost", 0, lost, 0.0, 0)), seen)
    before = find_need(recording(totals=whole), seen)

    assert (need.spike, need.unread_seconds, need.cores) == (None, 100.0, 1.5)
    assert before.spike is not None
    assert before.cores == 0.0


def test_nothing_gives_no_advice() -> None:
    """Of no run nothing is known."""
    sizing = advise([])

    assert (sizing.memory_bytes, sizing.cores, sizing.gpus, sizing.time_seconds) == (None,) * 4
    assert advise([Need(seconds=0.0)]).time_seconds is None


# ---- What always holds.

sizes = st.integers(1, 2**62)
runs = st.builds(
    used,
    memory_bytes=st.none() | sizes,
    limit_bytes=st.none() | sizes,
    ran_out_of_memory=st.booleans(),
    failure=st.sampled_from(["", "exit code 1"]),
    cores=st.none() | st.floats(0, 1e6),
    gpus=st.none() | st.integers(0, 100),
    gpu_bytes=st.none() | sizes,
    seconds=st.floats(0, 1e9),
)


@given(st.lists(runs, min_size=1, max_size=8))
def test_advice_is_never_below_the_need(needs: list[Need]) -> None:
    """Of any run, whatever the others used."""
    sizing = advise(needs)

    for need in needs:
        for amount, value, spare in (
            (sizing.memory_bytes, need.memory_bytes, 0),
            (sizing.cores, need.cores, 0.1),
            (sizing.gpus, need.gpus, 0),
            (sizing.gpu_memory_bytes, need.gpu_bytes, 0),
            (sizing.time_seconds, need.seconds or None, 0),
        ):
            assert value is None or (amount is not None and amount.advised >= value - spare)


@given(sizes, sizes)
def test_more_use_is_never_less_advice(one: int, other: int) -> None:
    """And it is at most 1.35 times the need."""
    less, more = (
        amount
        for size in sorted((one, other))
        if (amount := advise([used(memory_bytes=size)]).memory_bytes) is not None
    )

    assert less.advised <= more.advised
    assert all(
        amount.advised <= max(1.35 * amount.used, 1024) or amount.used < 8192 for amount in (less, more)
    )


@given(st.floats(1, 1e12), st.floats(1, 1e12))
def test_rounding_keeps_the_order(one: float, other: float) -> None:
    """And never takes anything away."""
    steps = (1, 5, 10, 100)
    small, large = sorted((one, other))

    assert small <= round_up(small, steps) <= round_up(large, steps)
    assert round_up(small, steps) <= max(small + 1, small * 13 / 12)


numbers = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=True, allow_infinity=True)


@given(
    seconds=floats,
    cpu=floats,
    ram=numbers,
    held=st.none() | numbers,
    busiest=st.tuples(floats, floats),
    processes=numbers,
    waiting=st.none() | floats,
    values=st.lists(floats, max_size=5),
    code=st.none() | numbers,
)
def test_no_recording_is_too_strange(
    seconds: float,
    cpu: float,
    ram: int,
    held: int | None,
    busiest: tuple[float, float],
    processes: int,
    waiting: float | None,
    values: list[float],
    code: int | None,
) -> None:
    """A file may come from anywhere."""
    peaks = Peaks(
        ram=together(RamPeak(ram, 0, 0)),
        limit_held_bytes=held,
        busiest=Parts(Busiest(), Busiest(), Busiest(*busiest)),
        processes=processes,
    )
    made = Totals(
        at_seconds=seconds,
        cpu_seconds=add_parts(cpu, 0.0),
        peaks=peaks,
        counters=TreeCounters(waiting_seconds=waiting),
    )
    strange = recording(totals=made, end=End("exited", code, made, 0.0, 0))
    samples = columns(values, values or None)

    assert advise([find_need(strange, samples), find_need(strange)]).runs == 2


def test_memory_of_gpus_that_is_not_known_all_the_time_is_a_lower_bound() -> None:
    """And says so; a run of which it is known makes up for it if it needs as much."""
    doubtful = Need(10.0, gpus=1, gpu_bytes=2000 * MB, is_gpu_least=True)
    sure = doubtful._replace(is_gpu_least=False)
    alone, together_with = advise([doubtful]), advise([doubtful, sure])

    assert alone.gpu_memory_bytes is not None
    assert alone.gpu_memory_bytes.is_at_least
    assert any("What a run held on GPUs" in note for note in alone.notes)
    assert together_with.gpu_memory_bytes is not None
    assert not together_with.gpu_memory_bytes.is_at_least


def test_a_request_without_gpus_says_that_they_are_missing() -> None:
    """Where it is not known whether one was used; another run may know."""
    unknown, known = Need(10.0, is_gpu_use_unknown=True), Need(10.0, gpus=1)
    note = "How many GPUs it used is not known, so the request has none: add them."

    assert note in advise([unknown]).notes
    assert note not in advise([unknown, known]).notes
    assert note not in advise([Need(10.0)]).notes


def test_ranks_without_a_recording_are_not_in_the_request() -> None:
    """Which says so, and that it is the least."""
    whole = advise([used(job="7", run=("7",), rank=0), used(job="7", run=("7",), rank=1)])
    lacking = lack_ranks(whole, ["no recording of rank 2"])
    unread = lack_ranks(whole._replace(memory_bytes=None), ["no recording of rank 2"])

    assert lack_ranks(whole, []) == whole
    assert whole.memory_bytes is not None
    assert lacking.memory_bytes == whole.memory_bytes._replace(is_at_least=True)
    assert lacking.notes[0].startswith("Incomplete (no recording of rank 2): ")
    assert unread.memory_bytes is None
