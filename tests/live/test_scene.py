"""What is known of a run, as what is shown of it."""

from __future__ import annotations

from array import array
from math import nan

import pytest

from builders import MB, gpu, header
from gpu_tracker.analysis.forecast import Point
from gpu_tracker.core.model import Call, Identity, MetricRow, ProcessTotals, RegionTotals, tell_apart
from gpu_tracker.live.controls import Controls
from gpu_tracker.live.scene import (
    Metric,
    OpenRegion,
    Process,
    Scene,
    draw_steps,
    humanize_rate,
    list_living,
    list_metrics,
    list_regions,
    list_series,
    name_run,
    sort_processes,
)
from gpu_tracker.live.top import Look, build_frame
from gpu_tracker.recording.figures import explain, list_figures, transpose
from recorded import gpu_sample, interval


def test_a_run_is_called_by_its_name() -> None:
    """Else by its command, without control characters."""
    assert name_run(header(identity=Identity(name="base\x1bline"))) == "base?line"
    assert name_run(header(command=("python", "train.py"))) == "python train.py"


def test_a_rank_is_called_by_its_number() -> None:
    """All have the same command."""
    identity = Identity(rank=3, node="n1")

    assert name_run(header()._replace(identity=identity)) == "rank 3 on n1: python train.py"
    assert name_run(header()._replace(identity=identity._replace(node=None))).startswith("rank 3 on ")


def test_the_job_and_its_devices_over_time() -> None:
    """What the last interval tells is written beside it; a device without figures has no graph."""
    columns = explain(transpose(map(list_figures, (gpu_sample(1.0), gpu_sample(2.0)))))
    unknown = gpu(7)._replace(uuid="GPU-7")
    series = list_series(header(), columns, tell_apart([gpu(1, None), unknown]))

    assert [one.label for one in series] == ["CPU", "RAM", "GPU 1", "GPU 1 RAM"]
    assert series[0].now.endswith(" of 4 cores")
    assert series[2].now.endswith(" %")
    assert " of " not in series[3].now


def test_a_spike_between_two_readings_is_the_most() -> None:
    """The mean of its interval is less."""
    columns = explain(transpose(map(list_figures, (interval(0.0, 100), interval(1.0, 200)))))
    ram = columns.ram_bytes.combined._replace(mean=array("d", [8e8]), high=array("d", [1e9]))
    spiked = columns._replace(ram_bytes=columns.ram_bytes._replace(combined=ram))
    scene = Scene(seconds=1.0, series=list_series(header(), spiked, ()))
    lines = build_frame(scene, Controls(), Look(80, 24))

    assert "max 1" in next(
        text for line in lines if (text := "".join(span.text for span in line)).find("RAM 0.8") >= 0
    )


def test_a_short_rest_at_the_end_is_no_peak_of_cpu() -> None:
    """CPU time of ended children arrives in it all at once; an interval of the usual length counts."""
    ends, starts = array("d", [1.0, 2.0, 2.003]), array("d", [0.0, 1.0, 2.0])
    columns = explain(transpose(map(list_figures, (interval(at, 100) for at in (0.0, 1.0, 2.0, 2.003)))))
    busy = columns.cpu_cores._replace(combined=array("d", [0.5, 0.25, 4.0]))
    columns = columns._replace(start_seconds=starts, end_seconds=ends, cpu_cores=busy)

    (cpu, *_) = list_series(header(), columns, ())
    assert list(cpu.highs) == [0.5, 0.25, 0.25]
    assert cpu.now == "0.25 of 4 cores"
    (cpu, *_) = list_series(header(), columns._replace(end_seconds=array("d", [1.0, 2.0, 3.0])), ())
    assert max(cpu.highs) == 4.0


def test_what_is_not_known_is_a_dash() -> None:
    """Before there are two samples there are no rates; the last interval may be too short for one."""
    columns = explain(transpose(map(list_figures, (interval(0.0, 100), interval(1.0, 200)))))
    nothing = array("d", [nan])
    unknown = columns._replace(
        cpu_cores=columns.cpu_cores._replace(combined=nothing),
        ram_bytes=columns.ram_bytes._replace(combined=columns.ram_bytes.combined._replace(mean=nothing)),
    )

    assert [one.now for one in list_series(header(), unknown, ())] == ["-", "-"]
    ended = columns._replace(cpu_cores=columns.cpu_cores._replace(combined=array("d", [2.0, nan])))
    assert list_series(header(), ended, ())[0].now == "2 of 4 cores"


def test_a_device_may_not_tell_how_busy_it_is() -> None:
    """Its memory is shown all the same."""
    columns = explain(transpose(map(list_figures, (gpu_sample(1.0), gpu_sample(2.0)))))
    device = columns.gpus["GPU-1"]._replace(utilization_percent=array("d", [nan, nan]))
    series = list_series(header(), columns._replace(gpus={"GPU-1": device}), tell_apart([gpu(1)]))

    assert series[2].now == "-"


def test_steps_have_a_rate_from_each_to_the_next() -> None:
    """Counting that begins anew is no rate, nor are two at the same moment."""
    points = [Point(0.0, 0.0), Point(2.0, 4.0), Point(2.0, 5.0), Point(3.0, 0.0), Point(4.0, 9.0)]
    (series,) = draw_steps(points, 1e5)

    assert (list(series.start), list(series.end)) == ([0.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    assert list(series.values) == [2.0, 0.0, 9.0]
    assert series.now == "9 of 100000, 2.25/s"
    assert draw_steps(points, None)[0].now == "9, 2.25/s"
    assert draw_steps(points[:1], None) == ()


@pytest.mark.parametrize(
    ("per_second", "text"), [(1234.5, "1234/s"), (1.0, "1/s"), (0.5, "30/min"), (0.01, "36/h")]
)
def test_a_slow_rate_is_per_minute_or_hour(per_second: float, text: str) -> None:
    """So that it is not below one."""
    assert humanize_rate(per_second) == text


def test_regions_that_are_open() -> None:
    """Those of the main process first; of a long call it is known when it began."""
    regions = [
        RegionTotals(7, ("load",), open_calls=1, open_wall_seconds=0.5),
        RegionTotals(100, ("epoch", "train\n"), calls=4, open_calls=2, open_wall_seconds=3.0),
        RegionTotals(100, ("epoch",), calls=2, open_calls=1, open_wall_seconds=9.0),
        RegionTotals(100, ("over",), calls=1),
    ]
    calls = [Call(("epoch",), 100, 0, 20.0, None), Call(("epoch",), 100, 0, 25.0, None)]

    assert list_regions(regions, calls, 100, 60.0) == (
        OpenRegion("epoch 3", 0, 40.0, 100),
        OpenRegion("train? 5", 1, 1.5, 100),
        OpenRegion("load", 0, 0.5, 7),
    )


def test_metrics_are_listed_from_the_last_one_on() -> None:
    """Each with what was logged before."""
    rows = [MetricRow(1.0, {"val": 5.0, "loss": 2.0}), MetricRow(2.0, {"loss": 1.0})]

    assert list_metrics(rows) == (Metric("loss", (2.0, 1.0)), Metric("val", (5.0,)))


def test_living_processes_are_those_of_the_last_lines() -> None:
    """How many cores they keep busy follows from the line before; without one it is not known."""
    early = ProcessTotals(1, 0, "main", 0.0, 5.0, 5.0, 100 * MB)
    late = early._replace(last_seconds=10.0, cpu_seconds=15.0)
    new = ProcessTotals(2, 1, "new\t", 8.0, 10.0, 1.0, 10 * MB)
    gone = ProcessTotals(3, 1, "gone", 0.0, 7.0, 1.0, 10 * MB)
    odd = ProcessTotals(4, 1, "odd", 10.0, 10.0, 0.0, 10 * MB)
    lines = {(1, 0.0): (early, late), (2, 8.0): (None, new), (3, 0.0): (None, gone), (4, 10.0): (None, odd)}

    assert list_living(lines) == (
        Process(1, "main", 2.0, 15.0, 100 * MB),
        Process(2, "new?", None, 1.0, 10 * MB),
        Process(4, "odd", None, 0.0, 10 * MB),
    )
    assert list_living({}) == ()


def test_processes_are_sorted_by_what_is_chosen() -> None:
    """The largest first; PIDs in their order."""
    one, other = Process(1, "one", None, 9.0, 5 * MB), Process(2, "other", 1.0, 1.0, 8 * MB)

    assert sort_processes((one, other), "RAM") == [other, one]
    assert sort_processes((one, other), "CPU") == [other, one]
    assert sort_processes((other, one), "time") == [one, other]
    assert sort_processes((other, one), "PID") == [one, other]
