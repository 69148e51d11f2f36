"""A recording up to a moment is what its file was then."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from builders import header
from gpu_tracker.core.model import MetricRow
from gpu_tracker.recording.follow import follow_path
from gpu_tracker.recording.growing import GrowingRecording
from gpu_tracker.recording.past import Past
from recorded import Made, interval, run, write

MOMENTS = [float(at) for at in range(1, 101)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A hundred seconds, each with a metric, and an end."""
    path = tmp_path / "run.jsonl"
    with Made(path, header()) as writer:
        for at in MOMENTS:
            writer.write_metrics([MetricRow(at - 0.5, {"loss": at})])
            writer.write_sample(interval(at, round(at)))
        writer.write_end(run().end)  # type: ignore[arg-type]
    return path


def look(past: Past, growing: GrowingRecording, until_seconds: float) -> tuple[float, int, bool]:
    """The last moment, how many metrics were logged, and whether it has ended."""
    past.until_seconds = until_seconds
    growing.look_at_all()
    assert growing.last_sample is not None
    return growing.last_sample.at_seconds, len(growing.data.metrics), growing.end is not None


def test_back_and_forth(path: Path) -> None:
    """At any moment it is as if it had just been written so far."""
    past = Past(follow_path(str(path)))
    growing = GrowingRecording(past.source)

    assert look(past, growing, inf) == (100.0, 100, True)
    assert past.last_seconds == 100.0
    assert look(past, growing, 50.5) == (50.0, 50, False)
    assert not growing.is_over
    assert look(past, growing, 51.0) == (51.0, 51, False)
    assert look(past, growing, 0.0) == (1.0, 1, False)
    assert look(past, growing, 99.0) == (99.0, 99, False)
    assert look(past, growing, 100.0) == (100.0, 100, True)


def test_a_survey_tells_how_far_the_run_has_got(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without anything being read twice, in however small parts."""
    monkeypatch.setattr("gpu_tracker.recording.follow._MOST_BYTES_AT_ONCE", 3000)
    past = Past(follow_path(str(path)))
    assert past.last_seconds == 0.0
    past.survey()

    assert past.last_seconds == 100.0
    assert look(past, GrowingRecording(past.source), 30.0) == (30.0, 30, False)


def test_a_running_job_goes_on(path: Path) -> None:
    """While one looks at an earlier moment; a line that is half written does not count yet."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:101]) + lines[101][:20])
    past = Past(follow_path(str(path)))
    growing = GrowingRecording(past.source)

    assert look(past, growing, 20.0) == (20.0, 20, False)
    assert past.last_seconds == 50.0
    path.write_bytes(b"".join(lines))
    assert look(past, growing, 20.0) == (20.0, 20, False)
    assert past.last_seconds == 100.0


def test_another_file_under_the_same_name(path: Path, tmp_path: Path) -> None:
    """What was known of the first one is forgotten."""
    past = Past(follow_path(str(path)))
    growing = GrowingRecording(past.source)
    look(past, growing, 80.0)
    write(tmp_path / "other.jsonl", run(samples=(interval(1.0, 5), interval(2.0, 5)))).rename(path)
    past.until_seconds = inf
    growing.look_at_all()

    assert growing.last_sample is not None
    assert (past.last_seconds, growing.last_sample.at_seconds) == (2.0, 2.0)


@pytest.mark.parametrize("moment", [b"1.2.3", b"3.0"])
def test_moments_never_go_back(path: Path, moment: bytes) -> None:
    """A clock that was set back does not hide what follows, nor does a damaged line."""
    with path.open("ab") as file:
        file.write(b'{"sample":{"at":%s,"readings":1}}\n' % moment)
    past = Past(follow_path(str(path)))
    past.survey()

    assert past.last_seconds == 100.0
