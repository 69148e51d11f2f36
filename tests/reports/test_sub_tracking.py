"""Code blocks as text and as JSON."""

from __future__ import annotations

import json

from gpu_tracker.analysis.sub_tracking import CodeBlockResults, SubTrackingResults, analyze, compare
from gpu_tracker.core.sub_tracking import BEGIN, END, BlockEvent, TrackingTable
from gpu_tracker.reports.contract import render

TABLE = TrackingTable(
    {"ram_unit": "megabytes", "gpu_ram_system_capacity": None},
    ("main_ram", "main_gpu_ram"),
    ((10.0, None), (20.5, None)),
    (1.0, 2.0),
)
RESULTS = analyze(TABLE, [BlockEvent(7, "lo\x1bad", BEGIN, 0.5), BlockEvent(7, "lo\x1bad", END, 2.0)])


def test_results_are_tables() -> None:
    """Unknown figures are a dash, and no name controls a terminal."""
    assert render(RESULTS, "text") == (
        "ram_unit: megabytes\n"
        "gpu_ram_system_capacity: -\n"
        "\n"
        "all samples\n"
        "                min   max   mean   std\n"
        "  main_ram       10  20.5  15.25  5.25\n"
        "  main_gpu_ram    -     -      -     -\n"
        "\n"
        "lo?ad: 1 call, 1 of them with samples\n"
        "  time: min 1.5 s, max 1.5 s, mean 1.5 s, std 0 s, total 1.5 s\n"
        "  2 samples\n"
        "                min   max   mean   std\n"
        "  main_ram       10  20.5  15.25  5.25\n"
        "  main_gpu_ram    -     -      -     -\n"
    )


def test_json_has_the_names_of_the_existing_tool() -> None:
    """And every digit."""
    plain = json.loads(render(RESULTS, "json"))

    assert list(plain) == ["overall", "static_data", "code_block_results"]
    assert list(plain["code_block_results"][0]) == [
        "name",
        "num_timepoints",
        "num_calls",
        "num_non_empty_calls",
        "compute_time",
        "resource_usage",
    ]
    assert plain["overall"]["main_ram"] == {"min": 10.0, "max": 20.5, "mean": 15.25, "std": 5.25}
    assert plain["overall"]["main_gpu_ram"]["mean"] is None


def test_a_comparison_is_a_line_per_figure() -> None:
    """All sessions in it; as JSON, by the existing tool's names."""
    other = SubTrackingResults(
        {"main_ram": {"max": 9.0}},
        {},
        (
            CodeBlockResults("lo\x1bad", 1, 1, 1, {"max": 0.5}, {"main_ram": {"max": 9.0}}),
            CodeBlockResults("extra", 0, 0, 0, {}, {}),
        ),
    )
    comparison = compare({"before": RESULTS, "after": other}, "max")

    assert render(comparison, "text") == (
        "max of all samples\n"
        "  main_ram       after 9  before 20.5\n"
        "  main_gpu_ram  before -      after -\n"
        "\n"
        "max time of code blocks in seconds\n"
        "  lo?ad  after 0.5  before 1.5\n"
        "\n"
        "max main_ram of code blocks\n"
        "  lo?ad  after 9  before 20.5\n"
        "\n"
        "max main_gpu_ram of code blocks\n"
        "  lo?ad  before -  after -\n"
        "note: Only in after: extra.\n"
    )
    assert list(json.loads(render(comparison, "json"))) == [
        "overall_resource_usage",
        "code_block_resource_usage",
        "code_block_compute_time",
    ]


def test_sessions_without_blocks_have_no_rows_for_them() -> None:
    """Only all samples are compared."""
    comparison = compare({"a": SubTrackingResults({"main_ram": {"mean": 1.0}}, {}, ())}, "mean")

    assert render(comparison, "text") == "mean of all samples\n  main_ram  a 1\n"
