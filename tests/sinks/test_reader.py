"""A recording as it grows, in the figures that sinks get."""

from __future__ import annotations

import time
from pathlib import Path

from builders import found, gpu, header
from gpu_tracker.analysis.published import Published
from gpu_tracker.core.model import MetricRow
from gpu_tracker.core.moments import stamp_moment
from gpu_tracker.recording.follow import follow_path
from gpu_tracker.sinks.reader import PublishedReader
from recorded import Made, gpu_sample, interval


def test_each_interval_has_the_step_that_was_logged_by_then(tmp_path: Path) -> None:
    """Also if rows come before or after the sample of their time; a step that is no number is none."""
    path = tmp_path / "run.jsonl"
    reader = PublishedReader(follow_path(str(path)))
    with Made(path) as writer:
        assert (reader.look(), reader.last) == ([], None)
        writer.write_sample(interval(1.0, 100))
        writer.write_metrics(
            [MetricRow(1.5, {"loss": 0.5}, 10), MetricRow(2.5, {"loss": 0.25, "lr": 1.0}, 20)]
        )
        writer.write_metrics([MetricRow(1.8, {"accuracy": 0.5})])
        writer.write_sample(interval(2.0, 200))
        first = reader.look()
        writer.write_sample(interval(3.0, 300))
        writer.write_sample(interval(4.0, 100))
        second = reader.look()

    assert [(one.seconds, one.step) for one in (*first, *second)] == [
        (1.0, None),
        (2.0, 10),
        (3.0, 20),
        (4.0, 20),
    ]
    assert [one.metrics for one in (*first, *second)] == [
        {},
        {"loss": 0.5, "accuracy": 0.5},
        {"loss": 0.25, "lr": 1.0},
        {},
    ]
    assert [one.values["ram_bytes"] for one in second] == [300e6, 100e6]
    assert reader.last == second[-1]
    assert reader.metrics == {"loss": 0.25, "lr": 1.0, "accuracy": 0.5}


def test_what_is_logged_after_the_last_interval_is_the_rest(tmp_path: Path) -> None:
    """A tracker that was killed, or whose sampler was, leaves such rows. It is taken once."""
    path = tmp_path / "run.jsonl"
    reader = PublishedReader(follow_path(str(path)))
    with Made(path) as writer:
        writer.write_sample(interval(1.0, 100))
        writer.write_metrics([MetricRow(1.5, {"loss": 0.5}), MetricRow(1.75, {"loss": 0.25})])
        (published,) = reader.look()

    assert published.metrics == {}
    assert reader.take_rest() == [Published(1.75, {}, metrics={"loss": 0.25})]
    assert reader.take_rest() == []


def test_a_point_has_the_time_of_day(tmp_path: Path) -> None:
    """The newest interval counts; without a new one there is none."""
    path = tmp_path / "run.jsonl"
    began_at = 1_700_000_000.25
    with Made(path, header(started_at=stamp_moment(began_at))) as writer:
        writer.write_event(found(gpu(1)))
        writer.write_sample(gpu_sample(1.0))
        writer.write_sample(gpu_sample(2.0))
        reader = PublishedReader(follow_path(str(path)))
        point = reader.look_for_point()

    assert point is not None
    assert point.at_seconds == began_at + 2.0
    assert point.values["gpu_tracker/gpu1/power_watts"] == 250.5
    assert reader.look_for_point() is None


def test_another_run_in_the_same_file_begins_anew(tmp_path: Path) -> None:
    """Neither its steps nor its metrics are those of the run before."""
    path = tmp_path / "run.jsonl"
    reader = PublishedReader(follow_path(str(path)))
    for step in (10, None):
        with Made(path) as writer:
            writer.write_metrics([MetricRow(0.5, {"loss" if step else "lr": 0.5}, step)])
            writer.write_sample(interval(1.0, 100))
        (published,) = reader.look()
        assert published.step == step
        path.rename(tmp_path / f"{time.monotonic_ns()}.jsonl")

    assert reader.metrics == {"lr": 0.5}
    assert not reader.is_over
