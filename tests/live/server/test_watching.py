"""A run as it goes on, for all who look."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_tracker.core.moments import Pace
from gpu_tracker.live.server import watching
from gpu_tracker.live.server.watching import RunSubject
from gpu_tracker.recording.reader import load
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import build
from gpu_tracker.reports.choices import NO_CHOICES
from gpu_tracker.reports.html.page import make_page
from live.server.conftest import Grown


def data_of(event: bytes) -> Any:
    """What an event tells."""
    return json.loads(event.partition(b"data: ")[2])


def follow(grown: Grown) -> RunSubject:
    """Look at it from now on."""
    return RunSubject("live.jsonl", str(grown.path), NO_CHOICES)


def test_a_page_is_the_report_of_now(grow: Callable[..., Grown]) -> None:
    """Of a run that goes on; later, of one that has ended."""
    grown = grow()
    grown.grow(30)
    subject = follow(grown)
    subject.advance(1)
    frame = data_of(subject.shown.page)
    assert ("still running" in frame["body"], subject.shown.last) == (True, b"")
    assert frame["data"]["seconds"] == 29.0

    grown.finish()
    subject.advance(1)
    frame, page = data_of(subject.shown.page), load(str(grown.path))
    expected = make_page(build(page, read_columns(page)))
    assert frame["body"].endswith(expected.body)
    assert (frame["data"], frame["columns"]) == (json.loads(json.dumps(expected.data)), expected.packed)
    assert data_of(subject.shown.last) == "The run is over."
    before = subject.shown
    subject.advance(1)
    assert subject.shown is before


def test_rows_are_all_that_came_since_the_page(grow: Callable[..., Grown]) -> None:
    """So who misses some misses nothing. A new page begins anew."""
    grown = grow()
    grown.grow(30)
    subject = follow(grown)
    subject.advance(1)
    page = subject.shown.page
    subject._page_pace.pay(time.monotonic(), 1e9)
    for count in (1, 2):
        subject._rows_pace = Pace()
        grown.grow(1)
        subject.advance(1)
        frame = data_of(subject.shown.rows)
        assert frame["data"]["seconds"] == 29.0 + count
        lines = [line for chart in frame["data"]["charts"] for line in chart["lines"]]
        assert {frame["data"]["columns"][line["mean"]]["rows"] for line in lines} == {count}
        assert (subject.shown.rows_number, subject.shown.page is page) == (count, True)
    subject._page_pace = Pace()
    grown.grow(1)
    subject.advance(1)
    assert (subject.shown.page_number, subject.shown.rows_number, subject.shown.rows) == (2, 0, b"")


def test_without_news_nothing_is_made(grow: Callable[..., Grown]) -> None:
    """However often it is looked at."""
    grown = grow()
    grown.grow(30)
    subject = follow(grown)
    subject.advance(1)
    before = subject.shown
    subject._page_pace = Pace()
    subject.advance(1)
    assert subject.shown is before


def test_a_file_that_is_replaced_is_another_run(grow: Callable[..., Grown], runs: Path) -> None:
    """Its page comes at once."""
    grown = grow()
    grown.grow(30)
    subject = follow(grown)
    subject.advance(1)
    other = grow("other.jsonl")
    other.grow(5)
    other.path.rename(grown.path)
    subject.advance(1)
    assert (subject.shown.page_number, data_of(subject.shown.page)["data"]["seconds"]) == (2, 4.0)


def test_a_file_that_is_gone_is_the_end(grow: Callable[..., Grown]) -> None:
    """What was shown stays, but for that it still runs: nobody can tell."""
    grown = grow()
    grown.grow(30)
    subject = follow(grown)
    subject.advance(1)
    grown.path.unlink()
    subject.advance(1)
    assert data_of(subject.shown.last).endswith("No such file or directory. This is what was known last.")
    frame = data_of(subject.shown.page)
    assert ("still running" in frame["body"], "cut off" in frame["body"]) == (False, True)
    assert frame["data"]["seconds"] == 29.0


def test_a_file_without_a_header_is_waited_for(grow: Callable[..., Grown]) -> None:
    """It has only just been created."""
    grown = grow()
    grown.path.write_bytes(b"")
    subject = follow(grown)
    subject.advance(1)
    assert subject.shown == watching.Shown()


def test_wrong_data_leave_what_is_shown(grow: Callable[..., Grown], monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of one recording is not one of the server."""
    grown = grow()
    grown.grow(30)
    subject = follow(grown)
    subject.advance(1)
    before = subject.shown

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(watching, "build", fail)
    subject._page_pace = Pace()
    grown.grow(1)
    subject.advance(1)
    assert subject.shown is before
