"""Recordings of every version that ever was released are read for ever, with the same summary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpu_tracker.recording.reader import load
from gpu_tracker.reports.build import build
from gpu_tracker.reports.contract import render
from recorded import FRAMEWORKS, METRICS, PROCESSES, REGIONS, make_full, make_plain

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.name.removesuffix(".jsonl") for path in GOLDEN.glob("*.jsonl"))


def test_there_are_golden_recordings() -> None:
    """Those of version 1, at least."""
    assert NAMES[:2] == ["v1-full", "v1-plain"]


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_recording_gives_the_summary_that_it_always_gave(name: str) -> None:
    """Figure by figure. New figures may be added to the summary, none may change."""
    kept = json.loads((GOLDEN / f"{name}.json").read_text())
    shown = json.loads(render(build(load(str(GOLDEN / f"{name}.jsonl"))), "json"))

    assert {key: shown[key] for key in kept if key != "summary"} == {
        key: value for key, value in kept.items() if key != "summary"
    }
    assert {key: shown["summary"][key] for key in kept["summary"]} == kept["summary"]


def test_the_golden_recording_of_everything_is_whole() -> None:
    """Samples, regions, metrics, processes and frameworks."""
    recording = load(str(GOLDEN / "v1-full.jsonl"))

    assert [sample.at_seconds for sample in recording.samples] == [0.5, 1.0, 2.0]
    assert tuple(recording.regions) == REGIONS
    assert tuple(recording.metrics) == METRICS
    assert tuple(recording.processes) == PROCESSES
    assert tuple(recording.frameworks) == FRAMEWORKS
    assert not recording.problems


@pytest.mark.parametrize(("name", "make"), [("v1-plain", make_plain), ("v1-full", make_full)])
def test_the_writer_still_writes_version_1(tmp_path: Path, name: str, make: object) -> None:
    """Whoever changes a line raises the version, and adds golden recordings of the new one."""
    made: Path = make(tmp_path / "x.jsonl")  # type: ignore[operator]

    assert made.read_text() == (GOLDEN / f"{name}.jsonl").read_text()
