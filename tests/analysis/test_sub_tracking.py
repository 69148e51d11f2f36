"""Code blocks from samples and times: calls, statistics, and several sessions side by side."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.analysis.sub_tracking import (
    CodeBlockResults,
    SubTrackingResults,
    analyze,
    compare,
    from_plain,
    pair_calls,
    summarize,
    to_plain,
)
from gpu_tracker.core.sub_tracking import BEGIN, END, BlockEvent, TrackingTable

TABLE = TrackingTable(
    {"ram_unit": "bytes"},
    ("main_ram", "main_gpu_ram"),
    ((10.0, None), (20.0, None), (30.0, 5.0), (40.0, None)),
    (1.0, 2.0, 3.0, 4.0),
)


def call(name: str, begin: float, end: float, pid: int = 7) -> list[BlockEvent]:
    """Both rows of a call."""
    return [BlockEvent(pid, name, BEGIN, begin), BlockEvent(pid, name, END, end)]


def block(name: str, seconds: float | None = 1.0, ram: float = 5.0) -> CodeBlockResults:
    """A code block with these means."""
    return CodeBlockResults(name, 1, 1, 1, {"mean": seconds}, {"main_ram": {"mean": ram}})


def results(*blocks: CodeBlockResults, ram: float | None = 5.0) -> SubTrackingResults:
    """The results of a session."""
    return SubTrackingResults({"main_ram": {"mean": ram}}, {}, blocks)


def test_samples_within_its_calls_are_a_blocks() -> None:
    """Both ends included; a sample that is in two calls counts once, one that is in none not at all."""
    events = [*call("a", 1.5, 3.0), *call("a", 2.0, 2.5, pid=8), *call("a", 3.25, 3.5), *call("b", 4.0, 4.0)]
    found = analyze(TABLE, events)
    a, b = found.code_block_results

    assert (a.name, a.num_timepoints, a.num_calls, a.num_non_empty_calls) == ("a", 2, 3, 2)
    assert a.resource_usage["main_ram"] == {"min": 20.0, "max": 30.0, "mean": 25.0, "std": 5.0}
    assert a.resource_usage["main_gpu_ram"] == {"min": 5.0, "max": 5.0, "mean": 5.0, "std": 0.0}
    assert a.compute_time == {
        "min": 0.25,
        "max": 1.5,
        "mean": pytest.approx(0.75),
        "std": pytest.approx(math.sqrt(0.875 / 3)),
        "total": 2.25,
    }
    assert (b.num_timepoints, b.num_calls, b.compute_time["total"]) == (1, 1, 0.0)
    assert found.overall["main_ram"] == {
        "min": 10.0,
        "max": 40.0,
        "mean": 25.0,
        "std": pytest.approx(math.sqrt(125)),
    }
    assert (found.static_data, found.unpaired) == ({"ram_unit": "bytes"}, 0)


def test_a_block_without_samples_has_no_figures() -> None:
    """They are not known, rather than 0 or nan."""
    (found,) = analyze(TABLE, call("a", 1.25, 1.5)).code_block_results

    assert (found.num_timepoints, found.num_non_empty_calls) == (0, 0)
    assert found.resource_usage["main_ram"] == dict.fromkeys(("min", "max", "mean", "std"))
    assert json.loads(json.dumps(to_plain(analyze(TABLE, call("a", 1.25, 1.5)))))


def test_recursion_and_threads_keep_their_time() -> None:
    """Calls inside calls, calls that overlap, and calls that follow at once."""
    inner_first = [BlockEvent(7, "a", BEGIN, 1.0), *call("a", 2.0, 3.0), BlockEvent(7, "a", END, 4.0)]
    overlapping = sorted([*call("b", 1.0, 3.0), *call("b", 2.0, 4.0)], key=lambda event: event.timestamp)
    following = [*call("c", 1.0, 2.0), *call("c", 2.0, 3.0)]
    calls, unpaired = pair_calls([*inner_first, *overlapping, *following])

    assert sorted(calls["a"]) == [(1.0, 4.0), (2.0, 3.0)]
    assert sum(end - begin for begin, end in calls["b"]) == 4.0
    assert calls["c"] == [(1.0, 2.0), (2.0, 3.0)]
    assert unpaired == 0


def test_rows_without_a_counterpart_are_counted() -> None:
    """A block that was never left, and an end from nowhere; processes are kept apart."""
    calls, unpaired = pair_calls(
        [*call("a", 1.0, 2.0), BlockEvent(7, "a", BEGIN, 3.0), BlockEvent(8, "a", END, 4.0)]
    )

    assert calls == {"a": [(1.0, 2.0)]}
    assert unpaired == 2


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_statistics_are_within_their_values(values: list[float]) -> None:
    """Whatever the values are, and however many are unknown."""
    found = summarize([None, *values])
    least, most, mean, spread = (found[name] or 0.0 for name in ("min", "max", "mean", "std"))

    assert (least, most) == (min(values), max(values))
    assert least - 1e-6 <= mean <= most + 1e-6
    assert 0 <= spread <= (most - least) + 1e-6


def test_results_survive_json() -> None:
    """Those of the existing tool, which writes nan for what is not known, too."""
    found = analyze(TABLE, [*call("a", 1.5, 3.0), *call("b", 5.0, 6.0)])
    theirs = to_plain(found)
    theirs["code_block_results"][1]["resource_usage"]["main_ram"]["mean"] = math.nan

    assert from_plain(json.loads(json.dumps(to_plain(found)))) == found
    assert from_plain(json.loads(json.dumps(theirs))) == found


def test_sessions_are_ordered_by_the_figure() -> None:
    """The smallest first, an unknown one last."""
    compared = compare(
        {
            "slow": results(block("a", 2.0, 6.0), ram=7.0),
            "new": results(block("a", None, 7.0), ram=None),
            "fast": results(block("a", 1.0, 5.0), ram=9.0),
        },
        "mean",
    )

    assert list(compared.overall_resource_usage["main_ram"].items()) == [
        ("slow", 7.0),
        ("fast", 9.0),
        ("new", None),
    ]
    assert list(compared.code_block_compute_time["a"]) == ["fast", "slow", "new"]
    assert list(compared.code_block_resource_usage["main_ram"]["a"]) == ["fast", "slow", "new"]
    assert compared.notes == ()


def test_blocks_named_by_a_line_are_matched_in_their_order() -> None:
    """Lines move when a program is edited; a note says that they were matched."""
    compared = compare(
        {
            "A": results(block("x.py:9", 1.0), block("x.py:10", 2.0), block("same", 3.0)),
            "B": results(block("x.py:7", 4.0), block("x.py:38", 5.0), block("same", 6.0)),
        },
        "mean",
    )

    assert compared.code_block_compute_time == {
        "same": {"A": 3.0, "B": 6.0},
        "x.py:9 -> x.py:7": {"A": 1.0, "B": 4.0},
        "x.py:10 -> x.py:38": {"A": 2.0, "B": 5.0},
    }
    assert compared.notes == (
        "x.py:9 -> x.py:7: compared although the lines differ.",
        "x.py:10 -> x.py:38: compared although the lines differ.",
    )


def test_blocks_that_only_some_have_are_named() -> None:
    """And compared with none: other files, other names, or another number of lines."""
    compared = compare(
        {"A": results(block("x.py:9"), block("load")), "B": results(block("x.py:7"), block("x.py:8"))}, "mean"
    )

    assert compared.code_block_compute_time == {}
    assert compared.notes == ("Only in A: load, x.py:9.", "Only in B: x.py:7, x.py:8.")


def test_a_figure_that_a_session_lacks_is_not_known() -> None:
    """It may be of another version."""
    bare: Any = SubTrackingResults({}, {}, ())
    compared = compare({"A": results(), "B": bare}, "std")

    assert compared.overall_resource_usage == {"main_ram": {"A": None, "B": None}}
