"""What is drawn of a run."""

from __future__ import annotations

from array import array
from math import inf, nan
from typing import Any

from builders import found, gpu, gpu_totals, header, recording, sample, totals
from gpu_tracker.analysis.charts import HEAT, LINES, Chart, Line, Run, collect_logged, make_lanes, overlay
from gpu_tracker.core.columns import SampleColumns
from gpu_tracker.core.model import (
    Allocation,
    Call,
    GpuSample,
    MetricRow,
    Parts,
    PeakMoment,
    RecordingData,
    Sample,
    Spread,
    TreeCounters,
    add_parts,
)
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import build


def chart_all(shown: RecordingData) -> dict[str, Chart]:
    """The charts by name."""
    return {chart.name: chart for chart in build(shown, read_columns(shown)).list_charts()}


def at_work(at: float, **fields: object) -> Sample:
    """A second of a job on one core; nobody else is there."""
    return sample(at, **{"system_cpu_seconds": at, **fields})


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


def test_a_plain_job_has_cpu_and_ram() -> None:
    """With what it may use, and no line for what nobody else did."""
    shown = recording(samples=(at_work(0.0), at_work(1.0), at_work(2.0)))
    charts = chart_all(shown)

    assert list(charts) == ["cpu", "ram"]
    assert charts["cpu"].capacity == 4.0
    assert [line.label for line in charts["cpu"].lines] == ["job"]
    assert list(charts["cpu"].lines[0].mean[1:]) == [1.0, 1.0]
    assert charts["ram"].capacity_label == "16 GB of the machine"
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


def test_a_few_devices_are_lines_and_many_are_strips() -> None:
    """Eight lines cannot be told apart."""
    few = chart_all(on_gpus(2, with_gpus(1.0, 2, utilization_percent=50.0)))
    assert (few["gpu_busy"].kind, few["gpu_ram"].kind, few["power"].kind) == (HEAT, LINES, LINES)
    assert few["gpu_ram"].title == "GPU memory held by the job"
    assert few["gpu_ram"].capacity_label == "40 GB each"

    many = chart_all(on_gpus(5, with_gpus(1.0, 5)))
    assert (many["gpu_ram"].kind, many["power"].kind) == (HEAT, HEAT)
    assert "gpu_busy" not in many


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
    """Open ones until the end; of very many the longest."""
    calls = [Call(("epoch",), 1, 1, 0.0, 4.0), Call(("epoch",), 1, 0, 4.0, None)]
    calls += [Call(("epoch", "step"), 1, number, number / 100, number / 100 + 0.001) for number in range(500)]
    epoch, step = make_lanes(calls, {("epoch",): 2, ("epoch", "step"): 500}, 10.0)

    assert epoch.spans == ((0.0, 4.0), (4.0, 10.0))
    assert epoch.is_complete
    assert len(step.spans) == 400
    assert not step.is_complete
    assert make_lanes([], {}, 1.0) == ()


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


def test_many_runs_are_strips() -> None:
    """With the devices of each by name, at most some dozens."""
    chart = Chart("gpu_ram", "GPU memory", "bytes", (line("GPU 0"), line("GPU 1")))
    (all_of_them,) = overlay([Run(f"rank {number}", (chart,)) for number in range(40)])

    assert all_of_them.kind == HEAT
    assert len(all_of_them.lines) == 64
    assert all_of_them.lines[1].label == "rank 0 GPU 1"
    assert overlay([]) == ()


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
