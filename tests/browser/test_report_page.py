"""The page of a report in a real browser: what it shows is the report, it asks for nothing, anybody can use it."""

from __future__ import annotations

import subprocess
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import Opened
from builders import MB, sample, totals
from end_to_end.launch import COMMAND_LINE
from gpu_tracker.analysis.series import bin_column, make_bins
from gpu_tracker.core.columns import SampleColumns
from gpu_tracker.core.model import Parts, Spread, add_parts
from gpu_tracker.recording.reader import load
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import build
from recorded import run
from reports.html.test_pages import EVIL, rich

MONTH = Path(__file__).parents[2] / "benchmarks" / "workloads" / "month.py"
SIZES = [(1280, "light"), (390, "dark")]
# One level of a packed column, of the range of its values.
LEVEL = 1 / 4094


def wave(rows: int = 400) -> Any:
    """A run whose CPU and memory change all the time, in intervals of different lengths."""
    at, cpu, samples = 0.0, 0.0, []
    for number in range(rows):
        at += 0.25 + (number % 7) / 10
        cpu += (number % 11) / 10
        size = (100 + 50 * (number % 13)) * MB
        held = Spread(size - MB, size, size + MB * (number % 3))
        samples.append(
            sample(
                at,
                cpu_seconds=add_parts(cpu, 0.0),
                system_cpu_seconds=cpu,
                ram_bytes=Parts(held, Spread(0, 0, 0), held),
            )
        )
    summed = totals(at_seconds=at, cpu_seconds=add_parts(cpu, 0.0))
    return run(samples=tuple(samples), totals=summed)


def truth_of(columns: SampleColumns, mean: array[float], high: array[float], start: float, end: float) -> Any:
    """Mean and maximum of a column in a range, computed by other code."""
    bins = make_bins([start, end], columns.start_seconds, columns.end_seconds)
    binned = bin_column(bins, columns.end_seconds, mean, mean, high)
    return binned.mean[0], binned.high[0]


def test_a_page_asks_for_nothing(show: Callable[..., Opened]) -> None:
    """Nothing but the file itself, and nothing to complain of."""
    page = show(rich())
    assert len(page.requests) == 1
    assert page.requests[0].startswith("file://")
    assert page.complaints == []


def test_a_hostile_recording_is_only_text(show: Callable[..., Opened]) -> None:
    """No script of its runs, and its names are shown as they are."""
    page = show(rich(EVIL))
    assert page.run("window.hacked === undefined")
    assert page.run("document.querySelectorAll('img').length") == 0
    assert len(page.requests) == 1
    assert "<script>window.hacked=1</script>" in page.page.inner_text("h1")
    page.picture("hostile")


def test_a_policy_stops_what_should_get_in_all_the_same(show: Callable[..., Opened]) -> None:
    """Neither an inline script nor an address is allowed."""
    page = show(rich())
    page.run(
        "() => { const made = document.createElement('script'); made.textContent = 'window.hacked=1';"
        " document.body.append(made); }"
    )
    assert page.run("window.hacked === undefined")
    assert page.run("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')") == "refused"


def test_the_figures_are_those_of_the_report(show: Callable[..., Opened]) -> None:
    """Read back from the page: tiles, and the whole run in its range line."""
    shown = wave()
    page, columns = show(shown), read_columns(shown)
    report = build(shown, columns)

    assert page.page.inner_text(".tile .value >> nth=0") == "3 min 40 s"
    assert page.page.inner_text(".tile .value >> nth=2") == "500 MB of 16 GB"
    said = page.run("[...document.querySelectorAll('#range span')].map(one => ({...one.dataset}))")
    by_name = {one["chart"]: one for one in said}
    cpu = columns.cpu_cores.combined
    mean = report.summary.cpu.combined.mean_percent
    assert mean is not None
    assert float(by_name["cpu"]["mean"]) == pytest.approx(mean / 100, abs=max(cpu) * LEVEL)
    ram = columns.ram_bytes.combined
    assert float(by_name["ram"]["high"]) == pytest.approx(max(ram.high), abs=max(ram.high) * LEVEL)


def test_the_instant_at_the_start_has_no_weight(show: Callable[..., Opened]) -> None:
    """What was read at zero is of no time."""
    held = [Spread(size, size, size) for size in (0, 10 * MB, 10 * MB)]
    samples = [sample(10.0 * at, ram_bytes=Parts(one, Spread(0, 0, 0), one)) for at, one in enumerate(held)]
    page = show(run(samples=tuple(samples), totals=totals(at_seconds=20.0)))

    assert page.run("window.gpuTrackerPage.summarize('ram', 'job', 0, 20).mean") == pytest.approx(10 * MB)


def test_a_range_has_the_right_statistics(show: Callable[..., Opened]) -> None:
    """Selected by dragging, by keys and by hand; and the button leads back."""
    shown = wave()
    page, columns = show(shown), read_columns(shown)

    def check() -> None:
        start, end = page.run("window.gpuTrackerPage.range()")
        for chart, mean, high in (
            ("cpu", columns.cpu_cores.combined, columns.cpu_cores.combined),
            ("ram", columns.ram_bytes.combined.mean, columns.ram_bytes.combined.high),
        ):
            found = page.run(f"window.gpuTrackerPage.summarize('{chart}', 'job', {start}, {end})")
            expected = truth_of(columns, mean, high, start, end)
            tolerance = 2 * (max(high) - min(mean)) * LEVEL
            assert (found["mean"], found["high"]) == pytest.approx(expected, abs=tolerance)

    check()
    area = page.page.locator(".u-over >> nth=0").bounding_box()
    mouse = page.page.mouse
    mouse.move(area["x"] + area["width"] * 0.25, area["y"] + 40)
    mouse.down()
    mouse.move(area["x"] + area["width"] * 0.5, area["y"] + 40, steps=5)
    mouse.up()
    start, end = page.run("window.gpuTrackerPage.range()")
    whole = shown.totals.at_seconds
    assert (start, end) == pytest.approx((whole / 4, whole / 2), rel=0.03)
    check()

    page.page.focus("#charts")
    page.page.keyboard.press("+")
    assert page.run("window.gpuTrackerPage.range()")[0] > start
    page.page.keyboard.press("ArrowRight")
    page.page.keyboard.press("-")
    check()
    page.page.click("text=Whole run")
    assert page.run("window.gpuTrackerPage.range()") == [0, pytest.approx(whole)]
    assert page.complaints == []


def test_the_peak_opens_its_explanation(show: Callable[..., Opened]) -> None:
    """By the mouse on its mark."""
    page = show(rich())
    assert not page.run("document.getElementById('peak-ram').open")
    page.run("document.querySelectorAll('.chart')[1].scrollIntoView({block: 'center'})")
    place = page.run("window.gpuTrackerPage.findPeak('ram')")
    page.page.mouse.click(*place)
    assert page.run("document.getElementById('peak-ram').open")
    assert "400 MB" in page.page.inner_text("#peak-ram")


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_anybody_can_use_it(show: Callable[..., Opened], axe: str, width: int, scheme: str) -> None:
    """An examiner of accessibility finds nothing; nothing is wider than the screen."""
    page = show(rich(), viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True)
    page.run(axe)
    found = page.run("axe.run(document, {resultTypes: ['violations']}).then(result => result.violations)")

    assert [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found] == []
    assert page.run("document.documentElement.scrollWidth") <= width
    page.picture(f"report-{width}-{scheme}")


def test_it_can_be_printed(show: Callable[..., Opened], tmp_path: Path) -> None:
    """With its charts."""
    page = show(rich())
    page.page.emulate_media(media="print")
    page.picture("report-print")
    page.page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 20_000


def test_a_month_with_eight_devices_is_a_small_page(open_page: Callable[..., Opened], tmp_path: Path) -> None:
    """Below two megabytes, with its peaks."""
    recorded, page_path = tmp_path / "month.jsonl", tmp_path / "month.html"
    subprocess.run([sys.executable, MONTH, recorded, "8", "20", "2", "30"], check=True, capture_output=True)
    subprocess.run([COMMAND_LINE, "report", recorded, "-o", page_path], check=True)
    page = open_page(page_path)

    assert page_path.stat().st_size < 2e6
    assert page.complaints == []
    ram = page.run("window.gpuTrackerPage.summarize('ram', 'job', 0, 1e9)")
    assert ram["high"] == pytest.approx(load(recorded).totals.peaks.ram.combined.total_bytes, rel=2 * LEVEL)
    page.picture("month")


def test_a_fresh_run_and_its_comparison_are_pages(open_page: Callable[..., Opened], tmp_path: Path) -> None:
    """By the commands that a user types."""
    for number in (1, 2):
        job = [sys.executable, "-c", f"import time; held = bytearray({number} * 10**8); time.sleep(1.2)"]
        recorded = str(tmp_path / f"{number}.jsonl")
        command = [COMMAND_LINE, "run", "--st", "0.1", "--record", recorded, "--", *job]
        subprocess.run(command, check=True, capture_output=True)
    one, two = (str(tmp_path / f"{number}.jsonl") for number in (1, 2))
    for words, name in (
        (("report", one), "one"),
        (("report", one, two), "both"),
        (("compare", one, two), "compared"),
        (("combine", one, two), "combined"),
    ):
        path = tmp_path / f"{name}.html"
        subprocess.run([COMMAND_LINE, *words, "-o", path], check=True)
        page = open_page(path)
        assert page.complaints == []
        assert page.run("document.querySelectorAll('.chart').length") >= 2
        page.picture(name)
