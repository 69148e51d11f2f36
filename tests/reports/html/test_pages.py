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
from gpu_tracker.analysis.measures import measure, overall_values
from gpu_tracker.analysis.runs import ListedRun, Runs
from gpu_tracker.core.errors import TrackerError, UsageError
from gpu_tracker.core.model import (
    Call,
    Event,
    FrameworkMemory,
    GpuSample,
    Identity,
    MetricRow,
    Parts,
    PeakMoment,
    PeakProcess,
    Peaks,
    RecordingData,
    RegionTotals,
    Totals,
    TreeCounters,
    add_parts,
)
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import Report, Reports, build
from gpu_tracker.reports.contract import render
from gpu_tracker.reports.html.drawing import draw, draw_charts, draw_rows, thin
from gpu_tracker.reports.html.fragments import prose
from gpu_tracker.reports.html.page import assemble, make_page, to_frame, to_html
from recorded import FRAMEWORKS, METRICS, REGIONS, interval, join, part, rank, run

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


def test_a_page_tells_a_sample_from_a_peak() -> None:
    """The job's peak was read; on the device it held more than at the reading whose holders are known."""
    page = to_html(report_on(rich("fine")))

    assert "RAM: peak 500 MB at 1 s: who held it" in page
    assert "GPU 0: largest reading 500 MB at 1 s: who held it" in page


def test_the_table_of_regions_ends_with_the_time_outside() -> None:
    """As in text and Markdown."""
    made = report_on(rich("fine"))
    outside = "<th>outside regions</th><td>-</td><td>4 s</td><td>40 %</td>"

    assert outside in to_html(made._replace(outside_seconds=4.0)).replace(' scope="row"', "")
    assert "outside regions" not in to_html(made._replace(outside_seconds=None))


def test_times_of_a_run_without_a_sample_are_not_known() -> None:
    """It may have lasted for hours; nobody can tell how much longer another one took."""
    cut = recording(totals=Totals(), end=None)
    report = report_on(cut)
    page, plain = to_html(report), json.loads(str(render(report, "json")))["summary"]

    assert ">not measured<" in page
    assert "CPU time of the main process" not in page
    assert (plain["seconds"], plain["system_cpu"]["seconds"]) == (None, None)
    assert {part["seconds"] for part in plain["cpu"].values()} == {None}
    text = str(render(report, "text"))
    assert "time  -, from 2026" in text
    assert "CPU   -" in text
    assert "node1, -<" in str(render(report, "svg"))
    values = overall_values(report.summary)
    assert (values["time"], values["cpu_time"]) == (None, None)
    compared = compare([("a", [measure(run())]), ("b", [measure(cut)])])
    assert "-100" not in str(render(compared, "text"))


def test_a_little_cpu_time_is_not_nothing() -> None:
    """In text as in the tile."""
    idle = recording(totals=totals(at_seconds=73.0, cpu_seconds=add_parts(0.141, 0.0)))

    assert "&lt;0.01 of 4 cores" in to_html(report_on(idle))
    assert "&lt;1 % in top, which is &lt;1 % of what the job may use" in to_html(report_on(idle))
    assert "<0.01 of 4 cores on average (<1 %)" in str(render(report_on(idle), "text"))


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


@pytest.mark.parametrize("make", ["report", "comparison", "job", "list"])
def test_names_are_only_text(make: str) -> None:
    """Whatever a command, host, region, metric, process, device or note is called."""
    shown = rich(EVIL)
    if make == "report":
        page = to_html(with_findings(EVIL))
    elif make == "comparison":
        both = compare([(EVIL, [measure(shown)]), ("b", [measure(shown)])])
        charts = overlay([Run(EVIL, report_on(shown).list_charts())])
        page = str(render(both._replace(charts=charts, notes=(EVIL,)), "html"))
    elif make == "list":
        runs = (ListedRun(EVIL, command=(EVIL,), name=EVIL, started_at=EVIL), ListedRun(EVIL, EVIL))
        page = str(render(Runs(runs, overlay([Run(EVIL, report_on(shown).list_charts())])), "html"))
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
    empty = totals(at_seconds=0.0, cpu_seconds=Parts(0.0, 0.0, 0.0), peaks=Peaks())
    page = to_html(build(run(totals=empty, header={"command": ()})))

    assert "too short for a rate" in page
    assert "the job ended before the first sample" in page
    assert "Over time" not in page
    assert "process 100" in page


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        ("killed", "no sample was recorded"),
        ("running", "no sample was recorded"),
        ("exited", "the job ended before the first sample"),
    ],
)
def test_a_page_says_as_the_text_why_memory_is_not_known(ending: str, reason: str) -> None:
    """A recording that was cut off does not show that the job had ended."""
    report = build(run(totals=totals(peaks=Peaks())))._replace(ending=ending)

    assert reason in to_html(report)
    assert reason in str(report)


def test_unknown_figures_of_a_device_are_said() -> None:
    """Instead of being left out."""
    page = to_html(report_on(recording(events=(found(gpu(0, None)),), samples=(sample(1.0),))))
    assert "utilization not measured" in page
    assert "not measured" in page


def test_activity_of_a_device_is_in_its_tile_and_the_table() -> None:
    """Figures that no device measures have no column."""
    counters, peaks = gpu_totals()
    for activity, is_shown in ((((310.0, 10.0),), True), ((), False)):
        summed = totals(
            gpu_counters=(counters._replace(activity=activity),), peaks=totals().peaks._replace(gpus=(peaks,))
        )
        page = to_html(report_on(recording(events=(found(gpu(0)),), totals=summed)))

        assert ("50 % busy (job 40 %), SM activity 31 %" in page) == is_shown
        assert page.count("SM activity</th>") == is_shown
        assert "SM occupancy" not in page


def report_polled(n_gpus: int) -> Report:
    """Of devices that are read for 7 of 10 s, and whose drivers keep no samples of their utilization."""
    made = [gpu_totals(f"GPU-{number}") for number in range(n_gpus)]
    summed = totals(
        gpu_counters=tuple(counters._replace(energy_seconds=7.0) for counters, _ in made),
        peaks=totals().peaks._replace(gpus=tuple(peaks for _, peaks in made)),
    )
    polled = tuple(Event(0.0, "polled", f"GPU-{number}") for number in range(n_gpus))
    devices = tuple(found(gpu(number)) for number in range(n_gpus))
    return report_on(recording(events=devices + polled, totals=summed))


def test_an_estimated_utilization_is_called_so() -> None:
    """In tiles, in the table of devices and in the one of how sure each figure is; energy has its meter."""
    page = to_html(report_polled(1))
    sure = page.partition("How sure is each figure")[2]

    assert "50 % busy (estimate" in page
    assert "<td>50 %, estimate</td>" in page
    assert re.search(r"GPU 0: mean utilization</th><td>50 %</td><td><abbr[^>]*>estimate", sure)
    assert re.search(r"GPU 0: energy</th><td>2500 J, without 3 s of the time</td><td><abbr[^>]*>exact", sure)
    many = to_html(report_polled(6))
    assert "50 % busy (estimate)" in many
    assert "50 to 50" not in many


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
    late = summed.gpu_counters[0]._replace(utilization_seconds=4.0, utilization_percent_seconds=200.0)
    partial = summed._replace(gpu_counters=(late, *summed.gpu_counters[1:]))
    assert "50 %, without 6 s of the time" in to_html(report_on(recording(events=events, totals=partial)))
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


def test_a_very_long_command_is_shortened() -> None:
    """Its whole text is there once, to be opened; so is the name of a run."""
    command = "x=1;" * 25_000
    shown = report_on(run(header={"command": ("python", "-c", command)}))
    page = to_html(shown)
    assert page.count(command) == 1
    assert "<h1>python -c x=1;" in page
    assert re.search(
        r'<details class="whole"><summary>The whole command \(100010 characters\)</summary>', page
    )
    assert re.search(r"<title>[^<]{1,100}</title>", page)

    named = to_html(report_on(run(header={"command": ("job",), "identity": Identity(name="n" * 500)})))
    assert "The whole name (500 characters)" in named
    assert "The whole command" not in named

    several = str(render(Reports((shown, shown)), "html"))
    assert command not in several
    assert len(several) < len(page)


@pytest.mark.parametrize(
    ("sentence", "html"),
    [
        ("Use `a<b`, or `c`.", "Use <code>a&lt;b</code>, or <code>c</code>."),
        ("It's `one", "It&#x27;s `one"),
        ("`x`", "<code>x</code>"),
    ],
)
def test_commands_in_a_sentence_are_set_as_code(sentence: str, html: str) -> None:
    """Whatever they contain; a lone backtick is only that."""
    assert prose(sentence) == html


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
    assert "<h1>quick against slow</h1>" in page
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


def test_rows_are_what_came_after_a_moment() -> None:
    """Of intervals; instants are those that are given."""
    samples = tuple(interval(float(end), 100) for end in range(1, 11))
    shown = run(samples=samples, metrics=(MetricRow(9.5, {"loss": 1.0}),), totals=totals(at_seconds=10.0))
    data, _ = draw_rows(report_on(shown), 7.0, 10.0)

    counts = {chart["name"]: data["columns"][chart["lines"][0]["mean"]]["rows"] for chart in data["charts"]}
    assert (counts["ram"], counts["metric:loss"], data["seconds"]) == (3, 1, 10.0)


def test_calls_that_are_not_written_yet_are_not_missing() -> None:
    """While the job runs; later a region that has more calls than are shown says so."""
    calls = tuple(Call(("step",), 1, number + 1, float(number), number + 0.5) for number in range(3))
    region = part(1, *([0.5] * 5), first_seconds=0.0, last_seconds=5.0)
    shown = run(regions=(region,), calls=calls)
    for is_running in (True, False):
        data, _ = draw(report_on(shown._replace(is_running=is_running, end=None)))
        assert [lane["band"] for lane in data["lanes"]] == [None if is_running else (0.0, 5.0, 0.5)]
        assert bool(data["lanesNote"]) is not is_running


def test_a_page_that_follows_may_only_talk_to_its_server() -> None:
    """A saved one talks to nobody."""
    page = make_page(report_on(rich()))
    assert "connect-src" not in assemble(page)
    assert "connect-src 'self';" in assemble(page, "news?a=1&b=2")
    assert '<body data-news="news?a=1&amp;b=2">' in assemble(page, "news?a=1&b=2")
    assert json.loads(to_frame(page))["body"] == page.body
