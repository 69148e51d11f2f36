"""Pages as text: what they contain, and that nothing of a recording is more than text in them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import gpu_tracker
from builders import MB, found, gpu, gpu_totals, header, recording, sample, totals
from gpu_tracker.analysis.charts import Run, overlay
from gpu_tracker.analysis.compare import compare
from gpu_tracker.analysis.findings.finding import Finding
from gpu_tracker.analysis.measures import measure
from gpu_tracker.core.errors import TrackerError, UsageError
from gpu_tracker.core.model import (
    Call,
    FrameworkMemory,
    GpuSample,
    Identity,
    MetricRow,
    PeakMoment,
    PeakProcess,
    Peaks,
    RecordingData,
    RegionTotals,
    TreeCounters,
)
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import Report, build
from gpu_tracker.reports.contract import render
from gpu_tracker.reports.html.drawing import draw_charts, thin
from gpu_tracker.reports.html.page import to_html
from recorded import FRAMEWORKS, METRICS, REGIONS, join, part, rank, run

EVIL = '</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1">\x1b[31m\n\u2028'


def report_on(shown: RecordingData) -> Report:
    """With its samples."""
    return build(shown, read_columns(shown))


def rich(text: str = "fine") -> RecordingData:
    """A run with everything that a page shows, all of whose names are that text."""
    counters, peaks = gpu_totals()
    peaks = peaks._replace(temperature_celsius=80.0)
    counters = counters._replace(limited_seconds=((text, 5.0),))
    device = gpu()._replace(name=text)
    return recording(
        header=header(
            command=("python", text),
            host=text,
            identity=Identity(name=text, labels=((text, text),), node=text),
        ),
        events=(found(device),),
        samples=tuple(
            sample(
                at,
                gpus=(GpuSample("GPU-0", 3000 * MB, 2000 * MB, 50.0, 40.0, 200.0),),
                gpu_counters=(counters,),
                peaks=Peaks(gpus=(peaks,)),
                counters=TreeCounters(round(at) * MB, 0, 3, 100, 0.5),
            )
            for at in (0.0, 1.0, 2.0, 3.0)
        ),
        totals=totals(
            gpu_counters=(counters,),
            peaks=totals().peaks._replace(gpus=(peaks,)),
            counters=TreeCounters(MB, 0, 3, 100, 0.5),
        ),
        regions=(RegionTotals(100, (text,), calls=2, open_calls=1, wall_seconds=5.0), *REGIONS),
        calls=(Call((text,), 100, 1, 0.5, 1.5),),
        metrics=(MetricRow(1.0, {text: 2.0}), *METRICS),
        frameworks=(FRAMEWORKS[0], FrameworkMemory(1, text, text, "", 1.0, 0, 0, "exact")),
        peak_moments=(
            PeakMoment("ram", 1.0, 500 * MB, 9, (PeakProcess(7, text, 400 * MB),), ((text, "eval"),)),
            PeakMoment("GPU-0", 1.0, 500 * MB, 1, (PeakProcess(7, "", 400 * MB),)),
            PeakMoment(text, 1.0, 500 * MB, 1),
        ),
    )


def with_findings(text: str) -> Report:
    """Seven of them."""
    one = Finding("gpu-low", "serious", "likely", text, text, text)
    return report_on(rich(text))._replace(
        findings=(one, *[one._replace(severity="note", advice="", disproof="")] * 6)
    )


def test_a_page_needs_nothing_else() -> None:
    """No address, no link, and a policy that lets only its own script run."""
    page = to_html(with_findings("fine"))

    assert not re.findall(
        r"""(?:src|href)\s*=|url\(|@import|\bimport\(|fetch\(|XMLHttpRequest|WebSocket""", page
    )
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")


def test_the_answers_are_those_of_the_report() -> None:
    """Tiles, findings, tables, and how sure each figure is."""
    page = to_html(with_findings("fine"))

    for words in (
        "10 s",
        "1 of 4 cores",
        "500 MB of 16 GB",
        "GPU 0 · fine",
        "tensors 800 MB",
        "serious, likely",
    ):
        assert words in page, words
    assert page.count('class="finding') == 7
    assert "<summary>2 more</summary>" in page
    assert "and 8 smaller ones" in page
    assert ">exact</abbr>" in page


@pytest.mark.parametrize("make", ["report", "comparison", "job"])
def test_names_are_only_text(make: str) -> None:
    """Whatever a command, host, region, metric, process, device or note is called."""
    shown = rich(EVIL)
    if make == "report":
        page = to_html(with_findings(EVIL))
    elif make == "comparison":
        both = compare([(EVIL, [measure(shown)]), ("b", [measure(shown)])])
        charts = overlay([Run(EVIL, report_on(shown).list_charts())])
        page = str(render(both._replace(charts=charts, notes=(EVIL,)), "html"))
    else:
        combined = join(rich(EVIL), rank())
        page = str(render(combined._replace(notes=(EVIL,)), "html"))

    assert "<img" not in page
    assert page.count("<script") == page.count("</script>") == 3
    assert "\x1b" not in page
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    json.loads(data[1])


def test_what_is_not_known_is_not_a_zero() -> None:
    """A job of a moment, without samples or devices."""
    empty = totals(at_seconds=0.0, cpu_seconds=(0.0, 0.0, 0.0), peaks=Peaks())
    page = to_html(build(run(totals=empty, header={"command": ()})))

    assert "too short for a rate" in page
    assert "the job ended before the first sample" in page
    assert "Over time" not in page
    assert "process 100" in page


def test_unknown_figures_of_a_device_are_said() -> None:
    """Instead of being left out."""
    page = to_html(report_on(recording(events=(found(gpu(0, None)),), samples=(sample(1.0),))))
    assert "utilization not measured" in page
    assert "not measured" in page


def test_many_devices_are_one_tile() -> None:
    """The table has each of them."""
    made = [gpu_totals(f"GPU-{number}") for number in range(6)]
    summed = totals(
        gpu_counters=tuple(counters for counters, _ in made),
        peaks=totals().peaks._replace(gpus=tuple(peaks for _, peaks in made)),
    )
    events = tuple(found(gpu(number)) for number in range(6))
    page = to_html(report_on(recording(events=events, totals=summed)))
    assert "6 GPUs · " in page
    assert page.count('<section class="tile"') == 4
    nothing = to_html(report_on(recording(events=events)))
    assert "utilization not measured" in nothing


def test_a_limit_is_named_and_a_long_list_is_cut() -> None:
    """Fifty regions, twelve notes."""
    shown = rich()._replace(
        header=header(allocation=header().allocation._replace(ram_bytes=2**30, ram_source="Slurm")),
        regions=tuple(part(1, 1.0, path=(f"r{number}",)) for number in range(60)),
        metrics=tuple(MetricRow(1.0, {f"m{number}": 1.0}) for number in range(60)),
    )
    report = report_on(shown)._replace(notes=tuple(f"Note {number}." for number in range(20)))
    page = to_html(report)

    assert "500 MB of 1 GiB" in page
    assert "47 % of the Slurm limit" in page
    for rest in ("10 more regions", "10 more metrics", "8 more notes"):
        assert f"and {rest}" in page


def test_a_run_without_a_capacity_has_no_bar() -> None:
    """Nothing is divided by zero."""
    bare = header(allocation=header().allocation._replace(ram_bytes=0), n_expected_cores=0.0)
    page = to_html(report_on(recording(header=bare)))
    assert 'class="bar' not in page


def test_too_many_values_become_bins_of_equal_time() -> None:
    """The peaks stay, the page stays small."""
    shown = recording(samples=tuple(sample(float(at)) for at in range(1, 1001)))
    charts = report_on(shown).list_charts()
    small = thin(charts, 300)

    assert all(len(line.mean) <= 100 for chart in small for line in chart.lines)
    assert max(small[1].lines[0].high or ()) == max(charts[1].lines[0].high or ())
    assert thin(charts, 10**6) == list(charts)
    data, packed = draw_charts(charts, 1000.0, most_values=300)
    assert len(packed) < 3000
    assert max(column["rows"] for column in data["columns"]) <= 100
    mixed = [charts[0], charts[1]._replace(lines=(charts[1].lines[0]._replace(**{
        name: getattr(charts[1].lines[0], name)[:5] for name in ("start", "end", "mean", "low", "high")
    }),))]  # fmt: skip
    assert len(thin(mixed, 600)[1].lines[0].mean) == 5


@pytest.mark.parametrize("format_name", ["text", "json", "markdown", "html", "svg"])
@pytest.mark.parametrize("at", [(), (0.0,), (5.0,)])
def test_hardly_a_moment_can_be_shown(format_name: str, at: tuple[float, ...]) -> None:
    """Any prefix of a file gives a report."""
    length = max(at, default=0.0)
    shown = recording(samples=tuple(map(sample, at)), totals=totals(at_seconds=length))

    assert render(report_on(shown), format_name)


def test_a_comparison_and_a_job_are_pages_too() -> None:
    """With the same figures as their texts."""
    slow, quick = run(10.0, regions=(part(1, 1.0),)), run(5.0, regions=(part(1, 0.5),))
    both = compare([("slow", [measure(slow)]), ("quick", [measure(quick)])])
    page = str(render(both, "html"))
    assert "<h1>slow against quick</h1>" in page
    assert "time per call" in page
    assert "Over time" not in page
    alone = str(render(compare([("slow", [measure(slow)])]), "html"))
    assert "What changed" not in alone

    job = str(render(join(rank(), rank(pid=2)), "html"))
    assert "<h1>2 recordings on 1 host</h1>" in job


def test_a_report_is_saved_by_its_suffix(tmp_path: Path) -> None:
    """Completely, or not at all with one sentence."""
    report = report_on(rich())
    report.save(tmp_path / "x.html")
    assert (tmp_path / "x.html").read_text().startswith("<!DOCTYPE html>")
    report.save(str(tmp_path / "x.json"))
    assert json.loads((tmp_path / "x.json").read_text())["exit_code"] == 0
    with pytest.raises(UsageError, match="Unknown format"):
        report.save(tmp_path / "x.doc")
    with pytest.raises(TrackerError, match="No such file"):
        report.save(tmp_path / "none" / "x.html")


def test_the_licence_of_the_drawing_library_is_in_the_package() -> None:
    """Wherever its code goes."""
    assets = Path(gpu_tracker.__file__).parent / "reports" / "html" / "assets"
    assert "MIT" in (assets / "uplot-LICENSE.txt").read_text()
