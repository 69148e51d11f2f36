"""How a tracked part of a program ended."""

from __future__ import annotations

from pathlib import Path

import pytest

import gpu_tracker as gput

ENDINGS = [
    (ValueError(), "raised"),
    (SystemExit(3), "raised"),
    (KeyboardInterrupt(), "interrupted"),
    (SystemExit(0), "stopped"),
]


def read_ending(path: Path) -> str:
    """As the file has it."""
    return gput.load(path).report.ending


def raise_and_stop(tracker: gput.Tracker, error: BaseException) -> None:
    """Without a block."""
    tracker.start()
    try:
        raise error
    finally:
        tracker.stop()


@pytest.mark.parametrize(("error", "ending"), ENDINGS)
def test_an_exception_is_how_it_ended(tmp_path: Path, error: BaseException, ending: str) -> None:
    """In a block, and with `stop()` on the way out."""
    with pytest.raises(type(error)), gput.Tracker(record=tmp_path / "block.jsonl"):
        raise error
    with pytest.raises(type(error)):
        raise_and_stop(gput.Tracker(record=tmp_path / "finally.jsonl"), error)

    assert [read_ending(tmp_path / f"{name}.jsonl") for name in ("block", "finally")] == [ending, ending]


def test_what_a_handler_does_has_not_failed(tmp_path: Path) -> None:
    """The exception it handles is older than the tracker."""
    try:
        raise ValueError
    except ValueError:
        with gput.Tracker(record=tmp_path / "run.jsonl"):
            pass

    assert read_ending(tmp_path / "run.jsonl") == "stopped"


def test_a_run_that_raised_passes_no_limit(tmp_path: Path) -> None:
    """Whatever its figures are."""
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    with gput.Tracker(record=good):
        pass
    with pytest.raises(ValueError, match="wrong"), gput.Tracker(record=bad):
        raise ValueError("wrong")

    assert gput.compare(good, good).check("time > 1h") == []
    (sentence,) = gput.compare(good, bad).check("time > 1h")
    assert "raised" in sentence
