"""What a user may change of the rules, and what a tracker finds with the file that it has written."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import pytest

import gpu_tracker as gput
from gpu_tracker.api.reporting import find_changes, read_changes
from gpu_tracker.core.config import RULES_VARIABLE
from gpu_tracker.core.errors import UsageError
from gpu_tracker.reports.build import build
from made_runs import Device, made_run
from recorded import write


def write_rules(path: Path, text: str) -> str:
    """A file of changes."""
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_changes_thresholds_and_switches_rules_off(tmp_path: Path) -> None:
    """Sections are rules."""
    path = write_rules(tmp_path / "rules.ini", "[gpu-low]\nnote_percent = 20\n[tail]\noff = true\n")

    changes = read_changes(path)

    assert changes is not None
    assert changes.thresholds["gpu-low"] == {"note_percent": 20.0}
    assert changes.off == {"tail"}


def test_the_environment_may_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one nothing is read; a named file counts more."""
    assert read_changes() is None
    monkeypatch.setenv(RULES_VARIABLE, write_rules(tmp_path / "a", "[tail]\noff = true\n"))
    named = write_rules(tmp_path / "b", "[gpu-low]\noff = true\n")

    assert (read_changes() or pytest.fail("nothing")).off == {"tail"}
    assert (read_changes(named) or pytest.fail("nothing")).off == {"gpu-low"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[gpu-lo]\n", "No rule is called 'gpu-lo'. Did you mean 'gpu-low'?"),
        (b"note_percent = 3\n", "Cannot understand the rules in"),
        (b"[tail]\n[tail]\n", "already exists"),
        (b"\xff\xfe", "Cannot understand the rules in"),
    ],
)
def test_a_wrong_file_is_refused_in_a_sentence(tmp_path: Path, content: bytes, problem: str) -> None:
    """That names it."""
    path = tmp_path / "rules.ini"
    path.write_bytes(content)

    with pytest.raises(UsageError) as caught:
        read_changes(str(path))

    assert problem in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """It may be missing."""
    with pytest.raises(UsageError, match=r"Cannot read the rules in .*: No such file or directory\."):
        read_changes(str(tmp_path / "none"))


def test_a_program_does_not_fail_because_of_the_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told, and the rules are as they are."""
    said: list[str] = []
    monkeypatch.setenv(RULES_VARIABLE, str(tmp_path / "none"))

    assert find_changes(said.append) is None
    assert said[0].startswith("Cannot read the rules")


def test_a_tracker_judges_by_the_samples_in_its_file(tmp_path: Path) -> None:
    """The same as somebody who loads it later."""
    with gput.Tracker(0.01, record=tmp_path / "x.jsonl", disable_logs=True) as tracker:
        while (tracker.report or pytest.fail("nothing")).summary.readings < 60:
            time.sleep(0.02)

    report, loaded = tracker.report, gput.load(tmp_path / "x.jsonl").report
    assert report is not None
    assert report is tracker.report
    kept, read = ([one._replace(evidence=()) for one in some.findings] for some in (report, loaded))
    assert kept == read
    # The file has nine digits of each number.
    assert [dict(one.evidence) for one in report.findings] == [
        pytest.approx(dict(one.evidence)) for one in loaded.findings
    ]
    assert report.unjudged == loaded.unjudged
    assert report.columns is not None
    assert "there are no samples of it" not in dict(report.unjudged).values()


def test_a_recording_without_samples_is_judged_by_its_totals() -> None:
    """What they tell is still judged."""
    run = made_run(Device(), ram=63_000_000_000)._replace(samples=())
    report = build(run)

    assert [finding.rule for finding in report.findings] == ["ram-tight", "cpu-percent"]
    assert dict(report.unjudged)["room-for-batch"] == "there are no samples of it"


def test_a_loaded_recording_says_once_that_the_rules_are_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is judged by the usual ones."""
    path = write(tmp_path / "x.jsonl", made_run(ram=63_000_000_000))
    monkeypatch.setenv(RULES_VARIABLE, str(tmp_path / "none"))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = gput.load(path).report

    assert report.findings[0].rule == "ram-tight"
    assert len(caught) <= 1
