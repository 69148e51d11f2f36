"""The figures that are compared."""

from __future__ import annotations

import math
from typing import Any

import pytest

from builders import MB, alone, found, gpu, gpu_totals, header, recording, totals
from gpu_tracker.analysis.measures import Subject, list_estimates, measure, overall_values
from gpu_tracker.analysis.summary import is_known_enough, is_read_enough, summarize
from gpu_tracker.core.figures import LAST_METRIC, REGION, RUN
from gpu_tracker.core.model import (
    EARLIER,
    SIGNAL,
    Allocation,
    End,
    Event,
    Identity,
    MetricRow,
    Parts,
    RamPeak,
    RecordingData,
    RegionGaps,
)
from gpu_tracker.core.units import humanize
from recorded import part


def on_gpus(*events: Event, known: bool = True) -> RecordingData:
    """A job on one device."""
    counters, peaks = gpu_totals()
    if not known:
        peaks = peaks._replace(job_bytes=Parts(None, None, None))
    summed = totals(
        gpu_counters=(counters,),
        peaks=totals().peaks._replace(gpus=(peaks,), gpu_bytes=Parts(0, 0, 2000 * MB)),
    )
    return recording(events=(found(gpu()), *events), totals=summed)


def overall(shown: RecordingData) -> dict[str, float | None]:
    """The figures of the whole run, by name."""
    values = measure(shown).values
    return {figure.name: values[Subject(figure)] for figure in RUN}


def test_a_run_without_gpus_has_no_gpu_figures() -> None:
    """Not zero."""
    assert overall(recording()) == {
        "time": 10.0,
        "cpu_time": 10.0,
        "mean_cores": 1.0,
        "peak_ram": 500 * MB,
        "peak_gpu_ram": None,
        "gpu_utilization": None,
        "energy": None,
    }


def test_a_run_that_ended_before_its_first_reading_has_no_figures() -> None:
    """How long it took is not known, so no limit of it was kept."""
    values = overall(recording(totals=totals(at_seconds=0.0, readings=0)))

    assert (values["time"], values["cpu_time"], values["mean_cores"]) == (None, None, None)


def test_a_run_on_a_gpu_has_gpu_figures() -> None:
    """Memory of the job, utilization and energy of its devices."""
    values = overall(on_gpus())

    assert (values["peak_gpu_ram"], values["gpu_utilization"], values["energy"]) == (2000 * MB, 50.0, 2500.0)


@pytest.mark.parametrize(("known_share", "values"), [(0.6, (50.0, 1500.0)), (0.3, (None, None))])
def test_a_mean_or_sum_that_is_known_for_less_than_half_of_the_run_is_unknown(
    known_share: float, values: tuple[float | None, float | None]
) -> None:
    """A limit on it cannot be checked then."""
    shown = on_gpus()
    (counters,) = shown.totals.gpu_counters
    partial = counters._replace(
        utilization_percent_seconds=known_share * counters.utilization_percent_seconds,
        utilization_seconds=known_share * counters.utilization_seconds,
        energy_joules=known_share * (counters.energy_joules or 0.0),
        energy_seconds=known_share * counters.energy_seconds,
    )
    found = overall(shown._replace(totals=shown.totals._replace(gpu_counters=(partial,))))

    assert (found["gpu_utilization"], found["energy"]) == pytest.approx(values)


@pytest.mark.parametrize(
    ("unknown_seconds", "basis", "is_known"),
    [(1.0, "sampled", True), (1.2, "sampled", False), (8.0, "sampled", False), (8.0, "exact", True)],
)
def test_a_peak_that_is_known_for_a_part_of_the_run_may_have_been_more(
    unknown_seconds: float, basis: str, is_known: bool
) -> None:
    """It is a lower bound, unless the driver itself has kept it."""
    shown = on_gpus()
    (counters,), (peaks,) = shown.totals.gpu_counters, shown.totals.peaks.gpus
    unread = counters._replace(
        job_bytes_unknown_seconds=unknown_seconds, used_bytes_unknown_seconds=unknown_seconds
    )
    partial = shown.totals._replace(
        gpu_counters=(unread,),
        peaks=shown.totals.peaks._replace(gpus=(peaks._replace(basis=basis),)),
    )
    found = measure(shown._replace(totals=partial))

    assert {subject.figure.name for subject in found.ceilings} == (set() if is_known else {"peak_gpu_ram"})
    assert set(found.ceilings.values()) <= {math.inf}


@pytest.mark.parametrize("gap_seconds", [0.0, 0.2])
def test_a_gap_in_the_middle_is_never_too_short(gap_seconds: float) -> None:
    """What was not known at the start is tolerated, and as much in the middle is not."""
    shown = on_gpus()
    (counters,) = shown.totals.gpu_counters
    gaps = counters._replace(
        job_bytes_unknown_seconds=0.5,
        used_bytes_unknown_seconds=0.5,
        utilization_percent_seconds=475.0,
        utilization_seconds=9.5,
        job_bytes_gap_seconds=gap_seconds,
        used_bytes_gap_seconds=gap_seconds,
        utilization_gap_seconds=gap_seconds,
    )
    found = measure(shown._replace(totals=shown.totals._replace(gpu_counters=(gaps,))))
    bounds = {
        subject.figure.name: (found.floors.get(subject), ceiling)
        for subject, ceiling in found.ceilings.items()
    }

    expected = {"peak_gpu_ram": (None, math.inf), "gpu_utilization": (47.5, 52.5)}
    assert bounds == (expected if gap_seconds else {})
    assert (found.unheld_seconds, found.unutilized_seconds) == ((0.5, 0.5) if gap_seconds else (0.0, 0.0))


@pytest.mark.parametrize("hours", [1, 10])
def test_a_run_may_be_long_and_no_more_is_tolerated(hours: int) -> None:
    """A second and a half at the start, and half a second of energy."""
    shown = on_gpus()
    seconds = 3600.0 * hours
    (counters,) = shown.totals.gpu_counters

    def list_at_least(unknown_seconds: float, unmetered_seconds: float) -> tuple[str, ...]:
        late = counters._replace(
            job_bytes_unknown_seconds=unknown_seconds,
            utilization_percent_seconds=50 * seconds,
            utilization_seconds=seconds,
            energy_seconds=seconds - unmetered_seconds,
        )
        totals_of_long = shown.totals._replace(at_seconds=seconds, gpu_counters=(late,))
        return measure(shown._replace(totals=totals_of_long)).at_least

    assert list_at_least(1.4, 0.5) == ()
    assert list_at_least(1.6, 0.5) == ("peak_gpu_ram",)
    assert list_at_least(1.4, 0.6) == ("energy",)


def test_of_work_that_was_done_elsewhere_only_the_time_is_known() -> None:
    """All else may have been more, of the run and of its regions."""
    shown = on_gpus()
    launcher = shown._replace(
        header=shown.header._replace(command=("srun", "train")), regions=(part(1, 1.0, cpu_seconds=0.5),)
    )
    found = measure(launcher)
    unbounded = {"cpu_time", "mean_cores", "peak_ram", "peak_gpu_ram", "energy"}

    assert found.elsewhere.startswith("srun has its work done elsewhere")
    assert set(found.at_least) == unbounded
    for region in ((), ("step",)):
        ceilings = {
            subject.figure.name: most for subject, most in found.ceilings.items() if subject.region == region
        }
        assert ceilings == dict.fromkeys(unbounded, math.inf)
    assert (measure(shown).elsewhere, measure(shown).at_least) == ("", ())


def test_of_work_that_was_done_elsewhere_what_is_not_known_has_no_bound() -> None:
    """As GPU memory without a GPU."""
    made = recording()
    found = measure(made._replace(header=made.header._replace(command=("srun", "train"))))

    assert found.at_least == ("cpu_time", "mean_cores", "peak_ram")


def test_unattributed_memory_is_compared_as_estimated() -> None:
    """By the growth of the device's memory since the start."""
    assert overall(on_gpus(Event(1.0, "unattributed", "?"), known=False))["peak_gpu_ram"] == 2500 * MB
    assert overall(on_gpus(known=False))["peak_gpu_ram"] is None


def bound_gpu_bytes(shown: RecordingData) -> tuple[float | None, float | None]:
    """What the job held on all devices at least and at most, where that differs from its peak."""
    found = measure(shown)
    return tuple(  # type: ignore[return-value]
        {subject.figure.name: bound for subject, bound in bounds.items()}.get("peak_gpu_ram")
        for bounds in (found.floors, found.ceilings)
    )


def test_an_estimate_is_bounded_by_what_all_processes_held() -> None:
    """What others gave back while the job grew hides it, so the growth of the device bounds nothing."""
    estimated = on_gpus(Event(1.0, "unattributed", "?"), known=False)
    nothing_used = estimated.totals.peaks.gpus[0]._replace(used_bytes=None)
    peaks = estimated.totals.peaks._replace(gpus=(nothing_used,), gpu_bytes=Parts(None, None, None))
    unused = estimated._replace(totals=estimated.totals._replace(peaks=peaks))

    # Elsewhere it is known to have held two of them.
    assert bound_gpu_bytes(estimated) == (2000 * MB, 3000 * MB)
    assert bound_gpu_bytes(unused) == (0.0, math.inf)
    assert bound_gpu_bytes(on_gpus()) == (None, None)


def test_an_estimate_beside_a_device_that_lists_its_processes() -> None:
    """There the job's own peak is known."""
    counters, peaks = gpu_totals()
    listed = gpu_totals("GPU-1")
    unlisted = peaks._replace(job_bytes=Parts(None, None, None))
    summed = totals(
        gpu_counters=(counters, listed[0]),
        peaks=totals().peaks._replace(gpus=(unlisted, listed[1]), gpu_bytes=Parts(0, 0, 1900 * MB)),
    )
    both = recording(events=(found(gpu()), found(gpu(1)), Event(1.0, "unattributed", "?")), totals=summed)

    assert bound_gpu_bytes(both) == (1900 * MB, 5000 * MB)


@pytest.mark.parametrize(
    ("unlisted_seconds", "basis", "bounds"),
    [
        (0.8, "sampled", (2000 * MB, 3000 * MB)),
        (0.1, "sampled", (None, None)),
        (0.8, "exact", (None, None)),
    ],
)
def test_a_peak_is_bounded_by_what_all_processes_held_while_none_was_listed(
    unlisted_seconds: float, basis: str, bounds: tuple[float | None, float | None]
) -> None:
    """However short that was, unless the driver itself has kept the peak."""
    shown = on_gpus()
    (counters,), (peaks,) = shown.totals.gpu_counters, shown.totals.peaks.gpus
    partial = shown.totals._replace(
        gpu_counters=(counters._replace(job_bytes_unknown_seconds=unlisted_seconds),),
        peaks=shown.totals.peaks._replace(gpus=(peaks._replace(basis=basis),)),
    )

    assert bound_gpu_bytes(shown._replace(totals=partial)) == bounds


def test_a_job_that_was_not_listed_at_first_may_have_held_more_then() -> None:
    """Every device lists it now, so that what it held is known but for that time."""
    assert bound_gpu_bytes(on_gpus()) == (None, None)
    assert bound_gpu_bytes(on_gpus(Event(1.0, "unattributed", "?"))) == (2000 * MB, 3000 * MB)


@pytest.mark.parametrize(
    ("used_bytes_unknown_seconds", "bounds"), [(3.0, (None, math.inf)), (0.0, (2000 * MB, 5000 * MB))]
)
def test_a_device_that_the_job_was_not_on_bounds_it_where_only_its_list_failed(
    used_bytes_unknown_seconds: float, bounds: tuple[float | None, float | None]
) -> None:
    """The job may have come and gone meanwhile. Where nothing could be read, that is bounded by nothing."""
    shown, (idle, peaks) = on_gpus(), gpu_totals("GPU-1")
    unknown = idle._replace(
        job_bytes_unknown_seconds=3.0, used_bytes_unknown_seconds=used_bytes_unknown_seconds
    )
    lost = shown.totals._replace(
        gpu_counters=(*shown.totals.gpu_counters, unknown),
        peaks=shown.totals.peaks._replace(
            gpus=(
                *shown.totals.peaks.gpus,
                peaks._replace(job_bytes=Parts(None, None, None), has_job=False),
            )
        ),
    )

    assert bound_gpu_bytes(shown._replace(totals=lost, events=(*shown.events, found(gpu(1))))) == bounds


def test_an_estimate_beside_a_device_of_which_nothing_is_known_is_no_sum() -> None:
    """The job may hold anything there."""
    summary = summarize(on_gpus(Event(1.0, "unattributed", "?"), found(gpu(1)), known=False))

    assert [one.may_hold_unseen for one in summary.gpus] == [False, True]
    assert overall_values(summary)["peak_gpu_ram"] is None


def test_estimates_are_named() -> None:
    """Memory of a device that does not tell whose it is."""
    estimated = on_gpus(Event(1.0, "unattributed", "?"), known=False)

    assert list_estimates(summarize(estimated)) == ("peak_gpu_ram",)
    assert list_estimates(summarize(on_gpus())) == ()


def test_a_peak_may_have_been_larger_than_measured() -> None:
    """By what processes share at most, or by all that was not measured."""
    ram = totals().peaks._replace(
        ram=Parts(*[RamPeak(500 * MB, 500 * MB, 0, "estimate")] * 3), ram_ceiling_bytes=800 * MB
    )
    shared = recording(totals=totals(at_seconds=10.0, peaks=ram))
    stopped = recording(totals=totals(at_seconds=10.0, unread_seconds=8.0))
    briefly = recording(totals=totals(at_seconds=10.0, unread_seconds=3.0))

    unseen = recording(end=End("ended", 0, totals(), 0.1, 0))  # by a process that was attached to

    ceilings = [
        {subject.figure.name: most for subject, most in measure(one).ceilings.items()}
        for one in (shared, stopped, briefly, unseen)
    ]
    assert ceilings == [
        {"peak_ram": 800 * MB},
        {"peak_ram": math.inf, "peak_gpu_ram": math.inf},
        {},
        {"peak_ram": math.inf},
    ]


def test_a_region_may_have_used_as_much_as_the_whole_run() -> None:
    """Where what was measured of it is the least: its memory was only sampled, or a process ended inside."""
    regions = (
        part(1, 2.0, path=("sampled",), peak_ram_bytes=100 * MB, gpu_bytes=1000 * MB, energy_joules=5.0),
        part(1, 2.0, path=("exact",), peak_ram_bytes=100 * MB, peak_ram_basis="exact"),
        part(1, 2.0, path=("killed",), cpu_seconds=1.0, cpu_basis="sampled"),
    )
    whole = measure(recording(regions=regions, totals=totals(at_seconds=10.0))).ceilings
    stopped = measure(recording(regions=regions, totals=totals(at_seconds=10.0, unread_seconds=8.0))).ceilings
    counters, _ = gpu_totals()
    unmetered = on_gpus()._replace(
        regions=regions,
        totals=on_gpus().totals._replace(gpu_counters=(counters._replace(energy_seconds=6.0),)),
    )

    assert {(one.region[0], one.figure.name): most for one, most in whole.items()} == {
        ("sampled", "peak_ram"): 500 * MB,
        ("killed", "cpu_time"): math.inf,
        ("killed", "mean_cores"): math.inf,
    }
    assert {(*one.region, one.figure.name): most for one, most in stopped.items()} == {
        ("peak_ram",): math.inf,
        ("peak_gpu_ram",): math.inf,
        ("sampled", "peak_ram"): math.inf,
        ("sampled", "peak_gpu_ram"): math.inf,
        ("killed", "cpu_time"): math.inf,
        ("killed", "mean_cores"): math.inf,
    }
    assert measure(unmetered).ceilings[Subject(REGION[-1], ("sampled",))] == math.inf


def test_what_of_a_device_belongs_to_a_region_is_bounded() -> None:
    """Energy by what was drawn between readings, utilization by nothing and everything; known for less than half, it is unknown."""
    divided = part(
        1, 2.0, path=("divided",), energy_joules=50.0, energy_least_joules=30.0, energy_most_joules=90.0
    )
    partly = part(
        1, 4.0, path=("partly",), gpu_percent_seconds=120.0, gpu_seconds=3.0, gpu_unknown_seconds=1.0
    )
    hardly = part(
        1, 4.0, path=("hardly",), gpu_percent_seconds=40.0, gpu_seconds=1.0, gpu_unknown_seconds=3.0
    )
    found = measure(recording(regions=(divided, partly, hardly), totals=totals(at_seconds=10.0)))
    percent, energy = (
        next(figure for figure in REGION if figure.name == name) for name in ("gpu_utilization", "energy")
    )

    def bound(subject: Subject) -> tuple[float | None, float, float]:
        return found.values[subject], found.floors[subject], found.ceilings[subject]

    assert bound(Subject(energy, ("divided",))) == (50.0, 30.0, 90.0)
    assert bound(Subject(percent, ("partly",))) == (40.0, 30.0, 55.0)
    assert bound(Subject(percent, ("hardly",))) == (None, 10.0, 85.0)


def test_regions_and_metrics_are_figures_too() -> None:
    """A region that was never left has no time."""
    open_part = part(1, path=("open",), open_calls=1)
    step = part(1, 2.0, 4.0, cpu_seconds=3.0)
    values = measure(
        recording(regions=(step, open_part), metrics=(MetricRow(1.0, {"loss": 0.5}),), end=None)
    ).values
    of_step = {figure.name: values[Subject(figure, ("step",))] for figure in REGION}

    assert (of_step["time"], of_step["calls"], of_step["time_per_call"], of_step["mean_cores"]) == (
        6,
        2,
        3,
        0.5,
    )
    assert values[Subject(REGION[0], ("open",))] is None
    assert values[Subject(LAST_METRIC, metric="loss")] == 0.5


def test_nan_is_not_known() -> None:
    """Wherever the file comes from."""
    assert overall(recording(totals=totals(at_seconds=math.nan)))["time"] is None


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "bytes", "-"),
        (1.5, "seconds", "1.5 s"),
        (2e9, "bytes", "2 GB"),
        (10.0, "joules", "10 J"),
        (49.6, "percent", "50 %"),
        (1.234567, "cores", "1.23"),
        (0.1234567, "number", "0.123457"),
        (12, "count", "12"),
    ],
)
def test_a_figure_is_shown_in_its_unit(value: float | None, unit: str, text: str) -> None:
    """An unknown one as a dash."""
    assert humanize(value, unit) == text


@pytest.mark.parametrize(
    ("end", "failure"),
    [
        (None, "no end: killed, or still running"),
        (End("exited", 3, totals(), 0.0, 0), "exit code 3"),
        (End("exited", -9, totals(), 0.0, 0), "killed by signal 9"),
        (End("abandoned", None, totals(), 0.0, 0), "abandoned"),
        (End("sampler lost", 0, totals(), 0.0, 0), "sampler lost"),
        (End("exited", 0, totals(), 0.0, 0), ""),
        (End("stopped", None, totals(), 0.0, 0), ""),
        (End("ended", 0, totals(), 0.0, 0), ""),
        (End("exited", None, totals(), 0.0, 0), "exit code not known"),
        (End("ended", 3, totals(), 0.0, 0), "exit code 3"),
        (End("ended", None, totals(), 0.0, 0), "exit code not known"),
    ],
)
def test_a_run_that_did_not_succeed_says_why(end: End | None, failure: str) -> None:
    """It passes no limit."""
    assert measure(recording(end=end)).failure == failure


@pytest.mark.parametrize(
    ("identity", "signals", "failure"),
    [
        (Identity(job="7"), ("15",), "told to end by SIGTERM (15)"),
        (Identity(job="7"), ("2", "15", "15"), "told to end by SIGINT (2) and SIGTERM (15)"),
        (Identity(scheduler="kubernetes", rank=1), ("15",), "told to end by SIGTERM (15)"),
        (Identity(job="7"), ("10", "nonsense"), ""),
        (Identity(job="7"), (), ""),
        # A service that is stopped on purpose.
        (Identity(), ("15",), ""),
        (Identity(scheduler="kubernetes"), ("15",), ""),
    ],
)
def test_a_job_that_was_told_to_end_has_not_succeeded(
    identity: Identity, signals: tuple[str, ...], failure: str
) -> None:
    """Also if its program saved its work and exited with 0."""
    events = tuple(Event(2.0, SIGNAL, text) for text in signals)
    end = End("exited", 0, totals(), 0.0, 0)
    told = recording(header=header(identity=identity), end=end, events=events)

    assert measure(told).failure == failure
    assert measure(told._replace(end=end._replace(exit_code=143))).failure == "exit code 143"


@pytest.mark.parametrize(
    ("identity", "groups", "failure"),
    [
        (Identity(job="7"), (), "the kernel killed a process of it for its memory"),
        (Identity(run_id="a", rank=1), ("/job_7",), "the kernel killed a process of it for its memory"),
        # A neighbour's, under the same limit.
        (Identity(job="7"), ("",), ""),
        # Without a scheduler the exit code says whether it mattered.
        (Identity(), (), ""),
    ],
)
def test_a_job_that_lost_a_process_for_its_memory_has_not_succeeded(
    identity: Identity, groups: tuple[str, ...], failure: str
) -> None:
    """Slurm calls it out of memory, although its program went on and exited with 0."""
    oom = Event(2.0, "oom", "Out of memory: the kernel killed a process.")
    events = (oom, *(Event(2.0, "oom_group", group) for group in groups))
    told = recording(header=header(identity=identity), end=End("exited", 0, totals(), 0.0, 0), events=events)

    assert measure(told).failure == failure


def test_a_job_that_was_told_to_end_when_its_time_was_up_says_so() -> None:
    """Started at noon, it had ten seconds."""
    allocation = Allocation(4, 4.0, "Slurm", 10**9, 10**9, "Slurm", ends_at_seconds=1769860810.0)
    cut_off = recording(
        header=header(
            identity=Identity(job="7"), allocation=allocation, started_at="2026-01-31T12:00:00+00:00"
        ),
        events=(Event(9.0, SIGNAL, "15"),),
        end=End("exited", 0, totals(), 0.0, 0),
    )

    assert measure(cut_off).failure == "time limit reached, SIGTERM (15)"


@pytest.mark.parametrize(
    ("seconds", "known_seconds", "is_read", "is_sampled"),
    [(0.05, 0.0, True, True), (1.0, 0.4, False, True), (2.0, 0.3, False, False), (10.0, 4.2, False, False)],
)
def test_a_short_run_must_be_known_for_half_of_it_too(
    seconds: float, known_seconds: float, is_read: bool, is_sampled: bool
) -> None:
    """Of utilization, a driver has not reported the last second yet."""
    assert is_read_enough(known_seconds, seconds) is is_read
    assert is_known_enough(known_seconds, seconds) is is_sampled


def test_lower_bounds_are_named() -> None:
    """Of RAM that was not read for some of the time, and of CPU time without a sampler."""
    peaks = totals().peaks._replace(ram=alone(RamPeak(500 * MB, 500 * MB, 0, "sampled")))
    lost = totals(at_seconds=10.0, unread_seconds=6.0, peaks=peaks)
    figures = measure(recording(totals=lost, end=End("sampler lost", 0, lost, 0.0, 0)))

    assert (figures.at_least, figures.unread_seconds) == (("cpu_time", "mean_cores", "peak_ram"), 6.0)
    assert measure(recording()).at_least == ()


@pytest.mark.parametrize(("share", "bounds"), [(0.95, None), (0.6, (30.0, 70.0))])
def test_what_a_device_did_in_the_rest_of_the_time_is_between_nothing_and_everything(
    share: float, bounds: tuple[float, float] | None
) -> None:
    """Its utilization has two bounds, its energy one; a driver may not have reported the last second."""
    shown = on_gpus()
    (counters,) = shown.totals.gpu_counters
    partial = counters._replace(
        utilization_percent_seconds=share * counters.utilization_percent_seconds,
        utilization_seconds=share * counters.utilization_seconds,
        energy_seconds=share * counters.energy_seconds,
    )
    found = measure(shown._replace(totals=shown.totals._replace(gpu_counters=(partial,))))
    percent, energy = (Subject(figure) for figure in RUN if figure.name in ("gpu_utilization", "energy"))

    assert found.ceilings[energy] == math.inf
    assert (found.floors.get(percent), found.ceilings.get(percent)) == pytest.approx(bounds or (None, None))
    assert "energy" in found.at_least


@pytest.mark.parametrize(
    ("gaps", "lacks"),
    [(RegionGaps(), False), (RegionGaps(lost_metrics=1), True), (RegionGaps(refused_metrics=1), True)],
)
def test_metrics_may_be_missing_for_lack_of_room_or_for_too_many_names(gaps: RegionGaps, lacks: bool) -> None:
    """Then a limit on one that is not there cannot be checked."""
    assert measure(recording(gaps=gaps)).lacks_metrics == lacks


def test_what_a_job_held_before_it_was_followed_is_not_known() -> None:
    """It is at least what was seen later."""
    late = measure(recording(events=(Event(0.0, EARLIER, "It had used 9 s of CPU time before."),)))
    (peak,) = (subject for subject in late.values if subject.figure.name == "peak_ram" and not subject.region)

    assert late.ceilings[peak] == math.inf
    assert "peak_ram" in late.at_least


def stopped(*events: Event, ends_at: float | None = None, **identity: Any) -> RecordingData:
    """A program that has stopped its own tracker, after ten seconds: nobody has seen its exit code."""
    allocation = Allocation(4, 4.0, "Slurm", 10**9, 10**9, "Slurm", ends_at_seconds=ends_at)
    head = header(identity=Identity(**identity), allocation=allocation)
    return recording(header=head, events=events, end=End("stopped", None, totals(), 0.0, 0))


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        (stopped(job="7"), ""),
        (stopped(Event(1.0, SIGNAL, "15"), job="7"), "told to end by SIGTERM (15)"),
        (stopped(Event(1.0, SIGNAL, "15")), ""),
        (stopped(job="7", ends_at=1769860809.0), "time limit reached"),
        (stopped(job="7", ends_at=1769860811.0), ""),
        (recording(header=stopped(job="7", ends_at=1769860809.0).header), ""),
    ],
    ids=[
        "by itself",
        "told",
        "a service that is told",
        "when its time was up",
        "just in time",
        "with an exit code",
    ],
)
def test_a_job_that_was_told_to_end_is_no_success_although_its_tracker_was_stopped(
    program: RecordingData, failure: str
) -> None:
    """As is one with an exit code of 0."""
    assert measure(program).failure == failure


def test_slurm_is_asked_where_nobody_has_seen_the_exit_code() -> None:
    """Of its own jobs only."""
    known: dict[str, Any] = {"job": "7", "scheduler": "slurm", "job_name": "train"}
    asked = [measure(one).slurm_job for one in (
        stopped(**known), stopped(job="7", scheduler="pbs"), stopped(scheduler="slurm"),
        stopped(**known)._replace(end=None), stopped(**known)._replace(end=recording().end),
    )]  # fmt: skip

    assert asked == [("7", "train", 1769860800.0), None, None, None, None]
