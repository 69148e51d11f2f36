"""Readings taken while a region was open."""

from __future__ import annotations

import pytest

from builders import MB
from gpu_tracker.accounts import regions as module
from gpu_tracker.accounts.gpus import Drawn, GpuMoment, Span
from gpu_tracker.accounts.regions import RegionAccount
from gpu_tracker.instrument.shared_file import Numbers

KEY = (100, ("epoch", "step"))
OTHER = (100, ("epoch",))
COUNTED = Numbers(
    calls=2,
    wall_ns=3 * 10**9,
    shortest_ns=10**9,
    longest_ns=2 * 10**9,
    squared_seconds=5.0,
    own_wall_ns=10**9,
    last_ns=4 * 10**9,
    first_ns=10**9,
    entry_ram_bytes=50 * MB,
    exit_ram_bytes=-1,
    peak_ram_bytes=-1,
    cpu_ns=10**9,
    own_cpu_ns=5 * 10**8,
)
UNCALLED = Numbers(0, 0, 0, 0, 0.0, 0, 0, 0, -1, -1, -1)


def since_start(nanoseconds: int) -> float | None:
    """The start was at second 1."""
    return nanoseconds / 1e9 - 1 if nanoseconds else None


def open_for(seconds: float, from_seconds: float = 0.0) -> Numbers:
    """The counters of a region whose only call is open."""
    return UNCALLED._replace(
        first_ns=round((from_seconds + 1) * 1e9), open_calls=1, open_wall_ns=round(seconds * 1e9)
    )


def left_after(seconds: float, at_seconds: float) -> Numbers:
    """The same after it was left."""
    ends_ns = round((at_seconds + 1) * 1e9)
    return UNCALLED._replace(
        calls=1, wall_ns=round(seconds * 1e9), first_ns=ends_ns - round(seconds * 1e9), last_ns=ends_ns
    )


def test_a_region_has_its_counters_and_its_samples() -> None:
    """Memory of its own process, GPUs of the job."""
    account = RegionAccount()
    account.take({KEY: 1, OTHER: 1}, {100: 300 * MB, 7: 900 * MB})
    account.take_presence(1.0, [(KEY, open_for(1.0))], since_start)
    account.take_gpus(GpuMoment(2000 * MB, 1, (Span(0.0, 0.5, 80.0),), (Drawn(30.0, 0.0, 0.5),)))
    account.take_gpus(GpuMoment(1000 * MB, 1, (Span(0.5, 1.0, 40.0),), (Drawn(10.0, 0.5, 1.0),)))
    account.take({KEY: 2}, {})
    account.take_gpus(GpuMoment(None))
    (region,) = account.combine([(KEY, COUNTED)], since_start)

    assert (region.pid, region.path) == KEY
    assert (region.calls, region.open_calls, region.wall_seconds, region.cpu_seconds) == (2, 2, 3.0, 1.0)
    assert (region.shortest_seconds, region.longest_seconds, region.squared_seconds) == (1.0, 2.0, 5.0)
    assert (region.own_wall_seconds, region.own_cpu_seconds) == (1.0, 0.5)
    assert (region.entry_ram_bytes, region.exit_ram_bytes) == (50 * MB, None)
    assert (region.peak_ram_bytes, region.peak_ram_basis) == (300 * MB, "sampled")
    assert (region.gpu_bytes, region.energy_joules) == (2000 * MB, 40.0)
    assert (region.gpu_percent_seconds, region.gpu_seconds) == (60.0, 1.0)
    assert (region.first_seconds, region.last_seconds) == (0.0, 3.0)


def test_a_sampled_peak_knows_when_its_call_began() -> None:
    """Of memory and of GPU memory, each the first of its largest readings."""
    account = RegionAccount()
    new = []
    for start, rss, on_gpu in ((1.0, 100, 7), (2.0, 300, None), (3.0, 300, 9), (4.0, 200, 8)):
        account.take({KEY: 1}, {100: rss * MB}, lambda _, start=start: start)  # type: ignore[misc]
        new += account.list_new_peaks()
        account.take_gpus(GpuMoment(on_gpu))
    (region,) = account.combine([(KEY, COUNTED)], since_start)
    (exact,) = account.combine([(KEY, COUNTED._replace(peak_ram_bytes=400 * MB))], since_start)

    assert new == [(KEY[1], KEY[0], 1.0, 100 * MB), (KEY[1], KEY[0], 2.0, 300 * MB)]
    assert (region.peak_ram_bytes, region.peak_ram_call_seconds) == (300 * MB, 2.0)
    assert (region.gpu_bytes, region.gpu_bytes_call_seconds) == (9, 3.0)
    assert (exact.peak_ram_bytes, exact.peak_ram_call_seconds) == (400 * MB, None)


def test_the_kernels_high_water_mark_is_exact() -> None:
    """If it rose inside, and is not below what was sampled."""
    account = RegionAccount()
    account.take({KEY: 1}, {100: 300 * MB})
    marked = COUNTED._replace(peak_ram_bytes=299 * MB)
    low = COUNTED._replace(peak_ram_bytes=200 * MB)
    (exact,) = account.combine([(KEY, marked)], since_start)
    (sampled,) = account.combine([(KEY, low)], since_start)

    assert (exact.peak_ram_bytes, exact.peak_ram_basis) == (300 * MB, "exact")
    assert (sampled.peak_ram_bytes, sampled.peak_ram_basis) == (300 * MB, "sampled")


def test_a_peak_of_a_process_that_ended_inside_is_a_lower_bound() -> None:
    """The mark may have risen after the last reading; not in regions that were left before."""
    account = RegionAccount()
    risen = COUNTED._replace(peak_ram_bytes=90 * MB)
    account.retire(KEY, risen, 1)
    account.retire((100, ("other",)), risen, 0)

    bases = {region.path: region.peak_ram_basis for region in account.combine([], since_start)}
    assert bases == {("epoch", "step"): "sampled", ("other",): "exact"}


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({"exceeded_ns": 4 * 10**9}, (90 * MB, "exact")),
        ({"exceeded_ns": 3 * 10**9}, (90 * MB, "sampled")),
        ({"exceeded_ns": 4 * 10**9, "open_calls": 1}, (90 * MB, "sampled")),
        ({"is_ram_unread": 1}, (90 * MB, "sampled")),
        ({"exceeded_ns": 3 * 10**9, "inside_ram_bytes": 95 * MB, "exact_calls": 2}, (95 * MB, "exact")),
    ],
)
def test_a_peak_is_exact_only_if_no_call_went_on_unseen(
    changes: dict[str, int], known: tuple[int, str]
) -> None:
    """Below a mark that was raised elsewhere, or after the last reading; calls that know their own peaks are seen. Also of ended processes."""
    numbers = COUNTED._replace(peak_ram_bytes=90 * MB, **changes)
    retired = RegionAccount()
    retired.retire(KEY, numbers, 0)

    for account, counted in ((RegionAccount(), [(KEY, numbers)]), (retired, [])):
        (region,) = account.combine(counted, since_start)
        assert (region.peak_ram_bytes, region.peak_ram_basis) == known


def test_calls_with_exact_peaks_make_an_exact_region() -> None:
    """If all have one and none is open; samples do not count then."""
    account = RegionAccount()
    account.take({KEY: 1}, {100: 300 * MB})
    account.take({}, {100: 300 * MB})
    alone = COUNTED._replace(inside_ram_bytes=200 * MB, exact_calls=2)
    mixed = COUNTED._replace(inside_ram_bytes=400 * MB, exact_calls=1)
    around = COUNTED._replace(inside_ram_bytes=400 * MB)
    regions = [account.combine([(KEY, numbers)], since_start)[0] for numbers in (alone, mixed, around)]

    assert [(region.peak_ram_bytes, region.peak_ram_basis) for region in regions] == [
        (200 * MB, "exact"),
        (400 * MB, "sampled"),
        (400 * MB, "sampled"),
    ]
    account.take({KEY: 1}, {})
    (still_open,) = account.combine([(KEY, alone)], since_start)
    assert (still_open.peak_ram_bytes, still_open.peak_ram_basis) == (300 * MB, "sampled")


def test_a_region_without_samples_has_its_counts() -> None:
    """Or has only been entered."""
    called, uncalled = RegionAccount().combine([(KEY, COUNTED), (OTHER, UNCALLED)], since_start)

    assert (called.calls, called.peak_ram_bytes, called.gpu_bytes) == (2, 50 * MB, None)
    assert (uncalled.shortest_seconds, uncalled.peak_ram_bytes, uncalled.first_seconds) == (None, None, None)


def test_an_open_call_counts_up_to_the_last_reading() -> None:
    """What is left of it by the regions inside is its own."""
    around = COUNTED._replace(open_calls=1, open_wall_ns=6 * 10**9)
    inside = COUNTED._replace(wall_ns=4 * 10**9)
    outer, _ = RegionAccount().combine([(OTHER, around), (KEY, inside)], since_start)
    busy, _ = RegionAccount().combine([(OTHER, around), (KEY, inside._replace(wall_ns=10**11))], since_start)

    assert (outer.wall_seconds, outer.open_wall_seconds, outer.own_wall_seconds) == (9.0, 6.0, 5.0)
    assert busy.own_wall_seconds == 1.0


def test_cpu_time_that_may_be_others_is_labelled() -> None:
    """If it is more than a hundredth, and more than ten milliseconds."""
    shared = [COUNTED._replace(shared_cpu_ns=ns) for ns in (0, 10**7, 2 * 10**7)]
    short = COUNTED._replace(cpu_ns=2000, shared_cpu_ns=1000)
    regions = [RegionAccount().combine([(KEY, numbers)], since_start)[0] for numbers in (*shared, short)]

    assert [region.cpu_basis for region in regions] == ["exact", "exact", "shared", "exact"]


def test_own_time_in_which_other_code_went_on_unnoticed_is_labelled() -> None:
    """However little of it there may be: nobody knows."""
    counted = [(KEY, COUNTED._replace(has_own_doubts=1)), (OTHER, COUNTED)]
    regions = RegionAccount().combine(counted, since_start)

    assert [(region.cpu_basis, region.own_cpu_basis) for region in regions] == [
        ("exact", "shared"),
        ("exact", None),
    ]


def test_cpu_time_of_which_much_went_to_entering_regions_is_not_exact() -> None:
    """Its own calls and those of the regions inside: some of it is the tracker's."""
    often = COUNTED._replace(calls=1100, cpu_ns=10**9, shared_cpu_ns=0)
    rarely = often._replace(calls=900)
    short = often._replace(cpu_ns=10**6, calls=900)
    account = RegionAccount()
    regions = account.combine(
        [
            (OTHER, COUNTED._replace(calls=1)),
            (KEY, often),
            ((7, ("a",)), rarely),
            ((8, ("a",)), short),
        ],
        since_start,
    )

    assert [region.cpu_basis for region in regions] == ["shared", "shared", "exact", "exact"]


def test_cpu_time_of_which_much_went_to_suspending_is_not_exact() -> None:
    """As with entering; also around it."""
    often = COUNTED._replace(calls=1, cpu_ns=10**9, shared_cpu_ns=0, switches=1100)
    rarely = often._replace(switches=900)
    regions = RegionAccount().combine(
        [(OTHER, COUNTED._replace(calls=1)), (KEY, often), ((7, ("a",)), rarely)], since_start
    )

    assert [region.cpu_basis for region in regions] == ["shared", "shared", "exact"]
    assert [region.switches for region in regions] == [0, 1100, 900]


def test_cpu_time_of_a_call_in_which_its_process_ended_is_a_lower_bound() -> None:
    """And that of the regions around it, also those in which the process was forked; the rest is exact."""
    account = RegionAccount()
    account.retire(KEY, COUNTED, 1)
    account.retire(OTHER, COUNTED, 0)
    account.retire((100, ("load",)), COUNTED, 0)
    account.retire((200, ("epoch", "step")), COUNTED._replace(shared_cpu_ns=10**8), 1)
    account.retire((300, ("epoch", "step")), COUNTED, 0)

    assert [region.cpu_basis for region in account.combine([], since_start)] == [
        "sampled",
        "sampled",
        "exact",
        "shared",
        "exact",
    ]


def test_only_what_has_changed_is_written_again() -> None:
    """The last line of a region counts."""
    account = RegionAccount()
    before = account.combine([(KEY, COUNTED), (OTHER, UNCALLED)], since_start)
    after = account.combine([(KEY, COUNTED._replace(calls=3)), (OTHER, UNCALLED)], since_start)

    assert account.take_changed(before) == before
    assert account.take_changed(before) == []
    assert [region.calls for region in account.take_changed(after)] == [3]


def test_counts_of_several_files_are_one_region() -> None:
    """After an exec, or for a tracker that was away for a while; in any order."""
    first = COUNTED._replace(exit_ram_bytes=60 * MB, inside_ram_bytes=90 * MB, exact_calls=2)
    second = Numbers(
        calls=1,
        wall_ns=10**9,
        shortest_ns=10**9,
        longest_ns=10**9,
        squared_seconds=1.0,
        own_wall_ns=10**9,
        last_ns=6 * 10**9,
        first_ns=5 * 10**9,
        entry_ram_bytes=-1,
        exit_ram_bytes=80 * MB,
        peak_ram_bytes=-1,
        inside_ram_bytes=70 * MB,
        exact_calls=1,
        cpu_ns=10**8,
        own_cpu_ns=10**8,
    )
    both = [RegionAccount().combine(order, since_start) for order in (
        [(KEY, first), (KEY, second), (OTHER, UNCALLED), (OTHER, UNCALLED)],
        [(OTHER, UNCALLED), (KEY, second), (KEY, first)],
    )]  # fmt: skip
    region, uncalled = both[0]

    assert both[0] == both[1][::-1]
    assert (region.calls, region.wall_seconds, region.squared_seconds) == (3, 4.0, 6.0)
    assert (region.shortest_seconds, region.longest_seconds) == (1.0, 2.0)
    assert (region.own_wall_seconds, region.cpu_seconds, region.own_cpu_seconds) == (2.0, 1.1, 0.6)
    assert (region.entry_ram_bytes, region.exit_ram_bytes) == (50 * MB, 80 * MB)
    assert (region.peak_ram_bytes, region.peak_ram_basis) == (90 * MB, "exact")
    assert (region.first_seconds, region.last_seconds) == (0.0, 5.0)
    assert (uncalled.calls, uncalled.shortest_seconds, uncalled.first_seconds) == (0, None, None)


def test_a_few_ended_processes_are_kept_separately(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beyond that they are merged, with what was sampled."""
    monkeypatch.setattr(module, "_MOST_ENDED", 2)
    account = RegionAccount()
    keys = [(pid, ("load",)) for pid in range(1, 7)]
    account.take(dict.fromkeys(keys[:4], 1), {key[0]: key[0] * 100 * MB for key in keys})
    account.take_presence(0.5, [(key, open_for(0.5)) for key in keys[:4]], since_start)
    account.take_gpus(GpuMoment(2000 * MB, 1, (Span(0.0, 0.5, 80.0),), (Drawn(30.0, 0.0, 0.5),)))
    account.take({keys[4]: 1}, {})
    account.take_gpus(GpuMoment(1000 * MB))
    account.take({}, {})
    account.take_presence(1.0, [], since_start)
    account.take_gpus(GpuMoment(9000 * MB, 1, (Span(0.5, 1.0, 80.0),), (Drawn(70.0, 0.5, 1.0),)))
    for number, key in enumerate(keys):
        account.retire(key, COUNTED, number % 2)
    account.retire(keys[0], COUNTED, 0)
    regions = {region.pid: region for region in account.combine([], since_start)}

    assert sorted(regions) == [0, 1, 2]
    assert [regions[pid].calls for pid in (0, 1, 2)] == [8, 4, 2]
    assert [regions[pid].open_calls for pid in (0, 1, 2)] == [2, 0, 1]
    assert (regions[0].peak_ram_bytes, regions[0].gpu_bytes) == (400 * MB, 2000 * MB)
    assert (regions[0].energy_joules, regions[0].gpu_seconds, regions[1].energy_joules) == (60.0, 1.0, 30.0)


def test_energy_between_two_readings_is_divided_by_time() -> None:
    """A device that draws 100 W is read at 2 s and, lost meanwhile, at 5 s: b was open from 2.2 s to 4.4 s, c from 4.5 s on."""
    b, c = (100, ("b",)), (100, ("c",))
    account = RegionAccount()
    account.take_presence(2.0, [], since_start)
    account.take_gpus(GpuMoment(None, 1, (), (Drawn(200.0, 0.0, 2.0),)))
    account.take({b: 1}, {})
    account.take_presence(4.0, [(b, open_for(1.8, 2.2))], since_start)
    account.take({c: 1}, {})
    account.take_presence(5.0, [(b, left_after(2.2, 4.4)), (c, open_for(0.5, 4.5))], since_start)
    account.take_gpus(GpuMoment(None, 1, (), (Drawn(300.0, 2.0, 5.0),)))
    account.take_presence(6.0, [(c, open_for(1.5, 4.5))], since_start)
    account.take_gpus(GpuMoment(None, 1, (), (Drawn(100.0, 5.0, 6.0),)))
    regions = account.combine([(b, left_after(2.2, 4.4)), (c, open_for(1.5, 4.5))], since_start)

    assert [region.energy_joules for region in regions] == pytest.approx([220.0, 150.0])
    assert [region.energy_least_joules for region in regions] == [0.0, 100.0]
    assert [region.energy_most_joules for region in regions] == [300.0, 400.0]


def test_what_devices_did_after_the_last_reading_of_regions_waits_for_the_next() -> None:
    """At the end, nothing more will be known of them."""
    account = RegionAccount()
    account.take_presence(1.0, [(KEY, open_for(1.0))], since_start)
    account.take_gpus(GpuMoment(None, 2, (Span(0.0, 1.2, 50.0),), (Drawn(120.0, 0.0, 1.2),)))
    (early,) = account.combine([(KEY, open_for(1.0))], since_start)
    account.finish()
    (late,) = account.combine([(KEY, left_after(1.0, 1.0))], since_start)

    assert (early.gpu_seconds, early.energy_joules) == (0.0, None)
    assert (late.gpu_percent_seconds, late.gpu_seconds) == (25.0, 0.5)
    assert late.energy_joules == pytest.approx(100.0)
    assert late.gpu_unknown_seconds == 0.5


def test_a_region_around_a_forked_process_is_open_while_it_is_met() -> None:
    """The process has not entered it itself; nothing is known of utilization that was not read."""
    account = RegionAccount()
    account.take({KEY: 1, OTHER: 0}, {})
    account.take_presence(1.0, [(KEY, open_for(0.5, 0.5))], since_start)
    account.take_gpus(GpuMoment(None, 1, (Span(0.0, 1.0, None),), (Drawn(100.0, 0.0, 1.0),)))
    regions = account.combine([(KEY, open_for(0.5, 0.5)), (OTHER, UNCALLED)], since_start)

    assert [region.energy_joules for region in regions] == pytest.approx([50.0, 100.0])
    assert [region.gpu_unknown_seconds for region in regions] == [None, None]
