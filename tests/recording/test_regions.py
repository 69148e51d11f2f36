"""Regions, metrics and processes in a file."""

from __future__ import annotations

import json
from pathlib import Path

from gpu_tracker.core.model import MetricRow, ProcessTotals
from gpu_tracker.recording.reader import load
from recorded import part, run, write


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
