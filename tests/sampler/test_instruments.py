"""What a job logs, from the mailbox to the recording."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_tracker.core.model import MetricRow
from gpu_tracker.instrument.outbox import MetricsWriter
from gpu_tracker.recording.reader import load
from gpu_tracker.sampler import instruments as module
from gpu_tracker.sampler.instruments import Instruments
from recorded import Made


class Logged:
    """A job that logs in this process, and what is written of that."""

    def __init__(self, directory: Path) -> None:
        mailbox = directory / "mailbox"
        mailbox.mkdir()
        self.job = MetricsWriter(str(mailbox))
        self.instruments = Instruments(str(mailbox), 0.0)
        self.path = directory / "run.jsonl"
        self.made = Made(self.path)
        self.writer = self.made.writer

    def log(self, step: int, **values: float) -> None:
        """One row."""
        self.job.add(step, values)

    def write(self, at_seconds: float = 1.0, *, is_last: bool = False) -> None:
        """One turn of the sampler."""
        self.instruments.find_new()
        self.instruments.write(self.writer, at_seconds, is_last=is_last)

    def read(self) -> list[MetricRow]:
        """What can be read of the file now, which is all."""
        recording = load(str(self.path))
        rows = list(recording.metrics)
        assert not recording.problems
        return rows

    def list_lines(self, kind: str) -> list[bytes]:
        """All of a kind."""
        lines = self.path.read_bytes().splitlines()
        return [line for line in lines if kind in json.loads(line)]


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[Logged]:
    """Nothing yet."""
    logged = Logged(tmp_path)
    with logged.made:
        yield logged
    logged.job.close()


def test_names_of_their_own_take_little_and_are_read_back(logged: Logged) -> None:
    """A training logs statistics of each layer in a call of its own."""
    truth = [{f"layer{at}/{name}": at / 8 for name in ("mean", "std", "max")} for at in range(1200)]
    for values in truth:
        logged.log(1, **values)
    logged.write(is_last=True)

    assert [row.values for row in logged.read()] == truth
    assert logged.path.stat().st_size < 100 * 3600


def test_a_call_with_very_many_names_is_read_back(logged: Logged) -> None:
    """Also several of them."""
    values = {f"w{at}": float(at) for at in range(9000)}
    for step in range(60):
        logged.log(step, **values)
    logged.write(is_last=True)

    assert [(row.step, row.values == values) for row in logged.read()] == [(step, True) for step in range(60)]
    assert max(map(len, logged.list_lines("metrics"))) < 2**20


def test_more_names_than_are_read_are_counted(logged: Logged, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what the file says is not called damaged."""
    monkeypatch.setattr("gpu_tracker.accounts.metrics.MOST_METRICS", 10)
    for step in range(25):
        logged.log(step, **{f"x{step}": 1.0, "x0": 2.0})
    logged.write(is_last=True)

    assert len(logged.read()) == 25
    assert load(str(logged.path)).gaps.refused_metrics == 15


def test_the_bound_on_metrics_holds_within_a_batch(logged: Logged, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it the totals still count every number, and the last value is there."""
    monkeypatch.setattr(module, "_MOST_METRICS_BYTES", 50_000)
    for step in range(20_000):
        logged.log(step, loss=step / 8)
    logged.write(is_last=True)
    (totals,) = load(str(logged.path)).metric_totals
    rows = logged.read()

    assert logged.path.stat().st_size < 100_000
    assert logged.instruments.thinned_seconds is not None
    assert (totals.logged, totals.maximum) == (20_000, 19_999 / 8)
    assert (rows[-1].step, rows[-1].values) == (19_999, {"loss": 19_999 / 8})


def test_all_that_is_written_of_metrics_makes_the_next_lines_rarer(
    logged: Logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The totals of many names are most of it."""
    monkeypatch.setattr(module, "_MOST_METRICS_BYTES", 0)
    for turn in range(20):
        logged.log(turn, **{f"name {at}": 1.0 for at in range(1000)})
        logged.write(float(turn + 1))

    sizes = sum(map(len, (*logged.list_lines("metrics"), *logged.list_lines("metric_totals"))))
    assert sizes < 900_000


def test_of_very_much_some_is_read_in_each_turn_and_nothing_is_lost(
    logged: Logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So readings go on in between; the last turn reads all, file after file as they were filled."""
    monkeypatch.setattr("gpu_tracker.instrument.outbox.METRICS_BYTES", 10_000)
    monkeypatch.setattr("gpu_tracker.sampler.mailbox_reader.METRICS_BYTES", 10_000)
    monkeypatch.setattr(module, "_BATCH_BYTES", 1000)
    monkeypatch.setattr(module, "_TURN_SECONDS", 0.0)
    for step in range(2000):
        logged.log(step, loss=0.5)
    logged.write()
    assert not logged.list_lines("metrics")

    monkeypatch.setattr(module, "_TURN_SECONDS", 1e-9)
    moments = iter(range(10**9))
    monkeypatch.setattr(time, "monotonic", lambda: next(moments) * 0.75e-9)
    for turn in (1, 2):
        logged.write()
        assert 0 < len(logged.read()) <= turn * 1000 / 20
    logged.write(is_last=True)
    assert [row.step for row in logged.read()] == list(range(2000))


def test_a_row_that_is_longer_than_a_batch_is_read_whole(
    logged: Logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the next."""
    monkeypatch.setattr(module, "_BATCH_BYTES", 10)
    logged.log(1, **{"a" * 100: 1.0})
    logged.log(2, b=1.0)
    logged.write()

    assert [row.step for row in logged.read()] == [1, 2]


def test_a_row_that_no_line_could_hold_counts_as_lost(
    logged: Logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next is written."""
    monkeypatch.setattr("gpu_tracker.instrument.outbox._MOST_ROW_BYTES", 100)
    logged.log(1, **{"a" * 100: 1.0})
    logged.log(2, b=1.0)
    logged.write(is_last=True)

    assert [row.step for row in logged.read()] == [2]
    assert load(str(logged.path)).gaps.lost_metrics == 1


def test_what_could_be_written_before_the_disk_was_full_is_not_written_twice(
    logged: Logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metrics of several lines, of which the second fails."""
    rows = [{f"a{at}": 1.0, f"b{at}": 2.0} for at in range(20)]
    for step, values in enumerate(rows):
        logged.log(step, **values)
    put, n_written = logged.writer.write_metrics, 0

    def fail_at_third(some: list[MetricRow]) -> None:
        nonlocal n_written
        n_written += 1
        if n_written == 3:
            raise OSError(os.strerror(28))
        put(some)

    monkeypatch.setattr(logged.writer, "write_metrics", fail_at_third)
    with pytest.raises(OSError, match="space"):
        logged.write()
    logged.write(is_last=True)

    assert [row.step for row in logged.read()] == list(range(20))
