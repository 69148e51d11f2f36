"""From counters to figures."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from builders import MB, found, gpu, gpu_totals, header, recording, together, totals
from gpu_tracker.analysis.measures import overall_values
from gpu_tracker.analysis.summary import are_gpus_known, is_ram_least, percent_of, summarize
from gpu_tracker.core.model import (
    UNREAD,
    Activity,
    Allocation,
    Busiest,
    End,
    Event,
    GpuPeaks,
    Parts,
    Peaks,
    ProcessTotals,
    RamPeak,
    Totals,
    Traffic,
    add_parts,
    name_unread,
)
from gpu_tracker.core.vendors import NO_GPU

POSITIVE = st.floats(1e-3, 1e6)


def test_a_mean_is_seconds_over_seconds() -> None:
    """For main, descendants, both, and the machine."""
    summary = summarize(recording(totals=totals(cpu_seconds=add_parts(5.0, 20.0), system_cpu_seconds=30.0)))

    assert summary.cpu.main.mean_percent == 50.0
    assert summary.cpu.descendants.mean_percent == 200.0
    assert summary.cpu.combined.mean_percent == 250.0
    assert summary.system_cpu.mean_percent == 300.0


def test_the_peak_is_the_busiest_interval_and_never_below_the_mean() -> None:
    """Even for a job shorter than an interval."""
    peaks = totals().peaks._replace(busiest=Parts(Busiest(1.75, 1.0), Busiest(), Busiest(0.5, 1.0)))
    summary = summarize(recording(totals=totals(peaks=peaks)))

    assert summary.cpu.main.max_percent == 175.0
    assert summary.cpu.combined.max_percent == summary.cpu.combined.mean_percent == 100.0


@given(POSITIVE, POSITIVE, st.integers(1, 512))
def test_a_rate_is_capped_at_the_cores(cpu: float, wall: float, cores: int) -> None:
    """CPU time of children arrives all at once, when they are waited for."""
    percent = percent_of(cpu, wall, cores)

    assert percent is None if wall < 1e-3 else 0 <= (percent or 0.0) <= 100 * cores


def test_a_peak_is_not_exact_without_an_end() -> None:
    """It may have grown after the last sample."""
    exact = RamPeak(MB, MB, 0, "exact")
    peaks = totals().peaks._replace(ram=Parts(exact, exact, exact._replace(basis="estimate")))
    made = recording(totals=totals(peaks=peaks))

    assert [part.basis for part in summarize(made).ram] == ["exact", "exact", "estimate"]
    assert [part.basis for part in summarize(made._replace(end=None)).ram] == [
        "sampled",
        "sampled",
        "estimate",
    ]


def test_a_rate_over_no_time_is_not_known() -> None:
    """Not 0, and not hundreds of percent: reading the clocks takes time, too."""
    assert percent_of(1.0, 0.0, 4) is percent_of(0.0009, 0.0008, 4) is None
    assert percent_of(0.001, 0.002, 4) == 50.0


def test_a_limit_is_reported_beside_the_machine() -> None:
    """Four of sixteen gigabytes."""
    limited = header(allocation=Allocation(8, 2.0, "affinity", 16_000 * MB, 4000 * MB, "cgroup"))
    peaks = totals().peaks._replace(limit_ram_bytes=700 * MB)
    summary = summarize(recording(header=limited, totals=totals(peaks=peaks)))

    assert (summary.ram_capacity_bytes, summary.ram_used_bytes) == (4000 * MB, 700 * MB)
    assert (summary.machine_ram_bytes, summary.machine_ram_used_bytes) == (16_000 * MB, 2000 * MB)
    assert (summary.n_cores, summary.n_expected_cores) == (8, 4.0)


def test_what_the_tree_held_was_in_use() -> None:
    """On the machine and under the limit, even if those were not read at that moment."""
    peaks = totals().peaks._replace(ram=together(RamPeak(3000 * MB)), limit_ram_bytes=700 * MB)
    summary = summarize(recording(totals=totals(peaks=peaks)))

    assert (summary.ram_used_bytes, summary.machine_ram_used_bytes) == (3000 * MB, 3000 * MB)


def test_memory_that_was_never_read_is_not_zero() -> None:
    """The job ended before the first sample."""
    assert summarize(recording(totals=Totals(0.001))).ram.combined.basis == "unknown"


def test_what_was_never_read_is_not_zero_beside_what_the_kernel_keeps() -> None:
    """Without a sampler only the peak of the largest process is known."""
    large = RamPeak(500 * MB)
    peaks = Peaks(ram=Parts(RamPeak(), large, large))
    summary = summarize(recording(totals=Totals(60.0, peaks=peaks)))
    read = summarize(recording(totals=Totals(60.0, peaks=peaks._replace(processes=2))))

    assert [part.basis for part in summary.ram] == ["unknown", "sampled", "sampled"]
    assert (summary.processes, summary.threads) == (None, Parts(None, None, None))
    assert (read.processes, read.threads.combined) == (2, 0)


@pytest.mark.parametrize(
    ("changes", "are_known"),
    [
        ({}, True),
        ({"end": None}, False),
        ({"end": None, "events": (Event(0.0, "note", NO_GPU),)}, True),
        ({"end": None, "events": (found(gpu(0)),)}, True),
        ({"end": End("sampler lost", 0, Totals(1.0), 0.0, 0)}, False),
        ({"events": (Event(0.0, "unread", "nvidia"),)}, False),
    ],
)
def test_no_device_means_none_only_if_all_drivers_have_answered(
    changes: dict[str, Any], are_known: bool
) -> None:
    """A tracking file then says so."""
    assert are_gpus_known(recording(**changes)) is are_known


def test_a_device_has_what_was_read() -> None:
    """The mean is the integral over the time; what was not read is not known."""
    counters, peaks = gpu_totals()
    summary = summarize(
        recording(
            header=header(gpu_uuids=("GPU-0",)),
            events=(found(gpu(0)), found(gpu(1, None)._replace(is_visible=False))),
            totals=totals(
                gpu_counters=(counters,),
                peaks=totals().peaks._replace(
                    gpus=(peaks,), gpu_bytes=Parts(0, 0, 2000 * MB), gpu_utilization_sum_percent=90.0
                ),
            ),
        )
    )
    first, second = summary.gpus

    assert (first.mean_percent, first.max_percent, first.job_bytes.combined) == (50.0, 90.0, 2000 * MB)
    assert (first.is_expected, second.is_expected) == (True, False)
    assert (second.mean_percent, second.used_bytes) == (None, None)
    assert (summary.gpu_capacity_bytes, summary.gpu_bytes.combined) == (40_000 * MB, 2000 * MB)
    assert (summary.gpu_mean_sum_percent, summary.gpu_max_sum_percent) == (50.0, 90.0)


@pytest.mark.parametrize(("used", "shown"), [(500 * MB, 2000 * MB), (3000 * MB, 3000 * MB), (None, None)])
def test_all_processes_hold_at_least_what_the_job_holds(used: int | None, shown: int | None) -> None:
    """Of which the driver's accounting may know more than any reading."""
    counters, peaks = gpu_totals()
    summary = summarize(
        recording(
            events=(found(gpu(0)),),
            totals=totals(
                gpu_counters=(counters,),
                peaks=totals().peaks._replace(gpus=(peaks._replace(used_bytes=used),)),
            ),
        )
    )

    assert (summary.gpus[0].job_bytes.combined, summary.gpus[0].used_bytes) == (2000 * MB, shown)


def test_a_total_with_an_unknown_part_is_not_known() -> None:
    """A worker of known size on one device, one of unknown size on the other, or it may be there for all that is known."""
    _, first = gpu_totals()
    second = first._replace(uuid="GPU-1", job_bytes=Parts(0, None, None))

    def total(*gpus: GpuPeaks, is_visible: bool = True) -> Parts[int | None]:
        events = (found(gpu(0)), found(gpu(1)._replace(is_visible=is_visible)))
        peaks = totals().peaks._replace(gpus=gpus, gpu_bytes=Parts(0, 2000 * MB, 2000 * MB))
        return summarize(recording(events=events, totals=totals(peaks=peaks))).gpu_bytes

    assert total(first, second) == Parts(0, None, None)
    assert total(first, second, is_visible=False) == Parts(0, None, None)
    unused = second._replace(has_job=False)
    assert total(first, unused) == Parts(0, None, None)
    assert total(first, unused, is_visible=False) == Parts(0, 2000 * MB, 2000 * MB)


def test_a_device_that_was_lost_before_the_job_was_on_it_leaves_the_total() -> None:
    """The total is that of the others; of a device that was known for a moment only, nothing is known."""
    counters, first = gpu_totals()
    second = first._replace(uuid="GPU-1", job_bytes=Parts(None, None, None), has_job=False)

    def total(unknown_seconds: float) -> int | None:
        lost = counters._replace(uuid="GPU-1", job_bytes_unknown_seconds=unknown_seconds)
        peaks = totals().peaks._replace(gpus=(first, second), gpu_bytes=Parts(0, 0, 2000 * MB))
        summed = totals(gpu_counters=(counters, lost), peaks=peaks)
        return summarize(recording(events=(found(gpu(0)), found(gpu(1))), totals=summed)).gpu_bytes.combined

    assert (total(6.0), total(9.9)) == (2000 * MB, None)


def test_a_device_that_was_never_read_is_unknown_all_the_time() -> None:
    """Its driver hung from the start."""
    summary = summarize(recording(events=(found(gpu(0)),), totals=totals(gpu_counters=())))
    (device,) = summary.gpus

    assert (device.job_bytes.combined, device.used_bytes) == (None, None)
    assert device.job_bytes_unknown_seconds == device.used_bytes_unknown_seconds == summary.seconds > 0


def test_of_an_estimate_no_part_is_known() -> None:
    """The growth of the device's memory may be any process's."""
    _, peaks = gpu_totals()
    unseen = peaks._replace(job_bytes=Parts(0, 0, 0), has_job=False, grown_bytes=700 * MB)
    summary = summarize(
        recording(
            events=(found(gpu(0)), Event(1.0, "unattributed", "?")),
            totals=totals(peaks=totals().peaks._replace(gpus=(unseen,), gpu_bytes=Parts(0, 0, 0))),
        )
    )

    assert summary.gpus[0].job_bytes == Parts(None, None, 700 * MB)
    assert (summary.gpus[0].basis, summary.gpu_bytes) == ("estimate", Parts(None, None, None))


def test_a_single_reading_of_a_device_is_its_mean() -> None:
    """There is no time to integrate over; but it says nothing of a long run."""
    counters, peaks = gpu_totals()
    one_reading = totals(
        gpu_counters=(counters._replace(utilization_seconds=0.0),),
        peaks=totals().peaks._replace(gpus=(peaks,)),
    )

    def mean(seconds: float) -> float | None:
        run = recording(events=(found(gpu()),), totals=one_reading._replace(at_seconds=seconds))
        return summarize(run).gpus[0].mean_percent

    assert mean(0.3) == pytest.approx(90.0)
    assert mean(30.0) is None


def test_the_devices_that_count_are_named_used_or_visible() -> None:
    """In that order."""
    _, peaks = gpu_totals()
    met = totals().peaks._replace(
        gpus=(peaks,), gpu_utilization_sum_percent=120.0, gpu_with_job_sum_percent=90.0
    )
    unmet = met._replace(gpus=(peaks._replace(has_job=False),))
    events = (found(gpu(0)), found(gpu(1)), found(gpu(2)._replace(is_visible=False)))

    def expected(peaks: Peaks, named: tuple[str, ...] | None = None) -> tuple[list[bool], float | None]:
        shown = summarize(
            recording(header=header(gpu_uuids=named), events=events, totals=totals(peaks=peaks))
        )
        return [gpu.is_expected for gpu in shown.gpus], shown.gpu_max_sum_percent

    assert expected(met) == ([True, False, False], 90.0)
    assert expected(unmet) == ([True, True, False], 120.0)
    assert expected(met, ("GPU-2",)) == ([False, False, True], 120.0)


def test_throttling_needs_time() -> None:
    """A device that was read once has no share of it."""
    counters, peaks = gpu_totals()
    one_reading = totals(
        gpu_counters=(counters._replace(utilization_seconds=0.0, energy_seconds=0.0),),
        peaks=totals().peaks._replace(gpus=(peaks,)),
    )
    (device,) = summarize(recording(events=(found(gpu()),), totals=one_reading)).gpus

    assert (device.throttled, device.mean_watts, device.energy_joules) == ((), None, 2500.0)


def test_memory_that_devices_share_is_one_capacity() -> None:
    """Instances for computing in one of the GPU."""
    one = gpu(0)
    other = gpu(1)._replace(shares_memory_with=one.uuid)

    assert summarize(recording(events=(found(one), found(other)))).gpu_capacity_bytes == one.memory_bytes


def test_a_vendor_that_never_answered_makes_every_total_unknown() -> None:
    """Its devices are not even known by name; the other's own figures are what they were."""
    counters, peaks = gpu_totals()
    summed = totals().peaks._replace(
        gpus=(peaks,), gpu_bytes=peaks.job_bytes, system_gpu_bytes=1, gpu_with_job_sum_percent=90.0
    )
    known = recording(events=(found(gpu(0)),), totals=totals(peaks=summed, gpu_counters=(counters,)))
    silent = known._replace(events=(*known.events, Event(9.0, UNREAD, "amd")))
    summary = summarize(silent)

    assert summarize(known).gpu_bytes == peaks.job_bytes
    assert summary.gpu_bytes == Parts(None, None, None)
    assert summary.gpus == summarize(known).gpus
    assert (summary.system_gpu_bytes, summary.gpu_capacity_bytes) == (None, None)
    assert (summary.gpu_max_sum_percent, summary.gpu_mean_sum_percent) == (None, None)
    measured, unmeasured = overall_values(summarize(known)), overall_values(summary)
    assert None not in (measured["peak_gpu_ram"], measured["gpu_utilization"], measured["energy"])
    assert {unmeasured[name] for name in ("peak_gpu_ram", "gpu_utilization", "energy")} == {None}


@pytest.mark.parametrize(("ordinal", "is_unread"), [(0, False), (1, True)])
def test_a_device_that_could_not_be_opened_is_unread_until_it_is_found(ordinal: int, is_unread: bool) -> None:
    """Then it has its own figures, and how long they are missing."""
    events = (Event(0.0, UNREAD, name_unread("nvidia", ordinal)), found(gpu(0)))
    peaks = Peaks(gpus=(GpuPeaks("GPU-0", 9, Parts(5, 0, 5)),), gpu_bytes=Parts(5, 0, 5))
    summary = summarize(recording(events=events, totals=totals(peaks=peaks)))

    assert (summary.has_unread_gpus, summary.gpu_bytes.combined) == (is_unread, None if is_unread else 5)


def test_activity_is_the_mean_over_the_time_that_was_measured() -> None:
    """And nothing without time."""
    counters, peaks = gpu_totals()
    active = counters._replace(activity=((310.0, 10.0), (0.0, 0.0), (0.0, 10.0)), traffic=(7, None, 0))
    every = totals(peaks=totals().peaks._replace(gpus=(peaks,)), gpu_counters=(active,))
    (summary,) = summarize(recording(events=(found(gpu(0)),), totals=every)).gpus

    assert summary.activity == Activity(31.0, None, 0.0, None)
    assert summary.traffic == Traffic(7, None, 0)


def test_processes_that_used_gpus_are_told_by_how_much() -> None:
    """Those of which it is known."""
    processes = tuple(
        ProcessTotals(pid, 1, "a", 0.0, 1.0, 1.0, 1, gpu_seconds)
        for pid, gpu_seconds in ((5, 1.0), (6, None), (7, 3.0))
    )
    run = recording(events=(found(gpu(0)),), processes=processes)

    assert [use.pid for use in summarize(run).gpu_uses] == [7, 5]
    assert summarize(recording(processes=processes)).gpu_uses == ()


@pytest.mark.parametrize(
    ("basis", "unread_seconds", "ending", "expected"),
    [
        ("sampled", 0.0, "exited", False),
        ("sampled", 0.1, "exited", False),
        ("sampled", 0.2, "exited", True),
        ("sampled", 0.01, "sampler lost", True),
        ("exact", 5.0, "sampler lost", False),
        ("unknown", 5.0, "sampler lost", False),
    ],
)
def test_a_peak_is_a_lower_bound_if_nothing_was_read_for_some_of_the_time(
    basis: str, unread_seconds: float, ending: str, expected: bool
) -> None:
    """Of ten seconds; however short that was if the sampler was lost. A mark of the kernel covers it."""
    peaks = totals().peaks._replace(ram=Parts(*[RamPeak(500 * MB, 500 * MB, 0, basis)] * 3))
    summary = summarize(recording(totals=totals(unread_seconds=unread_seconds, peaks=peaks)))

    assert is_ram_least(summary, ending) is expected
    assert summary.is_partly_unread is (unread_seconds > 1)


@pytest.mark.parametrize(
    ("used", "percent", "events", "basis"),
    [
        (2000, 40.0, (), "estimate"),
        (2400, 40.0, (), "estimate"),
        (2500, 40.0, (), "sampled"),
        (None, 40.0, (), "sampled"),
        (2000, 47.5, (), "sampled"),
        (2500, 47.5, (Event(1.0, "polled", "GPU-0"),), "estimate"),
        (2500, 47.5, (Event(1.0, "drawn", "GPU-0"),), "estimate"),
    ],
)
def test_a_job_that_is_alone_on_a_device_did_what_the_device_did(
    used: int | None, percent: float, events: tuple[Event, ...], basis: str
) -> None:
    """If it seems to have done notably less, samples of its processes are missing; beside others nobody can tell."""
    counters, peaks = gpu_totals()
    peaks = peaks._replace(used_bytes=None if used is None else used * MB)
    counters = counters._replace(job_percent_seconds=10 * percent, job_seconds=10.0)
    summed = totals(gpu_counters=(counters,), peaks=totals().peaks._replace(gpus=(peaks,)))
    (shown,) = summarize(recording(events=(found(gpu()), *events), totals=summed)).gpus

    assert (shown.mean_percent, shown.job_mean_percent) == (50.0, percent)
    assert shown.job_utilization_basis == basis


@pytest.mark.parametrize(
    ("kind", "reason", "is_least"),
    [
        ("note", "exited", False),
        ("unreaped", "exited", True),
        ("unseen_end", "ended", True),
        ("note", "sampler lost", True),
    ],
)
def test_cpu_time_is_a_lower_bound_where_nobody_has_learned_what_processes_used(
    kind: str, reason: str, is_least: bool
) -> None:
    """Without a sampler, only those count for which their parents have waited."""
    end = End(reason, 0, Totals(1.0), 0.0, 0)
    summary = summarize(recording(events=(Event(1.0, kind, "?"),), end=end))

    assert summary.is_cpu_least is is_least
