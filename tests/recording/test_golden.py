"""Recordings of every released version stay readable, with the same summary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpu_tracker.core.model import Stalls, TreeCounters
from gpu_tracker.recording.reader import load
from gpu_tracker.reports.build import build
from gpu_tracker.reports.contract import render
from recorded import (
    CALLS,
    FRAMEWORKS,
    GAPS,
    METRICS,
    PEAK_MOMENTS,
    PROCESSES,
    REGIONS,
    make_full,
    make_plain,
)

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.name.removesuffix(".jsonl") for path in GOLDEN.glob("*.jsonl"))


def test_there_are_golden_recordings() -> None:
    """At least of version 1."""
    assert NAMES[:2] == ["v1-full", "v1-plain"]


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_recording_gives_the_same_summary(name: str) -> None:
    """New figures may be added, none may change."""
    kept = json.loads((GOLDEN / f"{name}.json").read_text())
    shown = json.loads(render(build(load(str(GOLDEN / f"{name}.jsonl"))), "json"))

    assert {key: shown[key] for key in kept if key != "summary"} == {
        key: value for key, value in kept.items() if key != "summary"
    }
    assert {key: shown["summary"][key] for key in kept["summary"]} == kept["summary"]


def test_the_full_golden_recording_has_everything() -> None:
    """Samples, regions, calls, metrics, processes and frameworks."""
    recording = load(str(GOLDEN / "v1-full.jsonl"))

    assert [sample.at_seconds for sample in recording.samples] == [0.5, 1.0, 2.0]
    assert tuple(recording.regions) == REGIONS
    assert tuple(recording.calls) == CALLS
    assert recording.gaps == GAPS
    assert tuple(recording.metrics) == METRICS
    assert tuple(recording.processes) == PROCESSES
    assert tuple(recording.frameworks) == FRAMEWORKS
    assert tuple(recording.peak_moments) == PEAK_MOMENTS
    assert recording.samples[2].counters == TreeCounters(4096, 8192, 3, 1000, 0.25)
    assert recording.samples[2].stalls == Stalls(cpu_seconds=1.5, io_seconds=0.5)
    assert recording.totals.counters == recording.samples[2].counters
    assert recording.totals.stalls.throttled_seconds == 0.125
    assert not recording.problems


@pytest.mark.parametrize(("name", "make"), [("v1-plain", make_plain), ("v1-full", make_full)])
def test_the_writer_still_writes_version_1(tmp_path: Path, name: str, make: object) -> None:
    """A change of a line needs a new version, with golden recordings of its own."""
    made: Path = make(tmp_path / "x.jsonl")  # type: ignore[operator]

    assert made.read_text() == (GOLDEN / f"{name}.jsonl").read_text()
