"""Regions, metrics and processes in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpu_tracker.core.calls import MOST_SAMPLED
from gpu_tracker.core.model import Call, MetricRow, ProcessTotals
from gpu_tracker.recording.reader import load
from recorded import Made, part, run, write


def test_the_last_line_about_a_region_or_a_process_counts(tmp_path: Path) -> None:
    """Metrics stay in the order of writing."""
    first, last = part(1, 1.0), part(1, 1.0, 2.0)
    young = ProcessTotals(7, 1, "python", 0.0, 1.0, 0.5, 5)
    old = young._replace(last_seconds=9.0)
    rows = (MetricRow(1.0, {"loss": 0.5}, 1.0, 7), MetricRow(2.0, {"other": 0.25}, None, 7))
    kept = load(
        str(
            write(
                tmp_path / "x.jsonl",
                run(regions=(first, last, part(2, 1.0)), metrics=rows, processes=(young, old)),
            )
        )
    )

    assert tuple(kept.regions) == (last, part(2, 1.0))
    assert tuple(kept.metrics) == rows
    assert tuple(kept.processes) == (old,)


@pytest.mark.parametrize("damage", ["torn", "garbled"])
def test_a_damaged_line_of_a_region_is_said_although_a_later_one_counts(tmp_path: Path, damage: str) -> None:
    """The line that was joined to it is lost with it."""
    first, last = part(1, 1.0), part(1, 1.0, 2.0)
    rows = (MetricRow(1.0, {"loss": 0.5}, 1.0, 7),)
    path = write(tmp_path / "x.jsonl", run(regions=(first, first, last), metrics=rows))
    lines = path.read_bytes().splitlines(keepends=True)
    number = next(number for number, line in enumerate(lines) if line.startswith(b'{"region"'))
    (metrics,) = [line for line in lines if line.startswith(b'{"metrics"')]
    lines.remove(metrics)
    whole = lines[number + 1]
    lines[number + 1] = whole[:70] + metrics if damage == "torn" else whole[:60] + b"@@" + whole[62:]
    path.write_bytes(b"".join(lines))
    kept = load(str(path))

    assert tuple(kept.regions) == (last,)
    assert list(kept.problems) == [f"Line {number + 2} of the recording is damaged and was left out."]


def test_calls_of_all_lines_are_kept_within_bounds(tmp_path: Path) -> None:
    """The same as the sampler keeps; of the open ones those in the last line of their region."""
    path = tmp_path / "x.jsonl"
    with Made(path) as writer:
        for begin in range(0, 3000, 100):
            calls = [
                Call(("a",), 1, 1 + at, at, at + 0.5, priority=3000 - at) for at in range(begin, begin + 100)
            ]
            writer.write_calls(("a",), [*calls, Call(("a",), 1, 0, begin + 100.5, None)])
        writer.write_calls(("b",), [Call(("b",), 1, 0, 5.0, None)])
        writer.write_calls(("b",), [])
    recording = load(str(path))
    sampled = [call.number for call in recording.calls if 0 < call.priority <= MOST_SAMPLED]

    assert sampled == list(range(3001 - MOST_SAMPLED, 3001))
    assert recording.calls[-1] == Call(("a",), 1, 0, 3000.5, None)
    assert not recording.problems

    path.write_text(path.read_text().replace('{"calls":{', '{ "calls": {'))
    assert list(load(str(path)).calls) == list(recording.calls)


def test_a_damaged_line_of_calls_is_noted(tmp_path: Path) -> None:
    """Columns of different lengths, wrong types, no path; the others are read."""
    path = tmp_path / "x.jsonl"
    call = Call(("a",), 1, 1, 0.0, 1.0)
    with Made(path) as writer:
        writer.write_calls(("a",), [call])
    header, good = path.read_text().splitlines()
    bad = [
        good.replace('"pid":[1]', '"pid":[1,2]'),
        good.replace('"pid":[1]', '"pid":["x"]'),
        good.replace('"path":["a"]', '"path":[]'),
        '{"calls":3}',
    ]
    path.write_text("\n".join([header, *bad, good]) + "\n")
    recording = load(str(path))

    assert tuple(recording.calls) == (call,)
    assert len(recording.problems) == 4


def test_regions_with_strange_names_stay_separate(tmp_path: Path) -> None:
    """Even if a name looks like part of the line around it."""
    paths = (('x],"calls":1',), ("x],",), ("x],", "y"), ("x]", ","), ("\\",), ("é\n",))
    regions = tuple(part(1, 1.0)._replace(path=path) for path in paths)
    file = write(tmp_path / "x.jsonl", run(regions=regions + regions))

    assert tuple(load(str(file)).regions) == regions


def test_rewritten_lines_are_read_too(tmp_path: Path) -> None:
    """With spaces, and in another order."""
    file = write(tmp_path / "x.jsonl", run(regions=(part(1, 1.0), part(1, 1.0, 2.0))))
    anew = [json.dumps(json.loads(line), sort_keys=True) for line in file.read_text().splitlines()]
    file.write_text("\n".join(anew) + "\n")

    assert tuple(load(str(file)).regions) == (part(1, 1.0, 2.0),)
