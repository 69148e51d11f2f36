"""Regions and metrics in a report."""

from __future__ import annotations

import json
from math import inf, nan

import pytest

from builders import MB, recording, render_str
from gpu_tracker.core.model import MetricRow
from gpu_tracker.reports.build import build
from gpu_tracker.reports.region_tables import format_metrics, format_regions
from recorded import part


def test_a_report_without_regions_has_no_table() -> None:
    """Nor one of metrics."""
    text = render_str(build(recording()), "text")

    assert "region" not in text
    assert "metric" not in text


def test_the_biggest_region_comes_first_and_unknown_columns_are_left_out() -> None:
    """Unfinished calls are counted."""
    small = part(1, 1.0, path=("small",), peak_ram_bytes=5 * MB)
    big = part(1, 2.0, 4.0, path=("train", "big"), open_calls=1, cpu_seconds=3.0)
    lines = render_str(build(recording(regions=(small, big))), "text").splitlines()
    table = lines[-5:-1]

    assert table[0].split("  ")[1:2] == ["region"]
    assert "GPU busy" not in table[0]
    assert table[1].split() == [
        "train/big",
        "2",
        "(+1",
        "unfinished)",
        "6",
        "s",
        "60",
        "%",
        "3",
        "s",
        "3",
        "s",
        "-",
    ]
    assert table[2].split()[:2] == ["small", "1"]


def test_names_that_begin_alike_can_be_told_apart() -> None:
    """They are cut in the middle."""
    paths = [("epoch", f"{'block' * 10} {end}") for end in ("forward", "backward")]
    lines = render_str(build(recording(regions=tuple(part(1, 1.0, path=path) for path in paths))), "text")

    assert "blockblock forward" in lines
    assert "lockblock backward" in lines


def test_a_figure_shows_how_it_was_obtained() -> None:
    """A sampled figure is a lower bound; CPU time that may be other code's is approximate."""
    regions = (
        part(1, 3.0, path=("exact",), peak_ram_bytes=5 * MB, peak_ram_basis="exact", cpu_seconds=2.0),
        part(1, 2.0, path=("sampled",), peak_ram_bytes=5 * MB, cpu_seconds=2.0, cpu_basis="shared"),
        part(1, 1.5, path=("killed",), cpu_seconds=2.0, cpu_basis="sampled"),
        part(2, 1.5, path=("killed",), cpu_seconds=1.0),
        part(1, 1.0, path=("unknown",)),
    )
    *lines, killed = (
        line
        for name in ("exact", "sampled", "unknown", "killed")
        for line in render_str(build(recording(regions=regions)), "text").splitlines()
        if line.startswith(f"  {name} ")
    )

    assert lines[0].split()[-4:] == ["2", "s", "5", "MB"]
    assert lines[1].split()[-6:] == ["~", "2", "s", "≥", "5", "MB"]
    assert lines[2].split()[-1] == "-"
    assert killed.split()[-4:-1] == ["≥", "3", "s"]


def test_many_regions_and_metrics_are_counted() -> None:
    """JSON has all of them."""
    shown = build(
        recording(
            regions=tuple(part(1, 1.0, path=(f"r{n:02}",)) for n in range(17)),
            metrics=(MetricRow(1.0, {f"m{n:02}": float(n) for n in range(16)}),),
        )
    )
    text = render_str(shown, "text")
    plain = json.loads(render_str(shown, "json"))

    assert "and 2 more regions (the JSON report has all)" in text
    assert "and 1 more metrics (the JSON report has all)" in text
    assert (len(plain["regions"]), len(plain["metrics"])) == (17, 16)
    assert plain["regions"][0]["path"] == ["r00"]


def test_metrics_show_their_last_value() -> None:
    """And their extremes."""
    rows = tuple(MetricRow(float(n), {"loss": 1 / (n + 1)}) for n in range(4))
    text = render_str(build(recording(metrics=rows)), "text")

    assert text.splitlines()[-2].split() == ["loss", "4", "0.25", "0.25", "0.520833", "1"]


def test_the_time_outside_of_regions_is_shown() -> None:
    """With its share of the run; unknown where calls of several processes may have overlapped."""
    inside = (part(1, 6.0, path=("epoch",)), part(1, 4.0, path=("epoch", "step")))
    others = part(2, 1.0, path=("epoch",))

    assert (
        "  outside regions          4 s   40 %"
        in render_str(build(recording(regions=inside)), "text").splitlines()
    )
    assert "outside" not in render_str(build(recording(regions=(*inside, others))), "text")
    assert "outside" not in render_str(build(recording(regions=(part(1, 6.0, 7.0),))), "text")


def test_a_narrow_screen_shows_fewer_columns_and_rows() -> None:
    """Names, times and shares stay."""
    regions = tuple(part(1, 0.5, path=(f"region {n}",), cpu_seconds=1.0, peak_ram_bytes=MB) for n in range(9))
    report = build(recording(regions=regions, metrics=(MetricRow(1.0, {"loss": 0.1}),)))
    tables = format_regions(report, 48)

    assert tables[0].split() == ["region", "calls", "time", "share", "peak", "RAM"]
    assert tables[-1] == "and 1 more regions (the JSON report has all)"
    assert format_regions(report, 10)[0].split() == ["region", "time", "share"]
    assert format_metrics(report.metrics, 20)[0].split() == ["metric", "logged", "last"]


def test_values_that_are_not_finite_are_counted() -> None:
    """On a narrow screen too; they are in no other figure."""
    made = recording(metrics=tuple(MetricRow(1.0, {"loss": value}) for value in (0.5, nan, inf)))
    report = build(made)
    (line,) = format_metrics(report.metrics, 40)[1:]

    assert line.split()[:6] == ["loss", "3", "(2", "not", "finite)", "inf"]
    assert json.loads(render_str(report, "json"))["metrics"][0]["not_finite"] == 2


@pytest.mark.parametrize(("value", "word"), [(nan, "nan"), (inf, "inf"), (-inf, "-inf"), (0.25, "0.25")])
def test_a_last_value_that_is_not_finite_is_shown(value: float, word: str) -> None:
    """A loss that ended as nan is the first thing to know about it."""
    made = recording(metrics=(MetricRow(1.0, {"loss": 0.5}), MetricRow(2.0, {"loss": value})))
    report = build(made)
    plain = json.loads(render_str(report, "json"))["metrics"][0]

    (line,) = format_metrics(report.metrics, None)[1:]
    assert word in line.split()
    assert f"| {word} |" in render_str(report, "markdown")
    assert f">{word}</td>" in render_str(report, "html")
    assert (plain["last"], plain["last_not_finite"]) == ((0.25, "") if value == 0.25 else (None, word))
