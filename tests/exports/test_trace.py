"""A trace as the format's description asks for it: microseconds, known phases, slices that nest, counters of numbers."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from builders import recording
from gpu_tracker.analysis.tables import TABLES, make_table
from gpu_tracker.core.model import Call, MetricRow, Parts, RecordingData, Spread
from gpu_tracker.exports import find_format
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import build
from recorded import interval
from rich import EPOCHS, SAMPLES, SECONDS, make_rich

Event = dict[str, Any]


def export(path: Path, made: RecordingData, *, has_samples: bool = True) -> dict[str, Any]:
    """The trace of a recording."""
    report = build(made, read_columns(made) if has_samples else None)
    file = path / "x.trace.json"
    find_format(str(file)).write(str(file), report, [make_table(made, name) for name in TABLES])
    trace: dict[str, Any] = json.loads(file.read_text())
    return trace


def phase(trace: dict[str, Any], kind: str) -> list[Event]:
    """The events of one phase."""
    return [event for event in trace["traceEvents"] if event["ph"] == kind]


def check_nesting(slices: list[Event]) -> None:
    """On one track, every slice lies inside another or apart from it."""
    place = lambda event: (event["pid"], event["tid"])  # noqa: E731 - twice the same key
    for _, track in groupby(sorted(slices, key=place), place):
        ends: list[float] = []
        for event in sorted(track, key=lambda event: (event["ts"], -event["dur"])):
            while ends and ends[-1] <= event["ts"]:
                ends.pop()
            end = event["ts"] + event["dur"]
            assert not ends or end <= ends[-1] + 0.001
            ends.append(end)


def test_a_trace_follows_the_format(tmp_path: Path) -> None:
    """As its description has it."""
    trace = export(tmp_path, make_rich())

    assert {event["ph"] for event in trace["traceEvents"]} == {"M", "X", "C"}
    assert all(isinstance(event["pid"], int) for event in trace["traceEvents"])
    for event in phase(trace, "X"):
        assert 0 <= event["ts"] <= event["ts"] + event["dur"] <= SECONDS * 1e6
    for event in phase(trace, "C"):
        assert event["args"]
        assert all(isinstance(value, (int, float)) for value in event["args"].values())
    check_nesting(phase(trace, "X"))


def test_times_are_relative_to_the_start_of_the_run(tmp_path: Path) -> None:
    """Which is given in nanoseconds since 1970, as torch.profiler does."""
    trace = export(tmp_path, make_rich())
    (load,) = (event for event in phase(trace, "X") if event["name"] == "load data")

    assert trace["baseTimeNanoseconds"] == 1_769_860_800 * 10**9
    assert (load["ts"], load["dur"]) == (10e6, 380e6)


def test_everything_has_its_track(tmp_path: Path) -> None:
    """Processes, regions, figures and metrics."""
    trace = export(tmp_path, make_rich())
    names = {(event["name"], event["pid"]): event["args"]["name"] for event in phase(trace, "M")}
    slices = [event["name"] for event in phase(trace, "X")]
    counters = [event["name"] for event in phase(trace, "C")]

    assert names["process_name", 100] == "python train.py --epochs 11"
    assert names["process_name", 203] == "pt_data_worker"
    assert slices.count("epoch") == slices.count("eval") == EPOCHS
    assert counters.count("CPU (cores)") == counters.count("GPU 1 memory (bytes)") == SAMPLES + 1
    assert counters.count("loss") == 200


def test_what_was_held_for_a_moment_is_in_the_trace(tmp_path: Path) -> None:
    """The highest value of each interval beside its mean."""
    ram = Parts(Spread(1, 2, 4), Spread(5, 5, 5), Spread(6, 7, 9))
    trace = export(tmp_path, recording(samples=[interval(10.0, 5)._replace(ram_bytes=ram)]))
    held = {event["name"]: event["args"] for event in phase(trace, "C") if "RAM" in event["name"]}

    assert held == {
        "RAM, highest (bytes)": {"job": 9, "main process": 4},
        "RAM, mean (bytes)": {"job": 7, "main process": 2},
    }


def test_calls_that_overlap_get_tracks_of_their_own(tmp_path: Path) -> None:
    """A viewer would drop them otherwise; an open call goes on to the end."""
    calls = (
        Call(("a",), 100, 1, 1.0, 4.0, 7),
        Call(("b",), 100, 2, 2.0, 5.0, 7),
        Call(("c",), 100, 3, 2.5, 3.0, 7),
        Call(("d",), 100, 0, 9.0, None),
    )
    slices = phase(export(tmp_path, recording(calls=calls, samples=[interval(10.0, 5)])), "X")
    tracks = {event["name"]: event["tid"] for event in slices}

    check_nesting(slices)
    assert tracks["a"] == tracks["c"] != tracks["b"]
    assert slices[-1]["dur"] == 1e6
    assert slices[-1]["tid"] == 100


@pytest.mark.parametrize("has_samples", [True, False])
def test_what_is_not_known_is_left_out(tmp_path: Path, has_samples: bool) -> None:
    """No samples, no name, a metric that is no number, a time that is none."""
    bare = recording(metrics=(MetricRow(1.0, {"loss": float("nan"), "lr": 0.1}),))
    bare = bare._replace(header=bare.header._replace(command=(), started_at="?"))
    trace = export(tmp_path, bare, has_samples=has_samples)

    assert trace["baseTimeNanoseconds"] == 0
    assert [event["name"] for event in phase(trace, "C")] == ["lr"] * has_samples
    assert phase(trace, "M")[0]["args"]["name"] == "process 100"


def test_a_format_may_be_named() -> None:
    """Whatever the file is called."""
    assert find_format("x.json", "trace").NAME == "trace"
    assert find_format("x.trace.json").NAME == "trace"
    assert find_format("x.json").NAME == "json"
