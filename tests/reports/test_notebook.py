"""What a notebook shows: pictures and tables that need no script."""

from __future__ import annotations

import base64
import re
from array import array
from xml.etree import ElementTree as ET

import pytest

from builders import header, recording, totals
from gpu_tracker.analysis.cells import CellUse
from gpu_tracker.analysis.compare import compare
from gpu_tracker.analysis.measures import measure
from gpu_tracker.core.model import Gpu, GpuReading, MetricRow
from gpu_tracker.core.observation import Device
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import Report, build
from gpu_tracker.reports.notebook import (
    describe_cell,
    describe_line,
    draw_panel,
    list_cells,
    show_cells,
    show_comparison,
    show_devices,
    show_picture,
    show_report,
)
from rich import make_rich, report_rich

MOST_BYTES = 10_000
SVG = "{http://www.w3.org/2000/svg}"
CELL = CellUse(3, "x = 1", 0.5, 0.25, 300_000_000, 2_000_000_000, 400_000_000, 3_000_000_000, 55.0, "stopped")


def words_of(report: Report) -> list[str]:
    """All texts of the picture."""
    return [element.text or "" for element in ET.fromstring(draw_panel(report)).iter(f"{SVG}text")]


def of(n_gpus: int, n_metrics: int = 1) -> Report:
    """A run with that many devices and metrics."""
    made = make_rich(n_gpus=n_gpus)
    metrics = [
        MetricRow(row.at_seconds, {f"m{number}": 1.0 * number for number in range(n_metrics)})
        for row in made.metrics
    ]
    made = made._replace(metrics=metrics)
    return build(made, read_columns(made))


def test_the_picture_names_every_figure() -> None:
    """With its peak, and with what there is of it; the first finding is below."""
    words = words_of(report_rich())

    assert words[0].startswith("python train.py")
    assert {"CPU, cores in use", "RAM of the job", "GPU busy", "GPU memory held by the job", "loss"} <= {
        *words
    }
    assert any(re.match(r"peak 30\.1 GB of 3\S+ GB", word) for word in words)
    assert words[-1].startswith("serious: 34 % of the time")


def test_a_run_that_goes_on_shows_what_is_now() -> None:
    """And the mean of several devices."""
    words = words_of(report_rich()._replace(ending="running"))

    assert any(re.match(r"now \S+ GB, peak 30\.1 GB$", word) for word in words)
    assert any(re.match(r"now \d+ % \(mean of 2\), peak \d+ %$", word) for word in words)


@pytest.mark.parametrize(("n_gpus", "n_metrics"), [(0, 0), (1, 1), (2, 20), (8, 3), (64, 20)])
def test_the_picture_stays_small(n_gpus: int, n_metrics: int) -> None:
    """It is sent once a second, whatever the run has."""
    assert len(draw_panel(of(n_gpus, n_metrics))) < MOST_BYTES


def test_a_run_without_samples_has_a_picture_too() -> None:
    """It says what is missing."""
    assert "no samples were recorded" in words_of(build(recording()))


def test_one_line_says_it_all() -> None:
    """For front ends without pictures, and for who cannot see them."""
    line = describe_line(report_rich())

    assert line.startswith(
        "python train.py --epochs 11: exit code 0, 3 h 12 min 10 s; CPU 7.5 of 16 cores; RAM peak 30.1 GB"
    )
    assert line.endswith("GPU memory peak 35.8 GB")
    assert "CPU" not in describe_line(build(recording(totals=totals()._replace(at_seconds=0.0))))


def test_nothing_of_a_recording_becomes_markup() -> None:
    """Neither around the picture nor inside."""
    bad = '"><script>alert(1)</script>\x1b[31m'
    report = build(recording(header=header()._replace(command=(bad,))))
    html = show_report(report)
    (picture,) = re.findall(r"base64,([^\"]*)\"", html)

    assert "<script" not in html + base64.b64decode(picture).decode()
    assert "\x1b" not in html + base64.b64decode(picture).decode()
    assert html.startswith(show_picture(report))


def test_documents_are_their_own_html() -> None:
    """What a notebook asks for."""
    report = report_rich()

    assert report._repr_html_() == show_report(report)


def test_a_comparison_is_a_table() -> None:
    """With what changed in words, and without a frame for charts that only scripts can draw."""
    runs = [measure(make_rich())]
    html = show_comparison(compare([("before", runs), ("after", runs)]))

    assert "<table>" in html
    assert "before (1 run)" in html
    assert "<script" not in html
    assert "<canvas" not in html


def test_devices_are_a_table() -> None:
    """With what is known of them; and a sentence if there are none."""
    gpu = Gpu(0, "GPU-1", "Big <GPU>", 80 * 10**9)
    device = Device(gpu, GpuReading("GPU-1", used_bytes=10**9, utilization_percent=50.0), {}, (), {})
    html = show_devices([device])

    assert "<td>Big &lt;GPU&gt;</td><td>1 GB</td><td>80 GB</td><td>50 %</td>" in html
    assert "power" not in html
    warm = Device(gpu, GpuReading("GPU-1", power_watts=70.0, temperature_celsius=55.0), {}, (), {})
    assert "<td>70 W</td><td>55 °C</td>" in show_devices([warm])
    assert "no GPU found" in show_devices([])


def test_a_cell_in_one_line() -> None:
    """What it holds more, the peaks, the times; and how it failed."""
    assert describe_cell(CELL) == (
        "cell 3: RAM +300 MB, peak 400 MB; GPU RAM +2 GB, peak 3 GB; 0.5 s, CPU 0.25 s"
    )
    less = CELL._replace(ram_bytes=-5_000_000, peak_gpu_bytes=None, ending="raised")
    assert describe_cell(less) == "cell 3: RAM -5 MB, peak 400 MB; 0.5 s, CPU 0.25 s (raised)"


def test_cells_are_a_table_without_what_is_not_known() -> None:
    """Of a machine without GPU, there is no column for it."""
    without = CELL._replace(gpu_bytes=None, peak_gpu_bytes=None, gpu_percent=None, code="<b>")

    assert "GPU" not in show_cells([without])
    assert list_cells([without]).splitlines() == [
        "cell  code      RAM  peak RAM   time  CPU time",
        "3     <b>   +300 MB    400 MB  0.5 s    0.25 s",
    ]
    assert "&lt;b&gt;" in show_cells([without])
    assert "<td>+2 GB</td><td>3 GB</td><td>55 %</td>" in show_cells([CELL])


def test_the_whole_machine_does_not_flatten_the_job() -> None:
    """Only the job is drawn, so the axis is its own; the capacity is drawn where it is."""
    made = make_rich(n_gpus=0)
    columns = read_columns(made)
    calm, busy = (
        draw_panel(
            build(made, columns._replace(machine_cores=array("d", [cores] * len(columns.machine_cores))))
        )
        for cores in (0.1, 500.0)
    )

    first, second = (re.findall(r'<path d="([^"]*)" fill="none"', picture)[0] for picture in (calm, busy))

    assert first == second
