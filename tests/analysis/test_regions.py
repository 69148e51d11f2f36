"""Regions and metrics of a run, combined over processes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from builders import MB, recording
from gpu_tracker.analysis.regions import (
    PeakCall,
    Region,
    describe_cost,
    describe_gaps,
    summarize_metrics,
    summarize_regions,
)
from gpu_tracker.core.model import Call, MetricRow, RegionGaps, RegionTotals
from recorded import part


def summarize(*parts: RegionTotals, calls: tuple[Call, ...] = ()) -> Region:
    """The one region that these are parts of."""
    (region,) = summarize_regions(recording(regions=parts, calls=calls))
    return region


def call(number: int, peak: int | None, pid: int = 1, basis: str = "sampled") -> Call:
    """A call that began at its number and took half a second."""
    return Call(
        ("step",), pid, number, float(number), number + 0.5, peak_ram_bytes=peak, peak_ram_basis=basis
    )


def test_the_call_with_the_peak_is_known() -> None:
    """If the process itself found the peak; it may have seen more than was sampled."""
    calls = (call(1, 5), call(2, 90, basis="exact"), call(3, None), call(4, 90, pid=2))
    region = summarize(part(1, 1.0, peak_ram_bytes=80, peak_ram_call_seconds=3.0), part(2, 1.0), calls=calls)

    assert region.peak_ram_call == PeakCall(1, 2.0, 2, 2.5)
    assert (region.peak_ram_bytes, region.peak_ram_basis) == (90, "sampled")


def test_an_exact_call_of_a_sampled_region_may_not_be_the_largest() -> None:
    """Nor is a call named that is far from the peak."""
    exact = part(1, 1.0, peak_ram_bytes=80, peak_ram_basis="exact")

    assert summarize(exact, calls=(call(2, 90, basis="exact"),)).peak_ram_basis == "exact"
    assert summarize(exact, calls=(call(2, 90),)).peak_ram_basis == "sampled"
    assert summarize(exact, calls=(call(2, 70, basis="exact"),)).peak_ram_call is None


def test_cpu_time_of_an_open_call_is_a_lower_bound_if_its_tracker_did_not_see_the_end() -> None:
    """What was used after the last reading is missing; calls that have ended are complete, and what is shared stays so."""
    parts = (
        part(1, path=("open",), open_calls=1),
        part(1, path=("ended",)),
        part(1, path=("shared",), open_calls=1, cpu_basis="shared"),
    )
    made = recording(regions=parts)
    assert made.end is not None
    unseen = [made.end._replace(reason=reason) for reason in ("tracker killed", "abandoned", "ended")]

    bases = [
        {region.path[0]: region.cpu_basis for region in summarize_regions(made._replace(end=end))}
        for end in (made.end, None, *unseen)
    ]

    assert bases[0] == {"open": "exact", "ended": "exact", "shared": "shared"}
    assert bases[1:] == [{**bases[0], "open": "sampled"}] * 4


def test_the_call_in_which_the_peak_was_sampled_is_known() -> None:
    """When it began, and more if it is among those that are kept."""
    calls = (call(1, 5), call(2, 90), Call(("step",), 1, 0, 7.0, None))
    sampled = part(1, 1.0, peak_ram_bytes=100, gpu_bytes=4)
    kept = summarize(sampled._replace(peak_ram_call_seconds=1.0, gpu_bytes_call_seconds=2.0), calls=calls)
    unkept = summarize(sampled._replace(peak_ram_call_seconds=6.0), calls=calls)
    unended = summarize(sampled._replace(peak_ram_call_seconds=7.0), calls=calls)

    assert (kept.peak_ram_bytes, kept.peak_ram_call) == (100, PeakCall(1, 1.0, 1, 1.5))
    assert (kept.gpu_bytes, kept.gpu_call) == (4, PeakCall(1, 2.0, 2, 2.5))
    assert (unkept.peak_ram_call, unkept.gpu_call) == (PeakCall(1, 6.0), None)
    assert unended.peak_ram_call == PeakCall(1, 7.0)


def test_without_calls_no_call_has_the_peak() -> None:
    """It is not known."""
    region = summarize(part(1, 1.0, peak_ram_bytes=100))

    assert (region.peak_ram_bytes, region.peak_ram_call, region.gpu_call) == (100, None, None)


def test_a_peak_that_no_kept_call_reaches_is_that_of_the_largest_one() -> None:
    """The kernel's figures differ slightly from each other."""
    region = summarize(part(1, 1.0, peak_ram_bytes=100), calls=(call(1, 99), call(2, 5)))

    assert (region.peak_ram_bytes, region.peak_ram_call) == (100, PeakCall(1, 1.0, 1, 1.5))


@given(st.lists(st.lists(st.floats(0.001, 1000), min_size=1), min_size=1, max_size=5))
def test_calls_of_all_processes_are_one_set(groups: list[list[float]]) -> None:
    """Mean, extremes and deviation are those of all calls together."""
    times = [time for group in groups for time in group]
    region = summarize(*(part(pid, *group) for pid, group in enumerate(groups, start=1)))
    mean = sum(times) / len(times)

    assert (region.calls, region.processes) == (len(times), len(groups))
    assert region.mean_seconds == pytest.approx(mean)
    assert (region.min_seconds, region.max_seconds) == (min(times), max(times))
    assert region.std_seconds == pytest.approx(
        math.sqrt(sum((time - mean) ** 2 for time in times) / len(times)), abs=1e-3 * max(times)
    )


def test_a_recursive_region_has_no_mean_below_its_shortest_call() -> None:
    """Its inner calls are counted, not timed again."""
    region = summarize(part(1, 1.8, calls=3))

    assert (region.mean_seconds, region.std_seconds) == (1.8, 0.0)


def test_a_single_call_does_not_deviate() -> None:
    """Whatever rounding does to its square."""
    region = summarize(part(1, 0.1, squared_seconds=0.1 * 0.1 + 1e-12))

    assert region.std_seconds == 0.0


def test_a_region_that_was_never_left_has_no_mean() -> None:
    """It is unfinished, not an error."""
    region = summarize(part(1, open_calls=1))

    assert (region.calls, region.open_calls, region.mean_seconds, region.std_seconds) == (0, 1, None, None)


@pytest.mark.parametrize(
    ("gaps", "words"),
    [
        (RegionGaps(), []),
        (
            RegionGaps(long_names=2),
            ["Names of regions: 2 too long, shortened to the beginning and a digest."],
        ),
        (
            RegionGaps(1, 5, 1),
            [
                "Names of regions: 1 too long, shortened to the beginning and a digest; 5 too many, not recorded: "
                "a process can have 1000 regions, 100 of them inside each other, so do not put a changing value into a name."
            ],
        ),
        (
            RegionGaps(0, 10_000, 3),
            [
                "Names of regions: at least 10000 too many in 3 processes, not recorded: "
                "a process can have 1000 regions, 100 of them inside each other, so do not put a changing value into a name."
            ],
        ),
        (
            RegionGaps(unfollowed_processes=1),
            ["Regions of 1 process could not be followed: their files could not be created."],
        ),
        (
            RegionGaps(lost_metrics=3),
            ["Metrics of 3 calls of log could not be recorded: there was no room for them."],
        ),
        (
            RegionGaps(lost_metrics=1),
            ["Metrics of 1 call of log could not be recorded: there was no room for them."],
        ),
        (
            RegionGaps(refused_metrics=1),
            [
                "Names of metrics: too many, so 1 number was not recorded: a job can have 10,000 metrics, "
                "so do not put a changing value into a name."
            ],
        ),
        (
            RegionGaps(refused_metrics=15_201),
            [
                "Names of metrics: too many, so 15,201 numbers were not recorded: a job can have 10,000 metrics, "
                "so do not put a changing value into a name."
            ],
        ),
        (
            RegionGaps(1, unfollowed_processes=2),
            [
                "Names of regions: 1 too long, shortened to the beginning and a digest.",
                "Regions of 2 processes could not be followed: their files could not be created.",
            ],
        ),
    ],
)
def test_what_is_missing_is_said_in_one_sentence(gaps: RegionGaps, words: list[str]) -> None:
    """If anything is."""
    assert describe_gaps(gaps) == words


def test_shortest_and_longest_may_be_unknown() -> None:
    """The mean is."""
    assert summarize(part(1, 4.0, calls=2, shortest_seconds=None)).mean_seconds == 2.0


def test_memory_is_that_of_the_process_that_held_most() -> None:
    """Its entry and exit too, so that the three belong together; GPU memory is the whole job's."""
    small = part(1, 1.0, entry_ram_bytes=9, exit_ram_bytes=9, peak_ram_bytes=9 * MB, gpu_bytes=7)
    large = part(2, 1.0, entry_ram_bytes=1, exit_ram_bytes=2, peak_ram_bytes=10 * MB, peak_ram_basis="exact")
    region = summarize(small, large)

    assert (region.entry_ram_bytes, region.exit_ram_bytes, region.peak_ram_bytes) == (1, 2, 10 * MB)
    assert (region.peak_ram_basis, region.gpu_bytes) == ("sampled", 7)


def test_a_peak_is_exact_if_it_is_in_every_process_that_entered_the_region() -> None:
    """A smaller one that is only a lower bound may have been the largest; a process that was forked inside has no call of its own."""
    large = part(1, 1.0, peak_ram_bytes=10 * MB, peak_ram_basis="exact")
    small = part(2, 1.0, peak_ram_bytes=9 * MB, peak_ram_basis="exact")
    bound = small._replace(peak_ram_basis="sampled")
    forked = bound._replace(calls=0)

    assert [summarize(large, other).peak_ram_basis for other in (small, bound, forked)] == [
        "exact",
        "sampled",
        "exact",
    ]


def test_utilization_is_the_integral_over_the_time() -> None:
    """And unknown without any."""
    parts = part(1, 1.0, gpu_percent_seconds=50.0, gpu_seconds=1.0), part(2, 1.0, gpu_seconds=1.0)

    assert summarize(*parts).gpu_percent == 25.0
    assert summarize(part(1, 1.0)).gpu_percent is None


def test_energy_is_added_up_only_over_processes_that_do_not_overlap() -> None:
    """Otherwise both count the same energy."""
    first = part(1, 1.0, energy_joules=100.0, first_seconds=0.0, last_seconds=1.0)
    after = part(2, 1.0, energy_joules=50.0, first_seconds=1.0, last_seconds=2.0)
    beside = after._replace(first_seconds=0.5)
    unfinished = first._replace(open_calls=1)

    def energy(*parts: RegionTotals) -> tuple[float | None, str]:
        region = summarize(*parts)
        return region.energy_joules, region.energy_basis

    assert energy(first) == (100.0, "sampled")
    assert energy(part()) == (None, "sampled")
    assert energy(first, after) == (150.0, "sampled")
    assert energy(first, beside) == energy(unfinished, after) == (100.0, "estimate")


def test_energy_that_was_mostly_divided_is_an_estimate() -> None:
    """It lies between what was drawn while the region was open all the time, and while it was open at all."""
    first = part(1, 1.0, energy_joules=100.0, first_seconds=0.0, last_seconds=1.0)
    bounded = first._replace(energy_least_joules=90.0, energy_most_joules=120.0)
    short = part(
        2, 1.0, energy_joules=15.0, energy_least_joules=0.0, energy_most_joules=50.0, first_seconds=1.0
    )
    beside = short._replace(first_seconds=0.5)

    def energy(*parts: RegionTotals) -> tuple[object, ...]:
        region = summarize(*parts)
        return region.energy_basis, region.energy_least_joules, region.energy_most_joules

    assert energy(first) == ("sampled", None, None)
    assert energy(bounded) == ("sampled", 90.0, 120.0)
    assert energy(short) == ("estimate", 0.0, 50.0)
    assert energy(bounded, short) == ("estimate", 90.0, 170.0)
    assert energy(bounded, beside) == ("estimate", 90.0, 170.0)
    assert energy(first, short) == ("sampled", None, None)
    assert energy(first, beside) == ("estimate", None, None)


def test_utilization_says_how_long_it_was_not_known() -> None:
    """The last sample of a run is always missing."""
    known = part(1, 2.0, gpu_percent_seconds=50.0, gpu_seconds=1.8, gpu_unknown_seconds=0.2)
    partly = part(2, 2.0, gpu_percent_seconds=50.0, gpu_seconds=1.0, gpu_unknown_seconds=1.0)

    assert summarize(known).gpu_unknown_seconds == 0.0
    assert (summarize(partly).gpu_seconds, summarize(partly).gpu_unknown_seconds) == (1.0, 1.0)


def test_own_time_is_shared_if_what_was_taken_off_is() -> None:
    """Of the region around a doubtful one: its whole is still exact. Further out, nothing of it was taken off."""
    parts = [
        part(1, 3.0, path=("run",)),
        part(1, 2.0, path=("run", "epoch")),
        part(2, 1.0, path=("run", "epoch", "load"), cpu_basis="shared"),
        part(1, 1.0, path=("killed",), cpu_basis="sampled"),
        part(1, 2.0, path=("use",)),
        part(2, 2.0, path=("use",), own_cpu_basis="shared"),
    ]

    regions = {"/".join(one.path): one for one in summarize_regions(recording(regions=tuple(parts)))}

    assert {name: (one.cpu_basis, one.own_cpu_basis) for name, one in regions.items()} == {
        "run": ("exact", "exact"),
        "run/epoch": ("exact", "shared"),
        "run/epoch/load": ("shared", "shared"),
        "killed": ("sampled", "sampled"),
        "use": ("exact", "shared"),
    }


def test_regions_are_ordered_by_first_entry() -> None:
    """Without one they come last, by name."""
    regions = [
        part(1, 1.0, path=("z",), first_seconds=1.0),
        part(1, 1.0, path=("b",)),
        part(1, 1.0, path=("a",)),
        part(1, 1.0, path=("z", "y"), first_seconds=2.0),
    ]
    shown = summarize_regions(recording(regions=tuple(regions)))

    assert [region.path for region in shown] == [("z",), ("z", "y"), ("a",), ("b",)]


def test_metrics_have_a_last_smallest_mean_and_largest_value() -> None:
    """The last is by time, not by position in the file."""
    rows = (MetricRow(2.0, {"loss": 1.0}), MetricRow(1.0, {"loss": 3.0, "accuracy": 0.5}))
    accuracy, loss = summarize_metrics(recording(metrics=rows))

    assert (accuracy.name, accuracy.last) == ("accuracy", 0.5)
    assert (loss.logged, loss.last, loss.minimum, loss.maximum, loss.mean) == (2, 1.0, 1.0, 3.0, 2.0)


def test_nan_and_inf_are_counted_and_left_out() -> None:
    """A loss that has become nan has no last value and does not affect the mean."""
    rows = (MetricRow(1.0, {"loss": 3.0}), MetricRow(2.0, {"loss": math.nan, "only": math.inf}))
    loss, only = summarize_metrics(recording(metrics=rows))

    assert (loss.last, loss.mean, loss.not_finite) == (None, 3.0, 1)
    assert (only.minimum, only.maximum, only.mean, only.not_finite) == (None, None, None, 1)


def test_a_mean_that_is_too_large_is_not_known() -> None:
    """JSON cannot hold it."""
    rows = (MetricRow(1.0, {"loss": 1.5e308}), MetricRow(2.0, {"loss": 1.5e308}))
    (loss,) = summarize_metrics(recording(metrics=rows))

    assert (loss.mean, loss.maximum) == (None, 1.5e308)


@pytest.mark.parametrize(
    ("calls", "cpu_seconds", "is_told"),
    [(50_100, 10.0, True), (49_000, 10.0, False), (12_000, 0.1, False), (13_000, 0.1, True), (0, 0.0, False)],
)
def test_what_regions_cost_is_told_if_it_matters(calls: int, cpu_seconds: float, is_told: bool) -> None:
    """From a fiftieth of the CPU time on, and from what can be felt."""
    regions = summarize_regions(
        recording(regions=(part(calls=calls - calls // 2), part(path=("b",), calls=calls // 2)))
    )
    notes = describe_cost(regions, cpu_seconds)

    assert bool(notes) == is_told
    assert not notes or notes[0].startswith(f"Regions were entered {calls:,} times: about ")


def test_what_suspending_costs_is_told_if_it_matters() -> None:
    """Of all regions and processes together."""
    parts = part(1, calls=1, switches=150_000), part(2, calls=1, switches=50_000)
    (note,) = describe_cost(summarize_regions(recording(regions=parts)), 10.0)

    assert note.startswith(
        "Regions were entered 2 times, and their code was suspended 200,000 times: about 1.2 s "
    )
    assert describe_cost(summarize_regions(recording(regions=parts)), 100.0) == []
