"""Whether the run of a recording goes on."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

import gpu_tracker as gput
from gpu_tracker.core.model import RecordingData
from gpu_tracker.core.moments import stamp_moment
from gpu_tracker.recording.glance import glance
from gpu_tracker.recording.liveness import is_written, note_liveness
from gpu_tracker.recording.lock import hold, is_held
from gpu_tracker.recording.reader import load
from recorded import interval, run

HERE = os.uname().nodename


def cut(host: str, **changes: Any) -> RecordingData:
    """A recording without an end."""
    return run(end=None, header={"host": host}, **changes)


def goes_on(
    recording: RecordingData, path: Path, age_seconds: float, sample_age_seconds: float | None = None
) -> bool:
    """Whether it does, if its file was last written to so long ago, and its last sample is as old, or so old."""
    lag = age_seconds if sample_age_seconds is None else sample_age_seconds
    started_at = stamp_moment(time.time() - lag - recording.totals.at_seconds)
    recording = recording._replace(header=recording.header._replace(started_at=started_at))
    path.touch()
    os.utime(path, (0, time.time() - age_seconds))
    return note_liveness(recording, str(path)).is_running


def test_a_file_is_written_while_somebody_holds_it(tmp_path: Path) -> None:
    """One that is not there is not written."""
    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        hold(file.fileno())
        assert is_written(str(path))
        with pytest.raises(gput.RecordingError, match="has just begun, and nothing is in it yet"):
            gput.load(path)

    assert not is_written(str(path))
    with pytest.raises(gput.RecordingError, match="gpu-tracker was killed at the start"):
        gput.load(path)
    assert not is_written(str(tmp_path / "none.jsonl"))


def test_a_run_goes_on_while_its_writer_is_there(tmp_path: Path) -> None:
    """However long it has not written; and not a moment longer."""
    path = tmp_path / "run.jsonl"
    with path.open("ab") as file:
        hold(file.fileno())

        assert [goes_on(cut(host), path, 1e6) for host in (HERE, "elsewhere")] == [True, True]
    assert not goes_on(cut(HERE), path, 0.0)


def test_a_reader_does_not_keep_the_writer_from_its_lock(tmp_path: Path) -> None:
    """It holds the lock while it looks, and no longer."""
    path = tmp_path / "run.jsonl"
    path.touch()
    with path.open("rb") as reader, path.open("ab") as writer:
        fcntl.flock(reader, fcntl.LOCK_SH)
        Timer(0.005, fcntl.flock, (reader, fcntl.LOCK_UN)).start()
        hold(writer.fileno())

        assert is_held(reader.fileno())


def test_a_writer_does_not_wait_long_for_its_lock(tmp_path: Path) -> None:
    """Somebody may hold it for good; then there is none."""
    path = tmp_path / "run.jsonl"
    path.touch()
    with path.open("rb") as reader, path.open("ab") as writer, path.open("rb") as other:
        fcntl.flock(reader, fcntl.LOCK_SH)
        hold(writer.fileno())

        assert is_held(other.fileno()) is False


def test_a_run_elsewhere_goes_on_while_its_file_grows(tmp_path: Path) -> None:
    """An interval of a long run may last minutes; the last one shows it."""
    month = cut("elsewhere", samples=[interval(at, 100) for at in (1.0, 2.5e6, 2.5e6 + 300)])
    path = tmp_path / "run.jsonl"

    assert [goes_on(cut("elsewhere"), path, ago) for ago in (1.0, 60.0)] == [True, False]
    assert [goes_on(month, path, ago) for ago in (500.0, 700.0)] == [True, False]


def test_a_copy_of_an_old_recording_does_not_go_on(tmp_path: Path) -> None:
    """Its file is young, but its last sample is not; clocks of two machines may differ by a minute."""
    path = tmp_path / "copy.jsonl"

    assert [goes_on(cut("elsewhere"), path, 0.0, lag) for lag in (30.0, -30.0, 100.0, 1e7)] == [
        True,
        True,
        False,
        False,
    ]


def test_without_locks_the_age_of_the_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems have none."""

    def refuse(_fd: int, _operation: int) -> None:
        raise OSError

    monkeypatch.setattr(fcntl, "flock", refuse)
    path = tmp_path / "run.jsonl"
    with path.open("ab") as file:
        hold(file.fileno())

    assert [goes_on(cut(HERE), path, ago) for ago in (1.0, 60.0)] == [True, False]


def test_of_a_removed_file_nothing_is_known() -> None:
    """It does not go on."""
    assert not note_liveness(cut(HERE), "/none").is_running


def test_a_report_on_a_running_job_says_so(tmp_path: Path) -> None:
    """Every command reads it so; afterwards it has ended."""
    path = tmp_path / "run.jsonl"
    with gput.Tracker(sleep_time=0.05, gpu="none", record=path, disable_logs=True) as tracker:
        next(tracker.samples())
        report = gput.load(path).report

        assert load(path).is_running
        assert glance(str(path)).is_running
        assert report.ending == "running"
        assert not [note for note in report.notes if "cut off" in note]
    assert not load(path).is_running
