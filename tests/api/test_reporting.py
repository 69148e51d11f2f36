"""Reports with their samples: of a session that has stopped, with a file or without."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

import gpu_tracker as gput
from gpu_tracker.api.reporting import report_on
from gpu_tracker.recording.reader import load, load_bytes
from recorded import make_full


def work(seconds: float = 1.3) -> None:
    """Use a core for a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(9999))


@pytest.mark.parametrize("record", [None, "x.jsonl"])
def test_a_tracker_that_has_stopped_knows_its_samples(tmp_path: Path, record: str | None) -> None:
    """Its metrics too; while it runs, a report must cost little and has none."""
    place = None if record is None else tmp_path / record
    with gput.Tracker(sleep_time=0.1, gpu="none", record=place, disable_logs=True) as tracker:
        gput.log(loss=0.5)
        work()
        running = tracker.report
    report = tracker.report

    assert running is not None
    assert running.columns is None
    assert report is not None
    assert report is tracker.report
    assert report.columns is not None
    assert len(report.columns.end_seconds) > 3
    assert [(one.name, list(one.values)) for one in report.logged] == [("loss", [0.5])]
    assert "░" in str(report) or "█" in str(report)


def test_a_short_run_is_not_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to see over time; a program that only imports a kernel is no notebook."""
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    with gput.Tracker(gpu="none", record=tmp_path / "x.jsonl", disable_logs=True) as tracker:
        pass
    report = tracker.report

    assert report is not None
    assert report.columns is None


def test_a_recording_that_has_gone_costs_only_the_samples(tmp_path: Path) -> None:
    """Removed after the end, or damaged."""
    for damage in (os.unlink, lambda path: Path(path).write_bytes(b"")):
        path = tmp_path / "x.jsonl"
        path.unlink(missing_ok=True)
        with gput.Tracker(sleep_time=0.1, gpu="none", record=path, disable_logs=True) as tracker:
            work()
        damage(str(path))
        report = tracker.report

        assert report is not None
        assert report.summary.seconds > 1
        assert report.columns is None or not len(report.columns.end_seconds)


def test_a_loaded_recording_that_has_gone_is_reported_without_samples(tmp_path: Path) -> None:
    """What was read before is still known."""
    path = make_full(tmp_path / "x.jsonl")
    recording = load(str(path))
    path.unlink()

    assert report_on(recording._replace(calls=(), metrics=())).columns is None


def test_bytes_are_read_like_a_file(tmp_path: Path) -> None:
    """A recording that never had a name."""
    path = make_full(tmp_path / "x.jsonl")
    from_bytes, from_file = load_bytes(path.read_bytes()), load(str(path))

    assert tuple(from_bytes.samples) == tuple(from_file.samples)
    assert tuple(from_bytes.calls) == tuple(from_file.calls)
    assert (from_bytes.header, from_bytes.end) == (from_file.header, from_file.end)


def test_a_report_is_never_saved_over_a_recording(tmp_path: Path) -> None:
    """Under whatever name."""
    path = make_full(tmp_path / "x.jsonl")
    before = path.read_bytes()
    (tmp_path / "link.json").symlink_to(path)
    report = gput.load(path).report
    for name in ("x.jsonl", "link.json"):
        with pytest.raises(gput.UsageError):
            report.save(tmp_path / name)
    report.save(tmp_path / "x.json")

    assert path.read_bytes() == before
    assert (tmp_path / "link.json").is_symlink()


def test_a_recording_can_be_plotted(tmp_path: Path) -> None:
    """As its report can."""
    pytest.importorskip("matplotlib")
    figure = gput.load(make_full(tmp_path / "x.jsonl")).plot(["cpu"])

    assert [axes.get_title("left") for axes in figure.axes] == ["CPU, cores in use"]
