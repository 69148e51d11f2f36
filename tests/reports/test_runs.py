"""Past runs as text and JSON."""

from __future__ import annotations

import json

import pytest

from builders import MB, alone, render_str, totals
from gpu_tracker.analysis.runs import ListedRun, Runs, list_run
from gpu_tracker.core.model import RamPeak
from recorded import run


def test_a_run_is_a_line() -> None:
    """Unknown values are dashes; control characters are replaced."""
    listed = list_run("runs/x.jsonl", run(header={"command": ("evil\x1b",)}))
    undated = list_run("y.jsonl", run(exit_code=-9, header={"command": (), "started_at": "?"}))
    heading, first, second = render_str(Runs((listed, undated))).splitlines()

    assert heading.split()[:3] == ["when", "time", "end"]
    assert "10 s  exit code 0" in first
    assert first.endswith("500 MB             -           1  evil?    runs/x.jsonl")
    assert "killed by SIGKILL (9)" in second
    assert second.startswith("? ")


def test_an_estimate_is_marked() -> None:
    """In the table; in JSON its name is listed."""
    peak = RamPeak(500 * MB, 500 * MB, 0, "estimate")
    guessed = totals(at_seconds=10.0, peaks=totals().peaks._replace(ram=alone(peak)))
    runs = Runs((list_run("x.jsonl", run(totals=guessed)),))

    assert " ~ 500 MB " in render_str(runs)
    assert json.loads(render_str(runs, "json"))[0]["estimates"] == ["peak_ram"]


def test_commands_are_shortened_on_a_narrow_terminal() -> None:
    """Down to twelve cells."""
    listed = list_run("x.jsonl", run(header={"command": ("python", "train.py", "--data", "some/where")}))
    wide = render_str(Runs((listed,)))
    width = max(map(len, wide.splitlines()))

    assert render_str(Runs((listed,)), columns=width) == wide
    assert max(map(len, render_str(Runs((listed,)), columns=width - 8).splitlines())) == width - 8
    assert "  python trai…  x.jsonl\n" in render_str(Runs((listed,)), columns=58)


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 100])
def test_a_narrow_terminal_shows_fewer_columns(columns: int) -> None:
    """Figures go first, then when it was; the command and the file stay."""
    command = ("python", "train.py", "--data", "some/where")
    listed = list_run("some/where/far/away/x.jsonl", run(header={"command": command}))
    damaged = ListedRun("z.jsonl", "z.jsonl is not a gpu-tracker recording.", ending="damaged")
    lines = render_str(Runs((listed, damaged)), columns=columns).splitlines()

    assert max(map(len, lines)) <= columns
    assert lines[0].split()[-2:] == ["command", "file"]
    assert lines[1].endswith("x.jsonl")


def test_long_texts_are_shortened() -> None:
    """Whatever the file contains."""
    words = ("x" * 500,)
    listed = list_run("x.jsonl", run(header={"command": words, "started_at": words[0]}))

    assert (
        max(map(len, render_str(Runs((listed._replace(ending=words[0], exit_code=None),))).splitlines()))
        < 200
    )


def test_damaged_files_come_below() -> None:
    """Even if there are no others."""
    damaged = ListedRun("z.jsonl", "z.jsonl is not a recording.", ending="damaged")

    assert render_str(Runs((damaged,))) == "damaged: z.jsonl is not a recording.\n"
    assert render_str(Runs(())) == "No recordings.\n"
    assert json.loads(render_str(Runs((damaged,)), "json"))[0]["ending"] == "damaged"
