"""Past runs as people and programs read them."""

from __future__ import annotations

import json

from gpu_tracker.analysis.listing import ListedRun, list_run
from gpu_tracker.reports.listing import render_json, render_text
from recorded import run


def test_a_run_is_a_line() -> None:
    """What is not known is a dash; control characters are not passed on."""
    listed = list_run("runs/x.jsonl", run(header={"command": ("evil\x1b",)}), 0.0)
    undated = list_run("y.jsonl", run(exit_code=-9, header={"command": (), "started_at": "?"}), 0.0)
    heading, first, second = render_text([listed, undated]).splitlines()

    assert heading.split()[:3] == ["when", "time", "end"]
    assert "10 s  exit code 0" in first
    assert first.endswith("500 MB        -      1  evil?    runs/x.jsonl")
    assert "killed by signal 9" in second
    assert second.startswith("? ")


def test_damaged_files_come_below() -> None:
    """Also if there are no others."""
    damaged = ListedRun("z.jsonl", "z.jsonl is not a recording.", ending="damaged")

    assert render_text([damaged]) == "damaged: z.jsonl is not a recording.\n"
    assert render_text([]) == "No recordings.\n"
    assert json.loads(render_json([damaged]))[0]["ending"] == "damaged"
