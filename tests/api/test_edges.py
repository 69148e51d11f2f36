"""What a user may do with the public interface that nobody thought of."""

from __future__ import annotations

import copy
import io
import pickle
import pydoc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gpu_tracker as gput
from recorded import make_full


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A recording."""
    return make_full(tmp_path / "x.jsonl")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_recording_can_be_pickled(path: Path, copied: Callable[[Any], Any]) -> None:
    """With everything in it, read or not: a pool of processes may share the work."""
    recording = gput.load(path)
    for again in (copied(gput.load(path)), copied(recording)):
        for name in ("samples", "regions", "calls", "metrics", "processes", "frameworks"):
            assert tuple(getattr(again, name)) == tuple(copied(getattr(recording, name)))
            assert tuple(getattr(again, name)) == tuple(getattr(recording, name)), name
        assert (again.header, again.report._replace(columns=None), again.path) == (
            recording.header,
            recording.report._replace(columns=None),
            recording.path,
        )
        # Not known is nan, which is not equal to itself.
        assert repr(again.report.columns) == repr(recording.report.columns)


TRACKERS: list[dict[str, Any]] = [
    {"sleep_time": -1},
    {"sleep_time": "x"},
    {"ram_unit": "x"},
    {"time_unit": 3},
    {"n_expected_cores": "x"},
    {"gpu_uuids": 3},
    {"gpu_uuids": [3]},
    {"gpu": "x"},
    {"gpu": 3},
    {"labels": 3},
    {"labels": {"": 1}},
    {"record": 3},
    {"tracking_file": 3},
    {"tracking_file": "x.foo"},
    {"max_overhead": "x"},
    {"process_id": -1},
    {"process_id": 99_999_999},
]


@pytest.mark.parametrize("options", TRACKERS, ids=str)
def test_a_wrong_option_is_one_of_our_errors(options: dict[str, Any]) -> None:
    """And a ValueError, as in the paper."""
    with pytest.raises(gput.UsageError) as refused:
        gput.Tracker(**options)

    assert isinstance(refused.value, ValueError)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: gput.load(3),  # type: ignore[arg-type]
        lambda: gput.compare(None),  # type: ignore[arg-type]
        lambda: gput.compare([3]),  # type: ignore[list-item]
        lambda: gput.combine(3),  # type: ignore[arg-type]
        lambda: gput.track(3),  # type: ignore[call-overload]
        lambda: gput.Tracker(gpu=3),  # type: ignore[arg-type]
        lambda: gput.Tracker(labels=3),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_type_is_one_of_our_errors(call: Callable[[], object]) -> None:
    """And a TypeError, with a sentence."""
    with pytest.raises(gput.UsageError, match=r"(is|are) invalid\.") as refused:
        call()

    assert isinstance(refused.value, TypeError)


def test_a_limit_that_is_no_text_is_refused(path: Path) -> None:
    """Like any other nonsense."""
    with pytest.raises(gput.UsageError, match=r"^3 is not a valid limit\. Must be text\.$"):
        gput.compare(path).check(3)  # type: ignore[arg-type]


def test_too_early_and_too_late_are_our_errors_too() -> None:
    """And a RuntimeError, as in the paper."""
    tracker = gput.Tracker(disable_logs=True)
    for early in (tracker.stop, tracker.to_json, lambda: str(tracker)):
        with pytest.raises(gput.TrackerError) as refused:
            early()
        assert isinstance(refused.value, RuntimeError)
    with tracker, pytest.raises(gput.TrackerError, match="already started"):
        tracker.start()
    with pytest.raises(gput.TrackerError, match="already stopped"):
        tracker.stop()


def test_help_on_a_value_shows_its_fields() -> None:
    """Each with its type, and none with how it is made."""
    text = io.StringIO()
    pydoc.Helper(output=text)(gput.Sample)

    assert "at_seconds\n |      float" in text.getvalue()
    assert "itemgetter" not in text.getvalue()


def test_an_empty_block_has_no_rate() -> None:
    """The clocks cannot tell; unknown is not a percentage above what one thread can use."""
    for _ in range(5):
        with gput.Tracker(disable_logs=True) as tracker:
            pass
        report = tracker.report
        assert report is not None
        mean = report.summary.cpu.main.mean_percent
        assert mean is None or (report.summary.seconds >= 1e-3 and mean <= 105)


def test_the_job_peaked_at_least_as_high_as_each_of_its_regions(tmp_path: Path) -> None:
    """Both exact, but read at different moments."""
    with gput.Tracker(disable_logs=True, record=tmp_path / "x.jsonl") as tracker:
        for _ in range(5):
            with gput.region("block", exact_peak=True):
                bytearray(30_000_000)
    report = tracker.report
    assert report is not None
    (region,) = report.regions

    assert region.peak_ram_basis == "exact"
    for summary in (report.summary, gput.load(tmp_path / "x.jsonl").summary):
        assert (
            summary.ram.combined.total_bytes >= summary.ram.main.total_bytes >= (region.peak_ram_bytes or 0)
        )
