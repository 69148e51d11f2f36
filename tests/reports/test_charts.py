"""Charts of a report, as values and as pictures."""

from __future__ import annotations

import re
import subprocess
from array import array
from math import isnan
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from builders import recording, render_str, totals
from gpu_tracker.analysis.frameworks import PARTS
from gpu_tracker.core.errors import TrackerError, UsageError
from gpu_tracker.core.model import Call, FrameworkMemory, MetricRow
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import Report, build
from gpu_tracker.reports.charts import Chart, list_charts
from gpu_tracker.reports.contract import choose_format
from recorded import interval, part
from rich import GB, SECONDS, make_rich, report_rich

TESTS = Path(__file__).parents[1]
NAMES = ("cpu", "ram", "gpu_busy", "gpu_ram", "power", "metrics", "regions")


def chart_of(report: Report, name: str, n_bins: int = 100) -> Chart:
    """The only chart of that name."""
    (chart,) = list_charts(report, n_bins, (name,))
    return chart


def test_a_run_with_everything_has_every_chart() -> None:
    """In the same order everywhere, and of the same number of bins."""
    charts = list_charts(report_rich(), 50)

    assert tuple(chart.name for chart in charts) == NAMES
    assert {len(line.values.mean) for chart in charts for line in chart.lines} == {50}


def test_the_peak_is_where_the_memory_was() -> None:
    """With its height; the capacity is what the job may use."""
    ram = chart_of(report_rich(), "ram")

    (peak,) = ram.marks
    assert peak.seconds == pytest.approx(161 / 200 * SECONDS)
    assert peak.value == pytest.approx(1.02 * 29.5 * GB)
    assert (ram.capacity, ram.capacity_name) == (32 * 2**30, "32 GiB (Slurm limit)")
    assert (ram.bottom, ram.top) == (0.0, 32 * 2**30)


def test_the_peak_of_devices_is_that_of_the_fullest() -> None:
    """With its colour; of cores and RAM it is that of the job, whatever else is drawn."""
    report = report_rich(2)
    memory, cpu = chart_of(report, "gpu_ram"), chart_of(report, "cpu")
    assert report.columns is not None
    fuller = report.columns.gpus["GPU-1"]
    more = fuller._replace(job_bytes=array("d", (1.5 * value for value in fuller.job_bytes)))
    columns = report.columns._replace(gpus={**report.columns.gpus, "GPU-1": more})
    changed = chart_of(report._replace(columns=columns), "gpu_ram")

    assert memory.marks[0].line == cpu.marks[0].line == 0
    assert (changed.marks[0].line, changed.marks[0].value) == (1, max(changed.lines[1].values.high))


def test_bins_are_of_equal_time() -> None:
    """However dense the samples are: the first half of the time is the first half of the chart."""
    dense = [interval(0.01 * (number + 1), 100) for number in range(500)]
    made = recording(samples=(*dense, interval(10.0, 300)))
    values = chart_of(build(made, read_columns(made)), "ram", 10).lines[0].values.mean

    assert list(values) == [100e6] * 5 + [300e6] * 5


def test_a_capacity_far_above_is_not_on_the_axis() -> None:
    """The line would be flat."""
    made = recording(samples=[interval(float(at), 500) for at in range(1, 11)])
    ram = chart_of(build(made, read_columns(made)), "ram")

    assert ram.capacity == 16e9
    assert (ram.top, ram.shows_capacity) == (500e6, False)
    assert "of 16 GB" in render_str(build(made, read_columns(made)), "svg")


@pytest.mark.parametrize(("n_gpus", "has_strips"), [(1, False), (4, False), (5, True)])
def test_many_devices_are_strips(n_gpus: int, has_strips: bool) -> None:
    """Lines across each other cannot be told apart. Utilization always is a strip."""
    report = report_rich(n_gpus)

    assert chart_of(report, "gpu_ram").has_strips is has_strips
    assert chart_of(report, "power").has_strips is has_strips
    assert chart_of(report, "gpu_busy").has_strips


def without(report: Report, *fields: str) -> Report:
    """As if the devices had not reported these figures."""
    assert report.columns is not None
    unknown = report.columns.end_seconds.__class__("d", [float("nan")] * len(report.columns.end_seconds))
    hidden: dict[str, Any] = dict.fromkeys(fields, unknown)
    gpus = {uuid: gpu._replace(**hidden) for uuid, gpu in report.columns.gpus.items()}
    return report._replace(columns=report.columns._replace(gpus=gpus))


def test_what_is_not_measured_is_said() -> None:
    """In words, not with an empty chart."""
    report = without(report_rich(), "power_watts")

    assert chart_of(report, "power").problem == "not measured"
    assert ">not measured</text>" in render_str(report, "svg")
    assert chart_of(report_rich(0), "gpu_ram").problem == "not measured"
    assert "gpu_ram" not in {chart.name for chart in list_charts(report_rich(0), 10)}
    assert report.columns is not None
    unknown = report.columns.machine_cores.__class__("d", [float("nan")] * 200)
    cores = report.columns.cpu_cores._replace(combined=unknown)
    silent = report._replace(columns=report.columns._replace(cpu_cores=cores, machine_cores=unknown))
    assert chart_of(silent, "cpu").problem == "not measured"
    bare = report_rich()._replace(columns=None)
    assert {chart_of(bare, name).problem for name in ("cpu", "ram", "gpu_busy")} == {
        "no samples were recorded"
    }


def test_memory_of_all_processes_stands_in_for_the_jobs() -> None:
    """Where a device does not list processes; devices of different sizes have no common capacity."""
    report = without(report_rich(), "job_bytes")
    first, second = report.summary.gpus
    other = second._replace(gpu=second.gpu._replace(memory_bytes=None))
    uneven = report._replace(summary=report.summary._replace(gpus=(first, other)))

    assert max(chart_of(report, "gpu_ram").lines[0].values.high) == pytest.approx(18.95 * GB)
    assert chart_of(uneven, "gpu_ram").capacity is None
    gone = report._replace(columns=report.columns and report.columns._replace(gpus={}))
    assert chart_of(gone, "gpu_ram").problem == "not measured"


def test_a_metric_ends_with_its_last_value() -> None:
    """Values that are no numbers are left out; a metric may be negative."""
    rows = [MetricRow(float(at), {"loss": 2.0 - at, "nothing": float("nan")}) for at in range(10)]
    made = recording(metrics=(*rows, MetricRow(9.5, {"loss": float("inf")})), samples=[interval(10.0, 5)])
    report = build(made, read_columns(made))
    loss = chart_of(report, "metrics")

    assert loss.title == "loss"
    assert loss.marks == ((9.0, -7.0, 0),)
    assert (loss.bottom, loss.top) == (-7.0, 2.0)
    render_str(report, "svg")


def test_a_region_covers_the_time_of_its_calls() -> None:
    """An open one goes on to the end; several at once are not more than all the time."""
    calls = (
        Call(("step",), 1, 1, 1.0, 2.5),
        Call(("step",), 1, 2, 1.0, 2.5),
        Call(("open",), 1, 0, 8.0, None),
        Call(("late",), 1, 1, 99.0, 99.5),
    )
    regions = tuple(part(1, 1.0, path=path) for path in (("step",), ("open",), ("late",)))
    made = recording(samples=[interval(10.0, 5)], calls=calls, regions=regions)
    lines = {
        line.name: list(line.values.mean)
        for line in chart_of(build(made, read_columns(made)), "regions", 10).lines
    }

    assert lines["step"] == [0, 100, 100, 0, 0, 0, 0, 0, 0, 0]
    assert lines["open"] == [0] * 8 + [100] * 2
    assert lines["late"] == [0] * 10


def test_a_region_with_calls_that_are_not_kept_covers_its_mean_share() -> None:
    """From its first call to its last, and the chart says so."""
    region = part(1, *[0.01] * 300, path=("step",), first_seconds=2.0, last_seconds=8.0)
    made = recording(
        samples=[interval(10.0, 5)], calls=(Call(("step",), 1, 1, 2.0, 2.01),), regions=(region,)
    )
    chart = chart_of(build(made, read_columns(made)), "regions", 10)

    assert list(chart.lines[0].values.mean) == pytest.approx([0, 0, 50, 50, 50, 50, 50, 50, 0, 0])
    assert chart.note == "where not all calls are kept: their mean share"
    svg = render_str(build(made, read_columns(made)), "svg")
    assert "where not all calls are kept: their mean share; darkest: 100 %" in svg


def test_one_chart_needs_no_list() -> None:
    """Its name is not taken for letters."""
    report = build(recording())

    assert list_charts(report, 10, "cpu") == list_charts(report, 10, ["cpu"])
    with pytest.raises(UsageError, match='"cpus" is not a chart'):
        list_charts(report, 10, "cpus")


def test_an_unknown_chart_is_refused() -> None:
    """With the known ones."""
    with pytest.raises(UsageError, match=r'"cpus" is not a chart. Charts are cpu, ram, gpu_busy'):
        list_charts(report_rich(), 10, ["cpus"])


def test_gaps_break_a_line() -> None:
    """Into three, besides that of the main process's memory; a single value is a dot."""
    report = report_rich(0)
    assert report.columns is not None
    holes = report.columns.machine_cores[:]
    for index in (*range(50, 100), *range(101, 150)):
        holes[index] = float("nan")
    svg = render_str(report._replace(columns=report.columns._replace(machine_cores=holes)), "svg")

    assert svg.count('stroke="#d55e00"') == 3 + 1
    once = recording(metrics=(MetricRow(5.0, {"loss": 1.0}),), samples=[interval(10.0, 5)])
    assert 'r="1.2"' in render_str(build(once, read_columns(once)), "svg")


@pytest.mark.parametrize("n_gpus", [0, 1, 2, 8])
def test_a_picture_has_its_parts(n_gpus: int) -> None:
    """One time axis, zero on every axis, dashed capacities, dots at peaks, no background."""
    svg = render_str(report_rich(n_gpus), "svg")
    texts = [element.text for element in ET.fromstring(svg).iter() if element.text]

    assert texts.count("90 min") == 1
    assert {"0 B", "dashed: 16 cores allowed", "dashed: 32 GiB (Slurm limit)", "30.1 GB", "loss"} <= {*texts}
    assert len(re.findall('stroke-dasharray="6 4"', svg)) == (3 if n_gpus in (1, 2) else 2)
    assert "0.228311" in texts
    assert f'height="{ET.fromstring(svg).get("height")}"' in svg
    assert not re.search(r'<rect[^>]*width="(960|100%)"', svg)


def test_a_picture_of_nothing_can_be_drawn() -> None:
    """A job that ended before the first sample, or at once."""
    nothing = recording(samples=(), totals=recording().totals._replace(at_seconds=0.0))

    assert render_str(build(nothing, read_columns(nothing)), "svg").count("no samples were recorded") == 2


def report_split() -> Report:
    """The memory of a device by its use; half of the time nothing is known."""
    readings = tuple(
        FrameworkMemory(1, "PyTorch", "cuda:0", "GPU-0", at, 9 * GB, 9 * GB, "exact", 12 * GB)
        for at in (SECONDS / 2, SECONDS)
    )
    made = make_rich(1)._replace(framework_readings=readings)
    return build(made, read_columns(made))


def test_the_areas_of_a_stack_lie_on_each_other() -> None:
    """The last is as high as all of them; where nothing is known there is none."""
    chart = chart_of(report_split(), "gpu_parts", 10)

    assert [line.name for line in chart.lines] == list(PARTS[:4])
    assert [line.values.mean[-1] / GB for line in chart.lines] == pytest.approx([9, 12, 17.6, 18.6], abs=0.4)
    assert all(isnan(line.values.mean[2]) for line in chart.lines)
    assert chart.marks == ()


def test_a_stack_is_drawn_as_areas() -> None:
    """One for each part, none before the first reading."""
    picture = ET.fromstring(render_str(report_split(), "svg"))
    areas = [one for one in picture.iter() if one.get("points") and one.get("fill-opacity") == "0.7"]

    assert [area.get("fill") for area in areas] == ["#0072b2", "#d55e00", "#009e73", "#cc79a7"]
    assert all(float(point.split(",")[0]) > 500 for area in areas for point in area.get("points", "").split())


def test_a_figure_has_the_areas_too(plotting: None) -> None:
    """With a legend."""
    (axes,) = report_split().plot(["gpu_parts"]).axes

    assert len(axes.collections) == 4
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(PARTS[:4])


def test_a_figure_is_nobody_elses(plotting: None) -> None:
    """No window of pyplot, no setting changed; only the charts that were asked for."""
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    figure = report_rich(1).plot(["ram", "gpu_ram"])
    titles = [axes.get_title("left") for axes in figure.axes]

    assert titles == ["RAM of the job", "GPU memory held by the job"]
    assert [axes.get_ylim()[0] for axes in figure.axes] == [0.0, 0.0]
    assert dict(mpl.rcParams) == before


def test_pyplot_is_not_loaded(plotting: None, python: str) -> None:
    """It would choose a backend, and open windows."""
    code = "import sys, rich; rich.report_rich(1).plot(); print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([python, "-c", code], cwd=TESTS, capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


def test_without_matplotlib_a_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the job starts."""
    import importlib.util

    def find_nothing(name: str, *_: Any) -> None:
        assert name == "matplotlib"

    monkeypatch.setattr(importlib.util, "find_spec", find_nothing)
    with pytest.raises(
        TrackerError, match=r"^This needs matplotlib, .* pip install 'gput\[plot\]' \(SVG works without\)"
    ):
        choose_format("Report", None, "x.png")
    assert choose_format("Report", None, "x.svg") == "svg"


def test_every_bin_of_a_gap_is_unknown() -> None:
    """Not zero."""
    made = make_rich(0, samples=make_rich(0).samples[:100])
    values = chart_of(build(made, read_columns(made)), "cpu", 100).lines[0].values.mean

    assert not any(map(isnan, values[:50]))
    assert all(map(isnan, values[50:]))


def test_the_number_at_a_peak_is_above_its_curve() -> None:
    """Nothing is drawn above the highest point; at an edge the number stays inside."""
    numbers = []
    for sizes in ((900, 100, 100), (100, 900, 100), (100, 100, 900)):
        samples = [interval(5.0 * at, size) for at, size in enumerate(sizes)]
        made = recording(samples=samples, totals=totals(at_seconds=10.0))
        drawn = ET.fromstring(render_str(build(made, read_columns(made)), "svg"))
        dot = [one for one in drawn.iter() if one.get("r") == "3.5"][-1]
        number = next(one for one in drawn.iter() if one.text == "900 MB")
        assert float(number.get("y", "")) == pytest.approx(float(dot.get("cy", "")) - 6)
        top = next(one for one in drawn.iter() if one.text == "RAM of the job")
        assert float(number.get("y", "")) - 9 > float(top.get("y", ""))
        numbers.append((number.get("x") == dot.get("cx"), number.get("text-anchor")))

    assert numbers == [(True, "start"), (True, "middle"), (True, "end")]


def test_strips_say_what_the_darkest_stands_for(plotting: None) -> None:
    """In a figure as in an SVG."""
    report = report_rich(8)
    drawn = {axes.get_title(loc="left"): axes.get_title(loc="right") for axes in report.plot().axes}

    assert drawn["GPU busy"] == "darkest: 100 %"
    assert "darkest: 100 %" in render_str(report, "svg")


@pytest.mark.parametrize("sizes", [(900, 100), (100, 900)])
def test_the_number_at_a_peak_is_below_the_headings(plotting: None, sizes: tuple[int, int]) -> None:
    """At the left edge is the title, at the right one what there is at most."""
    made = recording(samples=[interval(1.0, sizes[0]), interval(10.0, sizes[1])])
    figure = build(made, read_columns(made)).plot(["cpu", "ram", "regions"])
    figure.canvas.draw()
    axes = figure.axes[1]
    headings = [text.get_window_extent() for text in (axes._left_title, axes._right_title)]

    (number,) = axes.texts
    assert number.get_window_extent().y1 < min(heading.y0 for heading in headings)


def test_what_is_known_only_after_the_end_is_not_drawn() -> None:
    """An edited file, or another clock."""
    made = recording(samples=[interval(float(at), 500) for at in range(20, 30)])
    report = build(made, read_columns(made))
    columns = report.columns
    assert columns is not None
    columns = columns._replace(
        start_seconds=columns.end_seconds,
        read_since_seconds=columns.end_seconds,
    )
    ram = chart_of(report._replace(columns=columns), "ram")

    assert (ram.lines, ram.marks, ram.problem) == ((), (), "not measured")
