"""What is drawn of a run."""

from __future__ import annotations

from array import array
from math import inf, isnan, nan
from typing import Any

import pytest

from builders import found, gpu, gpu_totals, header, recording, render_str, sample, totals
from gpu_tracker.analysis.charts import (
    HEAT,
    LINES,
    STACK,
    Chart,
    Line,
    Run,
    collect_logged,
    make_lanes,
    overlay,
)
from gpu_tracker.analysis.frameworks import PARTS
from gpu_tracker.core.columns import SampleColumns
from gpu_tracker.core.model import (
    Allocation,
    Busiest,
    Call,
    FrameworkMemory,
    GpuSample,
    MetricRow,
    Parts,
    PeakMoment,
    Peaks,
    RamPeak,
    RecordingData,
    Sample,
    Spread,
    TreeCounters,
    add_parts,
)
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import build
from recorded import part


def chart_all(shown: RecordingData) -> dict[str, Chart]:
    """The charts by name."""
    return {chart.name: chart for chart in build(shown, read_columns(shown)).list_charts()}


def at_work(at: float, **fields: object) -> Sample:
    """A second of a job on one core; nobody else is there."""
    return sample(at, **{"system_cpu_seconds": at, **fields})


def test_no_cores_are_drawn_that_the_machine_does_not_have() -> None:
    """Time of ended children arrives at once; the mean is left as it is."""
    busiest = Busiest(8.0, 1.0)
    peaks = totals().peaks._replace(busiest=Parts(busiest, Busiest(), busiest), system_busiest=busiest)
    made = recording(
        header=header(allocation=Allocation(2, 2.0, "machine", 16, 16, "machine")),
        samples=(at_work(1.0), sample(2.0, cpu_seconds=add_parts(9.0, 0.0), system_cpu_seconds=10.0)),
        totals=totals(peaks=peaks),
    )
    job, machine = chart_all(made)["cpu"].lines

    assert (list(job.mean), list(job.high or ())) == ([1.0, 8.0], [1.0, 2.0])
    assert (list(machine.mean), list(machine.high or ())) == ([1.0, 9.0], [1.0, 2.0])
    assert list(machine.low or ()) == [1.0, 2.0]


def on_gpus(count: int, *samples: Sample) -> RecordingData:
    """A job on that many devices."""
    made = [gpu_totals(f"GPU-{number}") for number in range(count)]
    return recording(
        samples=samples,
        events=tuple(found(gpu(number)) for number in range(count)),
        totals=totals(
            gpu_counters=tuple(counters for counters, _ in made),
            peaks=totals().peaks._replace(gpus=tuple(peaks for _, peaks in made)),
        ),
    )


def with_gpus(at: float, count: int, **fields: object) -> Sample:
    """A sample of devices that are alike."""
    peaks = totals().peaks._replace(gpus=tuple(gpu_totals(f"GPU-{n}")[1] for n in range(count)))
    known: dict[str, Any] = {"job_bytes": 2000, "power_watts": 100.0, **fields}
    gpus = tuple(GpuSample(f"GPU-{n}", 3000, **known) for n in range(count))
    return at_work(at, gpus=gpus, peaks=peaks)


def test_a_report_without_samples_has_no_charts() -> None:
    """There is nothing to draw."""
    assert build(recording()).list_charts() == ()


def test_the_whole_run_has_the_figures_of_the_summary() -> None:
    """Samples need not begin where the busiest interval did; nothing is drawn above it."""
    busiest = Busiest(1.5, 1.0)
    peaks = totals().peaks._replace(busiest=Parts(busiest, Busiest(), busiest))
    samples = (at_work(1.0), at_work(1.5, cpu_seconds=add_parts(2.0, 0.0)))
    chart = chart_all(recording(samples=samples, totals=totals(peaks=peaks)))["cpu"]
    job = chart.lines[0]

    assert (job.whole_mean, job.whole_high) == (1.0, 1.5)
    assert (list(job.mean), list(job.high or ())) == ([1.0, 2.0], [1.0, 1.5])


def test_strips_of_many_runs_are_scaled_to_their_largest_value() -> None:
    """3 GB and 4 GB look alike on a machine of 64 GB; what is a share is of 100 %."""
    ram = Chart("ram", "RAM", "bytes", (line(),), capacity=64e9, capacity_label="64 GB")
    busy = Chart("gpu_busy", "GPU busy", "percent", (line(),), HEAT, 100.0)
    many = overlay([Run(f"run {number}", (ram, busy)) for number in range(10)])

    assert [(chart.kind, chart.capacity) for chart in many] == [(HEAT, None), (HEAT, 100.0)]


def test_a_plain_job_has_cpu_and_ram() -> None:
    """With what it may use, and no line for what nobody else did."""
    shown = recording(samples=(at_work(0.0), at_work(1.0), at_work(2.0)))
    charts = chart_all(shown)

    assert list(charts) == ["cpu", "ram"]
    assert charts["cpu"].capacity == 4.0
    assert [line.label for line in charts["cpu"].lines] == ["job"]
    assert list(charts["cpu"].lines[0].mean[1:]) == [1.0, 1.0]
    assert charts["ram"].capacity_label == "16 GB in the machine"
    assert charts["ram"].peak is None


def test_others_on_the_machine_are_drawn() -> None:
    """A slow run may be theirs."""
    charts = chart_all(recording(samples=(at_work(0.0), at_work(1.0, system_cpu_seconds=3.0))))
    assert [line.label for line in charts["cpu"].lines] == ["job", "whole machine"]


def test_descendants_the_limit_and_the_peak_are_in_the_chart_of_ram() -> None:
    """Main apart from all; the limit by its name."""
    held = Spread(5, 5, 5)
    shown = recording(
        header=header(allocation=Allocation(4, 4.0, "machine", 100, 50, "Slurm")),
        samples=(at_work(1.0, ram_bytes=Parts(held, held, held)),),
        peak_moments=(PeakMoment("ram", 1.0, 9, 1),),
    )
    chart = chart_all(shown)["ram"]

    assert [line.label for line in chart.lines] == ["job", "main process"]
    assert (chart.capacity, chart.capacity_label, chart.peak) == (50.0, "50 B (Slurm limit)", (1.0, 9.0))


def test_the_main_process_has_extremes_of_its_own() -> None:
    """As the job has: a mean would hide what it held for a moment."""
    ram = Parts(Spread(1, 2, 4), Spread(5, 5, 5), Spread(6, 7, 9))
    peak = RamPeak(4, 4)
    shown = recording(
        samples=(at_work(1.0, ram_bytes=ram),),
        totals=totals(peaks=Peaks(ram=Parts(peak, RamPeak(5, 5), RamPeak(9, 9)))),
    )
    job, main = chart_all(shown)["ram"].lines

    assert [[*column] for column in (main.low, main.mean, main.high)] == [[1.0], [2.0], [4.0]]  # type: ignore[misc]
    assert (main.whole_high, job.whole_high) == (4.0, 9.0)


def test_memory_of_which_nothing_was_read_is_not_drawn() -> None:
    """Zero would be a measured zero."""
    unread = Parts(*[Spread(None, None, None)] * 3)
    assert "ram" not in chart_all(recording(samples=(at_work(1.0, ram_bytes=unread),)))


def test_a_few_devices_are_lines_and_many_are_strips() -> None:
    """Eight lines cannot be told apart."""
    few = chart_all(on_gpus(2, with_gpus(1.0, 2, utilization_percent=50.0)))
    assert (few["gpu_busy"].kind, few["gpu_ram"].kind, few["power"].kind) == (HEAT, LINES, LINES)
    assert few["gpu_ram"].title == "GPU memory held by the job"
    assert few["gpu_ram"].capacity_label == "40 GB each"

    many = chart_all(on_gpus(5, with_gpus(1.0, 5)))
    assert (many["gpu_ram"].kind, many["power"].kind) == (HEAT, HEAT)
    assert "gpu_busy" not in many


def test_activity_is_drawn_beside_utilization() -> None:
    """Of the devices that measure it."""
    busy = with_gpus(1.0, 2, utilization_percent=98.0)
    active = busy._replace(gpus=(busy.gpus[0], busy.gpus[1]._replace(sm_percent=31.0)))
    chart = chart_all(on_gpus(2, active))["gpu_busy"]

    assert [line.label for line in chart.lines] == ["GPU 0", "GPU 1", "GPU 1 SM activity"]
    assert chart.lines[2].mean[0] == 31.0


def test_what_goes_through_links_is_drawn_per_second() -> None:
    """Of links through which something went."""
    samples = [
        at_work(
            at,
            gpus=(GpuSample("GPU-0", utilization_percent=50.0),),
            gpu_counters=(gpu_totals()[0]._replace(traffic=(int(at) * 1000, 0, None, int(at) * 10)),),
            peaks=Peaks(gpus=(gpu_totals()[1],)),
        )
        for at in (1.0, 2.0, 3.0)
    ]
    chart = chart_all(recording(samples=tuple(samples), events=(found(gpu(0)),)))["links"]

    assert [line.label for line in chart.lines] == ["GPU 0 PCIe received", "GPU 0 NVLink sent"]
    assert [list(line.mean) for line in chart.lines] == [[1000.0] * 3, [10.0] * 3]


def test_memory_of_all_processes_stands_in_for_the_unknown_one_of_the_job() -> None:
    """And the title says so."""
    chart = chart_all(on_gpus(1, with_gpus(1.0, 1, job_bytes=None)))["gpu_ram"]
    assert (chart.title, chart.capacity_label) == ("GPU memory held by all processes", "40 GB")


def test_storage_is_drawn_if_there_was_any() -> None:
    """Reading alone has no line of writing."""
    quiet = (at_work(1.0, counters=TreeCounters(0, 0)), at_work(2.0, counters=TreeCounters(0, 0)))
    assert "io" not in chart_all(recording(samples=quiet))
    busy = (at_work(1.0, counters=TreeCounters(0, 0)), at_work(2.0, counters=TreeCounters(10, 0)))
    (line,) = chart_all(recording(samples=busy))["io"].lines
    assert (line.label, list(line.mean)[1]) == ("read", 10.0)


def test_metrics_are_drawn_beside_resources() -> None:
    """Without what cannot be drawn, of which there is a note."""
    rows = (
        MetricRow(1.0, {"loss": 2.0}),
        MetricRow(2.0, {"loss": nan, "lr": 1.0}),
        MetricRow(3.0, {"loss": inf}),
        MetricRow(3.5, {"loss": -1e308}),
        MetricRow(4.0, {"loss": 1.0}),
    )
    charts = chart_all(recording(samples=(at_work(1.0),), metrics=rows))
    loss = charts["metric:loss"]

    assert (list(loss.lines[0].end), list(loss.lines[0].mean)) == ([1.0, 4.0], [2.0, 1.0])
    assert loss.note == "3 values cannot be drawn (nan, inf or too large)"
    assert charts["metric:lr"].note == ""
    assert [one.name for one in collect_logged(rows)] == ["loss", "lr"]


def test_calls_are_on_the_time_axis() -> None:
    """Open ones until the end; where some are missing, with what is known of all."""
    calls = [Call(("epoch",), 1, 1, 0.0, 4.0), Call(("epoch",), 1, 0, 4.0, None)]
    calls += [Call(("epoch", "step"), 1, number, number / 100, number / 100 + 0.001) for number in range(160)]
    parts = (
        part(1, 4.0, path=("epoch",), open_calls=1, wall_seconds=10.0),
        part(1, *[0.001] * 500, path=("epoch", "step"), first_seconds=0.0, last_seconds=5.0),
        part(1, 3.0, path=("unkept",), first_seconds=1.0, open_calls=1, wall_seconds=9.0),
        part(1, 0.1, path=("unknown",)),
    )
    epoch, step, unkept = make_lanes(calls, build(recording(regions=parts)).regions, 10.0)

    assert epoch.spans == ((0.0, 4.0), (4.0, 10.0))
    assert epoch.band is None
    assert len(step.spans) == 160
    assert step.band == pytest.approx((0.0, 5.0, 0.1))
    assert (unkept.spans, unkept.band) == ((), (1.0, 10.0, 1.0))
    assert make_lanes([], (), 1.0) == ()


def test_the_longest_regions_have_lanes() -> None:
    """By all their calls, not by those that are kept."""
    parts = [part(1, float(length), path=(f"{length:02}",)) for length in range(1, 20)]
    calls = [Call((f"{length:02}",), 1, 1, 0.0, 1.0) for length in range(1, 20)]
    lanes = make_lanes(calls, build(recording(regions=tuple(parts))).regions, 10.0)

    assert [lane.path for lane in lanes] == [(f"{length:02}",) for length in range(10, 20)]


def line(label: str = "job", end: float = 1.0) -> Line:
    """One interval."""
    return Line(label, array("d", [0.0]), array("d", [end]), array("d", [5.0]))


def test_runs_are_laid_over_each_other() -> None:
    """One line per run, each from its own beginning; the capacity only if all have the same."""
    first = Chart(
        "cpu", "CPU", "cores", (line(), line("whole machine")), capacity=4.0, capacity_label="4 cores"
    )
    second = first._replace(capacity=8.0)
    (chart,) = overlay([Run("a", (first,)), Run("b", (second,), 10.0)])

    assert [one.label for one in chart.lines] == ["a", "b"]
    assert (list(chart.lines[1].start), list(chart.lines[1].end)) == ([10.0], [11.0])
    assert (chart.capacity, chart.capacity_label, chart.kind) == (None, "", LINES)
    (same,) = overlay([Run("a", (first,)), Run("b", (first,))])
    assert same.capacity == 4.0


def test_values_of_instants_stay_so_when_they_are_moved() -> None:
    """Their start and their end are one column, by which a page knows them."""
    at = array("d", [1.0, 2.0])
    logged = Chart("metric:loss", "loss", "", (Line("loss", at, at, at),))
    (chart,) = overlay([Run("a", (logged,)), Run("b", (logged,), 10.0)])

    assert all(one.start is one.end for one in chart.lines)
    assert list(chart.lines[1].end) == [11.0, 12.0]


def test_many_runs_are_strips() -> None:
    """With the devices of each by name, at most some dozens."""
    chart = Chart("gpu_ram", "GPU memory", "bytes", (line("GPU 0"), line("GPU 1")))
    (all_of_them,) = overlay([Run(f"rank {number}", (chart,)) for number in range(40)])

    assert all_of_them.kind == HEAT
    assert len(all_of_them.lines) == 64
    assert all_of_them.lines[1].label == "rank 0 GPU 1"
    assert overlay([]) == ()


def with_frameworks(*samples: Sample, in_use: int = 800, held: int | None = 1000) -> RecordingData:
    """A job on one device, of which PyTorch has told once, after a second."""
    memory = FrameworkMemory(1, "PyTorch", "cuda:0", "GPU-0", 1.0, in_use, in_use, "exact", held)
    return on_gpus(1, *samples)._replace(framework_readings=(memory,))


def test_the_memory_of_a_device_is_split_over_time() -> None:
    """Into what tensors use, what is cached, what else the job holds, and others; nothing is known before a reading."""
    shown = with_frameworks(*(with_gpus(at, 1) for at in (0.5, 1.0, 2.0)))
    parts = chart_all(shown)["gpu_parts"]

    assert (parts.title, parts.kind, parts.capacity) == ("Memory of GPU 0 by use", STACK, 40_000_000_000)
    assert [line.label for line in parts.lines] == list(PARTS[:4])
    assert [list(line.mean)[1:] for line in parts.lines] == [[800] * 2, [200] * 2, [1000] * 2, [1000] * 2]
    assert all(isnan(line.mean[0]) for line in parts.lines)


def test_no_part_is_larger_than_the_driver_says() -> None:
    """A process that has ended since its last reading holds nothing; parts that never are have no area."""
    samples = (
        with_gpus(1.0, 1, job_bytes=900),
        with_gpus(2.0, 1, job_bytes=300),
        with_gpus(3.0, 1, job_bytes=0),
    )
    parts = chart_all(with_frameworks(*samples))["gpu_parts"]

    assert {line.label: list(line.mean) for line in parts.lines} == {
        "tensors": [800, 300, 0],
        "cached for reuse": [100, 0, 0],
        "other processes": [2100, 2700, 3000],
    }


def test_without_the_driver_nothing_is_split() -> None:
    """What of the device is the job's is not known, or no framework has told anything."""
    unknown = with_frameworks(with_gpus(1.0, 1, job_bytes=None), with_gpus(2.0, 1, job_bytes=None))
    assert "gpu_parts" not in chart_all(unknown)
    assert "gpu_parts" not in chart_all(on_gpus(1, with_gpus(1.0, 1)))


def test_a_device_of_unknown_size_is_split_all_the_same() -> None:
    """Without a line for its capacity."""
    shown = with_frameworks(with_gpus(1.0, 1), with_gpus(2.0, 1))._replace(events=(found(gpu(0, None)),))
    assert chart_all(shown)["gpu_parts"].capacity is None


def test_stacks_are_not_laid_over_each_other() -> None:
    """Nobody could read that."""
    charts = build(
        shown := with_frameworks(with_gpus(1.0, 1), with_gpus(2.0, 1)), read_columns(shown)
    ).list_charts()

    assert "gpu_parts" in [chart.name for chart in charts]
    assert "gpu_parts" not in [chart.name for chart in overlay([Run("a", charts), Run("b", charts)])]


def test_rates_of_slow_counters_are_of_the_second_in_which_they_grew() -> None:
    """However short the intervals are: the counter stands still in between."""
    bytes_read = [None, 0, 0, 0, 100, 100, 100]
    samples = [
        sample(at / 4, cpu_seconds=add_parts(0.0, 0.0), counters=TreeCounters(read_bytes=size))
        for at, size in enumerate(bytes_read)
    ]
    columns: SampleColumns = read_columns(recording(samples=tuple(samples)))
    rates = list(columns.read_bytes_per_second)

    assert str(rates[0]) == "nan"
    assert rates[2:5] == [100 / 0.75] * 3
    assert rates[5:] == [0.0, 0.0]


def test_growth_after_a_long_rest_is_not_spread_over_it() -> None:
    """Half a minute of nothing stays nothing."""
    sizes = [0, *[0] * 30, 100]
    samples = [sample(float(at), counters=TreeCounters(read_bytes=size)) for at, size in enumerate(sizes)]
    rates = list(read_columns(recording(samples=tuple(samples))).read_bytes_per_second)

    assert rates[5:31] == [0.0] * 26
    assert rates[31] == 100.0


def test_a_device_of_which_a_figure_is_not_known_has_no_line() -> None:
    """Beside another of which it is known."""
    devices = (gpu(0), gpu(1))
    counters, peaks = zip(*(gpu_totals(device.uuid) for device in devices), strict=True)
    summed = totals(gpu_counters=counters)
    held = GpuSample("GPU-1", 3 * 10**9, 10**9, 50.0)
    unheld = GpuSample("GPU-0", 3 * 10**9, None, 50.0)
    made = recording(
        samples=tuple(sample(float(at), gpus=(held, unheld)) for at in range(1, 5)),
        events=tuple(map(found, devices)),
        totals=summed._replace(peaks=summed.peaks._replace(gpus=peaks)),
    )
    charts = chart_all(made)

    assert [line.label for line in charts["gpu_ram"].lines] == ["GPU 1"]
    assert [line.label for line in charts["gpu_busy"].lines] == ["GPU 0", "GPU 1"]


def test_what_no_axis_has_room_for_is_a_gap() -> None:
    """In an interval that took no time, as an edited file may have, every rate is infinite."""
    counters = TreeCounters(read_bytes=10**9)
    made = recording(
        samples=(
            at_work(5e-324, counters=counters),
            at_work(1.0, counters=counters._replace(read_bytes=2 * 10**9)),
        )
    )
    (line, *_) = chart_all(made)["io"].lines

    assert [isnan(value) for value in line.mean] == [True, False]
    assert render_str(build(made, read_columns(made)), "svg").startswith("<svg")
