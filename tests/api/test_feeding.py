"""Sinks of a tracker: fed from their own threads, and harmless."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import gpu_tracker as gput
from gpu_tracker.api import feeding
from gpu_tracker.core import notices
from patience import wait_until


def test_a_sink_gets_points_and_then_the_whole_run(tmp_path: Path) -> None:
    """With the steps of the job, in another thread, until the tracker stops."""
    points: list[gput.sinks.Point] = []
    ends: list[gput.sinks.Point] = []
    threads = set()

    def send(point: gput.sinks.Point) -> None:
        points.append(point)
        threads.add(threading.current_thread())

    sink = gput.sinks.Sink("mine", send, ends.append)
    with gput.Tracker(sleep_time=0.02, every=0.02, gpu="none", record=tmp_path, sinks=[sink]) as tracker:
        wait_until(lambda: points, "a point came")
        gput.log(step=700, loss=0.5)
        wait_until(lambda: points[-1].step == 700, "the step came")

    assert threads.isdisjoint({threading.current_thread()})
    assert [point.at_seconds for point in points] == sorted({point.at_seconds for point in points})
    assert {point.step for point in points} <= {*range(500), 700}
    assert all(point.values["gpu_tracker/ram_bytes"] > 0 for point in points)
    assert tracker.report is not None
    (end,) = ends
    assert end.step == 700
    assert end.values["gpu_tracker/run/time"] == tracker.report.summary.seconds
    assert not [note for note in tracker.notes if "mine" in note]


def test_a_sink_that_raises_is_told_once_and_tried_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server may be back a moment later. Nothing reaches the job; the note has the first reason, without control characters."""
    monkeypatch.setattr(notices, "_said", set())
    calls: list[gput.sinks.Point] = []
    others: list[gput.sinks.Point] = []

    def fail(point: gput.sinks.Point) -> None:
        calls.append(point)
        raise ConnectionError(f"no server\x1b[2J {len(calls)}")

    bad = gput.sinks.Sink("mine", fail, fail)
    good = gput.sinks.Sink("other", others.append, others.append)
    with gput.Tracker(sleep_time=0.02, every=0.02, gpu="none", sinks=[bad, good]) as tracker:
        wait_until(lambda: len(calls) >= 3 and len(others) >= 3, "both were called three times")

    n_calls = len(calls)
    note = f"mine did not get {n_calls} of {n_calls} points: ConnectionError: no server?[2J 1"
    assert [one for one in tracker.notes if "mine" in one] == [note]
    assert tracker.report is not None
    assert note in tracker.report.notes
    assert caplog.text.count("did not get") == 1


@pytest.mark.parametrize("hangs_at_the_end", [True, False])
def test_a_sink_that_never_returns_does_not_keep_the_program(
    hangs_at_the_end: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is left behind in its thread, and a note says so."""
    monkeypatch.setattr(feeding, "_FAREWELL_SECONDS", 0.2)
    has_begun, may_end = threading.Event(), threading.Event()

    def hang(_: gput.sinks.Point) -> None:
        has_begun.set()
        may_end.wait()

    sink = gput.sinks.Sink("mine", print, hang) if hangs_at_the_end else gput.sinks.Sink("mine", hang, print)
    with gput.Tracker(sleep_time=0.02, every=0.02, gpu="none", sinks=[sink]) as tracker:
        assert hangs_at_the_end or has_begun.wait(30)
    notes = tracker.notes
    may_end.set()

    (note,) = [note for note in notes if "mine" in note]
    assert note.endswith("points: it does not return")


def test_a_recording_that_is_gone_ends_the_feed(tmp_path: Path) -> None:
    """The note says what is missing."""
    points: list[gput.sinks.Point] = []
    path = tmp_path / "run.jsonl"
    sink = gput.sinks.Sink("mine", points.append, points.append)
    with gput.Tracker(sleep_time=0.02, every=0.02, gpu="none", record=path, sinks=[sink]) as tracker:
        wait_until(lambda: points, "a point came")
        path.unlink()

    assert [note for note in tracker.notes if "mine did not get 1 of" in note and "Cannot read" in note]


def test_only_a_sink_is_a_sink() -> None:
    """A run of an experiment tracker itself is refused at once, with what to write."""
    with pytest.raises(
        gput.UsageError, match=r"dict is not a sink\. Use one such as gpu_tracker\.sinks\.wandb"
    ):
        gput.Tracker(sinks=[{}])  # type: ignore[list-item]


def test_one_sink_needs_no_list(tmp_path: Path) -> None:
    """It is a tuple itself, but not one of sinks."""
    points: list[gput.sinks.Point] = []
    sink = gput.sinks.Sink("mine", points.append, points.append)
    with gput.Tracker(sleep_time=0.02, gpu="none", record=tmp_path, sinks=sink):
        pass

    assert points


@pytest.mark.parametrize("sinks", ["wandb", 3])
def test_what_is_neither_a_sink_nor_several_is_refused(sinks: Any) -> None:
    """By its own name."""
    with pytest.raises(gput.UsageError, match=rf"^{type(sinks).__name__} is not a sink\."):
        gput.Tracker(sinks=sinks)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_sink_that_wants_to_exit_is_one_that_raises(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is in a thread, where nothing can exit; a note says so, and no traceback is printed."""
    monkeypatch.setattr(notices, "_said", set())

    def fail(_: gput.sinks.Point) -> None:
        raise error

    sink = gput.sinks.Sink("mine", fail, fail)
    with gput.Tracker(sleep_time=0.02, every=0.02, gpu="none", sinks=[sink]) as tracker:
        pass

    (note,) = [note for note in tracker.notes if "mine did not get" in note]
    assert note.endswith(f": {error.__name__}")
    assert "Traceback" not in capfd.readouterr().err
