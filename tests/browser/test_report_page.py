"""The page of a report in a real browser: what it shows is the report, it asks for nothing, anybody can use it."""

from __future__ import annotations

import subprocess
import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import Opened
from builders import MB, sample, totals
from end_to_end.launch import COMMAND_LINE
from gpu_tracker.analysis.charts import Run, overlay
from gpu_tracker.analysis.compare import compare
from gpu_tracker.analysis.frameworks import PARTS
from gpu_tracker.analysis.measures import measure
from gpu_tracker.analysis.series import bin_column, make_bins
from gpu_tracker.core.columns import SampleColumns
from gpu_tracker.core.model import Busiest, MetricRow, Parts, Sample, Spread, add_parts
from gpu_tracker.recording import sampled
from gpu_tracker.recording.reader import load
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import build
from gpu_tracker.reports.contract import render
from recorded import FRAMEWORKS, join, rank, run
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
    busiest = find_busiest(samples)
    peaks = totals().peaks._replace(busiest=Parts(busiest, Busiest(), busiest), system_busiest=busiest)
    summed = totals(at_seconds=at, cpu_seconds=add_parts(cpu, 0.0), peaks=peaks)
    return run(samples=tuple(samples), totals=summed)


def find_busiest(samples: Sequence[Sample]) -> Busiest:
    """The interval in which the job kept most cores busy."""
    pairs = pairwise([sample(0.0), *samples])
    intervals = [
        Busiest(
            after.cpu_seconds.combined - before.cpu_seconds.combined, after.at_seconds - before.at_seconds
        )
        for before, after in pairs
    ]
    return max(intervals, key=lambda one: one.cpu_seconds / one.wall_seconds)


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


def test_a_mean_is_not_above_the_largest_value(show: Callable[..., Opened]) -> None:
    """However numbers are rounded; and huge ones have three digits, too."""
    logged = tuple(MetricRow(at, {"big": 1e30}) for at in (1.0, 2.0, 3.0))
    page = show(run(samples=(sample(5.0),), metrics=logged))
    (said,) = page.run(
        "[...document.querySelectorAll('#range [data-chart=\"metric:big\"]')].map(one => one.textContent)"
    )

    assert said == "big 1e+30 (max 1e+30)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_legend_of_strips_has_their_shades(show: Callable[..., Opened], scheme: str) -> None:
    """From the shade of nothing to that of the most, whichever is dark."""
    page = show(rich(), color_scheme=scheme)
    (words,) = page.run("[...document.querySelectorAll('.key:has(.shades)')].map(one => one.textContent)")
    colours = page.run("""() => {
        const hex = name => getComputedStyle(document.documentElement).getPropertyValue(name).match(/[\\da-f]{2}/gi);
        return ['--empty', '--deep'].map(name => `rgb(${hex(name).map(part => parseInt(part, 16)).join(', ')})`);
    }""")

    assert words == "0100 %"
    shown = page.run("getComputedStyle(document.querySelector('.shades')).backgroundImage")
    assert shown == f"linear-gradient(to right, {', '.join(colours)})"


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


def test_merged_samples_keep_their_extremes(
    show: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many samples become one interval."""
    shown = wave()
    single = read_columns(shown).cpu_cores.combined
    monkeypatch.setattr(sampled, "_MOST_ROWS", 40)
    page = show(shown)

    found = page.run(f"window.gpuTrackerPage.summarize('cpu', 'job', 0, {shown.totals.at_seconds})")
    assert found["high"] == pytest.approx(max(single), rel=LEVEL)


def test_a_short_range_has_two_ends(show: Callable[..., Opened]) -> None:
    """However far it is from the start."""
    page = show(run(samples=(sample(1800.0),), totals=totals(at_seconds=1800.0)))
    assert page.page.inner_text("#range b") == "0 s \N{EN DASH} 30 min"

    page.run("window.gpuTrackerPage.setRange(900, 900.05)")

    assert page.page.inner_text("#range b") == "15 min \N{EN DASH} 15 min 0.05 s"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.25, "0.25 s"), (59.0, "59 s"), (105.0, "1 min 45 s"), (130.0, "2 min 10 s"), (600.0, "10 min"),
     (7325.0, "2 h 2 min"), (86400.0, "1 d"), (129600.0, "1 d 12 h")],
)  # fmt: skip
def test_moments_are_written_like_a_stopwatch(
    show: Callable[..., Opened], seconds: float, words: str
) -> None:
    """Nobody reads 2.167 minutes; and the last moment of an axis is not cut off."""
    page = show(run(samples=(sample(seconds),), totals=totals(at_seconds=seconds)))

    assert page.page.inner_text("#range b") == f"0 s \N{EN DASH} {words}"


def find_heights(page: Opened, chart: int, shares: Sequence[float]) -> list[float | None]:
    """How high the lowest part of a line is there in a chart, from 0 to 1; None where there is no line."""
    found: list[float | None] = page.run(
        f"""(() => {{
            const plot = document.querySelectorAll('.chart')[{chart}], canvas = plot.querySelector('canvas');
            const area = plot.querySelector('.u-over'), ratio = devicePixelRatio, context = canvas.getContext('2d');
            const left = area.offsetLeft * ratio, top = area.offsetTop * ratio;
            const [width, height] = [area.clientWidth * ratio, area.clientHeight * ratio];
            return {list(shares)}.map(share => {{
                const x = Math.round(left + share * (width - 1));
                const pixels = context.getImageData(x, top, 1, height).data;
                for (let y = height - 1; y >= 0; y--) {{
                    const [red, green, blue, alpha] = pixels.slice(4 * y, 4 * y + 4);
                    if (alpha > 100 && blue - red > 60) return 1 - y / height;
                }}
                return null;
            }});
        }})()"""
    )
    return found


def held(size: int) -> Any:
    """Memory that was the same for a whole interval."""
    spread = Spread(size * MB, size * MB, size * MB)
    return Parts(spread, Spread(0, 0, 0), spread)


def test_a_long_interval_is_level(show: Callable[..., Opened]) -> None:
    """All that is known of it is one value, so no slope leads to it."""
    ends = [*range(1, 11), 60, *range(61, 71)]
    samples = [sample(float(end), ram_bytes=held(400 if end == 60 else 100)) for end in ends]
    page = show(run(samples=tuple(samples), totals=totals(at_seconds=70.0)))

    heights = find_heights(page, 1, [end / 70 for end in (5, 12, 35, 58, 65)])
    assert heights == pytest.approx([0.23, 0.94, 0.94, 0.94, 0.23], abs=0.03)


def test_time_without_a_sampler_is_a_gap(show: Callable[..., Opened]) -> None:
    """Also in the strips; the line does not lead across."""
    samples = [sample(float(end), ram_bytes=held(100)) for end in range(1, 11)]
    samples += [sample(60.0, ram_bytes=held(100), late_seconds=49.0)]
    samples += [sample(float(end), ram_bytes=held(100)) for end in range(61, 71)]
    page = show(run(samples=tuple(samples), totals=totals(at_seconds=70.0)))

    heights = find_heights(page, 1, [end / 70 for end in (5, 20, 35, 50, 65)])
    assert [height is None for height in heights] == [False, True, True, True, False]


@pytest.mark.parametrize("rows", [6, 40_000])
def test_a_zoomed_line_reaches_both_edges(show: Callable[..., Opened], rows: int) -> None:
    """What leads to the first value in a range and from its last one is drawn, however many there are."""
    samples = [sample(float(end), ram_bytes=held(100)) for end in (50, 100)]
    logged = [MetricRow(100.0 * (number + 0.5) / rows, {"loss": 1.0}) for number in range(rows)]
    page = show(run(samples=tuple(samples), metrics=tuple(logged), totals=totals(at_seconds=100.0)))
    page.run("window.gpuTrackerPage.setRange(30, 70)")

    assert None not in find_heights(page, 1, [0.002, 0.5, 0.998])
    assert None not in find_heights(page, 2, [0.002, 0.5, 0.998])


def test_few_points_between_many_are_reached_from_the_edges(show: Callable[..., Opened]) -> None:
    """A metric that is logged densely, but not around the edges of the range."""
    at = [1.0, *(30 + number / 1000 for number in range(5000)), 99.0]
    logged = tuple(MetricRow(moment, {"loss": 1.0}) for moment in at)
    page = show(run(samples=(sample(100.0),), metrics=logged, totals=totals(at_seconds=100.0)))
    page.run("window.gpuTrackerPage.setRange(20, 60)")

    assert None not in find_heights(page, 2, [0.002, 0.1, 0.3, 0.9, 0.998])


def test_a_single_interval_between_gaps_is_a_dot(show: Callable[..., Opened]) -> None:
    """However short it is."""
    samples = [sample(100.0, ram_bytes=held(100), late_seconds=99.999), sample(1000.0, late_seconds=890.0)]
    page = show(run(samples=tuple(samples), totals=totals(at_seconds=1000.0)))

    assert find_heights(page, 1, [0.1])[0] is not None
    assert find_heights(page, 1, [0.05, 0.2]) == [None, None]


def test_parts_of_gpu_memory_are_stacked(show: Callable[..., Opened]) -> None:
    """Tensors at the bottom, from the first reading on; a zoom keeps them."""
    memory = FRAMEWORKS[0]._replace(at_seconds=1.5, in_use_bytes=500 * MB, held_bytes=1000 * MB)
    page = show(rich()._replace(framework_readings=(memory,), totals=totals(at_seconds=3.0)))
    names = page.run("[...document.querySelectorAll('.chart strong')].map(one => one.textContent)")
    place = names.index("Memory of GPU 0 by use")
    keys = page.run(
        f"[...document.querySelectorAll('.chart')[{place}].querySelectorAll('.key')].map(one => one.textContent)"
    )

    assert (keys, page.complaints) == (list(PARTS[:4]), [])
    assert [height is None for height in find_heights(page, place, [0.1, 0.3, 0.8])] == [True, True, False]
    page.run("window.gpuTrackerPage.setRange(1.9, 2.9)")
    assert None not in find_heights(page, place, [0.2, 0.8])
    page.picture("parts")


def test_the_peak_opens_its_explanation(show: Callable[..., Opened]) -> None:
    """By the mouse on its mark."""
    page = show(rich())
    assert not page.run("document.getElementById('peak-ram').open")
    page.run("document.querySelectorAll('.chart')[1].scrollIntoView({block: 'center'})")
    place = page.run("window.gpuTrackerPage.findPeak('ram')")
    page.page.mouse.click(*place)
    assert page.run("document.getElementById('peak-ram').open")
    assert "400 MB" in page.page.inner_text("#peak-ram")


LONG = "averylongnamewithoutanyspace_" * 9


def compare_long() -> Any:
    """Two groups whose names, regions, metrics and devices are long."""
    shown = rich(LONG)
    both = compare([(LONG, [measure(shown)]), (f"other{LONG}", [measure(shown)])])
    charts = build(shown, read_columns(shown)).list_charts()
    return both._replace(charts=overlay([Run(LONG, charts), Run(f"other{LONG}", charts)]), notes=(LONG,))


def combine_long() -> Any:
    """A rank on a host with a long name."""
    shown = rich(LONG)
    charts = build(shown, read_columns(shown)).list_charts()
    return join(shown, rank())._replace(charts=overlay([Run(LONG, charts)]), notes=(LONG,))


@pytest.mark.parametrize(
    "make",
    [lambda: build(rich(LONG), read_columns(rich(LONG))), compare_long, combine_long],
    ids=["report", "comparison", "job"],
)
@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_long_names_do_not_widen_a_page(
    open_page: Callable[..., Opened], tmp_path: Path, make: Callable[[], Any], width: int, scheme: str
) -> None:
    """Of regions, metrics, processes, hosts, devices, runs and in notes, without a space to break them at."""
    path = tmp_path / "long.html"
    path.write_text(str(render(make(), "html")), encoding="utf-8")
    page = open_page(path, viewport={"width": width, "height": 800}, color_scheme=scheme)

    assert page.run("document.documentElement.scrollWidth") <= width
    for section in ("section", "figure", ".finding", "details"):
        widest = page.run(
            f"Math.max(0, ...[...document.querySelectorAll('{section}')].map(one => one.scrollWidth))"
        )
        assert widest <= width


def test_a_phone_keeps_its_room_for_charts(show: Callable[..., Opened]) -> None:
    """The line with the figures of a range stays on the screen, so it must be one line."""
    page = show(rich(), viewport={"width": 390, "height": 800})
    assert page.run("document.getElementById('range').offsetHeight") < 60


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


def test_on_paper_nothing_is_dark_closed_or_cut(show: Callable[..., Opened]) -> None:
    """Whatever the screen was like; afterwards it is again what it was."""
    page = show(rich(), viewport={"width": 1280, "height": 800}, color_scheme="dark")
    look = """() => ({
        back: getComputedStyle(document.documentElement).getPropertyValue('--back').trim(),
        closed: document.querySelectorAll('details:not([open])').length,
        widest: Math.max(...[...document.querySelectorAll('canvas')].map(one => one.getBoundingClientRect().width)),
    })"""
    before = page.run(look)
    assert (before["back"], before["closed"] > 0) == ("#14161a", True)

    page.run("dispatchEvent(new Event('beforeprint'))")
    assert page.run(look) == {"back": "#fff", "closed": 0, "widest": 700}
    page.page.emulate_media(media="print")
    tables = page.run(
        "[...document.querySelectorAll('.wide')].map(one => [one.scrollWidth, one.clientWidth])"
    )
    assert [needs for needs, has in tables if needs > has] == []
    page.picture("report-paper")

    page.page.emulate_media(media="screen")
    page.run("dispatchEvent(new Event('afterprint'))")
    assert page.run(look) == before


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


BURST = "import time; end = time.process_time() + {}\nwhile time.process_time() < end: pass"
REAL_RUNS = {
    "instant": ["true"],
    "short": [sys.executable, "-c", BURST.format(0.03)],
    "idle": ["sleep", "0.55"],
    # Each child is waited for by the shell, which ends a few milliseconds after the last one.
    "children": [
        "sh",
        "-c",
        f"for i in 1 2 3; do '{sys.executable}' -c 'sum(range(3 * 10**6))'; sleep 0.1; done",
    ],
    "late": [sys.executable, "-c", f"import time; time.sleep(0.42); {BURST.format(0.06)}"],
    "freed": [sys.executable, "-c", "import time; held = bytearray(3 * 10**8); time.sleep(0.33)"],
}


@pytest.mark.parametrize("name", REAL_RUNS)
@pytest.mark.parametrize("options", [(), ("--full-resolution", "--st", "0.5")])
def test_the_whole_run_has_the_figures_of_the_report(
    open_page: Callable[..., Opened], tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    """Mean and maximum in the range line are those of the summary, and nothing is drawn above them."""
    recorded, path = str(tmp_path / "run.jsonl"), tmp_path / "run.html"
    command = [
        COMMAND_LINE,
        "run",
        *(options or ("--st", "0.1")),
        "--record",
        recorded,
        "--",
        *REAL_RUNS[name],
    ]
    subprocess.run(command, check=True, capture_output=True)
    subprocess.run([COMMAND_LINE, "report", recorded, "-o", path], check=True)
    recording = load(recorded)
    summary = build(recording, read_columns(recording)).summary
    page = open_page(path)

    said = page.run("[...document.querySelectorAll('#range span')].map(one => ({...one.dataset}))")
    shown = {one["chart"]: one for one in said if one["line"] in ("", "job")}
    cpu, ram = summary.cpu.combined, summary.ram.combined
    if "cpu" in shown:
        assert cpu.mean_percent is not None
        assert cpu.max_percent is not None
        assert float(shown["cpu"]["mean"]) == pytest.approx(cpu.mean_percent / 100)
        assert float(shown["cpu"]["high"]) == pytest.approx(cpu.max_percent / 100, rel=2 * LEVEL)
    if "ram" in shown:
        assert float(shown["ram"]["high"]) == pytest.approx(ram.total_bytes, rel=2 * LEVEL)
    assert "cpu" in shown or summary.seconds < 0.1
    assert page.complaints == []


def find_shades(page: Opened, chart: int, strips: int) -> list[int]:
    """How dark the middle of each strip is, and whether something is written below the last one."""
    found: list[int] = page.run(f"""() => {{
        const canvas = document.querySelectorAll('.chart')[{chart}].querySelector('canvas.strip');
        const context = canvas.getContext('2d'), ratio = devicePixelRatio, step = (canvas.height / ratio - 16) / {strips};
        const darkness = (x, y) => 765 - context.getImageData(x * ratio, y * ratio, 1, 1).data.slice(0, 3).reduce((a, b) => a + b);
        const middle = canvas.width / ratio / 2;
        const shades = [...Array({strips}).keys()].map(number => darkness(middle, step * (number + 1) - 12));
        const below = context.getImageData(0, step * {strips} * ratio, canvas.width, 16 * ratio).data;
        return [...shades, below.some(value => value > 0) ? 1 : 0];
    }}""")
    return found


def test_strips_of_ten_runs_can_be_told_apart(open_page: Callable[..., Opened], tmp_path: Path) -> None:
    """3 GB on a machine of 16 GB is not 4 GB; a loss of 1.01 is not 1.02; and the time is below them."""
    runs = []
    for number in range(10):
        made = run(
            samples=tuple(sample(float(at), ram_bytes=held(3000 + 100 * number)) for at in range(11)),
            metrics=tuple(MetricRow(float(at), {"loss": 1.0 + number / 1000}) for at in range(11)),
        )
        runs.append(Run(f"run {number}", build(made, read_columns(made)).list_charts()))
    path = tmp_path / "ten.html"
    comparison = compare([("ten", [measure(run())])])._replace(
        charts=overlay(runs), files=(("ten", "logs/a.jsonl"), ("ten 2", "logs/b.jsonl"))
    )
    path.write_text(str(render(comparison, "html")), "utf-8")
    page = open_page(path)

    names = page.run("[...document.querySelectorAll('.chart strong')].map(one => one.textContent)")
    loss = find_shades(page, names.index("loss"), 10)
    assert loss[:10] == sorted(loss[:10])
    assert loss[9] - loss[0] > 100
    assert loss[10] == 1
    assert "ten 2" in page.page.inner_text("main")
    assert "logs/b.jsonl" in page.page.inner_text("main")
    page.picture("ten")


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
